//! Console logs of convnet-benchmarks, one file a framework: Torch7, the TensorFlow port, Caffe and neon.
//!
//! Times are means of ten or a hundred iterations, in milliseconds of a batch but for TensorFlow, which prints seconds.

mod caffe;
mod neon;
mod tensorflow;
mod torch;

use super::Fault;
use super::draft::Draft;
use super::entry::{Entry, Fact, Measured, Phase};
use crate::shape::Precision;

/// Whether a text is one of the four logs.
pub(super) fn is_log(text: &str) -> bool {
    text.lines().any(|line| {
        torch::is_header(line)
            || tensorflow::result(line).is_some()
            || caffe::result(line).is_some()
            || neon::is_header(line)
    })
}

/// Reads a log; one file may hold several.
pub(super) fn read(text: &str, draft: &mut Draft<'_>) -> Result<(), Fault> {
    torch::read(text, draft)?;
    tensorflow::read(text, draft);
    caffe::read(text, draft);
    neon::read(text, draft);
    Ok(())
}

/// An entry of a time in milliseconds, in f32 unless its log or its file's name says otherwise.
fn entry(model: &str, phase: Phase, ms: f64, draft: &Draft<'_>) -> Entry {
    let mut entry = Entry::new(model, phase, "ms_per_batch", ms, Measured::Millis(ms));
    let name = draft.title.to_ascii_lowercase();
    entry.precision = if name.contains("fp16") || name.contains("half") {
        entry.precision_word = "fp16".to_owned();
        Fact::Guessed(Precision::F16, "the precision is taken from the file's name")
    } else {
        Fact::Guessed(Precision::F32, "the precision is not stated, f32 is these programs' own")
    };
    entry
}

/// The network of a log that names none, from its file's name: its name there and its minibatch in the script.
fn from_file_name(title: &str) -> Option<(&'static str, usize)> {
    const NETWORKS: [(&str, usize); 4] = [("AlexNet", 128), ("OverFeat", 128), ("GoogLeNet", 128), ("VGG-A", 64)];
    let title = title.to_ascii_lowercase();
    NETWORKS.into_iter().find(|(name, _)| {
        let name = name.to_ascii_lowercase();
        title.contains(&name) || (name == "vgg-a" && title.contains("vgg"))
    })
}

/// Remark on a network known by the file's name.
const FROM_FILE_NAME: &str = "the network is taken from the file's name";

#[cfg(test)]
mod tests;
