//! One window a user: a second start hands its files to the first, which comes to the front.
//!
//! The first start listens on a socket in the user's own runtime folder; a message is a JSON list of paths in one line, and
//! is answered by [`ANSWER`]. Elsewhere than on Unix every start opens a window.

use std::path::{Path, PathBuf};

/// Says that the window has taken the files.
#[cfg(unix)]
const ANSWER: &[u8] = b"taken\n";

/// Bytes of a message at most.
#[cfg(unix)]
const LONGEST: u64 = 1 << 20;

/// How long a window may take to answer before it is taken for hung.
#[cfg(unix)]
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);

/// Where the first start listens; absent when the system names no folder of the user's own.
pub(super) fn socket_path() -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "batchmark")?;
    Some(folders.runtime_dir()?.join("batchmark.socket"))
}

/// What became of a start.
#[derive(Debug)]
pub(super) enum Start {
    /// It is the first; the listener takes what later ones hand over.
    #[cfg(unix)]
    First(std::os::unix::net::UnixListener),
    /// Another window has taken the files.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there nothing is handed over"))]
    HandedOver,
    /// It can't be known; a window is opened.
    Alone,
}

/// Hands `files` to the window that listens at `path`, or begins to listen there.
#[cfg(unix)]
pub(super) fn start(path: &Path, files: &[PathBuf]) -> Start {
    use std::os::unix::net::UnixListener;
    if hand_over(path, files).is_ok() {
        return Start::HandedOver;
    }
    // Nobody answers: what lies there was left by a window that was killed.
    drop(std::fs::remove_file(path));
    if let Some(folder) = path.parent() {
        drop(std::fs::create_dir_all(folder));
    }
    UnixListener::bind(path).map_or(Start::Alone, Start::First)
}

#[cfg(not(unix))]
pub(super) fn start(_path: &Path, _files: &[PathBuf]) -> Start {
    Start::Alone
}

#[cfg(unix)]
fn hand_over(path: &Path, files: &[PathBuf]) -> std::io::Result<()> {
    use std::io::{Error, Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // The other window has another working folder.
    let absolute: Vec<PathBuf> =
        files.iter().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())).collect();
    let mut message = serde_json::to_vec(&absolute)?;
    message.push(b'\n');
    stream.write_all(&message)?;
    let mut answer = [0; ANSWER.len()];
    stream.read_exact(&mut answer)?;
    if answer == ANSWER { Ok(()) } else { Err(Error::other("no window answers")) }
}

/// Passes on what later starts hand over, for as long as the program runs.
#[cfg(unix)]
pub(super) fn listen(listener: std::os::unix::net::UnixListener, mut take: impl FnMut(Vec<PathBuf>) + Send + 'static) {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let work = move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut line = String::new();
            let is_read = stream.set_read_timeout(Some(PATIENCE)).is_ok()
                && BufReader::new((&stream).take(LONGEST)).read_line(&mut line).is_ok();
            if let (true, Ok(files)) = (is_read, serde_json::from_str::<Vec<PathBuf>>(&line)) {
                take(files);
                drop(stream.write_all(ANSWER));
            }
        }
    };
    // Without the thread later starts open windows of their own after a while.
    drop(std::thread::Builder::new().name("single".to_owned()).spawn(work));
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write as _;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_start_hands_its_files_to_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/batchmark.socket");
        let Start::First(listener) = start(&path, &[]) else { panic!("nobody was there") };
        let (sender, taken) = channel();
        listen(listener, move |files| sender.send(files).unwrap());
        // What is no message harms nothing.
        std::os::unix::net::UnixStream::connect(&path).unwrap().write_all(b"\xff\xfe not json\n").unwrap();
        assert!(matches!(start(&path, &["/a.json".into(), "b.json".into()]), Start::HandedOver));
        let files = taken.recv_timeout(Duration::from_secs(5)).unwrap();
        assert_eq!(files[0], PathBuf::from("/a.json"));
        assert!(files[1].is_absolute() && files[1].ends_with("b.json"));
    }

    #[test]
    fn a_socket_that_a_killed_window_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("batchmark.socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists() && matches!(start(&path, &[]), Start::First(_)));
    }
}
