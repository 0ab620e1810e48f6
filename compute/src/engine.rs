//! Engines: a device that is open, and a plan resident on it.
//!
//! Engines know plans, not graphs or models. [`cpu`] is the reference that the others are verified against, [`cuda`] runs
//! on NVIDIA GPUs through their driver, [`wgsl`] on any GPU through wgpu; [`fake`] plays scripted durations and faults so
//! that everything above the device is tested without one.

pub mod cpu;
#[expect(unsafe_code, reason = "a driver and its libraries are C functions; everything else is safe")]
pub mod cuda;
pub mod fake;
#[cfg(test)]
mod sketch;
pub mod wgsl;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ops::BufferId;
use crate::plan::Plan;
use crate::shape::{Precision, UnknownName, parse_name};

pub use cuda::Tier;

/// How a run is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Vendor libraries and kernels of our own through the CUDA driver, on NVIDIA GPUs.
    Cuda,
    /// Compute shaders through wgpu: Vulkan, DX12, Metal, OpenGL.
    Wgsl,
    /// The reference on the processor.
    Cpu,
    /// Scripted, for tests; never offered to users.
    Fake,
}

impl EngineKind {
    /// The engines offered to users.
    pub const ALL: [Self; 3] = [Self::Cuda, Self::Wgsl, Self::Cpu];

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Wgsl => "wgsl",
            Self::Cpu => "cpu",
            Self::Fake => "fake",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        parse_name("engine", text, &Self::ALL, Self::name)
    }
}

/// Kind of a device, as its driver states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU behind a hypervisor.
    Virtual,
    /// A GPU computed by the processor, such as llvmpipe. Never chosen silently.
    Software,
    /// The processor itself.
    Cpu,
    /// Not known.
    #[default]
    Other,
}

/// A device as stored in a result file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// What `batchmark devices` prints and `--device` takes, such as `"0000:3b:00.0"`, `"vulkan-0"`, `"cpu"` or,
    /// through CUDA, the UUID.
    pub id: String,
    /// Name given by the driver.
    pub name: String,
    /// Kind of device.
    pub kind: DeviceKind,
    /// Vendor's name; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// PCI address `domain:bus:device.function`; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_address: Option<String>,
    /// UUID given by the vendor's management library; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Dedicated memory in bytes; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Driver's name and version; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Programming interface that reaches it, such as `"Vulkan"`; absent for the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Limits that can matter to a run, such as `max_storage_buffer_binding_size`, in the unit of the interface.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Device {
    /// Whether both are one device, whichever engines saw them: by identifier, else by UUID where both have one, else by
    /// PCI address.
    pub fn is_same(&self, other: &Self) -> bool {
        let equal = |a: &Option<String>, b: &Option<String>| Some(a.as_ref()?.eq_ignore_ascii_case(b.as_ref()?));
        let by_uuid = || equal(&self.uuid, &other.uuid);
        let by_address = || equal(&self.pci_address, &other.pci_address);
        self.id == other.id || by_uuid().or_else(by_address).unwrap_or(false)
    }
}

/// One device as seen by one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    /// The engine.
    pub engine: EngineKind,
    /// The device.
    pub device: Device,
    /// Precisions that the engine computes on it.
    pub precisions: Vec<Precision>,
    /// What a user should know of how the engine works on it, one sentence each, such as which libraries compute or what
    /// is lost for want of one; empty when there is nothing to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Why it can't be used; absent when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

impl Listing {
    /// In place of an engine's devices, where none could be found: why.
    pub fn nothing(engine: EngineKind, reason: String) -> Self {
        let device = Device { id: "none".to_owned(), name: "no device".to_owned(), ..Device::default() };
        Self { engine, device, precisions: Vec::new(), remarks: Vec::new(), unavailable: Some(reason) }
    }
}

/// Why an engine did not do what it was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// Device memory did not suffice.
    #[error("{requested_bytes} bytes for {what} could not be allocated")]
    OutOfMemory {
        /// Bytes of the allocation that failed, or of the whole plan when that is known not to fit.
        requested_bytes: u64,
        /// What they were for.
        what: String,
    },
    /// The device can't hold or bind something of this size, whatever its memory.
    #[error("{what} needs {needed}, the device's {limit} is {allowed}")]
    ExceedsDeviceLimit {
        /// What is too large.
        what: String,
        /// What it needs, in the limit's unit.
        needed: u64,
        /// Name of the limit.
        limit: String,
        /// The limit's value.
        allowed: u64,
    },
    /// The engine or the device does not offer this.
    #[error("{reason}")]
    NotSupported {
        /// What is missing.
        reason: String,
    },
    /// The device went away; it must be opened anew.
    #[error("the device was lost: {reason}")]
    DeviceLost {
        /// What the driver said.
        reason: String,
    },
    /// There is no such device.
    #[error("no device {id:?} for this engine, there are: {available}")]
    NoSuchDevice {
        /// What was asked for.
        id: String,
        /// Identifiers of those that exist.
        available: String,
    },
    /// Anything else that a driver or compiler reports.
    #[error("{what}: {reason}")]
    Failed {
        /// What was attempted, with the entry point where there is one.
        what: String,
        /// What was reported.
        reason: String,
    },
}

/// Times of one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Time on the device's own clock; absent when it has none or the clock is not trustworthy.
    pub device_secs: Option<f64>,
    /// Time on the host's clock, the wait for the device included. Of iterations queued together, the mean.
    pub host_secs: f64,
}

/// Time of one step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTime {
    /// Median over the iterations that were profiled.
    pub secs: f64,
    /// What computed it: kernels and library routines with their variants.
    pub kernel: String,
}

/// Median of each step over several iterations, which have one time a step each.
pub(crate) fn step_medians(iterations: &[Vec<f64>]) -> Vec<f64> {
    let n_steps = iterations.first().map_or(0, Vec::len);
    let median = |step: usize| {
        let mut secs: Vec<f64> = iterations.iter().map(|iteration| iteration[step]).collect();
        secs.sort_by(f64::total_cmp);
        let middle = secs.len() / 2;
        if secs.len().is_multiple_of(2) { secs[middle - 1].midpoint(secs[middle]) } else { secs[middle] }
    };
    (0..n_steps).map(median).collect()
}

/// Device memory of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that the session holds on the device, padding and workspace included. It allocates when it is loaded and
    /// never later; while it chooses kernels it may hold more for a moment.
    pub peak_bytes: u64,
    /// Bytes of it that are workspace, not the plan's buffers.
    pub workspace_bytes: u64,
}

/// Every device of an engine, or why there is none. The fake engine lists those of `script`, or of its default.
pub fn listings(kind: EngineKind, script: Option<&fake::Script>) -> Vec<Listing> {
    match kind {
        EngineKind::Fake => script.cloned().unwrap_or_default().listings(),
        EngineKind::Cpu => vec![cpu::listing()],
        EngineKind::Cuda => cuda::listings(),
        EngineKind::Wgsl => wgsl::listings(),
    }
}

/// Opens a device by its [`Device::id`]. The fake engine plays `script`, or its default; the CUDA engine uses no more of
/// the vendor's libraries than `tier` says.
///
/// # Errors
/// [`EngineError::NoSuchDevice`] and whatever the driver reports.
pub fn open(
    kind: EngineKind,
    id: &str,
    script: Option<&fake::Script>,
    tier: Tier,
) -> Result<Box<dyn Engine>, EngineError> {
    match kind {
        EngineKind::Fake => Ok(Box::new(fake::Fake::open(&script.cloned().unwrap_or_default(), id)?)),
        EngineKind::Cpu if id == cpu::DEVICE_ID => cpu::open(),
        EngineKind::Cpu => Err(EngineError::NoSuchDevice { id: id.to_owned(), available: cpu::DEVICE_ID.to_owned() }),
        EngineKind::Cuda => cuda::open(id, tier),
        EngineKind::Wgsl => wgsl::open(id),
    }
}

/// The archive of CUDA kernels that `shaders/ahead_of_time.json.gz` holds, made anew by NVRTC.
///
/// # Errors
/// [`EngineError::NotSupported`] without NVRTC, [`EngineError::Failed`] with its log.
pub fn compile_ahead_of_time() -> Result<Vec<u8>, EngineError> {
    cuda::compile_ahead_of_time()
}

/// An open device.
pub trait Engine {
    /// The device.
    fn device(&self) -> &Device;

    /// Versions of the libraries that compute, by name.
    fn libraries(&self) -> BTreeMap<String, String>;

    /// The host's monotonic clock, in seconds since some moment in this process. Only the fake engine, whose time is
    /// scripted, has its own.
    fn now_secs(&self) -> f64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed().as_secs_f64()
    }

    /// Makes a plan resident: allocates its buffers, compiles and tunes its kernels.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] for a precision the device lacks, [`EngineError::OutOfMemory`] and
    /// [`EngineError::ExceedsDeviceLimit`] when the plan does not fit, [`EngineError::DeviceLost`] and
    /// [`EngineError::Failed`] as the driver reports.
    fn load(&self, plan: &Plan) -> Result<Box<dyn Session + '_>, EngineError>;

    /// As [`Self::load`], with as little tuning as possible: for a plan that is not timed.
    ///
    /// # Errors
    /// As [`Self::load`].
    fn load_quickly(&self, plan: &Plan) -> Result<Box<dyn Session + '_>, EngineError> {
        self.load(plan)
    }
}

/// A plan resident on a device. Dropping it frees the device's memory.
pub trait Session {
    /// Fills a buffer with values in logical order (see [`crate::plan::Contents`]), converted to the buffer's element
    /// type.
    ///
    /// # Errors
    /// [`EngineError::DeviceLost`], [`EngineError::Failed`].
    fn write(&mut self, buffer: BufferId, values: &[f32]) -> Result<(), EngineError>;

    /// Computes `iterations` iterations and waits for the last: one timing each, in order. The device works through
    /// them without the host in between where the engine can queue.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`], [`EngineError::DeviceLost`], [`EngineError::Failed`].
    fn run(&mut self, iterations: usize) -> Result<Vec<Timing>, EngineError>;

    /// Computes at least one and about `repetitions` iterations with a time at the border of each step: one entry a step
    /// of the plan, in order. What lies between two steps counts to the later one, so that the times add up to an
    /// iteration's. Afterwards the buffers hold what an iteration leaves.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn profile(&mut self, repetitions: usize) -> Result<Vec<StepTime>, EngineError>;

    /// Values of a buffer in logical order. Only buffers that are alive at the end of an iteration hold what the plan
    /// says: parameters, logits, loss and gradients.
    ///
    /// # Errors
    /// [`EngineError::DeviceLost`], [`EngineError::Failed`].
    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>, EngineError>;

    /// Device memory.
    fn memory(&self) -> Memory;

    /// What computes the steps: each kernel or library routine with its variant, once.
    fn kernels(&self) -> Vec<String>;

    /// Remarks that belong to every result of this session, such as why the device's clock is not used.
    fn notes(&self) -> Vec<String>;
}
