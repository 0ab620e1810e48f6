//! The libraries behind this engine: found, judged, loaded for as long as the process lives.
//!
//! Only the driver must be there. [`search`] says where a library may lie, [`open`] opens one and asks it for its
//! version, [`judge`] says whether it will do beside the driver. What is loaded here is what a later load by name finds,
//! so that everything that uses a library gets the same one.

mod judge;
mod open;
mod search;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use libloading::Library;

pub(super) use search::Surroundings;

use super::nvrtc::Nvrtc;
use super::tier::Tier;
use judge::Verdict;
use open::{Opened, Refusal};
use search::Place;

/// A library that this engine uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Part {
    /// The driver's library, which comes with the driver.
    Driver,
    /// The compiler of kernels.
    Nvrtc,
    /// Matrix products.
    CublasLt,
    /// Convolutions.
    Cudnn,
}

/// Major and minor version.
pub(super) type Version = (u32, u32);

/// A library that is loaded and will do.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) part: Part,
    pub(super) version: Version,
    /// Path, or the name under which the system's loader found it.
    pub(super) place: String,
    /// The library; it is never unloaded.
    pub(super) library: &'static Library,
    /// What a user should know although it will do.
    pub(super) remark: Option<String>,
}

/// A library that can't be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Missing {
    pub(super) part: Part,
    /// What was found and why it won't do, one reason each; empty where nothing was found.
    pub(super) problems: Vec<String>,
    /// Where it was looked for, in a few words.
    pub(super) searched: String,
    /// What to do about it.
    pub(super) remedy: String,
}

/// Whether a library is there.
pub(super) type Presence = Result<Found, Missing>;

/// What is there of the libraries.
#[derive(Debug)]
pub(super) struct Libraries {
    pub(super) driver: Presence,
    /// The others. Without a driver they are not looked for, and are said to be missing.
    pub(super) nvrtc: Presence,
    pub(super) cublaslt: Presence,
    pub(super) cudnn: Presence,
}

/// The libraries of this process: looked for at the first call. This takes some tens of milliseconds.
pub(super) fn load() -> &'static Libraries {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    LIBRARIES.get_or_init(|| Libraries::find(&Surroundings::of_process(), open::open))
}

/// The compiler of this process, which works without a driver as well. Absent where it can't be used; why is in
/// [`Libraries::nvrtc`].
pub(super) fn compiler() -> Option<&'static Nvrtc> {
    static COMPILER: OnceLock<Option<Nvrtc>> = OnceLock::new();
    let make = || {
        let libraries = load();
        let found = match &libraries.driver {
            Ok(_) => libraries.nvrtc.clone(),
            Err(_) => find(Part::Nvrtc, &Surroundings::of_process(), None, &open::open),
        };
        Nvrtc::new(found.ok()?.library).ok()
    };
    COMPILER.get_or_init(make).as_ref()
}

/// What `load` makes of a library that is there.
///
/// # Errors
/// Why the library can't be used, or what `load` misses in it.
pub(super) fn opened<T>(
    presence: &Presence,
    load: impl FnOnce(&'static Library) -> Result<T, String>,
) -> Result<T, String> {
    presence.as_ref().map_err(ToString::to_string).and_then(|found| load(found.library))
}

/// A function of a library that stays loaded.
///
/// # Errors
/// Its name, when there is none.
///
/// # Safety
/// `T` must be the function's type.
pub(super) unsafe fn symbol<T: Copy>(library: &'static Library, name: &str) -> Result<T, String> {
    // SAFETY: as demanded of the caller.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(|_| format!("it lacks the function {name}"))
}

impl Libraries {
    /// Looks for every library; `open` opens one at a place.
    fn find(surroundings: &Surroundings, open: impl Fn(Part, &Place) -> Result<Opened, Refusal>) -> Self {
        let driver = find(Part::Driver, surroundings, None, &open);
        let other = |part: Part| match &driver {
            Ok(found) => find(part, surroundings, Some(found.version), &open),
            Err(_) => Err(Missing {
                part,
                problems: Vec::new(),
                searched: "nowhere, since there is no driver".to_owned(),
                remedy: part.remedy(None),
            }),
        };
        let [nvrtc, cublaslt, cudnn] = [Part::Nvrtc, Part::CublasLt, Part::Cudnn].map(other);
        Self { driver, nvrtc, cublaslt, cudnn }
    }

    pub(super) fn tier(&self) -> Tier {
        match (&self.nvrtc, &self.cublaslt, &self.cudnn) {
            (Ok(_), Ok(_), Ok(_)) => Tier::Vendor,
            (Ok(_), ..) => Tier::Own,
            (Err(_), ..) => Tier::Ahead,
        }
    }

    /// Versions of those that are there, by name, as they are stored with a result.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        [&self.driver, &self.nvrtc, &self.cublaslt, &self.cudnn]
            .into_iter()
            .flatten()
            .map(|found| (found.part.key().to_owned(), format!("{}.{}", found.version.0, found.version.1)))
            .collect()
    }

    /// What a user should know of the libraries beside a device: which there are, or what is lost for want of one and
    /// how to get it.
    pub(super) fn remarks(&self) -> Vec<String> {
        let others = [&self.cudnn, &self.cublaslt, &self.nvrtc];
        let found: Vec<String> = others.into_iter().flatten().map(Found::described).collect();
        let missing = others.into_iter().filter_map(|presence| presence.as_ref().err());
        let reasons: Vec<String> = missing.map(ToString::to_string).collect();
        let tier = match self.tier() {
            Tier::Vendor => None,
            Tier::Own => Some("own kernels only"),
            Tier::Ahead => Some("own kernels only, compiled ahead of time"),
        };
        let summary = match (tier, found.is_empty()) {
            (None, _) => Some(found.join(", ")),
            (Some(tier), true) => Some(tier.to_owned()),
            (Some(tier), false) => Some(format!("{tier} ({} found)", found.join(", "))),
        };
        let remarks = others.into_iter().flatten().filter_map(|found| found.remark.clone());
        summary.into_iter().chain(reasons).chain(remarks).collect()
    }
}

/// Looks for one library beside a driver of this version.
fn find(
    part: Part,
    surroundings: &Surroundings,
    driver: Option<Version>,
    open: &impl Fn(Part, &Place) -> Result<Opened, Refusal>,
) -> Presence {
    let mut problems = Vec::new();
    let mut second_best: Option<(Opened, String, String)> = None;
    for place in surroundings.places(part) {
        let opened = match open(part, &place) {
            Ok(opened) => opened,
            Err(Refusal::Absent) => continue,
            Err(Refusal::Broken(reason)) => {
                problems.push(format!("{place}: {reason}"));
                if part == Part::Driver {
                    // Whoever loads the driver by name later would get this one.
                    break;
                }
                continue;
            }
        };
        match judge::judge(part, &opened.facts, driver) {
            Verdict::Good => return Ok(keep(part, opened, &place, None)),
            Verdict::Doubtful(remark) => {
                second_best = second_best.or_else(|| Some((opened, place.to_string(), remark)));
            }
            Verdict::Unusable(reason) => problems.push(format!("{place}: {reason}")),
        }
    }
    if let Some((opened, place, remark)) = second_best {
        return Ok(keep(part, opened, &place, Some(remark)));
    }
    problems.dedup();
    Err(Missing { part, problems, searched: surroundings.searched(part), remedy: part.remedy(driver) })
}

fn keep(part: Part, opened: Opened, place: &impl ToString, remark: Option<String>) -> Found {
    let version = opened.facts.version;
    Found { part, version, place: place.to_string(), library: opened.keep(part), remark }
}

impl Part {
    /// The name that users know.
    const fn name(self) -> &'static str {
        match self {
            Self::Driver => "the NVIDIA driver",
            Self::Nvrtc => "NVRTC",
            Self::CublasLt => "cuBLASLt",
            Self::Cudnn => "cuDNN 9",
        }
    }

    /// The name under which its version is stored.
    const fn key(self) -> &'static str {
        match self {
            Self::Driver => "cuda",
            Self::Nvrtc => "nvrtc",
            Self::CublasLt => "cublaslt",
            Self::Cudnn => "cudnn",
        }
    }

    /// What is done with it.
    const fn purpose(self) -> &'static str {
        match self {
            Self::Driver => "reaches the GPU",
            Self::Nvrtc => "compiles kernels for the GPU at hand",
            Self::CublasLt => "computes matrix products",
            Self::Cudnn => "computes convolutions",
        }
    }

    /// What to do where it is missing, beside a driver of this version.
    fn remedy(self, driver: Option<Version>) -> String {
        let is_cuda_12 = driver.is_some_and(|(major, _)| major < 13);
        let package = match self {
            Self::Driver => {
                return format!("install its driver, version {} or later", judge::OLDEST_DRIVER_PACKAGE);
            }
            Self::Nvrtc if is_cuda_12 => "nvidia-cuda-nvrtc-cu12",
            Self::Nvrtc => "nvidia-cuda-nvrtc",
            Self::CublasLt if is_cuda_12 => "nvidia-cublas-cu12",
            Self::CublasLt => "nvidia-cublas",
            Self::Cudnn if is_cuda_12 => "nvidia-cudnn-cu12",
            Self::Cudnn => "nvidia-cudnn-cu13",
        };
        format!("install it, such as by \"pip install {package}\", or name its folder in {}", search::USER_FOLDERS)
    }
}

impl Found {
    /// Name and version, and the folder where the system's loader would not have looked.
    fn described(&self) -> String {
        let folder = Path::new(&self.place).parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.map_or_else(|| self.to_string(), |folder| format!("{self} in {}", folder.display()))
    }
}

/// Name and version, such as `"cuDNN 9.14"`.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.part.name().trim_end_matches(" 9");
        write!(f, "{name} {}.{}", self.version.0, self.version.1)
    }
}

/// Why it can't be used, what for it is needed, and what to do.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, problems, searched, remedy } = self;
        if *part == Part::Driver && problems.is_empty() {
            return write!(f, "no NVIDIA driver was found in {searched}; for an NVIDIA GPU, {remedy}");
        }
        let (name, purpose) = (part.name(), part.purpose());
        if problems.is_empty() {
            write!(f, "{name}, which {purpose}, was not found in {searched}; {remedy}")
        } else {
            write!(f, "{name}, which {purpose}, can't be used: {}; {remedy}", problems.join("; "))
        }
    }
}
