//! What the user does, and the one place where it is applied. Panels return [`Action`]s; what takes time or touches the
//! system leaves as an [`Effect`] for the background.

use std::path::PathBuf;
use std::time::Duration;

use compute::bench::export::Format;
use compute::bench::spec::RunSpec;
use compute::bench::suite::{self, Selection, Suite};
use compute::estimate::Evidence;
use compute::import::Given;

use super::buyer::Buyer;
use super::custom::Custom;
use super::devices::Devices;
use super::preferences::Preferences;
use super::progress::Progress;
use super::published::Comparison;
use super::state::{CloseQuestion, Export, Look, MemoryChoice, NoticeKind, Overlay, Saved, State, Tab};
use super::{export, text};
use crate::chart::series::{RecordRef, Series, SourceId};
use crate::chart::settings::Settings;
use crate::chart::table;

/// What a run takes beside its measurement: loading, tuning, verification. Measured on an H200, 2026-12-01: 3 s in the
/// mean of the quick suite.
const OVERHEAD_SECS: f64 = 3.0;

/// Files that are remembered as recent.
const RECENT_FILES: usize = 10;

/// What the user does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Looks for devices again.
    FindDevices,
    /// Chooses a device or not, by its place in the list.
    ChooseDevice {
        /// Its place.
        index: usize,
        /// Whether it is to be measured.
        is_chosen: bool,
    },
    /// Allows software adapters or not.
    AllowSoftware(bool),
    /// Starts a suite.
    RunSuite(Suite),
    /// Opens the form of a custom run.
    OpenCustom,
    /// Fills in the form of a custom run.
    EditCustom(Custom),
    /// Starts the custom run.
    RunCustom,
    /// Cancels the run that is measured.
    CancelCurrent,
    /// Cancels the whole queue.
    CancelAll,
    /// Opens the dialog for adding files.
    Open,
    /// Types into the path field.
    EditPath(String),
    /// Adds files.
    AddFiles(Vec<PathBuf>),
    /// Takes a file out of the library.
    RemoveFile(SourceId),
    /// Shows a series or not.
    ShowSeries {
        /// The series.
        series: Series,
        /// Whether it is shown.
        is_shown: bool,
    },
    /// Changes what a buyer wishes for.
    Buy(Box<Buyer>),
    /// Shows one of the published comparisons.
    ComparePublished(Comparison),
    /// Names a series; an empty name takes the user's back.
    Rename {
        /// The series.
        series: Series,
        /// Its name.
        name: String,
    },
    /// Labels a file; an empty label gives it its own name back.
    Label {
        /// The file.
        file: SourceId,
        /// Its label.
        label: String,
    },
    /// Says of a file what it does not, and reads it anew.
    Tell {
        /// The file.
        file: SourceId,
        /// What is said.
        given: Given,
    },
    /// Gives a series another color.
    Recolor {
        /// The series.
        series: Series,
        /// The color's number.
        color: usize,
    },
    /// Turns to a page.
    Turn(Tab),
    /// Changes how the window looks.
    Look(Look),
    /// Chooses what the charts show.
    Settings(Settings),
    /// Chooses what the page on memory shows.
    Memory(MemoryChoice),
    /// Chooses what the table shows.
    Table(table::View),
    /// Selects a row of the table or not.
    SelectRow {
        /// The row.
        row: RecordRef,
        /// Whether it is selected.
        is_selected: bool,
    },
    /// Selects every row of the table, or none.
    SelectRows(bool),
    /// Copies the selected rows, all where none is.
    CopyRows(Format),
    /// Copies one record as Markdown.
    CopyRecord(RecordRef),
    /// Opens the dialog for exporting.
    Export(Export),
    /// Types the path to export to.
    EditExportPath(Export, String),
    /// Exports to a path.
    ExportTo(Export, PathBuf),
    /// Shows a record's details, or none.
    Select(Option<RecordRef>),
    /// Opens the dialog for saving.
    SaveAs,
    /// Types the path to save to.
    EditSavePath(String),
    /// Saves to a path.
    SaveTo(PathBuf),
    /// Takes a notice away.
    DismissNotice(usize),
    /// Closes what lies over the window.
    CloseOverlay,
    /// Wants to close the window.
    Close,
    /// Closes the window whatever is under way.
    CloseAnyway,
}

/// What takes time or touches the system; done in the background, never while drawing.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Read a file of which the user says something.
    LoadAs(Given, PathBuf),
    /// Fit estimates to what is known.
    Fit(Vec<Evidence>),
    /// Unpack the published results.
    UnpackPublished,
    /// Lists devices.
    FindDevices,
    /// Reads files.
    Load(Vec<PathBuf>),
    /// Asks for files to add.
    PickFiles,
    /// Asks for a path to save to.
    PickSavePath,
    /// Measures runs.
    Run(Vec<RunSpec>),
    /// Cancels the run that is measured.
    CancelCurrent,
    /// Cancels every run.
    CancelAll,
    /// Saves this session's results.
    Save(PathBuf),
    /// Asks for a path to export to.
    PickExportPath(Export),
    /// Writes a file.
    Write {
        /// Where to.
        path: PathBuf,
        /// What.
        content: Vec<u8>,
    },
    /// Writes the chart as it is seen.
    Picture {
        /// As points or as vectors.
        kind: Export,
        /// Where to.
        path: PathBuf,
    },
    /// Copies a text.
    Copy(String),
    /// Keeps the window's choices for its next start.
    StorePreferences(Box<Preferences>),
    /// Brings the window to the front.
    Focus,
    /// Asks for the user's attention.
    Attention,
    /// Leaves the window open although its closing was asked for.
    KeepOpen,
    /// Closes the window.
    Close,
}

impl State {
    /// Applies what the user did.
    pub fn apply(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::FindDevices => {
                self.devices = Devices::default();
                return vec![Effect::FindDevices];
            }
            Action::ChooseDevice { index, is_chosen } => self.devices.choose(index, is_chosen),
            Action::AllowSoftware(is_allowed) => self.devices.allow_software(is_allowed),
            Action::RunSuite(suite) => return self.run(&Selection { suite: Some(suite), ..Selection::default() }),
            Action::OpenCustom => self.overlay = Some(Overlay::Custom),
            Action::EditCustom(custom) => self.custom = custom,
            Action::RunCustom => {
                if let Ok(selection) = self.custom.selection() {
                    self.overlay = None;
                    return self.run(&selection);
                }
            }
            Action::CancelCurrent => {
                if let Some(current) = self.progress.as_mut().and_then(|progress| progress.current.as_mut()) {
                    current.is_cancelled = true;
                    return vec![Effect::CancelCurrent];
                }
            }
            Action::CancelAll => {
                if let Some(progress) = &mut self.progress {
                    progress.is_cancelled = true;
                    return vec![Effect::CancelAll];
                }
            }
            Action::Open => return vec![Effect::PickFiles],
            Action::EditPath(text) => self.path.text = text,
            Action::AddFiles(paths) => return self.add_files(paths),
            Action::RemoveFile(id) => {
                self.library.remove(id);
                self.selected = self.selected.filter(|record| record.source != id);
                self.is_chart_stale = true;
            }
            Action::ShowSeries { series, is_shown } => {
                self.library.show(&series, is_shown);
                self.is_chart_stale = true;
            }
            Action::Buy(buyer) => {
                self.buyer = *buyer;
                self.is_page_stale = true;
            }
            Action::ComparePublished(comparison) => self.compare_published(comparison),
            Action::Rename { series, name } => self.library.rename(&series, &name),
            Action::Label { file, label } => self.library.label(file, &label),
            Action::Tell { file, given } => {
                if let Some(entry) = self.library.files.iter_mut().find(|entry| entry.id == file) {
                    entry.given = given.clone();
                    return vec![Effect::LoadAs(given, entry.path.clone())];
                }
            }
            Action::Recolor { series, color } => self.library.recolor(&series, color),
            Action::Turn(tab) => {
                self.tab = tab;
                self.is_page_stale = true;
            }
            Action::Look(look) => {
                self.look = look;
                text::speak(look.language);
            }
            Action::Settings(settings) => {
                self.settings = settings;
                self.is_chart_stale = true;
            }
            Action::Memory(choice) => {
                self.memory = choice;
                self.is_page_stale = true;
            }
            Action::Table(view) => {
                self.table = view;
                self.is_page_stale = true;
            }
            Action::SelectRow { row, is_selected } => {
                if is_selected {
                    self.selected_rows.insert(row)
                } else {
                    self.selected_rows.remove(&row)
                };
            }
            Action::SelectRows(is_selected) => {
                self.selected_rows = self.rows.iter().copied().filter(|_| is_selected).collect();
            }
            Action::CopyRows(format) => {
                return vec![Effect::Copy(export::table(self, &export::selected_rows(self), format))];
            }
            Action::CopyRecord(record) => return vec![Effect::Copy(export::table(self, &[record], Format::Markdown))],
            Action::Export(export) => return vec![Effect::PickExportPath(export)],
            Action::EditExportPath(export, text) => self.overlay = Some(Overlay::ExportPath(export, text)),
            Action::ExportTo(kind, path) => {
                self.overlay = None;
                return export::export(self, kind, path);
            }
            Action::Select(record) => self.selected = record,
            Action::SaveAs => return vec![Effect::PickSavePath],
            Action::EditSavePath(text) => self.overlay = Some(Overlay::SavePath(text)),
            Action::SaveTo(path) => {
                self.overlay = None;
                return vec![Effect::Save(path)];
            }
            Action::DismissNotice(index) => {
                if index < self.notices.len() {
                    self.notices.remove(index);
                }
            }
            Action::CloseOverlay => self.overlay = None,
            Action::Close => return self.close(),
            Action::CloseAnyway => {
                self.is_closing = true;
                return vec![Effect::CancelAll, Effect::Close];
            }
        }
        Vec::new()
    }

    /// How many runs a selection is on the chosen devices, and how long they take at most.
    pub fn estimate(&self, selection: &Selection) -> (usize, Duration) {
        let specs = suite::runs(selection, &self.devices.targets());
        let secs = specs.iter().map(|spec| spec.bounds.max_seconds + OVERHEAD_SECS).sum::<f64>();
        (specs.len(), Duration::from_secs_f64(secs.clamp(0.0, 1e9)))
    }

    /// Starts the runs of a selection on the chosen devices.
    fn run(&mut self, selection: &Selection) -> Vec<Effect> {
        if self.run_refusal().is_some() {
            return Vec::new();
        }
        let specs = suite::runs(selection, &self.devices.targets());
        if specs.is_empty() {
            self.notify(NoticeKind::Problem, text::nothing_to_run());
            return Vec::new();
        }
        self.begin(specs)
    }

    /// Starts runs.
    pub fn begin(&mut self, specs: Vec<RunSpec>) -> Vec<Effect> {
        if self.is_running() {
            return Vec::new();
        }
        self.progress = Some(Progress::new(specs.clone(), self.now));
        vec![Effect::Run(specs)]
    }

    /// Notes files as being read.
    pub(super) fn add_files(&mut self, mut paths: Vec<PathBuf>) -> Vec<Effect> {
        paths.retain(|path| !path.as_os_str().is_empty());
        if paths.is_empty() {
            return Vec::new();
        }
        self.path.text.clear();
        self.recent.retain(|path| !paths.contains(path));
        self.recent.splice(0..0, paths.iter().cloned());
        self.recent.truncate(RECENT_FILES);
        self.library.begin_loading(&paths);
        self.is_chart_stale = true;
        self.library.reading(paths)
    }

    /// Asks once when something would be lost; whoever wants to close again means it.
    fn close(&mut self) -> Vec<Effect> {
        let is_asked = matches!(self.overlay, Some(Overlay::Close(_)));
        let question = if self.is_running() {
            Some(CloseQuestion::Running)
        } else {
            (self.saved == Saved::InMemory).then_some(CloseQuestion::Unsaved)
        };
        match question.filter(|_| !is_asked && !self.is_closing) {
            Some(question) => {
                self.overlay = Some(Overlay::Close(question));
                vec![Effect::KeepOpen]
            }
            None => {
                self.is_closing = true;
                vec![Effect::CancelAll]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use compute::engine::DeviceKind;
    use compute::models::Model;

    use super::*;
    use crate::gui::devices::tests::listing;
    use crate::gui::progress::tests::spec;

    #[test]
    fn closing_while_a_run_is_going_asks_once() {
        let mut state = State::default();
        assert_eq!(state.apply(Action::Close), [Effect::CancelAll], "nothing would be lost");

        let mut state = State::default();
        state.begin(vec![spec(Model::Alexnet)]);
        assert_eq!(state.apply(Action::Close), [Effect::KeepOpen]);
        assert_eq!(state.overlay, Some(Overlay::Close(CloseQuestion::Running)));
        assert_eq!(state.apply(Action::Close), [Effect::CancelAll], "asked once, not twice");

        let mut state = State::default();
        state.begin(vec![spec(Model::Alexnet)]);
        state.apply(Action::Close);
        state.apply(Action::CloseOverlay);
        assert_eq!(state.apply(Action::Close), [Effect::KeepOpen], "after a no it is a new question");
        assert_eq!(state.apply(Action::CloseAnyway), [Effect::CancelAll, Effect::Close]);
        assert_eq!(state.apply(Action::Close), [Effect::CancelAll]);
    }

    #[test]
    fn closing_asks_when_results_are_only_in_memory() {
        let mut state = State { saved: Saved::InMemory, ..State::default() };
        assert_eq!(state.apply(Action::Close), [Effect::KeepOpen]);
        assert_eq!(state.overlay, Some(Overlay::Close(CloseQuestion::Unsaved)));
    }

    #[test]
    fn cancelling_without_a_run_does_nothing() {
        let mut state = State::default();
        assert!(state.apply(Action::CancelCurrent).is_empty());
        assert!(state.apply(Action::CancelAll).is_empty());
        state.begin(vec![spec(Model::Alexnet)]);
        assert!(state.apply(Action::CancelCurrent).is_empty(), "no run has begun");
        assert_eq!(state.apply(Action::CancelAll), [Effect::CancelAll]);
    }

    #[test]
    fn a_second_queue_waits_for_the_first_to_end() {
        let mut state =
            State { devices: Devices::found(vec![listing("gpu", DeviceKind::Discrete)]), ..State::default() };
        assert_eq!(state.begin(vec![spec(Model::Alexnet)]).len(), 1);
        assert!(state.begin(vec![spec(Model::Vgg16)]).is_empty());
        assert!(state.apply(Action::RunSuite(Suite::Quick)).is_empty());
        assert_eq!(state.progress.map(|progress| progress.specs.len()), Some(1));
    }

    #[test]
    fn without_a_device_nothing_is_run() {
        let mut state =
            State { devices: Devices::found(vec![listing("soft", DeviceKind::Software)]), ..State::default() };
        assert!(state.apply(Action::RunSuite(Suite::Quick)).is_empty());
        assert!(state.progress.is_none());
    }

    #[test]
    fn an_incomplete_form_starts_nothing() {
        let mut state =
            State { devices: Devices::found(vec![listing("gpu", DeviceKind::Discrete)]), ..State::default() };
        state.apply(Action::OpenCustom);
        state.apply(Action::EditCustom(Custom { models: vec![], ..Custom::default() }));
        assert!(state.apply(Action::RunCustom).is_empty());
        assert_eq!(state.overlay, Some(Overlay::Custom), "the form stays open");
    }

    #[test]
    fn an_empty_path_adds_nothing() {
        let mut state = State::default();
        assert!(state.apply(Action::AddFiles(vec![PathBuf::new()])).is_empty());
        let path = PathBuf::from("/a.json");
        assert_eq!(state.apply(Action::AddFiles(vec![PathBuf::new(), path.clone()])), [Effect::Load(vec![path])]);
    }
}
