//! Verification: before a run is timed, its plan at a small minibatch must give the reference's outputs.
//!
//! Logits, and in training the loss and the norm of every weight gradient, are compared with those of the CPU engine,
//! which accumulates in f64. Its answers for the published networks are stored in `datasets/reference/` and embedded
//! here; those of other sizes are computed when they are needed.

mod stored;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::record::Verification;
use super::spec::RunSpec;
use crate::engine::{self, Engine, EngineError, EngineKind, Session, Tier, cpu, fake};
use crate::graph::Graph;
use crate::plan::{Pass, Plan, PlanError};
use crate::shape::Precision;

pub use stored::{ReferenceError, write_references};

/// Samples of the minibatch that is verified, but for inference of a single sample.
pub const MINIBATCH: usize = 2;

/// Outputs of one iteration, as far as they are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Logits `[n, classes]`, row-major.
    pub logits: Vec<f32>,
    /// Mean loss; training only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f32>,
    /// L2 norm of the gradient of each parameter, by name; training only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gradients: Vec<(String, f32)>,
}

/// Why a run could not be verified, which is not the same as failing the verification.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The network can't be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The engine that is measured reported an error.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The minibatch that verifies is larger than the run's and did not fit; whether the run's would is not known.
    #[error("the minibatch of {MINIBATCH} that verifies the run did not fit: {0}")]
    DoesNotFit(EngineError),
    /// The engine that gives the reference reported an error.
    #[error("the reference can't be computed: {0}")]
    Reference(EngineError),
}

/// A comparison with what was learned on the way.
#[derive(Debug)]
pub struct Checked {
    /// The comparison.
    pub verification: Verification,
    /// The reference.
    pub reference: Answer,
    /// Seconds that loading the small plan took.
    pub load_secs: f64,
}

/// Largest normalized errors that pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Of the logits and the loss.
    pub outputs: f64,
    /// Root mean square over the relative errors of all gradient norms.
    pub gradients: f64,
    /// Of the norm of any one gradient.
    pub gradient: f64,
}

impl Tolerance {
    /// The tolerance of a precision and a pass.
    ///
    /// Half precisions round every stored activation to 2⁻¹¹ (f16, and the products of tf32) or 2⁻⁸ (bf16); f32 differs
    /// in the order of sums only. On the way back a rounding near zero turns a ReLU or a maximum over and moves a whole
    /// element, and batch norm over two samples divides by small deviations: a single gradient of a deep network differs
    /// much more than its outputs. A wrong index, a missing bias or a lost branch gives errors of the order of one.
    ///
    /// Seen with the WGSL engine on Mesa's software Vulkan, November 2026, over AlexNet, GoogLeNet, ResNet-50 and
    /// ResNet-152: in inference 2·10⁻⁶ (f32) and 9·10⁻⁴ (f16); in training of ResNet-152 at 64 x 64 logits 2·10⁻⁵ (f32) and
    /// 3·10⁻² (f16), all gradients 6·10⁻⁴ and 3·10⁻², the worst of them 3·10⁻³ and 0.21. On an NVIDIA H200 over all eight
    /// networks at their published size, the worst gradient was off by 4·10⁻³ (f32) and 0.12 (f16), both of ResNet-152.
    pub const fn of(precision: Precision, pass: Pass) -> Self {
        let outputs = match (precision, pass) {
            (Precision::F32, Pass::Forward) => 1e-4,
            (Precision::F32, Pass::ForwardBackward) => 1e-3,
            (Precision::F16 | Precision::Tf32, Pass::Forward) => 2e-2,
            (Precision::F16 | Precision::Tf32, Pass::ForwardBackward) => 5e-2,
            (Precision::Bf16, Pass::Forward) => 5e-2,
            (Precision::Bf16, Pass::ForwardBackward) => 2e-1,
        };
        let (gradients, gradient) = match precision {
            Precision::F32 => (3e-3, 1.5e-2),
            Precision::F16 | Precision::Tf32 => (1e-1, 3e-1),
            Precision::Bf16 => (3e-1, 8e-1),
        };
        Self { outputs, gradients, gradient }
    }
}

/// Loads the run's plan at a small minibatch, computes one iteration and compares it with the reference.
///
/// In inference the minibatch is not larger than the run's, so that a run that fits is never said not to. In training
/// it is always [`MINIBATCH`], since loss and gradients depend on it.
///
/// # Errors
/// [`VerifyError`] when it does not come to a comparison.
pub fn check(engine: &dyn Engine, graph: &Graph, spec: &RunSpec) -> Result<Checked, VerifyError> {
    let minibatch = match spec.pass {
        Pass::Forward => MINIBATCH.min(spec.minibatch),
        Pass::ForwardBackward => MINIBATCH,
    };
    let plan = Plan::new(graph, spec.pass, spec.precision, minibatch)?;
    let (ours, load_secs) = computed(engine, &plan, spec.engine).map_err(|error| match error {
        EngineError::OutOfMemory { .. } | EngineError::ExceedsDeviceLimit { .. } if minibatch > spec.minibatch => {
            VerifyError::DoesNotFit(error)
        }
        error => error.into(),
    })?;
    let mut reference = reference(graph, spec)?;
    if spec.pass == Pass::Forward {
        // A sample's logits don't depend on the others.
        reference.logits.truncate(minibatch * graph.classes());
    }
    let verification = compare(&ours, &reference, Tolerance::of(spec.precision, spec.pass));
    Ok(Checked { verification, reference, load_secs })
}

/// Outputs of one iteration of a plan, and the seconds that loading it took.
fn computed(engine: &dyn Engine, plan: &Plan, kind: EngineKind) -> Result<(Answer, f64), EngineError> {
    let begun = engine.now_secs();
    let mut session = engine.load_quickly(plan)?;
    let load_secs = engine.now_secs() - begun;
    fill(session.as_mut(), plan, kind)?;
    session.run(1)?;
    Ok((answer(session.as_mut(), plan)?, load_secs))
}

/// Fills the parameters, the input and the labels of a loaded plan.
///
/// # Errors
/// As [`Session::write`].
pub fn fill(session: &mut dyn Session, plan: &Plan, engine: EngineKind) -> Result<(), EngineError> {
    if engine == EngineKind::Fake {
        // It computes nothing; drawing millions of weights for it would make its runs slow.
        return Ok(());
    }
    for parameter in &plan.parameters {
        session.write(parameter.buffer, &parameter.values())?;
    }
    session.write(plan.input, &plan.input_values())?;
    if let Some(labels) = plan.labels {
        session.write(labels, &plan.label_values())?;
    }
    Ok(())
}

/// Compares outputs with the reference's. What is reported is the quantity that comes closest to its tolerance, or
/// exceeds it most.
pub fn compare(ours: &Answer, reference: &Answer, tolerance: Tolerance) -> Verification {
    let mut errors = vec![("logits", normalized_error(&ours.logits, &reference.logits), tolerance.outputs)];
    if let Some(loss) = reference.loss {
        errors.push(("loss", normalized_error(&[ours.loss.unwrap_or(f32::NAN)], &[loss]), tolerance.outputs));
    }
    let mut squares = 0.0;
    for (place, (name, norm)) in reference.gradients.iter().enumerate() {
        let same = ours.gradients.get(place).filter(|(other, _)| other == name);
        let error = normalized_error(&[same.map_or(f32::NAN, |(_, norm)| *norm)], &[*norm]);
        squares += error * error;
        errors.push((name, error, tolerance.gradient));
    }
    if !reference.gradients.is_empty() {
        errors.push(("gradients", (squares / reference.gradients.len() as f64).sqrt(), tolerance.gradients));
    }
    // Not a number counts as the largest, the first such quantity as the worst.
    let share = |(_, error, tolerance): &(&str, f64, f64)| (error / tolerance).abs();
    let worst = errors.into_iter().rev().max_by(|a, b| share(a).total_cmp(&share(b)));
    let (name, error, tolerance) = worst.unwrap_or(("logits", f64::NAN, tolerance.outputs));
    Verification {
        error: error.is_finite().then_some(error),
        tolerance,
        passed: error <= tolerance,
        worst: Some(name.to_owned()),
        extra: serde_json::Map::new(),
    }
}

/// Normalized error `‖a − b‖ / ‖b‖`; not a number when an element is not, when the lengths differ, or when `b` is zero
/// and `a` is not.
pub fn normalized_error(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::NAN;
    }
    let difference: f64 = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
    let size: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    if difference == 0.0 && size == 0.0 { 0.0 } else { f64::abs((difference / size).sqrt()) }
}

/// Why a verification did not pass, in one sentence; absent when it did.
pub fn failure(verification: &Verification) -> Option<String> {
    let worst = verification.worst.as_deref().unwrap_or("logits");
    match verification.error {
        _ if verification.passed => None,
        Some(error) => Some(format!(
            "{worst:?} differs from the reference by a normalized error of {error:.2e}, allowed is {:.0e}",
            verification.tolerance
        )),
        None => Some(format!("{worst:?} is missing or not finite")),
    }
}

/// Reference outputs of a run.
fn reference(graph: &Graph, spec: &RunSpec) -> Result<Answer, VerifyError> {
    if spec.engine == EngineKind::Fake {
        return reference_answer(EngineKind::Fake, fake::DEVICE_ID, graph, spec.pass);
    }
    if spec.input_size.is_none()
        && let Some(answer) = stored::answer(spec.model, spec.pass, graph)
    {
        return Ok(answer);
    }
    reference_answer(EngineKind::Cpu, cpu::DEVICE_ID, graph, spec.pass)
}

/// Outputs that an engine whose word counts computes in f32.
fn reference_answer(kind: EngineKind, id: &str, graph: &Graph, pass: Pass) -> Result<Answer, VerifyError> {
    let plan = Plan::new(graph, pass, Precision::F32, MINIBATCH)?;
    let engine = engine::open(kind, id, None, Tier::default()).map_err(VerifyError::Reference)?;
    let (answer, _) = computed(engine.as_ref(), &plan, kind).map_err(VerifyError::Reference)?;
    Ok(answer)
}

/// Reads what is compared after an iteration.
fn answer(session: &mut dyn Session, plan: &Plan) -> Result<Answer, EngineError> {
    let logits = session.read(plan.logits)?;
    let loss = match plan.loss {
        Some(loss) => Some(session.read(loss)?.first().copied().unwrap_or(f32::NAN)),
        None => None,
    };
    let mut gradients = Vec::with_capacity(plan.gradients.len());
    for gradient in &plan.gradients {
        let values = session.read(gradient.buffer)?;
        let norm = values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        gradients.push((gradient.name.clone(), norm as f32));
    }
    Ok(Answer { logits, loss, gradients })
}
