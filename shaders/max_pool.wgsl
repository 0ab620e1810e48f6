// Maximum pooling. Forward keeps where each maximum came from, backward gathers over the windows that cover an input.
//
// A thread takes four channels of one position, neighbors take neighboring channels. No workgroup memory.
// 256 invocations. Positions of maxima are bytes, four channels in a u32.

struct Forward {
    // Groups of four channels of the output, and at one position.
    count: u32,
    columns: u32,
    x_base: u32,
    x_row: u32,
    y_base: u32,
    y_row: u32,
    index_base: u32,
    // Input and output map, window.
    h: u32,
    w: u32,
    p: u32,
    q: u32,
    r: u32,
    s: u32,
    stride: u32,
    pad: u32,
    // For dropout: channels, number of the first image, and the layer's parameters.
    channels: u32,
    first_image: u32,
    key: u32,
    threshold: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<element4>;
@group(0) @binding(1) var<storage, read_write> y: array<element4>;
@group(0) @binding(2) var<storage, read_write> kept_index: array<u32>;
@group(0) @binding(3) var<uniform> forward: Forward;

// KEEP_INDEX, DROPOUT: 0 or 1.
@compute @workgroup_size(256)
fn max_pool_forward(
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
    let q = position % forward.q;
    let p = position / forward.q % forward.p;
    let n = position / (forward.q * forward.p);
    // Negative where the window starts in the padding: wraps around, and is not below h or w.
    let top = p * forward.stride - forward.pad;
    let left = q * forward.stride - forward.pad;
    var maximum = vec4<f32>(0.0);
    var place = vec4<u32>(0u);
    var found = false;
    for (var r = 0u; r < forward.r; r++) {
        let h = top + r;
        if (h >= forward.h) {
            continue;
        }
        for (var s = 0u; s < forward.s; s++) {
            let w = left + s;
            if (w >= forward.w) {
                continue;
            }
            let at = forward.x_base + ((n * forward.h + h) * forward.w + w) * forward.x_row + column;
            let value = vec4<f32>(x[at]);
            let greater = (value > maximum) | vec4<bool>(!found);
            maximum = select(maximum, value, greater);
            place = select(place, vec4<u32>(r * forward.s + s), greater);
            found = true;
        }
    }
    if (DROPOUT != 0u) {
        let plane = forward.p * forward.q;
        let first = ((forward.first_image + n) * forward.channels + 4u * column) * plane + p * forward.q + q;
        maximum *= dropout_factor4(forward.key, forward.threshold, forward.scale, first, plane);
    }
    y[forward.y_base + position * forward.y_row + column] = element4(maximum);
    if (KEEP_INDEX != 0u) {
        kept_index[forward.index_base + i] = place.x | (place.y << 8u) | (place.z << 16u) | (place.w << 24u);
    }
}

struct Backward {
    // Groups of four channels of the input, and at one position.
    count: u32,
    columns: u32,
    dy_base: u32,
    dy_row: u32,
    index_base: u32,
    dx_base: u32,
    dx_row: u32,
    mask_base: u32,
    mask_row: u32,
    h: u32,
    w: u32,
    p: u32,
    q: u32,
    r: u32,
    s: u32,
    stride: u32,
    pad: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> dy: array<element4>;
@group(0) @binding(1) var<storage, read> index: array<u32>;
@group(0) @binding(2) var<storage, read> relu_mask: array<element4>;
@group(0) @binding(3) var<storage, read_write> dx: array<element4>;
@group(0) @binding(4) var<uniform> backward: Backward;

// First window that covers coordinate `at`, which counts from the start of the padding.
fn first_window(at: u32, window: u32) -> u32 {
    if (at < window) {
        return 0u;
    }
    return (at - window) / backward.stride + 1u;
}

// ACCUMULATE, MASK: 0 or 1.
@compute @workgroup_size(256)
fn max_pool_backward(
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
    let w = position % backward.w + backward.pad;
    let h = position / backward.w % backward.h + backward.pad;
    let n = position / (backward.w * backward.h);
    var sum = vec4<f32>(0.0);
    let end_p = min(h / backward.stride + 1u, backward.p);
    let end_q = min(w / backward.stride + 1u, backward.q);
    for (var p = first_window(h, backward.r); p < end_p; p++) {
        for (var q = first_window(w, backward.s); q < end_q; q++) {
            let tap = (h - p * backward.stride) * backward.s + w - q * backward.stride;
            let output = (n * backward.p + p) * backward.q + q;
            let bytes = index[backward.index_base + output * backward.columns + column];
            let place = (vec4<u32>(bytes) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
            let gradient = vec4<f32>(dy[backward.dy_base + output * backward.dy_row + column]);
            sum += select(vec4<f32>(0.0), gradient, place == vec4<u32>(tap));
        }
    }
    let at = backward.dx_base + position * backward.dx_row + column;
    var result = backward.scale * sum;
    if (ACCUMULATE != 0u) {
        result += vec4<f32>(dx[at]);
    }
    if (MASK != 0u) {
        let rectified = vec4<f32>(relu_mask[backward.mask_base + position * backward.mask_row + column]);
        result = select(vec4<f32>(0.0), result, rectified > vec4<f32>(0.0));
    }
    dx[at] = element4(result);
}
