//! The training pass: forward with what backward needs kept, loss, and the gradient of every parameter.
//!
//! A gradient that arrives at a rectified activation is masked by the step that writes it, so that no mask is stored.
//! Maximum pooling needs none: the gradient of its output is already masked, and a positive maximum was positive in the
//! input. The gradient that enters a residual sum is also the shortcut's, without a copy.

use std::collections::HashMap;

use super::builder::{Builder, slice};
use super::fuse::{Anchor, Group, Groups};
use super::parameter::Init;
use super::{Contents, Pass, Plan, PlanError, Step};
use crate::graph::{Graph, NodeId};
use crate::ops::batch_norm::{self, Normalized, Reduction, Residual, Statistics};
use crate::ops::{BufferId, GradientEpilogue, View, average_pool, cast, conv2d, max_pool, softmax};
use crate::shape::{Element, Precision};

pub(super) fn plan(graph: &Graph, precision: Precision, minibatch: usize) -> Result<Plan, PlanError> {
    let groups = Groups::new(graph)?;
    let builder = Builder::new(&groups, Pass::ForwardBackward, precision, minibatch);
    let mut training = Training {
        builder,
        casts: Vec::new(),
        kept: HashMap::new(),
        gradients: HashMap::new(),
        factor: 1.0 / precision.loss_scale(),
    };
    for group in &groups.list {
        training.forward(group)?;
    }
    training.loss();
    for group in groups.list.iter().rev() {
        training.backward(group)?;
    }
    let Training { builder, mut casts, .. } = training;
    let mut plan = builder.plan;
    casts.append(&mut plan.steps);
    plan.steps = casts;
    plan.gradients.reverse();
    Ok(plan)
}

struct Training<'a> {
    builder: Builder<'a>,
    /// Master weights rounded to storage, once an iteration, before everything else.
    casts: Vec<Step>,
    /// What the forward pass of each group, by its anchor, left for the backward pass.
    kept: HashMap<NodeId, Kept>,
    /// Gradient of each node's output, once a consumer has contributed to it.
    gradients: HashMap<NodeId, Arriving>,
    /// `1 / loss scale`.
    factor: f32,
}

/// What the forward pass of a group leaves for its backward pass.
#[derive(Clone, Copy)]
enum Kept {
    Conv2d { master: BufferId, w: BufferId, bias: Option<BufferId>, norm: Option<Norm> },
    MaxPool { index: BufferId },
    AveragePool,
}

/// A convolution's output in batch norm, and the gradients of its parameters.
#[derive(Clone, Copy)]
struct Norm {
    normalized: Normalized,
    dgamma: BufferId,
    dbeta: BufferId,
}

/// A gradient that consumers contribute to one after the other.
#[derive(Clone, Copy)]
struct Arriving {
    view: View,
    contributions: usize,
    /// Whether it began as the gradient of a residual sum, which this node's own ReLU has not masked.
    is_shared: bool,
}

impl Training<'_> {
    fn forward(&mut self, group: &Group) -> Result<(), PlanError> {
        let builder = &mut self.builder;
        let x = builder.value(group.x);
        let dropout = group.dropout;
        match &group.anchor {
            Anchor::Conv2d(conv) => return self.forward_conv(group, conv, x),
            Anchor::MaxPool(pool) => {
                let y = builder.make_value(group.output);
                let name = format!("{} index", builder.groups.graph.node(group.node).name);
                let index = builder.buffer(&name, Contents::Activation(y.shape), Element::U8);
                let step = max_pool::Forward { x, y, index: Some(index), window: pool.window(), dropout };
                builder.plan.steps.push(Step::MaxPoolForward(step));
                self.kept.insert(group.node, Kept::MaxPool { index });
            }
            Anchor::AveragePool => {
                let y = builder.make_value(group.output);
                builder.plan.steps.push(Step::AveragePoolForward(average_pool::Forward { x, y, dropout }));
                self.kept.insert(group.node, Kept::AveragePool);
            }
        }
        Ok(())
    }

    fn forward_conv(&mut self, group: &Group, conv: &crate::ops::Conv2d, x: View) -> Result<(), PlanError> {
        let builder = &mut self.builder;
        let groups = builder.groups;
        let element = builder.plan.precision.storage();
        let master = builder.filter(group.node, conv, Element::F32);
        let mut w = master;
        if element != Element::F32 {
            let contents = builder.plan.buffer(master).contents;
            w = builder.buffer(&format!("{}.weight rounded", groups.graph.node(group.node).name), contents, element);
            self.casts.push(Step::Cast(cast::Cast { x: master, y: w }));
        }
        let bias = builder.bias(group.node, conv);
        let window = conv.window();
        let Some(norm_node) = group.norm else {
            if let Some(other) = group.residual {
                return Err(groups.unfusable(other, "in training a sum must follow batch norm"));
            }
            let epilogue =
                conv2d::Epilogue { bias, relu: group.relu, dropout: group.dropout, ..conv2d::Epilogue::default() };
            let y = builder.make_value(group.output);
            let step = conv2d::Forward { x, w, y, window, epilogue, statistics: None };
            builder.plan.steps.push(Step::Conv2dForward(step));
            self.kept.insert(group.node, Kept::Conv2d { master, w, bias, norm: None });
            return Ok(());
        };
        if group.dropout.is_some() {
            return Err(groups.unfusable(group.output, "in training dropout can't follow batch norm"));
        }

        let norm = self.norm(group, norm_node);
        let builder = &mut self.builder;
        let Normalized { y, mean, inv_std, .. } = norm.normalized;
        let (init, _) = builder.norm_init(norm_node);
        let statistics = Some(Statistics { mean, inv_std, epsilon: init.epsilon });
        let epilogue = conv2d::Epilogue { bias, ..conv2d::Epilogue::default() };
        builder.plan.steps.push(Step::Conv2dForward(conv2d::Forward { x, w, y, window, epilogue, statistics }));
        self.kept.insert(group.node, Kept::Conv2d { master, w, bias, norm: Some(norm) });
        if groups.is_deferred(group) {
            return Ok(());
        }
        let residual = group.residual.map(|id| match self.deferred_norm(id) {
            Some(shortcut) => Residual::Normalized(shortcut.normalized),
            None => Residual::Identity(self.builder.value(id)),
        });
        let z = self.builder.make_value(group.output);
        let step = batch_norm::Forward { input: norm.normalized, residual, relu: group.relu, z };
        self.builder.plan.steps.push(Step::BatchNormForward(step));
        Ok(())
    }

    /// Buffers of the batch norm at `id` behind the convolution of `group`.
    fn norm(&mut self, group: &Group, id: NodeId) -> Norm {
        let builder = &mut self.builder;
        let (init, channels) = builder.norm_init(id);
        let node = builder.groups.graph.node(group.node);
        let y = builder.activation(&node.name, node.shape);
        let mut vector = |part: &str| builder.vector(&format!("{} {part}", init.node), channels);
        let (mean, inv_std) = (vector("mean"), vector("inv_std"));
        let mut parameter = |part: &str, values: Init| {
            let name = format!("{}.{part}", init.node);
            builder.parameter(name, Contents::Vector(channels), Element::F32, values)
        };
        let (gamma, beta) = (parameter("gamma", Init::gamma(init.gamma)), parameter("beta", Init::BETA));
        let (dbeta, dgamma) = (builder.gradient(beta), builder.gradient(gamma));
        Norm { normalized: Normalized { y, mean, inv_std, gamma, beta }, dgamma, dbeta }
    }

    /// The batch norm whose output is that of `id` and is never stored.
    fn deferred_norm(&self, id: NodeId) -> Option<Norm> {
        let groups = self.builder.groups;
        let group = groups.producer(id).filter(|group| groups.is_deferred(group))?;
        self.norm_of(group)
    }

    fn norm_of(&self, group: &Group) -> Option<Norm> {
        match self.kept.get(&group.node) {
            Some(Kept::Conv2d { norm, .. }) => *norm,
            _ => None,
        }
    }

    fn loss(&mut self) {
        let builder = &mut self.builder;
        let output = builder.groups.graph.output();
        let logits = builder.value(output);
        let labels = builder.buffer("labels", Contents::Vector(builder.plan.minibatch), Element::U32);
        let loss = builder.vector("loss", 1);
        let dlogits = builder.activation("logits gradient", logits.shape);
        let loss_scale = builder.plan.precision.loss_scale();
        builder.plan.logits = logits.buffer;
        builder.plan.labels = Some(labels);
        builder.plan.loss = Some(loss);
        let step = softmax::CrossEntropy { logits, labels, loss, dlogits, loss_scale };
        builder.plan.steps.push(Step::CrossEntropy(step));
        self.gradients.insert(output, Arriving { view: dlogits, contributions: 1, is_shared: false });
    }

    fn backward(&mut self, group: &Group) -> Result<(), PlanError> {
        let groups = self.builder.groups;
        let g = match groups.slice(group.output) {
            None => self.gradients[&group.output].view,
            Some((concat, offset)) => slice(self.gradients[&concat].view, offset, self.output_channels(group)),
        };
        match (self.kept[&group.node], &group.anchor) {
            (Kept::Conv2d { master, w, bias, norm }, Anchor::Conv2d(conv)) => {
                let dy = match norm {
                    None => g,
                    Some(norm) => self.backward_norm(group, norm, g)?,
                };
                let window = conv.window();
                let x = self.builder.value(group.x);
                let dbias = bias.map(|bias| self.builder.gradient(bias));
                let dw = self.builder.gradient(master);
                let step = conv2d::BackwardWeight { x, dy, dw, dbias, window, factor: self.factor };
                self.builder.plan.steps.push(Step::Conv2dBackwardWeight(step));
                if group.x != groups.graph.input() {
                    let (dx, epilogue) = self.contribution(group.x, true)?;
                    let step = conv2d::BackwardData { dy, w, dx, window, epilogue };
                    self.builder.plan.steps.push(Step::Conv2dBackwardData(step));
                }
            }
            (Kept::MaxPool { index }, Anchor::MaxPool(pool)) => {
                let (dx, epilogue) = self.contribution(group.x, false)?;
                let step = max_pool::Backward { dy: g, index, dx, window: pool.window(), epilogue };
                self.builder.plan.steps.push(Step::MaxPoolBackward(step));
            }
            (_, _) => {
                let (dx, epilogue) = self.contribution(group.x, true)?;
                let step = average_pool::Backward { dy: g, dx, epilogue };
                self.builder.plan.steps.push(Step::AveragePoolBackward(step));
            }
        }
        Ok(())
    }

    /// Backward through batch norm, and the shortcut's share of the gradient: the same buffer.
    fn backward_norm(&mut self, group: &Group, norm: Norm, g: View) -> Result<View, PlanError> {
        if let Some(other) = group.residual {
            let shared = Arriving { view: g, contributions: 1, is_shared: true };
            if self.gradients.insert(other, shared).is_some() {
                return Err(self.builder.groups.unfusable(other, "the sum must be the last to read it"));
            }
        }
        let Normalized { y, mean, inv_std, gamma, .. } = norm.normalized;
        let node = self.builder.groups.graph.node(group.node);
        let dy = self.builder.activation(&format!("{} gradient", node.name), node.shape);
        let loss_scale = self.builder.plan.precision.loss_scale();
        let Norm { dgamma, dbeta, .. } = norm;
        let step = batch_norm::Backward { g, y, mean, inv_std, gamma, dgamma, dbeta, dy, loss_scale };
        self.builder.plan.steps.push(Step::BatchNormBackward(step));
        Ok(dy)
    }

    /// Where the next contribution to the gradient of `id` goes and what is fused behind it.
    fn contribution(&mut self, id: NodeId, must_mask: bool) -> Result<(View, GradientEpilogue), PlanError> {
        let groups = self.builder.groups;
        let node = groups.graph.node(id);
        let arriving = match self.gradients.get(&id) {
            Some(&arriving) => arriving,
            None => {
                let view = self.builder.activation(&format!("{} gradient", node.name), node.shape);
                Arriving { view, contributions: 0, is_shared: false }
            }
        };
        let contributions = arriving.contributions + 1;
        self.gradients.insert(id, Arriving { contributions, ..arriving });
        let is_last = contributions == groups.uses(id);
        let producer = groups.producer(id);
        let is_masked = groups.is_nonnegative(id) && (must_mask || arriving.is_shared);
        let epilogue = GradientEpilogue {
            scale: producer.and_then(|group| group.dropout).map_or(1.0, |dropout| dropout.scale),
            accumulate: arriving.contributions > 0,
            relu_mask: is_masked.then(|| self.builder.value(id)),
            reductions: if is_last {
                producer.map_or_else(Vec::new, |group| self.reductions(group))
            } else {
                Vec::new()
            },
        };
        Ok((arriving.view, epilogue))
    }

    /// Sums that the batch norms of `group` need over the finished gradient of its output.
    fn reductions(&self, group: &Group) -> Vec<Reduction> {
        let shortcut = group.residual.and_then(|id| self.deferred_norm(id));
        let norms = self.norm_of(group).into_iter().chain(shortcut);
        norms
            .map(|Norm { normalized, dgamma, dbeta }| {
                let Normalized { y, mean, inv_std, .. } = normalized;
                Reduction { y, mean, inv_std, dgamma, dbeta, factor: self.factor }
            })
            .collect()
    }

    fn output_channels(&self, group: &Group) -> usize {
        self.builder.groups.graph.node(group.output).shape.c
    }
}
