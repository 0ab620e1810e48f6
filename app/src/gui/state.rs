//! Everything the window shows. It changes in two places only: [`State::apply`] for what the user does and
//! [`State::receive`] for what comes from the background.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use compute::engine::DeviceKind;
use compute::shape::Precision;
use eframe::egui;
use serde::{Deserialize, Serialize};

use super::action::Effect;
use super::buyer::{Buyer, Deciding};
use super::custom::Custom;
use super::devices::Devices;
use super::library::Library;
use super::preferences;
use super::progress::Progress;
use super::text::Language;
use crate::chart::efficiency::{self, Efficiency};
use crate::chart::memory::{self, Capacity, Needs};
use crate::chart::series::RecordRef;
use crate::chart::table;
use crate::chart::throughput::{self, Chart, Settings};

/// Memory of common GPUs in GiB.
const COMMON_GIB: [u64; 4] = [8, 16, 24, 80];

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
    /// How the window looks.
    pub look: Look,
    /// Size of the window's inside in logical pixels; absent while it is not known.
    pub size: Option<[f32; 2]>,
    /// Widths of the panels beside the page.
    pub panels: Panels,
    /// The page in the middle.
    pub tab: Tab,
    /// Which records are shown, and how.
    pub settings: Settings,
    /// The chart of library and settings; see [`State::refresh`].
    pub chart: Chart,
    /// The same over minibatches; brought up to date while it is shown.
    pub efficiency: Efficiency,
    /// What the page on memory shows.
    pub memory: MemoryChoice,
    /// What models need; brought up to date while it is shown.
    pub needs: Needs,
    /// What a buyer wishes for.
    pub buyer: Buyer,
    /// What the page for buyers rests on, and shows.
    pub deciding: Deciding,
    /// Which rows the table shows, and in which order.
    pub table: table::View,
    /// The table's rows; brought up to date while it is shown.
    pub rows: Vec<RecordRef>,
    /// Rows that the user selected.
    pub selected_rows: BTreeSet<RecordRef>,
    /// Files that were in the library, the latest first.
    pub recent: Vec<PathBuf>,
    /// What was shown of published results before they are unpacked.
    pub(super) published_before: Vec<preferences::File>,
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
    /// Whether everything is to be made anew, or only what the page shows beside the chart.
    pub(super) is_chart_stale: bool,
    pub(super) is_page_stale: bool,
    pub(super) is_closing: bool,
}

/// Widths of the panels beside the page, in logical pixels; absent while they have not been shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panels {
    /// That of the library.
    pub library: Option<f32>,
    /// That of a record's details.
    pub details: Option<f32>,
}

/// A page in the middle of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tab {
    /// Bars of throughput.
    #[default]
    Throughput,
    /// What larger minibatches gain.
    Efficiency,
    /// What fits into memory.
    Memory,
    /// Which GPU to buy.
    Decide,
    /// Every record.
    Table,
}

impl Tab {
    /// Every page.
    pub const ALL: [Self; 5] = [Self::Throughput, Self::Efficiency, Self::Memory, Self::Decide, Self::Table];
}

/// Which of the two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Theme {
    /// As the system is.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// The same for the library that draws.
    pub const fn preference(self) -> egui::ThemePreference {
        match self {
            Self::System => egui::ThemePreference::System,
            Self::Light => egui::ThemePreference::Light,
            Self::Dark => egui::ThemePreference::Dark,
        }
    }
}

/// How the window looks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The language.
    pub language: Language,
    /// Light, dark, or as the system is.
    pub theme: Theme,
    /// Size of everything, 1 to 2.
    pub zoom: f32,
}

impl Default for Look {
    fn default() -> Self {
        Self { language: Language::English, theme: Theme::System, zoom: 1.0 }
    }
}

/// What the page on memory shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryChoice {
    /// The precision.
    pub precision: Precision,
    /// The minibatch.
    pub minibatch: usize,
}

impl Default for MemoryChoice {
    fn default() -> Self {
        Self { precision: Precision::F32, minibatch: 64 }
    }
}

/// What is written for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// A picture of the chart as it is seen.
    Png,
    /// The same as vectors.
    Svg,
    /// The shown records as comma-separated values.
    Csv,
    /// The shown records as a Markdown table.
    Markdown,
    /// The shown records as a result file.
    Results,
}

impl Export {
    /// Everything that can be written.
    pub const ALL: [Self; 5] = [Self::Png, Self::Svg, Self::Csv, Self::Markdown, Self::Results];

    /// Ending of the file's name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
            Self::Csv => "csv",
            Self::Markdown => "md",
            Self::Results => "json",
        }
    }
}

/// What lies over the window and wants an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Overlay {
    /// The form of a custom run.
    Custom,
    /// The path to save to, where there is no file dialog.
    SavePath(String),
    /// The path to export to, where there is no file dialog.
    ExportPath(Export, String),
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
    /// Brings what is shown up to date if library or settings have changed, and asks for what that takes.
    pub fn refresh(&mut self) -> Option<Effect> {
        self.refresh_page();
        // Last, so that what has just come is among the numbers.
        self.gather_numbers()
    }

    fn refresh_page(&mut self) {
        let (is_chart_stale, is_page_stale) = (self.is_chart_stale, self.is_page_stale);
        (self.is_chart_stale, self.is_page_stale) = (false, false);
        if !is_chart_stale && !is_page_stale {
            return;
        }
        let sources = self.library.sources();
        let hidden = &self.library.hidden;
        if is_chart_stale {
            self.deciding.is_stale = true;
            self.chart = throughput::chart(&sources, hidden, &self.settings);
        }
        match self.tab {
            Tab::Throughput => {}
            Tab::Efficiency => self.efficiency = efficiency::efficiency(&sources, hidden, &self.settings),
            Tab::Memory => {
                let MemoryChoice { precision, minibatch } = self.memory;
                self.needs = memory::needs(self.settings.pass, precision, minibatch, self.capacities());
            }
            Tab::Decide => self.rank(),
            Tab::Table => {
                self.rows = table::rows(&sources, hidden, &self.table);
                let rows: BTreeSet<RecordRef> = self.rows.iter().copied().collect();
                self.selected_rows.retain(|row| rows.contains(row));
            }
        }
    }

    /// Memories of this machine's devices and of those that results were measured on.
    fn capacities(&self) -> Vec<Capacity> {
        let own = self.devices.listings().map(|listing| &listing.device);
        let sources = self.library.sources();
        let own_sources = sources.iter().filter(|source| !self.library.is_published(source.id));
        let measured = own_sources.flat_map(|source| &source.file.devices);
        let known = own.chain(measured).filter_map(|device| {
            let is_gpu = !matches!(device.kind, DeviceKind::Cpu | DeviceKind::Software);
            Some(Capacity { bytes: device.memory_bytes.filter(|_| is_gpu)?, name: device.name.clone() })
        });
        let mut known: Vec<Capacity> = known.collect();
        if known.is_empty() {
            known.extend(COMMON_GIB.map(|gib| Capacity { bytes: gib << 30, name: format!("{gib} GiB") }));
        }
        // Engines round the memory of one card differently.
        known.sort_by(|a, b| (&a.name, a.bytes).cmp(&(&b.name, b.bytes)));
        known.dedup_by(|a, b| a.name == b.name);
        known
    }

    /// Whether no device's memory is known, so that common sizes are shown.
    pub fn capacities_are_common(&self) -> bool {
        let common = |capacity: &Capacity| COMMON_GIB.iter().any(|gib| capacity.name == format!("{gib} GiB"));
        self.needs.capacities.iter().all(common)
    }

    /// Whether runs are under way.
    pub const fn is_running(&self) -> bool {
        self.progress.is_some()
    }

    /// Why a suite can't be started; absent when it can.
    pub fn run_refusal(&self) -> Option<&'static str> {
        if self.is_running() { Some(super::text::run_while_running()) } else { self.devices.run_refusal() }
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
