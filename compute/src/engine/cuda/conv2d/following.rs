//! Launches of kernels around a library's convolution: for what it could not take up.

use super::super::launch::{Command, Kernel, Launch, Lowering, Place};
use crate::ops::conv2d::Forward;
use crate::ops::{BufferId, GradientEpilogue, View, batch_norm};

/// Part of an activation for each thread, see `shaders/columns.cu`.
struct Tiling {
    /// The kernel's `Extent`.
    extent: [u32; 4],
    grid: [u32; 3],
    threads: u32,
}

impl Tiling {
    fn new(view: &View, lowering: &Lowering) -> (u32, u32, u32) {
        let channels = lowering.padded(view.shape.c);
        (view.shape.positions() as u32, channels, channels / lowering.vector() as u32)
    }

    /// For kernels that go over an activation element by element: a few vectors a thread.
    fn elementwise(view: &View, lowering: &Lowering) -> Self {
        const MOST_COLUMNS: u32 = 64;
        const MOST_VECTORS: u32 = 8;
        const BLOCKS: u32 = 4;
        let (positions, channels, vectors) = Self::new(view, lowering);
        let columns = vectors.div_ceil(vectors.div_ceil(MOST_COLUMNS));
        let (tiles, rows) = (vectors.div_ceil(columns), (256 / columns).max(1));
        let wanted = positions.div_ceil((lowering.facts.multiprocessors * BLOCKS / tiles).max(1));
        let chunk = rows * wanted.div_ceil(rows).clamp(1, MOST_VECTORS);
        let grid = [positions.div_ceil(chunk), tiles, 1];
        Self { extent: [positions, channels, chunk, columns], grid, threads: columns * rows }
    }

    /// For kernels that sum over positions: two blocks a multiprocessor.
    fn sums(view: &View, lowering: &Lowering) -> Self {
        const MOST_COLUMNS: u32 = 8;
        const THREADS: u32 = 256;
        const BLOCKS: u32 = 2;
        let (positions, channels, vectors) = Self::new(view, lowering);
        let columns = vectors.next_power_of_two().min(MOST_COLUMNS);
        let tiles = vectors.div_ceil(columns);
        let chunks = (lowering.facts.multiprocessors * BLOCKS / tiles).max(1);
        let chunk = positions.div_ceil(chunks).max(THREADS / columns);
        let grid = [positions.div_ceil(chunk), tiles, 1];
        Self { extent: [positions, channels, chunk, columns], grid, threads: THREADS }
    }

    /// Bytes that `quantities` sums of every chunk take.
    fn partial_bytes(&self, quantities: u64) -> u64 {
        u64::from(self.grid[0]) * u64::from(self.extent[1]) * quantities * 4
    }

    fn launch(self, file: &'static str, entry: &'static str, pointers: Vec<Place>, parameters: &[u32]) -> Command {
        Command::Kernel(Launch {
            kernel: Kernel { file, entry },
            pointers,
            parameters: self.extent.iter().chain(parameters).copied().collect(),
            grid: self.grid,
            threads: self.threads,
            shared_bytes: 0,
        })
    }
}

/// A command and the bytes that it uses from the start of the workspace.
pub(super) struct Following {
    pub(super) command: Command,
    pub(super) workspace_bytes: u64,
}

/// `y = relu(scale · acc + bias + residual)` of packed sums.
pub(super) fn epilogue(step: &Forward, acc: Place, lowering: &Lowering) -> Command {
    let epilogue = &step.epilogue;
    let residual = epilogue.residual.as_ref();
    let pointers = vec![
        acc,
        lowering.optional(epilogue.scale),
        lowering.optional(epilogue.bias),
        residual.map_or(Place::Null, |view| lowering.view(view)),
        lowering.view(&step.y),
    ];
    let rows = [residual.map_or(0, |view| lowering.row(view)), lowering.row(&step.y), u32::from(epilogue.relu)];
    Tiling::elementwise(&step.y, lowering).launch("conv2d_epilogue", "conv2d_epilogue", pointers, &rows)
}

/// Mean and reciprocal standard deviation of each channel.
pub(super) fn statistics(y: &View, statistics: &batch_norm::Statistics, lowering: &Lowering) -> Following {
    let tiling = Tiling::sums(y, lowering);
    let workspace_bytes = tiling.partial_bytes(3);
    let pointers = vec![
        lowering.view(y),
        lowering.place(statistics.mean),
        lowering.place(statistics.inv_std),
        Place::Workspace { offset: 0 },
        Place::Tickets,
    ];
    let parameters = [lowering.row(y), statistics.epsilon.to_bits()];
    Following {
        command: tiling.launch("batch_norm_sums", "batch_norm_statistics", pointers, &parameters),
        workspace_bytes,
    }
}

/// Gradient of a bias.
pub(super) fn bias_gradient(dy: &View, dbias: BufferId, factor: f32, lowering: &Lowering) -> Following {
    let tiling = Tiling::sums(dy, lowering);
    let workspace_bytes = tiling.partial_bytes(1);
    let pointers =
        vec![lowering.view(dy), lowering.place(dbias), Place::Workspace { offset: 0 }, Place::Tickets];
    let parameters = [lowering.row(dy), factor.to_bits()];
    Following { command: tiling.launch("batch_norm_sums", "bias_gradient", pointers, &parameters), workspace_bytes }
}

/// What of a gradient's epilogue the library left: `g` is its result with its row, `dx` where the finished gradient
/// belongs, which may be the same. The workspace below `free` still holds `g` where it lies there.
pub(super) fn finish(
    left: &GradientEpilogue,
    (g, g_row): (Place, u32),
    dx: &View,
    free: u64,
    lowering: &Lowering,
) -> Option<Following> {
    let is_finished = !left.accumulate && left.relu_mask.is_none() && left.scale == 1.0 && g == lowering.view(dx);
    let partials = Place::Workspace { offset: free };
    if is_finished && left.reductions.is_empty() {
        return None;
    }
    if let ([reduction], true) = (left.reductions.as_slice(), is_finished) {
        return Some(reduce(reduction, dx, free, lowering));
    }
    let mask = left.relu_mask.as_ref();
    let row = |view: Option<&View>| view.map_or(0, |view| lowering.row(view));
    let y_row = |idx: usize| row(left.reductions.get(idx).map(|reduction| &reduction.y));
    let mut pointers = vec![g, mask.map_or(Place::Null, |view| lowering.view(view))];
    for batch_norm::Reduction { y, mean, inv_std, .. } in &left.reductions {
        pointers.extend([lowering.view(y), lowering.place(*mean), lowering.place(*inv_std)]);
    }
    pointers.push(lowering.view(dx));
    for reduction in &left.reductions {
        pointers.extend([lowering.place(reduction.dgamma), lowering.place(reduction.dbeta)]);
    }
    let factor = left.reductions.first().map_or(1.0, |reduction| reduction.factor);
    let parameters = [
        g_row,
        lowering.row(dx),
        row(mask),
        y_row(0),
        y_row(1),
        u32::from(left.accumulate),
        left.scale.to_bits(),
        factor.to_bits(),
    ];
    let file = "gradient_finish";
    let (tiling, entry) = match left.reductions.len() {
        0 => {
            let command = Tiling::elementwise(dx, lowering).launch(file, "gradient_finish", pointers, &parameters);
            return Some(Following { command, workspace_bytes: free });
        }
        1 => (Tiling::sums(dx, lowering), "gradient_finish_reduction"),
        _ => (Tiling::sums(dx, lowering), "gradient_finish_two_reductions"),
    };
    let workspace_bytes = free + tiling.partial_bytes(1 + left.reductions.len() as u64);
    pointers.extend([partials, Place::Tickets]);
    Some(Following { command: tiling.launch(file, entry, pointers, &parameters), workspace_bytes })
}

/// The sums of one batch norm over a finished gradient.
fn reduce(reduction: &batch_norm::Reduction, g: &View, free: u64, lowering: &Lowering) -> Following {
    let tiling = Tiling::sums(g, lowering);
    let workspace_bytes = free + tiling.partial_bytes(2);
    let pointers = vec![
        lowering.view(g),
        lowering.view(&reduction.y),
        lowering.place(reduction.mean),
        lowering.place(reduction.inv_std),
        Place::Null,
        Place::Null,
        lowering.place(reduction.dgamma),
        lowering.place(reduction.dbeta),
        Place::Workspace { offset: free },
        Place::Tickets,
    ];
    let parameters = [lowering.row(g), lowering.row(&reduction.y), reduction.factor.to_bits()];
    Following {
        command: tiling.launch("batch_norm_sums", "batch_norm_reduction", pointers, &parameters),
        workspace_bytes,
    }
}

/// Filter with each output channel's scale multiplied in. `vectors` are those of the filter and of one channel's part.
pub(super) fn scale_filter(w: Place, scale: BufferId, y: Place, vectors: [u32; 2], lowering: &Lowering) -> Command {
    per_vector("conv2d_filter", "conv2d_scale_filter", vec![w, lowering.place(scale), y], vectors, 256)
}

/// A filter's gradient in f32, multiplied by `factor`, from one in the type of the activations.
pub(super) fn widen_filter(sums: Place, dw: BufferId, vectors: u32, factor: f32, lowering: &Lowering) -> Command {
    let parameters = [vectors, factor.to_bits()];
    per_vector("conv2d_filter", "conv2d_widen_filter", vec![sums, lowering.place(dw)], parameters, 256)
}

/// A bias in the type of the activations.
pub(super) fn cast_bias(bias: BufferId, y: Place, vectors: u32, lowering: &Lowering) -> Command {
    per_vector("cast", "cast", vec![lowering.place(bias), y], [vectors], 1024)
}

/// A launch over contiguous vectors, whose number is the first parameter, `per_block` to a block.
fn per_vector<const N: usize>(
    file: &'static str,
    entry: &'static str,
    pointers: Vec<Place>,
    parameters: [u32; N],
    per_block: u32,
) -> Command {
    Command::Kernel(Launch {
        kernel: Kernel { file, entry },
        pointers,
        parameters: parameters.to_vec(),
        grid: [parameters[0].div_ceil(per_block), 1, 1],
        threads: 256,
        shared_bytes: 0,
    })
}
