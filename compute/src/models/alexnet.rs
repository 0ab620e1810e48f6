//! AlexNet with one tower.
//!
//! Source: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014 (the one-tower variant),
//! with the filters and sizes of convnet-benchmarks; dropout before the first two fully connected layers.

use super::vgg::classifier;
use crate::graph::Graph;
use crate::ops::{Conv2d, ShapeError};

pub(super) fn graph(size: usize, classes: usize) -> Result<Graph, ShapeError> {
    let mut g = Graph::new("alexnet", 1, 3, size, size);
    let conv = |k, window, stride, pad| Conv2d { k, r: window, s: window, stride, pad, bias: true };
    let mut x = g.conv_relu("conv1", g.input(), conv(64, 11, 4, 2))?;
    x = g.max_pool("pool1", x, 3, 2, 0)?;
    x = g.conv_relu("conv2", x, conv(192, 5, 1, 2))?;
    x = g.max_pool("pool2", x, 3, 2, 0)?;
    x = g.conv_relu("conv3", x, conv(384, 3, 1, 1))?;
    x = g.conv_relu("conv4", x, conv(256, 3, 1, 1))?;
    x = g.conv_relu("conv5", x, conv(256, 3, 1, 1))?;
    x = g.max_pool("pool5", x, 3, 2, 0)?;
    classifier(&mut g, x, 4096, 4096, classes)?;
    Ok(g)
}
