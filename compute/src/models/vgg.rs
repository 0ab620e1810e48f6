//! VGG, configurations A and D, and the classifier that AlexNet, OverFeat and VGG share.
//!
//! Source: Simonyan, Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", 2015, table 1;
//! dropout before the first two fully connected layers (section 3.1).

use crate::graph::{Graph, NodeId};
use crate::ops::{Conv2d, Op, ShapeError};

/// Filters of each 3×3 convolution, a list for each group that a pooling ends.
type Configuration = [&'static [usize]; 5];

/// Configuration A, 11 weight layers.
pub(super) const A: Configuration = [&[64], &[128], &[256, 256], &[512, 512], &[512, 512]];

/// Configuration D, 16 weight layers.
pub(super) const D: Configuration = [&[64, 64], &[128, 128], &[256, 256, 256], &[512, 512, 512], &[512, 512, 512]];

pub(super) fn graph(name: &str, groups: &Configuration, size: usize, classes: usize) -> Result<Graph, ShapeError> {
    let mut g = Graph::new(name, 1, 3, size, size);
    let mut x = g.input();
    for (group, filters) in (1..).zip(groups) {
        for (layer, &k) in (1..).zip(*filters) {
            let conv = Conv2d { k, r: 3, s: 3, stride: 1, pad: 1, bias: true };
            x = g.conv_relu(&format!("conv{group}_{layer}"), x, conv)?;
        }
        x = g.max_pool(&format!("pool{group}"), x, 2, 2, 0)?;
    }
    classifier(&mut g, x, 4096, 4096, classes)?;
    Ok(g)
}

/// Appends three fully connected layers, dropout of one half before the first two, ReLU behind them.
pub(super) fn classifier(
    g: &mut Graph,
    mut x: NodeId,
    fc6: usize,
    fc7: usize,
    classes: usize,
) -> Result<NodeId, ShapeError> {
    for (name, outputs) in [("fc6", fc6), ("fc7", fc7)] {
        x = g.dropout(&format!("{name} dropout"), x, 0.5)?;
        x = g.add(name, Op::Linear { outputs }, &[x])?;
        x = g.add(&format!("{name} relu"), Op::Relu, &[x])?;
    }
    g.add("fc8", Op::Linear { outputs: classes }, &[x])
}
