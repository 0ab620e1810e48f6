//! Finds what one step can take up: each convolution or pooling with the operations behind it.

use super::PlanError;
use crate::graph::{Graph, NodeId};
use crate::ops::dropout::Dropping;
use crate::ops::{Conv2d, MaxPool, Op};

/// The operation that a group is built around.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Anchor {
    Conv2d(Conv2d),
    MaxPool(MaxPool),
    AveragePool,
}

/// An anchor and the operations that are fused behind it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) anchor: Anchor,
    /// The anchor's node.
    pub(super) node: NodeId,
    /// The node whose output it takes.
    pub(super) x: NodeId,
    /// Batch norm behind the anchor.
    pub(super) norm: Option<NodeId>,
    /// Node whose output is added.
    pub(super) residual: Option<NodeId>,
    pub(super) relu: bool,
    pub(super) dropout: Option<Dropping>,
    /// The last node taken up; its output is the group's.
    pub(super) output: NodeId,
}

/// A graph as groups in the order of execution, with the concatenations that their outputs are slices of.
#[derive(Clone, Debug)]
pub(super) struct Groups<'a> {
    pub(super) graph: &'a Graph,
    pub(super) list: Vec<Group>,
    /// For each node whose output is written into a concatenation: the concatenation and the first channel.
    slices: Vec<Option<(NodeId, usize)>>,
}

impl<'a> Groups<'a> {
    /// Fuses every operation of `graph`.
    pub(super) fn new(graph: &'a Graph) -> Result<Self, PlanError> {
        let consumers = consumers(graph);
        let mut groups = Self { graph, list: Vec::new(), slices: vec![None; graph.nodes.len()] };
        let mut taken = vec![false; graph.nodes.len()];
        taken[graph.input().0] = true;
        for id in (1..graph.nodes.len()).map(NodeId) {
            if taken[id.0] {
                continue;
            }
            let node = graph.node(id);
            let anchor = match &node.op {
                Op::Concat => {
                    groups.take_concat(id, &consumers)?;
                    taken[id.0] = true;
                    continue;
                }
                Op::MaxPool(pool) => Anchor::MaxPool(pool.clone()),
                Op::AveragePool(_) => Anchor::AveragePool,
                op => match op.as_conv2d(graph.input_shape(id)) {
                    Some(conv) => Anchor::Conv2d(conv),
                    None => return Err(groups.unfusable(id, "there is no convolution or pooling before it")),
                },
            };
            let group = groups.group(anchor, id, &consumers, &mut taken);
            groups.list.push(group);
        }
        Ok(groups)
    }

    /// Where the output of `id` lies in a concatenation, if it does.
    pub(super) fn slice(&self, id: NodeId) -> Option<(NodeId, usize)> {
        self.slices[id.0]
    }

    /// The group whose output is that of `id`; none for the input and for concatenations.
    pub(super) fn producer(&self, id: NodeId) -> Option<&Group> {
        self.list.iter().find(|group| group.output == id)
    }

    /// How many groups read the output of `id`, as input or as residual.
    pub(super) fn uses(&self, id: NodeId) -> usize {
        self.list.iter().map(|group| usize::from(group.x == id) + usize::from(group.residual == Some(id))).sum()
    }

    /// Whether the output of `id` is never negative, so that its zeros mark where ReLU or dropout cut the gradient.
    pub(super) fn is_nonnegative(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        match node.op {
            Op::Relu => true,
            Op::Concat | Op::MaxPool(_) | Op::AveragePool(_) | Op::Dropout(_) => {
                node.inputs.iter().all(|&input| self.is_nonnegative(input))
            }
            _ => false,
        }
    }

    /// Whether a group's output is a normalized convolution that only a sum reads: in training the sum's step
    /// normalizes it on the way and it is never stored.
    pub(super) fn is_deferred(&self, group: &Group) -> bool {
        group.norm.is_some()
            && !group.relu
            && group.residual.is_none()
            && self.uses(group.output) == 1
            && self.list.iter().any(|other| other.residual == Some(group.output))
    }

    pub(super) fn unfusable(&self, id: NodeId, reason: &'static str) -> PlanError {
        let node = self.graph.node(id);
        let operation = match node.op {
            Op::Input => "input",
            Op::Conv2d(_) => "convolution",
            Op::Linear { .. } => "fully connected layer",
            Op::BatchNorm(_) => "batch norm",
            Op::Relu => "ReLU",
            Op::Add => "sum",
            Op::Concat => "concatenation",
            Op::MaxPool(_) => "maximum pooling",
            Op::AveragePool(_) => "average pooling",
            Op::Dropout(_) => "dropout",
        };
        PlanError::Unfusable { operation, node: node.name.clone(), reason }
    }

    /// Follows the chain of single consumers behind an anchor as far as one step's epilogue goes.
    fn group(&self, anchor: Anchor, id: NodeId, consumers: &[Vec<NodeId>], taken: &mut [bool]) -> Group {
        let is_conv = matches!(anchor, Anchor::Conv2d(_));
        let x = self.graph.node(id).inputs[0];
        let mut group =
            Group { anchor, node: id, x, norm: None, residual: None, relu: false, dropout: None, output: id };
        taken[id.0] = true;
        while let [next] = consumers[group.output.0][..] {
            let behind_activation = group.relu || group.dropout.is_some();
            match &self.graph.node(next).op {
                Op::BatchNorm(_) if is_conv && group.output == id => group.norm = Some(next),
                Op::Add if is_conv && !behind_activation && group.residual.is_none() => {
                    let other = self.graph.node(next).inputs.iter().copied().find(|&input| input != group.output);
                    match other {
                        // The other side must be finished: its group stands earlier.
                        Some(other) if self.is_finished(other) => group.residual = Some(other),
                        _ => break,
                    }
                }
                Op::Relu if is_conv && !behind_activation => group.relu = true,
                Op::Dropout(dropout) if group.dropout.is_none() && self.is_nonnegative(group.output) => {
                    group.dropout = Some(Dropping::new(dropout, self.dropout_key(next)));
                }
                _ => break,
            }
            taken[next.0] = true;
            group.output = next;
        }
        group
    }

    fn is_finished(&self, id: NodeId) -> bool {
        id == self.graph.input() || self.producer(id).is_some() || self.slices.iter().flatten().any(|s| s.0 == id)
    }

    /// Number of a dropout layer among the graph's: its key in the generator.
    fn dropout_key(&self, id: NodeId) -> u32 {
        self.graph.nodes[..=id.0].iter().filter(|node| matches!(node.op, Op::Dropout(_))).count() as u32
    }

    fn take_concat(&mut self, id: NodeId, consumers: &[Vec<NodeId>]) -> Result<(), PlanError> {
        let mut offset = 0;
        for &input in &self.graph.node(id).inputs {
            if self.producer(input).is_none() || consumers[input.0].len() != 1 {
                return Err(self.unfusable(id, "each input must come from one layer and go nowhere else"));
            }
            self.slices[input.0] = Some((id, offset));
            offset += self.graph.node(input).shape.c;
        }
        Ok(())
    }
}

/// For each node, the nodes that take its output.
fn consumers(graph: &Graph) -> Vec<Vec<NodeId>> {
    let mut consumers = vec![Vec::new(); graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for input in &node.inputs {
            consumers[input.0].push(NodeId(index));
        }
    }
    consumers
}
