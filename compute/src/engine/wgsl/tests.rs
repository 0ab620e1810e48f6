//! What the tests of this engine share: a device to run on, and plans made by hand.

mod kernels;
mod models;
mod session;

use super::device::{self, WgslEngine};
use super::{adapter, header, launch};
pub(super) use crate::engine::sketch::{Sketch, error};
use crate::engine::{Engine, EngineKind};
use crate::shape::Precision;

/// An opened device; `None` after saying why there is none.
///
/// # Panics
/// When there is none and the environment variable `BATCHMARK_REQUIRE_WGSL` is `1`.
pub(super) fn engine() -> Option<WgslEngine> {
    let mut reasons = Vec::new();
    for found in adapter::found() {
        match device::open_found(found) {
            Ok(engine) if engine.gpu.features().contains(wgpu::Features::SHADER_F16) => return Some(engine),
            Ok(engine) => reasons.push(format!("{} has no f16, which the tests use", engine.device().name)),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    let required = std::env::var_os("BATCHMARK_REQUIRE_WGSL").is_some_and(|value| value == "1");
    assert!(!required, "a device for WGSL is required: {reasons:?}");
    eprintln!("skipped, no device for WGSL: {reasons:?}");
    None
}

/// Largest normalized error of one operation whose sums are in f32: rounding of the stored result, which for half
/// precision is 2⁻¹¹ an element at most, and of the terms of a sum.
pub(super) fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F16 => 1e-3,
        _ => 5e-6,
    }
}

/// Validates the complete text of every kernel that the launches of a plan use.
pub(super) fn validate(launches: &[launch::Launch]) {
    use wgpu::naga;
    for launch in launches {
        let text = header::source(&launch.kernel);
        let module = naga::front::wgsl::parse_str(&text)
            .unwrap_or_else(|error| panic!("{}: {}", launch.kernel.entry, error.emit_to_string(&text)));
        let flags = naga::valid::ValidationFlags::all();
        naga::valid::Validator::new(flags, naga::valid::Capabilities::SHADER_FLOAT16)
            .validate(&module)
            .unwrap_or_else(|error| panic!("{}: {}", launch.kernel.entry, error.emit_to_string(&text)));
        let found = module.entry_points.iter().any(|entry| entry.name == launch.kernel.entry);
        assert!(found, "no entry point {}", launch.kernel.entry);
    }
}

#[test]
fn listings_name_the_engine_and_a_reason_or_a_precision() {
    for listing in adapter::listings() {
        assert_eq!(listing.engine, EngineKind::Wgsl);
        assert!(listing.unavailable.is_some() || listing.precisions.contains(&Precision::F32), "{listing:?}");
    }
}
