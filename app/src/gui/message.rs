//! What comes from the background, and what becomes of it.

use std::path::PathBuf;
use std::sync::Arc;

use compute::bench::record::Status;
use compute::bench::store::Loaded;
use compute::bench::supervisor::Update;
use compute::engine::Listing;
use compute::estimate::Fit;
use compute::import::Unknown;
use compute::published::Set;

use super::action::{Action, Effect};
use super::devices::{Devices, Search};
use super::progress::{Outcome, Progress};
use super::state::{Export, NoticeKind, Overlay, Saved, State};
use super::text;

/// What comes from the background.
#[derive(Debug)]
pub enum Message {
    /// The search for devices has ended.
    Devices(Result<Vec<Listing>, String>),
    /// A file was read, or why not.
    Loaded {
        /// The file.
        path: PathBuf,
        /// Its content.
        result: Result<Box<Loaded>, String>,
    },
    /// What a file that was read does not say.
    Unknown(PathBuf, Vec<Unknown>),
    /// Estimates were fitted.
    Fitted(Arc<Fit>),
    /// The published results were unpacked, or why not.
    Published(Result<Vec<Set>, String>),
    /// The user picked files to add.
    PickedFiles(Vec<PathBuf>),
    /// The user picked a path to save to.
    PickedSavePath(PathBuf),
    /// There is no dialog for adding files.
    NoOpenDialog,
    /// There is no dialog for saving; a path to propose.
    NoSaveDialog(PathBuf),
    /// The user picked a path to export to.
    PickedExportPath(Export, PathBuf),
    /// There is no dialog for exporting; a path to propose.
    NoExportDialog(Export, PathBuf),
    /// A file was exported.
    Exported(PathBuf),
    /// A file could not be exported, and why.
    ExportFailed {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file of the library was changed by somebody.
    FileChanged(PathBuf),
    /// A second start of the program hands over its files.
    HandedOver(Vec<PathBuf>),
    /// The supervisor reports.
    Run(Update),
    /// The queue has ended.
    RunEnded,
    /// This session's results are in this file.
    Saved(PathBuf),
    /// This session's results are only in memory, and why.
    SaveFailed(String),
    /// Something in the background stopped unexpectedly.
    Broken(String),
    /// The window could not be drawn in full, and why.
    DrawingFailed(String),
    /// The device that draws the window was lost.
    DrawingLost,
}

impl State {
    /// Takes what comes from the background.
    pub fn receive(&mut self, message: Message) -> Vec<Effect> {
        match message {
            Message::Devices(Ok(listings)) => {
                self.devices = Devices::found(listings);
                self.is_page_stale = true;
            }
            Message::Devices(Err(reason)) => self.devices.search = Search::Failed(reason),
            Message::Loaded { path, result } => {
                self.library.finish_loading(&path, result);
                self.is_chart_stale = true;
            }
            Message::Unknown(path, unknown) => self.library.set_unknown(&path, unknown),
            Message::Fitted(fit) => self.take_fit(fit),
            Message::Published(Ok(sets)) => self.take_published(sets),
            Message::Published(Err(reason)) => self.notify(NoticeKind::Problem, text::no_published(&reason)),
            Message::PickedFiles(paths) => return self.add_files(paths),
            Message::PickedSavePath(path) => return vec![Effect::Save(path)],
            Message::NoOpenDialog => {
                self.path.wants_focus = true;
                self.notify(NoticeKind::Info, text::no_open_dialog());
            }
            Message::NoSaveDialog(path) => {
                self.overlay = Some(Overlay::SavePath(path.to_string_lossy().into_owned()));
            }
            Message::PickedExportPath(export, path) => return self.apply(Action::ExportTo(export, path)),
            Message::NoExportDialog(export, path) => {
                self.overlay = Some(Overlay::ExportPath(export, path.to_string_lossy().into_owned()));
            }
            Message::Exported(path) => self.notify(NoticeKind::Info, text::exported_to(&path)),
            Message::ExportFailed { path, reason } => {
                self.notify(NoticeKind::Problem, text::not_exported(&path, &reason));
            }
            Message::FileChanged(path) => {
                // It is shown as it was until it is read anew.
                if self.library.files.iter().any(|entry| entry.path == path) {
                    return self.library.reading(vec![path]);
                }
            }
            Message::HandedOver(paths) => {
                let mut effects = self.add_files(paths);
                effects.push(Effect::Focus);
                return effects;
            }
            Message::Run(update) => self.update(update),
            Message::RunEnded => {
                if let Some(progress) = self.progress.take() {
                    let summary = text::run_summary(&tally(&progress), progress.specs.len());
                    self.notify(NoticeKind::Info, summary);
                    return vec![Effect::Attention];
                }
            }
            Message::Saved(path) => {
                self.notices.retain(|notice| notice.kind != NoticeKind::SaveProblem);
                self.saved = Saved::At(path);
            }
            Message::SaveFailed(reason) => {
                self.saved = Saved::InMemory;
                self.notify(NoticeKind::SaveProblem, text::not_saved(&reason));
            }
            Message::Broken(what) => self.notify(NoticeKind::Problem, text::broken(&what)),
            Message::DrawingFailed(reason) => self.notify(NoticeKind::Problem, text::drawing_failed(&reason)),
            Message::DrawingLost => {
                // A question could not be drawn.
                self.is_closing = true;
                return vec![Effect::Close];
            }
        }
        Vec::new()
    }

    fn update(&mut self, update: Update) {
        if let Some(progress) = &mut self.progress {
            progress.update(&update);
        }
        if let Update::Finished { record, device, .. } = update {
            self.library.add_session_record(*record, device.as_deref());
            self.is_chart_stale = true;
        }
    }
}

/// How often each outcome came about, in the order in which it first did; skipped runs count as none.
fn tally(progress: &Progress) -> Vec<(Status, usize)> {
    let mut counts: Vec<(Status, usize)> = Vec::new();
    for outcome in progress.outcomes.iter().flatten() {
        let Outcome::Recorded { status, .. } = outcome else { continue };
        match counts.iter_mut().find(|(known, _)| known == status) {
            Some((_, count)) => *count += 1,
            None => counts.push((*status, 1)),
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use compute::bench::event::Phase;
    use compute::models::Model;

    use super::*;
    use crate::chart::throughput::tests::{bad, device, ok};
    use crate::gui::progress::tests::spec;

    #[test]
    fn bars_appear_one_by_one_while_a_queue_is_measured() {
        let mut state = State::default();
        state.begin(vec![spec(Model::Alexnet), spec(Model::Vgg16)]);
        state.receive(Message::Run(Update::Started { index: 0 }));
        state.receive(Message::Run(Update::Phase { index: 0, phase: Phase::Measure }));
        let gpu = Some(Box::new(device("gpu", "GPU")));
        let record = Box::new(ok("alexnet", 16, 10.0));
        state.receive(Message::Run(Update::Finished { index: 0, record, device: gpu.clone() }));
        state.refresh();
        assert_eq!(state.chart.groups.len(), 1);
        let record = Box::new(bad("vgg16", 16, Status::OutOfMemory));
        state.receive(Message::Run(Update::Finished { index: 1, record, device: gpu }));
        state.refresh();
        assert_eq!((state.chart.groups.len(), state.chart.series.len()), (2, 1));
        assert!(state.is_running(), "the queue ends when the supervisor says so");
        state.receive(Message::RunEnded);
        assert!(!state.is_running());
        assert!(state.notices[0].text.contains("1 out of memory"), "{:?}", state.notices);
    }

    #[test]
    fn a_full_disk_is_said_once_and_forgotten_once_saved() {
        let mut state = State::default();
        for _ in 0..3 {
            state.receive(Message::SaveFailed("no space left on device".into()));
        }
        assert_eq!((state.notices.len(), &state.saved), (1, &Saved::InMemory));
        state.receive(Message::Saved("/b.json".into()));
        assert_eq!((state.notices.len(), state.saved), (0, Saved::At("/b.json".into())));
    }

    #[test]
    fn a_missing_dialog_points_at_the_path_field() {
        let mut state = State::default();
        state.receive(Message::NoOpenDialog);
        state.receive(Message::NoOpenDialog);
        assert!(state.path.wants_focus);
        assert_eq!(state.notices.len(), 1);
        state.receive(Message::NoSaveDialog("/home/x/results.json".into()));
        assert_eq!(state.overlay, Some(Overlay::SavePath("/home/x/results.json".into())));
    }

    #[test]
    fn a_failed_search_for_devices_is_not_an_endless_one() {
        let mut state = State::default();
        state.receive(Message::Devices(Err("the worker crashed".into())));
        assert_eq!(state.devices.search, Search::Failed("the worker crashed".into()));
    }
}
