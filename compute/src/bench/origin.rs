//! Where a figure comes from that this program did not measure, and what it looked like there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::record::{Record, Status};
use crate::plan::Pass;
use crate::shape::Precision;

/// Source of a record that another program or a publication made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// Whether it was published or handed over as a file.
    pub kind: OriginKind,
    /// Short name of the source: of the publication, such as `"timm_results"`, or of the file's format, such as
    /// `"llama-bench"`.
    pub source: String,
    /// Title of the publication or name of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Who made it; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authors: Option<String>,
    /// When it was published or measured, as the source says it; absent when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Where it can be read; absent for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Licence of the figures as the source states it; absent for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// How the figure got here, such as `"repository snapshot"`; absent for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obtained: Option<String>,
    /// SHA-256 of the file that it was imported from, hexadecimal; absent for a publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The figure as the source has it.
    pub figure: Figure,
    /// Why the figure can't be true, such as a rate above what the device can compute; absent when nothing speaks against
    /// it. Such a record is shown, but takes no part in rankings and estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How a record came here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OriginKind {
    /// It was published.
    Published,
    /// It was read from a file of another program.
    Imported,
}

/// One figure in its source's own words and unit, unconverted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The model.
    pub model: String,
    /// What was run, such as `"inference"`, `"backward"` or `"train_step"`.
    pub phase: String,
    /// The precision; empty when not stated.
    pub precision: String,
    /// Unit of the value, such as `"images_per_s"`, `"ms_per_batch"` or `"tokens_per_s"`.
    pub metric: String,
    /// The value.
    pub value: f64,
    /// Size of one sample, such as `"224x224"`; absent when not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Devices that worked on it together; absent for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_devices: Option<usize>,
}

impl Origin {
    /// A record of this figure with outcome `ok`; network, engine, device, minibatch and throughput are not known yet.
    pub fn record(self, pass: Pass, precision: Precision) -> Record {
        let model = self.figure.model.clone();
        Record { model, origin: Some(Box::new(self)), ..Record::blank(pass, precision, Status::Ok) }
    }
}
