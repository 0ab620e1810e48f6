//! Kernels compiled ahead of time, for machines that have the driver and no compiler: PTX, which the driver translates.
//!
//! The archive `shaders/ahead_of_time.json.gz` is written by `batchmark kernels` with NVRTC 12.0, whose PTX every driver
//! that this engine works with takes. It holds each kernel file for each precision with a digest of its text, so that a
//! test notices when it is no longer what the texts say.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, OnceLock};

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::kernels;
use super::nvrtc::Nvrtc;
use crate::engine::EngineError;
use crate::shape::Precision;

/// The archive, as it is in the tree.
const ARCHIVE: &[u8] = include_bytes!("../../../../shaders/ahead_of_time.json.gz");

/// All kernel files, compiled.
#[derive(Serialize, Deserialize)]
struct Archive {
    /// Version of NVRTC that compiled them.
    nvrtc: String,
    /// By file and precision, as [`name`] puts them.
    modules: BTreeMap<String, Module>,
}

#[derive(Serialize, Deserialize)]
struct Module {
    /// SHA-256 of the text that was compiled.
    text: String,
    ptx: String,
}

/// PTX of a kernel file, closed by a zero byte as the driver wants it.
///
/// # Errors
/// [`EngineError::NotSupported`] for a file that is only ever compiled for the device at hand.
pub(super) fn image(file: &str, precision: Precision) -> Result<Arc<Vec<u8>>, EngineError> {
    let Some(module) = archive()?.modules.get(&name(file, precision)) else {
        return Err(EngineError::NotSupported { reason: format!("{file}.cu for {precision} needs NVRTC") });
    };
    Ok(Arc::new(module.ptx.bytes().chain([0]).collect()))
}

/// Whether a kernel file is compiled ahead of time: not where it needs instructions that one architecture alone has.
pub(super) fn holds(file: &str) -> bool {
    !file.contains("wgmma")
}

/// The archive of the texts as they are, made by `compiler`.
///
/// # Errors
/// [`EngineError::Failed`] with the compiler's log.
pub(super) fn make(compiler: &Nvrtc) -> Result<Vec<u8>, EngineError> {
    let mut modules = BTreeMap::new();
    for file in kernels::files().filter(|file| holds(file)) {
        for precision in Precision::ALL.into_iter().filter(|&precision| kernels::serves(file, precision)) {
            let text = kernels::text(file, precision);
            let ptx = compiler.compile_ptx(&text, file, architecture(precision))?;
            let ptx = String::from_utf8_lossy(&ptx).trim_end_matches('\0').to_owned();
            modules.insert(name(file, precision), Module { text: digest(&text), ptx });
        }
    }
    let (major, minor) = compiler.version();
    let failed = |what: &str, error: &dyn std::fmt::Display| EngineError::Failed {
        what: format!("{what} the archive of kernels"),
        reason: error.to_string(),
    };
    let text = serde_json::to_vec(&Archive { nvrtc: format!("{major}.{minor}"), modules })
        .map_err(|error| failed("writing", &error))?;
    let mut bytes = Vec::new();
    GzEncoder::new(text.as_slice(), Compression::best())
        .read_to_end(&mut bytes)
        .map_err(|error| failed("compressing", &error))?;
    Ok(bytes)
}

fn archive() -> Result<&'static Archive, EngineError> {
    static OPENED: OnceLock<Result<Archive, String>> = OnceLock::new();
    let open = || serde_json::from_reader(GzDecoder::new(ARCHIVE)).map_err(|error| error.to_string());
    OPENED.get_or_init(open).as_ref().map_err(|reason| EngineError::Failed {
        what: "opening the kernels compiled ahead of time".to_owned(),
        reason: reason.clone(),
    })
}

fn name(file: &str, precision: Precision) -> String {
    format!("{file} {precision}")
}

/// Oldest virtual architecture that computes in a precision.
const fn architecture(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 | Precision::F16 => "compute_75",
        Precision::Tf32 | Precision::Bf16 => "compute_80",
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_what_the_texts_say() {
        let archive = archive().unwrap();
        for file in kernels::files().filter(|file| holds(file)) {
            for precision in Precision::ALL.into_iter().filter(|&precision| kernels::serves(file, precision)) {
                let module = archive.modules.get(&name(file, precision));
                let text = digest(&kernels::text(file, precision));
                assert!(
                    module.is_some_and(|module| module.text == text),
                    "{file}.cu has changed: write the archive again by `batchmark kernels --out`"
                );
            }
        }
    }

    #[test]
    fn ptx_is_of_an_architecture_and_version_that_old_devices_and_drivers_take() {
        for precision in Precision::ALL {
            let image = image("batch_norm", precision).unwrap();
            let text = String::from_utf8_lossy(&image);
            let target = architecture(precision).replace("compute", "sm");
            assert!(text.contains(&format!(".target {target}")), "{precision}");
            assert!(text.contains(".version 8.0"), "{precision}");
            assert_eq!(image.last(), Some(&0));
        }
    }
}
