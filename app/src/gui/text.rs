//! Every text that the window shows, in one place. Names of devices, files and outcomes come with the results.

use std::path::Path;
use std::time::Duration;

use compute::bench::record::{Clock, Status};
use compute::bench::spec::RunSpec;
use compute::bench::suite::Suite;
use compute::plan::Pass;

use crate::chart::number::{full, three_digits};
use crate::chart::series::Series;
use crate::chart::throughput::{Caution, Unit};

pub(crate) const TITLE: &str = "Batchmark";
pub(crate) const THIS_MACHINE: &str = "This machine";

// Toolbar.
pub(crate) const OPEN: &str = "Open…";
pub(crate) const OPEN_HINT: &str = "Add result files to the library. Files can also be dropped onto the window.";
pub(crate) const SAVE_AS: &str = "Save as…";
pub(crate) const SAVE_AS_HINT: &str = "Save this session's results as a file of your own.";
pub(crate) const NOTHING_TO_SAVE: &str = "This session has no results yet.";
pub(crate) const SAVED_IN_MEMORY: &str = "Results are only in memory";

// Devices.
pub(crate) const LOOKING: &str = "Looking for GPUs…";
pub(crate) const NO_DEVICE: &str = "No device was found.";
pub(crate) const ONLY_PROCESSOR: &str = "No GPU can be used here, so the reference on the processor is. It is slow.";
pub(crate) const LOOK_AGAIN: &str = "Look again";
pub(crate) const SOFTWARE: &str = "software";
pub(crate) const UNAVAILABLE: &str = "unavailable";
pub(crate) const ALLOW_SOFTWARE: &str = "Allow software adapters";
pub(crate) const ALLOW_SOFTWARE_HINT: &str =
    "A software adapter computes on the processor. Its numbers say nothing about a GPU.";
pub(crate) const SOFTWARE_REFUSED: &str = "This adapter computes on the processor, not on a GPU.";

// Running.
pub(crate) const CUSTOM: &str = "Custom run…";
pub(crate) const RUN_WHILE_LOOKING: &str = "Devices are still being looked for.";
pub(crate) const RUN_WHILE_RUNNING: &str = "A run is going.";
pub(crate) const RUN_WITHOUT_DEVICE_LIST: &str = "The search for devices failed.";
pub(crate) const RUN_WITHOUT_DEVICE: &str = "No device can be used.";
pub(crate) const RUN_WITHOUT_CHOICE: &str = "No device is chosen.";
pub(crate) const RUN_ONLY_SOFTWARE: &str = "Only a software adapter was found. Allow it to run on it all the same.";
pub(crate) const NOTHING_TO_RUN: &str = "Nothing of this can be run on the chosen devices.";
pub(crate) const CANCEL_CURRENT: &str = "Cancel current";
pub(crate) const CANCEL_ALL: &str = "Cancel all";
pub(crate) const CANCELLING: &str = "cancelling";
pub(crate) const STARTING: &str = "starting";
pub(crate) const TIME_LEFT_UNKNOWN: &str = "time left not known yet";
pub(crate) const PROGRESS: &str = "Progress of all runs";
pub(crate) const FINISHED_RUNS: &str = "Finished";
pub(crate) const SKIPPED: &str = "skipped";
pub(crate) const NEXT_RUNS: &str = "Next";

// Custom run.
pub(crate) const CUSTOM_TITLE: &str = "Custom run";
pub(crate) const MODELS: &str = "Models";
pub(crate) const PASSES: &str = "Passes";
pub(crate) const PRECISIONS: &str = "Precisions";
pub(crate) const MINIBATCHES: &str = "Minibatches";
pub(crate) const MINIBATCHES_HINT: &str = "such as 16, 64";
pub(crate) const MAX_SECONDS: &str = "At most";
pub(crate) const MAX_SECONDS_SUFFIX: &str = " s a run";
pub(crate) const START: &str = "Start";
pub(crate) const CANCEL: &str = "Cancel";
pub(crate) const CUSTOM_WITHOUT_MODEL: &str = "Choose at least one model.";
pub(crate) const CUSTOM_WITHOUT_PASS: &str = "Choose at least one pass.";
pub(crate) const CUSTOM_WITHOUT_PRECISION: &str = "Choose at least one precision.";
pub(crate) const CUSTOM_WITHOUT_MINIBATCH: &str = "Give at least one minibatch, such as 16.";

// Library.
pub(crate) const THIS_SESSION: &str = "This session";
pub(crate) const FILES: &str = "Files";
pub(crate) const NO_FILES: &str = "Drop result files here, or add them by path.";
pub(crate) const LOADING: &str = "reading…";
pub(crate) const PATH_FIELD: &str = "Path of a result file";
pub(crate) const PATH_HINT: &str = "path of a result file";
pub(crate) const ADD: &str = "Add";
pub(crate) const NO_OPEN_DIALOG: &str = "This system offers no file dialog. Type or paste a path into the field under Files, or drop files onto the window.";
pub(crate) const NO_RECORDS: &str = "holds no results";
pub(crate) const DROP_FILES: &str = "Drop to add to the library";

// Chart.
pub(crate) const PRECISION: &str = "Precision";
pub(crate) const ALL_PRECISIONS: &str = "all";
pub(crate) const MINIBATCH: &str = "Minibatch";
pub(crate) const NOT_MEASURED: &str = "not measured";
pub(crate) const NO_NUMBER: &str = "no usable number";
pub(crate) const EMPTY_TITLE: &str = "How fast does this machine train and run deep networks?";
pub(crate) const EMPTY_TEXT: &str = "The quick test measures two networks, both passes, in about a minute on a GPU. Its bars appear here one by one and \
     are saved as they do.";
pub(crate) const EMPTY_OR: &str = "Or open result files to look at the numbers of other machines.";
pub(crate) const NOTHING_SHOWN: &str =
    "No results for this choice. Choose another pass, or show a series in the library.";

// Details.
pub(crate) const DETAILS: &str = "Details";
pub(crate) const CLOSE_DETAILS: &str = "Close details";

// File dialogs.
pub(crate) const RESULT_FILES: &str = "Batchmark results";
pub(crate) const ALL_FILES: &str = "All files";

// Questions.
pub(crate) const CLOSE_WHILE_RUNNING: &str = "Runs are still going.";
pub(crate) const CLOSE_WHILE_RUNNING_TEXT: &str =
    "Finished runs are saved. The one being measured and those behind it will be cancelled.";
pub(crate) const CLOSE_UNSAVED: &str = "Results are not saved.";
pub(crate) const CLOSE_UNSAVED_TEXT: &str = "They are only in memory and will be lost.";
pub(crate) const CLOSE_ANYWAY: &str = "Close anyway";
pub(crate) const KEEP_OPEN: &str = "Keep open";
pub(crate) const SAVE_TITLE: &str = "Save results";
pub(crate) const SAVE_PATH: &str = "Path to save to";
pub(crate) const SAVE: &str = "Save";

/// Labels of a record's details.
pub(crate) mod detail {
    pub(crate) const MODEL: &str = "Model";
    pub(crate) const PASS: &str = "Pass";
    pub(crate) const PRECISION: &str = "Precision";
    pub(crate) const MINIBATCH: &str = "Minibatch";
    pub(crate) const OUTCOME: &str = "Outcome";
    pub(crate) const THROUGHPUT: &str = "Throughput";
    pub(crate) const MEDIAN: &str = "Median";
    pub(crate) const INTERVAL: &str = "95% confidence";
    pub(crate) const PERCENTILES: &str = "5% to 95%";
    pub(crate) const MEAN: &str = "Mean ± std. dev.";
    pub(crate) const ITERATIONS: &str = "Iterations";
    pub(crate) const CLOCK: &str = "Clock";
    pub(crate) const DRIFT: &str = "Drift";
    pub(crate) const ACHIEVED: &str = "Achieved";
    pub(crate) const MEMORY_PLANNED: &str = "Memory planned";
    pub(crate) const MEMORY_PEAK: &str = "Memory peak";
    pub(crate) const VERIFICATION: &str = "Verification";
    pub(crate) const CORE_CLOCK: &str = "Core clock";
    pub(crate) const POWER: &str = "Power";
    pub(crate) const TEMPERATURE: &str = "Temperature";
    pub(crate) const UTILIZATION: &str = "Utilization";
    pub(crate) const THROTTLED: &str = "Held down by";
    pub(crate) const TUNING: &str = "Tuning";
    pub(crate) const DEVICE: &str = "Device";
    pub(crate) const DRIVER: &str = "Driver";
    pub(crate) const ENGINE: &str = "Engine";
    pub(crate) const LIBRARY: &str = "Library";
    pub(crate) const FROM: &str = "From";
    pub(crate) const STARTED: &str = "Started";
    pub(crate) const DEFINITION: &str = "Definition";
    pub(crate) const KERNELS: &str = "Kernels";
}

/// Label of the button that starts a suite.
pub(crate) const fn run_suite(suite: Suite) -> &'static str {
    match suite {
        Suite::Quick => "Run quick test",
        Suite::Standard => "Run standard suite",
        Suite::Sweep => "Run minibatch sweep",
    }
}

/// Label of the button in an empty window.
pub(crate) fn run_quick_on(devices: &[String]) -> String {
    format!("{} on {}", run_suite(Suite::Quick), devices.join(", "))
}

/// What a suite measures.
pub(crate) const fn suite_hint(suite: Suite) -> &'static str {
    match suite {
        Suite::Quick => "Two networks, both passes, minibatch 16: about a minute on a GPU.",
        Suite::Standard => "Eight networks, both passes, f32 and the best half precision, minibatch 64.",
        Suite::Sweep => "Three networks, both passes, minibatch 1, 2, 4 … up to where memory runs out.",
    }
}

pub(crate) const fn pass(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "Inference",
        Pass::ForwardBackward => "Training",
    }
}

pub(crate) const fn pass_hint(pass: Pass) -> &'static str {
    match pass {
        Pass::Forward => "The forward pass.",
        Pass::ForwardBackward => "Forward and backward pass, without the update of the weights.",
    }
}

/// An engine, or a framework that another program measured, by its name in files.
pub(crate) fn engine(name: &str) -> &str {
    match name {
        "cuda" => "CUDA",
        "wgsl" => "WGSL",
        "cpu" => "CPU reference",
        "pytorch" => "PyTorch",
        other => other,
    }
}

pub(crate) const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::SamplesPerSec => "samples/s",
        Unit::MsPerIteration => "ms/iteration",
    }
}

/// The chart's question.
pub(crate) const fn question(unit: Unit) -> &'static str {
    match unit {
        Unit::SamplesPerSec => "How many images per second?",
        Unit::MsPerIteration => "How many milliseconds for one minibatch?",
    }
}

/// What the chart shows, below its question.
pub(crate) fn subtitle(shown: Pass, minibatch: usize, which: Unit) -> String {
    let better = match which {
        Unit::SamplesPerSec => "longer is better",
        Unit::MsPerIteration => "shorter is better",
    };
    format!("{}, minibatch {minibatch}, in {}; {better}. Whiskers: 95% confidence.", pass(shown), unit(which))
}

/// A series without its source.
pub(crate) fn series(series: &Series) -> String {
    let device = series.device.as_deref().unwrap_or("device not opened");
    let id = series.device_id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
    format!("{device}{id} · {} · {}", engine(&series.engine), series.precision)
}

/// A series with its source.
pub(crate) fn series_of(source: &str, which: &Series) -> String {
    format!("{source}: {}", series(which))
}

/// What stands in place of a bar.
pub(crate) const fn mark(status: Status) -> &'static str {
    match status {
        Status::Ok => NO_NUMBER,
        _ => status.label(),
    }
}

/// A bar for those who don't see it.
pub(crate) fn bar(model: &str, series: &str, says: &str) -> String {
    format!("{model}, {series}: {says}")
}

/// A value with its unit.
pub(crate) fn value(value: f64, which: Unit) -> String {
    format!("{} {}", three_digits(value), unit(which))
}

/// A value with its unit and all digits.
pub(crate) fn full_value(value: f64, interval: Option<[f64; 2]>, which: Unit) -> String {
    let interval =
        interval.map(|[low, high]| format!(" (95% confidence: {} to {})", full(low), full(high))).unwrap_or_default();
    format!("{} {}{interval}", full(value), unit(which))
}

pub(crate) fn caution(caution: &Caution) -> String {
    match caution {
        Caution::DefinitionsDiffer { model } => {
            format!("The bars of {model} were measured on different definitions of it and can't be compared.")
        }
    }
}

pub(crate) fn run(spec: &RunSpec) -> String {
    format!("{} · {} · {} · minibatch {}", spec.model, pass(spec.pass), spec.precision, spec.minibatch)
}

/// A run and what it runs on.
pub(crate) fn run_on(spec: &RunSpec) -> String {
    format!("{} · {} · {}", run(spec), spec.device, engine(spec.engine.name()))
}

pub(crate) fn run_place(place: usize, of: usize) -> String {
    format!("Run {place} of {of}")
}

pub(crate) fn more(count: usize) -> String {
    format!("and {count} more")
}

pub(crate) fn iterations(done: usize, of: Option<usize>) -> String {
    match of {
        Some(of) => format!("iteration {done} of {of}"),
        None => format!("iteration {done}"),
    }
}

/// A time left, no more exact than it is known.
pub(crate) fn time_left(left: Duration) -> String {
    let secs = left.as_secs();
    match secs {
        0..10 => "a few seconds left".to_owned(),
        10..60 => format!("about {} s left", secs.div_ceil(10) * 10),
        60..5400 => format!("about {} min left", secs.div_ceil(60)),
        _ => format!("about {:.1} h left", secs as f64 / 3600.0),
    }
}

pub(crate) fn throughput(per_sec: f64) -> String {
    value(per_sec, Unit::SamplesPerSec)
}

/// What came of a queue.
pub(crate) fn run_summary(tally: &[(Status, usize)], n_runs: usize) -> String {
    let parts: Vec<String> = tally.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let runs = if n_runs == 1 { "1 run has" } else { &format!("{n_runs} runs have") };
    if parts.is_empty() { format!("{runs} ended.") } else { format!("{runs} ended: {}.", parts.join(", ")) }
}

pub(crate) fn not_a_minibatch(word: &str, largest: usize) -> String {
    format!("{word:?} is no minibatch; whole numbers from 1 to {largest} are.")
}

pub(crate) fn not_saved(reason: &str) -> String {
    format!("Results could not be saved: {reason}. They are kept in memory; “{SAVE_AS}” tries another place.")
}

pub(crate) fn broken(what: &str) -> String {
    format!("A part of the program stopped unexpectedly: {what}.")
}

pub(crate) fn drawing_failed(reason: &str) -> String {
    format!("The window could not be drawn in full; runs go on and are saved. The system says: {reason}")
}

pub(crate) fn saved_at(path: &Path) -> String {
    format!("Saved to {}", path.display())
}

pub(crate) fn search_failed(reason: &str) -> String {
    format!("Devices could not be listed: {reason}.")
}

pub(crate) fn remove_file(name: &str) -> String {
    format!("Remove {name} from the library")
}

pub(crate) fn dismiss(text: &str) -> String {
    format!("Dismiss: {text}")
}

pub(crate) fn verification(is_passed: bool, error: Option<f64>, tolerance: f64) -> String {
    let verdict = if is_passed { "passed" } else { "failed" };
    let error = error.map(|error| format!(", error {error:.1e}")).unwrap_or_default();
    format!("{verdict}{error}, tolerance {tolerance:.0e}")
}

pub(crate) fn range_ms(low: f64, high: f64) -> String {
    format!("{} to {} ms", full(low), full(high))
}

pub(crate) fn throttled(reason: &str, share: f64) -> String {
    format!("{reason}, {:.0} % of the time", share * 100.0)
}

pub(crate) const fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Device => "device",
        Clock::Host => "host",
    }
}

/// A start that could not open a window.
pub(crate) fn no_window(reason: &str) -> String {
    format!(
        "Batchmark could not open its window: {reason}\n\n\
         It can measure without a window; on a terminal, type:\n    batchmark run --suite quick"
    )
}

/// A window whose device was lost.
pub(crate) fn drawing_lost(reason: &str) -> String {
    format!("the device that draws it was lost ({reason})")
}

/// A window that was open and could not go on.
pub(crate) fn window_stopped(reason: &str) -> String {
    format!("Batchmark's window stopped unexpectedly: {reason}\n\nResults of finished runs are saved.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_no_more_exact_than_it_is_known() {
        let cases = [
            (3, "a few seconds left"),
            (11, "about 20 s left"),
            (61, "about 2 min left"),
            (5399, "about 90 min left"),
            (9000, "about 2.5 h left"),
        ];
        for (secs, expected) in cases {
            assert_eq!(time_left(Duration::from_secs(secs)), expected);
        }
    }

    #[test]
    fn a_start_without_window_names_the_command_line() {
        assert!(no_window("no display").contains("batchmark run --suite quick"));
    }

    #[test]
    fn a_summary_names_what_went_wrong() {
        let text = run_summary(&[(Status::Ok, 3), (Status::OutOfMemory, 1)], 4);
        assert_eq!(text, "4 runs have ended: 3 ok, 1 out of memory.");
        assert_eq!(run_summary(&[(Status::Ok, 1)], 1), "1 run has ended: 1 ok.");
    }
}
