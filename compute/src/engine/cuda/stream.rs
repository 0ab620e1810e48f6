//! Commands on their way to the device: kernels compiled and loaded, places turned into addresses, graphs captured.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUevent_flags, CUfunction_attribute, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaModule, CudaStream, result};
use cudarc::nvrtc::Ptx;

use super::ahead;
use super::driver;
use super::error::driver_error;
use super::launch::{Candidate, Command, Facts, Kernel, Launch, Lowering, Place};
use super::nvrtc::Nvrtc;
use super::vendor::Vendor;
use crate::engine::EngineError;
use crate::ops::BufferId;
use crate::shape::Precision;

/// Shared memory of a block that needs no opting in.
const DEFAULT_SHARED_BYTES: u32 = 48 << 10;

/// An opened device's one stream, and the kernels loaded so far; they outlive a session.
pub(super) struct Gpu {
    // Its handles belong to the stream, so it goes first.
    pub(super) vendor: Option<Vendor>,
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    pub(super) facts: Facts,
    compiler: Option<&'static Nvrtc>,
    modules: Mutex<HashMap<(&'static str, Precision), Arc<CudaModule>>>,
    functions: Mutex<HashMap<(Kernel, Precision), Loaded>>,
}

/// A kernel's function.
struct Loaded {
    function: CudaFunction,
    /// Dynamic shared memory that blocks may have so far.
    shared_bytes: u32,
}

/// Where the places of one step's commands are.
#[derive(Clone, Copy)]
pub(super) struct Addresses<'a> {
    /// Address of each buffer of the plan.
    pub(super) buffers: &'a [u64],
    pub(super) workspace: u64,
    pub(super) kept: u64,
    pub(super) tickets: u64,
}

impl Addresses<'_> {
    pub(super) fn of(&self, place: Place) -> u64 {
        match place {
            Place::Null => 0,
            Place::Address(address) => address,
            Place::Buffer { id: BufferId(idx), offset } => self.buffers[idx as usize] + offset,
            Place::Workspace { offset } => self.workspace + offset,
            Place::Kept { offset } => self.kept + offset,
            Place::Tickets => self.tickets,
        }
    }
}

impl Gpu {
    pub(super) fn new(
        context: Arc<CudaContext>,
        facts: Facts,
        compiler: Option<&'static Nvrtc>,
    ) -> Result<Self, EngineError> {
        let stream = context.new_stream().map_err(|error| driver_error("making a stream", error))?;
        Ok(Self {
            vendor: None,
            context,
            stream,
            facts,
            compiler,
            modules: Mutex::default(),
            functions: Mutex::default(),
        })
    }

    /// Opens cuDNN and cuBLASLt, for whose commands [`super::conv2d`] asks then.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] and [`EngineError::Failed`] as they report.
    pub(super) fn open_vendor(&mut self) -> Result<(), EngineError> {
        self.context.bind_to_thread().map_err(|error| driver_error("binding the context", error))?;
        self.vendor = Some(Vendor::new(self.stream.cu_stream())?);
        Ok(())
    }

    /// The vendor's libraries, where they are open and are to be asked.
    pub(super) fn vendor_for(&self, lowering: &Lowering) -> Option<&Vendor> {
        self.vendor.as_ref().filter(|_| !lowering.is_quick)
    }

    /// Whether kernels are compiled for the device at hand, so that its own instructions can be used.
    pub(super) fn compiles(&self) -> bool {
        self.compiler.is_some()
    }

    /// Waits until everything queued is done.
    pub(super) fn wait(&self) -> Result<(), EngineError> {
        self.stream.synchronize().map_err(|error| driver_error("waiting for the device", error))
    }

    /// Compiles and loads what the candidates' kernels need, and `files`, several at once.
    pub(super) fn load<'a>(
        &self,
        candidates: impl Iterator<Item = &'a Candidate>,
        files: Option<&'static str>,
        precision: Precision,
    ) -> Result<(), EngineError> {
        let mut missing: Vec<&'static str> = Vec::new();
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        for command in candidates.flat_map(|candidate| candidate.prepare.iter().chain(&candidate.commands)) {
            if let Command::Kernel(launch) = command {
                let file = launch.kernel.file;
                if !modules.contains_key(&(file, precision)) && !missing.contains(&file) {
                    missing.push(file);
                }
            }
        }
        missing.extend(files.filter(|file| !modules.contains_key(&(file, precision))));
        drop(modules);
        let images: Vec<_> = std::thread::scope(|scope| {
            let start = |&file: &&'static str| scope.spawn(move || self.image(file, precision));
            let threads: Vec<_> = missing.iter().map(start).collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        for (file, image) in missing.into_iter().zip(images) {
            let image = image.map_err(|_| EngineError::Failed {
                what: format!("compiling {file}.cu"),
                reason: "the compiler panicked".into(),
            })??;
            let loaded = self
                .context
                .load_module(Ptx::from_binary(image.to_vec()))
                .map_err(|error| driver_error(&format!("loading {file}.cu for {precision}"), error))?;
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            modules.insert((file, precision), loaded);
        }
        Ok(())
    }

    /// Machine code, or PTX, of a kernel file.
    fn image(&self, file: &'static str, precision: Precision) -> Result<Arc<Vec<u8>>, EngineError> {
        match self.compiler {
            Some(compiler) => compiler.kernel(file, precision, self.facts.capability),
            None => ahead::image(file, precision),
        }
    }

    fn function(&self, launch: &Launch, precision: Precision) -> Result<CudaFunction, EngineError> {
        let Kernel { file, entry } = launch.kernel;
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = functions.get(&(launch.kernel, precision));
        if let Some(loaded) = known.filter(|loaded| loaded.shared_bytes >= launch.shared_bytes) {
            return Ok(loaded.function.clone());
        }
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module = modules.get(&(file, precision)).ok_or_else(|| EngineError::Failed {
            what: format!("launching {entry}"),
            reason: format!("{file}.cu is not loaded"),
        })?;
        let function = module
            .load_function(entry)
            .map_err(|error| driver_error(&format!("finding {entry} in {file}.cu"), error))?;
        // An entry point may be launched with more shared memory for one shape than for another.
        if launch.shared_bytes > DEFAULT_SHARED_BYTES {
            function
                .set_attribute(
                    CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    launch.shared_bytes as i32,
                )
                .map_err(|error| driver_error(&format!("asking for shared memory of {entry}"), error))?;
        }
        let shared_bytes = launch.shared_bytes.max(DEFAULT_SHARED_BYTES);
        functions.insert((launch.kernel, precision), Loaded { function: function.clone(), shared_bytes });
        Ok(function)
    }

    /// Puts one command on the stream.
    pub(super) fn enqueue(
        &self,
        command: &Command,
        addresses: Addresses<'_>,
        precision: Precision,
    ) -> Result<(), EngineError> {
        match command {
            Command::Kernel(launch) => self.launch(launch, addresses, precision),
            Command::Cudnn { .. } | Command::Matmul { .. } => {
                let vendor = self.vendor.as_ref().ok_or_else(|| EngineError::NotSupported {
                    reason: "the vendor's libraries are not open".to_owned(),
                })?;
                // SAFETY: the places lie in memory that the session holds, as large as the command's tensors.
                unsafe { vendor.enqueue(command, |place| addresses.of(place)) }
            }
        }
    }

    fn launch(&self, launch: &Launch, addresses: Addresses<'_>, precision: Precision) -> Result<(), EngineError> {
        let function = self.function(launch, precision)?;
        let pointers: Vec<u64> = launch.pointers.iter().map(|&place| addresses.of(place)).collect();
        let mut arguments: Vec<*mut c_void> = pointers.iter().map(|pointer| std::ptr::from_ref(pointer) as _).collect();
        if !launch.parameters.is_empty() {
            arguments.push(launch.parameters.as_ptr() as _);
        }
        let [x, y, z] = launch.grid;
        // SAFETY: the arguments are as many and as long as the kernel's: pointers into memory that the session holds,
        // then its `Params` word by word; a test launches every kernel. The driver copies them before it returns.
        unsafe {
            result::launch_kernel(
                function.cu_function(),
                (x, y, z),
                (launch.threads, 1, 1),
                launch.shared_bytes,
                self.stream.cu_stream(),
                &mut arguments,
            )
        }
        .map_err(|error| driver_error(&format!("launching {}", launch.kernel.entry), error))
    }

    /// Records an event so that it can be asked for its time although it is captured into a graph.
    pub(super) fn record(&self, event: &CudaEvent) -> Result<(), EngineError> {
        /// `CU_EVENT_RECORD_EXTERNAL` of cuda.h.
        const EXTERNAL: u32 = 1;
        // SAFETY: event and stream are alive and of one context.
        unsafe { sys::cuEventRecordWithFlags(event.cu_event(), self.stream.cu_stream(), EXTERNAL) }
            .result()
            .map_err(|error| driver_error("recording an event", error))
    }

    /// A new event that keeps time.
    pub(super) fn event(&self) -> Result<CudaEvent, EngineError> {
        self.context
            .new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
            .map_err(|error| driver_error("making an event", error))
    }

    /// Seconds that what `enqueue` puts on the stream takes on the device.
    pub(super) fn seconds(&self, enqueue: impl FnOnce() -> Result<(), EngineError>) -> Result<f64, EngineError> {
        let (begin, end) = (self.event()?, self.event()?);
        let record =
            |event: &CudaEvent| event.record(&self.stream).map_err(|error| driver_error("recording an event", error));
        record(&begin)?;
        enqueue()?;
        record(&end)?;
        self.wait()?;
        Ok(driver::elapsed_ms(&begin, &end)? / 1e3)
    }

    /// Captures what `enqueue` puts on the stream into a graph.
    ///
    /// # Errors
    /// Those of `enqueue`, and what the driver reports of capture.
    pub(super) fn capture(
        &self,
        enqueue: impl FnOnce() -> Result<(), EngineError>,
    ) -> Result<Option<CudaGraph>, EngineError> {
        self.stream
            .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .map_err(|error| driver_error("beginning a graph", error))?;
        let outcome = enqueue();
        // Capture must end whatever happened in it.
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0));
        outcome?;
        graph.map_err(|error| driver_error("making a graph of an iteration", error))
    }
}
