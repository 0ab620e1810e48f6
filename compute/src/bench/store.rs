//! The result file on disk: read with tolerance, written atomically, complete after every run, shared by several
//! programs without loss.
//!
//! `read` takes whatever is well-formed in a file and says what is not, `write` puts a file in its place under a lock,
//! `merge` brings the records of two programs together, `digest` shows whether a file was edited. What the fields mean
//! is [`super::record`]'s business.

mod digest;
mod fault;
mod merge;
mod read;
mod write;

use std::path::{Path, PathBuf};

use super::record::{Host, Record, ResultFile, SCHEMA, Status};
use super::telemetry;
use crate::engine::Device;

pub(crate) use fault::check as check_record;
pub use merge::host_of;
pub(crate) use read::read_bounded;
pub use read::{MAX_FILE_BYTES, load, parse};
pub use write::{save, text};

/// A result file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The file.
    pub file: ResultFile,
    /// What a reader should know, one sentence each: an edited file, a newer schema, records left out and why.
    pub notes: Vec<String>,
    /// Records left out, with a note each.
    pub n_left_out: usize,
}

/// Why a file could not be read; one line that names what was expected.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It can't be opened or read.
    #[error("{path:?} can't be read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: std::io::Error,
    },
    /// It is not a result file.
    #[error("{path:?} is not a Batchmark result file: {reason}")]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What is wrong and what was expected.
        reason: String,
    },
}

/// Why a file could not be written. The records stay in memory; a later save offers them again.
#[derive(Debug, thiserror::Error)]
#[error("{path:?} can't be written: {reason}")]
pub struct SaveError {
    /// The file.
    pub path: PathBuf,
    /// What the system reported.
    pub reason: String,
}

/// A result file in memory, and the place it is written to.
#[derive(Debug)]
pub struct Store {
    path: Option<PathBuf>,
    file: ResultFile,
    host: Host,
    saved: bool,
}

/// A file without records, begun now by this program.
pub fn begin(host: Host) -> ResultFile {
    ResultFile {
        schema: SCHEMA.to_owned(),
        created: telemetry::now_utc(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        ..ResultFile::default()
    }
}

/// Index of a device of `host` in a file, which gets it if it is new. It names its machine where that is not the file's.
pub fn index_in(file: &mut ResultFile, device: &Device, host: &Host) -> usize {
    let mut device = device.clone();
    merge::set_host(&mut device, host, &file.host);
    merge::index_of(&device, &mut file.devices)
}

impl Store {
    /// A store that writes to `path` after every record, or only keeps them in memory. An existing result file at `path`
    /// is added to.
    ///
    /// # Errors
    /// [`LoadError`] when something else is there.
    pub fn open(path: Option<&Path>, label: Option<&str>) -> Result<Self, LoadError> {
        let mut host = telemetry::host();
        host.label = label.map(str::to_owned);
        let file = match path.filter(|path| path.exists()) {
            Some(path) => load(path)?.file,
            None => begin(host.clone()),
        };
        // A machine that was given a name keeps it when it is measured again.
        if label.is_none() {
            host.label.clone_from(&file.host.label);
        }
        Ok(Self { path: path.map(Path::to_owned), file, host, saved: true })
    }

    /// The file as it stands, what others added to it by the last save included.
    pub fn file(&self) -> &ResultFile {
        &self.file
    }

    /// Where it is written.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether every record is on disk.
    pub fn is_saved(&self) -> bool {
        self.saved
    }

    /// Keeps a record, assigns its device, and writes the file. A record with impossible numbers is kept as a failure.
    ///
    /// # Errors
    /// [`SaveError`]; the record is kept and written by the next save that succeeds.
    pub fn add(&mut self, mut record: Record, device: Option<&Device>) -> Result<(), SaveError> {
        record.device = device.map(|device| index_in(&mut self.file, device, &self.host));
        if let Err(fault) = fault::check(&record, self.file.devices.len()) {
            let reason = Some(format!("the measurement gave no valid result: {fault}"));
            let (timing, telemetry, verification) = (None, None, None);
            let (throughput_per_sec, achieved_flop_per_sec, tuning_ms) = (None, None, None);
            record = Record {
                status: Status::Failed,
                reason,
                timing,
                telemetry,
                verification,
                throughput_per_sec,
                achieved_flop_per_sec,
                tuning_ms,
                ..record
            };
        }
        self.file.records.push(record);
        self.save()
    }

    /// Writes every record that is not on disk yet; without a path there is nothing to do.
    ///
    /// # Errors
    /// [`SaveError`]; the records are kept.
    pub fn save(&mut self) -> Result<(), SaveError> {
        self.saved = false;
        if let Some(path) = self.path.clone() {
            self.save_as(&path)?;
        }
        Ok(())
    }

    /// Writes everything to another place from now on. A result file that is there already is added to.
    ///
    /// # Errors
    /// [`SaveError`]; the former place is kept.
    pub fn save_as(&mut self, path: &Path) -> Result<(), SaveError> {
        self.file = write::save_merged(path, &self.file)?;
        self.path = Some(path.to_owned());
        self.saved = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
