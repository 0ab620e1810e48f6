//! Candidates of the vendor's libraries: every plan of cuDNN for a step, and every product of cuBLASLt where the step is
//! one, with kernels of ours around them for what the libraries leave.

use super::super::cublaslt::{Matrix, Operands, Product};
use super::super::cudnn::{Accumulation, Convolution, ExecutionPlan, Graph, Operation, Tensor, uid};
use super::super::launch::{Candidate, Command, Lowering, Place};
use super::super::vendor::Vendor;
use super::following::{self, Following};
use crate::engine::EngineError;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Forward, Window};
use crate::ops::{BufferId, GradientEpilogue, View};
use crate::shape::Element;
use std::sync::Arc;

/// What buffers' addresses and places in the workspace are multiples of.
const ALIGNMENT: u64 = 256;

/// Convolution, then residual, bias and ReLU; statistics behind it. Dropout is left to the caller.
///
/// # Errors
/// [`EngineError::Failed`] as the libraries report.
pub(super) fn forward(step: &Forward, lowering: &Lowering, vendor: &Vendor) -> Result<Vec<Candidate>, EngineError> {
    let convolution = convolution(&step.x, &step.y, step.window, lowering);
    let epilogue = &step.epilogue;
    let mut candidates = Vec::new();
    // Both libraries have their best kernels for a bias in the type of the activations: with one in f32 cuDNN compiles
    // slower ones, cuBLASLt has none.
    let bias = epilogue.bias.map(|_| lowering.element());
    let summand = epilogue.residual.as_ref().map(|view| tensor(view, lowering));
    let graph = Graph { convolution, operation: Operation::Forward { bias, summand, relu: epilogue.relu } };
    let operands = Prepared::new(step, lowering);
    let mut tensors = vec![(uid::X, lowering.view(&step.x)), (uid::W, operands.w), (uid::Y, lowering.view(&step.y))];
    tensors.extend(bias.map(|_| (uid::BIAS, operands.bias)));
    tensors.extend(epilogue.residual.as_ref().map(|view| (uid::SUMMAND, lowering.view(view))));
    for plan in vendor.plans(&graph, lowering.precision())? {
        let mut candidate = operands.candidate(plan.name.clone());
        push_plan(&mut candidate, plan, tensors.clone(), 0);
        candidates.push(candidate);
    }
    candidates.extend(products(step, bias, &operands, lowering, vendor)?);
    // Where the epilogue can't be fused, as behind an output that is a slice.
    if candidates.is_empty() {
        let sums = Convolution { y: convolution.y.packed(), ..convolution };
        let operation = Operation::Forward { bias: None, summand: None, relu: false };
        let graph = Graph { convolution: sums, operation };
        let acc = Place::Workspace { offset: 0 };
        let tensors = [(uid::X, lowering.view(&step.x)), (uid::W, lowering.place(step.w)), (uid::Y, acc)];
        for plan in vendor.plans(&graph, lowering.precision())? {
            let mut candidate = Candidate { name: format!("{} + conv2d_epilogue", plan.name), ..Candidate::default() };
            push_plan(&mut candidate, plan, tensors.to_vec(), sums.y.bytes().next_multiple_of(ALIGNMENT));
            candidate.commands.push(following::epilogue(step, acc, lowering));
            candidates.push(candidate);
        }
    }
    if let Some(statistics) = &step.statistics {
        for candidate in &mut candidates {
            push(candidate, following::statistics(&step.y, statistics, lowering));
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
    vendor: &Vendor,
) -> Result<Vec<Candidate>, EngineError> {
    let mut candidates = Vec::new();
    let fused = |accumulation, has_mask: bool| {
        let mask = step.epilogue.relu_mask.as_ref().filter(|_| has_mask);
        Operation::BackwardData {
            scale: step.epilogue.scale,
            accumulation,
            mask: mask.map(|view| tensor(view, lowering)),
        }
    };
    let mut ways = vec![(fused(Accumulation::Replace, false), "")];
    if step.epilogue.accumulate {
        ways.push((fused(Accumulation::Beta, false), " beta"));
    }
    // With a stride there is no fusion.
    if step.epilogue.relu_mask.is_some() && step.window.stride == 1 {
        let accumulation = if step.epilogue.accumulate { Accumulation::Add } else { Accumulation::Replace };
        ways.push((fused(accumulation, true), " fused"));
    }
    for (operation, name) in ways {
        let Operation::BackwardData { accumulation, mask, .. } = operation else { continue };
        let left = GradientEpilogue {
            scale: 1.0,
            accumulate: step.epilogue.accumulate && accumulation == Accumulation::Replace,
            relu_mask: step.epilogue.relu_mask.filter(|_| mask.is_none()),
            reductions: step.epilogue.reductions.clone(),
        };
        let mut convolution = convolution(&step.dx, &step.dy, step.window, lowering);
        let g = Gradient::new(&left, step, lowering);
        if g.bytes > 0 {
            convolution.x = convolution.x.packed();
        }
        let mut tensors = vec![(uid::X, g.place), (uid::W, lowering.place(step.w)), (uid::Y, lowering.view(&step.dy))];
        tensors.extend((accumulation == Accumulation::Add).then_some((uid::SUMMAND, g.place)));
        let mask = step.epilogue.relu_mask.as_ref().filter(|_| mask.is_some());
        tensors.extend(mask.map(|view| (uid::MASK, lowering.view(view))));
        for plan in vendor.plans(&Graph { convolution, operation }, lowering.precision())? {
            let mut candidate = Candidate { name: format!("{}{name}", plan.name), ..Candidate::default() };
            push_plan(&mut candidate, plan, tensors.clone(), g.bytes);
            candidates.push(g.finish(candidate, &left, step, lowering));
        }
        if name != " fused" {
            candidates.extend(gradient_products(step, &left, &g, accumulation, lowering, vendor)?);
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
    vendor: &Vendor,
) -> Result<Vec<Candidate>, EngineError> {
    let convolution = convolution(&step.x, &step.dy, step.window, lowering);
    let (x, dy) = (lowering.view(&step.x), lowering.view(&step.dy));
    let mut candidates = Vec::new();
    // Into f32 from half precisions cuDNN has one plan, some 25 times slower than those that round the sums, which are
    // then widened, and multiplied by the factor, by a kernel of ours.
    let is_half = lowering.element() != Element::F32;
    let factor = if is_half { 1.0 } else { step.factor };
    let sums = if is_half { Place::Workspace { offset: 0 } } else { lowering.place(step.dw) };
    let bytes = if is_half { convolution.w.bytes().next_multiple_of(ALIGNMENT) } else { 0 };
    let graph = Graph { convolution, operation: Operation::BackwardWeight { factor } };
    for plan in vendor.plans(&graph, lowering.precision())? {
        let mut candidate = Candidate { name: plan.name.clone(), ..Candidate::default() };
        push_plan(&mut candidate, plan, vec![(uid::X, x), (uid::W, sums), (uid::Y, dy)], bytes);
        if is_half {
            let vectors = (convolution.w.bytes() / 16) as u32;
            candidate.commands.push(following::widen_filter(sums, step.dw, vectors, step.factor, lowering));
        }
        candidates.push(candidate);
    }
    if let Some(matrices) = Matrices::new(&step.x, &step.dy, step.window, lowering) {
        let dw = Matrix { element: Element::F32, ..matrices.w };
        let product = Product {
            transpose_a: true,
            transpose_b: false,
            alpha: step.factor,
            ..matrices.product(matrices.y, matrices.x, dw, lowering)
        };
        let operands =
            Operands { a: dy, b: x, c: Place::Null, d: lowering.place(step.dw), bias: Place::Null };
        for matmul in vendor.matmuls(&product)? {
            let mut candidate = Candidate { name: matmul.name.clone(), ..Candidate::default() };
            push_matmul(&mut candidate, matmul, operands, 0);
            candidates.push(candidate);
        }
    }
    if let Some(dbias) = step.dbias {
        for candidate in &mut candidates {
            push(candidate, following::bias_gradient(&step.dy, dbias, step.factor, lowering));
        }
    }
    Ok(candidates)
}

/// Filter and bias of a forward step as a library takes them, and how they are made.
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
            prepared.commands.push(following::scale_filter(prepared.w, scale, w, sizes, lowering));
            prepared.w = w;
        }
        if let (Some(id), true) = (step.epilogue.bias, lowering.element() != Element::F32) {
            prepared.bias = prepared.keep(u64::from(k) * lowering.element().bytes() as u64);
            prepared.commands.push(following::cast_bias(id, prepared.bias, vectors(k), lowering));
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
    fn candidate(&self, name: String) -> Candidate {
        let (prepare, commands) =
            if self.is_training { (Vec::new(), self.commands.clone()) } else { (self.commands.clone(), Vec::new()) };
        Candidate { name, prepare, commands, kept_bytes: self.kept_bytes, workspace_bytes: 0 }
    }
}

/// Where a library puts a new gradient: its destination, or the workspace where that still holds another.
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

    /// Adds to a candidate what is left to do.
    fn finish(
        &self,
        mut candidate: Candidate,
        left: &GradientEpilogue,
        step: &BackwardData,
        lowering: &Lowering,
    ) -> Candidate {
        let g = (self.place, self.row);
        if let Some(following) = following::finish(left, g, &step.dx, self.bytes, lowering) {
            push(&mut candidate, following);
        }
        candidate
    }
}

/// Forward steps that are products of matrices.
fn products(
    step: &Forward,
    bias: Option<Element>,
    operands: &Prepared,
    lowering: &Lowering,
    vendor: &Vendor,
) -> Result<Vec<Candidate>, EngineError> {
    let Some(matrices) = Matrices::new(&step.x, &step.y, step.window, lowering) else { return Ok(Vec::new()) };
    let residual = step.epilogue.residual.as_ref();
    let product = Product {
        transpose_b: true,
        c: residual.map(|view| matrix(view, matrices.y.columns, lowering)),
        bias,
        relu: step.epilogue.relu,
        ..matrices.product(matrices.x, matrices.w, matrices.y, lowering)
    };
    let places = Operands {
        a: lowering.view(&step.x),
        b: operands.w,
        c: residual.map_or(Place::Null, |view| lowering.view(view)),
        d: lowering.view(&step.y),
        bias: operands.bias,
    };
    let matmuls = vendor.matmuls(&product)?.into_iter();
    Ok(matmuls
        .map(|matmul| {
            let mut candidate = operands.candidate(matmul.name.clone());
            push_matmul(&mut candidate, matmul, places, 0);
            candidate
        })
        .collect())
}

/// Backward data steps that are products of matrices.
fn gradient_products(
    step: &BackwardData,
    left: &GradientEpilogue,
    g: &Gradient,
    accumulation: Accumulation,
    lowering: &Lowering,
    vendor: &Vendor,
) -> Result<Vec<Candidate>, EngineError> {
    let Some(matrices) = Matrices::new(&step.dx, &step.dy, step.window, lowering) else { return Ok(Vec::new()) };
    let mut dx = matrices.x;
    if g.bytes > 0 {
        dx = Matrix { row: dx.columns, alignment: ALIGNMENT as u32, ..dx };
    }
    let product = Product {
        alpha: step.epilogue.scale,
        c: (accumulation == Accumulation::Beta).then_some(dx),
        ..matrices.product(matrices.y, matrices.w, dx, lowering)
    };
    let places = Operands {
        a: lowering.view(&step.dy),
        b: lowering.place(step.w),
        c: if product.c.is_some() { g.place } else { Place::Null },
        d: g.place,
        bias: Place::Null,
    };
    let name = if product.c.is_some() { " beta" } else { "" };
    let matmuls = vendor.matmuls(&product)?.into_iter();
    Ok(matmuls
        .map(|matmul| {
            let mut candidate = Candidate { name: format!("{}{name}", matmul.name), ..Candidate::default() };
            push_matmul(&mut candidate, matmul, places, g.bytes);
            g.finish(candidate, left, step, lowering)
        })
        .collect())
}

/// A convolution as a product: positions by channels.
struct Matrices {
    x: Matrix,
    w: Matrix,
    y: Matrix,
}

impl Matrices {
    /// None where a window covers several positions of several outputs.
    fn new(x: &View, y: &View, window: Window, lowering: &Lowering) -> Option<Self> {
        let Window { r, s, stride, pad } = window;
        let is_pointwise = (r, s, stride, pad) == (1, 1, 1, 0);
        let is_packed = lowering.row(x) == lowering.padded(x.shape.c);
        let is_whole_map = (r, s, pad) == (x.shape.h, x.shape.w, 0) && is_packed;
        if !is_pointwise && !is_whole_map {
            return None;
        }
        let inputs = u64::from(lowering.padded(x.shape.c)) * (r * s) as u64;
        let outputs = u64::from(lowering.padded(y.shape.c));
        let element = lowering.element();
        let w = Matrix { rows: outputs, columns: inputs, row: inputs, element, alignment: ALIGNMENT as u32 };
        let mut x = Matrix { columns: inputs, ..matrix(x, inputs, lowering) };
        if !is_pointwise {
            x = Matrix { rows: y.shape.n as u64, row: inputs, ..x };
        }
        Some(Self { x, w, y: matrix(y, outputs, lowering) })
    }

    /// `d = a · b`.
    fn product(&self, a: Matrix, b: Matrix, d: Matrix, lowering: &Lowering) -> Product {
        Product {
            a,
            transpose_a: false,
            b,
            transpose_b: false,
            c: None,
            d,
            alpha: 1.0,
            bias: None,
            relu: false,
            precision: lowering.precision(),
        }
    }
}

fn matrix(view: &View, columns: u64, lowering: &Lowering) -> Matrix {
    let offset = (view.channel_offset * lowering.element().bytes()) as u64 | ALIGNMENT;
    Matrix {
        rows: view.shape.positions() as u64,
        columns,
        row: u64::from(lowering.row(view)),
        element: lowering.element(),
        alignment: 1 << offset.trailing_zeros(),
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

/// Adds a plan whose workspace begins at `offset` of the candidate's.
fn push_plan(candidate: &mut Candidate, plan: Arc<ExecutionPlan>, tensors: Vec<(i64, Place)>, offset: u64) {
    candidate.workspace_bytes = candidate.workspace_bytes.max(offset + plan.workspace_bytes);
    candidate.commands.push(Command::Cudnn { plan, tensors, workspace: Place::Workspace { offset } });
}

fn push_matmul(
    candidate: &mut Candidate,
    matmul: Arc<super::super::cublaslt::Matmul>,
    operands: Operands<Place>,
    offset: u64,
) {
    candidate.workspace_bytes = candidate.workspace_bytes.max(offset + matmul.workspace_bytes);
    candidate.commands.push(Command::Matmul { matmul, operands, workspace: Place::Workspace { offset } });
}

fn push(candidate: &mut Candidate, following: Following) {
    candidate.workspace_bytes = candidate.workspace_bytes.max(following.workspace_bytes);
    candidate.commands.push(following.command);
}
