//! The program as it is started: with a display it opens its window, without one it says so and ends.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A software renderer on a busy machine needs seconds; a program that hangs needs for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A result file without results.
const EMPTY: &str = r#"{"schema":"batchmark/1","created":"2026-01-01T00:00:00Z","program":"0.1.0","records":[]}"#;

#[test]
fn the_window_opens_and_closes() {
    let Some(display) = Display::start() else { return };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("some.json");
    std::fs::write(&file, EMPTY).expect("the file can be written");
    // Started as by a service: without a home.
    let program = program(folder.path()).arg(&file).env("DISPLAY", &display.name).env_remove("HOME").spawn();
    let mut program = Running(program.expect("the program starts"));

    let window = display.wait_for_window(&mut program);
    display.close_and_wait(window, &mut program);
}

/// R33: where the graphics driver draws nothing, the processor does.
#[test]
fn a_window_opens_although_the_graphics_driver_fails() {
    let Some(display) = Display::start() else { return };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    // There is no adapter for this interface here.
    let program = program(folder.path()).env("DISPLAY", &display.name).env("WGPU_BACKEND", "metal").spawn();
    let mut program = Running(program.expect("the program starts"));
    let window = display.wait_for_window(&mut program);
    display.close_and_wait(window, &mut program);
}

/// A window that is used: a page is clicked, a second start hands over its file, both survive a restart.
#[test]
fn what_is_clicked_and_handed_over_is_kept() {
    let Some(display) = Display::start() else { return };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let files = ["one.json", "two.json"].map(|name| folder.path().join(name));
    for file in &files {
        std::fs::write(file, EMPTY).expect("the file can be written");
    }
    let start = |file: &Path| {
        let program = program(folder.path()).arg(file).env("DISPLAY", &display.name).env_remove("LANG").spawn();
        Running(program.expect("the program starts"))
    };
    let kept = || {
        let found = std::fs::read_to_string(folder.path().join("batchmark/preferences.json"));
        found.ok().and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok()).unwrap_or_default()
    };
    let mut first = start(&files[0]);
    let window = display.wait_for_window(&mut first);
    let status = start(&files[1]).wait().expect("a second start ends by itself");
    assert!(status.success(), "{status}");
    let began = Instant::now();
    while kept()["files"].as_array().map_or(0, Vec::len) < 2 || kept()["tab"] != "Memory" {
        assert!(began.elapsed() < PATIENCE, "{:?}", kept());
        display.click(512, 20);
        std::thread::sleep(Duration::from_millis(200));
    }
    display.close_and_wait(window, &mut first);

    let mut again = Running(program(folder.path()).env("DISPLAY", &display.name).spawn().expect("the program starts"));
    let window = display.wait_for_window(&mut again);
    display.close_and_wait(window, &mut again);
    assert_eq!((kept()["files"].as_array().map(Vec::len), kept()["tab"].as_str()), (Some(2), Some("Memory")));
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

#[test]
fn a_dialog_says_what_the_terminal_says() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    // One dialog program that can't show anything, and one that can; the third must not be asked.
    for (name, script) in
        [("zenity", "exit 1"), ("kdialog", "echo \"$@\" > \"$0.said\""), ("xmessage", "echo > \"$0.said\"")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the script can be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .expect("the script can be made a program");
    }
    let mut command = program(folder.path());
    command.env("DISPLAY", ":4711").env("PATH", folder.path()).stderr(Stdio::null());
    let mut program = Running(command.spawn().expect("the program starts"));
    let status = program.wait().expect("it ends by itself");
    assert_eq!(status.code(), Some(1));
    let said = std::fs::read_to_string(folder.path().join("kdialog.said")).expect("the dialog was shown");
    assert!(said.contains("batchmark run --suite quick"), "{said}");
    assert!(!folder.path().join("xmessage.said").exists(), "one dialog is enough");
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
        // Without -noreset it begins anew whenever its last client leaves, and refuses whoever comes meanwhile.
        let server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let has_tools = ["xwininfo", "xdotool"].iter().all(|tool| Command::new(tool).arg("-version").output().is_ok());
        let (Ok(server), true) = (server, has_tools) else {
            assert!(
                std::env::var_os("BATCHMARK_REQUIRE_DISPLAY").is_none_or(|v| v != "1"),
                "Xvfb, xwininfo or xdotool is missing"
            );
            eprintln!("skipped: a program is missing (Debian and Ubuntu: apt install xvfb x11-utils xdotool)");
            return None;
        };
        let mut server = Running(server);
        let mut number = String::new();
        let stdout = server.0.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut number).expect("Xvfb tells its display");
        Some(Self { name: format!(":{}", number.trim()), _server: server })
    }

    /// The program's window, for which it is waited.
    fn wait_for_window(&self, program: &mut Running) -> u32 {
        let began = Instant::now();
        loop {
            if let Some(window) = self.window("\"Batchmark\"") {
                return window;
            }
            assert!(
                program.0.try_wait().expect("its state is known").is_none(),
                "it ended before it showed its window"
            );
            assert!(began.elapsed() < PATIENCE, "no window");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Closes the program's window, upon which it has to end well.
    fn close_and_wait(&self, window: u32, program: &mut Running) {
        self.close(window).expect("the display takes the message");
        let status = program.wait().expect("it ends when its window is closed");
        assert!(status.success(), "{status}");
    }

    /// Clicks at a place of the screen.
    fn click(&self, x: u32, y: u32) {
        let [x, y] = [x, y].map(|place| place.to_string());
        let clicked =
            Command::new("xdotool").args(["mousemove", &x, &y, "click", "1"]).env("DISPLAY", &self.name).status();
        assert!(clicked.expect("xdotool starts").success());
    }

    /// The window with a title, once it is there.
    fn window(&self, title: &str) -> Option<u32> {
        let tree = Command::new("xwininfo").args(["-root", "-tree", "-display", &self.name]).output().ok()?;
        let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
        let line = tree.lines().find(|line| line.contains(title))?;
        let number = line.split_whitespace().next()?.strip_prefix("0x")?;
        u32::from_str_radix(number, 16).ok()
    }

    /// Asks a window to close, as its close button does. No tool at hand does so without a window manager, so these are
    /// the bytes of the X protocol: a connection, two names, one message.
    fn close(&self, window: u32) -> std::io::Result<()> {
        let mut server = UnixStream::connect(format!("/tmp/.X11-unix/X{}", &self.name[1..]))?;
        server.set_read_timeout(Some(PATIENCE))?;
        server.write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        let mut header = [0; 8];
        server.read_exact(&mut header)?;
        assert_eq!(header[0], 1, "the display refuses the connection");
        let length = 4 * u64::from(u16::from_le_bytes([header[6], header[7]]));
        std::io::copy(&mut (&server).take(length), &mut std::io::sink())?;

        let mut atom = |name: &str| -> std::io::Result<[u8; 4]> {
            let words = 2 + name.len().div_ceil(4);
            let mut request = vec![16, 0, words as u8, 0, name.len() as u8, 0, 0, 0];
            request.extend(name.bytes());
            request.resize(4 * words, 0);
            server.write_all(&request)?;
            let mut reply = [0; 32];
            server.read_exact(&mut reply)?;
            Ok([reply[8], reply[9], reply[10], reply[11]])
        };
        let (protocols, delete) = (atom("WM_PROTOCOLS")?, atom("WM_DELETE_WINDOW")?);
        let window = window.to_le_bytes();
        let mut request = vec![25, 0, 11, 0];
        request.extend(window);
        request.extend([0; 4]);
        request.extend([33, 32, 0, 0]);
        request.extend([window, protocols, delete].concat());
        request.resize(44, 0);
        server.write_all(&request)?;
        // An answer to anything means that what came before was taken.
        server.write_all(&[43, 0, 1, 0])?;
        server.read_exact(&mut [0; 32])
    }
}
