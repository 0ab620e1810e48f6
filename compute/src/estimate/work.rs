//! The time that a workload would take if every GPU and all software were equally good: what is left to explain then is
//! near 0 in logarithms, and small enough for a linear model.
//!
//! It adds up over the steps of the plan what their arithmetic, their bytes and their start take. A roofline would take
//! the larger of the first two for each step. The sum predicts held-out figures better (median error 13.7 instead of 14.5%,
//! 2026-12-01), as software that fuses little computes and moves in turn; and it needs only the totals of a plan.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use super::Workload;
use crate::catalog::Gpu;
use crate::graph::Graph;
use crate::models::Model;
use crate::plan::{Pass, Plan};
use crate::shape::Precision;

/// Share of the peak that arithmetic is taken to reach. It only sets the scale of the factors that are fitted.
const PEAK_SHARE: f64 = 0.6;

/// Share of the bandwidth that a plan's bytes are taken to be moved at.
///
/// Small, because a plan counts the fewest bytes, with everything fused, and published software fuses little. Chosen on
/// 2026-12-01 among 0.2, 0.25, 0.3 and 0.5 for the likelihood of held-out figures.
const BANDWIDTH_SHARE: f64 = 0.2;

/// Seconds that starting one step takes. Chosen on 2026-12-01 among 10, 20, 30 and 50 µs; the software's own cost is fitted.
const LAUNCH_SECS: f64 = 20e-6;

impl Workload {
    /// Device memory that it needs by its plan, in bytes; absent when it can't be planned. It is remembered: the same ones
    /// are asked for with every change of a setting.
    pub fn planned_bytes(&self) -> Option<u64> {
        static GRAPHS: LazyLock<Vec<Graph>> = LazyLock::new(|| Model::ALL.into_iter().map(Model::graph).collect());
        static KNOWN: Mutex<BTreeMap<Workload, Option<u64>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let graph = &GRAPHS[self.model as usize];
        let plan = || Plan::new(graph, self.pass, self.precision, self.minibatch).ok().map(|plan| plan.bytes());
        *known.entry(*self).or_insert_with(plan)
    }
}

/// Work of all steps of a plan, by minibatch: floating-point operations are proportional to it, bytes are an amount for
/// each sample and a fixed one for the weights.
#[derive(Clone, Copy, Debug)]
struct Totals {
    n_steps: usize,
    flops_per_sample: f64,
    bytes_per_sample: f64,
    bytes_fixed: f64,
}

impl Totals {
    fn new(model: Model, pass: Pass, precision: Precision) -> Self {
        let graph = model.graph();
        let total = |minibatch| {
            let plan =
                Plan::new(&graph, pass, precision, minibatch).expect("every network of the suite can be planned");
            let bytes: u64 = plan.steps.iter().map(|step| plan.work(step).bytes).sum();
            (plan.steps.len(), plan.flops, bytes)
        };
        let ((n_steps, flops, one), (_, _, two)) = (total(1), total(2));
        let bytes_per_sample = (two - one) as f64;
        Self { n_steps, flops_per_sample: flops as f64, bytes_per_sample, bytes_fixed: one as f64 - bytes_per_sample }
    }

    /// The totals, from plans that are made once: f32 and tf32 move the same bytes, and so do f16 and bf16.
    fn of(workload: &Workload) -> Self {
        const N_PLANS: usize = Model::ALL.len() * Pass::ALL.len() * 2;
        static TOTALS: [OnceLock<Totals>; N_PLANS] = [const { OnceLock::new() }; N_PLANS];
        let (model, pass) = (workload.model, workload.pass);
        let precision = match workload.precision {
            Precision::F32 | Precision::Tf32 => Precision::F32,
            Precision::F16 | Precision::Bf16 => Precision::F16,
        };
        let place = (model as usize * Pass::ALL.len() + pass as usize) * 2 + usize::from(precision == Precision::F16);
        *TOTALS[place].get_or_init(|| Self::new(model, pass, precision))
    }
}

/// Seconds of one iteration before anything is fitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nominal {
    /// `flops / (0.6 peak) + bytes / (0.2 bandwidth) + steps · 20 µs`.
    pub secs: f64,
    /// Share of it that starting the steps takes, 0 to 1.
    pub launch_share: f64,
    /// Share of it that moving bytes takes, 0 to 1.
    pub memory_share: f64,
}

impl Nominal {
    /// The nominal time of a workload on a GPU with this peak and bandwidth; the former is in the workload's precision.
    pub(super) fn new(workload: &Workload, peak: f64, bandwidth: f64) -> Self {
        let (totals, minibatch) = (Totals::of(workload), workload.minibatch as f64);
        let arithmetic = totals.flops_per_sample * minibatch / (PEAK_SHARE * peak);
        let bytes = totals.bytes_per_sample * minibatch + totals.bytes_fixed;
        let launches = totals.n_steps as f64 * LAUNCH_SECS;
        let memory = bytes / (BANDWIDTH_SHARE * bandwidth);
        let secs = arithmetic + memory + launches;
        Self { secs, launch_share: launches / secs, memory_share: memory / secs }
    }
}

/// FLOP/s of a GPU in a precision that it computes in by itself: none in tf32 and bf16 for a GPU without units for them,
/// though software can do with f32.
pub(super) fn native_peak(gpu: &Gpu, precision: Precision) -> Option<f64> {
    let native = match precision {
        Precision::F32 | Precision::F16 => true,
        Precision::Tf32 => gpu.peak_tf32.is_some(),
        Precision::Bf16 => gpu.compute_capability.is_none_or(|version| version >= (8, 0)),
    };
    gpu.peak(precision).filter(|_| native)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The totals are taken at minibatch 1 and 2; the plan of another minibatch has exactly what follows from them.
    #[test]
    fn work_grows_evenly_with_the_minibatch() {
        for (model, pass) in Model::ALL.into_iter().flat_map(|model| Pass::ALL.map(|pass| (model, pass))) {
            for precision in Precision::ALL {
                let workload = Workload { model, pass, precision, minibatch: 5 };
                let totals = Totals::of(&workload);
                let plan = Plan::new(&model.graph(), pass, precision, 5).expect("every model can be planned");
                let bytes: u64 = plan.steps.iter().map(|step| plan.work(step).bytes).sum();
                assert_eq!(5.0 * totals.bytes_per_sample + totals.bytes_fixed, bytes as f64, "{workload:?}");
                assert_eq!(5.0 * totals.flops_per_sample, plan.flops as f64, "{workload:?}");
                assert_eq!(totals.n_steps, plan.steps.len(), "{workload:?}");
            }
        }
    }

    #[test]
    fn a_nominal_time_is_of_arithmetic_memory_and_launches() {
        let workload = Workload { model: Model::Vgg16, pass: Pass::Forward, precision: Precision::F32, minibatch: 64 };
        let free = Nominal::new(&workload, f64::INFINITY, f64::INFINITY);
        assert_eq!((free.launch_share, free.memory_share), (1.0, 0.0));
        let slow = Nominal::new(&workload, 1e12, f64::INFINITY);
        let arithmetic = 2.0 * 15_470_264_320.0 * 64.0 / 0.6e12;
        assert!((slow.secs - free.secs - arithmetic).abs() < 1e-9 * arithmetic, "{slow:?}");
    }
}
