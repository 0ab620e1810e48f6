//! Launches of the rounding of master weights.

use super::launch::{Kernel, Launch, Lowering};
use crate::engine::EngineError;
use crate::ops::cast::Cast;

/// Bytes of half that one workgroup writes: 256 threads of four elements.
const WORKGROUP_BYTES: u64 = 2048;

/// `y = x`, rounded; both filters have one layout, so this is element by element.
pub(super) fn cast(step: &Cast, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let (bytes, limits) = (context.bytes(step.y), context.limits());
    let most = (limits.max_binding_bytes / 2).min(limits.max_bytes_per_dispatch / 3);
    let piece = (most / WORKGROUP_BYTES * WORKGROUP_BYTES).max(WORKGROUP_BYTES);
    let mut launches = Vec::new();
    for start in (0..bytes).step_by(piece as usize) {
        let end = (start + piece).min(bytes);
        let (x, _) = context.range(step.x, 2 * start..2 * end, false)?;
        let (y, _) = context.range(step.y, start..end, true)?;
        launches.push(Launch {
            kernel: Kernel { file: "cast", entry: "cast_filter", constants: Vec::new(), element: context.element() },
            bindings: vec![x, y],
            parameters: vec![((end - start) / 8) as u32],
            workgroups: (end - start).div_ceil(WORKGROUP_BYTES),
            flops: 0,
            bytes: 3 * (end - start),
        });
    }
    Ok(launches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::wgsl::tests::{Sketch, engine};
    use crate::plan::{Contents, Step};
    use crate::shape::{Element, FilterShape, Precision};

    #[test]
    fn halves_are_the_nearest() {
        let Some(engine) = engine() else { return };
        for shape in [FilterShape { k: 3, c: 5, r: 3, s: 3 }, FilterShape { k: 130, c: 17, r: 1, s: 2 }] {
            let mut sketch = Sketch::new(Precision::F16);
            let x = sketch.buffer(Contents::Filter(shape), Element::F32);
            let y = sketch.buffer(Contents::Filter(shape), Element::F16);
            let values = sketch.fill(x);
            sketch.step(Step::Cast(Cast { x, y }));
            let rounded = &sketch.run(&engine, &[y])[0];
            for (value, rounded) in values.iter().zip(rounded) {
                // Vulkan leaves the direction of rounding to the device: one unit in the last place.
                assert!((value - rounded).abs() <= value.abs() * 2f32.powi(-10), "{value} became {rounded}");
            }
        }
    }
}
