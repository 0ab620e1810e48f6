//! A graph turned into a flat list of fused, device-independent steps on numbered buffers whose memory is reused.
//!
//! A step says what is computed, never how: layout, algorithm, tile and kernel are the engine's choice when it loads the
//! plan. The same plan serves every engine. `fuse` finds what one step can take up, `inference` and `training` write the
//! steps, `memory` lets buffers that are not alive together share a slot; the plan knows its device bytes before anything
//! is allocated, and `work` what each step has to do.

mod builder;
mod fuse;
mod inference;
mod memory;
mod parameter;
#[cfg(test)]
mod tests;
mod training;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::graph::Graph;
use crate::ops::{BufferId, average_pool, batch_norm, cast, conv2d, max_pool, softmax};
use crate::random;
use crate::shape::{Element, FilterShape, Precision, Shape, UnknownName, parse_name};

pub use parameter::{Init, Parameter};
pub use work::Work;

/// What is computed in one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// Inference: the logits.
    Forward,
    /// Training without the update: logits, loss and the gradient of every parameter.
    ForwardBackward,
}

impl Pass {
    /// Both passes.
    pub const ALL: [Self; 2] = [Self::Forward, Self::ForwardBackward];

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::ForwardBackward => "forward_backward",
        }
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Pass {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        parse_name("pass", text, &Self::ALL, Self::name)
    }
}

/// One fused step. The variants' types stand with their operations in [`crate::ops`].
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is documented by the type it holds")]
pub enum Step {
    Cast(cast::Cast),
    Conv2dForward(conv2d::Forward),
    Conv2dBackwardData(conv2d::BackwardData),
    Conv2dBackwardWeight(conv2d::BackwardWeight),
    BatchNormForward(batch_norm::Forward),
    BatchNormBackward(batch_norm::Backward),
    MaxPoolForward(max_pool::Forward),
    MaxPoolBackward(max_pool::Backward),
    AveragePoolForward(average_pool::Forward),
    AveragePoolBackward(average_pool::Backward),
    CrossEntropy(softmax::CrossEntropy),
}

/// What a buffer holds. Values cross the engine's border in the logical order given here, whatever the layout on the
/// device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// An activation or its gradient, logical order `[n, c, h, w]`.
    Activation(Shape),
    /// A filter or its gradient, logical order `[k, c, r, s]`.
    Filter(FilterShape),
    /// One value a channel, a sample, or a single one.
    Vector(usize),
}

impl Contents {
    /// Number of elements.
    pub const fn elements(self) -> usize {
        match self {
            Self::Activation(shape) => shape.elements(),
            Self::Filter(shape) => shape.elements(),
            Self::Vector(length) => length,
        }
    }
}

/// One buffer of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// What it is, for messages, such as `"conv1.weight"`.
    pub name: String,
    /// What it holds.
    pub contents: Contents,
    /// Type of one element.
    pub element: Element,
    /// Memory that it lies in; buffers that share a slot are never alive together.
    pub slot: usize,
}

impl Buffer {
    /// Bytes of the elements, without an engine's padding.
    pub const fn bytes(&self) -> u64 {
        self.contents.elements() as u64 * self.element.bytes() as u64
    }
}

/// A parameter's gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// Name of the parameter, such as `"conv1.weight"`.
    pub name: String,
    /// Where the gradient is, f32.
    pub buffer: BufferId,
}

/// Everything an engine needs to compute one pass over one minibatch.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name and version of the model, such as `"resnet50/1"`.
    pub definition: String,
    /// The pass.
    pub pass: Pass,
    /// The precision.
    pub precision: Precision,
    /// Samples in one iteration.
    pub minibatch: usize,
    /// The steps, in the order of execution.
    pub steps: Vec<Step>,
    /// The buffers; a [`BufferId`] is an index here.
    pub buffers: Vec<Buffer>,
    /// Bytes of each memory slot.
    pub slots: Vec<u64>,
    /// Buffers that must be filled before the first iteration, with their values.
    pub parameters: Vec<Parameter>,
    /// The input `[n, c, h, w]`, to be filled before the first iteration.
    pub input: BufferId,
    /// Class of each sample, to be filled before the first iteration; training only.
    pub labels: Option<BufferId>,
    /// The logits.
    pub logits: BufferId,
    /// The mean loss; training only.
    pub loss: Option<BufferId>,
    /// Gradient of every parameter; training only.
    pub gradients: Vec<Gradient>,
    /// Floating-point operations of one iteration, 2 · MACs of convolutions and fully connected layers.
    pub flops: u64,
}

/// A network that can't be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// An operation stands where no step can take it up.
    #[error("{operation} {node:?} can't be fused into a step: {reason}")]
    Unfusable {
        /// The operation.
        operation: &'static str,
        /// Name of the node.
        node: String,
        /// What is in the way.
        reason: &'static str,
    },
    /// The minibatch is zero.
    #[error("a minibatch must hold at least one sample")]
    EmptyMinibatch,
}

/// Number of the stream that weights, inputs and labels are drawn from; the suite uses one, so that every engine and
/// every machine computes the same network.
pub const SEED: u64 = 2017;

impl Plan {
    /// A plan without steps and buffers.
    pub(crate) fn empty(definition: &str, pass: Pass, precision: Precision, minibatch: usize) -> Self {
        Self {
            definition: definition.to_owned(),
            pass,
            precision,
            minibatch,
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
        }
    }

    /// Plans one pass of `graph` over `minibatch` samples.
    ///
    /// # Errors
    /// [`PlanError`] when the graph holds an operation that no step can take up, or the minibatch is zero.
    pub fn new(graph: &Graph, pass: Pass, precision: Precision, minibatch: usize) -> Result<Self, PlanError> {
        if minibatch == 0 {
            return Err(PlanError::EmptyMinibatch);
        }
        let mut plan = match pass {
            Pass::Forward => inference::plan(graph, precision, minibatch)?,
            Pass::ForwardBackward => training::plan(graph, precision, minibatch)?,
        };
        memory::assign_slots(&mut plan);
        Ok(plan)
    }

    /// One buffer.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// Device bytes that the plan needs, without an engine's padding and workspace.
    pub fn bytes(&self) -> u64 {
        self.slots.iter().sum()
    }

    /// Values of the synthetic input, standard normal, in logical order.
    pub fn input_values(&self) -> Vec<f32> {
        let stream = random::stream(SEED, "input");
        (0..self.buffer(self.input).contents.elements() as u64).map(|i| random::normal(stream, i)).collect()
    }

    /// Values of the synthetic labels, one class a sample.
    pub fn label_values(&self) -> Vec<f32> {
        let classes = self.buffer(self.logits).contents.elements() / self.minibatch;
        let stream = random::stream(SEED, "labels");
        (0..self.minibatch as u64).map(|i| (random::bits64(stream, i) % classes as u64) as f32).collect()
    }

    /// How often each kind of step occurs, for messages and tests.
    pub fn step_counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for step in &self.steps {
            *counts.entry(step.name()).or_insert(0) += 1;
        }
        counts
    }
}

impl Step {
    /// Entry-point name of the step, shared by every engine.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cast(_) => "cast",
            Self::Conv2dForward(_) => "conv2d_forward",
            Self::Conv2dBackwardData(_) => "conv2d_backward_data",
            Self::Conv2dBackwardWeight(_) => "conv2d_backward_weight",
            Self::BatchNormForward(_) => "batch_norm_forward",
            Self::BatchNormBackward(_) => "batch_norm_backward",
            Self::MaxPoolForward(_) => "max_pool_forward",
            Self::MaxPoolBackward(_) => "max_pool_backward",
            Self::AveragePoolForward(_) => "average_pool_forward",
            Self::AveragePoolBackward(_) => "average_pool_backward",
            Self::CrossEntropy(_) => "cross_entropy",
        }
    }

    /// Every buffer the step reads or writes.
    pub fn buffers(&self) -> Vec<BufferId> {
        let mut all = Vec::new();
        match self {
            Self::Cast(step) => all.extend([step.x, step.y]),
            Self::Conv2dForward(step) => {
                all.extend([step.x.buffer, step.w, step.y.buffer]);
                let e = &step.epilogue;
                all.extend(e.scale.into_iter().chain(e.bias).chain(e.residual.map(|view| view.buffer)));
                all.extend(step.statistics.iter().flat_map(|s| [s.mean, s.inv_std]));
            }
            Self::Conv2dBackwardData(step) => {
                all.extend([step.dy.buffer, step.w, step.dx.buffer]);
                all.extend(epilogue_buffers(&step.epilogue));
            }
            Self::Conv2dBackwardWeight(step) => {
                all.extend([step.x.buffer, step.dy.buffer, step.dw]);
                all.extend(step.dbias);
            }
            Self::BatchNormForward(step) => {
                all.extend(normalized_buffers(&step.input));
                all.push(step.z.buffer);
                match &step.residual {
                    Some(batch_norm::Residual::Identity(view)) => all.push(view.buffer),
                    Some(batch_norm::Residual::Normalized(shortcut)) => all.extend(normalized_buffers(shortcut)),
                    None => {}
                }
            }
            Self::BatchNormBackward(step) => {
                all.extend([step.g.buffer, step.y.buffer, step.dy.buffer]);
                all.extend([step.mean, step.inv_std, step.gamma, step.dgamma, step.dbeta]);
            }
            Self::MaxPoolForward(step) => {
                all.extend([step.x.buffer, step.y.buffer]);
                all.extend(step.index);
            }
            Self::MaxPoolBackward(step) => {
                all.extend([step.dy.buffer, step.index, step.dx.buffer]);
                all.extend(epilogue_buffers(&step.epilogue));
            }
            Self::AveragePoolForward(step) => all.extend([step.x.buffer, step.y.buffer]),
            Self::AveragePoolBackward(step) => {
                all.extend([step.dy.buffer, step.dx.buffer]);
                all.extend(epilogue_buffers(&step.epilogue));
            }
            Self::CrossEntropy(step) => {
                all.extend([step.logits.buffer, step.labels, step.loss, step.dlogits.buffer]);
            }
        }
        all
    }
}

fn normalized_buffers(input: &batch_norm::Normalized) -> [BufferId; 5] {
    [input.y.buffer, input.mean, input.inv_std, input.gamma, input.beta]
}

fn epilogue_buffers(epilogue: &crate::ops::GradientEpilogue) -> Vec<BufferId> {
    let mask = epilogue.relu_mask.iter().map(|view| view.buffer);
    let sums = epilogue.reductions.iter().flat_map(|r| [r.y.buffer, r.mean, r.inv_std, r.dgamma, r.dbeta]);
    mask.chain(sums).collect()
}
