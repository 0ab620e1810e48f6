//! NVRTC: CUDA C compiled for the device at hand, while the program runs.
//!
//! The result is machine code (CUBIN), which a driver older than the compiler still takes where PTX is refused. Only a
//! device that the compiler does not know yet gets PTX, which its driver translates. Nothing is read from files: no
//! option names a path.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use libloading::Library;

use super::{kernels, library};
use crate::engine::EngineError;
use crate::shape::Precision;

/// What a text is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Machine code of one architecture, such as `"sm_90a"`.
    Cubin(String),
    /// PTX of a virtual architecture, such as `"compute_80"`.
    Ptx(String),
}

/// The compiler, and what it has compiled so far.
pub(super) struct Nvrtc {
    api: Api,
    version: (u32, u32),
    /// Architectures that it knows, such as 90, ascending.
    architectures: Vec<u32>,
    compiled: Mutex<HashMap<Key, Arc<Vec<u8>>>>,
}

/// What makes two images the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    capability: (u32, u32),
    version: (u32, u32),
    file: &'static str,
    precision: Precision,
}

/// Functions of the library. A status is an integer: a newer library may return one that no list knows.
struct Api {
    create_program: unsafe extern "C" fn(
        *mut *mut c_void,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy_program: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    compile_program: unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int,
    log_size: GetSize,
    log: GetBytes,
    cubin_size: GetSize,
    cubin: GetBytes,
    ptx_size: GetSize,
    ptx: GetBytes,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    n_architectures: unsafe extern "C" fn(*mut c_int) -> c_int,
    architectures: unsafe extern "C" fn(*mut c_int) -> c_int,
}

type GetSize = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
type GetBytes = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;

impl Nvrtc {
    /// The compiler in a library that stays loaded.
    ///
    /// # Errors
    /// The name of a function that the library lacks, or what it reports.
    pub(super) fn new(library: &'static Library) -> Result<Self, String> {
        let api = Api::new(library)?;
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: both functions write one integer to each address.
        let (status, other) =
            unsafe { ((api.version)(&raw mut major, &raw mut minor), (api.n_architectures)(&raw mut count)) };
        if status != 0 || other != 0 {
            return Err(format!("it does not state its version: {}", api.message(status.max(other))));
        }
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the function writes as many integers as it counted.
        let status = unsafe { (api.architectures)(architectures.as_mut_ptr()) };
        if status != 0 {
            return Err(format!("it does not state its architectures: {}", api.message(status)));
        }
        let mut architectures: Vec<u32> =
            architectures.into_iter().filter_map(|number| u32::try_from(number).ok()).collect();
        architectures.sort_unstable();
        Ok(Self {
            api,
            version: (major.unsigned_abs(), minor.unsigned_abs()),
            architectures,
            compiled: Mutex::default(),
        })
    }

    /// Major and minor version.
    pub(super) fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Image of a kernel file, to be loaded by the driver: compiled at the first call, kept for later ones.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] for a device older than any that the compiler knows, [`EngineError::Failed`] with
    /// the compiler's log.
    ///
    /// # Panics
    /// When there is no such file.
    pub(super) fn kernel(
        &self,
        file: &'static str,
        precision: Precision,
        capability: (u32, u32),
    ) -> Result<Arc<Vec<u8>>, EngineError> {
        let key = Key { capability, version: self.version, file, precision };
        cached(&self.compiled, key, || self.compile(&kernels::text(file, precision), file, capability))
    }

    /// Compiles a text for a compute capability; `file` is what its log is called by.
    ///
    /// # Errors
    /// As [`Self::kernel`].
    pub(super) fn compile(&self, text: &str, file: &str, capability: (u32, u32)) -> Result<Vec<u8>, EngineError> {
        let target = target(capability, &self.architectures).ok_or_else(|| EngineError::NotSupported {
            reason: format!(
                "compute capability {}.{} is older than any that NVRTC {}.{} compiles for; install NVRTC of an older major \
                 version",
                capability.0, capability.1, self.version.0, self.version.1
            ),
        })?;
        self.build(text, file, &target)
    }

    /// Compiles a text to PTX of a virtual architecture, such as `"compute_80"`; the result ends with a zero byte.
    ///
    /// # Errors
    /// [`EngineError::Failed`] with the compiler's log.
    pub(super) fn compile_ptx(&self, text: &str, file: &str, architecture: &str) -> Result<Vec<u8>, EngineError> {
        self.build(text, file, &Target::Ptx(architecture.to_owned()))
    }

    fn build(&self, text: &str, file: &str, target: &Target) -> Result<Vec<u8>, EngineError> {
        let failed = |reason: String| EngineError::Failed { what: format!("compiling {file}.cu for {target}"), reason };
        let text = CString::new(text).map_err(|_| failed("the text holds a zero byte".to_owned()))?;
        let name = CString::new(format!("{file}.cu")).map_err(|_| failed("the name holds a zero byte".to_owned()))?;
        let options: Vec<CString> =
            options(target).into_iter().filter_map(|option| CString::new(option).ok()).collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = Program { api: &self.api, handle: ptr::null_mut() };
        // SAFETY: the strings outlive the call; without headers the last two pointers are not read.
        let status = unsafe {
            (self.api.create_program)(
                &raw mut program.handle,
                text.as_ptr(),
                name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        if status != 0 {
            return Err(failed(self.api.message(status)));
        }
        // SAFETY: the program was made above, and the options outlive the call.
        let status = unsafe { (self.api.compile_program)(program.handle, options.len() as c_int, options.as_ptr()) };
        if status != 0 {
            let log = program.bytes(self.api.log_size, self.api.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
            return Err(failed(format!("{}\n{log}", self.api.message(status)).trim().to_owned()));
        }
        let (size, bytes) = match target {
            Target::Cubin(_) => (self.api.cubin_size, self.api.cubin),
            Target::Ptx(_) => (self.api.ptx_size, self.api.ptx),
        };
        program.bytes(size, bytes).map_err(|status| failed(self.api.message(status)))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Cubin(name) | Self::Ptx(name)) = self;
        f.pad(name)
    }
}

/// What the image of `key` is, made by `compile` where it is not kept. Two threads may both make it.
fn cached(
    kept: &Mutex<HashMap<Key, Arc<Vec<u8>>>>,
    key: Key,
    compile: impl FnOnce() -> Result<Vec<u8>, EngineError>,
) -> Result<Arc<Vec<u8>>, EngineError> {
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lock().get(&key).cloned();
    if let Some(image) = found {
        return Ok(image);
    }
    let image = Arc::new(compile()?);
    lock().insert(key, Arc::clone(&image));
    Ok(image)
}

/// What a compiler that knows `architectures` compiles for a device: its own machine code, or PTX of the newest
/// virtual architecture that the device is not older than. Nothing for a device older than all of them.
///
/// Hopper's asynchronous tensor cores exist in the architecture's own variant alone, `sm_90a`.
pub(super) fn target(capability: (u32, u32), architectures: &[u32]) -> Option<Target> {
    let number = capability.0 * 10 + capability.1;
    if architectures.contains(&number) {
        let variant = if number == 90 { "a" } else { "" };
        return Some(Target::Cubin(format!("sm_{number}{variant}")));
    }
    let newest = architectures.iter().filter(|&&known| known < number).max()?;
    Some(Target::Ptx(format!("compute_{newest}")))
}

/// Options of the compiler. None names a path (R23).
fn options(target: &Target) -> Vec<String> {
    vec![format!("--gpu-architecture={target}"), "--std=c++17".to_owned()]
}

/// A program of the compiler, destroyed with this value.
struct Program<'a> {
    api: &'a Api,
    handle: *mut c_void,
}

impl Program<'_> {
    fn bytes(&self, size: GetSize, bytes: GetBytes) -> Result<Vec<u8>, c_int> {
        let mut length = 0;
        // SAFETY: the program is alive, and one number is written.
        let status = unsafe { size(self.handle, &raw mut length) };
        if status != 0 {
            return Err(status);
        }
        let mut buffer = vec![0; length];
        // SAFETY: the program is alive, and as many bytes are written as it stated.
        let status = unsafe { bytes(self.handle, buffer.as_mut_ptr().cast()) };
        if status == 0 { Ok(buffer) } else { Err(status) }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the program was made by this library and is destroyed once.
            unsafe { (self.api.destroy_program)(&raw mut self.handle) };
        }
    }
}

impl Api {
    fn new(library: &'static Library) -> Result<Self, String> {
        // SAFETY: the signatures are those of nvrtc.h, the same in every version since 11.2.
        unsafe {
            Ok(Self {
                create_program: library::symbol(library, "nvrtcCreateProgram")?,
                destroy_program: library::symbol(library, "nvrtcDestroyProgram")?,
                compile_program: library::symbol(library, "nvrtcCompileProgram")?,
                log_size: library::symbol(library, "nvrtcGetProgramLogSize")?,
                log: library::symbol(library, "nvrtcGetProgramLog")?,
                cubin_size: library::symbol(library, "nvrtcGetCUBINSize")?,
                cubin: library::symbol(library, "nvrtcGetCUBIN")?,
                ptx_size: library::symbol(library, "nvrtcGetPTXSize")?,
                ptx: library::symbol(library, "nvrtcGetPTX")?,
                error_string: library::symbol(library, "nvrtcGetErrorString")?,
                version: library::symbol(library, "nvrtcVersion")?,
                n_architectures: library::symbol(library, "nvrtcGetNumSupportedArchs")?,
                architectures: library::symbol(library, "nvrtcGetSupportedArchs")?,
            })
        }
    }

    fn message(&self, status: c_int) -> String {
        // SAFETY: the function returns a string that lives as long as the library, for any number.
        let text = unsafe {
            let text = (self.error_string)(status);
            if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
        };
        text.unwrap_or_else(|| format!("status {status}"))
    }
}
