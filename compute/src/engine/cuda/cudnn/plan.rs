//! Plans: of what the heuristics propose, that which computes as exactly as asked, built on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cudarc::cudnn::sys::{cudnnBackendAttributeName_t as Name, cudnnBackendDescriptorType_t as Kind};

use super::choice::{Choice, Note};
use super::descriptor::{Descriptor, Value};
use super::graph::{Graph, Operation};
use super::proposal::Proposal;
use super::{Cudnn, Handle};
use crate::engine::EngineError;
use crate::shape::Precision;

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

/// Whether an engine computes f32 less exactly than its notes say.
///
/// Engine 17 makes the gradients of filters with an error of 5e-4 where they are larger than 3x3, as much as tf32 (H200,
/// cuDNN 9.14, 2026-11-30).
fn is_inexact(graph: &Graph, choice: &Choice) -> bool {
    let [.., r, s] = graph.convolution.w.dims;
    matches!(graph.operation, Operation::BackwardWeight { .. }) && choice.engine == 17 && r * s > 9
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
    /// 256 MiB of workspace, three seconds, eight plans or one that is compiled, every processor, sums in a fixed order.
    /// The fastest plan was among the first six of every graph but one, where it gained 1 %.
    pub(in crate::engine::cuda) fn new(precision: Precision) -> Self {
        Self {
            precision,
            workspace_bytes: 256 << 20,
            time: Duration::from_secs(3),
            most: 8,
            most_compiled: 1,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            deterministic: true,
        }
    }

    fn admit(&self, notes: &[Note]) -> bool {
        is_faithful(self.precision, notes) && !(self.deterministic && notes.contains(&Note::Nondeterministic))
    }

    /// The proposals for a graph that are to be built.
    fn choose(&self, graph: &Graph, mut proposals: Vec<Proposal>) -> Vec<Proposal> {
        proposals.retain(|proposal| {
            self.admit(&proposal.notes) && !(self.precision == Precision::F32 && is_inexact(graph, &proposal.choice))
        });
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
    /// Bytes of workspace that an execution needs.
    pub(in crate::engine::cuda) workspace_bytes: u64,
    /// What the engine states of its arithmetic.
    #[cfg(test)]
    pub(in crate::engine::cuda) notes: Vec<Note>,
    pub(super) descriptor: Arc<Descriptor>,
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
        let pack = Descriptor::new(
            cudnn.api,
            Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
            &[
                (Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, Value::Addresses(&addresses)),
                (Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Value::Integers(&ids)),
                (Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, Value::Addresses(&[workspace])),
            ],
        )?;
        // SAFETY: plan and pack are finalized; the caller vouches for the addresses.
        let status = unsafe { (cudnn.api.execute)(cudnn.handle().raw, self.descriptor.raw(), pack.raw()) };
        cudnn.api.check(&self.name, status)
    }
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
            let chosen = limits.choose(graph, self.proposals(graph)?).into_iter().enumerate();
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
}

fn panicked() -> EngineError {
    EngineError::Failed { what: "building cuDNN plans".to_owned(), reason: "a thread panicked".to_owned() }
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
}
