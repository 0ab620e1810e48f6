//! Torch7: a device, then a block a network and library with one line a pass.

use super::{Draft, Entry, Fact, Phase, entry};
use crate::import::text::quoted;
use crate::import::{Fault, networks};

/// What a block's first line says.
struct Block {
    model: String,
    kernels: String,
    shape: Vec<usize>,
}

/// Whether a line opens a block.
pub(super) fn is_header(line: &str) -> bool {
    line.contains("ModelType:") && line.contains("Input shape:")
}

/// Reads every block.
pub(super) fn read(text: &str, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let mut device = None;
    let mut block: Option<Block> = None;
    for (line, number) in text.lines().zip(1u64..) {
        if let Some((_, name)) = line.split_once("Running on device:") {
            device = Some(name.trim().to_owned());
        } else if is_header(line) {
            block = Some(header(line, number)?);
        } else if let Some(block) = &block
            && let Some((phase, ms)) = result(line, number)?
        {
            draft.add(of_block(block, phase, ms, device.as_deref(), draft));
        }
    }
    Ok(())
}

fn header(line: &str, number: u64) -> Result<Block, Fault> {
    let between = |after: &str, before: &str| {
        let rest = line.split_once(after).map_or("", |(_, rest)| rest);
        rest.split(before).next().unwrap_or_default().trim().to_owned()
    };
    let shape = between("Input shape:", "\t");
    let dimensions: Option<Vec<usize>> = shape.split('x').map(|dimension| dimension.trim().parse().ok()).collect();
    let dimensions = dimensions.filter(|dimensions| dimensions.len() == 4);
    let shape = dimensions.ok_or_else(|| {
        Fault::at(number, format!("the input shape is {}, expected one such as 128x3x224x224", quoted(&shape)))
    })?;
    Ok(Block { model: between("ModelType:", "Kernels:"), kernels: between("Kernels:", "Input shape:"), shape })
}

/// The pass and the milliseconds of a line. The gradients of inputs and parameters are parts of the backward pass.
fn result(line: &str, number: u64) -> Result<Option<(Phase, f64)>, Fault> {
    let phases = [(":Forward:", Phase::Forward), (":Backward:", Phase::Backward), (":TOTAL:", Phase::ForwardBackward)];
    for (mark, phase) in phases {
        if let Some((_, rest)) = line.split_once(mark) {
            let ms = rest.trim().parse().ok().filter(|ms: &f64| ms.is_finite());
            let fault = || Fault::at(number, format!("{} is no time in milliseconds", quoted(rest)));
            return Ok(Some((phase, ms.ok_or_else(fault)?)));
        }
    }
    Ok(None)
}

fn of_block(block: &Block, phase: Phase, ms: f64, device: Option<&str>, draft: &Draft<'_>) -> Entry {
    let mut entry = entry(&block.model, phase, ms, draft);
    let [minibatch, _, height, width] = block.shape[..] else { return entry };
    entry.network = networks::convnet_benchmarks(&block.model, Some((height, width)));
    entry.input = Some(format!("{height}x{width}"));
    entry.shown = format!("{} {height}x{width}", block.model);
    entry.minibatch = if minibatch > 0 { Fact::Stated(minibatch) } else { Fact::Unknown };
    entry.device = device.map_or(Fact::Unknown, |name| Fact::Stated(name.to_owned()));
    entry.engine = format!("Torch7 {}", block.kernels.replace("cudnn", "cuDNN"));
    entry
}
