//! Writes a result file so that it is whole at every moment and no other program's records are lost.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::{SaveError, digest, merge, read};
use crate::bench::record::{ResultFile, SCHEMA};

/// How long another program may hold the lock; a save takes milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Writes a result file beside its place, syncs it and renames it. Records that another program added in the meantime
/// are kept.
///
/// # Errors
/// [`SaveError`].
pub fn save(path: &Path, file: &ResultFile) -> Result<(), SaveError> {
    save_merged(path, file).map(|_| ())
}

/// As [`save`]; returns the file as it now stands.
pub(super) fn save_merged(path: &Path, file: &ResultFile) -> Result<ResultFile, SaveError> {
    write(path, file).map_err(|reason| SaveError { path: path.to_owned(), reason })
}

fn write(path: &Path, file: &ResultFile) -> Result<ResultFile, String> {
    // A link stays a link: what it points to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let _lock = lock(path)?;
    let merged = match fs::metadata(path) {
        Ok(metadata) if metadata.len() > 0 || !metadata.is_file() => {
            let mut disk = read::raw(path).map_err(|error| format!("something else is there: {error}"))?;
            if read::typed(&disk).file.edited {
                disk.insert("edited".to_owned(), Value::Bool(true));
            }
            merge::merge(&mut disk, file).map(|()| disk)
        }
        _ => fresh(file),
    };
    let mut merged = merged.map_err(|error| format!("the records can't be put into JSON: {error}"))?;
    sign(&mut merged);
    replace(path, &merged).map_err(|error| error.to_string())?;
    Ok(read::typed(&merged).file)
}

/// The text of a result file as [`save`] writes it where there is none yet.
///
/// # Errors
/// As `serde_json` reports, which it does for no file that was read or measured.
pub fn text(file: &ResultFile) -> Result<String, serde_json::Error> {
    let mut content = fresh(file)?;
    sign(&mut content);
    Ok(lines(&content))
}

fn sign(content: &mut Map<String, Value>) {
    let digest = digest::digest(content);
    content.insert("digest".to_owned(), Value::String(digest));
}

fn fresh(file: &ResultFile) -> Result<Map<String, Value>, serde_json::Error> {
    let value = serde_json::to_value(file)?;
    let Value::Object(mut object) = value else { unreachable!("a struct becomes an object") };
    if file.schema.is_empty() {
        object.insert("schema".to_owned(), Value::String(SCHEMA.to_owned()));
    }
    Ok(object)
}

/// Puts the new content where the old was, with its permissions: whoever reads meanwhile sees the one or the other.
fn replace(path: &Path, content: &Map<String, Value>) -> io::Result<()> {
    let beside = neighbour(path, &format!("{}.tmp", std::process::id()))?;
    let written = (|| {
        let mut out = File::create(&beside)?;
        if let Ok(metadata) = fs::metadata(path) {
            if metadata.permissions().readonly() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
            }
            out.set_permissions(metadata.permissions())?;
        }
        out.write_all(lines(content).as_bytes())?;
        out.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // What is left of a failed write; that it can't be removed adds nothing to the failure itself.
        let _ = fs::remove_file(&beside);
    }
    // The rename itself reaches the disk with its folder; not every system can sync one.
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|_| written.is_ok()) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    written
}

/// The file's text: a line for each device and each record, so that it can be read, searched and compared by line.
fn lines(content: &Map<String, Value>) -> String {
    let fields = content.iter().map(|(key, value)| {
        let value = match value {
            Value::Array(items) if !items.is_empty() => {
                let lines: Vec<String> = items.iter().map(|item| format!("    {item}")).collect();
                format!("[\n{}\n  ]", lines.join(",\n"))
            }
            other => other.to_string(),
        };
        format!("  {}: {value}", Value::String(key.clone()))
    });
    format!("{{\n{}\n}}\n", fields.collect::<Vec<_>>().join(",\n"))
}

/// A hidden file in the same folder, `.name.suffix`.
fn neighbour(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".");
    hidden.push(suffix);
    Ok(path.with_file_name(hidden))
}

/// A lock beside the result file, which is itself replaced by every save and so can't carry one. The system frees it
/// when its process ends, however that happens.
struct Lock {
    path: PathBuf,
    /// Locked for as long as it is open.
    _file: File,
}

/// Waits for the lock of a result file. None where the file system has no locks: a save is then still whole, but two
/// at the same instant may lose the one's records.
fn lock(path: &Path) -> Result<Option<Lock>, String> {
    let lock_path = neighbour(path, "lock").map_err(|error| error.to_string())?;
    let start = Instant::now();
    loop {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
        let file = file.map_err(|error| error.to_string())?;
        match file.try_lock() {
            // The holder removes its lock when it is done: one that is no longer in its place locks nothing.
            Ok(()) if is_in_place(&file, &lock_path) => return Ok(Some(Lock { path: lock_path, _file: file })),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if start.elapsed() > LOCK_PATIENCE => {
                return Err(format!("another program holds {lock_path:?}"));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error.to_string()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before the file is closed and with it unlocked. Where an open file can't be removed it stays, which is untidy
        // but right.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
fn is_in_place(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_in_place(_file: &File, _path: &Path) -> bool {
    true
}
