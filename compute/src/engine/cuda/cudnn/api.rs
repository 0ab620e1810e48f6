//! The functions of cuDNN that are used, found by name in the library that the process has loaded.
//!
//! They are declared here and not taken from bindings because a status is a plain integer: newer libraries return values
//! that no enumeration of ours lists.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::sync::OnceLock;

use libloading::Library;

use crate::engine::EngineError;
use crate::engine::cuda::library;

type Status = c_int;
type Raw = *mut c_void;

/// Functions of the library.
pub(super) struct Api {
    pub(super) version: unsafe extern "C" fn() -> usize,
    pub(super) create: unsafe extern "C" fn(*mut Raw) -> Status,
    pub(super) destroy: unsafe extern "C" fn(Raw) -> Status,
    pub(super) set_stream: unsafe extern "C" fn(Raw, Raw) -> Status,
    pub(super) create_descriptor: unsafe extern "C" fn(c_int, *mut Raw) -> Status,
    pub(super) destroy_descriptor: unsafe extern "C" fn(Raw) -> Status,
    pub(super) set_attribute: unsafe extern "C" fn(Raw, c_int, c_int, i64, *const c_void) -> Status,
    pub(super) get_attribute: unsafe extern "C" fn(Raw, c_int, c_int, i64, *mut i64, *mut c_void) -> Status,
    pub(super) finalize: unsafe extern "C" fn(Raw) -> Status,
    pub(super) execute: unsafe extern "C" fn(Raw, Raw, Raw) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    last_error: unsafe extern "C" fn(*mut c_char, usize),
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
        let api = API.get_or_init(|| library::opened(&library::load().cudnn, Self::load));
        api.as_ref().map_err(|reason| EngineError::NotSupported { reason: format!("cuDNN 9 can't be used: {reason}") })
    }

    fn load(library: &'static Library) -> Result<Self, String> {
        // SAFETY: each function is named with the signature of its declaration in cudnn_graph.h, version 9.
        unsafe {
            Ok(Self {
                version: library::symbol(library, "cudnnGetVersion")?,
                create: library::symbol(library, "cudnnCreate")?,
                destroy: library::symbol(library, "cudnnDestroy")?,
                set_stream: library::symbol(library, "cudnnSetStream")?,
                create_descriptor: library::symbol(library, "cudnnBackendCreateDescriptor")?,
                destroy_descriptor: library::symbol(library, "cudnnBackendDestroyDescriptor")?,
                set_attribute: library::symbol(library, "cudnnBackendSetAttribute")?,
                get_attribute: library::symbol(library, "cudnnBackendGetAttribute")?,
                finalize: library::symbol(library, "cudnnBackendFinalize")?,
                execute: library::symbol(library, "cudnnBackendExecute")?,
                error_string: library::symbol(library, "cudnnGetErrorString")?,
                last_error: library::symbol(library, "cudnnGetLastErrorString")?,
            })
        }
    }

    /// Turns a status into a result.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] for the statuses 3000 to 3999, by which a heuristic or a plan declines;
    /// [`EngineError::Failed`] for every other failure.
    pub(super) fn check(&self, what: &str, status: Status) -> Result<(), EngineError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a constant text for any status.
        let name = unsafe { CStr::from_ptr((self.error_string)(status)) }.to_string_lossy().into_owned();
        let mut message = [0_u8; 512];
        // SAFETY: the library writes at most the given number of bytes.
        unsafe { (self.last_error)(message.as_mut_ptr().cast(), message.len()) };
        let message = CStr::from_bytes_until_nul(&message).unwrap_or_default().to_string_lossy();
        let message = message.lines().next().unwrap_or_default();
        let reason = format!("{name} ({status}) {message}").trim_end().to_owned();
        Err(match status {
            3000..4000 => EngineError::NotSupported { reason: format!("{what}: {reason}") },
            _ => EngineError::Failed { what: what.to_owned(), reason },
        })
    }
}
