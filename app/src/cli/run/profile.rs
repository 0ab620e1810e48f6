//! The profiles of a session's runs, as text behind the table of results.

use std::fmt::Write as _;

use compute::bench::export::{Format, significant};
use compute::bench::profile::Profile;
use compute::bench::record::{Record, ResultFile};

/// Steps that are shown as those that lose most.
const LOSSES: usize = 10;

/// The profile of each record that has one.
pub(super) fn text(file: &ResultFile) -> String {
    let mut text = String::new();
    for record in &file.records {
        if let Some(profile) = &record.profile {
            let device = record.device.and_then(|index| file.devices.get(index));
            let device = device.map_or("no device", |device| device.name.as_str());
            let _ = write!(text, "\n{}", one(record, device, profile));
        }
    }
    text
}

fn one(record: &Record, device: &str, profile: &Profile) -> String {
    let Record { model, pass, precision, minibatch, engine, .. } = record;
    let share = 100.0 * profile.roofline_ms / profile.time_ms();
    format!(
        "Profile of {model} {pass} {precision} minibatch {minibatch}, {engine} on {device}: {} ms in {} steps, \
         roofline {} ms ({} %)\n\
         Ceilings measured: {} TFLOP/s in a large GEMM, {} GB/s in a large element-wise step\n\
         {}\nThe steps that lose most against the roofline, the worst last:\n{}",
        significant(profile.time_ms()),
        profile.steps.len(),
        significant(profile.roofline_ms),
        significant(share),
        significant(profile.ceilings.gemm_flop_per_sec / 1e12),
        significant(profile.ceilings.copy_bytes_per_sec / 1e9),
        profile.table().render(Format::Text),
        profile.losses(LOSSES).render(Format::Text),
    )
}
