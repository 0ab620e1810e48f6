//! Opening a library, asking it for its version, and looking whether it has every function that is used.

use std::ffi::c_int;
use std::fs;
use std::path::{Path, PathBuf};

use libloading::Library;

use super::Part;
use super::judge::Facts;
use super::search::Place;

/// A library that is open. Dropping it closes it again.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) library: Library,
    pub(super) facts: Facts,
    /// Where it lies, when it was not the system's loader that found it.
    pub(super) folder: Option<PathBuf>,
}

/// Why a library could not be opened.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Refusal {
    /// It is not there.
    Absent,
    /// It is there, but.
    Broken(String),
}

impl Opened {
    /// The library, for as long as the process lives, with the files beside it that it opens by name later.
    pub(super) fn keep(self, part: Part) -> &'static Library {
        if let Some(folder) = &self.folder {
            let companions: &[&str] = match part {
                Part::Driver | Part::Nvrtc => &[],
                Part::CublasLt => &["cublas"],
                Part::Cudnn => &[
                    "cudnn_graph",
                    "cudnn_ops",
                    "cudnn_cnn",
                    "cudnn_heuristic",
                    "cudnn_engines_precompiled",
                    "cudnn_engines_runtime_compiled",
                ],
            };
            companions.iter().for_each(|stem| preload(folder, stem));
        }
        Box::leak(Box::new(self.library))
    }
}

/// Opens a library at a place, for everything that the process loads later to find.
pub(super) fn open(part: Part, place: &Place) -> Result<Opened, Refusal> {
    open_by(part, place, load)
}

/// [`open`] by a loader of one file or name.
pub(super) fn open_by(
    part: Part,
    place: &Place,
    load: impl Fn(&Path) -> Result<Library, String>,
) -> Result<Opened, Refusal> {
    let folder = match place {
        Place::Loader(_) => None,
        Place::File(path) => path.parent(),
    };
    if let (Part::Nvrtc, Some(folder)) = (part, folder) {
        // Some packages of the compiler do not say where its second file lies.
        preload(folder, "nvrtc-builtins");
    }
    let library = match place {
        Place::Loader(name) => load(Path::new(name)).map_err(|text| {
            // "NAME: cannot open shared object file: No such file or directory"; anything else means that it is there.
            let absent = cfg!(windows) || text.starts_with(&format!("{name}: cannot open"));
            if absent { Refusal::Absent } else { Refusal::Broken(text) }
        })?,
        Place::File(path) => load(path).map_err(Refusal::Broken)?,
    };
    let facts = facts(part, &library).map_err(Refusal::Broken)?;
    Ok(Opened { library, facts, folder: folder.map(Path::to_owned) })
}

/// Loads every file of a folder that is a library of this stem. One that fails will be missed by its user, who says so.
fn preload(folder: &Path, stem: &str) {
    let prefix = if cfg!(windows) { format!("{stem}64_") } else { format!("lib{stem}.so.") };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
            && let Ok(library) = load(&path)
        {
            std::mem::forget(library);
        }
    }
}

#[cfg(unix)]
fn load(path: &Path) -> Result<Library, String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // SAFETY: the vendor's libraries may be initialized on any thread at any time.
    let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    opened.map(Into::into).map_err(|error| text(&error))
}

#[cfg(windows)]
fn load(path: &Path) -> Result<Library, String> {
    use libloading::os::windows::{LOAD_WITH_ALTERED_SEARCH_PATH, Library};
    let flags = if path.is_absolute() { LOAD_WITH_ALTERED_SEARCH_PATH } else { 0 };
    // SAFETY: the vendor's libraries may be initialized on any thread at any time.
    let opened = unsafe { Library::load_with_flags(path, flags) };
    opened.map(Into::into).map_err(|error| text(&error))
}

/// What the system's loader says, without what wraps it.
fn text(error: &libloading::Error) -> String {
    let inner = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    inner.trim().to_owned()
}

/// What a library says of itself.
fn facts(part: Part, library: &Library) -> Result<Facts, String> {
    let lacks = functions(part).iter().copied().find(|name| {
        // SAFETY: the address is looked at, nothing is called.
        unsafe { library.get::<unsafe extern "C" fn()>(*name) }.is_err()
    });
    let (version, cuda_major) = match part {
        Part::Driver => {
            let number = driver_version(library)?;
            ((number / 1000, number % 1000 / 10), None)
        }
        Part::Nvrtc => {
            let (mut major, mut minor) = (0, 0);
            type GetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
            // SAFETY: the function writes one integer to each address.
            let status = unsafe {
                let version = library.get::<GetVersion>("nvrtcVersion").map_err(|_| lacking("nvrtcVersion"))?;
                version(&raw mut major, &raw mut minor)
            };
            if status != 0 {
                return Err(format!("nvrtcVersion returned {status}"));
            }
            ((major.unsigned_abs(), minor.unsigned_abs()), Some(major.unsigned_abs()))
        }
        Part::CublasLt => {
            let number = returned(library, "cublasLtGetVersion")?;
            let version = (number / 10_000, number / 100 % 100);
            (version, Some(version.0))
        }
        Part::Cudnn => {
            let number = returned(library, "cudnnGetVersion")?;
            // Up to version 8 the major version stood for thousands.
            let version = if number < 10_000 {
                (number / 1000, number / 100 % 10)
            } else {
                (number / 10_000, number / 100 % 100)
            };
            (version, returned(library, "cudnnGetCudartVersion").ok().map(|number| number / 1000))
        }
    };
    Ok(Facts { version, cuda_major, lacks })
}

fn lacking(name: &str) -> String {
    format!("it lacks the function {name}")
}

/// Version that a function returns.
fn returned(library: &Library, name: &str) -> Result<u32, String> {
    // SAFETY: the function takes nothing and returns a size, as in the library's header.
    let version = unsafe { library.get::<unsafe extern "C" fn() -> usize>(name).map_err(|_| lacking(name))?() };
    u32::try_from(version).map_err(|_| format!("{name} returned {version}"))
}

/// Version of CUDA that the driver supports, such as 12040.
fn driver_version(library: &Library) -> Result<u32, String> {
    /// What a toolkit's stub answers to everything: `CUDA_ERROR_STUB_LIBRARY`.
    const STUB: c_int = 34;
    type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;
    let (name, mut version) = ("cuDriverGetVersion", 0);
    // SAFETY: the function writes one integer, as in the library's header.
    let status = unsafe { library.get::<GetVersion>(name).map_err(|_| lacking(name))?(&raw mut version) };
    match status {
        0 => Ok(version.unsigned_abs()),
        STUB => {
            Err("it is a toolkit's stub and not a driver; take the folder \"stubs\" out of LD_LIBRARY_PATH".to_owned())
        }
        status => Err(format!("{name} returned {status}")),
    }
}

/// Functions that are used of a library beyond those that every version has. Whoever calls another one adds it here: a
/// binding that does not find it ends the process's work with a panic.
pub(super) fn functions(part: Part) -> &'static [&'static str] {
    match part {
        Part::Driver => &[
            "cuCtxGetCurrent",
            "cuCtxSetCurrent",
            "cuCtxSynchronize",
            "cuDeviceGet",
            "cuDeviceGetAttribute",
            "cuDeviceGetCount",
            "cuDeviceGetName",
            "cuDeviceGetPCIBusId",
            "cuDeviceGetUuid_v2",
            "cuDevicePrimaryCtxRelease_v2",
            "cuDevicePrimaryCtxRetain",
            "cuDeviceTotalMem_v2",
            "cuEventCreate",
            "cuEventDestroy_v2",
            "cuEventElapsedTime",
            "cuEventRecord",
            "cuEventRecordWithFlags",
            "cuEventSynchronize",
            "cuFuncSetAttribute",
            "cuGetErrorString",
            "cuGraphDestroy",
            "cuGraphExecDestroy",
            "cuGraphInstantiateWithFlags",
            "cuGraphLaunch",
            "cuGraphUpload",
            "cuInit",
            "cuLaunchKernel",
            "cuMemAlloc_v2",
            "cuMemFree_v2",
            "cuMemGetInfo_v2",
            "cuMemcpyDtoDAsync_v2",
            "cuMemcpyDtoH_v2",
            "cuMemcpyHtoD_v2",
            "cuMemsetD8_v2",
            "cuModuleGetFunction",
            "cuModuleLoadData",
            "cuModuleUnload",
            "cuStreamBeginCapture_v2",
            "cuStreamCreate",
            "cuStreamDestroy_v2",
            "cuStreamEndCapture",
            "cuStreamSynchronize",
        ],
        Part::Nvrtc => &[
            "nvrtcCompileProgram",
            "nvrtcCreateProgram",
            "nvrtcDestroyProgram",
            "nvrtcGetCUBIN",
            "nvrtcGetCUBINSize",
            "nvrtcGetErrorString",
            "nvrtcGetNumSupportedArchs",
            "nvrtcGetPTX",
            "nvrtcGetPTXSize",
            "nvrtcGetProgramLog",
            "nvrtcGetProgramLogSize",
            "nvrtcGetSupportedArchs",
        ],
        Part::CublasLt => &[
            "cublasLtCreate",
            "cublasLtDestroy",
            "cublasLtGetStatusString",
            "cublasLtMatmul",
            "cublasLtMatmulAlgoConfigGetAttribute",
            "cublasLtMatmulAlgoGetHeuristic",
            "cublasLtMatmulDescCreate",
            "cublasLtMatmulDescDestroy",
            "cublasLtMatmulDescSetAttribute",
            "cublasLtMatmulPreferenceCreate",
            "cublasLtMatmulPreferenceDestroy",
            "cublasLtMatmulPreferenceSetAttribute",
            "cublasLtMatrixLayoutCreate",
            "cublasLtMatrixLayoutDestroy",
        ],
        Part::Cudnn => &[
            "cudnnBackendCreateDescriptor",
            "cudnnBackendDestroyDescriptor",
            "cudnnBackendExecute",
            "cudnnBackendFinalize",
            "cudnnBackendGetAttribute",
            "cudnnBackendSetAttribute",
            "cudnnCreate",
            "cudnnDestroy",
            "cudnnGetErrorString",
            "cudnnGetLastErrorString",
            "cudnnSetStream",
        ],
    }
}
