//! `batchmark run`: measures, saves after every run, prints a table at the end.

mod destination;
mod profile;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use compute::bench::export::{Format, Source, records};
use compute::bench::record::Status;
use compute::bench::store::{self, SaveError, Store};
use compute::bench::suite::{Selection, Suite, choose, runs};
use compute::bench::supervisor::{Cancel, SilenceLimits, Update, supervise};
use compute::engine::{EngineKind, Tier};
use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;

use super::output::{print, say};
use super::progress::Progress;
use super::{Outcome, WrongArguments, devices, worker_command};

/// Exit status of a program that was interrupted, as shells have it: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Largest minibatch that is taken for meant.
const MAX_MINIBATCH: usize = 1 << 20;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Fixed list of runs: quick, standard or sweep; quick if neither a suite nor a model is named
    #[arg(long)]
    suite: Option<Suite>,
    /// Device to measure, as `batchmark devices` prints it; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    device: Vec<String>,
    /// Engine to measure: cuda, wgsl, cpu; may be repeated
    #[arg(long, value_name = "ENGINE", value_delimiter = ',')]
    engine: Vec<EngineKind>,
    /// The most that the cuda engine may use: vendor (cuDNN and cuBLASLt), own (our kernels alone), ahead (our kernels
    /// compiled ahead of time)
    #[arg(long, value_name = "TIER", default_value_t)]
    tier: Tier,
    /// Networks, as `batchmark models` prints them
    #[arg(long, value_delimiter = ',', value_name = "MODEL")]
    model: Vec<Model>,
    /// Passes: forward, forward_backward
    #[arg(long, value_delimiter = ',', value_name = "PASS")]
    pass: Vec<Pass>,
    /// Precisions: f32, tf32, f16, bf16
    #[arg(long, value_delimiter = ',', value_name = "PRECISION")]
    precision: Vec<Precision>,
    /// Minibatches
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = parse_minibatch)]
    minibatch: Vec<usize>,
    /// Iterations to measure
    #[arg(long, value_name = "N", value_parser = parse_iterations)]
    iterations: Option<usize>,
    /// Bound on warm-up and measurement of each run, in seconds
    #[arg(long, value_name = "S", value_parser = parse_positive)]
    max_seconds: Option<f64>,
    /// Afterwards time each step of an iteration and print it beside what the device could do at most; stored, too
    #[arg(long)]
    profile: bool,
    /// Name of this machine, stored in the result file
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Result file; an existing one is added to. Without it a new file is made in the program's data folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the results as a result file instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let destination = destination::of(arguments.out.as_deref())?;
    let label = arguments.label.as_deref();
    let store = Store::open(destination.as_deref(), label).map_err(|error| WrongArguments(error.to_string()))?;
    let targets = choose(&devices::list()?, &arguments.engine, &arguments.device)
        .map_err(|error| WrongArguments(error.to_string()))?;
    for reason in targets.iter().filter_map(|target| target.reason.as_deref()) {
        say(reason);
    }
    let specs = runs(&selection(arguments), &targets);
    let cancel = Cancel::new();
    cancel_on_interrupt(cancel.clone())?;
    let mut session = Session {
        store,
        own: Store::open(None, label).map_err(|error| WrongArguments(error.to_string()))?,
        failure: None,
        progress: Progress::new(&specs),
    };
    supervise(&specs, &worker_command()?, &SilenceLimits::default(), &cancel, &mut |update| session.update(update));
    session.progress.finish();
    session.end(arguments.json)
}

fn selection(arguments: &Arguments) -> Selection {
    let suite = arguments.suite.or(arguments.model.is_empty().then_some(Suite::Quick));
    Selection {
        suite,
        models: arguments.model.clone(),
        passes: arguments.pass.clone(),
        precisions: arguments.precision.clone(),
        minibatches: arguments.minibatch.clone(),
        tier: arguments.tier,
        iterations: arguments.iterations,
        max_seconds: arguments.max_seconds,
        profile: arguments.profile,
    }
}

/// The first Ctrl-C ends the measurement and keeps what there is, the second ends the program.
fn cancel_on_interrupt(cancel: Cancel) -> anyhow::Result<()> {
    let interrupted = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if interrupted.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED);
        }
        say("cancelling, finished runs are kept; press Ctrl-C again to stop at once");
        cancel.all();
    })?;
    Ok(())
}

/// Results on their way to the file and to the table.
struct Session<'a> {
    /// The file.
    store: Store,
    /// The results of this session alone, in memory.
    own: Store,
    /// Why the latest save failed.
    failure: Option<SaveError>,
    progress: Progress<'a>,
}

impl Session<'_> {
    fn update(&mut self, update: Update) {
        match update {
            Update::Started { index } => self.progress.started(index),
            Update::Phase { index, phase } => self.progress.phase(index, phase),
            Update::Progress { index, iterations, of, latest_ms } => {
                self.progress.iterations(index, iterations, of, latest_ms);
            }
            Update::Skipped { index, reason } => self.progress.skipped(index, &reason),
            Update::Finished { index, record, device } => {
                self.progress.finished(index, &record, device.as_ref().map(|device| device.name.as_str()));
                // Without a path there is nothing that could fail.
                let _ = self.own.add((*record).clone(), device.as_deref());
                let saved = self.store.add(*record, device.as_deref()).err();
                if let Some(error) = saved.as_ref().filter(|_| self.failure.is_none()) {
                    self.progress.say(&format!("{error}; the measurement goes on and the results are kept in memory"));
                }
                self.failure = saved;
            }
        }
    }

    fn end(mut self, json: bool) -> anyhow::Result<Outcome> {
        let own = self.own.file();
        if json {
            print(&store::text(own)?)?;
        } else {
            print(&records(&[Source { name: "", file: own }]).render(Format::Text))?;
            print(&profile::text(own))?;
        }
        let good = |status| matches!(status, Status::Ok | Status::NotSupported);
        let mut outcome =
            if own.records.iter().all(|record| good(record.status)) { Outcome::Done } else { Outcome::Partial };
        if self.store.path().is_some() && !own.records.is_empty() {
            if self.failure.is_some() && !self.save_somewhere() {
                outcome = Outcome::Partial;
            }
            if let Some(path) = self.store.path().filter(|_| self.store.is_saved()) {
                say(&format!("saved in {}", path.display()));
            }
        }
        Ok(outcome)
    }

    /// Tries again to save what could not be saved, in the end elsewhere. Whether it is where it was meant to be.
    fn save_somewhere(&mut self) -> bool {
        let Err(error) = self.store.save() else { return true };
        say(&error.to_string());
        let elsewhere = destination::fallbacks().into_iter().find(|path| self.store.save_as(path).is_ok());
        if elsewhere.is_none() {
            say("the results could not be saved anywhere");
        }
        false
    }
}

/// A minibatch of at least one sample.
pub(super) fn parse_minibatch(text: &str) -> Result<usize, String> {
    let expected = format!("expected a whole number from 1 to {MAX_MINIBATCH}");
    text.parse().ok().filter(|minibatch| (1..=MAX_MINIBATCH).contains(minibatch)).ok_or(expected)
}

fn parse_iterations(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&iterations: &usize| iterations > 0).ok_or("expected a whole number from 1".to_owned())
}

pub(super) fn parse_positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|number| number.is_finite() && *number > 0.0).ok_or("expected a number above 0".to_owned())
}
