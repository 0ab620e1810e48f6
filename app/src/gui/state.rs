//! Everything the window shows. It changes in two places only: [`State::apply`] for what the user does and
//! [`State::receive`] for what comes from the background.

use std::path::PathBuf;
use std::time::Duration;

use super::custom::Custom;
use super::devices::Devices;
use super::library::Library;
use super::progress::Progress;
use crate::chart::series::RecordRef;
use crate::chart::throughput::{self, Chart, Settings};

/// Everything the window shows.
#[derive(Debug, Default)]
pub struct State {
    /// Devices of this machine.
    pub devices: Devices,
    /// Results that can be shown.
    pub library: Library,
    /// The queue of runs under way.
    pub progress: Option<Progress>,
    /// Where this session's results are.
    pub saved: Saved,
    /// Which records are shown, and how.
    pub settings: Settings,
    /// The chart of library and settings; see [`State::refresh`].
    pub chart: Chart,
    /// The record whose details are shown.
    pub selected: Option<RecordRef>,
    /// What the user should know, the latest last.
    pub notices: Vec<Notice>,
    /// The path field.
    pub path: PathField,
    /// The custom run as filled in; shown while it is open.
    pub custom: Custom,
    /// The question or form that lies over the window.
    pub overlay: Option<Overlay>,
    /// Time on the window's clock.
    pub now: Duration,
    pub(super) is_chart_stale: bool,
    pub(super) is_closing: bool,
}

/// What lies over the window and wants an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Overlay {
    /// The form of a custom run.
    Custom,
    /// The path to save to, where there is no file dialog.
    SavePath(String),
    /// Whether to close although something would be lost.
    Close(CloseQuestion),
}

/// Why closing is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseQuestion {
    /// Runs are under way.
    Running,
    /// Results are only in memory.
    Unsaved,
}

/// Where this session's results are.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Saved {
    /// There are none yet.
    #[default]
    Nothing,
    /// In memory only.
    InMemory,
    /// In this file.
    At(PathBuf),
}

/// Something the user should know.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// How serious it is.
    pub kind: NoticeKind,
    /// What it says.
    pub text: String,
}

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// Good to know.
    Info,
    /// Something did not work.
    Problem,
    /// Results could not be written; there is at most one of it.
    SaveProblem,
}

/// The path field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathField {
    /// What was typed.
    pub text: String,
    /// Whether it is to get the keyboard's focus.
    pub wants_focus: bool,
}

impl State {
    /// Brings the chart up to date if library or settings have changed.
    pub fn refresh(&mut self) {
        if std::mem::take(&mut self.is_chart_stale) {
            self.chart = throughput::chart(&self.library.sources(), &self.library.hidden, &self.settings);
        }
    }

    /// Whether runs are under way.
    pub const fn is_running(&self) -> bool {
        self.progress.is_some()
    }

    /// Why a suite can't be started; absent when it can.
    pub fn run_refusal(&self) -> Option<&'static str> {
        if self.is_running() { Some(super::text::RUN_WHILE_RUNNING) } else { self.devices.run_refusal() }
    }

    /// Whether there is anything to be saved.
    pub fn has_results(&self) -> bool {
        !self.library.session.records.is_empty()
    }

    pub(super) fn notify(&mut self, kind: NoticeKind, text: impl Into<String>) {
        let notice = Notice { kind, text: text.into() };
        let is_known = self.notices.contains(&notice)
            || kind == NoticeKind::SaveProblem && self.notices.iter().any(|known| known.kind == kind);
        if !is_known {
            self.notices.push(notice);
        }
    }
}
