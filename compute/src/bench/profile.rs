//! Where the time of an iteration goes: each step of a plan beside what the device could do at most.
//!
//! Two ceilings are measured on the same engine and device, with plans made by hand: the FLOP/s of one large GEMM and the
//! bytes a second of one large element-wise step. A step's *roofline* is the time that it can't beat at these rates.
//!
//! Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", 2009.

mod ceilings;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::export::{Cell, Column, Table};
use crate::engine::StepTime;
use crate::plan::{Plan, Work};

/// Seconds that the profiled iterations take together, where one does not take longer.
const PROFILE_SECS: f64 = 2.0;

/// Iterations that are profiled at most.
const MOST_ITERATIONS: f64 = 20.0;

/// The steps of one iteration, with times and rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// What the device reaches at most.
    pub ceilings: Ceilings,
    /// The steps in the order of execution. Their times are taken with a timestamp or a wait between steps, so that they
    /// add up to somewhat more than an iteration that is timed as a whole.
    pub steps: Vec<ProfiledStep>,
    /// Milliseconds of the whole iteration if every step were at its roofline.
    pub roofline_ms: f64,
}

/// Rates that the engine reaches on the device in plans that are limited by nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceilings {
    /// FLOP/s of one large GEMM (8192 x 8192 x 8192 on a GPU that does it in a tenth of a second), in the run's
    /// precision.
    pub gemm_flop_per_sec: f64,
    /// Bytes a second, read and written, of one large element-wise step (1 GiB on a GPU that does it in a tenth of a
    /// second).
    pub copy_bytes_per_sec: f64,
}

/// One step of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfiledStep {
    /// Name of the layer, such as `"conv1"`.
    pub layer: String,
    /// What is computed, such as `"conv2d_forward"`.
    pub step: String,
    /// What computed it: kernels and library routines with their variants.
    pub kernel: String,
    /// Milliseconds, median over some iterations.
    pub time_ms: f64,
    /// Floating-point operations, 2 · MACs of convolutions; 0 for other steps.
    pub flops: u64,
    /// Fewest bytes that the step moves.
    pub bytes: u64,
    /// Achieved FLOP/s; absent for a step without floating-point operations, or too short for the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_per_sec: Option<f64>,
    /// Achieved bytes a second, counting the fewest; absent for a step too short for the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_sec: Option<f64>,
    /// Roofline over time: 1 where the step is as fast as the ceilings allow, more where its data were still in a cache;
    /// absent for a step too short for the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline_share: Option<f64>,
}

impl Ceilings {
    /// Milliseconds that work takes at least: `max(flops / gemm, bytes / copy)`.
    pub fn roofline_ms(&self, flops: u64, bytes: u64) -> f64 {
        (flops as f64 / self.gemm_flop_per_sec).max(bytes as f64 / self.copy_bytes_per_sec) * 1e3
    }
}

impl ProfiledStep {
    /// A step that did `work` in `time`, for which the ceilings allow `roofline_ms`.
    fn new(layer: String, step: &str, time: StepTime, work: Work, roofline_ms: f64) -> Self {
        let rate = |amount: f64| Some(amount / time.secs).filter(|rate| rate.is_finite() && *rate > 0.0);
        Self {
            layer,
            step: step.to_owned(),
            flop_per_sec: rate(work.flops as f64),
            bytes_per_sec: rate(work.bytes as f64),
            roofline_share: rate(roofline_ms / 1e3),
            kernel: time.kernel,
            time_ms: time.secs * 1e3,
            flops: work.flops,
            bytes: work.bytes,
        }
    }
}

/// Iterations to profile when one takes `iteration_secs`.
pub(super) fn repetitions(iteration_secs: f64) -> usize {
    (PROFILE_SECS / iteration_secs).clamp(1.0, MOST_ITERATIONS) as usize
}

impl Profile {
    /// The profile of a plan whose steps took `times`.
    ///
    /// # Panics
    /// When there is not one time a step.
    pub fn new(plan: &Plan, times: Vec<StepTime>, ceilings: Ceilings) -> Self {
        assert_eq!(times.len(), plan.steps.len(), "one time a step");
        let steps = plan.steps.iter().zip(times).map(|(step, time)| {
            let work = plan.work(step);
            let roofline_ms = ceilings.roofline_ms(work.flops, work.bytes);
            ProfiledStep::new(plan.layer(step), step.name(), time, work, roofline_ms)
        });
        let steps: Vec<ProfiledStep> = steps.collect();
        let roofline_ms = steps.iter().map(|step| ceilings.roofline_ms(step.flops, step.bytes)).sum();
        Self { ceilings, steps, roofline_ms }
    }

    /// Milliseconds of all steps together.
    pub fn time_ms(&self) -> f64 {
        self.steps.iter().map(|step| step.time_ms).sum()
    }

    /// Every step in the order of execution, and their total.
    pub fn table(&self) -> Table {
        let mut rows: Vec<_> = self.steps.iter().map(|step| self.row(step)).collect();
        let work = Work {
            flops: self.steps.iter().map(|step| step.flops).sum(),
            bytes: self.steps.iter().map(|step| step.bytes).sum(),
        };
        let time = StepTime { secs: self.time_ms() / 1e3, kernel: String::new() };
        let name = format!("{} steps", self.steps.len());
        let total = ProfiledStep::new("total".to_owned(), &name, time, work, self.roofline_ms);
        let mut row = self.row(&total);
        // The total's roofline is the sum of those of the steps, not that of their sums.
        row[ROOFLINE_COLUMN] = Cell::Number(self.roofline_ms);
        row[ROOFLINE_COLUMN + 1] = Cell::Number(total.time_ms - self.roofline_ms);
        rows.push(row);
        Table { columns: columns(), rows }
    }

    /// The `most` steps that lose most time against their roofline, the worst last.
    pub fn losses(&self, most: usize) -> Table {
        let lost = |step: &&ProfiledStep| step.time_ms - self.ceilings.roofline_ms(step.flops, step.bytes);
        let mut steps: Vec<&ProfiledStep> = self.steps.iter().collect();
        steps.sort_by(|a, b| lost(a).total_cmp(&lost(b)));
        let rows = steps[steps.len().saturating_sub(most)..].iter().map(|step| self.row(step)).collect();
        Table { columns: columns(), rows }
    }

    fn row(&self, step: &ProfiledStep) -> Vec<Cell> {
        let roofline_ms = self.ceilings.roofline_ms(step.flops, step.bytes);
        let time_share = Some(step.time_ms / self.time_ms()).filter(|share| share.is_finite());
        vec![
            Cell::Text(step.layer.clone()),
            Cell::Text(step.step.clone()),
            Cell::Number(step.time_ms),
            time_share.into(),
            if step.flops > 0 { Cell::Number(step.flops as f64) } else { Cell::Empty },
            Cell::Number(step.bytes as f64),
            step.flop_per_sec.into(),
            step.bytes_per_sec.into(),
            step.roofline_share.into(),
            Cell::Number(roofline_ms),
            Cell::Number(step.time_ms - roofline_ms),
            Cell::Text(step.kernel.clone()),
        ]
    }
}

/// Place of the roofline's time in a row.
const ROOFLINE_COLUMN: usize = 9;

fn columns() -> Vec<Column> {
    vec![
        Column::new("layer", "layer"),
        Column::new("step", "step"),
        Column::new("time_ms", "time (ms)"),
        Column::new("time_share", "of all (%)").in_units_of(0.01),
        Column::new("flops", "GFLOP").in_units_of(1e9),
        Column::new("bytes", "MB").in_units_of(1e6),
        Column::new("flop_per_sec", "TFLOP/s").in_units_of(1e12),
        Column::new("bytes_per_sec", "GB/s").in_units_of(1e9),
        Column::new("roofline_share", "of roofline (%)").in_units_of(0.01),
        Column::new("roofline_ms", "roofline (ms)"),
        Column::new("lost_ms", "lost (ms)"),
        Column::new("kernel", "kernel"),
    ]
}
