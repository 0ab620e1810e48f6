//! Candidates of the vendor's libraries: plans of cuDNN for a step, and products of cuBLASLt where the step is one, with kernels of ours around them for what the libraries leave.

mod launches;
mod product;

use std::sync::Arc;

use self::product::Matrices;
use super::super::cublaslt::{Matmul, Matrix, Operands};
use super::super::cudnn::{Accumulation, Convolution, ExecutionPlan, Graph, Operation, Tensor, uid};
use super::super::device::CudaEngine;
use super::super::launch::{Candidate, Command, Launch, Lowering, Place};
use super::super::{batch_norm, gradient_finish};
use crate::engine::EngineError;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Forward, Window};
use crate::ops::{GradientEpilogue, View};
use crate::shape::Element;

/// What buffers' addresses and places in the workspace are multiples of.
const ALIGNMENT: u64 = 256;

/// Convolution, then residual, bias and ReLU; statistics behind it. Dropout is left to the caller.
///
/// # Errors
/// [`EngineError::Failed`] as the libraries report.
pub(super) fn forward(step: &Forward, lowering: &Lowering, engine: &CudaEngine) -> Result<Vec<Candidate>, EngineError> {
    let Some(vendor) = engine.gpu.vendor_for(lowering) else { return Ok(Vec::new()) };
    let convolution = convolution(&step.x, &step.y, step.window, lowering);
    let epilogue = &step.epilogue;
    let residual = epilogue.residual.as_ref();
    let operands = Prepared::new(step, lowering);
    let (x, y) = (lowering.view(&step.x), lowering.view(&step.y));
    let mut candidates = Vec::new();

    // Both libraries have their fast kernels for a bias in the type of the activations: with one in f32 cuDNN compiles
    // slower ones, cuBLASLt has none.
    let bias = epilogue.bias.map(|_| lowering.element());
    let summand = residual.map(|view| tensor(view, lowering));
    let graph = Graph { convolution, operation: Operation::Forward { bias, summand, relu: epilogue.relu } };
    let mut tensors = vec![(uid::X, x), (uid::W, operands.w), (uid::Y, y)];
    tensors.extend(bias.map(|_| (uid::BIAS, operands.bias)));
    tensors.extend(residual.map(|view| (uid::SUMMAND, lowering.view(view))));
    for plan in vendor.plans(&graph, lowering)? {
        let mut candidate = operands.candidate(&plan.name);
        push_plan(&mut candidate, plan, tensors.clone(), 0);
        candidates.push(candidate);
    }
    if let Some(matrices) = Matrices::new(&step.x, &step.y, step.window, lowering) {
        let summand = residual.map(|view| product::matrix(view, lowering));
        let product = matrices.forward(summand, bias.is_some(), epilogue.relu, lowering);
        let c = residual.map_or(Place::Null, |view| lowering.view(view));
        let places = Operands { a: x, b: operands.w, c, d: y, bias: operands.bias };
        for matmul in vendor.matmuls(&product)? {
            let mut candidate = operands.candidate(&matmul.name);
            push_matmul(&mut candidate, matmul, places, 0);
            candidates.push(candidate);
        }
    }
    if candidates.is_empty() && !vendor.is_gathering() {
        let sums = Convolution { y: convolution.y.packed(), ..convolution };
        let operation = Operation::Forward { bias: None, summand: None, relu: false };
        let acc = Place::Workspace { offset: 0 };
        for plan in vendor.plans(&Graph { convolution: sums, operation }, lowering)? {
            let mut candidate = named(format!("{} + conv2d_epilogue", plan.name));
            let tensors = vec![(uid::X, x), (uid::W, lowering.place(step.w)), (uid::Y, acc)];
            push_plan(&mut candidate, plan, tensors, sums.y.bytes().next_multiple_of(ALIGNMENT));
            candidate.commands.push(launches::epilogue(step, acc, lowering));
            candidates.push(candidate);
        }
    }
    if let Some(statistics) = &step.statistics {
        for candidate in &mut candidates {
            push(candidate, batch_norm::statistics(&step.y, statistics, 0, lowering), 0);
        }
    }
    Ok(candidates)
}

/// Backward data with as much of its epilogue as the libraries take.
///
/// # Errors
/// [`EngineError::Failed`] as the libraries report.
pub(super) fn backward_data(
    step: &BackwardData,
    lowering: &Lowering,
    engine: &CudaEngine,
) -> Result<Vec<Candidate>, EngineError> {
    let Some(vendor) = engine.gpu.vendor_for(lowering) else { return Ok(Vec::new()) };
    let epilogue = &step.epilogue;
    let mut ways = vec![(Accumulation::Replace, None, "")];
    if epilogue.accumulate {
        ways.push((Accumulation::Beta, None, " beta"));
    }
    // With a stride cuDNN fuses nothing.
    if let (Some(mask), 1) = (&epilogue.relu_mask, step.window.stride) {
        let accumulation = if epilogue.accumulate { Accumulation::Add } else { Accumulation::Replace };
        ways.push((accumulation, Some(mask), " fused"));
    }
    let mut candidates = Vec::new();
    for (accumulation, mask, name) in ways {
        let left = GradientEpilogue {
            scale: 1.0,
            accumulate: epilogue.accumulate && accumulation == Accumulation::Replace,
            relu_mask: epilogue.relu_mask.filter(|_| mask.is_none()),
            reductions: epilogue.reductions.clone(),
        };
        let mut convolution = convolution(&step.dx, &step.dy, step.window, lowering);
        let g = Gradient::new(&left, step, lowering);
        if g.bytes > 0 {
            convolution.x = convolution.x.packed();
        }
        let (w, dy) = (lowering.place(step.w), lowering.view(&step.dy));
        let mut tensors = vec![(uid::X, g.place), (uid::W, w), (uid::Y, dy)];
        tensors.extend((accumulation == Accumulation::Add).then_some((uid::SUMMAND, g.place)));
        tensors.extend(mask.map(|view| (uid::MASK, lowering.view(view))));
        let mask = mask.map(|view| tensor(view, lowering));
        let operation = Operation::BackwardData { scale: epilogue.scale, accumulation, mask };
        for plan in vendor.plans(&Graph { convolution, operation }, lowering)? {
            let mut candidate = named(format!("{}{name}", plan.name));
            push_plan(&mut candidate, plan, tensors.clone(), g.bytes);
            g.finish(&mut candidate, &left, step, lowering);
            candidates.push(candidate);
        }
        let matrices = Matrices::new(&step.dx, &step.dy, step.window, lowering).filter(|_| mask.is_none());
        let Some(mut matrices) = matrices else { continue };
        if g.bytes > 0 {
            matrices.x = Matrix { row: matrices.x.columns, alignment: ALIGNMENT as u32, ..matrices.x };
        }
        let is_added = accumulation == Accumulation::Beta;
        let c = if is_added { g.place } else { Place::Null };
        for matmul in vendor.matmuls(&matrices.backward_data(epilogue.scale, is_added, lowering))? {
            let mut candidate = named(format!("{}{name}", matmul.name));
            let places = Operands { a: dy, b: w, c, d: g.place, bias: Place::Null };
            push_matmul(&mut candidate, matmul, places, g.bytes);
            g.finish(&mut candidate, &left, step, lowering);
            candidates.push(candidate);
        }
    }
    Ok(candidates)
}

/// Backward weight, and the bias's gradient behind it.
///
/// # Errors
/// [`EngineError::Failed`] as the libraries report.
pub(super) fn backward_weight(
    step: &BackwardWeight,
    lowering: &Lowering,
    engine: &CudaEngine,
) -> Result<Vec<Candidate>, EngineError> {
    let Some(vendor) = engine.gpu.vendor_for(lowering) else { return Ok(Vec::new()) };
    let convolution = convolution(&step.x, &step.dy, step.window, lowering);
    let (x, dy) = (lowering.view(&step.x), lowering.view(&step.dy));
    let mut candidates = Vec::new();
    // From half precisions into f32 cuDNN has one plan, 25 times slower than those that round the sums (H200, cuDNN 9.14,
    // 2026-11-30). A kernel of ours widens these, and multiplies by the factor.
    let is_half = lowering.element() != Element::F32;
    let factor = if is_half { 1.0 } else { step.factor };
    let sums = if is_half { Place::Workspace { offset: 0 } } else { lowering.place(step.dw) };
    let bytes = if is_half { convolution.w.bytes().next_multiple_of(ALIGNMENT) } else { 0 };
    let graph = Graph { convolution, operation: Operation::BackwardWeight { factor } };
    // Sums rounded to f16 while they carry the loss scale could overflow.
    let plans = if lowering.element() == Element::F16 { Vec::new() } else { vendor.plans(&graph, lowering)? };
    for plan in plans {
        let mut candidate = named(plan.name.clone());
        push_plan(&mut candidate, plan, vec![(uid::X, x), (uid::W, sums), (uid::Y, dy)], bytes);
        if is_half {
            let vectors = (convolution.w.bytes() / 16) as u32;
            candidate.commands.push(launches::widen_filter(sums, step.dw, vectors, step.factor, lowering));
        }
        candidates.push(candidate);
    }
    if let Some(matrices) = Matrices::new(&step.x, &step.dy, step.window, lowering) {
        for matmul in vendor.matmuls(&matrices.backward_weight(step.factor, lowering))? {
            let mut candidate = named(matmul.name.clone());
            let places = Operands { a: dy, b: x, c: Place::Null, d: lowering.place(step.dw), bias: Place::Null };
            push_matmul(&mut candidate, matmul, places, 0);
            candidates.push(candidate);
        }
    }
    if let Some(dbias) = step.dbias {
        for candidate in &mut candidates {
            let sums = gradient_finish::bias_gradient(&step.dy, dbias, step.factor, 0, lowering);
            push(candidate, sums, 0);
        }
    }
    Ok(candidates)
}

/// Filter and bias of a forward step as the libraries take them, and how they are made.
struct Prepared {
    w: Place,
    bias: Place,
    commands: Vec<Command>,
    kept_bytes: u64,
    /// Whether the parameters change from one iteration to the next.
    is_training: bool,
}

impl Prepared {
    fn new(step: &Forward, lowering: &Lowering) -> Self {
        let mut prepared = Self {
            w: lowering.place(step.w),
            bias: lowering.optional(step.epilogue.bias),
            commands: Vec::new(),
            kept_bytes: 0,
            is_training: lowering.is_training(),
        };
        let vectors = |elements: u32| elements / lowering.vector() as u32;
        let (k, c) = (lowering.padded(step.y.shape.c), lowering.padded(step.x.shape.c));
        if let Some(scale) = step.epilogue.scale {
            let row = step.window.r as u32 * step.window.s as u32 * c;
            let w = prepared.keep(u64::from(k * row) * lowering.element().bytes() as u64);
            let sizes = [vectors(k * row), vectors(row)];
            prepared.commands.push(launches::scale_filter(prepared.w, scale, w, sizes, lowering));
            prepared.w = w;
        }
        if let (Some(id), true) = (step.epilogue.bias, lowering.element() != Element::F32) {
            prepared.bias = prepared.keep(u64::from(k) * lowering.element().bytes() as u64);
            prepared.commands.push(launches::cast_bias(id, prepared.bias, vectors(k), lowering));
        }
        prepared
    }

    fn keep(&mut self, bytes: u64) -> Place {
        let offset = self.kept_bytes;
        self.kept_bytes += bytes.next_multiple_of(ALIGNMENT);
        Place::Kept { offset }
    }

    /// A candidate that begins with what is prepared. Where that is done in every iteration it belongs to the commands,
    /// so that it counts when candidates are timed.
    fn candidate(&self, name: &str) -> Candidate {
        let mut candidate = Candidate { kept_bytes: self.kept_bytes, ..named(name.to_owned()) };
        let commands = if self.is_training { &mut candidate.commands } else { &mut candidate.prepare };
        commands.clone_from(&self.commands);
        candidate
    }
}

/// Where a library puts a new gradient: its destination, or the workspace while that still holds another.
struct Gradient {
    place: Place,
    row: u32,
    /// Bytes of the workspace that it takes.
    bytes: u64,
}

impl Gradient {
    fn new(left: &GradientEpilogue, step: &BackwardData, lowering: &Lowering) -> Self {
        if !left.accumulate {
            return Self { place: lowering.view(&step.dx), row: lowering.row(&step.dx), bytes: 0 };
        }
        let bytes = tensor(&step.dx, lowering).packed().bytes().next_multiple_of(ALIGNMENT);
        Self { place: Place::Workspace { offset: 0 }, row: lowering.padded(step.dx.shape.c), bytes }
    }

    /// Adds to a candidate what the library left to do.
    fn finish(&self, candidate: &mut Candidate, left: &GradientEpilogue, step: &BackwardData, lowering: &Lowering) {
        if left.accumulate || left.relu_mask.is_some() || left.reductions.len() > 1 {
            let free = self.bytes;
            let finish = gradient_finish::gradient_finish(self.place, self.row, &step.dx, left, free, lowering);
            push(candidate, finish, free);
        } else {
            // One batch norm's sums over a finished gradient need not write it again.
            batch_norm::add_reductions(candidate, &step.dx, &left.reductions, lowering);
        }
    }
}

fn convolution(x: &View, y: &View, window: Window, lowering: &Lowering) -> Convolution {
    let channels = |view: &View| lowering.padded(view.shape.c) as usize;
    Convolution {
        x: tensor(x, lowering),
        w: Tensor::filter([channels(y), channels(x), window.r, window.s], lowering.element()),
        y: tensor(y, lowering),
        stride: window.stride as i64,
        pad: window.pad as i64,
    }
}

fn tensor(view: &View, lowering: &Lowering) -> Tensor {
    let channels = lowering.padded(view.shape.c) as usize;
    let dims = [view.shape.n, channels, view.shape.h, view.shape.w];
    Tensor::activation(dims, lowering.row(view) as usize, lowering.element())
}

fn named(name: String) -> Candidate {
    Candidate { name, ..Candidate::default() }
}

/// Adds a plan whose workspace begins at `offset` of the candidate's.
fn push_plan(candidate: &mut Candidate, plan: Arc<ExecutionPlan>, tensors: Vec<(i64, Place)>, offset: u64) {
    candidate.workspace_bytes = candidate.workspace_bytes.max(offset + plan.workspace_bytes);
    candidate.commands.push(Command::Cudnn { plan, tensors, workspace: Place::Workspace { offset } });
}

/// Adds a product whose workspace begins at `offset` of the candidate's.
fn push_matmul(candidate: &mut Candidate, matmul: Arc<Matmul>, operands: Operands<Place>, offset: u64) {
    candidate.workspace_bytes = candidate.workspace_bytes.max(offset + matmul.workspace_bytes);
    candidate.commands.push(Command::Matmul { matmul, operands, workspace: Place::Workspace { offset } });
}

/// Adds a launch that needs some bytes of the workspace at `offset`.
fn push(candidate: &mut Candidate, (launch, bytes): (Launch, u64), offset: u64) {
    candidate.workspace_bytes = candidate.workspace_bytes.max(offset + bytes);
    candidate.commands.push(Command::Kernel(launch));
}
