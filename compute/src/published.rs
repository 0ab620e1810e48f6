//! Published figures of other benchmarks, as result files that stand beside the program's own.
//!
//! `datasets/published/` holds the figures as their sources print them, and what makes result files of them; the program
//! embeds the result. Every record names its source and the figure in the source's own unit ([`Origin`]); a throughput
//! is there where one follows from it. A record has the name of a network of the suite only where it is that network.
//!
//! [`Origin`]: crate::bench::origin::Origin

use std::io::{self, Read as _};

use flate2::read::GzDecoder;
use serde::Deserialize;

use crate::bench::record::ResultFile;

/// The sets, as `datasets/published/make.py` wrote them.
const SETS: &[u8] = include_bytes!("../../datasets/published.json.gz");

/// The figures of one publication.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Set {
    /// Short name of the publication, such as `"timm_results"`; the `source` of its records' origin.
    pub id: String,
    /// The figures.
    pub file: ResultFile,
}

/// Why the sets can't be read, which a damaged program alone can cause.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// They can't be unpacked.
    #[error("the published results can't be unpacked: {0}")]
    Packed(#[from] io::Error),
    /// They are no result files.
    #[error("the published results can't be read: {0}")]
    Text(#[from] serde_json::Error),
}

/// Every set, in the order of `datasets/published/README.md`. Unpacking and reading some megabytes takes tens of
/// milliseconds, and every call does it anew: keep the sets, and don't ask where a window is drawn.
///
/// # Errors
/// [`PublishedError`] when the embedded bytes are damaged.
pub fn sets() -> Result<Vec<Set>, PublishedError> {
    read(SETS)
}

fn read(packed: &[u8]) -> Result<Vec<Set>, PublishedError> {
    let mut text = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests;
