//! One network: its layers in order, with shapes known and work countable. Fusion and memory belong to
//! [`crate::plan`].

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::ops::{AveragePool, BatchNorm, Conv2d, Dropout, MaxPool, Op, ShapeError};
use crate::shape::{Precision, Shape};

/// Number of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// One operation with its place in the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Name, unique in the graph.
    pub name: String,
    /// The operation.
    pub op: Op,
    /// Nodes whose outputs it takes.
    pub inputs: Vec<NodeId>,
    /// Output shape of one sample (`n` = 1).
    pub shape: Shape,
}

/// A network as a list of nodes, each after its inputs; the last is the output.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Name of the model, such as `"resnet50"`.
    pub name: String,
    /// Version of the definition, raised when the network changes.
    pub version: u32,
    /// The nodes.
    pub nodes: Vec<Node>,
}

/// Work of one node for one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Name of the node.
    pub name: String,
    /// Output shape of one sample.
    pub output: Shape,
    /// Trainable parameters.
    pub parameters: u64,
    /// Multiply-accumulates of the forward pass.
    pub macs: u64,
    /// Floating-point operations of the forward pass, 2 · MACs.
    pub forward_flops: u64,
    /// Floating-point operations of forward and backward.
    pub forward_backward_flops: u64,
    /// Fewest bytes the forward pass moves: inputs read once, output written once.
    pub activation_bytes: u64,
    /// Fewest bytes of parameters read, once a minibatch.
    pub parameter_bytes: u64,
}

impl Graph {
    /// A graph that holds only its input, of `channels` × `height` × `width`.
    pub fn new(name: &str, version: u32, channels: usize, height: usize, width: usize) -> Self {
        let shape = Shape::new(1, channels, height, width);
        let input = Node { name: "input".to_owned(), op: Op::Input, inputs: Vec::new(), shape };
        Self { name: name.to_owned(), version, nodes: vec![input] }
    }

    /// The input node.
    pub const fn input(&self) -> NodeId {
        NodeId(0)
    }

    /// The output node.
    pub fn output(&self) -> NodeId {
        NodeId(self.nodes.len() - 1)
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// Input shape of one sample for node `id`: the output of its first input.
    pub fn input_shape(&self, id: NodeId) -> Shape {
        self.node(id).inputs.first().map_or(self.node(id).shape, |&input| self.node(input).shape)
    }

    /// Number of classes: channels of the output.
    pub fn classes(&self) -> usize {
        self.node(self.output()).shape.c
    }

    /// Appends a node.
    ///
    /// # Errors
    /// [`ShapeError`] when the operation can't take its inputs.
    pub fn add(&mut self, name: &str, op: Op, inputs: &[NodeId]) -> Result<NodeId, ShapeError> {
        let shapes: Vec<Shape> = inputs.iter().map(|&id| self.node(id).shape).collect();
        let shape = op.output(&shapes)?;
        self.nodes.push(Node { name: name.to_owned(), op, inputs: inputs.to_vec(), shape });
        Ok(self.output())
    }

    /// Appends a convolution with bias, then ReLU.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn conv_relu(&mut self, name: &str, x: NodeId, conv: Conv2d) -> Result<NodeId, ShapeError> {
        let y = self.add(name, Op::Conv2d(conv), &[x])?;
        self.add(&format!("{name} relu"), Op::Relu, &[y])
    }

    /// Appends a convolution without bias, then batch norm.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn conv_norm(&mut self, name: &str, x: NodeId, conv: Conv2d, gamma: f32) -> Result<NodeId, ShapeError> {
        let y = self.add(name, Op::Conv2d(conv), &[x])?;
        self.add(&format!("{name} norm"), Op::BatchNorm(BatchNorm { epsilon: 1e-5, gamma }), &[y])
    }

    /// Appends a maximum pooling.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn max_pool(
        &mut self,
        name: &str,
        x: NodeId,
        size: usize,
        stride: usize,
        pad: usize,
    ) -> Result<NodeId, ShapeError> {
        self.add(name, Op::MaxPool(MaxPool { size, stride, pad }), &[x])
    }

    /// Appends an average over the whole map.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn average_pool(&mut self, name: &str, x: NodeId) -> Result<NodeId, ShapeError> {
        self.add(name, Op::AveragePool(AveragePool), &[x])
    }

    /// Appends dropout.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn dropout(&mut self, name: &str, x: NodeId, probability: f32) -> Result<NodeId, ShapeError> {
        self.add(name, Op::Dropout(Dropout { probability }), &[x])
    }

    /// Work of every node that computes something, for one sample.
    ///
    /// Backward costs twice the forward multiply-adds (gradients of input and weights); the first convolution has no
    /// input gradient.
    pub fn layers(&self, precision: Precision) -> Vec<Layer> {
        let bytes = precision.storage().bytes() as u64;
        let indices = (1..self.nodes.len()).map(NodeId);
        let mut first_conv = true;
        indices
            .map(|id| {
                let node = self.node(id);
                let x = self.input_shape(id);
                let macs = node.op.macs(x);
                let backward = if macs > 0 && std::mem::take(&mut first_conv) { 1 } else { 2 };
                let read: usize = node.inputs.iter().map(|&input| self.node(input).shape.elements()).sum();
                Layer {
                    name: node.name.clone(),
                    output: node.shape,
                    parameters: node.op.parameters(x),
                    macs,
                    forward_flops: 2 * macs,
                    forward_backward_flops: 2 * macs * (1 + backward),
                    activation_bytes: (read + node.shape.elements()) as u64 * bytes,
                    parameter_bytes: node.op.parameters(x) * bytes,
                }
            })
            .collect()
    }

    /// Trainable parameters.
    pub fn parameters(&self) -> u64 {
        self.layers(Precision::F32).iter().map(|layer| layer.parameters).sum()
    }

    /// Multiply-accumulates of the forward pass for one sample.
    pub fn macs(&self) -> u64 {
        self.layers(Precision::F32).iter().map(|layer| layer.macs).sum()
    }

    /// Identity of the definition: `name/version`.
    pub fn definition(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }

    /// Hash of everything that determines the network: the first 16 hexadecimal digits of the SHA-256 of a canonical
    /// text, one line a node.
    pub fn definition_hash(&self) -> String {
        let mut text = format!("{}\n", self.definition());
        for node in &self.nodes {
            let inputs: Vec<usize> = node.inputs.iter().map(|id| id.0).collect();
            writeln!(text, "{}|{:?}|{inputs:?}|{}", node.name, node.op, node.shape)
                .expect("a String takes every write");
        }
        Sha256::digest(text.as_bytes()).iter().take(8).fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a String takes every write");
            hex
        })
    }
}
