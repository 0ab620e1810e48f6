//! The child process that touches devices: requests in, events out, one JSON object a line.
//!
//! It measures one run at a time. An error or a panic in a run becomes that run's record and the next request is taken;
//! what takes the process down is the supervisor's business.

use std::any::Any;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use super::event::{Event, Request};
use super::measure::{History, measure};
use super::record::Status;
use super::spec::RunSpec;
use super::telemetry;
use crate::engine;

/// Answers requests until the input ends or the output is closed.
///
/// # Errors
/// What the system reports of either stream; a line that is no request is one too, since the other side then speaks
/// another language.
pub fn serve(input: impl BufRead, output: impl Write) -> io::Result<()> {
    answer(input.lines(), output, &AtomicUsize::new(0))
}

/// [`serve`] on the standard streams of a process that exists for nothing else: when the input ends before every request
/// is answered, the process exits at once, so that no worker outlives its supervisor.
///
/// # Errors
/// As [`serve`].
pub fn serve_process() -> io::Result<()> {
    let unanswered = Arc::new(AtomicUsize::new(0));
    let (sender, lines) = mpsc::channel();
    std::thread::spawn({
        let unanswered = Arc::clone(&unanswered);
        move || {
            for line in io::stdin().lines() {
                unanswered.fetch_add(1, Ordering::SeqCst);
                let ended = line.is_err();
                if sender.send(line).is_err() || ended {
                    break;
                }
            }
            if unanswered.load(Ordering::SeqCst) > 0 {
                std::process::exit(1);
            }
        }
    });
    answer(lines.into_iter(), io::stdout().lock(), &unanswered)
}

fn answer(
    lines: impl Iterator<Item = io::Result<String>>,
    mut output: impl Write,
    unanswered: &AtomicUsize,
) -> io::Result<()> {
    let mut history = History::default();
    send(&mut output, &Event::Ready { version: env!("CARGO_PKG_VERSION").to_owned() })?;
    for line in lines {
        let line = line?;
        if !line.trim().is_empty() {
            let request = serde_json::from_str(&line)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("not a request: {error}")))?;
            match request {
                Request::Devices { script } => {
                    for engine in Request::engines_listed(script.is_some()) {
                        let mut listings = engine::listings(engine, script.as_ref());
                        listings.iter_mut().for_each(|listing| telemetry::complete(&mut listing.device));
                        send(&mut output, &Event::Devices { engine, listings })?;
                    }
                }
                Request::Run { spec } => run(&spec, &mut history, &mut output)?,
            }
        }
        // Only [`serve_process`] counts; elsewhere this wraps around unseen.
        unanswered.fetch_sub(1, Ordering::SeqCst);
    }
    Ok(())
}

fn run(spec: &RunSpec, history: &mut History, output: &mut impl Write) -> io::Result<()> {
    for line in 0..spec.script.as_ref().map_or(0, |script| script.garbage_lines) {
        writeln!(output, "driver message {line} {{ that is no event")?;
    }
    // An event that can't be written ends the worker after the run: nobody reads any more.
    let mut written = Ok(());
    let measured = catch_unwind(AssertUnwindSafe(|| {
        measure(spec, history, &mut |event| {
            if written.is_ok() {
                written = send(output, &event);
            }
        })
    }));
    written?;
    let (record, device) = measured.unwrap_or_else(|panic| {
        let reason = format!("panicked: {}", panic_message(panic.as_ref()));
        (spec.record(Status::Failed, Some(reason)), None)
    });
    send(output, &Event::Finished { record: Box::new(record), device: device.map(Box::new) })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn send(output: &mut impl Write, event: &Event) -> io::Result<()> {
    // In one piece, so that what a driver prints can't come in between.
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fake::{Call, FaultKind, Script};
    use crate::engine::{EngineKind, Listing};
    use crate::models::Model;
    use crate::plan::Pass;
    use crate::shape::Precision;

    fn request(script: Script) -> String {
        let spec = RunSpec {
            model: Model::Googlenet,
            pass: Pass::Forward,
            precision: Precision::F32,
            minibatch: 4,
            engine: EngineKind::Fake,
            device: "fake-0".to_owned(),
            tier: Default::default(),
            bounds: Default::default(),
            profile: false,
            input_size: Some(32),
            script: Some(script),
        };
        serde_json::to_string(&Request::Run { spec: Box::new(spec) }).unwrap() + "\n"
    }

    fn answers(input: &str) -> (io::Result<()>, Vec<Event>) {
        let mut output = Vec::new();
        let result = serve(input.as_bytes(), &mut output);
        let lines = String::from_utf8(output).unwrap();
        (result, lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    fn statuses(events: &[Event]) -> Vec<Status> {
        let status = |event: &Event| match event {
            Event::Finished { record, .. } => Some(record.status),
            _ => None,
        };
        events.iter().filter_map(status).collect()
    }

    /// R37, R25: a lost device, an error or a panic costs its run, and the next one is measured.
    #[test]
    fn a_fault_costs_one_run() {
        for (kind, status) in [
            (FaultKind::DeviceLost, Status::Failed),
            (FaultKind::Failed, Status::Failed),
            (FaultKind::OutOfMemory, Status::OutOfMemory),
            (FaultKind::Panic, Status::Failed),
        ] {
            let input = request(Script::with_fault(Call::Run, 2, kind)) + &request(Script::default());
            let (result, events) = answers(&input);
            assert!(result.is_ok());
            assert!(matches!(events[0], Event::Ready { .. }));
            assert_eq!(statuses(&events), [status, Status::Ok], "{kind:?}");
        }
    }

    #[test]
    fn a_line_that_is_no_request_ends_the_stream_with_an_error() {
        let (result, events) = answers(&("\n".to_owned() + &request(Script::default()) + "nonsense\n"));
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(statuses(&events), [Status::Ok]);
    }

    #[test]
    fn devices_are_those_of_the_script() {
        let request = Request::Devices { script: Some(Script::default()) };
        let (_, events) = answers(&serde_json::to_string(&request).unwrap());
        let expected: Vec<Listing> = vec![Script::default_listing()];
        assert_eq!(events[1], Event::Devices { engine: EngineKind::Fake, listings: expected });
    }

    #[test]
    fn a_closed_output_ends_the_worker() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let result = serve(request(Script::default()).as_bytes(), Closed);
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
