//! Which records an estimate may rest on.

use std::collections::BTreeMap;

use super::work::native_peak;
use super::{Software, Workload};
use crate::bench::record::{Record, ResultFile, Status};
use crate::catalog::{self, Gpu};
use crate::engine::Device;
use crate::models::Model;

/// Source of what this program measured, or a script of this project did.
pub const MEASURED: &str = "measured";

/// Networks under other names whose work is within 12% of one of the suite's: ResNets v1 and v2, whose stride stands in
/// the first 1x1 (3.86 GMAC instead of 4.09 for ResNet-50). What is left of the difference is a factor of its own in
/// every series. Without them the median error of held-out figures of the suite's own networks is 17.4%, with them 16.5%
/// (2026-12-01).
///
/// Source: the names under which the published sets have them.
const ALIKE: [(&str, Model); 7] = [
    ("ResNet-50 (DLInfBench)", Model::Resnet50),
    ("ResNet-101 (DLInfBench)", Model::Resnet101),
    ("ResNet-152 (DLInfBench)", Model::Resnet152),
    ("ResNet-50 (tf_cnn_benchmarks, v1)", Model::Resnet50),
    ("ResNet-152 (tf_cnn_benchmarks, v1)", Model::Resnet152),
    ("ResNet-50 (MXNet)", Model::Resnet50),
    ("ResNet-152 (MXNet)", Model::Resnet152),
];

/// What a note says where a source's f32 may have been tf32.
const DOUBTFUL_PRECISION: &str = "TF32 may be in use";

/// One figure that estimates rest on.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The GPU.
    pub gpu: &'static Gpu,
    /// What it computed; of published ResNets the network is sometimes v1 or v2 instead of v1.5.
    pub workload: Workload,
    /// Samples a second.
    pub throughput_per_sec: f64,
    /// What computed it, as the record names it, such as `"PyTorch 2.1.0 (timm), channels-last"` or `"cuda"`.
    pub software: String,
    /// Short name of the publication, or [`MEASURED`].
    pub source: String,
    /// Whether the time includes the optimizer's update of the parameters. Series are alike in this, so it needs no factor.
    pub includes_update: bool,
}

impl Evidence {
    /// The records of a file that an estimate may rest on: with outcome `ok`, a throughput and a minibatch, of one GPU of
    /// the catalog that has a peak in the precision and a bandwidth, and of a network of the suite or one with nearly its
    /// work.
    ///
    /// Left out is what is doubted ([`Origin::doubt`]), and published figures whose precision is not sure.
    ///
    /// [`Origin::doubt`]: crate::bench::origin::Origin::doubt
    pub fn of(file: &ResultFile) -> Vec<Self> {
        let mut gpus: BTreeMap<usize, Option<&'static Gpu>> = BTreeMap::new();
        let mut gpu = |index: usize| *gpus.entry(index).or_insert_with(|| file.devices.get(index).and_then(catalogued));
        file.records.iter().filter_map(|record| Self::new(record, gpu(record.device?)?)).collect()
    }

    fn new(record: &Record, gpu: &'static Gpu) -> Option<Self> {
        let throughput_per_sec = record.throughput_per_sec.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        let origin = record.origin.as_deref();
        let sure = origin.is_none_or(|origin| {
            let one = origin.figure.n_devices.is_none_or(|n| n == 1);
            one && origin.doubt.is_none() && !origin.figure.precision.is_empty()
        });
        let sure = sure && !record.notes.iter().any(|note| note.contains(DOUBTFUL_PRECISION));
        if record.status != Status::Ok || record.minibatch == 0 || !sure {
            return None;
        }
        native_peak(gpu, record.precision).and(gpu.bandwidth_bytes_per_sec)?;
        let model = network(record)?;
        let (pass, precision, minibatch) = (record.pass, record.precision, record.minibatch);
        Some(Self {
            gpu,
            workload: Workload { model, pass, precision, minibatch },
            throughput_per_sec,
            software: record.engine.clone(),
            source: origin.map_or(MEASURED, |origin| &origin.source).to_owned(),
            includes_update: origin.is_some_and(|origin| origin.figure.phase == "train_step"),
        })
    }

    /// Whose software the figure is of.
    pub fn series(&self) -> Software {
        Software { family: family(&self.software), source: Some(self.source.clone()) }
    }

    /// The fastest of the figures that differ in nothing but version and settings of one framework in one source: what
    /// that software can do. In a fixed order, whatever that of the evidence.
    pub(super) fn fastest(evidence: &[Self]) -> Vec<&Self> {
        let mut best: BTreeMap<_, &Self> = BTreeMap::new();
        for figure in evidence {
            let kept = best.entry((&figure.gpu.name, figure.series(), figure.workload)).or_insert(figure);
            if figure.throughput_per_sec > kept.throughput_per_sec {
                *kept = figure;
            }
        }
        best.into_values().collect()
    }
}

/// The framework that a record's engine names: its first word, in lower case.
pub(super) fn family(software: &str) -> String {
    let end = software.find([' ', ',']).unwrap_or(software.len());
    software[..end].to_lowercase()
}

fn catalogued(device: &Device) -> Option<&'static Gpu> {
    catalog::find(&device.name).or_else(|| catalog::find_with_memory(&device.name, device.memory_bytes))
}

/// The network of the suite that a record is of, or nearly of.
fn network(record: &Record) -> Option<Model> {
    if !record.definition.is_empty() {
        return record.model.parse().ok();
    }
    ALIKE.iter().find(|(name, _)| *name == record.model).map(|&(_, model)| model)
}
