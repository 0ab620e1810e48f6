// Rounding of f32 master weights to `element`.
//
// A thread takes four elements, a workgroup 1024. No workgroup memory. 256 invocations.

struct Parameters {
    // Groups of four elements.
    count: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<element4>;
@group(0) @binding(2) var<uniform> parameters: Parameters;

// `cast` itself is a reserved word.
@compute @workgroup_size(256)
fn cast_filter(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.x + group.y * groups.x) * 256u + lane;
    if (i < parameters.count) {
        y[i] = element4(x[i]);
    }
}
