//! Measures a queue on its own thread: the supervisor's updates go to the window, its records into the session's file,
//! which is complete after every run whether or not the window takes notice.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use compute::bench::spec::RunSpec;
use compute::bench::store::Store;
use compute::bench::supervisor::{Cancel, SilenceLimits, Update, WorkerCommand, supervise};
use compute::bench::telemetry;

use super::outbox::Outbox;
use crate::gui::message::Message;

/// This session's results and where they go. The file is begun with the first result.
#[derive(Debug)]
pub(super) struct SessionStore {
    results: Option<PathBuf>,
    store: Option<Store>,
}

/// Where the results are after a change: in this file, or in memory only and why.
pub(super) type Saved = Result<PathBuf, String>;

impl SessionStore {
    /// Results go to a new file in the folder `results`.
    pub(super) const fn new(results: Option<PathBuf>) -> Self {
        Self { results, store: None }
    }

    /// A path to propose for saving.
    pub(super) fn proposed_path(&self) -> PathBuf {
        let known = self.store.as_ref().and_then(Store::path).map(Path::to_owned);
        known.unwrap_or_else(|| PathBuf::from("results.batchmark.json"))
    }

    /// Writes everything to another place from now on.
    pub(super) fn save_as(&mut self, path: &Path) -> Result<(), String> {
        let store = self.store.as_mut().ok_or("there are no results yet")?;
        store.save_as(path).map_err(|error| error.to_string())
    }

    fn add(&mut self, update: &Update) -> Option<Saved> {
        let Update::Finished { record, device, .. } = update else { return None };
        let store = match self.store() {
            Ok(store) => store,
            Err(reason) => return Some(Err(reason)),
        };
        let added = store.add((**record).clone(), device.as_deref());
        Some(match (added, store.path()) {
            (Ok(()), Some(path)) => Ok(path.to_owned()),
            (Ok(()), None) => Err("no folder for results is known on this system".to_owned()),
            (Err(error), _) => Err(error.to_string()),
        })
    }

    /// The store, opened when it is first needed. Where its file can't be had, results stay in memory.
    fn store(&mut self) -> Result<&mut Store, String> {
        if self.store.is_none() {
            self.store = Some(self.open()?);
        }
        self.store.as_mut().ok_or_else(|| "no results are kept".to_owned())
    }

    fn open(&self) -> Result<Store, String> {
        let in_memory = Store::open(None, None).map_err(|error| error.to_string())?;
        let Some(folder) = &self.results else { return Ok(in_memory) };
        // Named by time; colons are not allowed in file names everywhere. A folder that can't be made shows itself as a
        // failed save, which names the path.
        let name = format!("batchmark-{}.batchmark.json", telemetry::now_utc().replace(':', ""));
        drop(std::fs::create_dir_all(folder));
        Ok(Store::open(Some(&folder.join(name)), None).unwrap_or(in_memory))
    }
}

/// Measures `specs` in order.
pub(super) fn run(
    specs: &[RunSpec],
    worker: &WorkerCommand,
    cancel: &Cancel,
    store: &Mutex<SessionStore>,
    outbox: &mut Outbox,
) {
    supervise(specs, worker, &SilenceLimits::default(), cancel, &mut |update| {
        match lock(store).add(&update) {
            Some(Ok(path)) => outbox.post(Message::Saved(path)),
            Some(Err(reason)) => outbox.post(Message::SaveFailed(reason)),
            None => {}
        }
        match update {
            Update::Progress { .. } => outbox.offer(Message::Run(update)),
            _ => outbox.post(Message::Run(update)),
        }
    });
}

/// Locks something; a thread that panicked while it held it has left nothing half done that matters here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
