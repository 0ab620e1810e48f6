//! Whether candidates agree: before one is timed, its results on made-up values are compared with those of the first,
//! which is a kernel of ours that tests compare with the reference. A library's mistake costs a candidate, never a result.

use super::error::driver_error;
use super::launch::{Candidate, Command, Kernel, Launch, Lowering, Place};
use super::memory::DeviceMemory;
use super::stream::{Addresses, Gpu};
use crate::engine::EngineError;
use crate::ops::BufferId;
use crate::shape::{Element, Precision};

/// Blocks of a launch.
const BLOCKS: u32 = 512;
const THREADS: u32 = 256;
/// Bytes of the sums that blocks leave.
const SUM_BYTES: u64 = 8 * BLOCKS as u64;

/// What a step reads and writes, for a comparison of its candidates.
pub(super) struct Step {
    /// Its name and its layer's, for people.
    pub(super) name: String,
    /// Every buffer of the step.
    pub(super) buffers: Vec<BufferId>,
    /// Those that it writes.
    pub(super) outputs: Vec<BufferId>,
}

/// The results of a step's first candidate, with which the others are compared.
pub(super) struct Expected<'a> {
    gpu: &'a Gpu,
    lowering: &'a Lowering<'a>,
    step: &'a Step,
    addresses: Addresses<'a>,
    results: DeviceMemory,
    sums: DeviceMemory,
}

/// Largest normalized error ‖a − b‖ / ‖b‖ between two ways to compute a step. They differ by the order of sums and by what
/// is rounded to storage on the way: filters scaled, or a bias, before the convolution.
pub(super) const fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 1e-4,
        Precision::Tf32 => 5e-3,
        Precision::F16 => 1e-2,
        Precision::Bf16 => 5e-2,
    }
}

impl<'a> Expected<'a> {
    /// Runs `candidate` and keeps what it writes.
    pub(super) fn of(
        candidate: &Candidate,
        step: &'a Step,
        gpu: &'a Gpu,
        lowering: &'a Lowering<'a>,
        addresses: Addresses<'a>,
    ) -> Result<Self, EngineError> {
        let bytes = step.outputs.iter().map(|&id| padded(id, lowering)).sum();
        let results = DeviceMemory::zeroed(&gpu.stream, bytes, "results to compare with")?;
        let sums = DeviceMemory::zeroed(&gpu.stream, SUM_BYTES, "distances")?;
        let expected = Self { gpu, lowering, step, addresses, results, sums };
        expected.compute(candidate)?;
        let mut to = expected.results.address();
        for &id in &step.outputs {
            let from = addresses.of(Place::Buffer { id, offset: 0 });
            // SAFETY: both ranges are as long as the buffer; freeing either waits for the copy.
            unsafe {
                cudarc::driver::result::memcpy_dtod_async(
                    to,
                    from,
                    lowering.layout(id).bytes() as usize,
                    gpu.stream.cu_stream(),
                )
            }
            .map_err(|error| driver_error("keeping results", error))?;
            to += padded(id, lowering);
        }
        gpu.wait()?;
        Ok(expected)
    }

    /// Largest normalized error of what `candidate` writes, infinite where something is not a number.
    pub(super) fn compare(&self, candidate: &Candidate) -> Result<f64, EngineError> {
        self.compute(candidate)?;
        let mut expected = self.results.address();
        let mut largest = 0.0_f64;
        for &id in &self.step.outputs {
            let entry = if self.is_f32(id) { "check_distance_f32" } else { "check_distance" };
            let found = self.addresses.of(Place::Buffer { id, offset: 0 });
            self.launch(entry, &[found, expected, self.sums.address()], self.elements(id), 0)?;
            self.gpu.wait()?;
            let mut bytes = vec![0; SUM_BYTES as usize];
            self.sums.read(0, &mut bytes, "distances")?;
            let sums: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes);
            let total = |part: usize| sums.iter().skip(part).step_by(2).map(|&sum| f64::from(sum)).sum::<f64>();
            let error = (total(0) / total(1).max(f64::MIN_POSITIVE)).sqrt();
            largest = if error.is_finite() { largest.max(error) } else { f64::INFINITY };
            expected += padded(id, self.lowering);
        }
        Ok(largest)
    }

    /// Fills the step's buffers, the same each time, and runs a candidate.
    fn compute(&self, candidate: &Candidate) -> Result<(), EngineError> {
        for (&id, seed) in self.step.buffers.iter().zip(1..) {
            let entry = match self.lowering.buffer(id).element {
                Element::U8 | Element::U32 => continue,
                _ if self.is_f32(id) => "check_fill_f32",
                _ => "check_fill",
            };
            let to = self.addresses.of(Place::Buffer { id, offset: 0 });
            self.launch(entry, &[to], self.elements(id), seed)?;
        }
        let kept = DeviceMemory::zeroed(&self.gpu.stream, candidate.kept_bytes, &candidate.name)?;
        let addresses = Addresses { kept: kept.address(), ..self.addresses };
        let enqueue = |command: &Command| self.gpu.enqueue(command, addresses, self.lowering.precision());
        candidate.prepare.iter().chain(&candidate.commands).try_for_each(enqueue)?;
        self.gpu.wait()
    }

    fn launch(&self, entry: &'static str, addresses: &[u64], elements: u64, seed: u32) -> Result<(), EngineError> {
        let launch = Launch {
            kernel: Kernel { file: "check", entry },
            pointers: addresses.iter().map(|&address| Place::Address(address)).collect(),
            parameters: vec![elements as u32, (elements >> 32) as u32, seed],
            grid: [BLOCKS, 1, 1],
            threads: THREADS,
            shared_bytes: 0,
        };
        self.gpu.enqueue(&Command::Kernel(launch), self.addresses, self.lowering.precision())
    }

    fn is_f32(&self, id: BufferId) -> bool {
        self.lowering.buffer(id).element == Element::F32
    }

    fn elements(&self, id: BufferId) -> u64 {
        self.lowering.layout(id).bytes() / self.lowering.buffer(id).element.bytes() as u64
    }
}

fn padded(id: BufferId, lowering: &Lowering) -> u64 {
    lowering.layout(id).bytes().next_multiple_of(256)
}
