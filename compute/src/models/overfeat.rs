//! OverFeat, the fast model.
//!
//! Source: Sermanet et al., "OverFeat", 2014, table 1, with the filters and sizes of convnet-benchmarks; dropout before
//! the first two fully connected layers.

use super::vgg::classifier;
use crate::graph::Graph;
use crate::ops::{Conv2d, ShapeError};

pub(super) fn graph(size: usize, classes: usize) -> Result<Graph, ShapeError> {
    let mut g = Graph::new("overfeat", 1, 3, size, size);
    let conv = |k, window, stride, pad| Conv2d { k, r: window, s: window, stride, pad, bias: true };
    let mut x = g.conv_relu("conv1", g.input(), conv(96, 11, 4, 0))?;
    x = g.max_pool("pool1", x, 2, 2, 0)?;
    x = g.conv_relu("conv2", x, conv(256, 5, 1, 0))?;
    x = g.max_pool("pool2", x, 2, 2, 0)?;
    x = g.conv_relu("conv3", x, conv(512, 3, 1, 1))?;
    x = g.conv_relu("conv4", x, conv(1024, 3, 1, 1))?;
    x = g.conv_relu("conv5", x, conv(1024, 3, 1, 1))?;
    x = g.max_pool("pool5", x, 2, 2, 0)?;
    classifier(&mut g, x, 3072, 4096, classes)?;
    Ok(g)
}
