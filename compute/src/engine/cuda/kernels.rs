//! The kernel texts in `shaders/`, embedded, and what is put before each.

use crate::shape::{Element, Precision};

/// A kernel file: its entry points are compiled together, into one module for each precision.
struct File {
    /// Stem of the file.
    name: &'static str,
    /// Precisions that it computes in.
    precisions: &'static [Precision],
    /// Texts that it builds on, in order; [`ELEMENT`] precedes them all.
    before: &'static [&'static str],
    text: &'static str,
}

const ELEMENT: &str = include_str!("../../../../shaders/element.cu");
const COLUMNS: &str = include_str!("../../../../shaders/columns.cu");
const COLUMN_SUMS: &str = include_str!("../../../../shaders/column_sums.cu");
const CONV2D_DIVISOR: &str = include_str!("../../../../shaders/conv2d_divisor.cu");
const CONV2D_TILE: &str = include_str!("../../../../shaders/conv2d_tile.cu");
const CONV2D_GATHER: &str = include_str!("../../../../shaders/conv2d_gather.cu");
const CONV2D_FINISH: &str = include_str!("../../../../shaders/conv2d_finish.cu");
const CONV2D_SIMT_TILE: &str = include_str!("../../../../shaders/conv2d_simt_tile.cu");
const CONV2D_SIMT_GATHER: &str = include_str!("../../../../shaders/conv2d_simt_gather.cu");
const CONV2D_WGMMA_TILE: &str = include_str!("../../../../shaders/conv2d_wgmma_tile.cu");
const CONV2D_WGMMA_EPILOGUE: &str = concat!(
    include_str!("../../../../shaders/conv2d_wgmma_rows.cu"),
    include_str!("../../../../shaders/conv2d_wgmma_epilogue.cu"),
    include_str!("../../../../shaders/conv2d_wgmma_epilogue_single.cu"),
);
const CONV2D_WGMMA_GATHER: &str = include_str!("../../../../shaders/conv2d_wgmma_gather.cu");
const CONV2D_WGMMA_POINTWISE_TILE: &str = include_str!("../../../../shaders/conv2d_wgmma_pointwise_tile.cu");

/// Every precision.
const ALL: &[Precision] = &Precision::ALL;
/// What tensor cores compute in.
const TENSOR: &[Precision] = &[Precision::Tf32, Precision::F16, Precision::Bf16];
/// Half precisions.
const HALF: &[Precision] = &[Precision::F16, Precision::Bf16];
/// IEEE single precision.
const SINGLE: &[Precision] = &[Precision::F32];

/// Every kernel file.
const FILES: &[File] = &[
    File { name: "check", precisions: ALL, before: &[], text: include_str!("../../../../shaders/check.cu") },
    File { name: "cast", precisions: HALF, before: &[], text: include_str!("../../../../shaders/cast.cu") },
    File { name: "dropout", precisions: ALL, before: &[COLUMNS], text: include_str!("../../../../shaders/dropout.cu") },
    File {
        name: "batch_norm",
        precisions: ALL,
        before: &[COLUMNS],
        text: include_str!("../../../../shaders/batch_norm.cu"),
    },
    File {
        name: "batch_norm_sums",
        precisions: ALL,
        before: &[COLUMNS, COLUMN_SUMS],
        text: include_str!("../../../../shaders/batch_norm_sums.cu"),
    },
    File {
        name: "gradient_finish",
        precisions: ALL,
        before: &[COLUMNS, COLUMN_SUMS],
        text: include_str!("../../../../shaders/gradient_finish.cu"),
    },
    File {
        name: "max_pool",
        precisions: ALL,
        before: &[COLUMNS],
        text: include_str!("../../../../shaders/max_pool.cu"),
    },
    File {
        name: "max_pool_backward",
        precisions: ALL,
        before: &[COLUMNS],
        text: include_str!("../../../../shaders/max_pool_backward.cu"),
    },
    File {
        name: "average_pool",
        precisions: ALL,
        before: &[COLUMNS, COLUMN_SUMS],
        text: include_str!("../../../../shaders/average_pool.cu"),
    },
    File { name: "softmax", precisions: ALL, before: &[], text: include_str!("../../../../shaders/softmax.cu") },
    File {
        name: "conv2d_epilogue",
        precisions: ALL,
        before: &[COLUMNS],
        text: include_str!("../../../../shaders/conv2d_epilogue.cu"),
    },
    File {
        name: "conv2d_filter",
        precisions: ALL,
        before: &[],
        text: include_str!("../../../../shaders/conv2d_filter.cu"),
    },
    File {
        name: "conv2d",
        precisions: TENSOR,
        before: &[CONV2D_DIVISOR, CONV2D_TILE, CONV2D_GATHER, CONV2D_FINISH],
        text: include_str!("../../../../shaders/conv2d.cu"),
    },
    File {
        name: "conv2d_backward_data",
        precisions: TENSOR,
        before: &[CONV2D_DIVISOR, CONV2D_TILE, CONV2D_GATHER, CONV2D_FINISH],
        text: include_str!("../../../../shaders/conv2d_backward_data.cu"),
    },
    File {
        name: "conv2d_backward_weight",
        precisions: TENSOR,
        before: &[CONV2D_DIVISOR, CONV2D_TILE],
        text: include_str!("../../../../shaders/conv2d_backward_weight.cu"),
    },
    File {
        name: "conv2d_wgmma",
        precisions: TENSOR,
        before: &[CONV2D_WGMMA_TILE, CONV2D_WGMMA_EPILOGUE, CONV2D_WGMMA_GATHER],
        text: include_str!("../../../../shaders/conv2d_wgmma.cu"),
    },
    File {
        name: "conv2d_wgmma_backward_data",
        precisions: HALF,
        before: &[CONV2D_WGMMA_TILE, CONV2D_WGMMA_EPILOGUE, CONV2D_WGMMA_GATHER],
        text: include_str!("../../../../shaders/conv2d_wgmma_backward_data.cu"),
    },
    File {
        name: "conv2d_wgmma_pointwise",
        precisions: TENSOR,
        before: &[CONV2D_WGMMA_TILE, CONV2D_WGMMA_EPILOGUE, CONV2D_WGMMA_POINTWISE_TILE],
        text: include_str!("../../../../shaders/conv2d_wgmma_pointwise.cu"),
    },
    File {
        name: "conv2d_wgmma_pointwise_backward_data",
        precisions: HALF,
        before: &[CONV2D_WGMMA_TILE, CONV2D_WGMMA_EPILOGUE, CONV2D_WGMMA_POINTWISE_TILE],
        text: include_str!("../../../../shaders/conv2d_wgmma_pointwise_backward_data.cu"),
    },
    File {
        name: "conv2d_wgmma_patch",
        precisions: TENSOR,
        before: &[CONV2D_WGMMA_TILE, CONV2D_WGMMA_EPILOGUE],
        text: include_str!("../../../../shaders/conv2d_wgmma_patch.cu"),
    },
    File {
        name: "conv2d_wgmma_patch_backward_weight",
        precisions: HALF,
        before: &[CONV2D_WGMMA_TILE],
        text: include_str!("../../../../shaders/conv2d_wgmma_patch_backward_weight.cu"),
    },
    File {
        name: "conv2d_wgmma_narrow",
        precisions: HALF,
        before: &[CONV2D_WGMMA_TILE, CONV2D_WGMMA_EPILOGUE],
        text: include_str!("../../../../shaders/conv2d_wgmma_narrow.cu"),
    },
    File {
        name: "conv2d_wgmma_combine",
        precisions: TENSOR,
        before: &[],
        text: include_str!("../../../../shaders/conv2d_wgmma_combine.cu"),
    },
    File {
        name: "conv2d_wgmma_backward_weight",
        precisions: HALF,
        before: &[CONV2D_WGMMA_TILE],
        text: include_str!("../../../../shaders/conv2d_wgmma_backward_weight.cu"),
    },
    File {
        name: "conv2d_simt",
        precisions: SINGLE,
        before: &[CONV2D_SIMT_TILE, CONV2D_SIMT_GATHER],
        text: include_str!("../../../../shaders/conv2d_simt.cu"),
    },
    File {
        name: "conv2d_simt_backward_data",
        precisions: SINGLE,
        before: &[CONV2D_SIMT_TILE, CONV2D_SIMT_GATHER],
        text: include_str!("../../../../shaders/conv2d_simt_backward_data.cu"),
    },
    File {
        name: "conv2d_simt_backward_weight",
        precisions: SINGLE,
        before: &[CONV2D_DIVISOR, CONV2D_SIMT_TILE],
        text: include_str!("../../../../shaders/conv2d_simt_backward_weight.cu"),
    },
    File {
        name: "conv2d_winograd",
        precisions: SINGLE,
        before: &[include_str!("../../../../shaders/conv2d_winograd_points.cu")],
        text: include_str!("../../../../shaders/conv2d_winograd.cu"),
    },
    File {
        name: "conv2d_winograd_multiply",
        precisions: SINGLE,
        before: &[CONV2D_SIMT_TILE],
        text: include_str!("../../../../shaders/conv2d_winograd_multiply.cu"),
    },
];

/// Stems of every kernel file.
pub(super) fn files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.name)
}

/// Complete text of a kernel file for one precision, ready to be compiled.
///
/// # Panics
/// When there is no such file.
pub(super) fn text(file: &str, precision: Precision) -> String {
    let found = FILES.iter().find(|known| known.name == file);
    let File { before, text, .. } = found.unwrap_or_else(|| panic!("there is no kernel file {file:?}"));
    let element = match precision.storage() {
        Element::F16 => 1,
        Element::Bf16 => 2,
        _ => 0,
    };
    let tf32 = u8::from(precision == Precision::Tf32);
    let constants = format!("#define ELEMENT {element}\n#define TF32 {tf32}\n");
    let texts = std::iter::once(&ELEMENT).chain(*before).chain([text]);
    std::iter::once(constants.as_str()).chain(texts.copied()).collect::<Vec<_>>().join("\n")
}

/// Whether a kernel file computes in a precision.
pub(super) fn serves(file: &str, precision: Precision) -> bool {
    FILES.iter().any(|known| known.name == file && known.precisions.contains(&precision))
}

/// Whether devices of a compute capability compute in a precision: tensor cores know bf16 and TF32 from 8.0 on, f16
/// from 7.5 on, the oldest that is supported.
pub(super) fn computes(capability: (u32, u32), precision: Precision) -> bool {
    match precision {
        Precision::F32 | Precision::F16 => capability >= OLDEST_CAPABILITY,
        Precision::Tf32 | Precision::Bf16 => capability >= (8, 0),
    }
}

/// Oldest compute capability that kernels are written for (Turing).
pub(super) const OLDEST_CAPABILITY: (u32, u32) = (7, 5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_states_its_precision_first() {
        for (precision, opening) in [
            (Precision::F32, "#define ELEMENT 0\n#define TF32 0\n"),
            (Precision::Tf32, "#define ELEMENT 0\n#define TF32 1\n"),
            (Precision::F16, "#define ELEMENT 1\n#define TF32 0\n"),
            (Precision::Bf16, "#define ELEMENT 2\n#define TF32 0\n"),
        ] {
            for file in files() {
                let text = text(file, precision);
                assert!(text.starts_with(opening), "{file} {precision}");
                assert!(text.contains("typedef u16 element;") && text.contains("extern \"C\""), "{file} {precision}");
            }
        }
    }
}
