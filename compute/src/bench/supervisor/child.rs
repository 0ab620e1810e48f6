//! A worker process with its three pipes. Nothing here waits without bound.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::WorkerCommand;
use crate::bench::event::{Event, Request};

/// Bytes of one line; a record with thousands of samples is far below.
const LONGEST_LINE: u64 = 16 << 20;
/// Lines a request that are no events before the worker counts as broken.
const MOST_GARBAGE: usize = 1000;
/// Bytes kept of what the worker wrote to its standard error.
const STDERR_TAIL: usize = 2000;
/// How often the end of a process is looked for.
const EXIT_INTERVAL: Duration = Duration::from_millis(2);

/// A running worker.
pub(super) struct Child {
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_reader: JoinHandle<()>,
    garbage: usize,
}

/// What came from a worker.
#[derive(Debug)]
pub(super) enum Heard {
    /// An event.
    Event(Event),
    /// Nothing until the deadline.
    Nothing,
    /// The worker has ended or speaks nonsense; why, in words.
    End(String),
}

impl Child {
    /// Starts a worker; what is wrong, in words, when that fails.
    pub(super) fn start(worker: &WorkerCommand) -> Result<Self, String> {
        let mut command = Command::new(&worker.program);
        #[cfg(windows)]
        {
            use std::os::windows::process::CommandExt as _;
            /// `CREATE_NO_WINDOW` of winbase.h: a program of the console would open one.
            const NO_WINDOW: u32 = 0x0800_0000;
            command.creation_flags(NO_WINDOW);
        }
        let mut process = command
            .args(&worker.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the worker {:?} did not start: {error}", worker.program))?;
        let (sender, lines) = sync_channel(256);
        if let Some(stdout) = process.stdout.take() {
            std::thread::spawn(move || read_lines(BufReader::new(stdout), &sender));
        }
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let stderr_pipe = process.stderr.take();
        let stderr_reader = std::thread::spawn({
            let tail = Arc::clone(&stderr);
            move || {
                if let Some(pipe) = stderr_pipe {
                    keep_tail(pipe, &tail);
                }
            }
        });
        let stdin = process.stdin.take();
        Ok(Self { process, stdin, lines, stderr, stderr_reader, garbage: 0 })
    }

    /// Hands a request to the worker; what is wrong, in words, when that fails.
    pub(super) fn send(&mut self, request: &Request) -> Result<(), String> {
        let line = serde_json::to_string(request).map_err(|error| format!("the run can't be handed on: {error}"))?;
        self.garbage = 0;
        let stdin = self.stdin.as_mut().ok_or("the worker takes no more requests")?;
        // A request is shorter than a pipe's buffer, so that this can't block on a worker that hangs.
        let written = stdin.write_all((line + "\n").as_bytes()).and_then(|()| stdin.flush());
        written.map_err(|error| format!("the worker takes no requests: {error}"))
    }

    /// Whether the process still runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// The next event, waiting for it until `deadline`.
    pub(super) fn hear(&mut self, deadline: Instant) -> Heard {
        loop {
            let line = match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => return Heard::Nothing,
                Err(RecvTimeoutError::Disconnected) => return Heard::End(self.epitaph()),
            };
            if let Some(event) = event(&line) {
                return Heard::Event(event);
            }
            self.garbage += 1;
            if self.garbage > MOST_GARBAGE {
                return Heard::End(format!("the worker wrote {MOST_GARBAGE} lines that are no events"));
            }
        }
    }

    /// Ends the process: in peace by closing its input, else at once. It may take `limit` for each of the two; a process
    /// that is stuck in a driver even then is left to itself.
    pub(super) fn end(mut self, in_peace: bool, limit: Duration) {
        self.stdin = None;
        // Nobody reads its output any more, which a worker that writes notices as well.
        drop(self.lines);
        if in_peace && wait(&mut self.process, limit).is_some() {
            return;
        }
        // It may have ended in this moment, which is as good.
        let _ = self.process.kill();
        if wait(&mut self.process, limit).is_none() {
            std::thread::spawn(move || self.process.wait());
        }
    }

    /// How the process ended.
    fn epitaph(&mut self) -> String {
        let status = wait(&mut self.process, Duration::from_millis(500));
        let ended = match status {
            Some(status) => describe(status),
            None => "the worker closed its output".to_owned(),
        };
        // The last words may still be on their way; a grandchild that holds the pipe open must not delay us.
        let deadline = Instant::now() + Duration::from_millis(200);
        while !self.stderr_reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(EXIT_INTERVAL);
        }
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let text = text.trim();
        if text.is_empty() { ended } else { format!("{ended}; its last words: {text}") }
    }
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if std::os::unix::process::ExitStatusExt::signal(&status) == Some(9) {
        return "the worker was killed, by someone or for want of main memory".to_owned();
    }
    format!("the worker ended with {status}")
}

/// Waits at most `limit` for the end of a process.
fn wait(process: &mut std::process::Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        match process.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(EXIT_INTERVAL),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// The event of a line, also behind something that a driver has written without ending its line.
fn event(line: &[u8]) -> Option<Event> {
    const START: &[u8] = b"{\"event\":";
    let start = line.windows(START.len()).position(|window| window == START)?;
    serde_json::from_slice(&line[start..]).ok()
}

fn read_lines(mut pipe: impl BufRead, sender: &SyncSender<Vec<u8>>) {
    loop {
        let mut line = Vec::new();
        match pipe.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                if sender.send(line).is_err() {
                    return;
                }
            }
        }
    }
}

fn keep_tail(mut pipe: impl Read, tail: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 1024];
    while let Ok(read @ 1..) = pipe.read(&mut bytes) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&bytes[..read]);
        let excess = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_behind_what_drivers_write() {
        let ready = r#"{"event":"ready","version":"1"}"#;
        let cases = [
            (ready.to_owned(), true),
            (format!("vulkan: warning {ready}\n"), true),
            ("{\"event\":\"unheard of\"}".to_owned(), false),
            (format!("{ready} trailing"), false),
            ("\u{0}\u{fffd}".to_owned(), false),
            (String::new(), false),
        ];
        for (line, found) in cases {
            assert_eq!(event(line.as_bytes()).is_some(), found, "{line:?}");
        }
    }

    #[test]
    fn the_tail_is_the_end() {
        let tail = Mutex::default();
        let text = "x".repeat(STDERR_TAIL) + "the end";
        keep_tail(text.as_bytes(), &tail);
        let tail = tail.into_inner().unwrap();
        assert!(tail.len() == STDERR_TAIL && tail.ends_with(b"the end"));
    }
}
