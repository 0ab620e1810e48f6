//! Plans: what the heuristics propose, which of it computes as exactly as asked, built on several threads.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cudarc::cudnn::sys::{
    cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type, cudnnBackendDescriptorType_t as Kind,
    cudnnBackendHeurMode_t as Mode,
};
use serde::{Deserialize, Serialize};

use super::descriptor::{Descriptor, Value};
use super::graph::Graph;
use super::{Cudnn, Handle};
use crate::engine::EngineError;
use crate::shape::Precision;

/// An engine and its settings: enough to build a plan again without asking the heuristics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::engine::cuda) struct Choice {
    /// The engine's index, which a version of the library gives it for one pattern of operations.
    pub(in crate::engine::cuda) engine: i64,
    /// Settings: type and value.
    pub(in crate::engine::cuda) knobs: Vec<(i64, i64)>,
}

/// What an engine states of its arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::cuda) enum Note {
    /// Tensor cores multiply; f32 values are rounded to tf32 for it.
    TensorCore,
    /// Inputs are rounded to a smaller type.
    DownConvertInputs,
    /// Sums are kept in a type smaller than asked.
    ReducedPrecisionReduction,
    /// Computed through Fourier transforms.
    Fft,
    /// Sums are made in no fixed order.
    Nondeterministic,
    /// Computed by Winograd's algorithm.
    Winograd,
    /// Something that does not matter here.
    Other,
}

impl Note {
    /// Source: `cudnnBackendNumericalNote_t` of cudnn_graph.h, version 9.
    fn new(value: i32) -> Self {
        match value {
            0 => Self::TensorCore,
            1 => Self::DownConvertInputs,
            2 => Self::ReducedPrecisionReduction,
            3 => Self::Fft,
            4 => Self::Nondeterministic,
            5..=8 => Self::Winograd,
            _ => Self::Other,
        }
    }
}

/// Most notes that an engine can have: the number of kinds, with room for later versions.
const MOST_NOTES: usize = 32;
/// Most settings that an engine can have, likewise.
const MOST_KNOBS: usize = 64;

/// Whether arithmetic with these notes is what a precision promises. For f32 that is IEEE single precision: what tensor
/// cores make of f32 is tf32.
fn is_faithful(precision: Precision, notes: &[Note]) -> bool {
    let has = |note| notes.contains(&note);
    let is_exact = !has(Note::ReducedPrecisionReduction);
    is_exact
        && match precision {
            Precision::F32 => !has(Note::TensorCore) && !has(Note::DownConvertInputs),
            Precision::Tf32 => has(Note::TensorCore),
            Precision::F16 | Precision::Bf16 => true,
        }
}

/// Which plans are wanted, and how much may be spent on them.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::cuda) struct Limits {
    /// The arithmetic.
    pub(in crate::engine::cuda) precision: Precision,
    /// Largest workspace of a plan.
    pub(in crate::engine::cuda) workspace_bytes: u64,
    /// Time after which no further plan is begun; those under way are finished.
    pub(in crate::engine::cuda) time: Duration,
    /// Most plans of a graph, in the order of the heuristics.
    pub(in crate::engine::cuda) most: usize,
    /// Most plans of a graph whose kernels are compiled when they are built, which takes up to seconds each. They are
    /// built only where there are no others, which have always been faster (H200, cuDNN 9.14, 2026-11-30).
    pub(in crate::engine::cuda) most_compiled: usize,
    /// Threads that build.
    pub(in crate::engine::cuda) threads: usize,
    /// Whether plans whose sums have no fixed order are left out.
    pub(in crate::engine::cuda) deterministic: bool,
}

impl Limits {
    /// 256 MiB of workspace, ten seconds, eight plans or three that are compiled, every processor, sums in a fixed order.
    /// The fastest plan was among the first six of every graph but one, where it gained 1 %.
    pub(in crate::engine::cuda) fn new(precision: Precision) -> Self {
        Self {
            precision,
            workspace_bytes: 256 << 20,
            time: Duration::from_secs(10),
            most: 8,
            most_compiled: 3,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            deterministic: true,
        }
    }

    fn admit(&self, notes: &[Note]) -> bool {
        is_faithful(self.precision, notes) && !(self.deterministic && notes.contains(&Note::Nondeterministic))
    }

    /// The proposals that are to be built.
    fn choose(&self, mut proposals: Vec<Proposal>) -> Vec<Proposal> {
        proposals.retain(|proposal| self.admit(&proposal.notes));
        if proposals.iter().any(|proposal| !proposal.is_compiled) {
            proposals.retain(|proposal| !proposal.is_compiled);
        } else {
            proposals.truncate(self.most_compiled);
        }
        proposals
    }
}

/// A way to compute a graph, ready to be executed.
#[derive(Debug)]
pub(in crate::engine::cuda) struct ExecutionPlan {
    /// Engine and settings, such as `"cudnn engine 42 {tile_size=3, stages=4}"`.
    pub(in crate::engine::cuda) name: String,
    /// By what it can be built again.
    pub(in crate::engine::cuda) choice: Choice,
    /// Bytes of workspace that an execution needs.
    pub(in crate::engine::cuda) workspace_bytes: u64,
    /// What the engine states of its arithmetic.
    pub(in crate::engine::cuda) notes: Vec<Note>,
    /// Whether its kernel was compiled when it was built.
    pub(in crate::engine::cuda) is_compiled: bool,
    descriptor: Arc<Descriptor>,
}

impl ExecutionPlan {
    /// Puts the computation on the stream of `cudnn`, also while that is captured. `tensors` says where each tensor of the
    /// graph lies.
    ///
    /// # Errors
    /// [`EngineError::Failed`] as the library reports.
    ///
    /// # Safety
    /// Every address must be that of device memory as large as the tensor, aligned to 16 bytes, and `workspace` that of
    /// [`Self::workspace_bytes`] bytes; they must stay so until the stream, or a graph captured from it, is done.
    pub(in crate::engine::cuda) unsafe fn execute(
        &self,
        cudnn: &Cudnn,
        tensors: &[(i64, u64)],
        workspace: u64,
    ) -> Result<(), EngineError> {
        let (ids, addresses): (Vec<_>, Vec<_>) = tensors.iter().copied().unzip();
        let pack = Descriptor::new(cudnn.api, Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Value::Addresses(&addresses)),
            (Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Value::Integers(&ids)),
            (Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, Value::Addresses(&[workspace])),
        ])?;
        // SAFETY: plan and pack are finalized; the caller vouches for the addresses.
        let status = unsafe { (cudnn.api.execute)(cudnn.handle().raw, self.descriptor.raw(), pack.raw()) };
        cudnn.api.check(&self.name, status)
    }
}

/// A configuration that the heuristics propose.
struct Proposal {
    choice: Choice,
    notes: Vec<Note>,
    is_compiled: bool,
    config: Arc<Descriptor>,
}

impl Cudnn {
    /// For each graph its plans within the limits, in the order of the heuristics; none where no engine supports it.
    ///
    /// All are built at once, every graph's first proposal before any graph's second.
    ///
    /// # Errors
    /// [`EngineError::Failed`] when the library fails otherwise than by declining.
    pub(in crate::engine::cuda) fn plans(
        &self,
        graphs: &[Graph],
        limits: &Limits,
    ) -> Result<Vec<Vec<Arc<ExecutionPlan>>>, EngineError> {
        let mut queue = Vec::new();
        for (graph_idx, graph) in graphs.iter().enumerate() {
            let chosen = limits.choose(self.proposals(graph)?).into_iter().enumerate();
            queue.extend(chosen.map(|(rank, proposal)| (rank, graph_idx, proposal)));
        }
        queue.sort_by_key(|(rank, graph_idx, _)| (*rank, *graph_idx));
        let (start, next) = (Instant::now(), AtomicUsize::new(0));
        let n_built: Vec<_> = graphs.iter().map(|_| AtomicUsize::new(0)).collect();
        let plans = Mutex::new(Vec::new());
        let build = |handle: &Handle| {
            while start.elapsed() < limits.time {
                let Some((rank, graph, proposal)) = queue.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                if n_built[*graph].load(Ordering::Relaxed) >= limits.most {
                    continue;
                }
                if let Some(plan) = proposal.build(handle, limits.workspace_bytes)? {
                    n_built[*graph].fetch_add(1, Ordering::Relaxed);
                    plans.lock().unwrap_or_else(PoisonError::into_inner).push((*graph, *rank, Arc::new(plan)));
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let (n_threads, builders) = (limits.threads.min(queue.len()), &self.builders);
            let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(|| builders.lend(build))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(panicked())))
        })?;
        let mut plans = plans.into_inner().unwrap_or_else(PoisonError::into_inner);
        plans.sort_by_key(|(graph, rank, _)| (*graph, *rank));
        let mut by_graph = vec![Vec::new(); graphs.len()];
        plans.into_iter().for_each(|(graph, _, plan)| by_graph[graph].push(plan));
        by_graph.iter_mut().for_each(|plans| plans.truncate(limits.most));
        Ok(by_graph)
    }

    /// Builds one plan again.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] when the engine declines, as after a change of the library's version.
    pub(in crate::engine::cuda) fn plan_of(
        &self,
        graph: &Graph,
        choice: &Choice,
    ) -> Result<Arc<ExecutionPlan>, EngineError> {
        let graph = graph.build(&self.handle())?;
        let engine = Descriptor::new(self.api, Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_ENGINE_OPERATION_GRAPH, Value::Parts(&[graph])),
            (Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, Value::Integers(&[choice.engine])),
        ])?;
        let (notes, is_compiled) = (notes(&engine)?, is_compiled(&engine)?);
        let knob = |&(kind, value): &(i64, i64)| {
            Descriptor::new(self.api, Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &[
                (Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, Value::Mode(Type::CUDNN_TYPE_KNOB_TYPE, kind as i32)),
                (Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, Value::Integers(&[value])),
            ])
        };
        let knobs = choice.knobs.iter().map(knob).collect::<Result<Vec<_>, _>>()?;
        let (engine, mut attributes) = ([engine], Vec::new());
        attributes.push((Name::CUDNN_ATTR_ENGINECFG_ENGINE, Value::Parts(&engine)));
        if !knobs.is_empty() {
            attributes.push((Name::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, Value::Parts(&knobs)));
        }
        let config = Descriptor::new(self.api, Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &attributes)?;
        let proposal = Proposal { choice: choice.clone(), notes, is_compiled, config };
        proposal.build_unbounded(&self.handle()).map(Arc::new)
    }

    /// What the heuristics propose, each once.
    fn proposals(&self, graph: &Graph) -> Result<Vec<Proposal>, EngineError> {
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
        }
        Ok(proposals)
    }

    fn configs(&self, graph: &Arc<Descriptor>, mode: Mode) -> Result<Vec<Descriptor>, EngineError> {
        let heuristics = Descriptor::new(self.api, Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, Value::Parts(&[Arc::clone(graph)])),
            (Name::CUDNN_ATTR_ENGINEHEUR_MODE, Value::Mode(Type::CUDNN_TYPE_HEUR_MODE, mode as i32)),
        ])?;
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
    fn build(&self, handle: &Handle, workspace_bytes: u64) -> Result<Option<ExecutionPlan>, EngineError> {
        match self.build_unbounded(handle) {
            Ok(plan) => Ok((plan.workspace_bytes <= workspace_bytes).then_some(plan)),
            // A proposal may fail in other ways than by declining, as when its kernel can't be compiled: one less.
            Err(EngineError::NotSupported { .. } | EngineError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn build_unbounded(&self, handle: &Handle) -> Result<ExecutionPlan, EngineError> {
        let descriptor = Descriptor::new(handle.api, Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Value::Handle(handle.raw)),
            (Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, Value::Parts(&[Arc::clone(&self.config)])),
        ])?;
        let sizes = descriptor.integers(Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1)?;
        let workspace_bytes = sizes.first().copied().unwrap_or(0).max(0) as u64;
        Ok(ExecutionPlan {
            name: name(&self.choice, &self.notes),
            choice: self.choice.clone(),
            workspace_bytes,
            notes: self.notes.clone(),
            is_compiled: self.is_compiled,
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

fn panicked() -> EngineError {
    EngineError::Failed { what: "building cuDNN plans".to_owned(), reason: "a thread panicked".to_owned() }
}

/// Settings by their type, in the words of `cudnnBackendKnobType_t` of cudnn_graph.h, version 9.21.
const KNOBS: [&str; 44] = [
    "split_k",
    "swizzle",
    "tile_size",
    "use_tex",
    "edge",
    "kblock",
    "ldga",
    "ldgb",
    "chunk_k",
    "split_h",
    "wino_tile",
    "multiply",
    "split_k_buf",
    "tilek",
    "stages",
    "reduction_mode",
    "cta_split_k_mode",
    "split_k_slc",
    "idx_mode",
    "sliced",
    "split_rs",
    "singlebuffer",
    "ldgc",
    "specfilt",
    "kernel_cfg",
    "workspace",
    "tile_cga",
    "tile_cga_m",
    "tile_cga_n",
    "block_size",
    "occupancy",
    "array_size_per_thread",
    "num_c_per_block",
    "split_cols",
    "tile_rows",
    "tile_cols",
    "load_size",
    "cta_count",
    "stream_k",
    "split_p_slc",
    "tile_m",
    "tile_n",
    "warp_spec_cfg",
    "swap_ab",
];

/// Engine, algorithm where it is not the direct one, and the settings that are not zero.
fn name(choice: &Choice, notes: &[Note]) -> String {
    let mut name = format!("cudnn engine {}", choice.engine);
    for (note, word) in [(Note::Winograd, " winograd"), (Note::Fft, " fft")] {
        if notes.contains(&note) {
            name.push_str(word);
        }
    }
    let mut separator = " {";
    for &(kind, value) in choice.knobs.iter().filter(|(_, value)| *value != 0) {
        let known = usize::try_from(kind).ok().and_then(|kind| KNOBS.get(kind));
        let knob = known.map_or_else(|| format!("knob {kind}"), |knob| (*knob).to_owned());
        // Writing to a text can't fail.
        let _ = write!(name, "{separator}{knob}={value}");
        separator = ", ";
    }
    if separator == ", " {
        name.push('}');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ieee_arithmetic_passes_for_f32() {
        let cases = [
            (Precision::F32, vec![], true),
            (Precision::F32, vec![Note::Winograd], true),
            (Precision::F32, vec![Note::TensorCore], false),
            (Precision::F32, vec![Note::DownConvertInputs], false),
            (Precision::F32, vec![Note::Fft, Note::TensorCore], false),
            (Precision::Tf32, vec![], false),
            (Precision::Tf32, vec![Note::TensorCore, Note::DownConvertInputs], true),
            (Precision::F16, vec![Note::TensorCore], true),
            (Precision::F16, vec![], true),
            (Precision::Bf16, vec![Note::TensorCore, Note::ReducedPrecisionReduction], false),
        ];
        for (precision, notes, expected) in cases {
            assert_eq!(is_faithful(precision, &notes), expected, "{precision} with {notes:?}");
        }
    }

    #[test]
    fn sums_without_order_are_left_out_where_asked() {
        let mut limits = Limits::new(Precision::F16);
        assert!(!limits.admit(&[Note::TensorCore, Note::Nondeterministic]));
        limits.deterministic = false;
        assert!(limits.admit(&[Note::TensorCore, Note::Nondeterministic]));
    }

    #[test]
    fn names_are_short_and_tell_plans_apart() {
        let choice = |knobs: &[(i64, i64)]| Choice { engine: 42, knobs: knobs.to_vec() };
        let cases = [
            (choice(&[]), vec![], "cudnn engine 42"),
            (choice(&[(2, 3), (0, 0), (14, 4)]), vec![Note::TensorCore], "cudnn engine 42 {tile_size=3, stages=4}"),
            (choice(&[(99, 1)]), vec![Note::Winograd], "cudnn engine 42 winograd {knob 99=1}"),
        ];
        for (choice, notes, expected) in cases {
            assert_eq!(name(&choice, &notes), expected);
        }
    }
}
