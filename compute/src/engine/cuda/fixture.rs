//! A device for the tests of single routines: memory, values of every element type, times.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, sys};
use half::{bf16, f16};

use super::tests;
use crate::engine::EngineError;
use crate::random;
use crate::shape::Element;

/// An open device and a stream on it.
pub(super) struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
}

/// Device memory.
pub(super) struct Memory {
    bytes: CudaSlice<u8>,
    pub(super) address: u64,
}

impl Gpu {
    /// The device that all tests run on, or none, as [`tests::engine`] says.
    pub(super) fn open() -> Option<Self> {
        let gpu = tests::engine()?.gpu;
        Some(Self { context: gpu.context, stream: gpu.stream })
    }

    pub(super) fn stream(&self) -> sys::CUstream {
        self.stream.cu_stream()
    }

    pub(super) fn upload(&self, bytes: &[u8]) -> Memory {
        let bytes = self.stream.clone_htod(bytes).expect("memory on the device");
        let address = bytes.device_ptr(&self.stream).0;
        Memory { bytes, address }
    }

    /// Memory whose every byte is 0xff: a NaN in every floating-point type.
    pub(super) fn poisoned(&self, n_bytes: u64) -> Memory {
        let memory = self.uninitialized(n_bytes);
        // SAFETY: the memory is as long as is written.
        unsafe { cudarc::driver::result::memset_d8_async(memory.address, 0xff, n_bytes as usize, self.stream()) }
            .expect("memory is filled");
        memory
    }

    pub(super) fn uninitialized(&self, n_bytes: u64) -> Memory {
        // SAFETY: bytes have no invalid values.
        let bytes = unsafe { self.stream.alloc::<u8>(n_bytes.max(16) as usize) }.expect("memory on the device");
        let address = bytes.device_ptr(&self.stream).0;
        Memory { bytes, address }
    }

    pub(super) fn download(&self, memory: &Memory) -> Vec<u8> {
        self.stream.clone_dtoh(&memory.bytes).expect("memory is read")
    }

    pub(super) fn wait(&self) -> Result<(), String> {
        self.stream.synchronize().map_err(|error| error.to_string())
    }

    /// Seconds of one execution: the best of three replays of a captured graph of ten.
    pub(super) fn time(&self, mut enqueue: impl FnMut() -> Result<(), EngineError>) -> Result<f64, String> {
        let text = |error: cudarc::driver::DriverError| error.to_string();
        enqueue().map_err(|error| error.to_string())?;
        self.wait()?;
        self.stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).map_err(text)?;
        let queued = (0..10).try_for_each(|_| enqueue());
        let graph = self.stream.end_capture(sys::CUgraphInstantiate_flags(0)).map_err(text)?;
        queued.map_err(|error| error.to_string())?;
        let graph = graph.ok_or("nothing was captured")?;
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let (start, end) = (self.context.new_event(flags).map_err(text)?, self.context.new_event(flags).map_err(text)?);
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            start.record(&self.stream).map_err(text)?;
            graph.launch().map_err(text)?;
            end.record(&self.stream).map_err(text)?;
            best = best.min(f64::from(start.elapsed_ms(&end).map_err(text)?) / 10_000.0);
        }
        Ok(best)
    }
}

/// Values in device format.
pub(super) fn encode(values: &[f32], element: Element) -> Vec<u8> {
    match element {
        Element::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect(),
        Element::Bf16 => values.iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

/// Values from device format.
pub(super) fn decode(bytes: &[u8], element: Element) -> Vec<f32> {
    let pairs = bytes.as_chunks::<2>().0.iter();
    match element {
        Element::F16 => pairs.map(|&bytes| f16::from_le_bytes(bytes).to_f32()).collect(),
        Element::Bf16 => pairs.map(|&bytes| bf16::from_le_bytes(bytes).to_f32()).collect(),
        _ => bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
    }
}

/// Normal values, rounded to an element type, the same for every call with the same name.
pub(super) fn random_values(name: &str, count: usize, element: Element) -> Vec<f32> {
    let stream = random::stream(7, name);
    let values: Vec<_> = (0..count as u64).map(|i| random::normal(stream, i)).collect();
    decode(&encode(&values, element), element)
}

/// Largest difference, as a share of the largest expected value.
pub(super) fn normalized_error(found: &[f32], expected: &[f64]) -> f64 {
    let largest = expected.iter().fold(1e-30_f64, |largest, value| largest.max(value.abs()));
    let differences = found.iter().zip(expected).map(|(found, expected)| (f64::from(*found) - expected).abs());
    // A NaN counts as the largest error there is.
    let error = differences.fold(0.0_f64, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) });
    assert_eq!(found.len(), expected.len(), "as many values as expected");
    error / largest
}
