//! What the heuristics propose for a graph, and the building of it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::cudnn::sys::{
    cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type, cudnnBackendDescriptorType_t as Kind,
    cudnnBackendHeurMode_t as Mode,
};

use super::choice::{self, Choice, Note};
use super::descriptor::{Descriptor, Value};
use super::graph::Graph;
use super::plan::ExecutionPlan;
use super::{Cudnn, Handle};
use crate::engine::EngineError;

/// Most notes that an engine can have: the number of kinds, with room for later versions.
const MOST_NOTES: usize = 32;
/// Most settings that an engine can have, likewise.
const MOST_KNOBS: usize = 64;

/// A configuration that the heuristics propose.
pub(super) struct Proposal {
    pub(super) choice: Choice,
    pub(super) notes: Vec<Note>,
    pub(super) is_compiled: bool,
    pub(super) config: Arc<Descriptor>,
}

/// Proposals after which no further kind of heuristic is asked, each of which takes some ten milliseconds: the fastest
/// plan was among the first six of nearly every graph.
const ENOUGH: usize = 12;

impl Cudnn {
    /// What the heuristics propose, each once.
    pub(super) fn proposals(&self, graph: &Graph) -> Result<Vec<Proposal>, EngineError> {
        // Mode B keeps state of its own: one thread asks at a time.
        static ASKING: Mutex<()> = Mutex::new(());
        let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(graph) = unless_declined(graph.build(&self.handle()))? else { return Ok(Vec::new()) };
        let (mut proposals, mut seen) = (Vec::new(), HashSet::new());
        for mode in [Mode::CUDNN_HEUR_MODE_A, Mode::CUDNN_HEUR_MODE_B, Mode::CUDNN_HEUR_MODE_FALLBACK] {
            for mut config in unless_declined(self.configs(&graph, mode))?.unwrap_or_default() {
                config.keep(Arc::clone(&graph));
                let proposal = Proposal::read(config)?;
                if seen.insert(proposal.choice.clone()) {
                    proposals.push(proposal);
                }
            }
            if proposals.iter().filter(|proposal| !proposal.is_compiled).count() >= ENOUGH {
                break;
            }
        }
        Ok(proposals)
    }

    fn configs(&self, graph: &Arc<Descriptor>, mode: Mode) -> Result<Vec<Descriptor>, EngineError> {
        let heuristics = Descriptor::new(
            self.api,
            Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
            &[
                (Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, Value::Parts(&[Arc::clone(graph)])),
                (Name::CUDNN_ATTR_ENGINEHEUR_MODE, Value::Mode(Type::CUDNN_TYPE_HEUR_MODE, mode as i32)),
            ],
        )?;
        let n_results = heuristics.count(Name::CUDNN_ATTR_ENGINEHEUR_RESULTS)?;
        let kind = Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
        heuristics.descriptors(Name::CUDNN_ATTR_ENGINEHEUR_RESULTS, kind, n_results)
    }
}

impl Proposal {
    fn read(config: Descriptor) -> Result<Self, EngineError> {
        let kind = Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR;
        let engines = config.descriptors(Name::CUDNN_ATTR_ENGINECFG_ENGINE, kind, 1)?;
        let engine = engines.first().ok_or_else(|| empty("an engine configuration's engine"))?;
        let kind = Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR;
        let knobs = config.descriptors(Name::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, kind, MOST_KNOBS)?;
        let knob = |knob: &Descriptor| {
            let kinds = knob.modes(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, Type::CUDNN_TYPE_KNOB_TYPE, 1)?;
            let values = knob.integers(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 1)?;
            let pair = kinds.first().map(|&kind| i64::from(kind)).zip(values.first().copied());
            pair.ok_or_else(|| empty("a knob choice"))
        };
        let choice = Choice {
            engine: *engine
                .integers(Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1)?
                .first()
                .ok_or_else(|| empty("an engine's index"))?,
            knobs: knobs.iter().map(knob).collect::<Result<_, _>>()?,
        };
        Ok(Self { notes: notes(engine)?, is_compiled: is_compiled(engine)?, choice, config: Arc::new(config) })
    }

    /// The plan, unless the engine declines or wants more workspace than allowed.
    pub(super) fn build(&self, handle: &Handle, workspace_bytes: u64) -> Result<Option<ExecutionPlan>, EngineError> {
        match self.build_unbounded(handle) {
            Ok(plan) => Ok((plan.workspace_bytes <= workspace_bytes).then_some(plan)),
            // A proposal may fail in other ways than by declining, as when its kernel can't be compiled: one less.
            Err(EngineError::NotSupported { .. } | EngineError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn build_unbounded(&self, handle: &Handle) -> Result<ExecutionPlan, EngineError> {
        let descriptor = Descriptor::new(
            handle.api,
            Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
            &[
                (Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Value::Handle(handle.raw)),
                (Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, Value::Parts(&[Arc::clone(&self.config)])),
            ],
        )?;
        let sizes = descriptor.integers(Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1)?;
        let workspace_bytes = sizes.first().copied().unwrap_or(0).max(0) as u64;
        Ok(ExecutionPlan {
            name: choice::name(&self.choice, &self.notes),
            workspace_bytes,
            #[cfg(test)]
            notes: self.notes.clone(),
            descriptor,
        })
    }
}

fn notes(engine: &Descriptor) -> Result<Vec<Note>, EngineError> {
    let kind = Type::CUDNN_TYPE_NUMERICAL_NOTE;
    let values = engine.modes(Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, kind, MOST_NOTES)?;
    Ok(values.into_iter().map(Note::new).collect())
}

/// Whether the engine compiles its kernel when a plan is built.
fn is_compiled(engine: &Descriptor) -> Result<bool, EngineError> {
    /// `CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION`.
    const RUNTIME_COMPILATION: i32 = 0;
    let kind = Type::CUDNN_TYPE_BEHAVIOR_NOTE;
    let values = engine.modes(Name::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, kind, MOST_NOTES)?;
    Ok(values.contains(&RUNTIME_COMPILATION))
}

/// `None` where the library declines.
fn unless_declined<T>(result: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(EngineError::NotSupported { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn empty(what: &str) -> EngineError {
    EngineError::Failed { what: "reading cuDNN's heuristics".to_owned(), reason: format!("{what} is not given") }
}
