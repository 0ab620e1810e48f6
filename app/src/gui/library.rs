//! The library: this machine's results and the files that were added, which of their series are shown, and in what
//! color.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use compute::bench::record::{Record, ResultFile};
use compute::bench::store::{self, Loaded};
use compute::engine::Device;
use compute::import::{Given, Unknown};

use super::action::Effect;
use super::text;
use crate::chart::series::{Index, RecordRef, Series, Source, SourceId};

/// Results of this session.
pub const THIS_MACHINE: SourceId = SourceId(0);

/// Everything whose records can be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// Results of this session.
    pub session: ResultFile,
    /// Files in the order they were added.
    pub files: Vec<Entry>,
    /// Published results; empty until they are unpacked.
    pub published: Vec<Entry>,
    /// Series that are not shown.
    pub hidden: HashSet<Series>,
    /// Series of this session.
    pub session_series: Vec<Series>,
    session_index: Index,
    /// Names that the user gave to series.
    pub names: HashMap<Series, String>,
    colors: HashMap<Series, usize>,
    next_id: usize,
}

/// One file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which source it is.
    pub id: SourceId,
    /// Where it lies.
    pub path: PathBuf,
    /// What it is called: as the user labeled it, else its file's name.
    pub name: String,
    /// What came of reading it.
    pub content: Content,
    /// What the user says that the file can't.
    pub given: Given,
    /// What the file does not say, and the user can.
    pub unknown: Vec<Unknown>,
    /// Its series, sorted.
    pub series: Vec<Series>,
    index: Index,
}

/// What came of reading a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// It is being read.
    Loading,
    /// It was read.
    Loaded(Box<Loaded>),
    /// It could not be read, and why in one line.
    Failed(String),
}

impl Default for Library {
    fn default() -> Self {
        Self {
            session: ResultFile::default(),
            files: Vec::new(),
            published: Vec::new(),
            hidden: HashSet::new(),
            session_series: Vec::new(),
            session_index: Index::default(),
            names: HashMap::new(),
            colors: HashMap::new(),
            next_id: THIS_MACHINE.0 + 1,
        }
    }
}

impl Library {
    /// Notes files that are about to be read. One that is in the library already is read anew and keeps its colors.
    pub fn begin_loading(&mut self, paths: &[PathBuf]) {
        for path in paths {
            if let Some(entry) = self.entry_mut(path) {
                entry.content = Content::Loading;
                continue;
            }
            let name = file_name(path);
            let id = SourceId(self.next_id);
            self.next_id += 1;
            let series = Vec::new();
            self.files.push(Entry {
                id,
                path: path.clone(),
                name,
                content: Content::Loading,
                given: Given::default(),
                unknown: Vec::new(),
                series,
                index: Index::default(),
            });
        }
    }

    /// Takes what came of reading a file; one that was removed in the meantime is left out.
    pub fn finish_loading(&mut self, path: &Path, result: Result<Box<Loaded>, String>) {
        let Some(entry) = self.entry_mut(path) else { return };
        entry.content = match result {
            Ok(loaded) => Content::Loaded(loaded),
            Err(reason) => Content::Failed(reason),
        };
        entry.index = match &entry.content {
            Content::Loaded(loaded) => Index::new(entry.id, &loaded.file),
            Content::Loading | Content::Failed(_) => Index::default(),
        };
        let series = entry.index.sorted_series();
        let before = std::mem::replace(&mut entry.series, series.clone());
        if before.len() == series.len() {
            self.carry_over(&before, &series);
        }
        self.assign_colors(&series);
    }

    /// Lets series keep what the user made of them where they have become others, one for one: another device or precision,
    /// since the user said so.
    fn carry_over(&mut self, before: &[Series], after: &[Series]) {
        for (old, new) in before.iter().zip(after).filter(|(old, new)| old != new) {
            if self.hidden.remove(old) {
                self.hidden.insert(new.clone());
            }
            if let Some(name) = self.names.remove(old) {
                self.names.insert(new.clone(), name);
            }
            if let Some(color) = self.colors.remove(old) {
                self.colors.insert(new.clone(), color);
            }
        }
    }

    /// Labels a file; an empty label gives it its own name back.
    pub fn label(&mut self, id: SourceId, label: &str) {
        if let Some(entry) = self.files.iter_mut().find(|entry| entry.id == id) {
            entry.name = match label.trim() {
                "" => file_name(&entry.path),
                label => label.to_owned(),
            };
        }
    }

    /// What is to be done to read files: each with what the user says of it.
    pub(super) fn reading(&self, paths: Vec<PathBuf>) -> Vec<Effect> {
        let given = |path: &PathBuf| {
            let entry = self.files.iter().find(|entry| entry.path == *path);
            entry.map(|entry| entry.given.clone()).filter(|given| *given != Given::default())
        };
        let (told, plain): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| given(path).is_some());
        let told = told.into_iter().filter_map(|path| Some(Effect::LoadAs(given(&path)?, path)));
        let plain = (!plain.is_empty()).then_some(Effect::Load(plain));
        plain.into_iter().chain(told).collect()
    }

    /// Notes what a file does not say.
    pub fn set_unknown(&mut self, path: &Path, unknown: Vec<Unknown>) {
        if let Some(entry) = self.entry_mut(path) {
            entry.unknown = unknown;
        }
    }

    /// Takes a file out; its colors are free again.
    pub fn remove(&mut self, id: SourceId) {
        self.files.retain(|entry| entry.id != id);
        self.hidden.retain(|series| series.source != id);
        self.names.retain(|series, _| series.source != id);
        self.colors.retain(|series, _| series.source != id);
    }

    /// Adds a result of this session.
    pub fn add_session_record(&mut self, mut record: Record, device: Option<&Device>) {
        let host = self.session.host.clone();
        record.device = device.map(|device| store::index_in(&mut self.session, device, &host));
        self.session.records.push(record);
        self.session_index = Index::new(THIS_MACHINE, &self.session);
        self.session_series = self.session_index.sorted_series();
        let series = self.session_series.clone();
        self.assign_colors(&series);
    }

    fn session_source(&self) -> Source<'_> {
        Source { id: THIS_MACHINE, name: text::this_machine(), file: &self.session, index: &self.session_index }
    }

    /// Everything that has records and of which something may be shown.
    pub fn sources(&self) -> Vec<Source<'_>> {
        let is_shown = |source: &Source<'_>| {
            !self.is_published(source.id) || source.index.series.iter().any(|series| !self.hidden.contains(series))
        };
        self.all_sources().into_iter().filter(is_shown).collect()
    }

    /// Whether a source is a published set.
    pub fn is_published(&self, id: SourceId) -> bool {
        self.published.iter().any(|entry| entry.id == id)
    }

    /// Everything that has records.
    pub fn all_sources(&self) -> Vec<Source<'_>> {
        let files = self.entries().filter_map(Entry::source);
        std::iter::once(self.session_source()).chain(files).filter(|source| !source.file.records.is_empty()).collect()
    }

    /// Files and published results.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.files.iter().chain(&self.published)
    }

    /// Whether there is anything to be shown: results of the user's, or published ones that are not hidden.
    pub fn has_records(&self) -> bool {
        let is_published_shown =
            self.published.iter().flat_map(|entry| &entry.series).any(|series| !self.hidden.contains(series));
        !self.session.records.is_empty()
            || self.files.iter().any(|entry| !entry.series.is_empty())
            || is_published_shown
    }

    /// Shows or hides a series. A published one gets its color when it is shown first.
    pub fn show(&mut self, series: &Series, is_shown: bool) {
        if is_shown {
            self.hidden.remove(series);
            self.assign_colors(std::slice::from_ref(series));
        } else {
            self.hidden.insert(series.clone());
        }
    }

    /// A source by its number.
    pub fn source(&self, id: SourceId) -> Option<Source<'_>> {
        if id == THIS_MACHINE {
            return Some(self.session_source());
        }
        self.entries().find(|entry| entry.id == id).and_then(Entry::source)
    }

    /// What a series is called without its source: as the user named it, else by device, engine and precision.
    pub fn name(&self, series: &Series) -> String {
        self.names.get(series).cloned().unwrap_or_else(|| text::series(series))
    }

    /// Gives a series a name of the user's; an empty one takes it back.
    pub fn rename(&mut self, series: &Series, name: &str) {
        match name.trim() {
            "" => self.names.remove(series),
            name => self.names.insert(series.clone(), name.to_owned()),
        };
    }

    /// Gives a series another color; what had it takes this one's.
    pub fn recolor(&mut self, series: &Series, color: usize) {
        self.assign_colors(std::slice::from_ref(series));
        let old = self.color(series);
        for other in self.colors.values_mut().filter(|other| **other == color) {
            *other = old;
        }
        self.colors.insert(series.clone(), color);
    }

    /// A record and the device it ran on.
    pub fn record(&self, reference: RecordRef) -> Option<(Source<'_>, &Record, Option<&Device>)> {
        let source = self.source(reference.source)?;
        let record = source.file.records.get(reference.index)?;
        let device = source.device_of(record);
        Some((source, record, device))
    }

    /// Number of a series' color, the same for as long as the series is in the library.
    pub fn color(&self, series: &Series) -> usize {
        self.colors.get(series).copied().unwrap_or(0)
    }

    fn entry_mut(&mut self, path: &Path) -> Option<&mut Entry> {
        self.files.iter_mut().find(|entry| entry.path == path)
    }

    /// Gives each new series the smallest color that no other has.
    fn assign_colors(&mut self, series: &[Series]) {
        if series.iter().all(|series| self.colors.contains_key(series)) {
            return;
        }
        let mut used: HashSet<usize> = self.colors.values().copied().collect();
        let mut next = 0;
        for series in series {
            if self.colors.contains_key(series) {
                continue;
            }
            while !used.insert(next) {
                next += 1;
            }
            self.colors.insert(series.clone(), next);
        }
    }
}

/// The last part of a path, as it can be shown.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

impl Entry {
    /// A published set.
    pub(super) fn published(id: SourceId, name: String, loaded: Loaded) -> Self {
        let index = Index::new(id, &loaded.file);
        let (path, series) = (PathBuf::from(&name), index.sorted_series());
        let (given, unknown) = (Given::default(), Vec::new());
        Self { id, path, name, content: Content::Loaded(Box::new(loaded)), given, unknown, series, index }
    }

    /// What the user called it; absent where it goes by its file's name.
    pub fn label(&self) -> Option<&str> {
        Some(self.name.as_str()).filter(|name| *name != file_name(&self.path))
    }

    /// Title of the publication that its first record is from.
    pub fn title(&self) -> Option<&str> {
        self.source()?.file.records.first()?.origin.as_ref()?.title.as_deref()
    }

    /// Its records, once they are read.
    pub fn source(&self) -> Option<Source<'_>> {
        match &self.content {
            Content::Loaded(loaded) => {
                Some(Source { id: self.id, name: &self.name, file: &loaded.file, index: &self.index })
            }
            Content::Loading | Content::Failed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::throughput::tests::{device, file, ok};

    fn loaded(records: Vec<Record>) -> Result<Box<Loaded>, String> {
        Ok(Box::new(Loaded { file: file(records), notes: Vec::new(), n_left_out: 0 }))
    }

    fn color_of(library: &Library, id: usize) -> usize {
        let source = library.source(SourceId(id)).expect("the source has records");
        library.color(source.index.series.first().expect("it has a series"))
    }

    #[test]
    fn colors_stay_while_other_files_come_and_go() {
        let (a, b, c) = (PathBuf::from("/a.json"), PathBuf::from("/b.json"), PathBuf::from("/c.json"));
        let mut library = Library::default();
        library.begin_loading(&[a.clone(), b.clone()]);
        library.finish_loading(&b, loaded(vec![ok("alexnet", 16, 1.0)]));
        library.finish_loading(&a, loaded(vec![ok("alexnet", 16, 1.0)]));
        assert_eq!((color_of(&library, 2), color_of(&library, 1)), (0, 1), "in the order they were read");

        library.remove(SourceId(2));
        library.begin_loading(std::slice::from_ref(&c));
        library.finish_loading(&c, loaded(vec![ok("alexnet", 16, 1.0)]));
        assert_eq!((color_of(&library, 1), color_of(&library, 3)), (1, 0), "a free color is used again");

        library.begin_loading(std::slice::from_ref(&a));
        library.finish_loading(&a, loaded(vec![ok("alexnet", 16, 2.0)]));
        assert_eq!(color_of(&library, 1), 1, "reading anew changes no color");
        assert_eq!(library.files.len(), 2, "and adds no second entry");
    }

    #[test]
    fn a_failed_file_says_why_and_the_others_load() {
        let (good, bad) = (PathBuf::from("/good.json"), PathBuf::from("/bad.json"));
        let mut library = Library::default();
        library.begin_loading(&[bad.clone(), good.clone()]);
        library.finish_loading(&bad, Err("line 3: a number was expected".into()));
        library.finish_loading(&good, loaded(vec![ok("alexnet", 16, 1.0)]));
        assert_eq!(library.files[0].content, Content::Failed("line 3: a number was expected".into()));
        assert_eq!(library.sources().len(), 1);
    }

    #[test]
    fn a_file_removed_while_it_is_read_does_not_come_back() {
        let path = PathBuf::from("/slow.json");
        let mut library = Library::default();
        library.begin_loading(std::slice::from_ref(&path));
        library.remove(library.files[0].id);
        library.finish_loading(&path, loaded(vec![ok("alexnet", 16, 1.0)]));
        assert!(library.sources().is_empty() && library.files.is_empty());
    }

    #[test]
    fn a_series_keeps_the_name_and_color_that_it_was_given() {
        let paths = [PathBuf::from("/a.json"), PathBuf::from("/b.json")];
        let mut library = Library::default();
        library.begin_loading(&paths);
        for path in &paths {
            library.finish_loading(path, loaded(vec![ok("alexnet", 16, 1.0)]));
        }
        let [a, b] = [0, 1].map(|file: usize| library.files[file].series[0].clone());
        library.recolor(&b, 0);
        assert_eq!((library.color(&a), library.color(&b)), (1, 0), "no two have one color");
        library.rename(&b, "  Anna's card ");
        library.finish_loading(&paths[1], loaded(vec![ok("alexnet", 16, 2.0)]));
        assert_eq!(
            (library.name(&b), library.color(&b)),
            ("Anna's card".to_owned(), 0),
            "reading anew changes neither"
        );
        library.rename(&b, "");
        assert_eq!(library.name(&b), text::series(&b));
    }

    #[test]
    fn devices_of_the_session_are_kept_once() {
        let mut library = Library::default();
        let (a, b) = (device("a", "A"), device("b", "B"));
        for device in [Some(&a), Some(&b), Some(&a), None] {
            library.add_session_record(ok("alexnet", 16, 1.0), device);
        }
        let indices: Vec<_> = library.session.records.iter().map(|record| record.device).collect();
        assert_eq!((indices, library.session.devices.len()), (vec![Some(0), Some(1), Some(0), None], 2));
    }

    #[test]
    fn a_file_that_is_told_its_gpu_keeps_names_and_colors() {
        let path = PathBuf::from("/a.json");
        let mut library = Library::default();
        library.begin_loading(std::slice::from_ref(&path));
        library.finish_loading(&path, loaded(vec![ok("alexnet", 16, 1.0)]));
        let before = library.files[0].series[0].clone();
        library.rename(&before, "mine");
        library.recolor(&before, 5);
        library.show(&before, false);
        let mut told = file(vec![ok("alexnet", 16, 1.0)]);
        told.devices[0].name = "L40S".to_owned();
        library.finish_loading(&path, Ok(Box::new(Loaded { file: told, notes: Vec::new(), n_left_out: 0 })));
        let after = &library.files[0].series[0];
        assert_ne!(*after, before);
        assert_eq!((library.name(after).as_str(), library.color(after)), ("mine", 5));
        assert!(library.hidden.contains(after) && !library.hidden.contains(&before));
    }

    #[test]
    fn a_series_without_a_color_gets_one_before_it_is_changed() {
        let path = PathBuf::from("/a.json");
        let mut library = Library::default();
        library.begin_loading(std::slice::from_ref(&path));
        library.finish_loading(&path, loaded(vec![ok("alexnet", 16, 1.0)]));
        let shown = library.files[0].series[0].clone();
        let hidden = Series { engine: "another".to_owned(), ..shown.clone() };
        library.recolor(&hidden, library.color(&shown));
        assert_ne!(library.color(&hidden), library.color(&shown));
    }
}
