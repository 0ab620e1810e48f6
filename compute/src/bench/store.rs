//! The result file on disk: read with tolerance, written atomically, complete after every run, shared by several
//! programs without loss.

use std::path::{Path, PathBuf};

use super::record::{Record, ResultFile};
use crate::engine::Device;

/// A result file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The file.
    pub file: ResultFile,
    /// What a reader should know, one sentence each: an edited file, a newer schema, records left out and why.
    pub notes: Vec<String>,
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

/// Results of this session, and the file they go to.
#[derive(Debug)]
pub struct Store {
    path: Option<PathBuf>,
    file: ResultFile,
}

impl Store {
    /// A store that writes to `path` after every record, or only keeps them in memory. An existing result file at `path`
    /// is added to.
    ///
    /// # Errors
    /// [`LoadError`] when something else is there.
    pub fn open(_path: Option<&Path>, _label: Option<&str>) -> Result<Self, LoadError> {
        todo!()
    }

    /// The file as it stands.
    pub fn file(&self) -> &ResultFile {
        &self.file
    }

    /// Where it is written.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Keeps a record, assigns its device, and writes the file.
    ///
    /// # Errors
    /// [`SaveError`]; the record is kept and written by the next save that succeeds.
    pub fn add(&mut self, _record: Record, _device: Option<&Device>) -> Result<(), SaveError> {
        todo!()
    }

    /// Writes everything to another place from now on.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn save_as(&mut self, _path: &Path) -> Result<(), SaveError> {
        todo!()
    }
}

/// Reads a result file: whatever is well-formed in it, with notes on the rest.
///
/// # Errors
/// [`LoadError`] when nothing of it is ours.
pub fn load(_path: &Path) -> Result<Loaded, LoadError> {
    todo!()
}

/// Writes a result file beside its place, syncs it and renames it. Records that another program added in the meantime
/// are kept.
///
/// # Errors
/// [`SaveError`].
pub fn save(_path: &Path, _file: &ResultFile) -> Result<(), SaveError> {
    todo!()
}
