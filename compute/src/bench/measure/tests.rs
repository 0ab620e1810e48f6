use super::*;
use crate::bench::record::Clock;
use crate::bench::spec::Bounds;
use crate::engine::fake::{Call, FaultKind, Outputs, Script, StepTime};
use crate::engine::{EngineKind, Listing};
use crate::models::Model;
use crate::shape::Precision;

fn spec(script: Script) -> RunSpec {
    RunSpec {
        model: Model::Googlenet,
        pass: Pass::Forward,
        precision: Precision::F32,
        minibatch: 64,
        engine: EngineKind::Fake,
        device: "fake-0".to_owned(),
        tier: Default::default(),
        bounds: Bounds::default(),
        profile: false,
        input_size: None,
        script: Some(script),
    }
}

fn constant(ms: f64) -> Script {
    Script { step: StepTime::Constant { ms }, ..Script::default() }
}

fn run(spec: &RunSpec) -> Record {
    measure(spec, &mut History::default(), &mut |_| {}).0
}

#[track_caller]
fn assert_near(value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() <= share, "{value}, expected {expected} within {share}");
}

fn median_ms(record: &Record) -> f64 {
    record.timing.as_ref().unwrap_or_else(|| panic!("no times: {:?}", record.reason)).median_ms
}

fn has_note(record: &Record, text: &str) -> bool {
    record.notes.iter().any(|note| note.contains(text))
}

#[test]
fn a_run_without_incidents_fills_its_record() {
    let spec = RunSpec { pass: Pass::ForwardBackward, ..spec(constant(20.0)) };
    let mut events = Vec::new();
    let (record, device) = measure(&spec, &mut History::default(), &mut |event| events.push(event));
    assert_eq!((record.status, record.reason.as_deref()), (Status::Ok, None));
    assert_eq!(device.map(|device| device.id).as_deref(), Some("fake-0"));
    let timing = record.timing.as_ref().unwrap();
    assert_eq!((timing.clock, timing.iterations, timing.samples_ms.len()), (Clock::Device, 100, 100));
    assert!(timing.p5_ms <= timing.ci95_ms[0] && timing.ci95_ms[0] <= timing.median_ms);
    assert!(timing.median_ms <= timing.ci95_ms[1] && timing.ci95_ms[1] <= timing.p95_ms);
    assert_near(timing.median_ms, 19.6, 0.01);
    assert_near(timing.host_median_ms.unwrap(), 20.0, 0.01);
    assert_near(record.throughput_per_sec.unwrap(), 64.0 / 0.0196, 0.01);
    let plan = Plan::new(&spec.graph().unwrap(), spec.pass, spec.precision, spec.minibatch).unwrap();
    assert_near(record.achieved_flop_per_sec.unwrap(), plan.flops as f64 / 0.0196, 0.01);
    assert_eq!((record.memory.planned_bytes, record.memory.peak_bytes), (Some(plan.bytes()), Some(plan.bytes())));
    assert_eq!(record.memory.free_before_bytes, Some(16 << 30));
    assert!(record.verification.is_some_and(|verification| verification.passed));
    assert!(!record.kernels.is_empty() && record.libraries.contains_key("fake"));
    assert_eq!(record.notes, Vec::<String>::new());
    let phases: Vec<Phase> = events
        .iter()
        .filter_map(|event| match event {
            Event::Phase { phase } => Some(*phase),
            _ => None,
        })
        .collect();
    assert_eq!(phases, Phase::ALL[..5], "nothing is profiled unasked");
    assert!(matches!(events.last(), Some(Event::Progress { iterations: 100, of: Some(100), .. })));
}

/// R01: the engine returns from submission at once and the device ends 20 ms later.
#[test]
fn an_engine_that_does_not_wait_is_waited_for() {
    for device_clock in [None, Some(1.0)] {
        let script = Script { returns_early: true, device_clock, noise: 0.0, ..constant(20.0) };
        let record = run(&spec(script));
        assert_near(median_ms(&record), 20.0, 0.001);
        assert!(has_note(&record, "returned before the device had finished"), "{:?}", record.notes);
    }
}

/// R02: a rate beyond every device's, from times without synchronization, is no result.
#[test]
fn an_impossible_rate_is_rejected() {
    let record = run(&spec(constant(0.001)));
    assert_eq!((record.status, record.timing, record.throughput_per_sec), (Status::Failed, None, None));
    assert!(record.reason.is_some_and(|reason| reason.contains("implausible")));
}

/// R02: above the device's own peak, where it is known, the result is labelled.
#[test]
fn a_rate_above_the_known_peak_is_labelled() {
    let with_peak = |peak: f64| {
        let mut listing = Script::default_listing();
        listing.device.extra.insert("peak_flop_per_sec".to_owned(), serde_json::json!({ "f32": peak }));
        // 64 · 3.17 GFLOP in 20 ms are 10 TFLOP/s.
        run(&spec(Script { devices: vec![listing], ..constant(20.0) }))
    };
    assert!(has_note(&with_peak(5e12), "implausible"));
    assert_eq!(with_peak(20e12).notes, Vec::<String>::new());
}

/// R03: iterations get slower from 10 to 13 ms over half a minute.
#[test]
fn the_steady_state_is_reported_with_the_cold_one() {
    let script = Script { step: StepTime::Ramp { from_ms: 10.0, to_ms: 13.0, over_secs: 30.0 }, ..constant(0.0) };
    let record = run(&spec(Script { device_clock: None, ..script.clone() }));
    assert_near(median_ms(&record), 13.0, 0.02);
    assert!(has_note(&record, "cold 10."), "{:?}", record.notes);
    // A slower change outlasts the warm-up's bound and shows as such.
    let script = Script { step: StepTime::Ramp { from_ms: 10.0, to_ms: 40.0, over_secs: 100.0 }, ..script };
    assert!(has_note(&run(&spec(script)), "before two windows agreed"));
}

#[test]
fn drift_within_the_samples_is_noted() {
    let list: Vec<f64> = (0..1000).map(|i| if i < 460 { 10.0 } else { 11.0 }).collect();
    let record = run(&spec(Script { step: StepTime::List { ms: list }, noise: 0.0, ..Script::default() }));
    let timing = record.timing.as_ref().unwrap();
    assert!(timing.warm_up_iterations < 460, "{}", timing.warm_up_iterations);
    assert_near(timing.drift.unwrap(), 0.1, 0.001);
    assert!(has_note(&record, "drift: the last iterations took +10.0%"), "{:?}", record.notes);
}

/// R04: the power limit holds the clock down in 40% of the readings.
#[test]
fn a_power_limit_is_labelled() {
    let record = run(&spec(Script { power_capped: Some(0.4), ..constant(10.0) }));
    assert_eq!(record.status, Status::Ok);
    assert!(has_note(&record, "power-limited 40%"), "{:?}", record.notes);
    assert_near(record.telemetry.unwrap().throttled["power"], 0.4, 1e-9);
}

/// R06: half a second of tuning in the first call of each shape enters no measurement.
#[test]
fn tuning_is_no_iteration() {
    for minibatch in [1, 2, 4, 8, 16] {
        let script = Script { first_iteration_ms: 500.0, load_ms: 300.0, noise: 0.0, ..constant(10.0) };
        let record = run(&RunSpec { minibatch, ..spec(script) });
        assert_near(record.timing.as_ref().unwrap().mean_ms, 9.8, 1e-6);
        assert_near(record.tuning_ms.unwrap(), 600.0, 1e-6);
    }
}

/// R11: a record names the hash of the definition it measured.
#[test]
fn another_definition_has_another_hash() {
    let published = run(&spec(constant(10.0))).definition;
    let smaller = run(&RunSpec { input_size: Some(64), ..spec(constant(10.0)) }).definition;
    assert!(published.starts_with("googlenet/1 ") && smaller.starts_with("googlenet/1 "));
    assert_ne!(published, smaller);
}

/// R12: a minibatch that does not fit is an outcome of that minibatch, and no other is measured instead.
#[test]
fn a_full_memory_is_the_outcome_of_its_minibatch() {
    let bytes = |minibatch| {
        Plan::new(&spec(constant(1.0)).graph().unwrap(), Pass::Forward, Precision::F32, minibatch).unwrap().bytes()
    };
    let limit = (bytes(64) + bytes(128)) / 2;
    let outcome = |minibatch| {
        let script = Script { allocation_limit_bytes: Some(limit), ..constant(10.0) };
        let record = run(&RunSpec { minibatch, ..spec(script) });
        assert_eq!(record.minibatch, minibatch);
        record.status
    };
    assert_eq!([outcome(64), outcome(128)], [Status::Ok, Status::OutOfMemory]);
}

/// R12: a minibatch of 1 that fits is measured although the two samples that verify others would not fit. Training is
/// verified with two, and says so where they don't fit.
#[test]
fn a_single_sample_that_fits_is_measured() {
    for pass in Pass::ALL {
        let spec = RunSpec { pass, minibatch: 1, ..spec(constant(10.0)) };
        let bytes =
            |minibatch| Plan::new(&spec.graph().unwrap(), spec.pass, spec.precision, minibatch).unwrap().bytes();
        let limit = Some(bytes(1).midpoint(bytes(2)));
        let outcome = |minibatch| {
            let script = Script { allocation_limit_bytes: limit, ..constant(10.0) };
            run(&RunSpec { minibatch, script: Some(script), ..spec.clone() })
        };
        let (one, two) = (outcome(1), outcome(2));
        assert_eq!(two.status, Status::OutOfMemory);
        assert!(two.reason.is_some_and(|reason| !reason.contains("verifies")));
        match pass {
            Pass::Forward => {
                assert_eq!((one.status, one.reason.as_deref()), (Status::Ok, None));
                assert!(one.verification.is_some_and(|verification| verification.passed));
            }
            Pass::ForwardBackward => {
                assert_eq!(one.status, Status::OutOfMemory);
                let reason = one.reason.unwrap_or_default();
                assert!(reason.starts_with("the minibatch of 2 that verifies the run did not fit: "), "{reason}");
            }
        }
    }
}

/// R13: in either order, the second run of a leaking pool finds less free memory and says so; the times are the same.
#[test]
fn leaking_memory_is_noticed_in_any_order() {
    let leaking_bytes = |leaked_bytes, model, device: &str| {
        let mut listing = Script::default_listing();
        listing.device.id = device.to_owned();
        let script = Script { leaked_bytes, devices: vec![listing], noise: 0.0, ..constant(10.0) };
        RunSpec { model, device: device.to_owned(), ..spec(script) }
    };
    let leaking = |model, device: &str| leaking_bytes(1 << 30, model, device);
    let mut history = History::default();
    for (device, order) in [("a", [Model::Googlenet, Model::Resnet50]), ("b", [Model::Resnet50, Model::Googlenet])] {
        let records = order.map(|model| measure(&leaking(model, device), &mut history, &mut |_| {}).0);
        assert!(!has_note(&records[0], "before the first run"), "{:?}", records[0].notes);
        assert!(has_note(&records[1], "before the first run"), "{:?}", records[1].notes);
        assert_eq!(median_ms(&records[0]), median_ms(&records[1]));
    }
    // Kernels that stay loaded are no leak.
    for _ in 0..2 {
        let (record, _) = measure(&leaking_bytes(300 << 20, Model::Alexnet, "c"), &mut history, &mut |_| {});
        assert!(!has_note(&record, "before the first run"), "{:?}", record.notes);
    }
}

/// R14: an allocation beyond the dedicated memory succeeds and is twenty times slower.
#[test]
fn memory_that_spills_is_labelled() {
    let mut listing = Script::default_listing();
    listing.device.memory_bytes = Some(100 << 20);
    let script = Script { spills: true, devices: vec![listing], device_clock: None, ..constant(10.0) };
    let record = run(&spec(script));
    assert_near(median_ms(&record), 200.0, 0.01);
    assert!(has_note(&record, "spilled to system memory"), "{:?}", record.notes);
}

/// R16: f32 is f32; tf32 is asked for by its name and refused where it is not offered.
#[test]
fn a_precision_that_is_not_offered_is_not_replaced() {
    let record = run(&RunSpec { precision: Precision::Tf32, ..spec(constant(10.0)) });
    assert_eq!((record.precision, record.status), (Precision::Tf32, Status::NotSupported));
}

/// R29: weights beyond the largest binding are refused before anything is timed.
#[test]
fn a_device_limit_is_an_outcome() {
    let mut listing: Listing = Script::default_listing();
    listing.device.limits.insert("max_storage_buffer_binding_size".to_owned(), 128 << 20);
    let script = Script { devices: vec![listing], ..constant(10.0) };
    let record = run(&RunSpec { model: Model::Vgg16, ..spec(script) });
    assert_eq!(record.status, Status::ExceedsDeviceLimit);
    assert!(record.reason.is_some_and(|reason| reason.contains("134217728")));
}

/// R31: a timestamp period of 83.3 ns that was not applied, or applied twice, falls back to the host's clock.
#[test]
fn a_device_clock_that_the_host_refutes_is_not_quoted() {
    for factor in [1.0 / 83.3, 83.3, 0.0, -1.0] {
        let record = run(&spec(Script { device_clock: Some(factor), ..constant(10.0) }));
        assert_eq!(record.timing.as_ref().unwrap().clock, Clock::Host, "{factor}");
        assert_near(median_ms(&record), 10.0, 0.01);
        assert!(has_note(&record, "the host's is quoted"), "{:?}", record.notes);
    }
}

#[test]
fn outputs_that_are_wrong_have_no_throughput() {
    for (outputs, said) in [(Outputs::Wrong, "differs from the reference"), (Outputs::Nan, "not finite")] {
        for pass in Pass::ALL {
            let record = run(&RunSpec { pass, ..spec(Script { outputs, ..constant(10.0) }) });
            assert_eq!((record.status, record.throughput_per_sec), (Status::Incorrect, None));
            assert!(record.verification.is_some_and(|verification| !verification.passed));
            assert!(record.reason.as_ref().is_some_and(|reason| reason.contains(said)), "{:?}", record.reason);
        }
    }
}

/// Training at the measured minibatch, whose kernels may be others than the verified ones, has no reference.
#[test]
fn training_that_fails_at_the_measured_minibatch_only_is_incorrect() {
    let weights = |name| format!("\"{name}.weight\" of minibatch 64 is ");
    let (first, last) = (weights("conv1"), weights("fc"));
    let cases = [
        (Outputs::NoLoss, "\"loss\" of minibatch 64 is missing or not finite".to_owned()),
        (Outputs::NoFirstGradient, format!("{first}zero")),
        (Outputs::NoLastGradient, format!("{last}missing or not finite")),
    ];
    for (outputs, said) in cases {
        let outcome =
            |pass| run(&RunSpec { pass, model: Model::Resnet50, ..spec(Script { outputs, ..constant(20.0) }) });
        let record = outcome(Pass::ForwardBackward);
        assert_eq!((record.status, record.throughput_per_sec, record.timing), (Status::Incorrect, None, None));
        assert_eq!(record.reason.as_deref(), Some(said.as_str()));
        assert!(record.verification.is_some_and(|verification| !verification.passed));
        assert_eq!(outcome(Pass::Forward).status, Status::Ok);
    }
}

#[test]
fn every_engine_error_has_its_status() {
    let cases = [
        (Call::Open, 0, FaultKind::Failed, Status::Failed),
        (Call::Load, 0, FaultKind::OutOfMemory, Status::OutOfMemory),
        (Call::Load, 1, FaultKind::OutOfMemory, Status::OutOfMemory),
        (Call::Run, 0, FaultKind::DeviceLost, Status::Failed),
        (Call::Run, 3, FaultKind::OutOfMemory, Status::OutOfMemory),
        (Call::Run, 20, FaultKind::DeviceLost, Status::Failed),
        (Call::Read, 0, FaultKind::Failed, Status::Failed),
    ];
    for (call, nth, kind, status) in cases {
        let record = run(&spec(Script { fault: Some(fake::Fault { call, nth, kind }), ..constant(100.0) }));
        assert_eq!(record.status, status, "{call:?} {nth} {kind:?}");
        assert!(record.reason.is_some() && record.timing.is_none() && record.achieved_flop_per_sec.is_none());
    }
    let record = run(&RunSpec { device: "fake-9".to_owned(), ..spec(constant(1.0)) });
    assert_eq!(record.status, Status::Failed);
    assert!(record.reason.is_some_and(|reason| reason.contains("fake-0")));
    let record = run(&RunSpec { minibatch: 0, ..spec(constant(1.0)) });
    assert_eq!(record.status, Status::Failed);
    let record = run(&RunSpec { input_size: Some(1), model: Model::Overfeat, ..spec(constant(1.0)) });
    assert_eq!(record.status, Status::Failed);
}

#[test]
fn times_that_are_none_are_errors() {
    for ms in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let record = run(&spec(constant(ms)));
        assert_eq!((record.status, record.timing), (Status::Failed, None), "{ms}");
    }
}

#[test]
fn the_time_bound_leaves_at_least_three_iterations_and_says_so() {
    for (ms, max_seconds) in [(30_000.0, 6.0), (1000.0, 6.0), (100.0, 6.0), (100.0, 0.0)] {
        let bounds = Bounds { iterations: 100, max_seconds };
        let record = run(&RunSpec { bounds, ..spec(Script { noise: 0.02, device_clock: None, ..constant(ms) }) });
        let timing = record.timing.as_ref().unwrap();
        assert!((3..100).contains(&timing.iterations), "{ms}: {}", timing.iterations);
        let secs = (timing.iterations + timing.warm_up_iterations) as f64 * ms / 1e3;
        assert!(secs <= max_seconds + 4.1 * ms / 1e3, "{ms}: {secs}");
        assert!(has_note(&record, "of 100 iterations"), "{ms}: {:?}", record.notes);
    }
}

#[test]
fn a_profile_is_taken_when_it_is_asked_for() {
    let spec = RunSpec { profile: true, ..spec(Script { noise: 0.0, ..constant(20.0) }) };
    let mut events = Vec::new();
    let (record, _) = measure(&spec, &mut History::default(), &mut |event| events.push(event));
    let profile = record.profile.as_ref().unwrap_or_else(|| panic!("no profile: {:?}", record.notes));
    assert_near(profile.time_ms(), 20.0, 1e-9);
    let gemm_flops = 2.0 * 1024f64.powi(3);
    assert_near(profile.ceilings.gemm_flop_per_sec, gemm_flops / 0.0196, 1e-9);
    assert!(events.contains(&Event::Phase { phase: Phase::Profile }));
    assert_eq!(run(&RunSpec { profile: false, ..spec }).profile, None);
}

/// What was measured stays good when the profile fails: here the third load, of the first ceiling.
#[test]
fn a_profile_that_fails_costs_no_result() {
    let fault = fake::Fault { call: Call::Load, nth: 2, kind: FaultKind::Failed };
    let record = run(&RunSpec { profile: true, ..spec(Script { fault: Some(fault), ..constant(20.0) }) });
    assert_eq!((record.status, record.profile.is_none()), (Status::Ok, true));
    assert!(has_note(&record, "there is no profile: fake call"), "{:?}", record.notes);
}
