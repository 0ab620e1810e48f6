// Gradients of a convolution's filter and bias, f32.
//
//   conv2d_backward_weight:  part[(r,s,c), k] = factor · Σ_{(n,p,q) of one part} x[n, p·stride + r − pad,
//                            q·stride + s − pad, c] · dy[n, p, q, k], as a GEMM whose rows are the filter's (r,s,c)
//                            and whose depth is the positions of dy;
//   conv2d_backward_bias:    part[k] = Σ_{(n,p,q) of one part} dy[n, p, q, k];
//   conv2d_backward_reduce:  factor · the sum of all parts, in a fixed order.
//
// Layout: maps NHWC with rows of `*_row` groups of four channels; parts and results lie as filters do, in panels of 64
// output channels (see `layout.rs`). All indices are in groups of four elements. Threads, tiles and workgroup memory of
// the GEMM: see conv2d_tile.wgsl; its workgroups are numbered columns first, then rows, then parts. The other two use a
// workgroup as [LANES][256 / LANES columns]: the lanes share the positions or the parts of one column, 4 KiB of
// workgroup memory.

struct Parameters {
    // The GEMM: rows are r·s·c, columns output channels, depth positions.
    rows: u32,
    panels: u32,
    positions: u32,
    first_workgroup: u32,
    workgroups: u32,
    column_tiles: u32,
    row_tiles: u32,
    positions_per_part: u32,
    first_part: u32,
    parts: u32,
    // Groups of four elements of one part.
    part_size: u32,
    factor: f32,
    // Map of dy.
    dy_base: u32,
    dy_row: u32,
    dy_channels4: u32,
    dy_plane: u32,
    dy_h: u32,
    dy_w: u32,
    // Positions that one step of the depth goes on by, in images, rows and columns of dy.
    advance_n: u32,
    advance_p: u32,
    advance_q: u32,
    // Map of x.
    x_base: u32,
    x_row: u32,
    x_h: u32,
    x_w: u32,
    x_channels4: u32,
    taps_s: u32,
    stride: i32,
    pad: i32,
}

@group(0) @binding(0) var<storage, read> x: array<element4>;
@group(0) @binding(0) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> dy: array<element4>;
@group(0) @binding(2) var<storage, read_write> result: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> parameters: Parameters;

// Four positions of this thread: image, row, column and number.
var<private> n: vec4<u32>;
var<private> p: vec4<u32>;
var<private> q: vec4<u32>;
var<private> position: vec4<u32>;

fn start_positions(first: u32) {
    position = vec4<u32>(first, first + 4u, first + 8u, first + 12u);
    n = position / parameters.dy_plane;
    let in_image = position - n * parameters.dy_plane;
    p = in_image / parameters.dy_w;
    q = in_image - p * parameters.dy_w;
}

fn advance_positions() {
    position += vec4<u32>(DEPTH);
    q += vec4<u32>(parameters.advance_q);
    let carry_q = q >= vec4<u32>(parameters.dy_w);
    q = select(q, q - parameters.dy_w, carry_q);
    p += select(vec4<u32>(parameters.advance_p), vec4<u32>(parameters.advance_p + 1u), carry_q);
    let carry_p = p >= vec4<u32>(parameters.dy_h);
    p = select(p, p - parameters.dy_h, carry_p);
    n += select(vec4<u32>(parameters.advance_n), vec4<u32>(parameters.advance_n + 1u), carry_p);
}

// One row of the GEMM at four positions; `start_h`, `start_w` and `base` belong to the row.
fn load_x(start_h: i32, start_w: i32, base: u32, exists: bool, end: u32) {
    let h = bitcast<vec4<u32>>(vec4<i32>(p) * parameters.stride + start_h);
    let w = bitcast<vec4<u32>>(vec4<i32>(q) * parameters.stride + start_w);
    let inside = (h < vec4<u32>(parameters.x_h)) & (w < vec4<u32>(parameters.x_w)) & (position < vec4<u32>(end))
        & vec4<bool>(exists);
    let at = select(vec4<u32>(0u), base + ((n * parameters.x_h + h) * parameters.x_w + w) * parameters.x_row, inside);
    v0 = select(element4(), x[at.x], inside.x);
    v1 = select(element4(), x[at.y], inside.y);
    v2 = select(element4(), x[at.z], inside.z);
    v3 = select(element4(), x[at.w], inside.w);
}

fn load_dy(column4: u32, end: u32) {
    let inside = (position < vec4<u32>(end)) & vec4<bool>(column4 < parameters.dy_channels4);
    let at = select(vec4<u32>(0u), parameters.dy_base + position * parameters.dy_row + column4, inside);
    v0 = select(element4(), dy[at.x], inside.x);
    v1 = select(element4(), dy[at.y], inside.y);
    v2 = select(element4(), dy[at.z], inside.z);
    v3 = select(element4(), dy[at.w], inside.w);
}

fn leave(slot: u32, row: u32, column4: u32, sum: vec4<f32>) {
    let panel = column4 >> 4u;
    if (row < parameters.rows && panel < parameters.panels) {
        let at = slot * parameters.part_size + (panel * parameters.rows + row) * 16u + (column4 & 15u);
        result[at] = sum * parameters.factor;
    }
}

@compute @workgroup_size(256)
fn conv2d_backward_weight(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    if (number >= parameters.workgroups) {
        return;
    }
    let id = number + parameters.first_workgroup;
    let first_column4 = (id % parameters.column_tiles) * QUADS_N;
    let first_row = (id / parameters.column_tiles % parameters.row_tiles) * TILE_M;
    let number_of_part = id / parameters.column_tiles / parameters.row_tiles;
    let first = number_of_part * parameters.positions_per_part;
    let end = min(first + parameters.positions_per_part, parameters.positions);

    let is_a = thread < 128u;
    let unit = thread & 127u;
    let active_a = is_a && unit < TILE_M;
    let active_b = !is_a && unit < TILE_N;

    let row4 = first_row / 4u + unit % QUADS_M;
    let tap = row4 / parameters.x_channels4;
    let start_h = i32(tap / parameters.taps_s) - parameters.pad;
    let start_w = i32(tap % parameters.taps_s) - parameters.pad;
    let base = parameters.x_base + row4 % parameters.x_channels4;
    let exists = row4 * 4u < parameters.rows;
    let dy_column4 = first_column4 + unit % QUADS_N;

    start_positions(first + unit / select(QUADS_N, QUADS_M, is_a));
    if (active_a) {
        load_x(start_h, start_w, base, exists, end);
    }
    if (active_b) {
        load_dy(dy_column4, end);
    }
    let row = thread_row(thread);
    let column = thread_column(thread);
    for (var done = first; done < end; done += DEPTH) {
        let buffer = buffer_of(done / DEPTH);
        if (BUFFERS == 1u) {
            workgroupBarrier();
        }
        if (active_a) {
            stage_straight_a(buffer, unit);
        }
        if (active_b) {
            stage_straight_b(buffer, unit);
        }
        workgroupBarrier();
        advance_positions();
        if (active_a) {
            load_x(start_h, start_w, base, exists, end);
        }
        if (active_b) {
            load_dy(dy_column4, end);
        }
        multiply_step(buffer, row, column);
    }

    let slot = parameters.first_part + number_of_part;
    let to = first_row + 4u * row;
    let column4 = first_column4 + column;
    leave(slot, to, column4, s00);
    leave(slot, to + 1u, column4, s10);
    leave(slot, to + 2u, column4, s20);
    leave(slot, to + 3u, column4, s30);
    if (TILE_N == 128u) {
        leave(slot, to, column4 + 16u, s01);
        leave(slot, to + 1u, column4 + 16u, s11);
        leave(slot, to + 2u, column4 + 16u, s21);
        leave(slot, to + 3u, column4 + 16u, s31);
    }
    if (TILE_M == 128u) {
        leave(slot, to + 64u, column4, s40);
        leave(slot, to + 65u, column4, s50);
        leave(slot, to + 66u, column4, s60);
        leave(slot, to + 67u, column4, s70);
    }
    if (TILE_M == 128u && TILE_N == 128u) {
        leave(slot, to + 64u, column4 + 16u, s41);
        leave(slot, to + 65u, column4 + 16u, s51);
        leave(slot, to + 66u, column4 + 16u, s61);
        leave(slot, to + 67u, column4 + 16u, s71);
    }
}

const COLUMNS: u32 = 256u / LANES;

// Sum over the lanes, valid in the first of them.
fn add_lanes(thread: u32, sum: vec4<f32>) -> vec4<f32> {
    var total = sum;
    if (LANES > 1u) {
        tile_a[thread] = sum;
        workgroupBarrier();
        if (thread < COLUMNS) {
            for (var lane = 1u; lane < LANES; lane += 1u) {
                total += tile_a[lane * COLUMNS + thread];
            }
        }
    }
    return total;
}

@compute @workgroup_size(256)
fn conv2d_backward_bias(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    if (number >= parameters.workgroups) {
        return;
    }
    let id = number + parameters.first_workgroup;
    let column4 = (id % parameters.column_tiles) * COLUMNS + thread % COLUMNS;
    let number_of_part = id / parameters.column_tiles;
    let first = number_of_part * parameters.positions_per_part;
    let end = min(first + parameters.positions_per_part, parameters.positions);
    var sum = vec4<f32>(0.0);
    if (column4 < parameters.dy_channels4) {
        for (var at = first + thread / COLUMNS; at < end; at += LANES) {
            sum += vec4<f32>(dy[parameters.dy_base + at * parameters.dy_row + column4]);
        }
    }
    let total = add_lanes(thread, sum);
    if (thread < COLUMNS && column4 < parameters.part_size) {
        result[(parameters.first_part + number_of_part) * parameters.part_size + column4] = total;
    }
}

@compute @workgroup_size(256)
fn conv2d_backward_reduce(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    if (number >= parameters.workgroups) {
        return;
    }
    let column4 = (number + parameters.first_workgroup) * COLUMNS + thread % COLUMNS;
    var sum = vec4<f32>(0.0);
    if (column4 < parameters.part_size) {
        for (var slot = thread / COLUMNS; slot < parameters.parts; slot += LANES) {
            sum += parts[slot * parameters.part_size + column4];
        }
    }
    let total = add_lanes(thread, sum);
    if (thread < COLUMNS && column4 < parameters.part_size) {
        result[column4] = total * parameters.factor;
    }
}
