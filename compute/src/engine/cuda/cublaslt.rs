//! cuBLASLt: products of row-major matrices with bias and ReLU behind them, every algorithm that its heuristic offers.
//!
//! Fully connected layers and 1x1 convolutions are such products. The library thinks in columns: a row-major product
//! `d = a · b` is handed to it as `dᵀ = bᵀ · aᵀ`, for which nothing has to be moved. Statuses are plain integers because
//! newer libraries return values that no enumeration of ours lists.

mod api;
#[cfg(test)]
mod tests;

use std::ffi::{c_int, c_void};
use std::ptr;

use cudarc::cublaslt::sys::{
    cublasComputeType_t as ComputeType, cublasLtEpilogue_t as Epilogue,
    cublasLtMatmulAlgoConfigAttributes_t as AlgorithmAttribute, cublasLtMatmulDescAttributes_t as Attribute,
    cublasLtMatmulPreferenceAttributes_t as Preference, cudaDataType_t as DataType,
};
use cudarc::driver::sys::CUstream;

use self::api::{Api, Heuristic, Kind, Object};
use crate::engine::EngineError;
use crate::shape::{Element, Precision};

/// cuBLASLt, opened for the context that is bound to the thread.
#[derive(Debug)]
pub(super) struct CublasLt {
    api: &'static Api,
    handle: Object,
}

/// A row-major matrix in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Matrix {
    /// Number of rows.
    pub(super) rows: u64,
    /// Number of columns.
    pub(super) columns: u64,
    /// Elements from one row to the next.
    pub(super) row: u64,
    /// Type of one element.
    pub(super) element: Element,
    /// Bytes that divide its address, a power of two: kernels are chosen by it.
    pub(super) alignment: u32,
}

/// `d = relu(alpha · op(a) · op(b) + c + bias)`, where `op` is the transpose if asked for and each part of the rest is
/// optional.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Product {
    /// Left operand, as stored.
    pub(super) a: Matrix,
    /// Whether its transpose is multiplied.
    pub(super) transpose_a: bool,
    /// Right operand, as stored.
    pub(super) b: Matrix,
    /// Whether its transpose is multiplied.
    pub(super) transpose_b: bool,
    /// Summand of the result's shape, which may lie where the result does.
    pub(super) c: Option<Matrix>,
    /// Result.
    pub(super) d: Matrix,
    /// Factor on the product.
    pub(super) alpha: f32,
    /// Type of a summand for each column.
    pub(super) bias: Option<Element>,
    /// Whether negative values become zero.
    pub(super) relu: bool,
    /// Arithmetic: f32 is never rounded to tf32 unless this says so.
    pub(super) precision: Precision,
}

/// Where the matrices of a product lie: device addresses, 0 for what it has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operands<T> {
    pub(super) a: T,
    pub(super) b: T,
    pub(super) c: T,
    pub(super) d: T,
    pub(super) bias: T,
}

/// A product with one algorithm, ready to be enqueued.
#[derive(Debug)]
pub(super) struct Matmul {
    /// Algorithm and settings, such as `"cublasLt 66 {tile=20, stages=36}"`.
    pub(super) name: String,
    /// By which the same algorithm is had again from the same version of the library.
    pub(super) algorithm: [u64; 8],
    /// Bytes of workspace that it needs.
    pub(super) workspace_bytes: u64,
    product: Product,
}

/// Most algorithms that are asked for.
const MOST_ALGORITHMS: usize = 32;

impl CublasLt {
    /// # Errors
    /// [`EngineError::NotSupported`] where the library can't be loaded, [`EngineError::Failed`] as it reports.
    pub(super) fn new() -> Result<Self, EngineError> {
        let api = Api::get()?;
        // SAFETY: the function writes one pointer.
        let handle = Object::new(api, Kind::Handle, |raw| unsafe { (api.create)(raw) })?;
        Ok(Self { api, handle })
    }

    /// Version as one number, such as 130100 for 13.1.0.
    pub(super) fn version(&self) -> u64 {
        // SAFETY: the function takes nothing and reads a constant.
        unsafe { (self.api.version)() as u64 }
    }

    /// Every algorithm that the heuristic offers for a product within the workspace, best guess first; none where the
    /// library declines.
    ///
    /// # Errors
    /// [`EngineError::Failed`] when the library fails otherwise than by declining.
    pub(super) fn matmuls(&self, product: &Product, workspace_bytes: u64) -> Result<Vec<Matmul>, EngineError> {
        let description = Description::new(self.api, product)?;
        let api = self.api;
        // SAFETY: the function writes one pointer.
        let preference = Object::new(api, Kind::Preference, |raw| unsafe { (api.create_preference)(raw) })?;
        let alignment = [product.b, product.a, product.c.unwrap_or(product.d), product.d].map(|matrix| matrix.alignment);
        let set = |attribute: Preference, value: &[u8]| {
            // SAFETY: the attribute has the size of the value, which the library copies.
            let status = unsafe {
                (api.set_preference)(preference.raw(), attribute as c_int, value.as_ptr().cast(), value.len())
            };
            api.check(&format!("{attribute:?}"), status)
        };
        set(Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes.to_ne_bytes())?;
        set(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment[0].to_ne_bytes())?;
        set(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment[1].to_ne_bytes())?;
        set(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment[2].to_ne_bytes())?;
        set(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment[3].to_ne_bytes())?;
        let (mut found, mut n_found) = ([Heuristic::default(); MOST_ALGORITHMS], 0);
        let [b, a, c, d] = &description.layouts;
        // SAFETY: every object is alive, and the library writes at most as many results as there is room for.
        let status = unsafe {
            (api.get_heuristic)(
                self.handle.raw(),
                description.operation.raw(),
                b.raw(),
                a.raw(),
                c.raw(),
                d.raw(),
                preference.raw(),
                MOST_ALGORITHMS as c_int,
                found.as_mut_ptr(),
                &raw mut n_found,
            )
        };
        // The library also declines a bias of another type than the result by calling it invalid.
        if [api::NOT_SUPPORTED, api::INVALID_VALUE].contains(&status) {
            return Ok(Vec::new());
        }
        api.check("cublasLtMatmulAlgoGetHeuristic", status)?;
        let usable = found[..(n_found.max(0) as usize).min(MOST_ALGORITHMS)]
            .iter()
            .filter(|heuristic| heuristic.state == 0 && heuristic.workspace_bytes as u64 <= workspace_bytes);
        Ok(usable.map(|found| self.matmul(product, found.algorithm, found.workspace_bytes as u64)).collect())
    }

    /// The product with an algorithm known from before.
    pub(super) fn matmul(&self, product: &Product, algorithm: [u64; 8], workspace_bytes: u64) -> Matmul {
        Matmul { name: self.name(&algorithm), algorithm, workspace_bytes, product: *product }
    }

    fn name(&self, algorithm: &[u64; 8]) -> String {
        let setting = |attribute: AlgorithmAttribute, size: usize| {
            let mut value = [0_u8; 4];
            // SAFETY: the library writes no more than `size` bytes, and `value` has at least as many.
            let status = unsafe {
                let to = value.as_mut_ptr().cast();
                (self.api.get_setting)(algorithm.as_ptr(), attribute as c_int, to, size, ptr::null_mut())
            };
            // All ones say that the library decides at the launch.
            match u32::from_le_bytes(value) {
                value if status == 0 && value != u32::MAX => value,
                _ => 0,
            }
        };
        let settings = [
            ("tile", setting(AlgorithmAttribute::CUBLASLT_ALGO_CONFIG_TILE_ID, 4)),
            ("stages", setting(AlgorithmAttribute::CUBLASLT_ALGO_CONFIG_STAGES_ID, 4)),
            ("split_k", setting(AlgorithmAttribute::CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4)),
            ("reduction", setting(AlgorithmAttribute::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4)),
            ("swizzle", setting(AlgorithmAttribute::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4)),
            ("custom", setting(AlgorithmAttribute::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4)),
            ("cluster", setting(AlgorithmAttribute::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2)),
        ];
        let settings = settings.iter().filter(|(_, value)| *value != 0);
        let settings: Vec<_> = settings.map(|(name, value)| format!("{name}={value}")).collect();
        let id = setting(AlgorithmAttribute::CUBLASLT_ALGO_CONFIG_ID, 4);
        format!("cublasLt {id} {{{}}}", settings.join(", "))
    }
}

impl Matmul {
    /// Puts the product on a stream, also while that is captured.
    ///
    /// # Errors
    /// [`EngineError::Failed`] as the library reports.
    ///
    /// # Safety
    /// Every address must be that of device memory as large as its matrix and aligned as the product says, `workspace`
    /// that of [`Self::workspace_bytes`] bytes; they must stay so until the stream, or a graph captured from it, is done.
    pub(super) unsafe fn enqueue(
        &self,
        library: &CublasLt,
        stream: CUstream,
        operands: Operands<u64>,
        workspace: u64,
    ) -> Result<(), EngineError> {
        let api = library.api;
        let description = Description::new(api, &self.product)?;
        if self.product.bias.is_some() {
            description.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands.bias.to_ne_bytes())?;
        }
        let [b, a, c, d] = &description.layouts;
        let (summand, beta) = if self.product.c.is_some() { (operands.c, 1.0_f32) } else { (operands.d, 0.0) };
        // SAFETY: every object is alive, the factors are read before the function returns, and the caller vouches for the
        // addresses.
        let status = unsafe {
            (api.matmul)(
                library.handle.raw(),
                description.operation.raw(),
                (&raw const self.product.alpha).cast(),
                operands.b as *const c_void,
                b.raw(),
                operands.a as *const c_void,
                a.raw(),
                (&raw const beta).cast(),
                summand as *const c_void,
                c.raw(),
                operands.d as *mut c_void,
                d.raw(),
                self.algorithm.as_ptr(),
                workspace as *mut c_void,
                self.workspace_bytes as usize,
                stream.cast(),
            )
        };
        api.check(&self.name, status)
    }
}

/// A product in the library's terms.
struct Description {
    api: &'static Api,
    operation: Object,
    /// Of b, a, c and d.
    layouts: [Object; 4],
}

impl Description {
    fn new(api: &'static Api, product: &Product) -> Result<Self, EngineError> {
        let compute = match product.precision {
            Precision::Tf32 => ComputeType::CUBLAS_COMPUTE_32F_FAST_TF32,
            _ => ComputeType::CUBLAS_COMPUTE_32F,
        };
        // SAFETY: the function writes one pointer.
        let operation = Object::new(api, Kind::Operation, |raw| unsafe {
            (api.create_operation)(raw, compute as c_int, DataType::CUDA_R_32F as c_int)
        })?;
        let layout = |matrix: &Matrix| {
            let (rows, columns, row) = (matrix.columns, matrix.rows, matrix.row as i64);
            let kind = data_type(matrix.element) as c_int;
            // SAFETY: the function writes one pointer.
            Object::new(api, Kind::Layout, |raw| unsafe { (api.create_layout)(raw, kind, rows, columns, row) })
        };
        let c = product.c.unwrap_or(product.d);
        let layouts = [layout(&product.b)?, layout(&product.a)?, layout(&c)?, layout(&product.d)?];
        let description = Self { api, operation, layouts };
        // `CUBLAS_OP_N` is 0, `CUBLAS_OP_T` is 1.
        let transposition = |is_transposed| c_int::from(is_transposed).to_ne_bytes();
        description.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &transposition(product.transpose_b))?;
        description.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &transposition(product.transpose_a))?;
        let epilogue = match (product.bias.is_some(), product.relu) {
            (false, false) => Epilogue::CUBLASLT_EPILOGUE_DEFAULT,
            (false, true) => Epilogue::CUBLASLT_EPILOGUE_RELU,
            (true, false) => Epilogue::CUBLASLT_EPILOGUE_BIAS,
            (true, true) => Epilogue::CUBLASLT_EPILOGUE_RELU_BIAS,
        };
        description.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &(epilogue as u32).to_ne_bytes())?;
        if let Some(element) = product.bias {
            let kind = data_type(element) as c_int;
            description.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &kind.to_ne_bytes())?;
        }
        Ok(description)
    }

    fn set(&self, attribute: Attribute, value: &[u8]) -> Result<(), EngineError> {
        // SAFETY: the attribute has the size of the value, which the library copies.
        let status = unsafe {
            (self.api.set_operation)(self.operation.raw(), attribute as c_int, value.as_ptr().cast(), value.len())
        };
        self.api.check(&format!("{attribute:?}"), status)
    }
}

fn data_type(element: Element) -> DataType {
    match element {
        Element::F32 => DataType::CUDA_R_32F,
        Element::F16 => DataType::CUDA_R_16F,
        Element::Bf16 => DataType::CUDA_R_16BF,
        Element::U8 => DataType::CUDA_R_8U,
        Element::U32 => DataType::CUDA_R_32U,
    }
}
