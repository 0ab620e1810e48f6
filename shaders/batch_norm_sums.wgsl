// Sums of batch norm over n, h, w for each channel: statistics of a convolution's output, and the gradients of gamma
// and beta. Deterministic: each workgroup leaves a partial result, a second kernel combines them in a fixed order.
//
// Partial kernels: a workgroup takes COLUMNS groups of four channels and `block` positions; 256 / COLUMNS threads share
// a column, each walks over its positions, and they combine in workgroup memory, at most 9 KiB.
// Combining kernels: a workgroup of 64 threads takes one group of four channels.
// Partial results lie in `partials` as [block][part][column].

struct Parameters {
    // Where the first position lies and how far the next one is, in groups of four channels.
    y_base: u32,
    y_row: u32,
    g_base: u32,
    g_row: u32,
    // Positions of this launch, positions of a block, number of its first block.
    positions: u32,
    block: u32,
    first_block: u32,
    // Blocks of all launches.
    blocks: u32,
    // Groups of four channels, and channels that are not padding.
    columns: u32,
    channels: u32,
    epsilon: f32,
    factor: f32,
}

// Mean and sum of squared differences from it, of `count` values.
struct Moments {
    count: f32,
    mean: vec4<f32>,
    m2: vec4<f32>,
}

const ROWS: u32 = 256u / COLUMNS;

var<workgroup> counts: array<f32, 256>;
var<workgroup> first_sums: array<vec4<f32>, 256>;
var<workgroup> second_sums: array<vec4<f32>, 256>;

// Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
fn combine(a: Moments, b: Moments) -> Moments {
    let count = a.count + b.count;
    if (count == 0.0) {
        return a;
    }
    let delta = b.mean - a.mean;
    return Moments(
        count,
        a.mean + delta * (b.count / count),
        a.m2 + b.m2 + delta * delta * (a.count * b.count / count),
    );
}

fn kept(lane: u32) -> Moments {
    return Moments(counts[lane], first_sums[lane], second_sums[lane]);
}

fn keep(lane: u32, moments: Moments) {
    counts[lane] = moments.count;
    first_sums[lane] = moments.mean;
    second_sums[lane] = moments.m2;
}

@group(0) @binding(0) var<storage, read> statistics_y: array<element4>;
@group(0) @binding(1) var<storage, read_write> statistics_partials: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> parameters: Parameters;

@compute @workgroup_size(256)
fn batch_norm_statistics(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let column_blocks = (parameters.columns + COLUMNS - 1u) / COLUMNS;
    let workgroup = group.x + group.y * groups.x;
    let block = workgroup / column_blocks;
    let column = workgroup % column_blocks * COLUMNS + lane % COLUMNS;
    let row = lane / COLUMNS;
    let start = block * parameters.block;
    let end = min(start + parameters.block, parameters.positions);
    let exists = column < parameters.columns && start < parameters.positions;
    var moments = Moments(0.0, vec4<f32>(0.0), vec4<f32>(0.0));
    if (exists && start + row < end) {
        // Sums about the first value: no cancellation where the mean is large against the deviation.
        let pivot = vec4<f32>(statistics_y[parameters.y_base + (start + row) * parameters.y_row + column]);
        var sum = vec4<f32>(0.0);
        var squares = vec4<f32>(0.0);
        var count = 0.0;
        for (var position = start + row; position < end; position += ROWS) {
            let value = vec4<f32>(statistics_y[parameters.y_base + position * parameters.y_row + column]) - pivot;
            sum += value;
            squares += value * value;
            count += 1.0;
        }
        let mean = sum / count;
        moments = Moments(count, pivot + mean, max(squares - sum * mean, vec4<f32>(0.0)));
    }
    keep(lane, moments);
    workgroupBarrier();
    for (var stride = ROWS / 2u; stride > 0u; stride /= 2u) {
        if (row < stride) {
            keep(lane, combine(kept(lane), kept(lane + stride * COLUMNS)));
        }
        workgroupBarrier();
    }
    if (exists && row == 0u) {
        let at = (parameters.first_block + block) * 3u * parameters.columns + column;
        statistics_partials[at] = vec4<f32>(counts[lane]);
        statistics_partials[at + parameters.columns] = first_sums[lane];
        statistics_partials[at + 2u * parameters.columns] = second_sums[lane];
    }
}

@group(0) @binding(0) var<storage, read> combined_partials: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> first_result: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> second_result: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> combining: Parameters;

@compute @workgroup_size(64)
fn batch_norm_statistics_combine(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let column = group.x + group.y * groups.x;
    var moments = Moments(0.0, vec4<f32>(0.0), vec4<f32>(0.0));
    if (column < combining.columns) {
        for (var block = lane; block < combining.blocks; block += 64u) {
            let at = block * 3u * combining.columns + column;
            let other = Moments(
                combined_partials[at].x,
                combined_partials[at + combining.columns],
                combined_partials[at + 2u * combining.columns],
            );
            moments = combine(moments, other);
        }
    }
    keep(lane, moments);
    workgroupBarrier();
    for (var stride = 32u; stride > 0u; stride /= 2u) {
        if (lane < stride) {
            keep(lane, combine(kept(lane), kept(lane + stride)));
        }
        workgroupBarrier();
    }
    if (column < combining.columns && lane == 0u) {
        let all = kept(0u);
        let channel = vec4<u32>(4u * column) + vec4<u32>(0u, 1u, 2u, 3u);
        let real = channel < vec4<u32>(combining.channels);
        first_result[column] = select(vec4<f32>(0.0), all.mean, real);
        second_result[column] = select(vec4<f32>(0.0), 1.0 / sqrt(all.m2 / all.count + combining.epsilon), real);
    }
}

@group(0) @binding(0) var<storage, read> reduced_g: array<element4>;
@group(0) @binding(1) var<storage, read> reduced_y: array<element4>;
@group(0) @binding(2) var<storage, read> mean: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> inv_std: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> reduced_partials: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> reducing: Parameters;

// Partial sums of g and of g times the normalized value.
@compute @workgroup_size(256)
fn batch_norm_reduction(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let column_blocks = (reducing.columns + COLUMNS - 1u) / COLUMNS;
    let workgroup = group.x + group.y * groups.x;
    let block = workgroup / column_blocks;
    let column = workgroup % column_blocks * COLUMNS + lane % COLUMNS;
    let row = lane / COLUMNS;
    let start = block * reducing.block;
    let end = min(start + reducing.block, reducing.positions);
    let exists = column < reducing.columns && start < reducing.positions;
    var sum = vec4<f32>(0.0);
    var products = vec4<f32>(0.0);
    if (exists) {
        let center = mean[column];
        for (var position = start + row; position < end; position += ROWS) {
            let g = vec4<f32>(reduced_g[reducing.g_base + position * reducing.g_row + column]);
            let y = vec4<f32>(reduced_y[reducing.y_base + position * reducing.y_row + column]);
            sum += g;
            products += g * (y - center);
        }
        products *= inv_std[column];
    }
    first_sums[lane] = sum;
    second_sums[lane] = products;
    workgroupBarrier();
    for (var stride = ROWS / 2u; stride > 0u; stride /= 2u) {
        if (row < stride) {
            first_sums[lane] += first_sums[lane + stride * COLUMNS];
            second_sums[lane] += second_sums[lane + stride * COLUMNS];
        }
        workgroupBarrier();
    }
    if (exists && row == 0u) {
        let at = (reducing.first_block + block) * 2u * reducing.columns + column;
        reduced_partials[at] = first_sums[lane];
        reduced_partials[at + reducing.columns] = second_sums[lane];
    }
}

// dbeta into the first result, dgamma into the second.
@compute @workgroup_size(64)
fn batch_norm_reduction_combine(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let column = group.x + group.y * groups.x;
    var sum = vec4<f32>(0.0);
    var products = vec4<f32>(0.0);
    if (column < combining.columns) {
        for (var block = lane; block < combining.blocks; block += 64u) {
            let at = block * 2u * combining.columns + column;
            sum += combined_partials[at];
            products += combined_partials[at + combining.columns];
        }
    }
    first_sums[lane] = sum;
    second_sums[lane] = products;
    workgroupBarrier();
    for (var stride = 32u; stride > 0u; stride /= 2u) {
        if (lane < stride) {
            first_sums[lane] += first_sums[lane + stride];
            second_sums[lane] += second_sums[lane + stride];
        }
        workgroupBarrier();
    }
    if (column < combining.columns && lane == 0u) {
        first_result[column] = combining.factor * first_sums[0];
        second_result[column] = combining.factor * second_sums[0];
    }
}
