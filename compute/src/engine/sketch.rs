//! Plans made by hand, to test an engine's steps one at a time.

use crate::engine::{Engine, Session};
use crate::ops::{BufferId, View};
use crate::plan::{Buffer, Contents, Pass, Plan, Step};
use crate::random;
use crate::shape::{Element, FilterShape, Precision, Shape};

/// A plan made by hand, each buffer with a slot of its own.
pub(super) struct Sketch {
    plan: Plan,
    values: Vec<(BufferId, Vec<f32>)>,
}

impl Sketch {
    /// A plan without steps.
    pub(super) fn new(precision: Precision) -> Self {
        Self { plan: Plan::empty("test/1", Pass::Forward, precision, 1), values: Vec::new() }
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
        match self.plan.buffer(id).element {
            Element::F16 => values.iter_mut().for_each(|value| *value = half::f16::from_f32(*value).to_f32()),
            Element::Bf16 => values.iter_mut().for_each(|value| *value = half::bf16::from_f32(*value).to_f32()),
            Element::F32 | Element::U8 | Element::U32 => {}
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

    /// Runs one iteration on an engine and reads some buffers.
    pub(super) fn run(&self, engine: &dyn Engine, read: &[BufferId]) -> Vec<Vec<f32>> {
        self.run_in(engine.load(&self.plan).unwrap().as_mut(), read)
    }

    /// The same for the reference on the processor: in f32, and without memory that buffers share.
    pub(super) fn reference(&self) -> Self {
        let mut plan = self.plan.clone();
        plan.precision = Precision::F32;
        for (buffer, slot) in plan.buffers.iter_mut().zip(0..) {
            buffer.slot = slot;
            if matches!(buffer.element, Element::F16 | Element::Bf16) {
                buffer.element = Element::F32;
            }
        }
        plan.slots = plan.buffers.iter().map(Buffer::bytes).collect();
        Self { plan, values: self.values.clone() }
    }

    /// Runs one iteration of a session and reads some buffers. It runs twice: with the first an engine may still make
    /// something ready, and steps that add to what they find would find what they left.
    pub(super) fn run_in(&self, session: &mut dyn Session, read: &[BufferId]) -> Vec<Vec<f32>> {
        for _ in 0..2 {
            for (id, values) in &self.values {
                session.write(*id, values).unwrap();
            }
            session.run(1).unwrap();
        }
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
