//! The complete text of a kernel: a generated header of constants, then the shader file as it stands in `shaders/`.

use std::fmt::Write;

use super::launch::Kernel;
use crate::shape::Element;

/// Functions that every kernel may call.
const DROPOUT: &str = include_str!("../../../../shaders/dropout.wgsl");

/// Text of a shader file by its stem.
pub(super) fn file(stem: &str) -> &'static str {
    match stem {
        "average_pool" => include_str!("../../../../shaders/average_pool.wgsl"),
        "batch_norm" => include_str!("../../../../shaders/batch_norm.wgsl"),
        "batch_norm_sums" => include_str!("../../../../shaders/batch_norm_sums.wgsl"),
        "cast" => include_str!("../../../../shaders/cast.wgsl"),
        "conv2d" => concat!(
            include_str!("../../../../shaders/conv2d_tile.wgsl"),
            include_str!("../../../../shaders/conv2d.wgsl")
        ),
        "conv2d_backward_weight" => concat!(
            include_str!("../../../../shaders/conv2d_tile.wgsl"),
            include_str!("../../../../shaders/conv2d_backward_weight.wgsl")
        ),
        "max_pool" => include_str!("../../../../shaders/max_pool.wgsl"),
        "softmax" => include_str!("../../../../shaders/softmax.wgsl"),
        _ => unreachable!("no shader file {stem:?}"),
    }
}

/// The text that is compiled for a kernel.
///
/// The header gives `element` and `element4` (`f32` and `vec4<f32>`, or `f16` and `vec4<f16>`) and the kernel's
/// constants as `const NAME: u32`.
pub(super) fn source(kernel: &Kernel) -> String {
    let scalar = match kernel.element {
        Element::F32 => "f32",
        Element::F16 => "f16",
        other => unreachable!("kernels store f32 or f16, not {other:?}"),
    };
    let mut text = String::new();
    if kernel.element == Element::F16 {
        text.push_str("enable f16;\n");
    }
    // Writing to a string can't fail.
    let _ = writeln!(text, "alias element = {scalar};\nalias element4 = vec4<{scalar}>;");
    for (name, value) in &kernel.constants {
        let _ = writeln!(text, "const {name}: u32 = {value}u;");
    }
    text.push_str(DROPOUT);
    text.push_str(file(kernel.file));
    text
}
