//! GoogLeNet v1 without local response normalization and auxiliary classifiers.
//!
//! Source: Szegedy et al., "Going deeper with convolutions", 2015, table 1, with the padding of convnet-benchmarks;
//! dropout of 40% before the classifier.

use crate::graph::{Graph, NodeId};
use crate::ops::{Conv2d, Op, ShapeError};

/// Filters of one inception module.
struct Inception {
    name: &'static str,
    one: usize,
    three_reduce: usize,
    three: usize,
    five_reduce: usize,
    five: usize,
    pool: usize,
}

/// Row of the paper's table 1: 1×1, 3×3 reduce, 3×3, 5×5 reduce, 5×5, pool projection.
const fn module(name: &'static str, [one, three_reduce, three, five_reduce, five, pool]: [usize; 6]) -> Inception {
    Inception { name, one, three_reduce, three, five_reduce, five, pool }
}

const STAGE3: [Inception; 2] = [module("3a", [64, 96, 128, 16, 32, 32]), module("3b", [128, 128, 192, 32, 96, 64])];
const STAGE4: [Inception; 5] = [
    module("4a", [192, 96, 208, 16, 48, 64]),
    module("4b", [160, 112, 224, 24, 64, 64]),
    module("4c", [128, 128, 256, 24, 64, 64]),
    module("4d", [112, 144, 288, 32, 64, 64]),
    module("4e", [256, 160, 320, 32, 128, 128]),
];
const STAGE5: [Inception; 2] =
    [module("5a", [256, 160, 320, 32, 128, 128]), module("5b", [384, 192, 384, 48, 128, 128])];

pub(super) fn graph(size: usize, classes: usize) -> Result<Graph, ShapeError> {
    let mut g = Graph::new("googlenet", 1, 3, size, size);
    let mut x = g.conv_relu("conv1", g.input(), Conv2d { k: 64, r: 7, s: 7, stride: 2, pad: 3, bias: true })?;
    x = g.max_pool("pool1", x, 3, 2, 1)?;
    x = g.conv_relu("conv2_reduce", x, square(64, 1))?;
    x = g.conv_relu("conv2", x, square(192, 3))?;
    x = g.max_pool("pool2", x, 3, 2, 1)?;
    for module in &STAGE3 {
        x = inception(&mut g, x, module)?;
    }
    x = g.max_pool("pool3", x, 3, 2, 1)?;
    for module in &STAGE4 {
        x = inception(&mut g, x, module)?;
    }
    x = g.max_pool("pool4", x, 3, 2, 1)?;
    for module in &STAGE5 {
        x = inception(&mut g, x, module)?;
    }
    x = g.average_pool("avgpool", x)?;
    x = g.dropout("dropout", x, 0.4)?;
    g.add("fc", Op::Linear { outputs: classes }, &[x])?;
    Ok(g)
}

/// A convolution of stride 1 that keeps the map's size.
fn square(k: usize, window: usize) -> Conv2d {
    Conv2d { k, r: window, s: window, stride: 1, pad: window / 2, bias: true }
}

fn inception(g: &mut Graph, x: NodeId, m: &Inception) -> Result<NodeId, ShapeError> {
    let name = |branch: &str| format!("inception_{} {branch}", m.name);
    let one = g.conv_relu(&name("1x1"), x, square(m.one, 1))?;
    let three = g.conv_relu(&name("3x3 reduce"), x, square(m.three_reduce, 1))?;
    let three = g.conv_relu(&name("3x3"), three, square(m.three, 3))?;
    let five = g.conv_relu(&name("5x5 reduce"), x, square(m.five_reduce, 1))?;
    let five = g.conv_relu(&name("5x5"), five, square(m.five, 5))?;
    let pool = g.max_pool(&name("pool"), x, 3, 1, 1)?;
    let pool = g.conv_relu(&name("pool proj"), pool, square(m.pool, 1))?;
    g.add(&name("concat"), Op::Concat, &[one, three, five, pool])
}
