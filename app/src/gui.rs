//! The window.
//!
//! [`state`] holds everything that is shown; the panels draw it and return [`action::Action`]s, which
//! [`state::State::apply`] applies; what takes time leaves as an [`action::Effect`] for the [`background`], whose
//! [`message::Message`]s [`state::State::receive`] takes. Work is done in `logic`, drawing in `ui`. The window opens no
//! compute device itself.

pub mod action;
pub mod background;
pub mod custom;
pub mod devices;
pub mod drawing;
pub mod library;
pub mod message;
pub mod progress;
pub mod state;

mod chart_panel;
mod chart_view;
mod custom_form;
mod details_panel;
mod device_panel;
mod library_panel;
mod notices;
mod overlay;
mod run_panel;
mod start;
mod text;
mod theme;
mod toolbar;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use compute::bench::supervisor::WorkerCommand;
use eframe::egui;

use action::{Action, Effect};
use background::Background;
use drawing::DrawingFaults;
use message::Message;
use state::State;

/// Opens the window with `files` in its library and returns when it is closed.
///
/// # Errors
/// When the window can't be opened or could not go on, in words for the user; of the first a dialog has said it where
/// there is one.
pub fn run(files: Vec<PathBuf>) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("the program's own path is not known")?;
    let worker = WorkerCommand { program, arguments: vec!["worker".to_owned()] };
    let faults = DrawingFaults::default();
    let drawing = faults.clone();
    let app: eframe::AppCreator<'_> = Box::new(move |context| {
        if let Some(render) = &context.wgpu_render_state {
            drawing.watch(&render.device, &context.egui_ctx);
        }
        let background = Background::new(context.egui_ctx.clone(), worker, results_folder());
        Ok(Box::new(Window::new(&context.egui_ctx, background, files).drawn_by(drawing)))
    });
    start::open(&faults, app)
}

/// Where results go by themselves; absent when this system names no such place.
fn results_folder() -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "batchmark")?;
    Some(folders.data_dir().join("results"))
}

/// The window: state, what draws it, and what happens beside it.
pub struct Window {
    state: State,
    background: Option<Background>,
    actions: Vec<Action>,
    drawing: DrawingFaults,
    is_drawing_error_told: bool,
    began: Instant,
}

impl Window {
    /// The window on its first frame: it looks for devices and reads `files`.
    pub fn new(context: &egui::Context, background: Background, files: Vec<PathBuf>) -> Self {
        let mut window = Self::with_state(context, State::default());
        window.background = Some(background);
        window.actions = vec![Action::FindDevices, Action::AddFiles(files)];
        window
    }

    /// A window that shows `state` and has nothing beside it; for tests.
    pub fn with_state(context: &egui::Context, state: State) -> Self {
        theme::install(context);
        Self {
            state,
            background: None,
            actions: Vec::new(),
            drawing: DrawingFaults::default(),
            is_drawing_error_told: false,
            began: Instant::now(),
        }
    }

    /// The window, told by `drawing` what goes wrong with the device that draws it.
    #[must_use]
    pub fn drawn_by(mut self, drawing: DrawingFaults) -> Self {
        self.drawing = drawing;
        self
    }

    /// What is shown.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Takes a message as from the background; for tests.
    pub fn receive(&mut self, context: &egui::Context, message: Message) {
        let effects = self.state.receive(message);
        self.perform(context, effects);
        self.state.refresh();
    }

    /// Does what the user does; for tests.
    pub fn act(&mut self, context: &egui::Context, action: Action) {
        let effects = self.state.apply(action);
        self.perform(context, effects);
        self.state.refresh();
    }

    /// Tells of what has gone wrong with drawing, once.
    fn take_drawing_faults(&mut self, context: &egui::Context) {
        if let Some(reason) = self.drawing.error().filter(|_| !self.is_drawing_error_told) {
            let effects = self.state.receive(Message::DrawingFailed(reason.to_owned()));
            self.is_drawing_error_told = true;
            self.perform(context, effects);
        }
        if self.drawing.loss().is_some() {
            let effects = self.state.receive(Message::DrawingLost);
            self.perform(context, effects);
        }
    }

    fn perform(&mut self, context: &egui::Context, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::KeepOpen => context.send_viewport_cmd(egui::ViewportCommand::CancelClose),
                Effect::Close => context.send_viewport_cmd(egui::ViewportCommand::Close),
                _ => {
                    if let Some(background) = &mut self.background {
                        background.perform(effect);
                    }
                }
            }
        }
    }
}

impl eframe::App for Window {
    fn logic(&mut self, context: &egui::Context, _frame: &mut eframe::Frame) {
        self.state.now = self.began.elapsed();
        while let Some(message) = self.background.as_ref().and_then(Background::next_message) {
            let effects = self.state.receive(message);
            self.perform(context, effects);
        }
        self.take_drawing_faults(context);
        let (dropped, wants_to_close) = context.input(|input| {
            let dropped: Vec<PathBuf> = input.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect();
            (dropped, input.viewport().close_requested())
        });
        if !dropped.is_empty() {
            self.actions.push(Action::AddFiles(dropped));
        }
        if wants_to_close {
            self.actions.push(Action::Close);
        }
        for action in std::mem::take(&mut self.actions) {
            let effects = self.state.apply(action);
            self.perform(context, effects);
        }
        self.state.refresh();
    }

    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        if self.drawing.loss().is_some() {
            // With nothing to upload, the last frame does not fail on the lost device.
            return;
        }
        let (state, actions) = (&self.state, &mut self.actions);
        toolbar::ui(ui, state, actions);
        run_panel::ui(ui, state, actions);
        egui::Panel::left("library").default_size(264.0).min_size(220.0).max_size(420.0).show(ui, |ui| {
            egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                // The scroll bar lies in this strip, not on the buttons.
                ui.set_max_width(ui.available_width() - 2.0 * theme::GRID);
                device_panel::ui(ui, state, actions);
                library_panel::ui(ui, state, actions);
            });
        });
        details_panel::ui(ui, state, actions);
        egui::CentralPanel::default().show(ui, |ui| {
            notices::ui(ui, state, actions);
            chart_panel::ui(ui, state, actions);
        });
        overlay::ui(ui, state, actions);
        self.state.path.wants_focus = false;
        if !self.actions.is_empty() {
            // They are applied before the next frame, which shows what came of them.
            ui.ctx().request_repaint();
        }
    }

    fn on_exit(&mut self) {
        if let Some(background) = self.background.take() {
            background.close();
        }
    }
}
