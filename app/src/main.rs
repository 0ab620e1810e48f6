//! The program `batchmark`: the command line with arguments, the window without.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
