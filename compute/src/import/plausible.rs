//! Figures that can't be true: they are kept, shown and marked by [`Origin::doubt`](crate::bench::origin::Origin::doubt).

use std::collections::BTreeMap;

use super::networks;
use crate::bench::compare::IMPLAUSIBLE_FACTOR;
use crate::bench::record::{Record, ResultFile, Status};
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

/// Samples or tokens a second beyond which no device gets with any network: one in a picosecond.
const MOST_PER_SEC: f64 = 1e12;
/// A signed 64-bit counter holds no more.
const OVERFLOW: f64 = 9.223e18;
/// Factor above the nominal peak that algorithms with fewer operations (Winograd, FFT) reach without tensor cores. Measured
/// ones are up to 1.6: OverFeat on a GTX Titan X of 6.7 TFLOP/s at 10.4, convnet-benchmarks of 2016.
const SAVED_OPERATIONS: f64 = 2.0;
/// Factor above the nominal peak that clocks above the nominal one reach.
const CLOCK_ABOVE_NOMINAL: f64 = 1.1;
/// Factor above proportional scaling over devices from which it is not scaling.
const SUPERLINEAR: f64 = 1.25;
/// Part by which printed numbers may be off from rounding.
const ROUNDING: f64 = 0.01;

/// Marks the records of a file that can't be true; what is marked already stays so. `peak` knows the peak of a device by
/// its name, in FLOP/s of a precision. It may be called again when more peaks are known.
pub fn doubt(file: &mut ResultFile, peak: &dyn Fn(&str, Precision) -> Option<f64>) {
    let names: Vec<String> = file.devices.iter().map(|device| device.name.clone()).collect();
    let name = |record: &Record| record.device.and_then(|index| names.get(index)).map_or("", String::as_str);
    for record in &mut file.records {
        let doubt = impossible_value(record).or_else(|| above_peak(record, peak(name(record), record.precision)));
        mark(record, doubt);
    }
    for (index, doubt) in superlinear(&file.records, &name).into_iter().chain(unequal(&file.records, &name)) {
        mark(&mut file.records[index], Some(doubt));
    }
}

/// Why a mean can't be one of numbers with this median, least and largest: at least half of them are not below the
/// median, and the others not below the least. A sum that overflowed shows like this.
pub(super) fn mean_doubt(
    what: &str,
    mean: f64,
    median: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
) -> Option<String> {
    let low = (min.unwrap_or(0.0) + median.or(min).unwrap_or(0.0)) / 2.0;
    let high = max.map(|max| f64::midpoint(max, median.unwrap_or(max)));
    let is_impossible = mean < low * (1.0 - ROUNDING) || high.is_some_and(|high| mean > high * (1.0 + ROUNDING));
    is_impossible.then(|| {
        let of = |name: &str, value: Option<f64>| value.map(|value| format!(", {name} {value}")).unwrap_or_default();
        let others = [of("median", median), of("least", min), of("largest", max)].concat();
        format!("the mean {what} of {mean} is impossible{others}")
    })
}

/// A sentence on the marked records of a file, if there are any.
pub fn note(file: &ResultFile) -> Option<String> {
    let doubts = file.records.iter().filter_map(|record| record.origin.as_ref()?.doubt.as_ref());
    let n = doubts.clone().count();
    let first = doubts.clone().next()?;
    Some(format!(
        "{n} of {} figures can't be true and take no part in rankings, the first: {first}",
        file.records.len()
    ))
}

fn mark(record: &mut Record, doubt: Option<String>) {
    if let Some(origin) = &mut record.origin
        && origin.doubt.is_none()
    {
        origin.doubt = doubt;
    }
}

fn impossible_value(record: &Record) -> Option<String> {
    let figure = &record.origin.as_ref()?.figure;
    let rate = record.throughput_per_sec.or(figure.metric.ends_with("_per_s").then_some(figure.value));
    if record.status != Status::Ok {
        None
    } else if figure.value <= 0.0 {
        Some(format!("the figure is {}, expected a number above 0", figure.value))
    } else if figure.value >= OVERFLOW {
        Some(format!("the figure of {:e} is a counter that overflowed", figure.value))
    } else {
        rate.filter(|rate| *rate > MOST_PER_SEC).map(|rate| format!("{rate:e} a second is beyond every device"))
    }
}

/// FLOP/s of a record of one of our networks, of one device on average.
fn achieved(record: &Record) -> Option<f64> {
    let model: Model = record.model.parse().ok().filter(|_| !record.definition.is_empty())?;
    let n_devices = record.origin.as_ref()?.figure.n_devices.unwrap_or(1).max(1);
    Some(record.throughput_per_sec? * networks::facts(model).flops(record.pass) / n_devices as f64)
}

fn above_peak(record: &Record, peak: Option<f64>) -> Option<String> {
    let factor = match record.precision {
        Precision::F32 | Precision::F16 => SAVED_OPERATIONS,
        Precision::Tf32 | Precision::Bf16 => CLOCK_ABOVE_NOMINAL,
    };
    let (achieved, peak) = (achieved(record)?, peak.filter(|peak| *peak > 0.0)?);
    (achieved > factor * peak).then(|| {
        format!(
            "{:.1} TFLOP/s would be achieved where the device's peak in {} is {:.1}",
            achieved / 1e12,
            record.precision,
            peak / 1e12
        )
    })
}

/// What records have in common that differ in their devices' number alone.
type Alike<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, Pass, Precision);

/// Records whose rate grows more than their devices.
fn superlinear<'a>(records: &'a [Record], name: &dyn Fn(&Record) -> &'a str) -> Vec<(usize, String)> {
    let mut alike: BTreeMap<Alike<'a>, Vec<(usize, f64, usize)>> = BTreeMap::new();
    for (index, record) in records.iter().enumerate() {
        let Some(origin) = record.origin.as_ref().filter(|_| record.status == Status::Ok) else { continue };
        let figure = &origin.figure;
        if figure.metric.ends_with("_per_s") && figure.value > 0.0 {
            let key = (
                origin.source.as_str(),
                record.model.as_str(),
                record.engine.as_str(),
                name(record),
                figure.metric.as_str(),
                record.pass,
                record.precision,
            );
            alike.entry(key).or_default().push((figure.n_devices.unwrap_or(1).max(1), figure.value, index));
        }
    }
    let mut found = Vec::new();
    for mut group in alike.into_values() {
        group.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        // The fastest of fewer devices that is not itself doubtful.
        let mut base: Option<(usize, f64)> = None;
        for (n_devices, rate, index) in group {
            match base {
                Some((fewer, base_rate)) if fewer < n_devices => {
                    let proportional = base_rate * n_devices as f64 / fewer as f64;
                    if rate > SUPERLINEAR * proportional {
                        found.push((
                            index,
                            format!("{n_devices} devices would be {:.0} times as fast as {fewer}", rate / base_rate),
                        ));
                    } else {
                        base = Some((n_devices, rate));
                    }
                }
                Some(_) => {}
                None => base = Some((n_devices, rate)),
            }
        }
    }
    found
}

/// Records of networks whose achieved FLOP/s are far above those of another network, all else equal: equal times for
/// unequal work, as without waiting for the device.
fn unequal<'a>(records: &'a [Record], name: &dyn Fn(&Record) -> &'a str) -> Vec<(usize, String)> {
    type Configuration<'a> = (&'a str, &'a str, Pass, Precision, usize, usize);
    let mut alike: BTreeMap<Configuration<'a>, Vec<(f64, usize)>> = BTreeMap::new();
    for (index, record) in records.iter().enumerate() {
        if let (Some(rate), Some(origin)) = (achieved(record), &record.origin) {
            let n_devices = origin.figure.n_devices.unwrap_or(1);
            let key =
                (record.engine.as_str(), name(record), record.pass, record.precision, record.minibatch, n_devices);
            alike.entry(key).or_default().push((rate, index));
        }
    }
    let mut found = Vec::new();
    for group in alike.into_values() {
        let Some(&(lowest, slow)) = group.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        for (rate, index) in group.iter().filter(|(rate, _)| *rate > IMPLAUSIBLE_FACTOR * lowest) {
            let text = format!("it would achieve {:.0} times the FLOP/s of {}", rate / lowest, records[slow].model);
            found.push((*index, text));
        }
    }
    found
}

#[cfg(test)]
mod tests;
