//! The program as it is started: with a display it opens its window, without one it says so and ends.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A software renderer on a busy machine needs seconds; a program that hangs needs for ever.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_window_opens_and_closes() {
    let Some(display) = Display::start() else { return };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("some.json");
    std::fs::write(
        &file,
        r#"{"schema":"batchmark/1","created":"2026-01-01T00:00:00Z","program":"0.1.0","records":[]}"#,
    )
    .expect("the file can be written");
    // Started as by a service: without a home.
    let program = program(folder.path()).arg(&file).env("DISPLAY", &display.name).env_remove("HOME").spawn();
    let mut program = Running(program.expect("the program starts"));

    let began = Instant::now();
    while !display.shows("\"Batchmark\"") {
        assert!(program.0.try_wait().expect("its state is known").is_none(), "it ended before it showed its window");
        assert!(began.elapsed() < PATIENCE, "no window");
        std::thread::sleep(Duration::from_millis(100));
    }
    if display.close_window() {
        let status = program.wait().expect("it ends when its window is closed");
        assert!(status.success(), "{status}");
    }
}

#[test]
fn a_start_without_a_display_says_so_and_names_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for display in [None, Some(":4711")] {
        let mut command = program(folder.path());
        if let Some(display) = display {
            command.env("DISPLAY", display);
        }
        // No dialog program is found, so none can appear on somebody's screen.
        command.env("PATH", folder.path()).stderr(Stdio::piped());
        let mut program = Running(command.spawn().expect("the program starts"));
        let status = program.wait().expect("it ends by itself");
        let stderr = std::io::read_to_string(program.0.stderr.take().expect("it is piped")).expect("it is text");
        assert_eq!(status.code(), Some(1), "{display:?}: {stderr}");
        assert!(stderr.contains("could not open its window"), "{display:?}: {stderr}");
        assert!(stderr.contains("batchmark run --suite quick"), "{display:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{display:?}: {stderr}");
    }
}

/// The program with no display and nothing of the user's own.
fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchmark"));
    for variable in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DBUS_SESSION_BUS_ADDRESS"] {
        command.env_remove(variable);
    }
    command.env("XDG_RUNTIME_DIR", folder).env("XDG_DATA_HOME", folder).stdin(Stdio::null());
    command
}

/// A process that is ended when the test is over.
struct Running(Child);

impl Running {
    /// Waits for its end, but not for ever.
    fn wait(&mut self) -> Option<ExitStatus> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait().expect("its state is known") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A display of our own.
struct Display {
    name: String,
    _server: Running,
}

impl Display {
    /// A display, or none where its programs are missing; there the test is skipped unless a display is required.
    fn start() -> Option<Self> {
        let server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let has_xwininfo = Command::new("xwininfo").arg("-version").output().is_ok();
        let (Ok(server), true) = (server, has_xwininfo) else {
            assert!(
                std::env::var_os("BATCHMARK_REQUIRE_DISPLAY").is_none_or(|v| v != "1"),
                "Xvfb or xwininfo is missing"
            );
            eprintln!("skipped: Xvfb or xwininfo is missing (Debian and Ubuntu: apt install xvfb x11-utils xdotool)");
            return None;
        };
        let mut server = Running(server);
        let mut number = String::new();
        let stdout = server.0.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut number).expect("Xvfb tells its display");
        Some(Self { name: format!(":{}", number.trim()), _server: server })
    }

    /// Whether a window's title is on it.
    fn shows(&self, title: &str) -> bool {
        let tree = Command::new("xwininfo").args(["-root", "-tree", "-display", &self.name]).output();
        tree.is_ok_and(|tree| String::from_utf8_lossy(&tree.stdout).contains(title))
    }

    /// Asks the window to close, as its close button does. Whether there was a program to ask with.
    fn close_window(&self) -> bool {
        let arguments = ["search", "--sync", "--name", "^Batchmark$", "windowquit"];
        let asked = Command::new("xdotool").args(arguments).env("DISPLAY", &self.name).status();
        asked.is_ok_and(|status| status.success())
    }
}
