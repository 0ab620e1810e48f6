//! What the tests of this engine share: a device to run on, and plans made by hand.

mod kernels;
mod models;
mod session;

use super::device::{self, WgslEngine};
use super::{adapter, header, launch};
use crate::engine::{Engine, EngineKind};
use crate::ops::{BufferId, View};
use crate::plan::{Buffer, Contents, Pass, Plan, Step};
use crate::random;
use crate::shape::{Element, FilterShape, Precision, Shape};

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

/// A plan made by hand, each buffer with a slot of its own.
pub(super) struct Sketch {
    plan: Plan,
    values: Vec<(BufferId, Vec<f32>)>,
}

impl Sketch {
    /// A plan without steps.
    pub(super) fn new(precision: Precision) -> Self {
        let plan = Plan {
            definition: "test/1".into(),
            pass: Pass::Forward,
            precision,
            minibatch: 1,
            steps: Vec::new(),
            buffers: Vec::new(),
            slots: Vec::new(),
            parameters: Vec::new(),
            input: BufferId(0),
            labels: None,
            logits: BufferId(0),
            loss: None,
            gradients: Vec::new(),
            flops: 0,
        };
        Self { plan, values: Vec::new() }
    }

    /// Adds a buffer.
    pub(super) fn buffer(&mut self, contents: Contents, element: Element) -> BufferId {
        let id = BufferId(self.plan.buffers.len() as u32);
        let slot = self.plan.slots.len();
        self.plan.buffers.push(Buffer { name: format!("buffer {slot}"), contents, element, slot });
        self.plan.slots.push(self.plan.buffer(id).bytes());
        id
    }

    /// Adds an activation of the plan's storage type.
    pub(super) fn activation(&mut self, shape: Shape) -> View {
        let element = self.plan.precision.storage();
        View::whole(self.buffer(Contents::Activation(shape), element), shape)
    }

    /// Adds an activation and some channels of it.
    pub(super) fn slice(&mut self, shape: Shape, channel_offset: usize, c: usize) -> View {
        let whole = self.activation(shape);
        View { shape: Shape { c, ..shape }, channel_offset, ..whole }
    }

    /// Adds an f32 vector.
    pub(super) fn vector(&mut self, length: usize) -> BufferId {
        self.buffer(Contents::Vector(length), Element::F32)
    }

    /// Adds a filter.
    pub(super) fn filter(&mut self, shape: FilterShape, element: Element) -> BufferId {
        self.buffer(Contents::Filter(shape), element)
    }

    /// Puts a buffer into the memory of another.
    pub(super) fn share(&mut self, id: BufferId, with: BufferId) {
        self.plan.buffers[id.0 as usize].slot = self.plan.buffer(with).slot;
    }

    /// Fills a buffer before the run with values around zero; returns what the device then holds.
    pub(super) fn fill(&mut self, id: BufferId) -> Vec<f32> {
        let stream = random::stream(1, &self.plan.buffer(id).name);
        let elements = self.plan.buffer(id).contents.elements() as u64;
        self.set(id, (0..elements).map(|i| random::normal(stream, i)).collect())
    }

    /// Fills a buffer before the run; returns what the device then holds.
    pub(super) fn set(&mut self, id: BufferId, mut values: Vec<f32>) -> Vec<f32> {
        if self.plan.buffer(id).element == Element::F16 {
            values.iter_mut().for_each(|value| *value = half::f16::from_f32(*value).to_f32());
        }
        self.values.push((id, values.clone()));
        values
    }

    /// Adds a step.
    pub(super) fn step(&mut self, step: Step) {
        self.plan.steps.push(step);
    }

    /// The plan so far.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs one iteration and reads some buffers.
    pub(super) fn run(&self, engine: &WgslEngine, read: &[BufferId]) -> Vec<Vec<f32>> {
        let mut session = engine.load(&self.plan).unwrap();
        for (id, values) in &self.values {
            session.write(*id, values).unwrap();
        }
        session.run(1).unwrap();
        read.iter().map(|&id| session.read(id).unwrap()).collect()
    }
}

/// Normalized error `‖a − b‖ / ‖b‖`.
pub(super) fn error(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let difference: f64 = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
    let norm: f64 = b.iter().map(|b| b * b).sum();
    (difference / norm.max(f64::MIN_POSITIVE)).sqrt()
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
