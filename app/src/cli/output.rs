//! What commands write: results to standard output, remarks to standard error.

use std::io::{self, Write as _};

use anyhow::Context as _;

/// Writes a result to standard output. A reader that has seen enough, such as `head`, is no failure.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output can't be written"),
    }
}

/// Says something on standard error; that nobody listens there is no reason to stop.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
