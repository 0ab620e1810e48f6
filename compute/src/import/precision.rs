//! Words for precisions in foreign files.

use crate::shape::Precision;

/// Remark on automatic mixed precision.
const MIXED: &str = "automatic mixed precision: some operations are computed in f32";
/// Remark on single precision that may have been TF32.
pub(super) const TF32_POSSIBLE: &str = "f32 as its program calls it; GPUs from Ampere on may have multiplied in TF32";
/// Remark on single precision that allows TF32.
pub(super) const TF32_ALLOWED: &str = "f32 with TF32 allowed, which GPUs from Ampere on use";

/// What a word says, with a remark where it is not the whole truth.
pub(super) fn meaning(word: &str) -> Option<(Precision, Option<&'static str>)> {
    let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    Some(match word.as_str() {
        "fp32" | "float32" | "f32" | "float" | "single" => (Precision::F32, None),
        "tf32" => (Precision::Tf32, None),
        "fp16" | "float16" | "f16" | "half" => (Precision::F16, None),
        "amp" | "ampfp16" | "ampfloat16" | "mixed" => (Precision::F16, Some(MIXED)),
        "bf16" | "bfloat16" => (Precision::Bf16, None),
        "ampbf16" | "ampbfloat16" => (Precision::Bf16, Some(MIXED)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_their_programs_mean() {
        let cases = [
            ("fp32", Some((Precision::F32, false))),
            ("AMP", Some((Precision::F16, true))),
            ("amp (bf16)", Some((Precision::Bf16, true))),
            ("amp_bfloat16", Some((Precision::Bf16, true))),
            ("bfloat16", Some((Precision::Bf16, false))),
            ("tf32", Some((Precision::Tf32, false))),
            ("int8", None),
        ];
        for (word, expected) in cases {
            assert_eq!(meaning(word).map(|(precision, note)| (precision, note.is_some())), expected, "{word}");
        }
    }
}
