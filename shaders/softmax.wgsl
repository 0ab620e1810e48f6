// Softmax with cross-entropy: the loss and the gradient of the logits.
//
// `cross_entropy`: a workgroup takes one sample, its threads share the classes. `cross_entropy_mean`: one workgroup adds
// up the samples' losses, in a fixed order. 1 KiB of workgroup memory. 256 invocations.

struct Parameters {
    // Samples of this launch, number of the first, samples of the minibatch.
    samples: u32,
    first_sample: u32,
    minibatch: u32,
    classes: u32,
    // Groups of four classes.
    columns: u32,
    logits_base: u32,
    logits_row: u32,
    dlogits_base: u32,
    dlogits_row: u32,
    // loss_scale / minibatch.
    scale: f32,
}

@group(0) @binding(0) var<storage, read> logits: array<element4>;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read_write> losses: array<f32>;
@group(0) @binding(3) var<storage, read_write> dlogits: array<element4>;
@group(0) @binding(4) var<uniform> parameters: Parameters;

var<workgroup> partial_results: array<f32, 256>;

// Which of four classes from `4 * column` on exist.
fn real(column: u32) -> vec4<bool> {
    return vec4<u32>(4u * column) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(parameters.classes);
}

@compute @workgroup_size(256)
fn cross_entropy(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let workgroup = group.x + group.y * groups.x;
    // A workgroup past the end repeats the last sample without writing, so that all reach the barriers.
    let exists = workgroup < parameters.samples;
    let n = min(workgroup, parameters.samples - 1u);
    let row = parameters.logits_base + n * parameters.logits_row;

    var greatest = -3.402823e38;
    for (var column = lane; column < parameters.columns; column += 256u) {
        let value = select(vec4<f32>(-3.402823e38), vec4<f32>(logits[row + column]), real(column));
        greatest = max(greatest, max(max(value.x, value.y), max(value.z, value.w)));
    }
    partial_results[lane] = greatest;
    workgroupBarrier();
    for (var stride = 128u; stride > 0u; stride /= 2u) {
        if (lane < stride) {
            partial_results[lane] = max(partial_results[lane], partial_results[lane + stride]);
        }
        workgroupBarrier();
    }
    greatest = partial_results[0];
    workgroupBarrier();

    var sum = 0.0;
    for (var column = lane; column < parameters.columns; column += 256u) {
        let power = select(vec4<f32>(0.0), exp(vec4<f32>(logits[row + column]) - greatest), real(column));
        sum += power.x + power.y + power.z + power.w;
    }
    partial_results[lane] = sum;
    workgroupBarrier();
    for (var stride = 128u; stride > 0u; stride /= 2u) {
        if (lane < stride) {
            partial_results[lane] += partial_results[lane + stride];
        }
        workgroupBarrier();
    }
    sum = partial_results[0];

    if (!exists) {
        return;
    }
    let label = labels[parameters.first_sample + n];
    for (var column = lane; column < parameters.columns; column += 256u) {
        let value = vec4<f32>(logits[row + column]) - greatest;
        let hit = vec4<u32>(4u * column) + vec4<u32>(0u, 1u, 2u, 3u) == vec4<u32>(label);
        let gradient = parameters.scale * (exp(value) / sum - select(vec4<f32>(0.0), vec4<f32>(1.0), hit));
        let at = parameters.dlogits_base + n * parameters.dlogits_row + column;
        dlogits[at] = element4(select(vec4<f32>(0.0), gradient, real(column)));
        if (any(hit)) {
            losses[parameters.first_sample + n] = log(sum) - dot(value, select(vec4<f32>(0.0), vec4<f32>(1.0), hit));
        }
    }
}

@group(0) @binding(0) var<storage, read> all_losses: array<f32>;
@group(0) @binding(1) var<storage, read_write> loss: array<f32>;
@group(0) @binding(2) var<uniform> averaging: Parameters;

@compute @workgroup_size(256)
fn cross_entropy_mean(@builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var n = lane; n < averaging.minibatch; n += 256u) {
        sum += all_losses[n];
    }
    partial_results[lane] = sum;
    workgroupBarrier();
    for (var stride = 128u; stride > 0u; stride /= 2u) {
        if (lane < stride) {
            partial_results[lane] += partial_results[lane + stride];
        }
        workgroupBarrier();
    }
    if (lane == 0u) {
        loss[0] = partial_results[0] / f32(averaging.minibatch);
    }
}
