//! What the published files of timm say in their names:
//! `benchmark-<infer|train>-<precision>-<nchw|nhwc>-pt<version>-cu<version>-<gpu>[-dynamo].csv`.

use crate::import::entry::Phase;

/// The parts of a name; each is absent where the name does not have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FileName {
    pub(super) phase: Option<Phase>,
    pub(super) precision: Option<String>,
    pub(super) layout: Option<&'static str>,
    pub(super) pytorch: Option<String>,
    pub(super) cuda: Option<String>,
    pub(super) gpu: Option<String>,
    /// Whether the network was compiled by TorchDynamo.
    pub(super) is_compiled: bool,
}

impl FileName {
    pub(super) fn parse(name: &str) -> Self {
        let mut found = Self::default();
        // A version has points: only endings that are known are cut off.
        let name = name.to_ascii_lowercase();
        let stem = [".csv", ".json", ".txt", ".log"].iter().fold(name.as_str(), |stem, end| stem.trim_end_matches(end));
        let Some(rest) = stem.strip_prefix("benchmark-") else { return found };
        let mut gpu: Vec<&str> = Vec::new();
        for part in rest.split('-') {
            let is_version = |prefix: &str| {
                part.strip_prefix(prefix).filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
            };
            match part {
                "infer" => found.phase = Some(Phase::Inference),
                "train" => found.phase = Some(Phase::TrainStep),
                "nchw" => found.layout = Some("NCHW"),
                "nhwc" => found.layout = Some("NHWC"),
                "dynamo" => found.is_compiled = true,
                _ if found.pytorch.is_none() && is_version("pt").is_some() => {
                    found.pytorch = is_version("pt").map(pytorch);
                }
                _ if found.cuda.is_none() && is_version("cu").is_some() => found.cuda = is_version("cu").map(cuda),
                _ if found.precision.is_none() && found.layout.is_none() && found.pytorch.is_none() => {
                    found.precision = Some(part.to_owned());
                }
                _ => gpu.push(part),
            }
        }
        found.gpu = (!gpu.is_empty()).then(|| gpu_name(&gpu.join(" ")));
        found
    }
}

/// `113` is 1.13 and `240` is 2.4: minor versions had two digits up to 1.13, and from 2.0 a patch follows.
fn pytorch(digits: &str) -> String {
    let Ok(number) = digits.parse::<u32>() else { return digits.to_owned() };
    match number {
        100..200 => format!("1.{}", number % 100),
        200..1000 if number % 10 == 0 => format!("{}.{}", number / 100, number / 10 % 10),
        200..1000 => format!("{}.{}.{}", number / 100, number / 10 % 10, number % 10),
        2000..10_000 if number % 10 == 0 => format!("{}.{}", number / 1000, number / 10 % 100),
        _ => digits.to_owned(),
    }
}

/// `124` is 12.4.
fn cuda(digits: &str) -> String {
    match digits.parse::<u32>() {
        Ok(number @ 100..1000) => format!("{}.{}", number / 10, number % 10),
        _ => digits.to_owned(),
    }
}

/// `rtx4090` as its vendor writes it; what lacks the series stays as it is.
fn gpu_name(token: &str) -> String {
    for series in ["rtx", "gtx"] {
        if let Some(number) = token.strip_prefix(series) {
            return format!("{} {}", series.to_ascii_uppercase(), number.trim().to_ascii_uppercase());
        }
    }
    token.to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_three_eras() {
        let text = |text: &str| Some(text.to_owned());
        let expected = FileName {
            phase: Some(Phase::Inference),
            precision: text("amp"),
            layout: Some("NCHW"),
            pytorch: text("2.4"),
            cuda: text("12.4"),
            gpu: text("4090"),
            is_compiled: true,
        };
        assert_eq!(FileName::parse("benchmark-infer-amp-nchw-pt240-cu124-4090-dynamo.csv"), expected);
        let old = FileName::parse("benchmark-train-float32-nhwc-pt113-cu117-rtx3090.csv");
        assert_eq!((old.pytorch, old.cuda, old.gpu), (text("1.13"), text("11.7"), text("RTX 3090")));
        assert_eq!((old.phase, old.precision, old.layout), (Some(Phase::TrainStep), text("float32"), Some("NHWC")));
        assert_eq!(FileName::parse("benchmark-infer-amp-nchw-pt2.1.0-cu12.1-a100.csv").pytorch, text("2.1.0"));
        assert_eq!(FileName::parse("results.csv"), FileName::default());
    }
}
