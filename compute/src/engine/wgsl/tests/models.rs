//! Whole networks, both passes, against the reference engine.

use std::collections::BTreeMap;

use super::engine;
use crate::engine::wgsl::device::WgslEngine;
use crate::engine::wgsl::launch::Lowering;
use crate::engine::wgsl::lower::lower;
use crate::engine::wgsl::session::LoadedPlan;
use crate::engine::{Engine, cpu};
use crate::models::Model;
use crate::plan::{Pass, Plan};
use crate::shape::Precision;

/// Logits, loss and gradients by name.
type Answers = BTreeMap<String, Vec<f32>>;

fn answers(engine: &dyn Engine, plan: &Plan) -> Answers {
    let mut session = engine.load(plan).unwrap();
    for parameter in &plan.parameters {
        session.write(parameter.buffer, &parameter.values()).unwrap();
    }
    session.write(plan.input, &plan.input_values()).unwrap();
    if let Some(labels) = plan.labels {
        session.write(labels, &plan.label_values()).unwrap();
    }
    session.run(1).unwrap();
    let gradients = plan.gradients.iter().map(|gradient| (gradient.name.clone(), gradient.buffer));
    let loss = plan.loss.map(|loss| ("loss".to_owned(), loss));
    std::iter::once(("logits".to_owned(), plan.logits))
        .chain(loss)
        .chain(gradients)
        .map(|(name, buffer)| (name, session.read(buffer).unwrap()))
        .collect()
}

/// Largest errors of one network.
struct Tolerance {
    /// Normalized error of the logits.
    logits: f64,
    /// Normalized error of all gradients taken together.
    gradients: f64,
    /// Relative error of one gradient's norm.
    norm: f64,
}

impl Tolerance {
    /// A few times what lavapipe shows.
    ///
    /// Forward errors are the rounding of the storage type. A gradient is changed as a whole wherever rounding changes
    /// the sign of a value before a ReLU: rarely in f32, at every hundredth value in half precision. With batch norm over
    /// two samples of a small map, fifty residual blocks amplify each such change: resnet152 shows 0.02 in f32 and 0.6 in
    /// half precision. The operations have their own narrow tests; here a wrong order or buffer is to show, which gives
    /// errors of one and more.
    fn of(model: Model, pass: Pass, precision: Precision) -> Self {
        let is_deep = matches!(model, Model::Resnet50 | Model::Resnet101 | Model::Resnet152);
        let is_trained = pass == Pass::ForwardBackward;
        match (precision, is_deep && is_trained) {
            (Precision::F16, false) => Self { logits: 4e-3, gradients: 0.2, norm: 0.2 },
            (Precision::F16, true) => Self { logits: 0.1, gradients: 0.9, norm: 0.4 },
            (_, false) => Self { logits: 1e-5, gradients: 2e-5, norm: 1e-5 },
            (_, true) => Self { logits: 1e-4, gradients: 0.1, norm: 0.03 },
        }
    }
}

fn check(engine: &WgslEngine, model: Model, pass: Pass, expected: &Answers, plan: &Plan) {
    let case = format!("{model} {pass} in {}", plan.precision);
    let tolerance = Tolerance::of(model, pass, plan.precision);
    let found = answers(engine, plan);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{case}");
    let square = |values: &[f32]| values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>();
    let (mut all_differences, mut all_values) = (0.0, 0.0);
    for (name, values) in &found {
        let differences: Vec<f32> = values.iter().zip(&expected[name]).map(|(a, b)| a - b).collect();
        let (difference, norm, reference) = (square(&differences), square(values).sqrt(), square(&expected[name]));
        assert!(norm.is_finite() && norm > 0.0, "{name} of {case} has norm {norm}");
        if name == "logits" {
            let error = (difference / reference).sqrt();
            assert!(error < tolerance.logits, "logits of {case}: {error}");
        } else {
            let error = (norm - reference.sqrt()).abs() / reference.sqrt();
            assert!(error < tolerance.norm, "norm of {name} of {case}: {error}");
            all_differences += difference;
            all_values += reference;
        }
    }
    let error = (all_differences / all_values.max(f64::MIN_POSITIVE)).sqrt();
    assert!(error < tolerance.gradients, "gradients of {case}: {error}");
}

fn check_both_passes(model: Model) {
    let Some(engine) = engine() else { return };
    let graph = model.graph_sized(model.small_input_size(), 12).unwrap();
    for pass in Pass::ALL {
        let plan = |precision| Plan::new(&graph, pass, precision, 2).unwrap();
        let reference = cpu::open().unwrap();
        let expected = answers(reference.as_ref(), &plan(Precision::F32));
        for precision in [Precision::F32, Precision::F16] {
            check(&engine, model, pass, &expected, &plan(precision));
        }
    }
}

#[test]
fn alexnet() {
    check_both_passes(Model::Alexnet);
}

#[test]
fn overfeat() {
    check_both_passes(Model::Overfeat);
}

#[test]
fn vgg_a() {
    check_both_passes(Model::VggA);
}

#[test]
fn vgg16() {
    check_both_passes(Model::Vgg16);
}

#[test]
fn googlenet() {
    check_both_passes(Model::Googlenet);
}

#[test]
fn resnet50() {
    check_both_passes(Model::Resnet50);
}

#[test]
fn resnet101() {
    check_both_passes(Model::Resnet101);
}

#[test]
fn resnet152() {
    check_both_passes(Model::Resnet152);
}

/// R30: workgroups that are folded into two dimensions compute what those in one do, in every kernel of the network.
#[test]
fn folded_workgroups_compute_the_same() {
    let Some(mut engine) = engine() else { return };
    let graph = Model::Resnet50.graph_sized(Model::Resnet50.small_input_size(), 12).unwrap();
    let plan = Plan::new(&graph, Pass::ForwardBackward, Precision::F16, 2).unwrap();
    let rows = |engine: &WgslEngine| LoadedPlan::new(engine, &plan).unwrap().dispatches.iter().map(|d| d.y).max();
    assert_eq!(rows(&engine), Some(1));
    let expected = answers(&engine, &plan);
    let context = Lowering::new(&plan, engine.limits);
    let launches = plan.steps.iter().flat_map(|step| lower(step, &context).unwrap());
    let most = launches.map(|launch| launch.workgroups).max().unwrap();
    // The smallest limit that two dimensions allow.
    engine.gpu_limits.max_compute_workgroups_per_dimension = most.isqrt() as u32 + 1;
    assert!(rows(&engine) > Some(2), "{most} workgroups");
    assert!(answers(&engine, &plan) == expected, "folding changes the results");
}
