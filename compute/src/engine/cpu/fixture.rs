//! One step alone on buffers of seeded values, for comparison with its formula written out.

use crate::engine::cpu;
use crate::ops::batch_norm::Reduction;
use crate::ops::{BufferId, GradientEpilogue, View};
use crate::plan::{Buffer, Contents, Pass, Plan, Step};
use crate::random;
use crate::shape::{Element, FilterShape, Precision, Shape};

/// Largest ‖a − b‖ / ‖b‖: what is computed in f64 and rounded to f32 once is off by at most 6e-8 of each element.
const TOLERANCE: f64 = 1e-6;

/// Buffers with values, before or after a step.
#[derive(Clone)]
pub(super) struct Fixture {
    plan: Plan,
    values: Vec<Vec<f32>>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let plan = Plan::empty("fixture/1", Pass::ForwardBackward, Precision::F32, 1);
        Self { plan, values: Vec::new() }
    }

    /// Adds a buffer with values, each in a slot of its own.
    pub(super) fn buffer(&mut self, contents: Contents, element: Element, values: Vec<f32>) -> BufferId {
        let slot = self.plan.buffers.len();
        let buffer = Buffer { name: format!("buffer {slot}"), contents, element, slot };
        assert_eq!(values.len(), contents.elements());
        self.plan.slots.push(buffer.bytes());
        self.plan.buffers.push(buffer);
        self.values.push(values);
        BufferId(slot as u32)
    }

    /// Adds an activation of normal values that is a slice: `before` channels stand before it, two behind it if any do.
    pub(super) fn activation(&mut self, shape: Shape, before: usize) -> View {
        let buffer_channels = if before == 0 { shape.c } else { before + shape.c + 2 };
        let contents = Contents::Activation(Shape { c: buffer_channels, ..shape });
        let values = self.normal(contents.elements());
        let buffer = self.buffer(contents, Element::F32, values);
        View { buffer, shape, channel_offset: before, buffer_channels }
    }

    /// The same with negative values replaced by zero.
    pub(super) fn rectified(&mut self, shape: Shape, before: usize) -> View {
        let view = self.activation(shape, before);
        let values = &mut self.values[view.buffer.0 as usize];
        values.iter_mut().for_each(|value| *value = value.max(0.0));
        view
    }

    pub(super) fn filter(&mut self, shape: FilterShape) -> BufferId {
        let values = self.normal(shape.elements());
        self.buffer(Contents::Filter(shape), Element::F32, values)
    }

    pub(super) fn vector(&mut self, length: usize) -> BufferId {
        let values = self.normal(length);
        self.buffer(Contents::Vector(length), Element::F32, values)
    }

    /// A gradient epilogue with all its parts.
    pub(super) fn epilogue(&mut self, dx: Shape, before: usize) -> GradientEpilogue {
        let reductions = (0..2)
            .map(|_| Reduction {
                y: self.activation(dx, before),
                mean: self.vector(dx.c),
                inv_std: self.vector(dx.c),
                dgamma: self.vector(dx.c),
                dbeta: self.vector(dx.c),
                factor: 0.5,
            })
            .collect();
        let relu_mask = Some(self.rectified(dx, before));
        GradientEpilogue { scale: 1.25, accumulate: true, relu_mask, reductions }
    }

    fn normal(&self, length: usize) -> Vec<f32> {
        let stream = random::stream(7, &self.plan.buffers.len().to_string());
        (0..length as u64).map(|i| random::normal(stream, i)).collect()
    }

    /// One value of a buffer.
    pub(super) fn value(&self, id: BufferId, index: usize) -> f64 {
        f64::from(self.values[id.0 as usize][index])
    }

    /// One value of an activation.
    pub(super) fn at(&self, view: &View, [n, c, h, w]: [usize; 4]) -> f64 {
        let channel = n * view.buffer_channels + view.channel_offset + c;
        self.value(view.buffer, (channel * view.shape.h + h) * view.shape.w + w)
    }

    /// What the buffers hold after the step.
    pub(super) fn run(&self, step: Step) -> Self {
        let mut after = self.clone();
        after.plan.steps = vec![step];
        let engine = cpu::open().expect("the processor opens");
        let mut session = engine.load(&after.plan).expect("the step is resident");
        for (id, values) in (0..).map(BufferId).zip(&self.values) {
            session.write(id, values).expect("a buffer is written");
        }
        session.run(1).expect("the step runs");
        for (id, values) in (0..).map(BufferId).zip(&mut after.values) {
            *values = session.read(id).expect("a buffer is read");
        }
        after
    }

    /// Checks an activation against a formula, and that its buffer is left alone beside the view.
    pub(super) fn check(&self, what: &str, before: &Self, view: &View, formula: impl Fn([usize; 4]) -> f64) {
        let mut whole = Vec::new();
        for n in 0..view.shape.n {
            for channel in 0..view.buffer_channels {
                let c = channel.checked_sub(view.channel_offset).filter(|&c| c < view.shape.c);
                for h in 0..view.shape.h {
                    for w in 0..view.shape.w {
                        let index = ((n * view.buffer_channels + channel) * view.shape.h + h) * view.shape.w + w;
                        let kept = before.value(view.buffer, index);
                        whole.push(c.map_or(kept, |c| formula([n, c, h, w])));
                        assert!(
                            c.is_some() || self.value(view.buffer, index) == kept,
                            "{what}: channel {channel} beside the view is written"
                        );
                    }
                }
            }
        }
        self.check_buffer(what, view.buffer, &whole);
    }

    /// Checks all values of a buffer.
    pub(super) fn check_buffer(&self, what: &str, id: BufferId, expected: &[f64]) {
        let values = &self.values[id.0 as usize];
        assert_eq!(values.len(), expected.len(), "{what}");
        let distance: f64 = values.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
        let size: f64 = expected.iter().map(|b| b.powi(2)).sum();
        let (distance, size) = (distance.sqrt(), size.sqrt());
        assert!(distance <= TOLERANCE * size, "{what}: off by {distance:.1e} of {size:.1e}");
    }

    /// Checks a gradient and its reductions against the new gradient's formula with the epilogue behind it.
    pub(super) fn check_gradient(
        &self,
        what: &str,
        before: &Self,
        dx: &View,
        epilogue: &GradientEpilogue,
        gradient: impl Fn([usize; 4]) -> f64,
    ) {
        self.check(what, before, dx, |at| {
            let held = if epilogue.accumulate { before.at(dx, at) } else { 0.0 };
            let kept = epilogue.relu_mask.as_ref().is_none_or(|mask| before.at(mask, at) > 0.0);
            if kept { f64::from(epilogue.scale) * gradient(at) + held } else { 0.0 }
        });
        for sum in &epilogue.reductions {
            let channel = |weight: &dyn Fn([usize; 4]) -> f64, c: usize| {
                let positions = positions(dx.shape).filter(|at| at[1] == c);
                f64::from(sum.factor) * positions.map(|at| self.at(dx, at) * weight(at)).sum::<f64>()
            };
            let normalized = |at: [usize; 4]| {
                (before.at(&sum.y, at) - before.value(sum.mean, at[1])) * before.value(sum.inv_std, at[1])
            };
            let all = |weight: &dyn Fn([usize; 4]) -> f64| -> Vec<f64> {
                (0..dx.shape.c).map(|c| channel(weight, c)).collect()
            };
            self.check_buffer(&format!("{what}: dbeta"), sum.dbeta, &all(&|_| 1.0));
            self.check_buffer(&format!("{what}: dgamma"), sum.dgamma, &all(&normalized));
        }
    }
}

/// Every `[n, c, h, w]` of a shape, row-major.
pub(super) fn positions(shape: Shape) -> impl Iterator<Item = [usize; 4]> {
    (0..shape.elements()).map(move |i| {
        let (w, rest) = (i % shape.w, i / shape.w);
        let (h, rest) = (rest % shape.h, rest / shape.h);
        [rest / shape.c, rest % shape.c, h, w]
    })
}
