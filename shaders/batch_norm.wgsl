// Batch normalization applied, forward and backward.
//
// `batch_norm_coefficients`: a thread takes four channels. The others: a thread takes four channels of one position,
// neighbors take neighboring channels. No workgroup memory. 256 invocations.

struct Coefficients {
    count: u32,
}

@group(0) @binding(0) var<storage, read> from_mean: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> from_inv_std: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> from_gamma: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> from_beta: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> made_coefficients: array<vec4<f32>>;
@group(0) @binding(5) var<uniform> making: Coefficients;

// Mean, gamma * inv_std and beta of four channels side by side.
@compute @workgroup_size(256)
fn batch_norm_coefficients(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.x + group.y * groups.x) * 256u + lane;
    if (i < making.count) {
        made_coefficients[3u * i] = from_mean[i];
        made_coefficients[3u * i + 1u] = from_gamma[i] * from_inv_std[i];
        made_coefficients[3u * i + 2u] = from_beta[i];
    }
}

struct Forward {
    // Groups of four channels in all positions, and at one position.
    count: u32,
    columns: u32,
    // Where each tensor's first position lies and how far the next one is, in groups of four channels.
    y_base: u32,
    y_row: u32,
    residual_base: u32,
    residual_row: u32,
    z_base: u32,
    z_row: u32,
}

@group(0) @binding(0) var<storage, read> y: array<element4>;
@group(0) @binding(1) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> residual: array<element4>;
@group(0) @binding(3) var<storage, read> residual_coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> z: array<element4>;
@group(0) @binding(5) var<uniform> forward: Forward;

// RESIDUAL: 0 none, 1 a finished activation, 2 one that is normalized on the way. RELU: 0 or 1.
@compute @workgroup_size(256)
fn batch_norm_forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.x + group.y * groups.x) * 256u + lane;
    if (i >= forward.count) {
        return;
    }
    let column = i % forward.columns;
    let position = i / forward.columns;
    let at = 3u * column;
    let value = vec4<f32>(y[forward.y_base + position * forward.y_row + column]);
    var result = (value - coefficients[at]) * coefficients[at + 1u] + coefficients[at + 2u];
    if (RESIDUAL != 0u) {
        var added = vec4<f32>(residual[forward.residual_base + position * forward.residual_row + column]);
        if (RESIDUAL == 2u) {
            added = (added - residual_coefficients[at]) * residual_coefficients[at + 1u] + residual_coefficients[at + 2u];
        }
        result += added;
    }
    if (RELU != 0u) {
        result = max(result, vec4<f32>(0.0));
    }
    z[forward.z_base + position * forward.z_row + column] = element4(result);
}

struct Backward {
    count: u32,
    columns: u32,
    g_base: u32,
    g_row: u32,
    y_base: u32,
    y_row: u32,
    dy_base: u32,
    dy_row: u32,
    // loss_scale / (n * h * w).
    scale: f32,
}

@group(0) @binding(0) var<storage, read> g: array<element4>;
@group(0) @binding(1) var<storage, read> backward_y: array<element4>;
@group(0) @binding(2) var<storage, read> mean: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> inv_std: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> gamma: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> dgamma: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> dbeta: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> dy: array<element4>;
@group(0) @binding(8) var<uniform> backward: Backward;

// IN_PLACE: 1 where g lies in dy's memory.
@compute @workgroup_size(256)
fn batch_norm_backward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.x + group.y * groups.x) * 256u + lane;
    if (i >= backward.count) {
        return;
    }
    let column = i % backward.columns;
    let position = i / backward.columns;
    let at = backward.dy_base + position * backward.dy_row + column;
    var gradient: vec4<f32>;
    if (IN_PLACE != 0u) {
        gradient = vec4<f32>(dy[at]);
    } else {
        gradient = vec4<f32>(g[backward.g_base + position * backward.g_row + column]);
    }
    let value = vec4<f32>(backward_y[backward.y_base + position * backward.y_row + column]);
    let normalized = (value - mean[column]) * inv_std[column];
    let mean_part = backward.scale * (dbeta[column] + normalized * dgamma[column]);
    dy[at] = element4(gamma[column] * inv_std[column] * (gradient - mean_part));
}
