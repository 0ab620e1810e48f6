//! The TensorFlow port: one network a file, named by the file, seconds a batch with three decimals.

use serde_json::json;

use super::{Draft, FROM_FILE_NAME, Fact, Phase, entry, from_file_name};
use crate::import::networks;
use crate::import::text::number_after;
use crate::models::Model;

/// The pass, mean and deviation in seconds of a line such as
/// `<time>: Forward across 100 steps, 0.026 +/- 0.003 sec / batch`.
pub(super) fn result(line: &str) -> Option<(Phase, f64, Option<f64>)> {
    let (what, rest) = line.split_once(" across ")?;
    let (_, times) = rest.split_once(" steps, ").filter(|_| rest.contains("sec / batch"))?;
    let phase = match what.rsplit(' ').next()? {
        "Forward" => Phase::Forward,
        "Forward-backward" => Phase::ForwardBackward,
        _ => return None,
    };
    let secs = times.split_whitespace().next()?.parse().ok().filter(|secs: &f64| secs.is_finite())?;
    Some((phase, secs, number_after(times, "+/-")))
}

/// Reads every result.
pub(super) fn read(text: &str, draft: &mut Draft<'_>) {
    let known = from_file_name(&draft.title);
    let device = text.lines().find_map(|line| line.strip_prefix("name: ")).map(|name| name.trim().to_owned());
    for (phase, secs, deviation) in text.lines().filter_map(result) {
        let mut entry = entry(known.map_or("unknown network", |(name, _)| name), phase, secs * 1e3, draft);
        (entry.metric, entry.value) = ("s_per_batch", secs);
        if let Some((name, minibatch)) = known {
            let side = if name == "OverFeat" { Model::Overfeat.input_size() } else { Model::Alexnet.input_size() };
            entry.network = networks::convnet_benchmarks(name, Some((side, side)));
            entry.input = Some(format!("{side}x{side}"));
            entry.notes.push(FROM_FILE_NAME.to_owned());
            entry.minibatch = Fact::Guessed(minibatch, "the minibatch is not in the log, it is the script's own");
        } else {
            entry.notes.push("neither the log nor the file's name says which network it is".to_owned());
        }
        entry.device = device.clone().map_or(Fact::Unknown, Fact::Stated);
        entry.engine = "TensorFlow".to_owned();
        if secs < 0.1 {
            entry.notes.push("its file rounds times to a millisecond".to_owned());
        }
        if let Some(deviation) = deviation {
            entry.extra.insert("stddev_secs".to_owned(), json!(deviation));
        }
        draft.add(entry);
    }
}
