//! Operation graphs: a convolution in one of its three directions and what is fused with it.
//!
//! cuDNN lists dimensions as `n, c, h, w` and `k, c, r, s`; that the channels lie innermost only the strides say.

use cudarc::cudnn::sys::{
    cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type, cudnnBackendDescriptorType_t as Kind,
    cudnnConvolutionMode_t as ConvolutionMode, cudnnGenStatsMode_t as StatisticsMode,
    cudnnPointwiseMode_t as PointwiseMode, cudnnReduceTensorOp_t as ReductionOperator,
};
use std::sync::Arc;

use super::Handle;
use super::api::Api;
use super::descriptor::{Descriptor, Value};
use crate::engine::EngineError;
use crate::shape::Element;

/// Numbers by which an execution is told where a graph's tensors lie.
pub(in crate::engine::cuda) mod uid {
    /// The convolution's input, or its gradient in backward data.
    pub(in crate::engine::cuda) const X: i64 = 1;
    /// The filter, or its gradient in backward weight.
    pub(in crate::engine::cuda) const W: i64 = 2;
    /// The convolution's output, or its gradient in both backward directions.
    pub(in crate::engine::cuda) const Y: i64 = 3;
    /// Bias of the output channels.
    pub(in crate::engine::cuda) const BIAS: i64 = 4;
    /// What is added before the bias; in backward data the gradient that is added to.
    pub(in crate::engine::cuda) const SUMMAND: i64 = 5;
    /// Rectified forward value that masks a gradient.
    pub(in crate::engine::cuda) const MASK: i64 = 6;
    /// Sum of each output channel.
    pub(in crate::engine::cuda) const SUM: i64 = 7;
    /// Sum of squares of each output channel.
    pub(in crate::engine::cuda) const SQUARES: i64 = 8;
    /// First number of the intermediates.
    pub(super) const VIRTUAL: i64 = 100;
}

/// A tensor in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine::cuda) struct Tensor {
    /// `n, c, h, w`, or `k, c, r, s` of a filter.
    pub(in crate::engine::cuda) dims: [i64; 4],
    /// Elements from one index to the next, in the order of `dims`.
    pub(in crate::engine::cuda) strides: [i64; 4],
    /// Type of one element.
    pub(in crate::engine::cuda) element: Element,
}

impl Tensor {
    /// An activation `[n, c, h, w]` whose positions are `row` elements apart.
    pub(in crate::engine::cuda) fn activation([n, c, h, w]: [usize; 4], row: usize, element: Element) -> Self {
        let strides = [h * w * row, 1, w * row, row].map(|stride| stride as i64);
        Self { dims: [n, c, h, w].map(|size| size as i64), strides, element }
    }

    /// A packed filter `[k, c, r, s]`, stored as `[k][r][s][c]`.
    pub(in crate::engine::cuda) fn filter(dims: [usize; 4], element: Element) -> Self {
        Self::activation(dims, dims[1], element)
    }

    /// One value a channel.
    pub(in crate::engine::cuda) fn vector(channels: i64, element: Element) -> Self {
        Self { dims: [1, channels, 1, 1], strides: [channels, 1, channels, channels], element }
    }

    /// Bytes from the first element to the last, gaps included.
    pub(in crate::engine::cuda) fn bytes(&self) -> u64 {
        let last: i64 = self.dims.iter().zip(self.strides).map(|(size, stride)| (size - 1) * stride).sum();
        (last + 1) as u64 * self.element.bytes() as u64
    }

    /// The same tensor without gaps.
    pub(in crate::engine::cuda) fn packed(&self) -> Self {
        let dims = self.dims.map(|size| size as usize);
        Self::activation(dims, dims[1], self.element)
    }
}

/// A convolution's tensors and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine::cuda) struct Convolution {
    /// Input `[n, c, h, w]` or its gradient.
    pub(in crate::engine::cuda) x: Tensor,
    /// Filter `[k, c, r, s]` or its gradient.
    pub(in crate::engine::cuda) w: Tensor,
    /// Output `[n, k, p, q]` or its gradient.
    pub(in crate::engine::cuda) y: Tensor,
    /// Step of the window in both directions.
    pub(in crate::engine::cuda) stride: i64,
    /// Zeros added on each side.
    pub(in crate::engine::cuda) pad: i64,
}

/// How a new gradient meets the one that its destination holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine::cuda) enum Accumulation {
    /// It replaces it.
    Replace,
    /// It is added by the convolution itself, whose β is one.
    Beta,
    /// It is added by an operation of its own, which reads it as [`uid::SUMMAND`]; the pointer may be that of the
    /// destination.
    Add,
}

/// Direction of a convolution and what is fused with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::engine::cuda) enum Operation {
    /// `y = relu(conv(x, w) + summand + bias)`, each part where present. In this order the library has engines that were
    /// compiled beforehand.
    Forward {
        /// Type of the bias.
        bias: Option<Element>,
        /// Summand of the output's shape.
        summand: Option<Tensor>,
        /// Whether negative values become zero.
        relu: bool,
    },
    /// `y = conv(x, w)`, with the sum and the sum of squares of each channel in f32; f16 only.
    ForwardStatistics,
    /// The same by reductions behind the convolution, for every type.
    ForwardReductions,
    /// `dx = scale · conv'(dy, w) (+ dx)`, zero where the mask is.
    BackwardData {
        /// Factor on the new gradient.
        scale: f32,
        /// What happens to the gradient that `dx` holds.
        accumulation: Accumulation,
        /// Rectified forward value.
        mask: Option<Tensor>,
    },
    /// `dw = factor · conv''(x, dy)`.
    BackwardWeight {
        /// The factor.
        factor: f32,
    },
}

/// What one plan computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::engine::cuda) struct Graph {
    /// Tensors and window.
    pub(in crate::engine::cuda) convolution: Convolution,
    /// Direction and what is fused.
    pub(in crate::engine::cuda) operation: Operation,
}

impl Graph {
    /// The graph as the library knows it.
    pub(super) fn build(&self, handle: &Handle) -> Result<Arc<Descriptor>, EngineError> {
        let mut builder = Builder { api: handle.api, n_virtual: 0, operations: Vec::new() };
        builder.add(self)?;
        let attributes = [
            (Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Value::Handle(handle.raw)),
            (Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, Value::Parts(&builder.operations)),
        ];
        Descriptor::new(handle.api, Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &attributes)
    }
}

type Part = Arc<Descriptor>;

/// Collects operations.
struct Builder {
    api: &'static Api,
    n_virtual: i64,
    operations: Vec<Part>,
}

impl Builder {
    fn add(&mut self, graph: &Graph) -> Result<(), EngineError> {
        let convolution = &graph.convolution;
        let (x, w, y) = (&convolution.x, &convolution.w, &convolution.y);
        match graph.operation {
            Operation::Forward { bias, summand, relu } => {
                let mut n_following = [bias.is_some(), summand.is_some(), relu].into_iter().filter(|&part| part).count();
                let (x, w) = (self.tensor(uid::X, x)?, self.tensor(uid::W, w)?);
                let mut last = self.stage(uid::Y, y, n_following)?;
                self.convolve(convolution, Direction::Forward, [&x, &w, &last], 1.0, 0.0)?;
                let bias = bias.map(|element| (uid::BIAS, Tensor::vector(y.dims[1], element)));
                for (id, operand) in summand.map(|tensor| (uid::SUMMAND, tensor)).into_iter().chain(bias) {
                    n_following -= 1;
                    let operand = self.tensor(id, &operand)?;
                    let next = self.stage(uid::Y, y, n_following)?;
                    self.pointwise(PointwiseMode::CUDNN_POINTWISE_ADD, &last, Some(&operand), &next)?;
                    last = next;
                }
                if relu {
                    let next = self.tensor(uid::Y, y)?;
                    self.pointwise(PointwiseMode::CUDNN_POINTWISE_RELU_FWD, &last, None, &next)?;
                }
                Ok(())
            }
            Operation::ForwardStatistics | Operation::ForwardReductions => {
                let parts = [self.tensor(uid::X, x)?, self.tensor(uid::W, w)?, self.tensor(uid::Y, y)?];
                self.convolve(convolution, Direction::Forward, [&parts[0], &parts[1], &parts[2]], 1.0, 0.0)?;
                let vector = Tensor::vector(y.dims[1], Element::F32);
                let sums = [self.tensor(uid::SUM, &vector)?, self.tensor(uid::SQUARES, &vector)?];
                if graph.operation == Operation::ForwardStatistics {
                    return self.statistics(&parts[2], &sums);
                }
                let squares = self.intermediate(y)?;
                self.reduce(&parts[2], &sums[0])?;
                self.pointwise(PointwiseMode::CUDNN_POINTWISE_MUL, &parts[2], Some(&parts[2]), &squares)?;
                self.reduce(&squares, &sums[1])
            }
            Operation::BackwardData { scale, accumulation, mask } => {
                let is_added = accumulation == Accumulation::Add;
                let mut n_following = usize::from(is_added) + usize::from(mask.is_some());
                let (dy, w) = (self.tensor(uid::Y, y)?, self.tensor(uid::W, w)?);
                let mut last = self.stage(uid::X, x, n_following)?;
                let beta = if accumulation == Accumulation::Beta { 1.0 } else { 0.0 };
                self.convolve(convolution, Direction::BackwardData, [&last, &w, &dy], scale, beta)?;
                if is_added {
                    n_following -= 1;
                    let held = self.tensor(uid::SUMMAND, x)?;
                    let next = self.stage(uid::X, x, n_following)?;
                    self.pointwise(PointwiseMode::CUDNN_POINTWISE_ADD, &last, Some(&held), &next)?;
                    last = next;
                }
                if let Some(mask) = mask {
                    let (mask, dx) = (self.tensor(uid::MASK, &mask)?, self.tensor(uid::X, x)?);
                    self.rectify_backward(&last, &mask, &dx)?;
                }
                Ok(())
            }
            Operation::BackwardWeight { factor } => {
                let parts = [self.tensor(uid::X, x)?, self.tensor(uid::W, w)?, self.tensor(uid::Y, y)?];
                let [x, dw, dy] = &parts;
                self.convolve(convolution, Direction::BackwardWeight, [x, dw, dy], factor, 0.0)
            }
        }
    }

    fn tensor(&self, id: i64, tensor: &Tensor) -> Result<Part, EngineError> {
        self.describe(id, tensor, false)
    }

    /// An f32 tensor of the same shape that is never stored.
    fn intermediate(&mut self, tensor: &Tensor) -> Result<Part, EngineError> {
        self.n_virtual += 1;
        self.describe(uid::VIRTUAL + self.n_virtual, &Tensor { element: Element::F32, ..tensor.packed() }, true)
    }

    /// Output of an operation with `n_following` others behind it: the tensor itself behind the last.
    fn stage(&mut self, id: i64, tensor: &Tensor, n_following: usize) -> Result<Part, EngineError> {
        if n_following == 0 { self.tensor(id, tensor) } else { self.intermediate(tensor) }
    }

    fn describe(&self, id: i64, tensor: &Tensor, is_virtual: bool) -> Result<Part, EngineError> {
        let attributes = [
            (Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Value::Element(tensor.element)),
            (Name::CUDNN_ATTR_TENSOR_DIMENSIONS, Value::Integers(&tensor.dims)),
            (Name::CUDNN_ATTR_TENSOR_STRIDES, Value::Integers(&tensor.strides)),
            (Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, Value::Integers(&[id])),
            (Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Value::Integers(&[16])),
            (Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL, Value::Bool(is_virtual)),
        ];
        Descriptor::new(self.api, Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR, &attributes)
    }

    fn convolve(
        &mut self,
        convolution: &Convolution,
        direction: Direction,
        [x, w, y]: [&Part; 3],
        alpha: f32,
        beta: f32,
    ) -> Result<(), EngineError> {
        let mode = ConvolutionMode::CUDNN_CROSS_CORRELATION as i32;
        let (pad, stride) = ([convolution.pad; 2], [convolution.stride; 2]);
        let window = Descriptor::new(self.api, Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Value::Element(Element::F32)),
            (Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Value::Mode(Type::CUDNN_TYPE_CONVOLUTION_MODE, mode)),
            (Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, Value::Integers(&[2])),
            (Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Value::Integers(&pad)),
            (Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Value::Integers(&pad)),
            (Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, Value::Integers(&[1, 1])),
            (Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Value::Integers(&stride)),
        ])?;
        let (kind, names) = direction.names();
        let parts = [x, w, y, &window].map(|part| [Arc::clone(part)]);
        let mut attributes: Vec<_> = names.iter().zip(&parts).map(|(&name, part)| (name, Value::Parts(part))).collect();
        attributes.extend([(names[4], Value::Float(alpha)), (names[5], Value::Float(beta))]);
        self.push(kind, &attributes)
    }

    fn pointwise(&mut self, mode: PointwiseMode, x: &Part, b: Option<&Part>, y: &Part) -> Result<(), EngineError> {
        let function = self.function(mode)?;
        let parts = [[function], [Arc::clone(x)], [Arc::clone(y)]];
        let mut attributes = vec![
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, Value::Parts(&parts[0])),
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Value::Parts(&parts[1])),
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC, Value::Parts(&parts[2])),
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, Value::Float(1.0)),
        ];
        let b = b.map(|part| [Arc::clone(part)]);
        if let Some(b) = &b {
            attributes.push((Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC, Value::Parts(b)));
            attributes.push((Name::CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, Value::Float(1.0)));
        }
        self.push(Kind::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, &attributes)
    }

    fn rectify_backward(&mut self, dy: &Part, x: &Part, dx: &Part) -> Result<(), EngineError> {
        let function = self.function(PointwiseMode::CUDNN_POINTWISE_RELU_BWD)?;
        let parts = [[function], [Arc::clone(dy)], [Arc::clone(x)], [Arc::clone(dx)]];
        self.push(Kind::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, Value::Parts(&parts[0])),
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, Value::Parts(&parts[1])),
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Value::Parts(&parts[2])),
            (Name::CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, Value::Parts(&parts[3])),
        ])
    }

    fn function(&self, mode: PointwiseMode) -> Result<Part, EngineError> {
        Descriptor::new(self.api, Kind::CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_POINTWISE_MODE, Value::Mode(Type::CUDNN_TYPE_POINTWISE_MODE, mode as i32)),
            (Name::CUDNN_ATTR_POINTWISE_MATH_PREC, Value::Element(Element::F32)),
        ])
    }

    fn statistics(&mut self, y: &Part, [sum, squares]: &[Part; 2]) -> Result<(), EngineError> {
        let mode = StatisticsMode::CUDNN_GENSTATS_SUM_SQSUM as i32;
        let parts = [[Arc::clone(y)], [Arc::clone(sum)], [Arc::clone(squares)]];
        self.push(Kind::CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_OPERATION_GENSTATS_MODE, Value::Mode(Type::CUDNN_TYPE_GENSTATS_MODE, mode)),
            (Name::CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, Value::Element(Element::F32)),
            (Name::CUDNN_ATTR_OPERATION_GENSTATS_XDESC, Value::Parts(&parts[0])),
            (Name::CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, Value::Parts(&parts[1])),
            (Name::CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, Value::Parts(&parts[2])),
        ])
    }

    fn reduce(&mut self, x: &Part, y: &Part) -> Result<(), EngineError> {
        let operator = ReductionOperator::CUDNN_REDUCE_TENSOR_ADD as i32;
        let reduction = Descriptor::new(self.api, Kind::CUDNN_BACKEND_REDUCTION_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_REDUCTION_OPERATOR, Value::Mode(Type::CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, operator)),
            (Name::CUDNN_ATTR_REDUCTION_COMP_TYPE, Value::Element(Element::F32)),
        ])?;
        let parts = [[reduction], [Arc::clone(x)], [Arc::clone(y)]];
        self.push(Kind::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, &[
            (Name::CUDNN_ATTR_OPERATION_REDUCTION_DESC, Value::Parts(&parts[0])),
            (Name::CUDNN_ATTR_OPERATION_REDUCTION_XDESC, Value::Parts(&parts[1])),
            (Name::CUDNN_ATTR_OPERATION_REDUCTION_YDESC, Value::Parts(&parts[2])),
        ])
    }

    fn push(&mut self, kind: Kind, attributes: &[(Name, Value<'_>)]) -> Result<(), EngineError> {
        self.operations.push(Descriptor::new(self.api, kind, attributes)?);
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    BackwardData,
    BackwardWeight,
}

impl Direction {
    /// The operation, and its attributes: x, w, y, the window, α, β.
    fn names(self) -> (Kind, [Name; 6]) {
        match self {
            Self::Forward => (Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            ]),
            Self::BackwardData => (Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            ]),
            Self::BackwardWeight => (Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            ]),
        }
    }
}
