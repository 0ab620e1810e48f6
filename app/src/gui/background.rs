//! Work beside the window: every [`Effect`] runs on a thread of its own and answers with [`Message`]s through a bounded
//! channel. Measuring goes on, and its file is written, whether or not anyone takes the messages out.

mod fonts;
mod outbox;
mod runner;
mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use compute::bench::spec::RunSpec;
use compute::bench::store::Loaded;
use compute::bench::supervisor::{Cancel, WorkerCommand, list_devices};
use compute::estimate::Fit;
use compute::import::{self, Given, Imported};
use eframe::egui;

use super::action::Effect;
use super::message::Message;
use super::preferences::Preferences;
use super::{picture, text};
use outbox::Outbox;
use runner::SessionStore;
use watch::Watch;

/// Messages that wait at most; the window takes them out with every frame.
const CHANNEL_CAPACITY: usize = 256;

/// How long the listing of devices may take; waking a sleeping laptop GPU takes seconds.
const DEVICES_TIMEOUT: Duration = Duration::from_secs(60);

/// A dialog that is gone sooner was never seen by anyone.
const DIALOG_SEEN: Duration = Duration::from_millis(300);

/// How long closing waits for the worker to be ended and the file to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What happens beside the window.
#[derive(Debug)]
pub struct Background {
    sender: SyncSender<Message>,
    inbox: Receiver<Message>,
    context: egui::Context,
    worker: WorkerCommand,
    store: Arc<Mutex<SessionStore>>,
    cancel: Cancel,
    runner: Option<JoinHandle<()>>,
    preferences: Option<PathBuf>,
    to_keep: Arc<ToKeep>,
    watch: Watch,
}

impl Background {
    /// Nothing happens yet. Workers are started with `worker`, results go to a new file in the folder `results` or, when
    /// there is none, stay in memory; `context` is told when there are messages.
    pub fn new(context: egui::Context, worker: WorkerCommand, results: Option<PathBuf>) -> Self {
        let (sender, inbox) = sync_channel(CHANNEL_CAPACITY);
        let store = Arc::new(Mutex::new(SessionStore::new(results)));
        let watch = Watch::new(Outbox::new(sender.clone(), context.clone()));
        Self {
            sender,
            inbox,
            context,
            worker,
            store,
            cancel: Cancel::new(),
            runner: None,
            preferences: None,
            to_keep: Arc::default(),
            watch,
        }
    }

    /// Keeps the window's choices in this file.
    #[must_use]
    pub fn keeping_preferences_in(mut self, path: Option<PathBuf>) -> Self {
        self.preferences = path;
        self
    }

    /// The next message, if there is one. Never waits.
    pub fn next_message(&self) -> Option<Message> {
        self.inbox.try_recv().ok()
    }

    /// Begins what an effect asks for, and returns at once. Effects on the window itself are not for here.
    pub fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::FindDevices => self.find_devices(),
            Effect::Load(paths) => {
                self.watch.add(&paths);
                self.load(paths, Given::default());
            }
            Effect::LoadAs(given, path) => {
                self.watch.add(std::slice::from_ref(&path));
                self.load(vec![path], given);
            }
            Effect::Fit(evidence) => self.spawn("fit", move |outbox| {
                outbox.post(Message::Fitted(Arc::new(Fit::new(&evidence))));
            }),
            Effect::UnpackPublished => self.spawn("published", move |outbox| {
                outbox.post(Message::Published(compute::published::sets().map_err(|error| error.to_string())));
            }),
            Effect::PickFiles => {
                // Made here: another thread does not speak the window's language.
                let dialog = result_dialog(&["json", "csv", "log", "txt", "md", "sql"]);
                self.spawn("open dialog", move |outbox| {
                    ask(outbox, || dialog.pick_files(), Message::PickedFiles, || Message::NoOpenDialog);
                });
            }
            Effect::PickSavePath => {
                let (store, dialog) = (Arc::clone(&self.store), result_dialog(&["json"]));
                self.spawn("save dialog", move |outbox| {
                    let proposal = runner::lock(&store).proposed_path();
                    let name = proposal.file_name().unwrap_or(proposal.as_os_str()).to_string_lossy().into_owned();
                    let dialog = dialog.set_file_name(name);
                    let none = || Message::NoSaveDialog(proposal);
                    ask(outbox, || dialog.save_file(), Message::PickedSavePath, none);
                });
            }
            Effect::Run(specs) => self.run(specs),
            Effect::CancelCurrent => self.cancel.current(),
            Effect::CancelAll => self.cancel.all(),
            Effect::Save(path) => {
                let store = Arc::clone(&self.store);
                self.spawn("save", move |outbox| {
                    let message = match runner::lock(&store).save_as(&path) {
                        Ok(()) => Message::Saved(path),
                        Err(reason) => Message::SaveFailed(reason),
                    };
                    outbox.post(message);
                });
            }
            Effect::PickExportPath(export) => self.spawn("export dialog", move |outbox| {
                let proposal = PathBuf::from("batchmark-chart").with_extension(export.extension());
                let name = proposal.to_string_lossy().into_owned();
                let dialog = rfd::FileDialog::new().add_filter(export.extension(), &[export.extension()]);
                let dialog = dialog.set_file_name(name);
                let none = || {
                    let home = directories::UserDirs::new().map(|folders| folders.home_dir().join(&proposal));
                    Message::NoExportDialog(export, home.unwrap_or(proposal))
                };
                ask(outbox, || dialog.save_file(), |path| Message::PickedExportPath(export, path), none);
            }),
            Effect::Write { path, content } => self.write(path, move || Ok(content)),
            Effect::StorePreferences(preferences) => {
                let Some(path) = self.preferences.clone() else { return };
                *runner::lock(&self.to_keep.latest) = Some(preferences);
                let to_keep = Arc::clone(&self.to_keep);
                self.spawn("preferences", move |_| to_keep.write(&path));
            }
            Effect::Picture { .. }
            | Effect::Copy(_)
            | Effect::Focus
            | Effect::Attention
            | Effect::KeepOpen
            | Effect::Close => {}
        }
    }

    /// Writes what `make` makes into a file, both in the background.
    pub(super) fn write(&self, path: PathBuf, make: impl FnOnce() -> Result<Vec<u8>, String> + Send + 'static) {
        self.spawn("export", move |outbox| write(outbox, path, make));
    }

    /// Takes the window's next frame, and writes the part in `area`, in points, as PNG.
    pub(super) fn writes_frame(&self, path: PathBuf, area: egui::Rect, scale: f32) -> egui::ScreenshotCallback {
        let (sender, context) = (self.sender.clone(), self.context.clone());
        egui::ScreenshotCallback::new(move |image| {
            let make = move || picture::png(&image, area, scale);
            spawn(sender, context, "export", move |outbox| write(outbox, path, make));
        })
    }

    /// Looks for a font of the system that has Chinese, Japanese and Korean characters.
    pub(super) fn find_font(&self) {
        let context = self.context.clone();
        self.spawn("font", move |_| fonts::add_fallback(&context));
    }

    /// Takes what later starts of the program hand over to this one.
    #[cfg(unix)]
    pub(super) fn listen(&self, listener: std::os::unix::net::UnixListener) {
        let mut outbox = Outbox::new(self.sender.clone(), self.context.clone());
        super::single::listen(listener, move |files| outbox.post(Message::HandedOver(files)));
    }

    /// Cancels what is under way and waits a bounded time until it has ended, so that no worker outlives the window.
    pub fn close(self) {
        let Self { inbox, runner, cancel, preferences, to_keep, .. } = self;
        if let Some(path) = preferences {
            to_keep.write(&path);
        }
        // Without a receiver nothing waits for a place in the channel.
        drop(inbox);
        let Some(runner) = runner.filter(|runner| !runner.is_finished()) else { return };
        cancel.all();
        let began = Instant::now();
        while !runner.is_finished() && began.elapsed() < CLOSE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn find_devices(&self) {
        let worker = self.worker.clone();
        self.spawn("devices", move |outbox| {
            let found = catch_unwind(AssertUnwindSafe(|| list_devices(&worker, DEVICES_TIMEOUT, None)));
            let result = match found {
                Ok(found) => found.map_err(|error| error.to_string()),
                Err(_) => Err("the search stopped unexpectedly".to_owned()),
            };
            outbox.post(Message::Devices(result));
        });
    }

    fn load(&self, paths: Vec<PathBuf>, given: Given) {
        self.spawn("load", move |outbox| {
            for path in paths {
                let read = catch_unwind(AssertUnwindSafe(|| import::load(&path, &given)));
                let imported = match read {
                    Ok(imported) => imported.map_err(|error| error.to_string()),
                    Err(_) => Err("reading it stopped unexpectedly".to_owned()),
                };
                let unknown = imported.as_ref().map(|imported| imported.unknown.clone()).unwrap_or_default();
                let result = imported
                    .map(|Imported { file, notes, n_left_out, .. }| Box::new(Loaded { file, notes, n_left_out }));
                outbox.post_of_many(Message::Loaded { path: path.clone(), result });
                if !unknown.is_empty() || given != Given::default() {
                    outbox.post(Message::Unknown(path, unknown));
                }
            }
        });
    }

    fn run(&mut self, specs: Vec<RunSpec>) {
        self.cancel = Cancel::new();
        let (worker, cancel, store) = (self.worker.clone(), self.cancel.clone(), Arc::clone(&self.store));
        self.runner = self.spawn_joinable("runs", move |outbox| {
            let ended = catch_unwind(AssertUnwindSafe(|| runner::run(&specs, &worker, &cancel, &store, outbox)));
            if ended.is_err() {
                outbox.post(Message::Broken("the supervisor of the runs".to_owned()));
            }
            outbox.post(Message::RunEnded);
        });
    }

    fn spawn(&self, name: &str, work: impl FnOnce(&mut Outbox) + Send + 'static) {
        // The thread ends by itself, and with the process at the latest.
        drop(self.spawn_joinable(name, work));
    }

    fn spawn_joinable(&self, name: &str, work: impl FnOnce(&mut Outbox) + Send + 'static) -> Option<JoinHandle<()>> {
        spawn(self.sender.clone(), self.context.clone(), name, work)
    }
}

/// Works on a thread that answers through `sender`; absent, and said, where there can be none.
fn spawn(
    sender: SyncSender<Message>,
    context: egui::Context,
    name: &str,
    work: impl FnOnce(&mut Outbox) + Send + 'static,
) -> Option<JoinHandle<()>> {
    let mut outbox = Outbox::new(sender.clone(), context.clone());
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        work(&mut outbox);
        outbox.wait();
    });
    match thread {
        Ok(thread) => Some(thread),
        Err(error) => {
            Outbox::new(sender, context).post(Message::Broken(format!("{name}: {error}")));
            None
        }
    }
}

/// The choices that are to be kept.
#[derive(Debug, Default)]
struct ToKeep {
    /// The latest that are not written yet.
    latest: Mutex<Option<Box<Preferences>>>,
    /// Held by whoever writes, so that the latest are written last.
    writing: Mutex<()>,
}

impl ToKeep {
    /// Writes the latest, unless somebody else has.
    fn write(&self, path: &Path) {
        let _writing = runner::lock(&self.writing);
        let latest = runner::lock(&self.latest).take();
        if let Some(preferences) = latest {
            // What can't be kept is chosen anew next time; the session goes on.
            drop(preferences.store(path));
        }
    }
}

/// Writes what `make` makes, and says what came of it.
fn write(outbox: &mut Outbox, path: PathBuf, make: impl FnOnce() -> Result<Vec<u8>, String>) {
    let written = make().and_then(|content| std::fs::write(&path, content).map_err(|error| error.to_string()));
    outbox.post(match written {
        Ok(()) => Message::Exported(path),
        Err(reason) => Message::ExportFailed { path, reason },
    });
}

/// Asks by a dialog and says what was picked, nothing where the user thought better of it, or that there is no dialog.
fn ask<T>(
    outbox: &mut Outbox,
    dialog: impl FnOnce() -> Option<T>,
    picked: impl FnOnce(T) -> Message,
    none: impl FnOnce() -> Message,
) {
    let began = Instant::now();
    match dialog() {
        Some(answer) => outbox.post(picked(answer)),
        None if began.elapsed() < DIALOG_SEEN => outbox.post(none()),
        None => {}
    }
}

/// A dialog for result files, whose names end like this.
fn result_dialog(endings: &[&str]) -> rfd::FileDialog {
    rfd::FileDialog::new().add_filter(text::result_files(), endings).add_filter(text::all_files(), &["*"])
}
