//! The supervisor with real worker processes: crashes, hangs, garbage, cancellation and kills at random.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compute::bench::event::{Phase, Request};
use compute::bench::record::{Record, Status};
use compute::bench::spec::{Bounds, RunSpec};
use compute::bench::store::{self, Store};
use compute::bench::supervisor::{
    Cancel, SilenceLimits, SupervisorError, Update, WorkerCommand, list_devices, supervise,
};
use compute::engine::fake::{Call, FaultKind, Script, StepTime};
use compute::engine::{self, EngineKind, Tier};
use compute::models::Model;
use compute::plan::Pass;
use compute::random;
use compute::shape::Precision;

/// Limits that a hang reaches soon; a worker that is merely slow on a busy machine does not.
const LIMITS: SilenceLimits = SilenceLimits {
    ready: Duration::from_secs(30),
    prepare: Duration::from_secs(3),
    iterate: Duration::from_secs(3),
    exit: Duration::from_secs(5),
};

fn worker() -> WorkerCommand {
    WorkerCommand { program: env!("CARGO_BIN_EXE_batchmark").into(), arguments: vec!["worker".to_owned()] }
}

/// A worker that leaves its process number in a file.
fn traced_worker(pid_file: &Path) -> WorkerCommand {
    let script = format!("echo $$ > {}; exec {} worker", pid_file.display(), env!("CARGO_BIN_EXE_batchmark"));
    shell(&script)
}

fn shell(script: &str) -> WorkerCommand {
    WorkerCommand { program: "/bin/sh".into(), arguments: vec!["-c".to_owned(), script.to_owned()] }
}

fn spec(minibatch: usize, script: Script) -> RunSpec {
    RunSpec {
        model: Model::Googlenet,
        pass: Pass::Forward,
        precision: Precision::F32,
        minibatch,
        engine: EngineKind::Fake,
        device: "fake-0".to_owned(),
        tier: Tier::default(),
        bounds: Bounds { iterations: 10, max_seconds: 1.0 },
        profile: false,
        input_size: Some(32),
        script: Some(script),
    }
}

fn fine() -> Script {
    Script { step: StepTime::Constant { ms: 10.0 }, ..Script::default() }
}

fn fault(call: Call, nth: usize, kind: FaultKind) -> Script {
    Script { step: StepTime::Constant { ms: 10.0 }, ..Script::with_fault(call, nth, kind) }
}

/// Outcome of each run; panics when one has not exactly one.
fn outcomes(count: usize, updates: &[Update]) -> Vec<Result<Record, String>> {
    let mut outcomes = BTreeMap::new();
    for update in updates {
        let (index, outcome) = match update {
            Update::Finished { index, record, .. } => (*index, Ok(record.as_ref().clone())),
            Update::Skipped { index, reason } => (*index, Err(reason.clone())),
            _ => continue,
        };
        assert!(outcomes.insert(index, outcome).is_none(), "run {index} has two outcomes");
    }
    assert_eq!(outcomes.keys().copied().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
    outcomes.into_values().collect()
}

fn supervised(specs: &[RunSpec], worker: &WorkerCommand, limits: &SilenceLimits) -> Vec<Result<Record, String>> {
    let mut updates = Vec::new();
    supervise(specs, worker, limits, &Cancel::new(), &mut |update| updates.push(update));
    outcomes(specs.len(), &updates)
}

fn statuses(outcomes: &[Result<Record, String>]) -> Vec<Option<Status>> {
    outcomes.iter().map(|outcome| outcome.as_ref().ok().map(|record| record.status)).collect()
}

/// R15, R25, R37: whatever happens to a worker costs one run, with a reason; the next run is measured.
#[test]
fn a_fault_costs_one_run() {
    let cases = [
        (fault(Call::Open, 0, FaultKind::Crash), Status::Crashed, "while opening the device"),
        (fault(Call::Load, 0, FaultKind::Exit), Status::Crashed, "exit status: 0 while verifying"),
        (fault(Call::Load, 1, FaultKind::Crash), Status::Crashed, "while loading"),
        (fault(Call::Run, 2, FaultKind::Crash), Status::Crashed, "while warming up"),
        (fault(Call::Run, 2, FaultKind::Panic), Status::Failed, "scripted panic"),
        (fault(Call::Run, 2, FaultKind::DeviceLost), Status::Failed, "lost"),
        (fault(Call::Load, 1, FaultKind::Hang), Status::TimedOut, "silent for 3 s while loading"),
        (Script { garbage_lines: 5000, ..fine() }, Status::Crashed, "no events"),
    ];
    for (script, status, said) in cases {
        let specs = [spec(4, fine()), spec(4, script.clone()), spec(4, fine())];
        let outcomes = supervised(&specs, &worker(), &LIMITS);
        assert_eq!(statuses(&outcomes), [Some(Status::Ok), Some(status), Some(Status::Ok)], "{script:?}: {outcomes:?}");
        let reason = outcomes[1].as_ref().ok().and_then(|record| record.reason.clone()).unwrap_or_default();
        assert!(reason.contains(said), "{script:?}: {reason}");
    }
}

#[test]
fn some_garbage_is_borne() {
    let outcomes = supervised(&[spec(4, Script { garbage_lines: 50, ..fine() })], &worker(), &LIMITS);
    assert_eq!(statuses(&outcomes), [Some(Status::Ok)]);
}

/// R12: past the memory edge the larger minibatches of a series are skipped, other series go on.
#[test]
fn the_memory_edge_ends_its_series_only() {
    let full = || fault(Call::Load, 1, FaultKind::OutOfMemory);
    let training = |minibatch| RunSpec { pass: Pass::ForwardBackward, ..spec(minibatch, fine()) };
    let specs = [spec(2, fine()), spec(4, full()), spec(8, fine()), spec(1, fine()), training(8)];
    let outcomes = supervised(&specs, &worker(), &LIMITS);
    let ok = Some(Status::Ok);
    assert_eq!(statuses(&outcomes), [ok, Some(Status::OutOfMemory), None, ok, ok]);
    assert!(outcomes[2].as_ref().is_err_and(|reason| reason.contains("minibatch 4")));
}

#[test]
fn one_worker_serves_runs_of_a_device_until_one_fails() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let starts = folder.path().join("starts");
    let program = env!("CARGO_BIN_EXE_batchmark");
    let worker = shell(&format!("echo start >> {}; exec {program} worker", starts.display()));
    let specs = [spec(1, fine()), spec(2, fine()), spec(4, fault(Call::Run, 1, FaultKind::Failed)), spec(8, fine())];
    supervised(&specs, &worker, &LIMITS);
    let starts = std::fs::read_to_string(starts).expect("the worker was started");
    assert_eq!(starts.lines().count(), 2);
}

#[test]
fn a_worker_that_is_none_is_an_outcome() {
    let limits = SilenceLimits { ready: Duration::from_millis(300), ..LIMITS };
    let cases = [
        (
            WorkerCommand { program: "/nowhere/batchmark".into(), arguments: Vec::new() },
            Status::Crashed,
            "did not start",
        ),
        (shell("echo no display >&2; exit 3"), Status::Crashed, "no display"),
        (shell("exec sleep 1000"), Status::TimedOut, "while starting"),
        (shell("exec yes"), Status::Crashed, "no events"),
        (shell("echo '{\"event\":\"ready\",\"version\":\"0.0.0\"}'; exec sleep 1000"), Status::Crashed, "0.0.0"),
    ];
    for (worker, status, said) in cases {
        let begun = Instant::now();
        let outcomes = supervised(&[spec(4, fine()), spec(4, fine())], &worker, &limits);
        assert_eq!(statuses(&outcomes), [Some(status); 2], "{worker:?}: {outcomes:?}");
        let reason = outcomes[0].as_ref().ok().and_then(|record| record.reason.clone()).unwrap_or_default();
        assert!(reason.contains(said), "{worker:?}: {reason}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{worker:?}");
    }
}

/// A hanging run is cancelled alone, or with all that follow; every run has its record.
#[test]
fn cancelling_ends_a_run_that_hangs() {
    for all in [false, true] {
        let specs = [spec(4, fault(Call::Run, 2, FaultKind::Hang)), spec(4, fine()), spec(4, fine())];
        let cancel = Cancel::new();
        let mut updates = Vec::new();
        supervise(&specs, &worker(), &SilenceLimits::default(), &cancel, &mut |update| {
            if update == (Update::Phase { index: 0, phase: Phase::WarmUp }) {
                if all { cancel.all() } else { cancel.current() }
            }
            updates.push(update);
        });
        let rest = Some(if all { Status::Cancelled } else { Status::Ok });
        assert_eq!(statuses(&outcomes(3, &updates)), [Some(Status::Cancelled), rest, rest]);
    }
}

/// R32: a slow enumeration is bounded, and its worker is gone afterwards.
#[test]
fn listing_devices_is_bounded() {
    let listed = |secs, timeout| {
        let script = Script { enumeration_secs: secs, ..Script::default() };
        list_devices(&worker(), Duration::from_secs(timeout), Some(script))
    };
    assert_eq!(listed(0.0, 30).expect("one device").len(), 1);
    let begun = Instant::now();
    let error = listed(1000.0, 1).expect_err("too slow");
    assert!(matches!(error, SupervisorError::Worker(text) if text.contains("within 1.0 s")));
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// A driver that crashes while its devices are listed leaves the engines that need no driver.
#[cfg(unix)]
#[test]
fn a_crash_while_listing_leaves_the_other_engines() {
    let cpu = engine::listings(EngineKind::Cpu, None);
    let ready = serde_json::json!({"event": "ready", "version": env!("CARGO_PKG_VERSION")});
    let answer = serde_json::json!({"event": "devices", "engine": "cpu", "listings": cpu});
    let script = format!("read request; echo '{ready}'; echo '{answer}'; kill -SEGV $$");
    let worker = WorkerCommand { program: "sh".into(), arguments: vec!["-c".to_owned(), script] };
    let listings = list_devices(&worker, Duration::from_secs(30), None).expect("one engine answered");
    let [cuda, wgsl, found] = &listings[..] else { panic!("{listings:?}") };
    assert_eq!((cuda.engine, wgsl.engine, found), (EngineKind::Cuda, EngineKind::Wgsl, &cpu[0]));
    for silent in [cuda, wgsl] {
        assert!(silent.unavailable.as_ref().is_some_and(|reason| reason.contains("signal")), "{silent:?}");
    }
}

/// A worker whose supervisor is gone ends by itself, also in a run that hangs.
#[test]
fn a_worker_does_not_outlive_its_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_batchmark"))
        .arg("worker")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the worker starts");
    let request = Request::Run { spec: Box::new(spec(4, fault(Call::Open, 0, FaultKind::Hang))) };
    let mut stdin = child.stdin.take().expect("piped");
    let line = serde_json::to_string(&request).expect("a request has a JSON form") + "\n";
    std::io::Write::write_all(&mut stdin, line.as_bytes()).expect("the worker takes the request");
    drop(stdin);
    let deadline = Instant::now() + Duration::from_secs(30);
    while child.try_wait().expect("the child can be asked").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("the child can be killed");
            panic!("the worker hangs without a supervisor");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Workers are killed at random during a suite of 20 runs, 100 times: no finished run is lost on its way to the file, no
/// run is without outcome, and no more runs crash than workers were killed.
#[test]
fn kills_at_random_cost_one_run_each() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut killed = 0;
    let mut crashed = 0;
    for suite in 0..100 {
        let (kills, crashes) = suite_under_fire(suite, folder.path());
        killed += kills;
        crashed += crashes;
    }
    assert!(crashed > 50, "only {crashed} of {killed} kills hit a run: this test shows nothing");
}

/// Kills, and runs that crashed.
fn suite_under_fire(suite: u64, folder: &Path) -> (usize, usize) {
    let pid_file = &folder.join(format!("pid{suite}"));
    let results = folder.join(format!("results{suite}.json"));
    let mut store = Store::open(Some(&results), None).expect("a new file");
    // Half a thousandth of real time, so that kills hit every phase.
    let script = Script { pace: 0.0005, ..fine() };
    let specs: Vec<RunSpec> = (1..=20).map(|minibatch| spec(minibatch, script.clone())).collect();
    let over = AtomicBool::new(false);
    let mut updates = Vec::new();
    let kills = std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_at_random(suite, pid_file, &over));
        let begun = Instant::now();
        supervise(&specs, &traced_worker(pid_file), &LIMITS, &Cancel::new(), &mut |update| {
            if let Update::Finished { record, device, .. } = &update {
                store.add(record.as_ref().clone(), device.as_deref()).expect("the file can be written");
            }
            updates.push(update);
        });
        over.store(true, Ordering::SeqCst);
        assert!(begun.elapsed() < Duration::from_secs(60), "suite {suite} was stuck");
        killer.join().expect("the killer ends")
    });
    let statuses = statuses(&outcomes(specs.len(), &updates));
    let crashes = statuses.iter().filter(|status| **status == Some(Status::Crashed)).count();
    let fine = statuses.iter().filter(|status| **status == Some(Status::Ok)).count();
    assert_eq!(crashes + fine, specs.len(), "suite {suite}: {statuses:?}");
    let stored = store::load(&results).expect("a whole file").file.records;
    let stored: Vec<_> = stored.iter().map(|record| Some(record.status)).collect();
    assert_eq!(stored, statuses, "suite {suite}: the file holds other outcomes");
    assert!(crashes <= kills, "suite {suite}: {crashes} runs crashed by {kills} kills");
    (kills, crashes)
}

/// Kills up to three workers, each some milliseconds after it was first seen.
fn kill_at_random(suite: u64, pid_file: &Path, over: &AtomicBool) -> usize {
    let mut last = String::new();
    let mut kills = 0;
    while kills < 3 && !over.load(Ordering::SeqCst) {
        let pid = std::fs::read_to_string(pid_file).unwrap_or_default();
        if !pid.ends_with('\n') || pid == last {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let wait_micros = random::bits64(suite, kills as u64) % 80_000;
        std::thread::sleep(Duration::from_micros(wait_micros));
        let killed = Command::new("kill").args(["-KILL", pid.trim()]).stderr(std::process::Stdio::null()).status();
        kills += usize::from(killed.is_ok_and(|status| status.success()));
        last = pid;
    }
    kills
}
