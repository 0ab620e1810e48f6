//! Whether a library of some version will do, beside a driver of some version.

use super::{Part, Version};

/// Oldest version of CUDA that the driver must support: graphs and the launches of Hopper are as they are now from then
/// on.
const OLDEST_DRIVER: Version = (12, 0);

/// Driver package that came with [`OLDEST_DRIVER`].
///
/// Source: table 3 of the CUDA 12.0 release notes (Linux 525.60.13, Windows 527.41).
pub(super) const OLDEST_DRIVER_PACKAGE: &str = if cfg!(windows) { "527.41" } else { "525.60" };

/// Oldest compiler that knows C++17 kernels of every architecture up to Hopper's `sm_90a`.
const OLDEST_NVRTC: Version = (12, 0);

/// What a library says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub(super) version: Version,
    /// Major version of CUDA that it was built for; absent where it does not say.
    pub(super) cuda_major: Option<u32>,
    /// A function that is used and that it does not have.
    pub(super) lacks: Option<&'static str>,
}

/// Whether it will do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Good,
    /// It may do, but another one is better; with what to tell a user.
    Doubtful(String),
    /// It won't, and why.
    Unusable(String),
}

/// Judges one library. `driver` is the version of CUDA that the driver supports; absent where there is none, or while
/// the driver itself is judged.
pub(super) fn judge(part: Part, facts: &Facts, driver: Option<Version>) -> Verdict {
    let Facts { version: (major, minor), cuda_major, lacks } = *facts;
    match part {
        Part::Driver if facts.version < OLDEST_DRIVER => {
            return Verdict::Unusable(format!(
                "it supports CUDA {major}.{minor} and is too old, CUDA {}.{} is needed",
                OLDEST_DRIVER.0, OLDEST_DRIVER.1
            ));
        }
        Part::Nvrtc if facts.version < OLDEST_NVRTC => {
            return Verdict::Unusable(format!(
                "version {major}.{minor} is too old, {}.{} is needed",
                OLDEST_NVRTC.0, OLDEST_NVRTC.1
            ));
        }
        Part::Cudnn if major < 9 => {
            return Verdict::Unusable(format!("it is version {major}.{minor}, version 9 is needed"));
        }
        _ => {}
    }
    if let Some(function) = lacks {
        return Verdict::Unusable(match part {
            Part::Driver => format!(
                "it supports CUDA {major}.{minor} but lacks the function {function}; a driver for CUDA {}.{} or later has \
                 it",
                OLDEST_DRIVER.0, OLDEST_DRIVER.1
            ),
            _ => format!("version {major}.{minor} lacks the function {function}"),
        });
    }
    let (Some(built_for), Some(driver)) = (cuda_major, driver) else { return Verdict::Good };
    if built_for <= driver.0 {
        return Verdict::Good;
    }
    let newer = format!("than the driver, which supports CUDA {}.{}", driver.0, driver.1);
    match part {
        // Machine code is not tied to the driver as PTX is, but its container may change with a major version.
        Part::Nvrtc => Verdict::Doubtful(format!(
            "NVRTC {major}.{minor} is newer {newer}: it compiles to machine code (CUBIN), which the driver may still \
             refuse; if it does, install {} or a newer driver",
            if driver.0 < 13 { "nvidia-cuda-nvrtc-cu12" } else { "an older NVRTC" }
        )),
        _ => Verdict::Unusable(format!("it is built for CUDA {built_for} and newer {newer}")),
    }
}
