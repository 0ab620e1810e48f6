//! The functions of cuBLASLt that are used, found by name in the library that the process has loaded.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use crate::engine::EngineError;
use crate::engine::cuda::library;

type Status = c_int;
type Raw = *mut c_void;

/// One proposal of the heuristic, laid out as `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Heuristic {
    pub(super) algorithm: [u64; 8],
    pub(super) workspace_bytes: usize,
    pub(super) state: Status,
    waves: f32,
    reserved: [c_int; 4],
}

type Matmul = unsafe extern "C" fn(
    Raw,
    Raw,
    *const c_void,
    *const c_void,
    Raw,
    *const c_void,
    Raw,
    *const c_void,
    *const c_void,
    Raw,
    Raw,
    Raw,
    *const u64,
    Raw,
    usize,
    Raw,
) -> Status;

type GetHeuristic =
    unsafe extern "C" fn(Raw, Raw, Raw, Raw, Raw, Raw, Raw, c_int, *mut Heuristic, *mut c_int) -> Status;

type Destroy = unsafe extern "C" fn(Raw) -> Status;

/// `CUBLAS_STATUS_NOT_SUPPORTED`.
pub(super) const NOT_SUPPORTED: Status = 15;
/// `CUBLAS_STATUS_INVALID_VALUE`.
pub(super) const INVALID_VALUE: Status = 7;

/// Functions of the library.
pub(super) struct Api {
    pub(super) create: unsafe extern "C" fn(*mut Raw) -> Status,
    destroy: Destroy,
    pub(super) create_operation: unsafe extern "C" fn(*mut Raw, c_int, c_int) -> Status,
    destroy_operation: Destroy,
    pub(super) set_operation: unsafe extern "C" fn(Raw, c_int, *const c_void, usize) -> Status,
    pub(super) create_layout: unsafe extern "C" fn(*mut Raw, c_int, u64, u64, i64) -> Status,
    destroy_layout: Destroy,
    pub(super) create_preference: unsafe extern "C" fn(*mut Raw) -> Status,
    destroy_preference: Destroy,
    pub(super) set_preference: unsafe extern "C" fn(Raw, c_int, *const c_void, usize) -> Status,
    pub(super) get_heuristic: GetHeuristic,
    pub(super) get_setting: unsafe extern "C" fn(*const u64, c_int, Raw, usize, *mut usize) -> Status,
    pub(super) matmul: Matmul,
    status_string: unsafe extern "C" fn(Status) -> *const c_char,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// The functions, looked up once.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] where the library or one of its functions is missing.
    pub(super) fn get() -> Result<&'static Self, EngineError> {
        static API: OnceLock<Result<Api, String>> = OnceLock::new();
        let api = API.get_or_init(|| library::opened(&library::load().cublaslt, Self::load));
        api.as_ref().map_err(|reason| EngineError::NotSupported { reason: format!("cuBLASLt can't be used: {reason}") })
    }

    fn load(library: &'static Library) -> Result<Self, String> {
        // SAFETY: each function is named with the signature of its declaration in cublasLt.h, which versions 12 and 13
        // share.
        unsafe {
            Ok(Self {
                create: library::symbol(library, "cublasLtCreate")?,
                destroy: library::symbol(library, "cublasLtDestroy")?,
                create_operation: library::symbol(library, "cublasLtMatmulDescCreate")?,
                destroy_operation: library::symbol(library, "cublasLtMatmulDescDestroy")?,
                set_operation: library::symbol(library, "cublasLtMatmulDescSetAttribute")?,
                create_layout: library::symbol(library, "cublasLtMatrixLayoutCreate")?,
                destroy_layout: library::symbol(library, "cublasLtMatrixLayoutDestroy")?,
                create_preference: library::symbol(library, "cublasLtMatmulPreferenceCreate")?,
                destroy_preference: library::symbol(library, "cublasLtMatmulPreferenceDestroy")?,
                set_preference: library::symbol(library, "cublasLtMatmulPreferenceSetAttribute")?,
                get_heuristic: library::symbol(library, "cublasLtMatmulAlgoGetHeuristic")?,
                get_setting: library::symbol(library, "cublasLtMatmulAlgoConfigGetAttribute")?,
                matmul: library::symbol(library, "cublasLtMatmul")?,
                status_string: library::symbol(library, "cublasLtGetStatusString")?,
            })
        }
    }

    /// Turns a status into a result.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] for the status by which the library declines; [`EngineError::Failed`] for every
    /// other failure.
    pub(super) fn check(&self, what: &str, status: Status) -> Result<(), EngineError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a constant text for any status.
        let name = unsafe { CStr::from_ptr((self.status_string)(status)) }.to_string_lossy().into_owned();
        let reason = format!("{name} ({status})");
        Err(match status {
            NOT_SUPPORTED => EngineError::NotSupported { reason: format!("{what}: {reason}") },
            _ => EngineError::Failed { what: what.to_owned(), reason },
        })
    }
}

/// Something that the library creates and destroys.
#[derive(Debug)]
pub(super) struct Object {
    api: &'static Api,
    kind: Kind,
    raw: Raw,
}

// SAFETY: the library ties no object to a thread; each has one owner.
unsafe impl Send for Object {}
// SAFETY: handles may be used by several threads; the other objects are not changed once they are made.
unsafe impl Sync for Object {}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Handle,
    Operation,
    Layout,
    Preference,
}

impl Object {
    pub(super) fn new(
        api: &'static Api,
        kind: Kind,
        create: impl FnOnce(*mut Raw) -> Status,
    ) -> Result<Self, EngineError> {
        let mut raw = ptr::null_mut();
        api.check(&format!("creating a cuBLASLt {kind:?}"), create(&raw mut raw))?;
        Ok(Self { api, kind, raw })
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let destroy = match self.kind {
            Kind::Handle => self.api.destroy,
            Kind::Operation => self.api.destroy_operation,
            Kind::Layout => self.api.destroy_layout,
            Kind::Preference => self.api.destroy_preference,
        };
        // SAFETY: the object is alive and not used again; there is nobody to tell of a failure.
        unsafe { destroy(self.raw) };
    }
}
