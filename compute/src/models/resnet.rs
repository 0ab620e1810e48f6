//! ResNet-50, -101 and -152 in version 1.5: the stride of a stage is on its first 3×3 convolution.
//!
//! Source: He et al., "Deep Residual Learning for Image Recognition", 2016, table 1; the place of the stride as in
//! fb.resnet.torch.

use crate::graph::{Graph, NodeId};
use crate::ops::{Conv2d, Op, ShapeError};

/// Synthetic scale of the batch norm that closes a block. With 1 the activations of an untrained network double at each
/// of up to fifty blocks in inference, where batch norm does not see the minibatch, and leave the range of f16.
const RESIDUAL_GAMMA: f32 = 0.25;

pub(super) fn graph(name: &str, blocks: [usize; 4], size: usize, classes: usize) -> Result<Graph, ShapeError> {
    let mut g = Graph::new(name, 1, 3, size, size);
    let mut x = g.conv_norm("conv1", g.input(), conv(64, 7, 2), 1.0)?;
    x = g.add("conv1 relu", Op::Relu, &[x])?;
    x = g.max_pool("maxpool", x, 3, 2, 1)?;
    for (stage, count) in (2..).zip(blocks) {
        for block in 1..=count {
            let stride = if stage > 2 && block == 1 { 2 } else { 1 };
            x = bottleneck(&mut g, &format!("stage{stage} block{block}"), x, 16 << stage, stride, block == 1)?;
        }
    }
    x = g.average_pool("avgpool", x)?;
    g.add("fc", Op::Linear { outputs: classes }, &[x])?;
    Ok(g)
}

fn conv(k: usize, window: usize, stride: usize) -> Conv2d {
    Conv2d { k, r: window, s: window, stride, pad: window / 2, bias: false }
}

fn bottleneck(
    g: &mut Graph,
    name: &str,
    x: NodeId,
    width: usize,
    stride: usize,
    projection: bool,
) -> Result<NodeId, ShapeError> {
    let part = |part: &str| format!("{name} {part}");
    let shortcut = if projection { g.conv_norm(&part("shortcut"), x, conv(4 * width, 1, stride), 1.0)? } else { x };
    let mut y = x;
    for (branch, k, window, stride) in [("a", width, 1, 1), ("b", width, 3, stride)] {
        y = g.conv_norm(&part(branch), y, conv(k, window, stride), 1.0)?;
        y = g.add(&part(&format!("{branch} relu")), Op::Relu, &[y])?;
    }
    y = g.conv_norm(&part("c"), y, conv(4 * width, 1, 1), RESIDUAL_GAMMA)?;
    y = g.add(&part("sum"), Op::Add, &[y, shortcut])?;
    g.add(&part("relu"), Op::Relu, &[y])
}
