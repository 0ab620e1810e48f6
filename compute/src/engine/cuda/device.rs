//! An opened device: the engine itself.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::error::driver_error;
use super::library;
use super::listing::{self, OpenDevice};
use super::session::{LoadedPlan, Pick};
use super::stream::Gpu;
use super::tier::Tier;
use super::tune::Choices;
use crate::engine::{Device, Engine, EngineError, Session};
use crate::plan::Plan;
use crate::shape::Precision;

/// A device opened through the CUDA driver.
pub(super) struct CudaEngine {
    pub(super) device: Device,
    pub(super) precisions: Vec<Precision>,
    pub(super) gpu: Gpu,
    /// Candidates found fastest so far.
    pub(super) choices: Mutex<Choices>,
    /// Versions of the libraries, by name.
    pub(super) libraries: BTreeMap<String, String>,
    /// Remarks that belong to every result.
    pub(super) notes: Vec<String>,
}

/// Opens the device that is listed under `id`, for at most `tier`'s libraries.
///
/// # Errors
/// As [`super::open`].
pub(super) fn open(id: &str, tier: Tier) -> Result<CudaEngine, EngineError> {
    let OpenDevice { context, facts, listing } = listing::open(id)?;
    let available = library::load();
    let compiler = library::compiler();
    // NVRTC may be found and not work.
    let fullest = if compiler.is_some() { available.tier() } else { Tier::Ahead };
    let tier = tier.max(fullest);
    let mut gpu = Gpu::new(context, facts, compiler.filter(|_| tier < Tier::Ahead))?;
    let mut notes = notes(tier, fullest);
    let tier = match tier {
        Tier::Vendor => gpu.open_vendor().map_or_else(
            |error| {
                notes.push(format!("own kernels only: {error}"));
                Tier::Own
            },
            |()| Tier::Vendor,
        ),
        tier => tier,
    };
    let mut libraries = available.versions();
    if tier > Tier::Vendor {
        libraries.remove("cudnn");
        libraries.remove("cublaslt");
    }
    if tier > Tier::Own {
        libraries.remove("nvrtc");
    }
    libraries.insert("tier".into(), tier.name().into());
    Ok(CudaEngine {
        device: listing.device,
        precisions: listing.precisions,
        gpu,
        choices: Mutex::default(),
        libraries,
        notes,
    })
}

impl CudaEngine {
    fn load_with(&self, plan: &Plan, pick: Pick) -> Result<Box<dyn Session + '_>, EngineError> {
        if !self.precisions.contains(&plan.precision) {
            return Err(EngineError::NotSupported {
                reason: format!("{} does not compute {}", self.device.name, plan.precision),
            });
        }
        Ok(Box::new(LoadedPlan::new(self, plan, pick)?))
    }

    /// # Errors
    /// [`EngineError::OutOfMemory`] when `bytes` exceed what is free.
    pub(super) fn check_free(&self, bytes: u64) -> Result<(), EngineError> {
        let (free, _) =
            self.gpu.context.mem_get_info().map_err(|error| driver_error("asking for free memory", error))?;
        if bytes > free as u64 {
            return Err(EngineError::OutOfMemory {
                requested_bytes: bytes,
                what: format!("the plan's buffers ({free} are free)"),
            });
        }
        Ok(())
    }
}

/// What a record says of the tier where it is not the fullest: why the machine has less, or that less was asked for.
fn notes(tier: Tier, available: Tier) -> Vec<String> {
    if tier == Tier::Vendor {
        return Vec::new();
    }
    if tier > available {
        return vec![format!("tier {tier} was asked for, the machine has what tier {available} needs")];
    }
    library::load().remarks()
}

impl Engine for CudaEngine {
    fn device(&self) -> &Device {
        &self.device
    }

    fn libraries(&self) -> BTreeMap<String, String> {
        self.libraries.clone()
    }

    fn load(&self, plan: &Plan) -> Result<Box<dyn Session + '_>, EngineError> {
        self.load_with(plan, Pick::Fastest)
    }

    fn load_quickly(&self, plan: &Plan) -> Result<Box<dyn Session + '_>, EngineError> {
        self.load_with(plan, Pick::Quick)
    }
}
