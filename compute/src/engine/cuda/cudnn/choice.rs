//! What tells plans apart: an engine with its settings, and what it states of its arithmetic.

use std::fmt::Write;

/// An engine and its settings: what two proposals are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine::cuda) struct Choice {
    /// The engine's index, which a version of the library gives it for one pattern of operations.
    pub(in crate::engine::cuda) engine: i64,
    /// Settings: type and value.
    pub(in crate::engine::cuda) knobs: Vec<(i64, i64)>,
}

/// What an engine states of its arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::cuda) enum Note {
    /// Tensor cores multiply; f32 values are rounded to tf32 for it.
    TensorCore,
    /// Inputs are rounded to a smaller type.
    DownConvertInputs,
    /// Sums are kept in a type smaller than asked.
    ReducedPrecisionReduction,
    /// Computed through Fourier transforms.
    Fft,
    /// Sums are made in no fixed order.
    Nondeterministic,
    /// Computed by Winograd's algorithm.
    Winograd,
    /// Something that does not matter here.
    Other,
}

impl Note {
    /// Source: `cudnnBackendNumericalNote_t` of cudnn_graph.h, version 9.
    pub(super) fn new(value: i32) -> Self {
        match value {
            0 => Self::TensorCore,
            1 => Self::DownConvertInputs,
            2 => Self::ReducedPrecisionReduction,
            3 => Self::Fft,
            4 => Self::Nondeterministic,
            5..=8 => Self::Winograd,
            _ => Self::Other,
        }
    }
}

/// Settings by their type, in the words of `cudnnBackendKnobType_t` of cudnn_graph.h, version 9.21.
const KNOBS: [&str; 44] = [
    "split_k",
    "swizzle",
    "tile_size",
    "use_tex",
    "edge",
    "kblock",
    "ldga",
    "ldgb",
    "chunk_k",
    "split_h",
    "wino_tile",
    "multiply",
    "split_k_buf",
    "tilek",
    "stages",
    "reduction_mode",
    "cta_split_k_mode",
    "split_k_slc",
    "idx_mode",
    "sliced",
    "split_rs",
    "singlebuffer",
    "ldgc",
    "specfilt",
    "kernel_cfg",
    "workspace",
    "tile_cga",
    "tile_cga_m",
    "tile_cga_n",
    "block_size",
    "occupancy",
    "array_size_per_thread",
    "num_c_per_block",
    "split_cols",
    "tile_rows",
    "tile_cols",
    "load_size",
    "cta_count",
    "stream_k",
    "split_p_slc",
    "tile_m",
    "tile_n",
    "warp_spec_cfg",
    "swap_ab",
];

/// Engine, algorithm where it is not the direct one, and the settings that are not zero.
pub(super) fn name(choice: &Choice, notes: &[Note]) -> String {
    let mut name = format!("cudnn engine {}", choice.engine);
    for (note, word) in [(Note::Winograd, " winograd"), (Note::Fft, " fft")] {
        if notes.contains(&note) {
            name.push_str(word);
        }
    }
    let mut separator = " {";
    for &(kind, value) in choice.knobs.iter().filter(|(_, value)| *value != 0) {
        let known = usize::try_from(kind).ok().and_then(|kind| KNOBS.get(kind));
        let knob = known.map_or_else(|| format!("knob {kind}"), |knob| (*knob).to_owned());
        // Writing to a text can't fail.
        let _ = write!(name, "{separator}{knob}={value}");
        separator = ", ";
    }
    if separator == ", " {
        name.push('}');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_tell_plans_apart() {
        let choice = |knobs: &[(i64, i64)]| Choice { engine: 42, knobs: knobs.to_vec() };
        let cases = [
            (choice(&[]), vec![], "cudnn engine 42"),
            (choice(&[(2, 3), (0, 0), (14, 4)]), vec![Note::TensorCore], "cudnn engine 42 {tile_size=3, stages=4}"),
            (choice(&[(99, 1)]), vec![Note::Winograd], "cudnn engine 42 winograd {knob 99=1}"),
        ];
        for (choice, notes, expected) in cases {
            assert_eq!(name(&choice, &notes), expected);
        }
    }
}
