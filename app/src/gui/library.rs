//! The library: this machine's results and the files that were added, which of their series are shown, and in what
//! color.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use compute::bench::record::{Record, ResultFile};
use compute::bench::store::Loaded;
use compute::engine::Device;

use super::text;
use crate::chart::series::{RecordRef, Series, Source, SourceId};

/// Results of this session.
pub const THIS_MACHINE: SourceId = SourceId(0);

/// Everything whose records can be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// Results of this session.
    pub session: ResultFile,
    /// Files in the order they were added.
    pub files: Vec<Entry>,
    /// Series that are not shown.
    pub hidden: HashSet<Series>,
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
    /// What it is called.
    pub name: String,
    /// What came of reading it.
    pub content: Content,
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
            hidden: HashSet::new(),
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
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let id = SourceId(self.next_id);
            self.next_id += 1;
            self.files.push(Entry { id, path: path.clone(), name, content: Content::Loading });
        }
    }

    /// Takes what came of reading a file; one that was removed in the meantime is left out.
    pub fn finish_loading(&mut self, path: &Path, result: Result<Box<Loaded>, String>) {
        if let Some(entry) = self.entry_mut(path) {
            entry.content = match result {
                Ok(loaded) => Content::Loaded(loaded),
                Err(reason) => Content::Failed(reason),
            };
            self.assign_colors();
        }
    }

    /// Takes a file out; its colors are free again.
    pub fn remove(&mut self, id: SourceId) {
        self.files.retain(|entry| entry.id != id);
        self.hidden.retain(|series| series.source != id);
        self.colors.retain(|series, _| series.source != id);
    }

    /// Adds a result of this session.
    pub fn add_session_record(&mut self, mut record: Record, device: Option<&Device>) {
        record.device = device.map(|device| {
            let devices = &mut self.session.devices;
            devices.iter().position(|known| known == device).unwrap_or_else(|| {
                devices.push(device.clone());
                devices.len() - 1
            })
        });
        self.session.records.push(record);
        self.assign_colors();
    }

    /// Everything that has records.
    pub fn sources(&self) -> Vec<Source<'_>> {
        let session = Source { id: THIS_MACHINE, name: text::THIS_MACHINE, file: &self.session };
        let files = self.files.iter().filter_map(|entry| match &entry.content {
            Content::Loaded(loaded) => Some(Source { id: entry.id, name: &entry.name, file: &loaded.file }),
            Content::Loading | Content::Failed(_) => None,
        });
        std::iter::once(session).chain(files).filter(|source| !source.file.records.is_empty()).collect()
    }

    /// A source by its number.
    pub fn source(&self, id: SourceId) -> Option<Source<'_>> {
        self.sources().into_iter().find(|source| source.id == id)
    }

    /// A record and the device it ran on.
    pub fn record(&self, reference: RecordRef) -> Option<(Source<'_>, &Record, Option<&Device>)> {
        let source = self.source(reference.source)?;
        let record = source.file.records.get(reference.index)?;
        let device = record.device.and_then(|index| source.file.devices.get(index));
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
    fn assign_colors(&mut self) {
        let all: Vec<Series> = self.sources().iter().flat_map(Series::all).collect();
        let mut used: BTreeSet<usize> = self.colors.values().copied().collect();
        for series in all {
            if self.colors.contains_key(&series) {
                continue;
            }
            let free = (0..).find(|color| !used.contains(color)).unwrap_or(0);
            used.insert(free);
            self.colors.insert(series, free);
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
        library.color(Series::all(&source).first().expect("it has a series"))
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
    fn devices_of_the_session_are_kept_once() {
        let mut library = Library::default();
        let (a, b) = (device("a", "A"), device("b", "B"));
        for device in [Some(&a), Some(&b), Some(&a), None] {
            library.add_session_record(ok("alexnet", 16, 1.0), device);
        }
        let indices: Vec<_> = library.session.records.iter().map(|record| record.device).collect();
        assert_eq!((indices, library.session.devices.len()), (vec![Some(0), Some(1), Some(0), None], 2));
    }
}
