//! The command line: one file a command. It needs no display and, but for `run` and `devices`, no device.
//!
//! Results go to standard output, everything said on the way to standard error. Exit status: 0 when all is well, 1 when
//! something failed and what could be done is done, 2 when the arguments were wrong.

mod compare;
mod decide;
mod devices;
mod evaluate;
mod export;
mod files;
mod import;
mod kernels;
mod memory;
mod models;
mod output;
mod progress;
mod reference;
mod run;
mod show;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory as _, Parser, Subcommand};
use compute::bench::record;
use compute::bench::supervisor::WorkerCommand;
use compute::bench::worker;

/// Measures how fast a GPU trains and runs deep networks. Without arguments, or with result files alone, it opens its
/// window.
#[derive(Debug, Parser)]
#[command(name = "batchmark", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List every device and engine, and why one is unavailable
    Devices(devices::Arguments),
    /// List the networks: parameters, multiply-accumulates, input, definition hash
    Models(models::Arguments),
    /// Tell the device memory that runs need, without a device
    Memory(memory::Arguments),
    /// Measure
    Run(run::Arguments),
    /// Show the records of result files as a table
    Show(show::Arguments),
    /// Put result files side by side, with ratios and differences of the environment
    Compare(compare::Arguments),
    /// Write the records of result files as CSV, Markdown or JSON
    Export(export::Arguments),
    /// Bring files of other programs into a result file
    Import(import::Arguments),
    /// Rank GPUs for a mix of work, by measured, published and estimated numbers
    Decide(decide::Arguments),
    /// Tell how well estimates meet known figures, each GPU held out in turn
    Evaluate(evaluate::Arguments),
    /// Measure for another process: requests on standard input, events on standard output
    #[command(hide = true)]
    Worker,
    /// Compile the CUDA kernels ahead of time, by NVRTC
    #[command(hide = true)]
    Kernels(kernels::Arguments),
    /// Compute the stored reference answers anew with the CPU engine
    #[command(hide = true)]
    Reference(reference::Arguments),
    /// Print the JSON Schema of result files
    #[command(hide = true)]
    Schema,
}

/// How a command ended, if it did not fail altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Everything was done.
    Done,
    /// Something failed, was said, and the rest was done.
    Partial,
}

/// Arguments that are each well-formed and still can't be followed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct WrongArguments(String);

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let began = Instant::now();
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let timing = arguments.first().is_some_and(|first| first == "--timing");
    if timing {
        arguments.remove(0);
    }
    if let Some(files) = window_files(&arguments) {
        #[cfg(windows)]
        if crate::gui::start_without_console() {
            return ExitCode::SUCCESS;
        }
        return exit_code(crate::gui::run(files, began, timing).map(|()| Outcome::Done));
    }
    // Clap prints its own messages and leaves with 2 for wrong arguments.
    exit_code(execute(Cli::parse().command))
}

fn execute(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Devices(arguments) => devices::execute(&arguments),
        Command::Models(arguments) => models::execute(&arguments),
        Command::Memory(arguments) => memory::execute(&arguments),
        Command::Run(arguments) => run::execute(&arguments),
        Command::Show(arguments) => show::execute(&arguments),
        Command::Compare(arguments) => compare::execute(&arguments),
        Command::Export(arguments) => export::execute(&arguments),
        Command::Import(arguments) => import::execute(&arguments),
        Command::Decide(arguments) => decide::execute(&arguments),
        Command::Evaluate(arguments) => evaluate::execute(&arguments),
        Command::Worker => {
            // A terminal sends Ctrl-C to every process of the command; when a run ends is its supervisor's decision.
            ctrlc::set_handler(|| {})?;
            worker::serve_process()?;
            Ok(Outcome::Done)
        }
        Command::Kernels(arguments) => kernels::execute(&arguments),
        Command::Reference(arguments) => reference::execute(&arguments),
        Command::Schema => output::print(&record::json_schema()).map(|()| Outcome::Done),
    }
}

fn exit_code(outcome: anyhow::Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Partial) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if error.is::<WrongArguments>() { 2 } else { 1 })
        }
    }
}

/// The files to open in the window, when the arguments ask for it: none at all, or paths alone.
fn window_files(arguments: &[OsString]) -> Option<Vec<PathBuf>> {
    let is_command = |argument: &OsString| {
        let help = argument == "help";
        help || Cli::command().get_subcommands().any(|command| *argument == *command.get_name())
    };
    let is_path = |argument: &OsString| {
        let text = argument.to_string_lossy();
        let looks_like_one = text.ends_with(".json") || text.contains(std::path::is_separator);
        !text.starts_with('-') && (looks_like_one || PathBuf::from(argument).exists())
    };
    let first_is_command = arguments.first().is_some_and(is_command);
    let opens = !first_is_command && arguments.iter().all(is_path);
    opens.then(|| arguments.iter().map(PathBuf::from).collect())
}

/// This program as a worker.
fn worker_command() -> anyhow::Result<WorkerCommand> {
    use anyhow::Context as _;
    let program = std::env::current_exe().context("the program's own path is not known")?;
    Ok(WorkerCommand { program, arguments: vec!["worker".to_owned()] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_well_defined() {
        Cli::command().debug_assert();
    }

    #[test]
    fn files_alone_open_the_window_and_commands_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let existing = folder.path().join("results");
        std::fs::write(&existing, "").unwrap();
        let existing = existing.to_string_lossy().into_owned();
        let cases: [(&[&str], bool); 9] = [
            (&[], true),
            (&["a.json"], true),
            (&["a.json", "/tmp/b"], true),
            (&[existing.as_str()], true),
            (&["run"], false),
            (&["show", "a.json"], false),
            (&["help"], false),
            (&["--version"], false),
            (&["rnu"], false),
        ];
        for (arguments, opens) in cases {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(window_files(&arguments).is_some(), opens, "{arguments:?}");
        }
    }
}
