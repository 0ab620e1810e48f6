//! The ceilings of an engine on a device, measured with plans of one step.

use super::Ceilings;
use crate::bench::record::Clock;
use crate::bench::statistics::median;
use crate::engine::{DeviceKind, Engine, EngineError, Timing};
use crate::ops::{BufferId, View, batch_norm, conv2d};
use crate::plan::{Buffer, Contents, Pass, Plan, Step};
use crate::random;
use crate::shape::{Element, FilterShape, Precision, Shape};

/// Longest iteration of a ceiling; half a dozen of them are made.
const ITERATION_SECS: f64 = 0.1;
/// Seconds that the iterations of a ceiling take together, where one does not take longer.
const CEILING_SECS: f64 = 0.3;
/// Side of the largest GEMM.
const LARGEST_SIDE: usize = 8192;
/// Largest traffic of the element-wise step, read and written, in MiB.
const LARGEST_MIB: usize = 1024;
/// Side of a map in the GEMM's activations, so that engines see a convolution of images.
const MAP_SIDE: usize = 16;
/// Channels and side of a map in the element-wise step's activations: 2¹⁸ elements a sample.
const COPY_CHANNELS: usize = 256;
const COPY_MAP_SIDE: usize = 32;

impl Ceilings {
    /// Measures both ceilings; times are of `clock`, as those of the run are.
    ///
    /// # Errors
    /// [`EngineError`] as the engine reports.
    pub fn measure(engine: &dyn Engine, precision: Precision, clock: Clock) -> Result<Self, EngineError> {
        // A first guess at a size, from which the time of others follows.
        let (side, mib) = match engine.device().kind {
            DeviceKind::Cpu | DeviceKind::Software => (256, 16),
            _ => (1024, 64),
        };
        let gemm = Probe { first: side, most: LARGEST_SIDE, exponent: 3, plan: &|side| gemm(precision, side) };
        let copy = Probe { first: mib, most: LARGEST_MIB, exponent: 1, plan: &|mib| copy(precision, mib) };
        let (plan, secs) = gemm.largest(engine, clock)?;
        let gemm_flop_per_sec = plan.work(&plan.steps[0]).flops as f64 / secs;
        let (plan, secs) = copy.largest(engine, clock)?;
        let copy_bytes_per_sec = plan.work(&plan.steps[0]).bytes as f64 / secs;
        Ok(Self { gemm_flop_per_sec, copy_bytes_per_sec })
    }
}

/// Plans of one kind that differ in size.
struct Probe<'a> {
    /// Size of the first one.
    first: usize,
    /// Largest size.
    most: usize,
    /// Power of the size that the time grows with.
    exponent: i32,
    plan: &'a dyn Fn(usize) -> Plan,
}

impl Probe<'_> {
    /// The largest plan whose iteration is short and that fits the device, and the seconds of an iteration.
    fn largest(&self, engine: &dyn Engine, clock: Clock) -> Result<(Plan, f64), EngineError> {
        let plan = (self.plan)(self.first);
        let first_secs = iteration_secs(engine, &plan, clock)?;
        let secs = |size: usize| first_secs * (size as f64 / self.first as f64).powi(self.exponent);
        let mut size = self.first;
        while 2 * size <= self.most && secs(2 * size) <= ITERATION_SECS {
            size *= 2;
        }
        while size > self.first {
            let plan = (self.plan)(size);
            match iteration_secs(engine, &plan, clock) {
                Ok(secs) => return Ok((plan, secs)),
                Err(EngineError::OutOfMemory { .. } | EngineError::ExceedsDeviceLimit { .. }) => size /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok((plan, first_secs))
    }
}

/// Median time of an iteration of a plan whose last buffer is its output.
fn iteration_secs(engine: &dyn Engine, plan: &Plan, clock: Clock) -> Result<f64, EngineError> {
    let mut session = engine.load(plan)?;
    let n_inputs = plan.buffers.len() - 1;
    for (id, buffer) in (0..).map(BufferId).zip(&plan.buffers[..n_inputs]) {
        session.write(id, &values(buffer.contents.elements()))?;
    }
    let secs = |timing: &Timing| timing.device_secs.filter(|_| clock == Clock::Device).unwrap_or(timing.host_secs);
    // The first iterations may still compile or tune something.
    let estimate = session.run(3)?.last().map_or(CEILING_SECS, secs);
    let iterations = (CEILING_SECS / estimate).clamp(3.0, 100.0) as usize;
    let secs = median(&session.run(iterations)?.iter().map(secs).collect::<Vec<_>>());
    if secs.is_finite() && secs > 0.0 {
        return Ok(secs);
    }
    let what = format!("measuring the ceiling {}", plan.definition);
    Err(EngineError::Failed { what, reason: format!("an iteration took {secs} s") })
}

/// Values around zero: a device may save power, and so raise its clock, where everything is zero. They repeat, since
/// random ones in this number would take longer than the measurement.
fn values(elements: usize) -> Vec<f32> {
    /// A prime, so that rows of a power of two differ.
    const PERIOD: u64 = 65_521;
    let stream = random::stream(1, "ceilings");
    let period: Vec<f32> = (0..PERIOD.min(elements as u64)).map(|i| random::uniform(stream, i)).collect();
    period.into_iter().cycle().take(elements).collect()
}

/// A 1x1 convolution with `side` positions, `side` input and `side` output channels.
fn gemm(precision: Precision, side: usize) -> Plan {
    let n = side / (MAP_SIDE * MAP_SIDE);
    let shape = Shape::new(n, side, MAP_SIDE, MAP_SIDE);
    let mut plan = Plan::empty("gemm/1", Pass::Forward, precision, n);
    let element = precision.storage();
    let x = add(&mut plan, "x", Contents::Activation(shape), element);
    let w = add(&mut plan, "gemm.weight", Contents::Filter(FilterShape { k: side, c: side, r: 1, s: 1 }), element);
    let y = add(&mut plan, "y", Contents::Activation(shape), element);
    plan.steps.push(Step::Conv2dForward(conv2d::Forward {
        x: View::whole(x, shape),
        w,
        y: View::whole(y, shape),
        window: conv2d::Window { r: 1, s: 1, stride: 1, pad: 0 },
        epilogue: conv2d::Epilogue::default(),
        statistics: None,
    }));
    plan.input = x;
    plan.logits = y;
    plan.flops = plan.work(&plan.steps[0]).flops;
    plan
}

/// A batch norm that reads and writes `mib` MiB in all.
fn copy(precision: Precision, mib: usize) -> Plan {
    let element = precision.storage();
    let sample_bytes = COPY_CHANNELS * COPY_MAP_SIDE * COPY_MAP_SIDE * element.bytes();
    let n = (mib << 20) / 2 / sample_bytes;
    let shape = Shape::new(n, COPY_CHANNELS, COPY_MAP_SIDE, COPY_MAP_SIDE);
    let mut plan = Plan::empty("copy/1", Pass::Forward, precision, n);
    let y = add(&mut plan, "x", Contents::Activation(shape), element);
    let [mean, inv_std, gamma, beta] = ["mean", "inv_std", "copy.gamma", "beta"]
        .map(|name| add(&mut plan, name, Contents::Vector(COPY_CHANNELS), Element::F32));
    let z = add(&mut plan, "y", Contents::Activation(shape), element);
    let input = batch_norm::Normalized { y: View::whole(y, shape), mean, inv_std, gamma, beta };
    let z_view = View::whole(z, shape);
    plan.steps.push(Step::BatchNormForward(batch_norm::Forward { input, residual: None, relu: false, z: z_view }));
    plan.input = y;
    plan.logits = z;
    plan
}

/// Adds a buffer with a slot of its own.
fn add(plan: &mut Plan, name: &str, contents: Contents, element: Element) -> BufferId {
    let buffer = Buffer { name: name.to_owned(), contents, element, slot: plan.slots.len() };
    plan.slots.push(buffer.bytes());
    plan.buffers.push(buffer);
    BufferId(plan.buffers.len() as u32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plans_have_the_size_they_are_named_by() {
        for precision in [Precision::F32, Precision::Bf16] {
            let gemm = gemm(precision, LARGEST_SIDE);
            assert_eq!(gemm.flops, 2 * (LARGEST_SIDE as u64).pow(3), "{precision}");
            let copy = copy(precision, LARGEST_MIB);
            let bytes = copy.work(&copy.steps[0]).bytes as f64;
            assert!((bytes / (LARGEST_MIB << 20) as f64 - 1.0).abs() < 1e-3, "{precision}: {bytes}");
        }
    }

    #[test]
    fn both_ceilings_are_finite_on_the_processor() {
        let engine = crate::engine::cpu::open().expect("the processor opens");
        // The largest size would take a second in an unoptimized build.
        let probe = |most, plan: &dyn Fn(usize) -> Plan| {
            Probe { first: 256, most, exponent: 3, plan }.largest(engine.as_ref(), Clock::Host).expect("it is measured")
        };
        let (plan, secs) = probe(256, &|side| gemm(Precision::F32, side));
        assert!(secs > 0.0 && plan.definition == "gemm/1");
        let (_, secs) = probe(256, &|_| copy(Precision::F32, 4));
        assert!(secs > 0.0);
    }
}
