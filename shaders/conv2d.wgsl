// Convolution forward and its gradient of the input, as an implicit GEMM: rows are positions of the output map, columns
// its channels, the depth runs over the taps of the window and the channels of the input map.
//
//   forward:        sum[(n,p,q), k] = Σ_{r,s,c} x[n, p·stride + r − pad, q·stride + s − pad, c] · w[k, c, r, s]
//   backward data:  sum[(n,i,j), c] = Σ_{r,s,k} dy[n, i + start − r', j + start − s', k] · w[k, c, r, s] for the
//                   positions h = i·stride + h0, w = j·stride + w0 of one residue class and the taps that reach it,
//                   r = r0 + stride·r'; the host launches one kernel a class.
//
// Layout: maps NHWC with rows of `*_row` groups of four channels, filters in panels of 64 output channels (see
// `layout.rs`). All indices are in groups of four elements. Threads, tiles and workgroup memory: see conv2d_tile.wgsl.
// Workgroups are numbered columns first, then rows, then parts of the depth (split-k).
//
// Entry points: conv2d_forward and conv2d_backward_data finish their sums; conv2d_partial leaves those of one part of the
// depth in f32, conv2d_reduce adds the parts in their order and finishes them.
//
// Constants: TILE_M, TILE_N, BUFFERS; GATHER_FILTER (backward data: depth along the filter's columns); STRIDED (the rows are not
// all of the output's positions); what follows the sum, in this order, by FACTOR, SCALE, BIAS, RESIDUAL, ACCUMULATE,
// RELU, DROPOUT, MASK.

struct Parameters {
    // The GEMM.
    rows: u32,
    columns4: u32,
    depth: u32,
    // Its tiles.
    first_workgroup: u32,
    workgroups: u32,
    column_tiles: u32,
    row_tiles: u32,
    steps: u32,
    steps_per_part: u32,
    first_part: u32,
    parts: u32,
    // Rows are positions of a map of this size.
    row_plane: u32,
    row_w: u32,
    // Input map.
    input_base: u32,
    input_row: u32,
    input_h: u32,
    input_w: u32,
    stride: i32,
    start_h: i32,
    start_w: i32,
    tap_step: i32,
    // Depth.
    taps_r: u32,
    taps_s: u32,
    channels4: u32,
    advance_r: u32,
    advance_s: u32,
    advance_c: u32,
    // Filter.
    filter_base: u32,
    filter_panel: u32,
    filter_r: u32,
    filter_s: u32,
    // Output map: position of row (n, i, j) is n·output_plane + i·output_i + j·output_j + output_start.
    output_base: u32,
    output_row: u32,
    output_plane: u32,
    output_i: u32,
    output_j: u32,
    output_start: u32,
    operand_base: u32,
    operand_row: u32,
    // What follows the sum.
    vector_base: u32,
    factor: f32,
    dropout_key: u32,
    dropout_threshold: u32,
    dropout_scale: f32,
    dropout_image: u32,
    dropout_channels: u32,
    dropout_first: u32,
}

@group(0) @binding(0) var<storage, read> input: array<element4>;
@group(0) @binding(0) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> filter_panels: array<element4>;
@group(0) @binding(2) var<storage, read> scale: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> bias: array<vec4<f32>>;
// The residual or the mask.
@group(0) @binding(4) var<storage, read> operand: array<element4>;
@group(0) @binding(5) var<storage, read_write> output: array<element4>;
@group(0) @binding(5) var<storage, read_write> part: array<vec4<f32>>;
@group(0) @binding(6) var<uniform> parameters: Parameters;

// Where this thread stands in the depth.
var<private> tap_r: u32;
var<private> tap_s: u32;
var<private> channel4: u32;
// Four rows of the input: position of tap 0 and index of the image. Four columns of the filter: `row_base` is the index
// of the column, `row_h` is negative where there is none.
var<private> row_h: vec4<i32>;
var<private> row_w: vec4<i32>;
var<private> row_base: vec4<u32>;
// The same at the present tap.
var<private> tap_base: vec4<u32>;
var<private> inside: vec4<bool>;

fn start_depth(depth4: u32) {
    let tap = depth4 / parameters.channels4;
    channel4 = depth4 % parameters.channels4;
    tap_r = tap / parameters.taps_s;
    tap_s = tap % parameters.taps_s;
}

fn start_rows(first: u32) {
    let row = vec4<u32>(first, first + 1u, first + 2u, first + 3u);
    let image = row / parameters.row_plane;
    let position = row - image * parameters.row_plane;
    let i = position / parameters.row_w;
    let j = position - i * parameters.row_w;
    // Rows past the last one lie outside of the map at every tap.
    row_h = select(vec4<i32>(-0x40000000), vec4<i32>(i) * parameters.stride + parameters.start_h, row < vec4<u32>(parameters.rows));
    row_w = vec4<i32>(j) * parameters.stride + parameters.start_w;
    row_base = image * (parameters.input_h * parameters.input_w * parameters.input_row) + parameters.input_base;
}

fn start_columns(first: u32) {
    let column = vec4<u32>(first, first + 1u, first + 2u, first + 3u);
    row_h = select(vec4<i32>(-1), vec4<i32>(0), column < vec4<u32>(4u * parameters.columns4));
    row_base = parameters.filter_base + column * 16u;
}

fn locate_rows() {
    let h = bitcast<vec4<u32>>(row_h + i32(tap_r) * parameters.tap_step);
    let w = bitcast<vec4<u32>>(row_w + i32(tap_s) * parameters.tap_step);
    inside = (h < vec4<u32>(parameters.input_h)) & (w < vec4<u32>(parameters.input_w));
    inside = inside & vec4<bool>(tap_r < parameters.taps_r);
    tap_base = select(vec4<u32>(0u), row_base + (h * parameters.input_w + w) * parameters.input_row, inside);
}

fn locate_columns() {
    inside = (row_h >= vec4<i32>(0)) & vec4<bool>(tap_r < parameters.taps_r);
    tap_base = select(vec4<u32>(0u), row_base + tap_r * parameters.filter_r + tap_s * parameters.filter_s, inside);
}

// Goes on by one step; true where that changes the tap.
fn advance_depth() -> bool {
    let before_r = tap_r;
    let before_s = tap_s;
    channel4 += parameters.advance_c;
    tap_s += parameters.advance_s;
    tap_r += parameters.advance_r;
    if (channel4 >= parameters.channels4) {
        channel4 -= parameters.channels4;
        tap_s += 1u;
    }
    if (tap_s >= parameters.taps_s) {
        tap_s -= parameters.taps_s;
        tap_r += 1u;
    }
    return tap_r != before_r || tap_s != before_s;
}

fn load_rows() {
    v0 = select(element4(), input[tap_base.x + channel4], inside.x);
    v1 = select(element4(), input[tap_base.y + channel4], inside.y);
    v2 = select(element4(), input[tap_base.z + channel4], inside.z);
    v3 = select(element4(), input[tap_base.w + channel4], inside.w);
}

fn load_columns() {
    let along = (channel4 >> 4u) * parameters.filter_panel + (channel4 & 15u);
    v0 = select(element4(), filter_panels[tap_base.x + along], inside.x);
    v1 = select(element4(), filter_panels[tap_base.y + along], inside.y);
    v2 = select(element4(), filter_panels[tap_base.z + along], inside.z);
    v3 = select(element4(), filter_panels[tap_base.w + along], inside.w);
}

fn load_filter(base: u32, depth: u32, exists: bool) {
    let at = vec4<u32>(depth, depth + 4u, depth + 8u, depth + 12u);
    let valid = (at < vec4<u32>(parameters.depth)) & vec4<bool>(exists);
    let source = select(vec4<u32>(0u), base + at * 16u, valid);
    v0 = select(element4(), filter_panels[source.x], valid.x);
    v1 = select(element4(), filter_panels[source.y], valid.y);
    v2 = select(element4(), filter_panels[source.z], valid.z);
    v3 = select(element4(), filter_panels[source.w], valid.w);
}

// Sums of the tile whose first row and column are given, over steps of the depth.
fn sum_tile(thread: u32, first_row: u32, first_column: u32, first_step: u32, end_step: u32) {
    let is_a = thread < 128u;
    let unit = thread & 127u;
    let active_a = is_a && unit < TILE_M;
    let active_b = !is_a && unit < TILE_N;
    let row = thread_row(thread);
    let column = thread_column(thread);

    // Forward, operand B: four columns of one panel.
    let filter_quad = first_column / 4u + unit % QUADS_N;
    let filter_exists = filter_quad < ((parameters.columns4 + 15u) & 0xfffffff0u);
    let filter_at = parameters.filter_base + (filter_quad >> 4u) * parameters.filter_panel + (filter_quad & 15u);
    var filter_depth = first_step * DEPTH + unit / QUADS_N;

    if (first_step < end_step) {
        start_depth(first_step * 4u + gathered_depth(unit));
    }
    if (active_a) {
        start_rows(first_row + 4u * gathered_row(unit));
        locate_rows();
        load_rows();
    }
    if (active_b) {
        if (GATHER_FILTER == 1u) {
            start_columns(first_column + 4u * gathered_row(unit));
            locate_columns();
            load_columns();
        } else {
            load_filter(filter_at, filter_depth, filter_exists);
        }
    }
    for (var step = first_step; step < end_step; step += 1u) {
        let buffer = buffer_of(step);
        if (BUFFERS == 1u) {
            workgroupBarrier();
        }
        if (active_a) {
            stage_gathered_a(buffer, unit);
        }
        if (active_b) {
            if (GATHER_FILTER == 1u) {
                stage_gathered_b(buffer, unit);
            } else {
                stage_straight_b(buffer, unit);
            }
        }
        workgroupBarrier();
        if (step + 1u < end_step) {
            if (active_a) {
                if (advance_depth()) {
                    locate_rows();
                }
                load_rows();
            }
            if (active_b) {
                if (GATHER_FILTER == 1u) {
                    if (advance_depth()) {
                        locate_columns();
                    }
                    load_columns();
                } else {
                    filter_depth += DEPTH;
                    load_filter(filter_at, filter_depth, filter_exists);
                }
            }
        }
        multiply_step(buffer, row, column);
    }
}

// Writes four channels of one row's output.
fn finish(row: u32, column4: u32, sum: vec4<f32>) {
    if (row >= parameters.rows || column4 >= parameters.columns4) {
        return;
    }
    var position = row;
    if (STRIDED == 1u) {
        let image = row / parameters.row_plane;
        let in_image = row - image * parameters.row_plane;
        let i = in_image / parameters.row_w;
        let j = in_image - i * parameters.row_w;
        position = image * parameters.output_plane + i * parameters.output_i + j * parameters.output_j
            + parameters.output_start;
    }
    let at = parameters.output_base + position * parameters.output_row + column4;
    let operand_at = parameters.operand_base + position * parameters.operand_row + column4;
    var value = sum;
    if (FACTOR == 1u) {
        value = value * parameters.factor;
    }
    if (SCALE == 1u) {
        value = value * scale[parameters.vector_base + column4];
    }
    if (BIAS == 1u) {
        value = value + bias[parameters.vector_base + column4];
    }
    if (RESIDUAL == 1u) {
        value = value + vec4<f32>(operand[operand_at]);
    }
    if (ACCUMULATE == 1u) {
        value = value + vec4<f32>(output[at]);
    }
    if (RELU == 1u) {
        value = max(value, vec4<f32>(0.0));
    }
    if (DROPOUT == 1u) {
        let image = row / parameters.row_plane;
        let in_image = row - image * parameters.row_plane;
        let channel = parameters.dropout_first + 4u * column4;
        let index = ((parameters.dropout_image + image) * parameters.dropout_channels + channel) * parameters.row_plane
            + in_image;
        value = value * dropout_factor4(parameters.dropout_key, parameters.dropout_threshold, parameters.dropout_scale,
            index, parameters.row_plane);
    }
    if (MASK == 1u) {
        value = select(vec4<f32>(0.0), value, operand[operand_at] > element4());
    }
    output[at] = element4(value);
}

fn leave(slot: u32, row: u32, column4: u32, sum: vec4<f32>) {
    if (row < parameters.rows && column4 < parameters.columns4) {
        part[(slot * parameters.rows + row) * parameters.columns4 + column4] = sum;
    }
}

struct Tile {
    row: u32,
    column: u32,
    part: u32,
}

fn tile_of(number: u32) -> Tile {
    let id = number + parameters.first_workgroup;
    let rest = id / parameters.column_tiles;
    return Tile(
        (rest % parameters.row_tiles) * TILE_M,
        (id % parameters.column_tiles) * TILE_N,
        rest / parameters.row_tiles,
    );
}

fn finish_tile(number: u32, thread: u32) {
    let tile = tile_of(number);
    sum_tile(thread, tile.row, tile.column, 0u, parameters.steps);
    let row = tile.row + 4u * thread_row(thread);
    let column4 = tile.column / 4u + thread_column(thread);
    finish(row, column4, s00);
    finish(row + 1u, column4, s10);
    finish(row + 2u, column4, s20);
    finish(row + 3u, column4, s30);
    if (TILE_N == 128u) {
        finish(row, column4 + 16u, s01);
        finish(row + 1u, column4 + 16u, s11);
        finish(row + 2u, column4 + 16u, s21);
        finish(row + 3u, column4 + 16u, s31);
    }
    if (TILE_M == 128u) {
        finish(row + 64u, column4, s40);
        finish(row + 65u, column4, s50);
        finish(row + 66u, column4, s60);
        finish(row + 67u, column4, s70);
    }
    if (TILE_M == 128u && TILE_N == 128u) {
        finish(row + 64u, column4 + 16u, s41);
        finish(row + 65u, column4 + 16u, s51);
        finish(row + 66u, column4 + 16u, s61);
        finish(row + 67u, column4 + 16u, s71);
    }
}

@compute @workgroup_size(256)
fn conv2d_forward(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    if (number >= parameters.workgroups) {
        return;
    }
    finish_tile(number, thread);
}

@compute @workgroup_size(256)
fn conv2d_backward_data(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    if (number >= parameters.workgroups) {
        return;
    }
    finish_tile(number, thread);
}

@compute @workgroup_size(256)
fn conv2d_partial(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    if (number >= parameters.workgroups) {
        return;
    }
    let tile = tile_of(number);
    let first = tile.part * parameters.steps_per_part;
    sum_tile(thread, tile.row, tile.column, first, min(first + parameters.steps_per_part, parameters.steps));
    let slot = parameters.first_part + tile.part;
    let row = tile.row + 4u * thread_row(thread);
    let column4 = tile.column / 4u + thread_column(thread);
    leave(slot, row, column4, s00);
    leave(slot, row + 1u, column4, s10);
    leave(slot, row + 2u, column4, s20);
    leave(slot, row + 3u, column4, s30);
    if (TILE_N == 128u) {
        leave(slot, row, column4 + 16u, s01);
        leave(slot, row + 1u, column4 + 16u, s11);
        leave(slot, row + 2u, column4 + 16u, s21);
        leave(slot, row + 3u, column4 + 16u, s31);
    }
    if (TILE_M == 128u) {
        leave(slot, row + 64u, column4, s40);
        leave(slot, row + 65u, column4, s50);
        leave(slot, row + 66u, column4, s60);
        leave(slot, row + 67u, column4, s70);
    }
    if (TILE_M == 128u && TILE_N == 128u) {
        leave(slot, row + 64u, column4 + 16u, s41);
        leave(slot, row + 65u, column4 + 16u, s51);
        leave(slot, row + 66u, column4 + 16u, s61);
        leave(slot, row + 67u, column4 + 16u, s71);
    }
}

// One thread a row and four columns.
@compute @workgroup_size(256)
fn conv2d_reduce(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let number = group.x + group.y * groups.x;
    if (number >= parameters.workgroups) {
        return;
    }
    let size = parameters.rows * parameters.columns4;
    let index = (number + parameters.first_workgroup) * 256u + thread;
    if (index >= size) {
        return;
    }
    var sum = vec4<f32>(0.0);
    for (var slot = 0u; slot < parameters.parts; slot += 1u) {
        sum += parts[slot * size + index];
    }
    let row = index / parameters.columns4;
    finish(row, index - row * parameters.columns4, sum);
}
