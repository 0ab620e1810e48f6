// Average over the whole map.
//
// Forward: a thread takes four channels of one image and walks over the map. Backward: a thread takes four channels of
// one position. Neighbors take neighboring channels. No workgroup memory. 256 invocations.

struct Forward {
    // Groups of four channels of all images, and of one.
    count: u32,
    columns: u32,
    x_base: u32,
    x_row: u32,
    y_base: u32,
    y_row: u32,
    // Positions of the map.
    plane: u32,
    // For dropout: channels, number of the first image, and the layer's parameters.
    channels: u32,
    first_image: u32,
    key: u32,
    threshold: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<element4>;
@group(0) @binding(1) var<storage, read_write> y: array<element4>;
@group(0) @binding(2) var<uniform> forward: Forward;

// DROPOUT: 0 or 1.
@compute @workgroup_size(256)
fn average_pool_forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.x + group.y * groups.x) * 256u + lane;
    if (i >= forward.count) {
        return;
    }
    let column = i % forward.columns;
    let n = i / forward.columns;
    var sum = vec4<f32>(0.0);
    for (var position = n * forward.plane; position < (n + 1u) * forward.plane; position++) {
        sum += vec4<f32>(x[forward.x_base + position * forward.x_row + column]);
    }
    var result = sum / f32(forward.plane);
    if (DROPOUT != 0u) {
        let first = (forward.first_image + n) * forward.channels + 4u * column;
        result *= dropout_factor4(forward.key, forward.threshold, forward.scale, first, 1u);
    }
    y[forward.y_base + n * forward.y_row + column] = element4(result);
}

struct Backward {
    // Groups of four channels of all positions, and of one.
    count: u32,
    columns: u32,
    dy_base: u32,
    dy_row: u32,
    dx_base: u32,
    dx_row: u32,
    mask_base: u32,
    mask_row: u32,
    plane: u32,
    // The epilogue's scale divided by the positions of the map.
    scale: f32,
}

@group(0) @binding(0) var<storage, read> dy: array<element4>;
@group(0) @binding(1) var<storage, read> relu_mask: array<element4>;
@group(0) @binding(2) var<storage, read_write> dx: array<element4>;
@group(0) @binding(3) var<uniform> backward: Backward;

// ACCUMULATE, MASK: 0 or 1.
@compute @workgroup_size(256)
fn average_pool_backward(
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
    let n = position / backward.plane;
    let at = backward.dx_base + position * backward.dx_row + column;
    var result = backward.scale * vec4<f32>(dy[backward.dy_base + n * backward.dy_row + column]);
    if (ACCUMULATE != 0u) {
        result += vec4<f32>(dx[at]);
    }
    if (MASK != 0u) {
        let rectified = vec4<f32>(relu_mask[backward.mask_base + position * backward.mask_row + column]);
        result = select(vec4<f32>(0.0), result, rectified > vec4<f32>(0.0));
    }
    dx[at] = element4(result);
}
