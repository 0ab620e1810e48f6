//! The plan under construction: numbers buffers, and remembers where the output of each node lies.

use super::parameter::{Init, NormInit, Parameter};
use super::{Buffer, Contents, Gradient, Pass, Plan, fuse::Groups};
use crate::graph::NodeId;
use crate::ops::{BufferId, Conv2d, Op, View};
use crate::shape::{Element, Precision, Shape};

pub(super) struct Builder<'a> {
    pub(super) groups: &'a Groups<'a>,
    pub(super) plan: Plan,
    /// Where each node's output lies, once it does.
    values: Vec<Option<View>>,
}

impl<'a> Builder<'a> {
    /// A plan that holds only its input.
    pub(super) fn new(groups: &'a Groups<'a>, pass: Pass, precision: Precision, minibatch: usize) -> Self {
        let graph = groups.graph;
        let work = graph.layers(precision);
        let flops: u64 = match pass {
            Pass::Forward => work.iter().map(|layer| layer.forward_flops).sum(),
            Pass::ForwardBackward => work.iter().map(|layer| layer.forward_backward_flops).sum(),
        };
        let mut plan = Plan::empty(&graph.definition(), pass, precision, minibatch);
        plan.flops = flops * minibatch as u64;
        let mut builder = Self { groups, plan, values: vec![None; graph.nodes.len()] };
        let input = builder.activation("input", graph.node(graph.input()).shape);
        builder.plan.input = input.buffer;
        builder.values[graph.input().0] = Some(input);
        builder
    }

    pub(super) fn buffer(&mut self, name: &str, contents: Contents, element: Element) -> BufferId {
        self.plan.buffers.push(Buffer { name: name.to_owned(), contents, element, slot: usize::MAX });
        BufferId((self.plan.buffers.len() - 1) as u32)
    }

    /// A new activation for the whole minibatch; `shape` is that of one sample.
    pub(super) fn activation(&mut self, name: &str, shape: Shape) -> View {
        let shape = shape.with_minibatch(self.plan.minibatch);
        let element = self.plan.precision.storage();
        View::whole(self.buffer(name, Contents::Activation(shape), element), shape)
    }

    /// One f32 a channel.
    pub(super) fn vector(&mut self, name: &str, length: usize) -> BufferId {
        self.buffer(name, Contents::Vector(length), Element::F32)
    }

    /// Where the output of `id` lies.
    pub(super) fn value(&self, id: NodeId) -> View {
        self.values[id.0].expect("groups are ordered: a node's inputs have values before it")
    }

    /// Makes room for the output of `id`: an activation of its own, or its slice of a concatenation.
    pub(super) fn make_value(&mut self, id: NodeId) -> View {
        let graph = self.groups.graph;
        let view = match self.groups.slice(id) {
            None => self.activation(&graph.node(id).name, graph.node(id).shape),
            Some((concat, offset)) => {
                let whole = match self.values[concat.0] {
                    Some(whole) => whole,
                    None => self.activation(&graph.node(concat).name, graph.node(concat).shape),
                };
                self.values[concat.0] = Some(whole);
                slice(whole, offset, graph.node(id).shape.c)
            }
        };
        self.values[id.0] = Some(view);
        view
    }

    /// A parameter with its buffer of f32 values.
    pub(super) fn parameter(&mut self, name: String, contents: Contents, element: Element, init: Init) -> BufferId {
        let buffer = self.buffer(&name, contents, element);
        self.plan.parameters.push(Parameter { name, buffer, elements: contents.elements(), init });
        buffer
    }

    /// The filter of the convolution at `id`.
    pub(super) fn filter(&mut self, id: NodeId, conv: &Conv2d, element: Element) -> BufferId {
        let filter = conv.filter(self.groups.graph.input_shape(id));
        let name = format!("{}.weight", self.groups.graph.node(id).name);
        self.parameter(name, Contents::Filter(filter), element, Init::He { fan_in: filter.depth() })
    }

    /// The bias of the convolution at `id`.
    pub(super) fn bias(&mut self, id: NodeId, conv: &Conv2d) -> Option<BufferId> {
        let name = format!("{}.bias", self.groups.graph.node(id).name);
        conv.bias.then(|| self.parameter(name, Contents::Vector(conv.k), Element::F32, Init::BIAS))
    }

    /// What the batch norm at `id` starts from, and its channels.
    pub(super) fn norm_init(&self, id: NodeId) -> (NormInit, usize) {
        let node = self.groups.graph.node(id);
        let Op::BatchNorm(norm) = &node.op else { unreachable!("a group's norm is a batch norm") };
        (NormInit { node: node.name.clone(), gamma: norm.gamma, epsilon: norm.epsilon }, node.shape.c)
    }

    /// Room for the gradient of a parameter, f32.
    pub(super) fn gradient(&mut self, parameter: BufferId) -> BufferId {
        let Buffer { name, contents, .. } = self.plan.buffer(parameter).clone();
        let buffer = self.buffer(&format!("{name} gradient"), contents, Element::F32);
        self.plan.gradients.push(Gradient { name, buffer });
        buffer
    }
}

/// `channels` channels of a whole buffer.
pub(super) fn slice(whole: View, offset: usize, channels: usize) -> View {
    View { shape: Shape { c: channels, ..whole.shape }, channel_offset: offset, ..whole }
}
