//! Batchmark: measures how fast a GPU trains and runs deep networks.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let result = if arguments.first().is_some_and(|first| first.as_os_str() == "worker") {
        compute::bench::worker::serve_process().map_err(Into::into)
    } else {
        batchmark::gui::run(arguments)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
