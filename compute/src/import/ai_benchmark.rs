//! Console output of ai-benchmark: milliseconds a batch of nineteen networks in TensorFlow, then three scores.

use serde_json::json;

use super::Fault;
use super::draft::Draft;
use super::entry::{Entry, Fact, Measured, Phase};
use super::text::{number_after, shorten, sides};

/// Times in milliseconds below which the clock's resolution of one matters.
const COARSE_MS: f64 = 20.0;

/// What the lines above the results say.
#[derive(Default)]
struct Machine {
    tensorflow: Option<String>,
    program: Option<String>,
    cpu: Option<String>,
    gpu: Option<String>,
    cuda: Option<String>,
}

/// Whether a text is such output.
pub(super) fn is_log(text: &str) -> bool {
    text.lines().any(|line| line.contains("AI-Benchmark-v") || result(line).is_some() || score(line).is_some())
}

/// Reads every result; a log that ends early is read as far as it goes.
pub(super) fn read(text: &str, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let mut machine = Machine::default();
    let mut network: Option<(usize, usize, String)> = None;
    let mut latest = String::new();
    let mut n_scores = 0;
    for line in text.lines() {
        let line = line.trim().trim_start_matches(['#', ' ', '>']);
        if let Some(found) = heading(line) {
            network = Some(found);
        } else if let Some(result) = result(line) {
            latest = shorten(result.number, 20);
            draft.add(machine.entry(&result, network.as_ref().map_or("unknown network", |(.., name)| name)));
        } else if let Some((what, phase, value)) = score(line) {
            n_scores += 1;
            draft.add(machine.score(what, phase, value));
        } else {
            machine.read(line, draft);
        }
    }
    if latest.is_empty() && n_scores == 0 {
        return Err(Fault::new("the log ends before its first result"));
    }
    if n_scores < 3 {
        let rest = network
            .filter(|(place, of, _)| place < of)
            .map(|(place, of, _)| format!(", {} of {of} networks are missing", of - place));
        draft.notes.push(format!("the log ends early, after test {latest}{}", rest.unwrap_or_default()));
    }
    Ok(())
}

/// Place, number of all and name of a line such as `7/19. VGG-16`.
fn heading(line: &str) -> Option<(usize, usize, String)> {
    let (places, name) = line.split_once(". ")?;
    let (place, of) = places.split_once('/')?;
    let name = shorten(name.trim_end_matches('#'), 60);
    (!name.is_empty()).then_some((place.parse().ok()?, of.parse().ok()?, name))
}

/// A line such as `7.1 - inference | batch=20, size=224x224: 110 ± 1 ms`.
struct Line<'a> {
    number: &'a str,
    phase: Phase,
    minibatch: Option<usize>,
    size: Option<&'a str>,
    ms: f64,
    stddev_ms: Option<f64>,
}

fn result(line: &str) -> Option<Line<'_>> {
    let (what, rest) = line.trim().split_once('|')?;
    let (number, kind) = what.split_once(" - ")?;
    let phase = match kind.trim() {
        "inference" => Phase::Inference,
        "training" => Phase::TrainStep,
        _ => return None,
    };
    let (settings, times) = rest.rsplit_once("ms").map_or(rest, |(before, _)| before).split_once(": ")?;
    let setting = |key: &str| settings.split(',').find_map(|part| part.trim().strip_prefix(key));
    // Where ± can't be printed there is "ms, std:" or some other character in its place.
    let mut numbers =
        times.split(|c: char| !(c.is_ascii_digit() || c == '.')).filter_map(|part| part.parse::<f64>().ok());
    let ms = numbers.next().filter(|ms| ms.is_finite())?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    is_number.then(|| Line {
        number,
        phase,
        minibatch: setting("batch=").and_then(|text| text.parse().ok()).filter(|&minibatch| minibatch > 0),
        size: setting("size="),
        ms,
        stddev_ms: numbers.next().or_else(|| number_after(line, "std:")).filter(|stddev| stddev.is_finite()),
    })
}

fn score(line: &str) -> Option<(&'static str, Phase, f64)> {
    let scores = [
        ("Device Inference Score:", "inference score", Phase::Inference),
        ("Device Training Score:", "training score", Phase::ForwardBackward),
        ("Device AI Score:", "score", Phase::Inference),
    ];
    scores.into_iter().find_map(|(mark, what, phase)| Some((what, phase, number_after(line, mark)?)))
}

impl Machine {
    fn read(&mut self, line: &str, draft: &mut Draft<'_>) {
        let value = |key: &str| {
            let value = line.trim_start_matches(['*', ' ']).strip_prefix(key)?.trim();
            (!value.is_empty() && value != "N/A").then(|| shorten(value, 100))
        };
        if let Some((_, version)) = line.split_once("AI-Benchmark-v") {
            self.program = Some(version.trim_start_matches('.').trim().to_owned());
        } else if let Some(version) = value("TF Version:") {
            self.tensorflow = Some(version);
        } else if let Some(os) = value("Platform:") {
            draft.host.os = os;
        } else if let Some(cpu) = value("CPU:") {
            draft.host.cpu.clone_from(&cpu);
            self.cpu = Some(cpu);
        } else if let Some(gpu) = value("GPU/0:").or_else(|| value("GPU:")) {
            self.gpu = Some(gpu);
        } else if let Some(version) = value("CUDA Version:") {
            self.cuda = Some(version);
        }
    }

    fn describe(&self, entry: &mut Entry) {
        entry.device = match (&self.gpu, &self.cpu) {
            // TensorFlow lists some GPUs by the compiler that reaches them, without a name.
            (Some(gpu), _) if gpu.contains("XLA") => Fact::Unknown,
            (Some(gpu), _) => Fact::Stated(gpu.clone()),
            (None, Some(cpu)) => {
                Fact::Guessed(cpu.clone(), "the log lists no GPU, so the processor is taken to have computed it")
            }
            (None, None) => Fact::Unknown,
        };
        entry.engine =
            self.tensorflow.as_ref().map_or("TensorFlow".to_owned(), |version| format!("TensorFlow {version}"));
        let versions = [("TensorFlow", &self.tensorflow), ("CUDA", &self.cuda), ("ai-benchmark", &self.program)];
        entry
            .libraries
            .extend(versions.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version.clone()?))));
    }

    fn entry(&self, line: &Line<'_>, network: &str) -> Entry {
        let mut entry = Entry::new(network, line.phase, "ms_per_batch", line.ms, Measured::Millis(line.ms));
        // The size of a recurrent network is its sequence and its features, that of the others an image.
        let is_image = !(network.contains("LSTM") || network.contains("GNMT"));
        if let Some(size) = line.size {
            entry.input = Some(if is_image { size.to_owned() } else { format!("{size} (sequence x features)") });
            entry.shown = if sides(size).is_some() { format!("{network} {size}") } else { network.to_owned() };
        }
        entry.minibatch = line.minibatch.map_or(Fact::Unknown, Fact::Stated);
        if line.ms < COARSE_MS {
            entry.notes.push("its clock resolves a millisecond".to_owned());
        }
        if let Some(stddev_ms) = line.stddev_ms {
            entry.extra.insert("stddev_ms".to_owned(), json!(stddev_ms));
        }
        entry.extra.insert("test".to_owned(), json!(shorten(line.number, 20)));
        self.describe(&mut entry);
        entry
    }

    fn score(&self, what: &str, phase: Phase, value: f64) -> Entry {
        let measured = if value > 0.0 {
            Measured::Other
        } else {
            Measured::Failed("its log gives a score of 0: the tests did not run".to_owned())
        };
        let mut entry = Entry::new(&format!("ai-benchmark {what}"), phase, "score", value, measured);
        entry.phase_words = Some(what.to_owned());
        entry.minibatch = Fact::Inapplicable;
        self.describe(&mut entry);
        entry
    }
}

#[cfg(test)]
mod tests;
