//! Result files named as arguments, ours or of other programs.

use std::path::PathBuf;

use compute::bench::export::Source;
use compute::bench::record::ResultFile;
use compute::import::{self, Given};

use super::Outcome;
use super::output::say;

/// The files that could be read.
pub(super) struct Files {
    files: Vec<(String, ResultFile)>,
    /// Whether each was read.
    pub(super) outcome: Outcome,
}

impl Files {
    /// Reads each file. What can't be read is said in a line, and so is what a reader should know of the others.
    pub(super) fn load(paths: &[PathBuf]) -> Self {
        let mut files = Vec::new();
        let mut outcome = Outcome::Done;
        for path in paths {
            match import::load(path, &Given::default()) {
                Ok(loaded) => {
                    let name = path.display().to_string();
                    for note in &loaded.notes {
                        say(&format!("{name}: {note}"));
                    }
                    if loaded.n_left_out > 0 {
                        outcome = Outcome::Partial;
                    }
                    files.push((name, loaded.file));
                }
                Err(error) => {
                    say(&format!("error: {error}"));
                    outcome = Outcome::Partial;
                }
            }
        }
        Self { files, outcome }
    }

    /// The files as sources of tables.
    pub(super) fn sources(&self) -> Vec<Source<'_>> {
        self.files.iter().map(|(name, file)| Source { name, file }).collect()
    }
}
