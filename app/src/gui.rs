//! The window.

use std::path::PathBuf;

/// Opens the window with `files` in its library and returns when it is closed.
///
/// # Errors
/// When the window can't be opened, in words for the user.
pub fn run(files: Vec<PathBuf>) -> anyhow::Result<()> {
    anyhow::bail!("no window in this build for {} files, see batchmark --help", files.len())
}
