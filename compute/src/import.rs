//! Result files of other programs, brought into records of ours.
//!
//! A file is recognized by its content, never by its ending. Every figure keeps its source's own words and unit in
//! [`Origin`](crate::bench::origin::Origin); what could be converted stands in the record's fields. What a file does not
//! say is absent, what was guessed is said in a note. Our own files are passed through to [`store`].
//!
//! `text`, `json` and `delimited` turn bytes into rows, one file a format turns rows into entries, `draft` and `outcome`
//! turn entries into records, `networks` says which foreign network is one of ours, and [`plausible`] finds what can't be
//! true.

mod ai_benchmark;
mod cnn_benchmarks;
mod convnet_benchmarks;
mod delimited;
mod draft;
mod entry;
mod format;
mod json;
mod lambda;
mod llama_bench;
mod networks;
mod number;
mod nvidia_smi;
mod outcome;
mod pickle;
pub mod plausible;
mod precision;
mod row;
mod text;
mod timm;
mod trtexec;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::bench::record::ResultFile;
use crate::bench::store::{self, LoadError};
use crate::catalog;
use crate::shape::Precision;

pub use format::Format;
pub use nvidia_smi::Reading;

/// What the user says that a file can't.
///
/// It takes the place of what would be guessed. Where the file states something else, `device` and `precision` still win
/// and the record says so in a note; a stated minibatch stays, for it differs from record to record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// Name of the device.
    pub device: Option<String>,
    /// Precision.
    pub precision: Option<Precision>,
    /// Samples in one iteration.
    pub minibatch: Option<usize>,
}

/// A file that was imported.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// What it was.
    pub format: Format,
    /// Its records and devices.
    pub file: ResultFile,
    /// What a reader should know of the whole, one sentence each.
    pub notes: Vec<String>,
    /// What was guessed or is missing and may be given.
    pub unknown: Vec<Unknown>,
    /// Records that were left out, with a note each; of files of ours alone.
    pub n_left_out: usize,
    /// Readings of a log of the device's own state; empty for every other format.
    pub telemetry: Vec<Reading>,
}

/// A fact that was guessed or is missing, and may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Name of the device.
    Device,
    /// Precision.
    Precision,
    /// Samples in one iteration.
    Minibatch,
}

/// Why a file can't be imported; one line that says what was expected.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It can't be opened or read.
    #[error("{path:?} can't be read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: std::io::Error,
    },
    /// It is no result file that this program knows, or one that it never opens.
    #[error("{name:?} can't be imported: {reason}")]
    Refused {
        /// Name of the file.
        name: String,
        /// What it is and what was expected.
        reason: String,
    },
    /// It is of a known format and broken.
    #[error("{name:?} looks like a file of {format} but can't be imported: {reason}")]
    Malformed {
        /// Name of the file.
        name: String,
        /// What it looks like.
        format: Format,
        /// What is wrong, with the line where that helps.
        reason: String,
    },
}

/// What is wrong with a file, found by an importer.
#[derive(Debug)]
struct Fault {
    line: Option<u64>,
    reason: String,
}

impl Fault {
    fn new(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }

    fn at(line: impl Into<Option<u64>>, reason: impl Into<String>) -> Self {
        Self { line: line.into(), reason: reason.into() }
    }

    fn message(self) -> String {
        match self.line {
            Some(line) => format!("line {line}: {}", self.reason),
            None => self.reason,
        }
    }
}

/// Imports a file on disk.
///
/// # Errors
/// [`ImportError::Io`] when it can't be read, else as [`import`].
pub fn load(path: &Path, given: &Given) -> Result<Imported, ImportError> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let bytes = store::read_bounded(path).map_err(|error| match error {
        LoadError::Io { path, source } => ImportError::Io { path, source },
        LoadError::NotOurs { reason, .. } => ImportError::Refused { name: name.clone().into_owned(), reason },
    })?;
    import(&name, &bytes, given)
}

/// Imports the content of a file. Its name may carry facts that the content lacks.
///
/// # Errors
/// [`ImportError::Refused`] when the format is not known or never opened, [`ImportError::Malformed`] when it is broken.
pub fn import(name: &str, bytes: &[u8], given: &Given) -> Result<Imported, ImportError> {
    let name = text::base_name(name);
    let refused = |reason: String| ImportError::Refused { name: name.to_owned(), reason };
    if pickle::is_one(bytes) {
        return Err(refused(pickle::REFUSAL.to_owned()));
    }
    let (text, notes) = text::decode(bytes).map_err(|what| refused(format!("it {what}, {}", format::expected())))?;
    if json::is_ours(&text) {
        return ours(name, &text, notes);
    }
    let Some((format, content)) = format::recognize(&text) else {
        let broken = json::fault(&text).map(|fault| format!("it begins like JSON and is broken at {fault}, "));
        let broken = broken.unwrap_or_else(|| "its format is not known, ".to_owned());
        return Err(refused(format!("{broken}{}", format::expected())));
    };
    let sha256: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut draft = draft::Draft::new(format, name, sha256, given, notes);
    let malformed = |fault: Fault| ImportError::Malformed { name: name.to_owned(), format, reason: fault.message() };
    content.read(format, &mut draft).map_err(malformed)?;
    let mut imported = draft.finish().map_err(malformed)?;
    plausible::doubt(&mut imported.file, &|device, precision| catalog::find(device)?.peak(precision));
    imported.notes.extend(plausible::note(&imported.file));
    Ok(imported)
}

/// A file of this program, read by its own store.
fn ours(name: &str, text: &str, mut notes: Vec<String>) -> Result<Imported, ImportError> {
    let loaded = store::parse(Path::new(name), text.as_bytes()).map_err(|error| match error {
        LoadError::Io { path, source } => ImportError::Io { path, source },
        LoadError::NotOurs { reason, .. } => {
            ImportError::Malformed { name: name.to_owned(), format: Format::Batchmark, reason }
        }
    })?;
    notes.extend(loaded.notes);
    let (unknown, telemetry) = (Vec::new(), Vec::new());
    let n_left_out = loaded.n_left_out;
    Ok(Imported { format: Format::Batchmark, file: loaded.file, notes, unknown, n_left_out, telemetry })
}

#[cfg(test)]
mod tests;
