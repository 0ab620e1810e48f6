//! The window.
//!
//! [`state`] holds everything that is shown; the panels draw it and return [`action::Action`]s, which
//! [`state::State::apply`] applies; what takes time leaves as an [`action::Effect`] for the [`background`], whose
//! [`message::Message`]s [`state::State::receive`] takes. Work is done in `logic`, drawing in `ui`. The window opens no
//! compute device itself.

pub mod action;
pub mod background;
pub mod buyer;
pub mod custom;
pub mod devices;
pub mod drawing;
pub mod library;
pub mod message;
pub mod preferences;
pub mod progress;
pub mod published;
pub mod state;

mod chart_panel;
mod chart_view;
mod custom_form;
mod decide_panel;
mod details_panel;
mod device_panel;
mod efficiency_panel;
mod export;
mod library_panel;
mod mark;
mod memory_panel;
mod notices;
mod overlay;
mod picture;
mod run_panel;
mod samples_view;
mod single;
mod start;
mod table_panel;
mod text;
mod theme;
mod toolbar;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use compute::bench::supervisor::WorkerCommand;
use eframe::egui;

use action::{Action, Effect};
use background::Background;
use drawing::DrawingFaults;
use library::Content;
use message::Message;
use preferences::Preferences;
use state::{Export, Look, Notice, NoticeKind, Panels, State, Tab};

pub use text::Language;

/// How long a frame takes in what comes from the background: with what follows, a frame stays under 16 ms.
const NEWS_TIME: Duration = Duration::from_millis(6);

/// From how long on taking in news is much.
const MUCH_NEWS: Duration = Duration::from_millis(1);

/// Frames in a row that leave the chart to the next at most.
const MOST_LATE: usize = 10;

/// Files to be read from which a count stands in the place of the page until they are.
const MANY_FILES: usize = 32;

/// Opens the window with `files` in its library and returns when it is closed; at once where another window takes the
/// files. With `timing` the time from `began` to the first frame is said on standard error,
/// and in the end the longest that its thread was busy with a frame after it.
///
/// # Errors
/// When the window can't be opened or could not go on, in words for the user; of the first a dialog has said it where
/// there is one.
pub fn run(files: Vec<PathBuf>, began: Instant, timing: bool) -> anyhow::Result<()> {
    text::speak(Language::of_system());
    let start = single::socket_path().map_or(single::Start::Alone, |path| single::start(&path, &files));
    if matches!(start, single::Start::HandedOver) {
        return Ok(());
    }
    let program = std::env::current_exe().context("the program's own path is not known")?;
    let worker = WorkerCommand { program, arguments: vec!["worker".to_owned()] };
    let faults = DrawingFaults::default();
    let drawing = faults.clone();
    let path = data_file("preferences.json");
    let kept = path.as_deref().map_or(Ok(None), Preferences::load);
    let size = kept.as_ref().ok().and_then(Option::as_ref).and_then(Preferences::size);
    let app: eframe::AppCreator<'_> = Box::new(move |context| {
        if let Some(render) = &context.wgpu_render_state {
            drawing.watch(&render.device, &context.egui_ctx);
        }
        let background =
            Background::new(context.egui_ctx.clone(), worker, data_file("results")).keeping_preferences_in(path);
        #[cfg(unix)]
        if let single::Start::First(listener) = start {
            background.listen(listener);
        }
        let mut window = Window::new(&context.egui_ctx, background, kept, files).drawn_by(drawing);
        window.timing = timing.then_some(began);
        window.longest_frame = timing.then_some(Duration::ZERO);
        Ok(Box::new(window))
    });
    start::open(&faults, size, app)
}

/// Starts the window again in a process without a console, where this one has not been started so: whoever double-clicks
/// the program wants none. Whether that went well; then this process has nothing left to do.
#[cfg(windows)]
pub fn start_without_console() -> bool {
    use std::os::windows::process::CommandExt as _;
    /// `DETACHED_PROCESS` of winbase.h.
    const DETACHED: u32 = 0x0000_0008;
    /// Tells the second start that it is the second.
    const MARK: &str = "BATCHMARK_DETACHED";
    if std::env::var_os(MARK).is_some() {
        return false;
    }
    let Ok(program) = std::env::current_exe() else { return false };
    let mut again = std::process::Command::new(program);
    again.args(std::env::args_os().skip(1)).env(MARK, "1").creation_flags(DETACHED).spawn().is_ok()
}

/// A file or folder of the user's own; absent when this system names no such place.
fn data_file(name: &str) -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "batchmark")?;
    Some(folders.data_dir().join(name))
}

/// The window: state, what draws it, and what happens beside it.
pub struct Window {
    state: State,
    background: Option<Background>,
    actions: Vec<Action>,
    drawing: DrawingFaults,
    is_drawing_error_told: bool,
    began: Instant,
    /// Since when the first frame is waited for, where that is to be told.
    timing: Option<Instant>,
    /// The longest that the window's thread was busy with a frame after the first, where that is to be told.
    longest_frame: Option<Duration>,
    frame_began: Instant,
    /// How many frames in a row have left the chart to the next.
    n_late: usize,
    has_choices_to_keep: bool,
    /// What was shown in the last frame and can be exported as a picture.
    picture: Option<egui::Rect>,
    /// Where the next frame's picture goes as vectors.
    svg_path: Option<PathBuf>,
    /// The look that is applied, and the choices that are kept.
    applied: Look,
    kept: Preferences,
    has_looked_for_font: bool,
    has_drawn: bool,
    /// Widths of the panels in the last frame.
    panels: Panels,
}

impl Window {
    /// The window on its first frame: it is as it was left, looks for devices, and reads its library and `files`. Choices
    /// that could not be read are told of: why, and where they were set aside.
    pub fn new(
        context: &egui::Context,
        background: Background,
        kept: Result<Option<Preferences>, (String, PathBuf)>,
        files: Vec<PathBuf>,
    ) -> Self {
        let mut state = State::default();
        state.look.language = Language::of_system();
        let mut known = Vec::new();
        match kept {
            Ok(Some(kept)) => known = kept.restore(&mut state),
            Err((reason, at)) => {
                let notice = text::settings_set_aside(&reason, &at);
                state.notices.push(Notice { kind: NoticeKind::Problem, text: notice });
            }
            Ok(None) => {}
        }
        let mut window = Self::with_state(context, state);
        window.background = Some(background);
        window.actions = vec![Action::FindDevices, Action::AddFiles(files)];
        let mut effects = window.state.library.reading(known);
        effects.push(Effect::UnpackPublished);
        window.perform(context, effects);
        window
    }

    /// A window that shows `state` and has nothing beside it; for tests.
    pub fn with_state(context: &egui::Context, state: State) -> Self {
        theme::install(context);
        text::speak(state.look.language);
        Self {
            kept: Preferences::of(&state),
            state,
            background: None,
            actions: Vec::new(),
            drawing: DrawingFaults::default(),
            is_drawing_error_told: false,
            began: Instant::now(),
            timing: None,
            longest_frame: None,
            frame_began: Instant::now(),
            n_late: 0,
            has_choices_to_keep: false,
            picture: None,
            svg_path: None,
            applied: Look::default(),
            has_looked_for_font: false,
            has_drawn: false,
            panels: Panels::default(),
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

    /// What was shown; for tests.
    pub fn into_state(self) -> State {
        self.state
    }

    /// Takes a message as from the background; for tests.
    pub fn receive(&mut self, context: &egui::Context, message: Message) {
        let effects = self.state.receive(message);
        self.perform(context, effects);
        self.refresh(context);
    }

    /// Does what the user does; for tests.
    pub fn act(&mut self, context: &egui::Context, action: Action) {
        let effects = self.state.apply(action);
        self.perform(context, effects);
        self.refresh(context);
    }

    /// How many files of the library are still to be read.
    fn files_to_read(&self) -> usize {
        self.state.library.files.iter().filter(|entry| matches!(entry.content, Content::Loading)).count()
    }

    /// Brings what is shown up to date, and asks for what that takes.
    fn refresh(&mut self, context: &egui::Context) {
        let effect = self.state.refresh();
        self.perform(context, effect.into_iter().collect());
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
                Effect::Focus => {
                    context.send_viewport_cmd(egui::ViewportCommand::Minimized(false));
                    context.send_viewport_cmd(egui::ViewportCommand::Focus);
                }
                Effect::Attention => {
                    let attention = egui::UserAttentionType::Informational;
                    context.send_viewport_cmd(egui::ViewportCommand::RequestUserAttention(attention));
                }
                Effect::Copy(text) => context.copy_text(text),
                Effect::Picture { kind: Export::Svg, path } => self.svg_path = Some(path),
                Effect::Picture { path, .. } => {
                    if let (Some(background), Some(area)) = (&self.background, self.picture) {
                        let frame = background.writes_frame(path, area, context.pixels_per_point());
                        context.send_viewport_cmd(egui::ViewportCommand::Screenshot(frame));
                    }
                }
                _ => {
                    if let Some(background) = &mut self.background {
                        background.perform(effect);
                    }
                }
            }
        }
    }

    /// Writes the frame that was just drawn as vectors, where that was asked for.
    fn write_svg(&mut self, context: &egui::Context, ground: egui::Color32) {
        let (Some(path), Some(area)) = (self.svg_path.take(), self.picture) else { return };
        let shapes: Vec<egui::epaint::ClippedShape> = context.graphics(|layers| {
            layers
                .get(egui::LayerId::background())
                .map(|list| list.all_entries().cloned().collect())
                .unwrap_or_default()
        });
        if let Some(background) = &self.background {
            background.write(path, move || Ok(picture::svg(&shapes, area, ground).into_bytes()));
        }
    }

    /// Brings theme and size to what is chosen, and a font for what is written.
    fn apply_look(&mut self, context: &egui::Context) {
        let look = self.state.look;
        if self.applied != look {
            self.applied = look;
            context.set_theme(look.theme.preference());
            context.set_zoom_factor(look.zoom);
        }
        let Some(background) = self.background.as_ref().filter(|_| !self.has_looked_for_font) else { return };
        if look.language == Language::Chinese || self.state.library.files.iter().any(|entry| !entry.name.is_ascii()) {
            self.has_looked_for_font = true;
            background.find_font();
        }
    }

    /// Keeps the window's choices where they have changed.
    fn keep(&mut self, context: &egui::Context) {
        let choices = Preferences::of(&self.state);
        if self.kept != choices {
            self.kept = choices.clone();
            self.perform(context, vec![Effect::StorePreferences(Box::new(choices))]);
        }
    }

    /// The page in the middle.
    fn page_ui(&mut self, ui: &mut egui::Ui) {
        let (to_read, all) = (self.files_to_read(), self.state.library.files.len());
        let (state, actions) = (&self.state, &mut self.actions);
        notices::ui(ui, state, actions);
        if to_read > MANY_FILES && !matches!(state.tab, Tab::Memory | Tab::Decide) {
            self.picture = None;
            ui.centered_and_justified(|ui| ui.weak(text::reading(all - to_read, all)));
            return;
        }
        self.picture = match state.tab {
            // What fits is known without results, and what others published may decide.
            tab if !matches!(tab, Tab::Memory | Tab::Decide) && !state.library.has_records() => {
                chart_panel::empty_ui(ui, state, actions);
                None
            }
            Tab::Throughput => chart_panel::ui(ui, state, actions),
            Tab::Efficiency => efficiency_panel::ui(ui, state, actions),
            Tab::Memory => memory_panel::ui(ui, state, actions),
            Tab::Decide => decide_panel::ui(ui, state, actions),
            Tab::Table => {
                table_panel::ui(ui, state, actions);
                None
            }
        };
        // With some air around it.
        let screen = ui.ctx().content_rect();
        self.picture = self.picture.map(|picture| picture.expand(2.0 * theme::GRID).intersect(screen));
    }
}

impl eframe::App for Window {
    fn logic(&mut self, context: &egui::Context, _frame: &mut eframe::Frame) {
        self.frame_began = Instant::now();
        self.state.now = self.began.elapsed();
        if self.has_drawn
            && let Some(began) = self.timing.take()
        {
            // Now it is on the screen.
            eprintln!("first frame {} ms", began.elapsed().as_millis());
        }
        let mut has_news = !self.actions.is_empty();
        while let Some(message) = self.background.as_ref().and_then(Background::next_message) {
            has_news = true;
            let effects = self.state.receive(message);
            self.perform(context, effects);
            if self.frame_began.elapsed() > NEWS_TIME {
                // The rest waits for the next frame.
                context.request_repaint();
                break;
            }
        }
        self.take_drawing_faults(context);
        let zoom = context.zoom_factor();
        let size = context.input(|input| input.viewport().inner_rect).map(|rect| <[f32; 2]>::from(rect.size() * zoom));
        if size.is_some() && size != self.state.size {
            self.state.size = size;
            has_news = true;
        }
        if self.panels != self.state.panels && self.has_drawn {
            self.state.panels = self.panels;
            has_news = true;
        }
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
        // A frame that took in much leaves the chart to the next, and while many files are read none is made for each.
        let is_late = self.n_late < MOST_LATE && self.frame_began.elapsed() > MUCH_NEWS;
        self.n_late = if is_late { self.n_late + 1 } else { 0 };
        if is_late {
            context.request_repaint();
        } else if self.files_to_read() <= MANY_FILES {
            self.refresh(context);
        }
        self.apply_look(context);
        self.has_choices_to_keep |= has_news;
        if self.has_choices_to_keep && !is_late && self.files_to_read() <= MANY_FILES {
            self.has_choices_to_keep = false;
            self.keep(context);
        }
    }

    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        if self.drawing.loss().is_some() {
            // With nothing to upload, the last frame does not fail on the lost device.
            return;
        }
        let (state, actions) = (&self.state, &mut self.actions);
        toolbar::ui(ui, state, actions);
        run_panel::ui(ui, state, actions);
        let width = state.panels.library.unwrap_or(264.0);
        let library = egui::Panel::left("library").default_size(width).min_size(220.0).max_size(420.0).show(ui, |ui| {
            egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                // The scroll bar lies in this strip, not on the buttons.
                ui.set_max_width(ui.available_width() - 2.0 * theme::GRID);
                device_panel::ui(ui, state, actions);
                library_panel::ui(ui, state, actions);
            });
        });
        let details = details_panel::ui(ui, state, actions);
        self.panels =
            Panels { library: Some(library.response.rect.width()), details: details.or(state.panels.details) };
        egui::CentralPanel::default().show(ui, |ui| self.page_ui(ui));
        overlay::ui(ui, &self.state, &mut self.actions);
        self.write_svg(ui.ctx(), ui.visuals().panel_fill);
        self.state.path.wants_focus = false;
        if let Some(longest) = self.longest_frame.as_mut().filter(|_| self.has_drawn) {
            *longest = self.frame_began.elapsed().max(*longest);
        }
        self.has_drawn = true;
        if self.timing.is_some() {
            ui.ctx().request_repaint();
        }
        if !self.actions.is_empty() {
            // They are applied before the next frame, which shows what came of them.
            ui.ctx().request_repaint();
        }
    }

    fn on_exit(&mut self) {
        if let Some(background) = self.background.take() {
            background.close();
        }
        if let Some(longest) = self.longest_frame {
            eprintln!("longest frame {} ms", longest.as_millis());
        }
    }
}
