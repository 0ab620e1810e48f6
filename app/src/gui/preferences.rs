//! What survives a restart: the look, the choices, the library's files with the names and colors of their series.
//!
//! One JSON file. A damaged one is set aside under another name, so that nothing in it is lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use compute::import::Given;
use compute::plan::Pass;
use compute::shape::Precision;
use serde::{Deserialize, Serialize};

use super::buyer::Buyer;
use super::library::{Entry, Library};
use super::state::{Look, MemoryChoice, Panels, State, Tab};
use crate::chart::series::{Series, SourceId};
use crate::chart::settings::{Settings, Sort, Unit};
use crate::chart::table;

/// Version of the file.
const VERSION: u32 = 1;

/// What survives a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preferences {
    version: u32,
    look: Look,
    /// Of the window's inside, in logical pixels; absent while it is not known.
    #[serde(default)]
    size: Option<[f32; 2]>,
    #[serde(default)]
    panels: Panels,
    tab: Tab,
    pass: Pass,
    precision: Option<Precision>,
    minibatch: Option<usize>,
    unit: Unit,
    is_logarithmic: bool,
    sort: Sort,
    model: Option<String>,
    memory: MemoryChoice,
    #[serde(default)]
    buyer: Buyer,
    hidden_columns: Vec<table::Column>,
    order: Option<(table::Column, bool)>,
    files: Vec<File>,
    /// Published sets of which something is shown, or was named.
    #[serde(default)]
    published: Vec<File>,
    recent: Vec<PathBuf>,
}

/// A file of the library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct File {
    path: PathBuf,
    /// What the user called it; absent where it goes by its file's name.
    #[serde(default)]
    label: Option<String>,
    /// What the user says of it.
    #[serde(default)]
    given: Given,
    series: Vec<Kept>,
}

/// What the user made of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    device: Option<String>,
    device_id: Option<String>,
    engine: String,
    precision: Precision,
    name: Option<String>,
    color: usize,
    is_hidden: bool,
    is_baseline: bool,
}

impl Kept {
    fn series(&self, source: SourceId) -> Series {
        let Self { device, device_id, engine, precision, .. } = self.clone();
        Series { source, device, device_id, engine, precision }
    }
}

impl Preferences {
    /// Those of a window.
    pub fn of(state: &State) -> Self {
        let Settings { pass, precision, minibatch, unit, is_logarithmic, sort, model, .. } = state.settings.clone();
        Self {
            version: VERSION,
            look: state.look,
            size: state.size,
            panels: state.panels,
            tab: state.tab,
            pass,
            precision,
            minibatch,
            unit,
            is_logarithmic,
            sort,
            model,
            memory: state.memory,
            buyer: state.buyer.clone(),
            hidden_columns: state.table.hidden_columns.clone(),
            order: state.table.order,
            files: state.library.files.iter().map(|entry| File::of(entry, state)).collect(),
            published: published(state),
            recent: state.recent.clone(),
        }
    }

    /// Gives a new window the choices, and returns the files to read. What the files' series are called and colored is
    /// known before they are read.
    pub fn restore(self, state: &mut State) -> Vec<PathBuf> {
        state.look = Look { zoom: self.look.zoom.clamp(1.0, 2.0), ..self.look };
        state.size = self.size;
        state.panels = self.panels;
        state.tab = self.tab;
        let Self { pass, precision, minibatch, unit, is_logarithmic, sort, model, .. } = self;
        state.settings = Settings { pass, precision, minibatch, unit, is_logarithmic, sort, model, baseline: None };
        state.memory = self.memory;
        state.buyer = self.buyer;
        state.table = table::View { order: self.order, hidden_columns: self.hidden_columns, search: String::new() };
        state.recent = self.recent;
        let paths: Vec<PathBuf> = self.files.iter().map(|file| file.path.clone()).collect();
        state.library.begin_loading(&paths);
        for file in self.files {
            let id = state.library.files.iter().find(|entry| entry.path == file.path).map(|entry| entry.id);
            if let Some(entry) = state.library.files.iter_mut().find(|entry| Some(entry.id) == id) {
                entry.given = file.given.clone();
            }
            if let (Some(id), Some(label)) = (id, &file.label) {
                state.library.label(id, label);
            }
            if let Some(id) = id {
                file.restore_series(state, id);
            }
        }
        state.published_before = self.published;
        paths
    }

    /// Size of the window's inside in logical pixels, as far as one can be meant.
    pub fn size(&self) -> Option<[f32; 2]> {
        self.size.filter(|size| size.iter().all(|side| (100.0..=16_384.0).contains(side)))
    }

    /// Reads the file; absent when there is none.
    ///
    /// # Errors
    /// Why it can't be read or understood, in one sentence, and where it was set aside.
    pub fn load(path: &Path) -> Result<Option<Self>, (String, PathBuf)> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err((error.to_string(), path.to_owned())),
        };
        let read = serde_json::from_str::<Self>(&text).map_err(|error| error.to_string());
        match read {
            Ok(read) if read.version == VERSION => Ok(Some(read)),
            other => {
                let reason = other.map_or_else(|error| error, |read| format!("version {} is not known", read.version));
                let aside = path.with_extension("damaged.json");
                // Where it can't be renamed it stays, and is overwritten with the next change.
                let at = fs::rename(path, &aside).map_or_else(|_| path.to_owned(), |()| aside);
                Err((reason, at))
            }
        }
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn store(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let next = path.with_extension("next");
        fs::write(&next, serde_json::to_vec_pretty(self)?)?;
        fs::rename(&next, path)
    }
}

/// What is to be kept of published sets. Before they are unpacked that is what was kept before.
fn published(state: &State) -> Vec<File> {
    if state.library.published.is_empty() {
        return state.published_before.clone();
    }
    let is_touched =
        |series: &Series| !state.library.hidden.contains(series) || state.library.names.contains_key(series);
    let touched = state.library.published.iter().filter(|entry| entry.series.iter().any(is_touched));
    let files = touched.map(|entry| {
        let mut file = File::of(entry, state);
        file.series.retain(|kept| !kept.is_hidden || kept.name.is_some());
        file
    });
    files.collect()
}

impl File {
    /// Shows again what was shown of a published set.
    pub(super) fn restore_published(self, state: &mut State) {
        let found = state.library.published.iter().find(|entry| entry.path == self.path);
        if let Some(id) = found.map(|entry| entry.id) {
            self.restore_series(state, id);
        }
    }

    /// Gives the series of a source their names and colors, and hides or shows them as they were.
    fn restore_series(self, state: &mut State, id: SourceId) {
        for kept in self.series {
            let series = kept.series(id);
            state.library.show(&series, !kept.is_hidden);
            state.library.rename(&series, kept.name.as_deref().unwrap_or_default());
            state.library.recolor(&series, kept.color);
            if kept.is_baseline {
                state.settings.baseline = Some(series);
            }
        }
    }

    fn of(entry: &Entry, state: &State) -> Self {
        let library: &Library = &state.library;
        let kept = |series: &Series| Kept {
            device: series.device.clone(),
            device_id: series.device_id.clone(),
            engine: series.engine.clone(),
            precision: series.precision,
            name: library.names.get(series).cloned(),
            color: library.color(series),
            is_hidden: library.hidden.contains(series),
            is_baseline: state.settings.baseline.as_ref() == Some(series),
        };
        Self {
            path: entry.path.clone(),
            label: entry.label().map(str::to_owned),
            given: entry.given.clone(),
            series: entry.series.iter().map(kept).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use compute::bench::store::Loaded;

    use super::*;
    use crate::chart::throughput::tests::{file, ok};
    use crate::gui::message::Message;
    use crate::gui::text::Language;

    fn loaded() -> Result<Box<Loaded>, String> {
        Ok(Box::new(Loaded { file: file(vec![ok("alexnet", 16, 1.0)]), notes: Vec::new(), n_left_out: 0 }))
    }

    fn changed() -> State {
        let mut state = State::default();
        let paths = ["/a.json", "/b.json"].map(PathBuf::from);
        state.library.begin_loading(&paths);
        for path in paths {
            state.receive(Message::Loaded { path, result: loaded() });
        }
        let [first, second] = [0, 1].map(|file: usize| state.library.files[file].series[0].clone());
        state.library.rename(&first, "mine");
        state.library.recolor(&second, 5);
        state.library.hidden.insert(second);
        state.settings.baseline = Some(first);
        state.settings.is_logarithmic = true;
        state.tab = Tab::Table;
        state.look.language = Language::Chinese;
        state.size = Some([1300.0, 700.0]);
        state
    }

    #[test]
    fn everything_is_as_it_was_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/preferences.json");
        let before = Preferences::of(&changed());
        before.store(&path).unwrap();
        let mut state = State::default();
        let paths = Preferences::load(&path).unwrap().expect("it was written").restore(&mut state);
        assert_eq!(paths, ["/a.json", "/b.json"].map(PathBuf::from));
        for path in paths {
            state.receive(Message::Loaded { path, result: loaded() });
        }
        assert_eq!(Preferences::of(&state), before);
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_nothing_of_it_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("preferences.json");
        assert!(Preferences::load(&path).unwrap().is_none());
        let mut newer = serde_json::to_value(Preferences::of(&State::default())).unwrap();
        newer["version"] = 99.into();
        for damaged in ["{ \"version\": 1, \"lo".to_owned(), String::new(), newer.to_string()] {
            fs::write(&path, &damaged).unwrap();
            let (reason, aside) = Preferences::load(&path).unwrap_err();
            assert!(!reason.is_empty() && !path.exists());
            assert_eq!(fs::read_to_string(&aside).unwrap(), damaged);
        }
    }
}
