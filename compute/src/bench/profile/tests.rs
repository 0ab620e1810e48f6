use super::*;
use crate::bench::export::Format;
use crate::engine::Engine;
use crate::engine::fake::{Fake, Script, StepTime as FakeTime};
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

const CEILINGS: Ceilings = Ceilings { gemm_flop_per_sec: 1e12, copy_bytes_per_sec: 1e11 };

fn plan() -> Plan {
    Plan::new(&Model::Alexnet.graph(), Pass::Forward, Precision::F32, 2).expect("plan")
}

/// A profile on the fake engine, whose iterations take 20 ms.
fn profile() -> Profile {
    let script = Script { step: FakeTime::Constant { ms: 20.0 }, noise: 0.0, ..Script::default() };
    let engine = Fake::open(&script, "fake-0").expect("it opens");
    let plan = plan();
    let mut session = engine.load(&plan).expect("it loads");
    let times = session.profile(3).expect("it is profiled");
    Profile::new(&plan, times, CEILINGS)
}

#[test]
fn the_times_of_the_steps_are_that_of_the_iteration() {
    let profile = profile();
    assert!((profile.time_ms() - 20.0).abs() < 1e-9, "{}", profile.time_ms());
    assert_eq!(profile.steps.iter().map(|step| step.flops).sum::<u64>(), plan().flops);
    assert!(profile.steps.iter().all(|step| step.kernel == format!("fake {}", step.step)));
}

#[test]
fn a_step_is_compared_with_the_ceiling_that_limits_it() {
    let profile = profile();
    let step_secs = 0.02 / profile.steps.len() as f64;
    let find = |layer: &str| profile.steps.iter().find(|step| step.layer == layer).expect("the layer exists");
    let share = |layer: &str| find(layer).roofline_share.expect("it has a time");
    // conv2 is limited by its operations, the first fully connected layer by its weights, pooling by its maps.
    let conv2 = find("conv2");
    assert!((share("conv2") - conv2.flops as f64 / 1e12 / step_secs).abs() < 1e-9);
    let fc6 = find("fc6");
    assert!((share("fc6") - fc6.bytes as f64 / 1e11 / step_secs).abs() < 1e-9);
    assert_eq!((find("pool1").flops, find("pool1").flop_per_sec), (0, None));
    let sum: f64 = profile.steps.iter().map(|step| step.roofline_share.unwrap_or(0.0) * step.time_ms).sum();
    assert!((sum - profile.roofline_ms).abs() < 1e-9);
}

#[test]
fn a_step_too_short_for_the_clock_has_no_rates() {
    let plan = plan();
    let times = plan.steps.iter().map(|_| StepTime { secs: 0.0, kernel: "none".to_owned() }).collect();
    let profile = Profile::new(&plan, times, CEILINGS);
    let rates = |step: &ProfiledStep| (step.flop_per_sec, step.bytes_per_sec, step.roofline_share);
    assert!(profile.steps.iter().all(|step| rates(step) == (None, None, None)));
    let text = serde_json::to_string(&profile).expect("numbers are finite");
    assert_eq!(serde_json::from_str::<Profile>(&text).expect("it is read back"), profile);
    assert!(!profile.table().render(Format::Text).contains("NaN"));
}

#[test]
fn the_tables_show_every_step_and_the_largest_losses_last() {
    let mut profile = profile();
    profile.steps[3].time_ms = 50.0;
    let table = profile.table().render(Format::Text);
    assert_eq!(table.lines().count(), profile.steps.len() + 2, "{table}");
    assert!(table.lines().last().is_some_and(|line| line.starts_with("total")), "{table}");
    let losses = profile.losses(4).render(Format::Text);
    assert_eq!(losses.lines().count(), 5, "{losses}");
    assert!(losses.lines().last().is_some_and(|line| line.starts_with(&profile.steps[3].layer)), "{losses}");
}

#[test]
fn long_iterations_are_profiled_less_often() {
    assert_eq!([1e-3, 0.5, 60.0].map(repetitions), [20, 4, 1]);
}
