//! Loading, running and failing.

use super::{Sketch, engine};
use crate::engine::wgsl::device;
use crate::engine::wgsl::device::WgslEngine;
use crate::engine::wgsl::session::LoadedPlan;
use crate::engine::{DeviceKind, Engine, EngineError, Session};
use crate::models::Model;
use crate::ops::average_pool;
use crate::plan::{Contents, Pass, Plan, Step};
use crate::shape::{Element, Precision, Shape};

/// An average of two maps.
fn sketch(shape: Shape) -> Sketch {
    let mut sketch = Sketch::new(Precision::F32);
    let (x, y) = (sketch.activation(shape), sketch.activation(Shape { h: 1, w: 1, ..shape }));
    sketch.step(Step::AveragePoolForward(average_pool::Forward { x, y, dropout: None }));
    sketch
}

fn small() -> Sketch {
    sketch(Shape::new(2, 4, 3, 3))
}

#[test]
fn every_iteration_has_a_time() {
    let Some(engine) = engine() else { return };
    let sketch = small();
    let mut session = engine.load(sketch.plan()).unwrap();
    for iterations in [1, 3, 300] {
        let timings = session.run(iterations).unwrap();
        assert_eq!(timings.len(), iterations);
        assert!(timings.iter().all(|timing| timing.host_secs > 0.0));
        assert!(timings.iter().all(|timing| timing.device_secs.is_none_or(|secs| secs >= 0.0)));
    }
    assert_eq!(session.run(0).unwrap().len(), 0);
    assert_eq!(session.kernels().len(), 1, "{:?}", session.kernels());
    let software = session.notes().iter().any(|note| note.contains("software adapter"));
    assert_eq!(software, engine.device().kind == DeviceKind::Software);
    let memory = session.memory();
    assert!(memory.peak_bytes > memory.workspace_bytes + 2 * 4 * 9 * 4);
}

/// Without the device's clock no two iterations share a time, as the parts of a queue would.
#[test]
fn without_a_clock_each_iteration_has_its_own_time() {
    let Some(engine) = engine() else { return };
    let sketch = small();
    let mut session = LoadedPlan::new(&engine, sketch.plan()).unwrap();
    session.clock = None;
    session.run(4).unwrap();
    let timings = session.run(20).unwrap();
    assert!(timings.iter().all(|timing| timing.device_secs.is_none()));
    assert!(timings.windows(2).any(|pair| pair[0].host_secs != pair[1].host_secs), "{timings:?}");
}

#[test]
fn a_clock_that_is_wrong_several_times_is_given_up_with_a_note() {
    let Some(engine) = engine() else { return };
    let sketch = small();
    let mut session = LoadedPlan::new(&engine, sketch.plan()).unwrap();
    let Some(clock) = &mut session.clock else { return };
    clock.period_nanos = 0.0;
    let has_note = |session: &LoadedPlan| session.notes().iter().any(|note| note.contains("clock is not used"));
    session.run(3).unwrap();
    assert!(session.clock.is_some() && !has_note(&session), "{:?}", session.notes());
    session.run(1).unwrap();
    assert!(session.clock.is_none() && has_note(&session), "{:?}", session.notes());
    assert!(session.run(3).unwrap().iter().all(|timing| timing.device_secs.is_none()));
}

#[test]
fn iterations_repeat_to_the_bit() {
    let Some(engine) = engine() else { return };
    let graph = Model::Alexnet.graph_sized(Model::Alexnet.small_input_size(), 12).unwrap();
    let plan = Plan::new(&graph, Pass::ForwardBackward, Precision::F32, 2).unwrap();
    let mut session = engine.load(&plan).unwrap();
    for parameter in &plan.parameters {
        session.write(parameter.buffer, &parameter.values()).unwrap();
    }
    session.write(plan.input, &plan.input_values()).unwrap();
    session.write(plan.labels.unwrap(), &plan.label_values()).unwrap();
    session.run(1).unwrap();
    let first: Vec<_> = plan.gradients.iter().map(|gradient| session.read(gradient.buffer).unwrap()).collect();
    session.run(3).unwrap();
    for (gradient, first) in plan.gradients.iter().zip(first) {
        assert!(session.read(gradient.buffer).unwrap() == first, "{} differs", gradient.name);
    }
}

/// The error of a load.
fn refused(engine: &WgslEngine, plan: &Plan) -> EngineError {
    match engine.load(plan) {
        Ok(_) => panic!("the plan was loaded"),
        Err(error) => error,
    }
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_allocated() {
    let Some(engine) = engine() else { return };
    let side = (engine.gpu_limits.max_buffer_size / 16).isqrt() as usize + 1;
    let error = refused(&engine, sketch(Shape::new(2, 4, side, side)).plan());
    assert!(matches!(error, EngineError::ExceedsDeviceLimit { .. }), "{error}");

    // Two maps whose images can't be bound, though both fit into a buffer.
    let mut engine = engine;
    engine.limits.max_binding_bytes = 4096;
    let error = refused(&engine, sketch(Shape::new(2, 4, 64, 64)).plan());
    assert!(matches!(error, EngineError::ExceedsDeviceLimit { needed: 65_536, .. }), "{error}");
}

#[test]
fn large_activations_are_cut_along_images() {
    let Some(mut engine) = engine() else { return };
    let shape = Shape::new(7, 5, 9, 11);
    let run = |engine: &WgslEngine| {
        let mut sketch = Sketch::new(Precision::F32);
        let (x, y) = (sketch.activation(shape), sketch.activation(Shape { h: 1, w: 1, ..shape }));
        sketch.fill(x.buffer);
        let dropout = Some(crate::ops::dropout::Dropping { key: 9, threshold: 1 << 31, scale: 2.0 });
        sketch.step(Step::AveragePoolForward(average_pool::Forward { x, y, dropout }));
        sketch.run(engine, &[y.buffer]).remove(0)
    };
    let whole = run(&engine);
    // Three images at most, whose first byte is not aligned.
    engine.limits.max_binding_bytes = 3 * 9 * 11 * 8 * 4 + 256;
    engine.limits.offset_alignment = 256;
    assert_eq!(run(&engine), whole);
}

#[test]
fn unsupported_is_told_from_failed() {
    let Some(engine) = engine() else { return };
    for precision in [Precision::Tf32, Precision::Bf16] {
        let error = refused(&engine, Sketch::new(precision).plan());
        assert!(matches!(error, EngineError::NotSupported { .. }), "{error}");
    }
    // A slice that starts in the middle of a group of four channels.
    let mut sketch = Sketch::new(Precision::F32);
    let x = sketch.slice(Shape::new(1, 12, 2, 2), 6, 4);
    let y = sketch.activation(Shape::new(1, 4, 1, 1));
    sketch.step(Step::AveragePoolForward(average_pool::Forward { x, y, dropout: None }));
    let error = refused(&engine, sketch.plan());
    assert!(matches!(error, EngineError::NotSupported { .. }), "{error}");
    match device::open("no such device") {
        Err(EngineError::NoSuchDevice { available, .. }) => assert!(available.contains(&engine.device().id)),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was opened"),
    }
}

#[test]
fn a_lost_device_is_an_error_and_no_panic() {
    let Some(engine) = engine() else { return };
    let sketch = small();
    let mut session = engine.load(sketch.plan()).unwrap();
    session.run(1).unwrap();
    engine.faults.lose("unplugged");
    let lost = EngineError::DeviceLost { reason: "unplugged".into() };
    assert_eq!(session.run(1), Err(lost.clone()));
    assert_eq!(session.read(sketch.plan().input), Err(lost.clone()));
    drop(session);
    assert_eq!(refused(&engine, sketch.plan()), lost);
}

#[test]
fn a_destroyed_device_is_an_error_and_no_panic() {
    let Some(engine) = engine() else { return };
    let sketch = small();
    let mut session = engine.load(sketch.plan()).unwrap();
    session.run(1).unwrap();
    engine.gpu.destroy();
    let outcome = session.run(2);
    assert!(outcome.is_err(), "{outcome:?}");
    drop(session);
    refused(&engine, sketch.plan());
}

#[test]
fn what_is_written_is_read() {
    let Some(engine) = engine() else { return };
    let mut sketch = Sketch::new(Precision::F16);
    let shape = Shape::new(3, 5, 4, 3);
    let buffers = [
        sketch.buffer(Contents::Activation(shape), Element::F16),
        sketch.buffer(Contents::Activation(shape), Element::U8),
        sketch.buffer(Contents::Vector(5), Element::F32),
        sketch.buffer(Contents::Vector(70), Element::U32),
    ];
    let mut session = engine.load(sketch.plan()).unwrap();
    for id in buffers {
        let values: Vec<f32> = (0..sketch.plan().buffer(id).contents.elements()).map(|i| i as f32).collect();
        session.write(id, &values).unwrap();
        assert_eq!(session.read(id).unwrap(), values);
    }
}

/// A profile has a time for each step, with the device's clock and without, and leaves what an iteration leaves.
#[test]
fn every_step_has_a_time() {
    let Some(engine) = engine() else { return };
    let graph = Model::Alexnet.graph_sized(Model::Alexnet.small_input_size(), 12).unwrap();
    let plan = Plan::new(&graph, Pass::ForwardBackward, Precision::F32, 2).unwrap();
    let mut session = LoadedPlan::new(&engine, &plan).unwrap();
    for parameter in &plan.parameters {
        session.write(parameter.buffer, &parameter.values()).unwrap();
    }
    session.write(plan.input, &plan.input_values()).unwrap();
    session.write(plan.labels.unwrap(), &plan.label_values()).unwrap();
    session.run(1).unwrap();
    let gradients = |session: &mut LoadedPlan| -> Vec<Vec<f32>> {
        plan.gradients.iter().map(|gradient| session.read(gradient.buffer).unwrap()).collect()
    };
    let before = gradients(&mut session);
    for has_clock in [true, false] {
        if !has_clock {
            session.clock = None;
        }
        let uses_clock = session.clock.is_some();
        let steps = session.profile(3).unwrap();
        assert_eq!(steps.len(), plan.steps.len());
        for (time, step) in steps.iter().zip(&plan.steps) {
            let operation = step.name().split("_backward").next().unwrap().trim_end_matches("_forward");
            assert!(time.secs >= 0.0 && time.kernel.contains(operation), "{}: {time:?}", step.name());
        }
        let sum: f64 = steps.iter().map(|step| step.secs).sum();
        assert!(sum > 0.0 && sum < 60.0, "{sum}");
        let is_noted = session.notes().iter().any(|note| note.contains("profiled without the device's clock"));
        assert!(uses_clock || is_noted, "{:?}", session.notes());
        assert!(gradients(&mut session) == before);
    }
}
