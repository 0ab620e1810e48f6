//! What happens beside the window, with real workers that play a script: runs go on and are saved whatever becomes of
//! the window.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use batchmark::gui::action::Effect;
use batchmark::gui::background::Background;
use batchmark::gui::message::Message;
use compute::bench::record::{ResultFile, Status};
use compute::bench::spec::{Bounds, RunSpec};
use compute::bench::store;
use compute::bench::supervisor::{Update, WorkerCommand};
use compute::engine::fake::Script;
use compute::engine::{EngineKind, Tier};
use compute::import::{Given, Unknown};
use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;
use eframe::egui;

const PATIENCE: Duration = Duration::from_secs(60);

fn background(results: Option<PathBuf>) -> Background {
    let worker =
        WorkerCommand { program: env!("CARGO_BIN_EXE_batchmark").into(), arguments: vec!["worker".to_owned()] };
    Background::new(egui::Context::default(), worker, results)
}

/// `count` runs that play `script`.
fn runs(count: usize, script: &Script) -> Vec<RunSpec> {
    let spec = |i: usize| RunSpec {
        model: Model::Alexnet,
        pass: Pass::Forward,
        precision: Precision::F32,
        minibatch: 1 + i,
        engine: EngineKind::Fake,
        device: Script::default_listing().device.id,
        tier: Tier::default(),
        bounds: Bounds { iterations: 5, max_seconds: 60.0 },
        profile: false,
        input_size: Some(Model::Alexnet.small_input_size()),
        script: Some(script.clone()),
    };
    (0..count).map(spec).collect()
}

/// Waits until `check` gives something, but not for ever.
fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The one result file in a folder, once it is there.
fn saved(folder: &Path) -> Option<ResultFile> {
    let mut files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let file = files.find(|path| path.extension().is_some_and(|ending| ending == "json"))?;
    store::load(&file).ok().map(|loaded| loaded.file)
}

/// R34: a window that is minimized or covered draws nothing.
#[test]
fn runs_are_saved_although_nobody_looks_at_the_window() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let results = folder.path().join("results");
    let mut background = background(Some(results.clone()));
    // More messages than the channel holds, and none is taken out.
    let count = 60;
    background.perform(Effect::Run(runs(count, &Script::default())));
    let file = wait_for("the complete file", || saved(&results).filter(|file| file.records.len() == count));
    let statuses: Vec<Status> = file.records.iter().map(|record| record.status).collect();
    assert!(statuses.iter().all(|status| *status == Status::Ok), "{statuses:?}");

    // Whoever looks again sees every outcome.
    let mut n_finished = 0;
    wait_for("the end of the queue", || {
        while let Some(message) = background.next_message() {
            match message {
                Message::Run(Update::Finished { .. }) => n_finished += 1,
                Message::RunEnded => return Some(()),
                _ => {}
            }
        }
        None
    });
    assert_eq!(n_finished, count);
}

#[test]
fn results_that_can_not_be_saved_are_offered_again() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let in_the_way = folder.path().join("results");
    std::fs::write(&in_the_way, "not a folder").expect("the file can be written");
    let mut background = background(Some(in_the_way));
    background.perform(Effect::Run(runs(2, &Script::default())));
    let mut n_failures = 0;
    wait_for("the end of the queue", || match background.next_message()? {
        Message::SaveFailed(_) => {
            n_failures += 1;
            None
        }
        Message::RunEnded => Some(()),
        _ => None,
    });
    assert_eq!(n_failures, 2, "the run goes on");

    let elsewhere = folder.path().join("elsewhere.json");
    background.perform(Effect::Save(elsewhere.clone()));
    wait_for("the saving", || match background.next_message()? {
        Message::Saved(path) => Some(path),
        _ => None,
    });
    assert_eq!(store::load(&elsewhere).expect("the file was written").file.records.len(), 2);
}

#[test]
fn closing_the_window_ends_the_worker_and_keeps_what_was_finished() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let results = folder.path().join("results");
    let mut background = background(Some(results.clone()));
    let slow = Script { pace: 1.0, load_ms: 600_000.0, ..Script::default() };
    let mut queue = runs(1, &Script::default());
    queue.extend(runs(2, &slow));
    background.perform(Effect::Run(queue));
    wait_for("the second run", || match background.next_message()? {
        Message::Run(Update::Started { index: 1 }) => Some(()),
        _ => None,
    });
    let began = Instant::now();
    background.close();
    assert!(began.elapsed() < Duration::from_secs(6), "closing took {:?}", began.elapsed());
    let file = saved(&results).expect("the file was written");
    assert_eq!(file.records[0].status, Status::Ok);
    assert!(file.records[1..].iter().all(|record| record.status == Status::Cancelled), "{:?}", file.records.len());
}

#[test]
fn devices_are_found_by_a_worker() {
    let mut background = background(None);
    background.perform(Effect::FindDevices);
    let found = wait_for("the devices", || match background.next_message()? {
        Message::Devices(found) => Some(found),
        _ => None,
    });
    let listings = found.expect("the worker lists devices");
    assert!(listings.iter().any(|listing| listing.engine == EngineKind::Cpu), "{listings:?}");
}

#[test]
fn files_are_read_beside_the_window() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (good, bad) = (folder.path().join("good.json"), folder.path().join("bad.json"));
    store::save(&good, &ResultFile::default()).expect("the file can be written");
    std::fs::write(&bad, "{").expect("the file can be written");
    let mut background = background(None);
    background.perform(Effect::Load(vec![bad.clone(), good.clone()]));
    for expected in [bad, good] {
        let is_good = expected.ends_with("good.json");
        let (path, result) = wait_for("the file", || match background.next_message()? {
            Message::Loaded { path, result } => Some((path, result)),
            _ => None,
        });
        assert_eq!(path, expected);
        let reason = result.err();
        assert_eq!(reason.is_none(), is_good, "{reason:?}");
        assert!(reason.is_none_or(|reason| reason.contains("bad.json") && !reason.contains('\n')));
    }
}

/// Files of other programs come the same way, with what they don't say; what the user says of one is heeded.
#[test]
fn a_foreign_file_says_what_it_lacks_and_is_told() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../compute/src/import/fixtures/trtexec_times.json"));
    let mut background = background(None);
    let mut read = |effect: Effect| {
        background.perform(effect);
        let loaded = wait_for("the file", || match background.next_message()? {
            Message::Loaded { result, .. } => Some(result.expect("it can be imported")),
            _ => None,
        });
        let unknown = wait_for("what it lacks", || match background.next_message()? {
            Message::Unknown(_, unknown) => Some(unknown),
            _ => None,
        });
        (loaded.file, unknown)
    };
    let (_, unknown) = read(Effect::Load(vec![path.clone()]));
    assert_eq!(unknown, [Unknown::Device, Unknown::Precision, Unknown::Minibatch]);
    let given = Given { device: Some("L40S".into()), precision: Some(Precision::F16), minibatch: Some(8) };
    let (file, unknown) = read(Effect::LoadAs(given, path));
    assert_eq!(unknown, []);
    assert_eq!(file.devices[0].name, "L40S");
    let record = &file.records[0];
    assert_eq!((record.precision, record.minibatch), (Precision::F16, 8));
    assert!(record.throughput_per_sec.is_some(), "with its minibatch the time becomes a rate");
}

#[test]
fn published_results_are_unpacked_beside_the_window() {
    let mut background = background(None);
    background.perform(Effect::UnpackPublished);
    let sets = wait_for("the sets", || match background.next_message()? {
        Message::Published(sets) => Some(sets.expect("they are part of the program")),
        _ => None,
    });
    assert_eq!(sets.len(), 14);
}
