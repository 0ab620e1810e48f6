//! Where results are saved.

use std::fs;
use std::path::{Path, PathBuf};

use compute::bench::telemetry::now_utc;

use crate::cli::WrongArguments;
use crate::cli::output::say;

/// The file to save to: the one that was named, else a new one in the program's data folder. None where there is no such
/// folder, which is said.
pub(super) fn of(named: Option<&Path>) -> Result<Option<PathBuf>, WrongArguments> {
    let Some(named) = named else { return Ok(in_data_folder()) };
    let folder = named.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(WrongArguments(format!("--out {named:?}: there is no folder {folder:?}"))),
        None => Ok(Some(named.to_owned())),
    }
}

/// Places for results that can't be saved where they were meant to be.
pub(super) fn fallbacks() -> Vec<PathBuf> {
    in_data_folder().into_iter().chain([std::env::temp_dir().join(new_name())]).collect()
}

fn in_data_folder() -> Option<PathBuf> {
    let Some(folders) = directories::ProjectDirs::from("", "", "batchmark") else {
        say("there is no home folder to save results in; name a file with --out, else they are only printed");
        return None;
    };
    let folder = folders.data_dir().join("results");
    match fs::create_dir_all(&folder) {
        Ok(()) => Some(folder.join(new_name())),
        Err(error) => {
            say(&format!("{folder:?} can't be made: {error}; name a file with --out, else results are only printed"));
            None
        }
    }
}

/// A name that sorts by time and that every file system takes.
fn new_name() -> String {
    format!("batchmark-{}.batchmark.json", now_utc().replace(':', "-"))
}
