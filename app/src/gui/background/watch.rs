//! Tells the window when a file of its library was changed by somebody else.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use notify_debouncer_mini::notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{DebounceEventResult, Debouncer, new_debouncer};

use super::outbox::Outbox;
use crate::gui::message::Message;

/// How long a file has to be left alone before it is read anew; programs write in pieces.
const QUIET: Duration = Duration::from_millis(400);

/// Folders watched at most; systems limit how many there may be.
const MOST_FOLDERS: usize = 256;

/// Watches the folders of files: a file that is replaced is another one, its folder stays.
pub(super) struct Watch {
    /// Absent where the system offers none, or nothing is watched yet.
    watcher: Option<Debouncer<RecommendedWatcher>>,
    folders: HashSet<PathBuf>,
    files: Arc<Mutex<HashMap<PathBuf, Watched>>>,
    outbox: Option<Outbox>,
}

/// A watched file, known by the path that the system reports.
struct Watched {
    /// What the library calls it.
    path: PathBuf,
    /// Since when it is as it is, and how long it is. Systems report that a file was read, too.
    state: Option<(SystemTime, u64)>,
}

impl Watched {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), state: state_of(path) }
    }

    /// Whether it is there and another than it was. A file that was deleted is shown as it was.
    fn has_changed(&mut self) -> bool {
        let state = state_of(&self.path);
        state.is_some() && std::mem::replace(&mut self.state, state) != state
    }
}

fn state_of(path: &Path) -> Option<(SystemTime, u64)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl Watch {
    /// Nothing is watched yet; changes go to `outbox`.
    pub(super) fn new(outbox: Outbox) -> Self {
        Self { watcher: None, folders: HashSet::new(), files: Arc::default(), outbox: Some(outbox) }
    }

    /// Watches these files too. Where that can't be done they are shown as they were read.
    pub(super) fn add(&mut self, paths: &[PathBuf]) {
        for path in paths {
            let Ok(absolute) = std::path::absolute(path) else { continue };
            let Some(folder) = absolute.parent().map(Path::to_owned) else { continue };
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.entry(absolute).or_insert_with(|| Watched::new(path));
            drop(files);
            if self.folders.len() < MOST_FOLDERS && !self.folders.contains(&folder) {
                self.begin();
                let watcher = self.watcher.as_mut().map(Debouncer::watcher);
                if watcher.is_some_and(|watcher| watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok()) {
                    self.folders.insert(folder);
                }
            }
        }
    }

    fn begin(&mut self) {
        let Some(mut outbox) = self.outbox.take() else { return };
        let files = Arc::clone(&self.files);
        let tell = move |events: DebounceEventResult| {
            let Ok(events) = events else { return };
            let mut known = files.lock().unwrap_or_else(PoisonError::into_inner);
            for event in events {
                if let Some(file) = known.get_mut(&event.path)
                    && file.has_changed()
                {
                    outbox.post(Message::FileChanged(file.path.clone()));
                }
            }
        };
        self.watcher = new_debouncer(QUIET, tell).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use eframe::egui;

    use super::*;

    #[test]
    fn a_file_that_is_replaced_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["a.json", "other.json"].map(|name| folder.path().join(name));
        std::fs::write(&path, "1").unwrap();
        let (sender, inbox) = sync_channel(8);
        let mut watch = Watch::new(Outbox::new(sender, egui::Context::default()));
        watch.add(std::slice::from_ref(&path));
        std::fs::write(&other, "not of the library").unwrap();
        let next = folder.path().join("a.next");
        std::fs::write(&next, "22").unwrap();
        std::fs::rename(&next, &path).unwrap();
        let told = inbox.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(matches!(told, Message::FileChanged(changed) if changed == path));
        // Reading it is no change: it would be read for ever.
        std::fs::read(&path).unwrap();
        assert!(inbox.recv_timeout(3 * QUIET).is_err());
    }
}
