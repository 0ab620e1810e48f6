//! Opening the window, and what is said when it can't be opened. Whoever double-clicks sees no terminal, so the first
//! dialog program that starts says it too.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eframe::egui;

use super::drawing::DrawingFaults;
use super::text;

/// A dialog program that ends sooner with a failure has shown nothing.
const DIALOG_FAILS_WITHIN: Duration = Duration::from_millis(400);

/// Opens the window, with its last `size` in logical pixels where there was one, and returns when it is closed; `faults`
/// are those of the device that draws it.
///
/// # Errors
/// Why it could not be opened or go on, in words for the user; of the first a dialog has said it where there is one.
pub(super) fn open(faults: &DrawingFaults, size: Option<[f32; 2]>, app: eframe::AppCreator<'_>) -> anyhow::Result<()> {
    let is_open = Arc::new(AtomicBool::new(false));
    let opening = Arc::clone(&is_open);
    let drawing = faults.clone();
    let previous_hook = std::panic::take_hook();
    // What a panic says is told below; a trace on the terminal would hide it.
    std::panic::set_hook(Box::new(|_| {}));
    let result = catch_unwind(AssertUnwindSafe(|| {
        let app: eframe::AppCreator<'_> = Box::new(move |context| {
            // From here on a panic is a fault of the program, not of the start.
            std::panic::set_hook(Box::new(move |panic| {
                // What a lost device makes of the frame under way is no fault of the program; the loss is told below.
                if drawing.loss().is_none() {
                    previous_hook(panic);
                }
            }));
            opening.store(true, Ordering::Relaxed);
            app(context)
        });
        eframe::run_native(text::TITLE, options(size), app)
    }));
    if let Some(reason) = faults.loss() {
        return Err(anyhow::anyhow!(text::window_stopped(&text::drawing_lost(reason))));
    }
    let reason = match result {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(payload) => panic_text(payload.as_ref()),
    };
    if is_open.load(Ordering::Relaxed) {
        return Err(anyhow::anyhow!(text::window_stopped(&reason)));
    }
    let message = text::no_window(&in_words(&reason));
    match retry_on_x11().or_else(|| retry_in_software(&reason)) {
        Some(true) => return Ok(()),
        // The second start has shown the dialog.
        Some(false) => {}
        None if has_display() => show_dialog(&message),
        None => {}
    }
    Err(anyhow::anyhow!(message))
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn options(size: Option<[f32; 2]>) -> eframe::NativeOptions {
    eframe::NativeOptions {
        viewport: egui::ViewportBuilder::default()
            .with_title(text::TITLE)
            .with_app_id("batchmark")
            .with_inner_size(size.unwrap_or([1200.0, 760.0]))
            .with_min_inner_size([1000.0, 640.0]),
        ..Default::default()
    }
}

/// What the systems below report, said so that something can be done about it.
fn in_words(reason: &str) -> String {
    let cases = [
        ("WAYLAND_DISPLAY", "there is no display (neither DISPLAY nor WAYLAND_DISPLAY leads to one)"),
        ("xkbcommon", "the library libxkbcommon-x11 is missing (Debian and Ubuntu: apt install libxkbcommon-x11-0)"),
        (
            "LibraryOpenError",
            "a library of the X Window System is missing (Debian and Ubuntu: apt install libx11-6 libx11-xcb1 libxcursor1 \
             libxi6)",
        ),
        ("XOpenDisplayFailed", "the display does not answer"),
        ("XNotSupported", "the display does not answer"),
        (
            "CreateSurface",
            "neither Vulkan nor OpenGL can draw here (Debian and Ubuntu: apt install libegl1 libgl1-mesa-dri)",
        ),
        (
            "create surface",
            "neither Vulkan nor OpenGL can draw here (Debian and Ubuntu: apt install libegl1 libgl1-mesa-dri)",
        ),
        (
            "suitable adapter",
            "neither Vulkan nor OpenGL can draw here (Debian and Ubuntu: apt install libegl1 libgl1-mesa-dri)",
        ),
    ];
    let reason = reason.trim();
    match cases.iter().find(|(symptom, _)| reason.contains(symptom)) {
        Some((_, words)) => format!("{words}. The system says: {reason}"),
        None if reason.is_empty() => "for a reason that the system does not tell".to_owned(),
        None => reason.to_owned(),
    }
}

/// Whether there may be a display to show a dialog on.
fn has_display() -> bool {
    cfg!(not(target_os = "linux")) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Starts the program again without Wayland where both displays are named, since a dead Wayland display is not retried
/// on X11 and the event loop can be made only once a process. Whether that went well; absent when it was not tried.
fn retry_on_x11() -> Option<bool> {
    if !(is_set("WAYLAND_DISPLAY") && is_set("DISPLAY")) {
        return None;
    }
    start_again(|again| again.env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET"))
}

/// Starts the program again with Mesa drawing on the processor where nothing else can draw. Whether that went well;
/// absent when it was not tried.
fn retry_in_software(reason: &str) -> Option<bool> {
    let is_about_drawing =
        ["CreateSurface", "create surface", "adapter"].iter().any(|symptom| reason.contains(symptom));
    // What the second start is told is what says that it is the second.
    if !is_about_drawing || !has_display() || is_set("LIBGL_ALWAYS_SOFTWARE") {
        return None;
    }
    start_again(|again| again.env("LIBGL_ALWAYS_SOFTWARE", "1").env("WGPU_BACKEND", "gl"))
}

/// Starts the program again with the same arguments, and returns when it has ended.
fn start_again(change: impl Fn(&mut Command) -> &mut Command) -> Option<bool> {
    let mut again = Command::new(std::env::current_exe().ok()?);
    change(again.args(std::env::args_os().skip(1)).stderr(Stdio::null()));
    again.status().ok().map(|status| status.success())
}

/// Shows a message in the first dialog program that starts.
fn show_dialog(message: &str) {
    let programs: [(&str, &[&str]); 4] = [
        ("zenity", &["--error", "--no-markup", "--title", text::TITLE, "--text"]),
        ("kdialog", &["--title", text::TITLE, "--error"]),
        ("xmessage", &["-center"]),
        ("notify-send", &[text::TITLE]),
    ];
    for (program, arguments) in programs {
        let mut command = Command::new(program);
        command.args(arguments).arg(message).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.spawn().is_ok_and(|mut dialog| is_shown(&mut dialog)) {
            return;
        }
    }
}

/// Whether a dialog program is still there, or has ended well, after the time in which it would have failed.
fn is_shown(dialog: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < DIALOG_FAILS_WITHIN {
        match dialog.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Ok(Some(status)) => return status.success(),
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_in_words() {
        let cases = [
            ("neither WAYLAND_DISPLAY nor WAYLAND_SOCKET nor DISPLAY is set.", "no display"),
            ("XNotSupported(LibraryOpenError(OpenError { .. libXcursor.so.1", "apt install libx11-6"),
            ("XNotSupported(XOpenDisplayFailed)", "does not answer"),
            ("Library libxkbcommon-x11.so could not be loaded.", "libxkbcommon-x11-0"),
            ("FailedToCreateSurfaceForAnyBackend CreateSurfaceError", "libegl1"),
            ("WGPU error: Failed to create surface for any enabled backend: {}", "libegl1"),
            ("", "does not tell"),
            ("something else", "something else"),
        ];
        for (reason, expected) in cases {
            let words = in_words(reason);
            assert!(words.contains(expected), "{reason:?}: {words:?}");
        }
    }
}
