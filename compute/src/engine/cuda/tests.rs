//! What the tests on a device share. Without one they are skipped, unless `BATCHMARK_REQUIRE_CUDA` is `1`.

pub(super) mod steps;

use super::device::{self, CudaEngine};
use super::launch::Lowering;
use super::lower;
use super::session::{LoadedPlan, Pick};
use crate::engine::sketch::{Sketch, error};
use crate::engine::{EngineKind, Tier, cpu, listings};
use crate::ops::BufferId;
use crate::plan::Contents;
use crate::shape::Precision;

/// An opened device; `None` after saying why there is none.
///
/// # Panics
/// When there is none and the environment variable `BATCHMARK_REQUIRE_CUDA` is `1`.
pub(super) fn engine() -> Option<CudaEngine> {
    let mut reasons = Vec::new();
    for listing in listings(EngineKind::Cuda, None) {
        match listing.unavailable {
            None => match device::open(&listing.device.id, Tier::default()) {
                Ok(engine) => return Some(engine),
                Err(error) => reasons.push(error.to_string()),
            },
            Some(reason) => reasons.push(reason),
        }
    }
    let required = std::env::var_os("BATCHMARK_REQUIRE_CUDA").is_some_and(|value| value == "1");
    assert!(!required, "a device for CUDA is required: {reasons:?}");
    eprintln!("skipped, no device for CUDA: {reasons:?}");
    None
}

/// Largest normalized error of one step: rounding of the operands' products, which for tf32 is 2⁻¹¹, and of the stored
/// result, 2⁻¹¹ for f16 and 2⁻⁸ for bf16; sums are f32.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 1e-5,
        Precision::Tf32 => 1e-3,
        Precision::F16 => 2e-3,
        Precision::Bf16 => 1e-2,
    }
}

/// Checks some buffers after the sketch ran, by every candidate of its steps, against the reference.
fn each_candidate(engine: &CudaEngine, sketch: &Sketch, outputs: &[BufferId], name: &str) {
    let plan = sketch.plan();
    let reference = cpu::open().unwrap();
    let expected: Vec<Vec<f64>> = sketch
        .reference()
        .run(reference.as_ref(), outputs)
        .into_iter()
        .map(|values| values.into_iter().map(f64::from).collect())
        .collect();
    let lowering = Lowering { plan, facts: engine.gpu.facts, is_quick: false };
    let lowered = lower::plan(&lowering, engine, &mut Vec::new()).unwrap();
    let most = lowered.iter().map(|step| step.candidates.len()).max().unwrap();
    drop(lowered);
    for n in 0..most {
        let mut session = match LoadedPlan::new(engine, plan, Pick::Nth(n)) {
            Ok(session) => session,
            Err(error) => panic!("{name} in {}: {error}", plan.precision),
        };
        let found = sketch.run_in(&mut session, outputs);
        for ((id, found), expected) in outputs.iter().zip(&found).zip(&expected) {
            let error = error(found, expected);
            // Terms of a sum over positions cancel, which shows their errors enlarged: up to 1.4 times the tolerance on an H200.
            let is_sum = matches!(plan.buffer(*id).contents, Contents::Vector(_));
            assert!(
                error <= tolerance(plan.precision) * if is_sum { 2.0 } else { 1.0 },
                "{name} in {} by {:?}: {:?} is off by {error:.1e}",
                plan.precision,
                crate::engine::Session::kernels(&session),
                plan.buffer(*id).name
            );
        }
    }
}
