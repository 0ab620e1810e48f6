//! cuDNN and cuBLASLt, opened for an engine's stream, with the plans built so far.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::CUstream;

use super::cublaslt::{CublasLt, Matmul, Operands, Product};
use super::cudnn::{Cudnn, ExecutionPlan, Graph, Limits};
use super::launch::{Command, Lowering, Place};
use crate::engine::EngineError;
use crate::shape::Precision;

/// Largest workspace of a plan or a product.
const WORKSPACE_BYTES: u64 = 256 << 20;

type Plans = Vec<Arc<ExecutionPlan>>;
type Matmuls = Vec<Arc<Matmul>>;

/// The vendor's libraries.
#[derive(Debug)]
pub(super) struct Vendor {
    // Plans go before the handles that they were made with.
    plans: Mutex<Known>,
    matmuls: Mutex<Vec<(Product, Matmuls)>>,
    cudnn: Cudnn,
    cublaslt: CublasLt,
    stream: Stream,
}

/// Plans built so far.
#[derive(Debug, Default)]
struct Known {
    plans: Vec<(Graph, Precision, Plans)>,
    /// While graphs are gathered: those that no plans were built for.
    gathered: Option<Vec<(Graph, Precision)>>,
}

/// The engine's stream.
#[derive(Debug)]
struct Stream(CUstream);

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Known {
    fn plans(&self, graph: &Graph, precision: Precision) -> Option<&Plans> {
        self.plans.iter().find(|(g, p, _)| g == graph && *p == precision).map(|(.., plans)| plans)
    }
}

impl Vendor {
    /// Opens both libraries for a stream of the context that is bound to this thread. The stream must outlive the value.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] where one can't be loaded, [`EngineError::Failed`] as they report.
    pub(super) fn new(stream: CUstream) -> Result<Self, EngineError> {
        let (cudnn, cublaslt) = (Cudnn::new(stream)?, CublasLt::new()?);
        Ok(Self { cudnn, cublaslt, stream: Stream(stream), plans: Mutex::default(), matmuls: Mutex::default() })
    }

    /// Builds the plans of every graph that `ask` asks for at once, which takes a fraction of the time that one graph after
    /// the other takes. What `ask` is given meanwhile is empty.
    ///
    /// # Errors
    /// Those of `ask`, and [`EngineError::Failed`] as the library reports.
    pub(super) fn prepare(&self, ask: impl FnOnce() -> Result<(), EngineError>) -> Result<(), EngineError> {
        self.known().gathered = Some(Vec::new());
        let asked = ask();
        let gathered = self.known().gathered.take().unwrap_or_default();
        asked?;
        let Some(&(_, precision)) = gathered.first() else { return Ok(()) };
        assert!(gathered.iter().all(|(_, p)| *p == precision), "graphs of one plan");
        let graphs: Vec<_> = gathered.into_iter().map(|(graph, _)| graph).collect();
        self.build(&graphs, precision)
    }

    /// Whether graphs are only gathered, and every list of plans is empty meanwhile.
    pub(super) fn is_gathering(&self) -> bool {
        self.known().gathered.is_some()
    }

    /// Plans for a graph in the order of cuDNN's heuristics, built at the first call.
    ///
    /// # Errors
    /// [`EngineError::Failed`] as the library reports.
    pub(super) fn plans(&self, graph: &Graph, lowering: &Lowering) -> Result<Plans, EngineError> {
        let precision = lowering.precision();
        let mut known = self.known();
        if let Some(plans) = known.plans(graph, precision) {
            return Ok(plans.clone());
        }
        if let Some(gathered) = &mut known.gathered {
            if !gathered.contains(&(*graph, precision)) {
                gathered.push((*graph, precision));
            }
            return Ok(Vec::new());
        }
        drop(known);
        self.build(&[*graph], precision)?;
        Ok(self.known().plans(graph, precision).cloned().unwrap_or_default())
    }

    fn build(&self, graphs: &[Graph], precision: Precision) -> Result<(), EngineError> {
        let limits = Limits { workspace_bytes: WORKSPACE_BYTES, ..Limits::new(precision) };
        let plans = self.cudnn.plans(graphs, &limits)?;
        self.known().plans.extend(graphs.iter().zip(plans).map(|(graph, plans)| (*graph, precision, plans)));
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Algorithms for a product in the order of cuBLASLt's heuristic.
    ///
    /// # Errors
    /// [`EngineError::Failed`] as the library reports.
    pub(super) fn matmuls(&self, product: &Product) -> Result<Matmuls, EngineError> {
        let mut known = self.matmuls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, matmuls)) = known.iter().find(|(p, _)| p == product) {
            return Ok(matmuls.clone());
        }
        let matmuls: Matmuls = self.cublaslt.matmuls(product, WORKSPACE_BYTES)?.into_iter().map(Arc::new).collect();
        known.push((*product, matmuls.clone()));
        Ok(matmuls)
    }

    /// Puts a command of one of the libraries on the stream; kernels are another's.
    ///
    /// # Errors
    /// [`EngineError::Failed`] as the library reports.
    ///
    /// # Safety
    /// `address` must give device memory as large as the command's tensors, which stays until the stream, or a graph
    /// captured from it, is done.
    pub(super) unsafe fn enqueue(&self, command: &Command, address: impl Fn(Place) -> u64) -> Result<(), EngineError> {
        match command {
            Command::Cudnn { plan, tensors, workspace } => {
                let tensors: Vec<_> = tensors.iter().map(|&(id, place)| (id, address(place))).collect();
                // SAFETY: the caller vouches for the addresses.
                unsafe { plan.execute(&self.cudnn, &tensors, address(*workspace)) }
            }
            Command::Matmul { matmul, operands, workspace } => {
                let Operands { a, b, c, d, bias } = *operands;
                let operands =
                    Operands { a: address(a), b: address(b), c: address(c), d: address(d), bias: address(bias) };
                // SAFETY: the caller vouches for the addresses.
                unsafe { matmul.enqueue(&self.cublaslt, self.stream.0, operands, address(*workspace)) }
            }
            Command::Kernel(_) => unreachable!("a command of no library"),
        }
    }
}
