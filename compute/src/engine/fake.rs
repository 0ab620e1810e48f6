//! The scripted engine: it computes nothing and plays durations, outcomes and faults from a [`Script`], so that
//! everything above the device is tested without one.
//!
//! Its time is virtual: an iteration of ten seconds takes none. Only crashes, hangs and [`Script::pace`] are real.

mod session;

use serde::{Deserialize, Serialize};

use super::{Device, DeviceKind, EngineKind, Listing};
use crate::shape::Precision;

pub use session::Fake;

/// Identifier of the device of a script that names none.
pub const DEVICE_ID: &str = "fake-0";

/// What the fake engine plays. The default is a GPU on which everything is fine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// The devices that exist; none stands for [`Script::default_listing`] alone.
    pub devices: Vec<Listing>,
    /// Seconds that listing the devices really takes.
    pub enumeration_secs: f64,
    /// Time of an iteration.
    pub step: StepTime,
    /// Largest relative deviation of an iteration's time, drawn from a fixed stream.
    pub noise: f64,
    /// What the device's clock shows over what the host's shows; absent for a device without a clock.
    pub device_clock: Option<f64>,
    /// Milliseconds that the first iteration of a loaded plan takes longer, as with a lazy tuner.
    pub first_iteration_ms: f64,
    /// Milliseconds of loading a plan.
    pub load_ms: f64,
    /// Whether `run` returns before the device has finished, against its contract; the next `read` waits.
    pub returns_early: bool,
    /// Bytes that can be allocated at once; absent for the device's memory.
    pub allocation_limit_bytes: Option<u64>,
    /// Whether allocations beyond the device's memory succeed in main memory and make iterations twenty times slower.
    pub spills: bool,
    /// Bytes that each load takes for ever.
    pub leaked_bytes: u64,
    /// Share of the telemetry readings in which the power limit holds the clock down; absent without telemetry.
    pub power_capped: Option<f64>,
    /// What the outputs are.
    pub outputs: Outputs,
    /// What goes wrong, if anything.
    pub fault: Option<Fault>,
    /// Lines that are no events and come on the worker's standard output before the run, as from a chatty driver.
    pub garbage_lines: usize,
    /// Seconds really slept for each second of virtual time.
    pub pace: f64,
}

/// Time of an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepTime {
    /// The plan's operations at a fixed rate.
    Rate {
        /// Floating-point operations a second.
        flop_per_sec: f64,
    },
    /// The same for every iteration.
    Constant {
        /// Milliseconds.
        ms: f64,
    },
    /// One time an iteration, the last for all further ones.
    List {
        /// Milliseconds.
        ms: Vec<f64>,
    },
    /// A linear change as a device heats up, from its first iteration on.
    Ramp {
        /// Milliseconds in the beginning.
        from_ms: f64,
        /// Milliseconds in the end.
        to_ms: f64,
        /// Seconds in between.
        over_secs: f64,
    },
}

/// What the outputs are. The reference of a fake run is what the fake engine reads with [`Outputs::Reference`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outputs {
    /// Those of the reference.
    #[default]
    Reference,
    /// Finite, but others.
    Wrong,
    /// Not finite.
    Nan,
    /// Those of the reference, but the loss at the measured minibatch is not finite.
    NoLoss,
    /// Those of the reference, but the first weight gradient at the measured minibatch is zero.
    NoFirstGradient,
    /// Those of the reference, but the last weight gradient at the measured minibatch is not finite.
    NoLastGradient,
}

/// A fault: what happens at which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The call.
    pub call: Call,
    /// Which of these calls of a run, from 0. The first load and run verify, the second load and later runs are
    /// measured.
    #[serde(default)]
    pub nth: usize,
    /// What happens.
    pub kind: FaultKind,
}

/// A call of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Opening the device.
    Open,
    /// [`super::Engine::load`].
    Load,
    /// [`super::Session::run`].
    Run,
    /// [`super::Session::read`].
    Read,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Device memory does not suffice.
    OutOfMemory,
    /// The device goes away.
    DeviceLost,
    /// The driver reports an error.
    Failed,
    /// A panic, as in a library.
    Panic,
    /// The process aborts.
    Crash,
    /// The process exits as if all were well.
    Exit,
    /// The call never returns.
    Hang,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            enumeration_secs: 0.0,
            step: StepTime::Rate { flop_per_sec: 1e13 },
            noise: 0.005,
            device_clock: Some(0.98),
            first_iteration_ms: 0.0,
            load_ms: 250.0,
            returns_early: false,
            allocation_limit_bytes: None,
            spills: false,
            leaked_bytes: 0,
            power_capped: None,
            outputs: Outputs::Reference,
            fault: None,
            garbage_lines: 0,
            pace: 0.0,
        }
    }
}

impl Script {
    /// The script with one fault.
    pub fn with_fault(call: Call, nth: usize, kind: FaultKind) -> Self {
        Self { fault: Some(Fault { call, nth, kind }), ..Self::default() }
    }

    /// The device of a script that names none: [`DEVICE_ID`], discrete, 16 GiB.
    pub fn default_listing() -> Listing {
        Listing {
            engine: EngineKind::Fake,
            device: Device {
                id: DEVICE_ID.to_owned(),
                name: "Fake GPU".to_owned(),
                kind: DeviceKind::Discrete,
                pci_address: Some("0000:01:00.0".to_owned()),
                memory_bytes: Some(16 << 30),
                ..Device::default()
            },
            precisions: vec![Precision::F32, Precision::F16],
            remarks: Vec::new(),
            unavailable: None,
        }
    }

    /// The devices, after the scripted delay.
    pub fn listings(&self) -> Vec<Listing> {
        std::thread::sleep(seconds(self.enumeration_secs));
        self.known()
    }

    fn known(&self) -> Vec<Listing> {
        if self.devices.is_empty() { vec![Self::default_listing()] } else { self.devices.clone() }
    }
}

fn seconds(secs: f64) -> std::time::Duration {
    std::time::Duration::try_from_secs_f64(secs).unwrap_or_default()
}
