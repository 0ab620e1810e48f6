//! The program `batchmark`: the command line with arguments, the window without.

use std::process::ExitCode;

fn main() -> ExitCode {
    batchmark::cli::main()
}
