// Output tile of a GEMM in registers; part of every convolution kernel.
//
// A workgroup of 256 threads owns a tile of TILE_M rows and TILE_N columns (each 64 or 128) and walks the depth in steps
// of 16. Operands of one step lie in workgroup memory as [16 depths][rows or columns], four to a vector: 16 KiB for the
// largest tile, twice that where BUFFERS is 2 and a step is stored while the one before it is still read, which saves a
// barrier. Each thread sums 8x8 elements (4 where a side is 64) as quadrants of four rows and four columns, the quadrants
// 64 apart; a group of 32 threads covers 4 by 8 of them, which keeps its reads of workgroup memory few. While it sums one
// step, each thread holds its share of the next one in registers: threads below 128 that of operand A (rows), the others
// that of operand B (columns).
//
// Every sum has its own name: arrays that are indexed by variables would leave the registers.

const DEPTH: u32 = 16u;
const QUADS_M: u32 = TILE_M / 4u;
const QUADS_N: u32 = TILE_N / 4u;
// Vectors of one buffer.
const BUFFER_A: u32 = 4u * TILE_M;
const BUFFER_B: u32 = 4u * TILE_N;

var<workgroup> tile_a: array<vec4<f32>, BUFFERS * BUFFER_A>;
var<workgroup> tile_b: array<vec4<f32>, BUFFERS * BUFFER_B>;

// s<row><half>: rows 0 to 3 and, 64 below, 4 to 7; columns of the left half and, 64 to the right, of the right one.
var<private> s00: vec4<f32>; var<private> s01: vec4<f32>;
var<private> s10: vec4<f32>; var<private> s11: vec4<f32>;
var<private> s20: vec4<f32>; var<private> s21: vec4<f32>;
var<private> s30: vec4<f32>; var<private> s31: vec4<f32>;
var<private> s40: vec4<f32>; var<private> s41: vec4<f32>;
var<private> s50: vec4<f32>; var<private> s51: vec4<f32>;
var<private> s60: vec4<f32>; var<private> s61: vec4<f32>;
var<private> s70: vec4<f32>; var<private> s71: vec4<f32>;

// What this thread has loaded for the next step.
var<private> v0: element4;
var<private> v1: element4;
var<private> v2: element4;
var<private> v3: element4;

// First of a thread's rows, and of its columns, in units of four. The masks tell compilers that indices stay in bounds.
fn thread_row(thread: u32) -> u32 {
    return ((thread >> 3u) & 3u) | (((thread >> 6u) & 3u) << 2u);
}

fn thread_column(thread: u32) -> u32 {
    return (thread & 7u) | (((thread >> 5u) & 1u) << 3u);
}

// Where a step lies in workgroup memory.
fn buffer_of(step: u32) -> u32 {
    return select(0u, step & 1u, BUFFERS == 2u);
}

// Loading along the depth: a thread of number `unit` loads four consecutive depths (`gathered_depth`, in units of four)
// of four consecutive rows (`gathered_row`, in units of four), and transposes them on the way to workgroup memory.
fn gathered_row(unit: u32) -> u32 {
    return (unit & 7u) | (((unit >> 5u) & 3u) << 3u);
}

fn gathered_depth(unit: u32) -> u32 {
    return (unit >> 3u) & 3u;
}

fn stage_gathered_a(buffer: u32, unit: u32) {
    let at = buffer * BUFFER_A + gathered_depth(unit) * TILE_M + gathered_row(unit);
    tile_a[at] = vec4<f32>(vec4<element>(v0.x, v1.x, v2.x, v3.x));
    tile_a[at + QUADS_M] = vec4<f32>(vec4<element>(v0.y, v1.y, v2.y, v3.y));
    tile_a[at + 2u * QUADS_M] = vec4<f32>(vec4<element>(v0.z, v1.z, v2.z, v3.z));
    tile_a[at + 3u * QUADS_M] = vec4<f32>(vec4<element>(v0.w, v1.w, v2.w, v3.w));
}

fn stage_gathered_b(buffer: u32, unit: u32) {
    let at = buffer * BUFFER_B + gathered_depth(unit) * TILE_N + gathered_row(unit);
    tile_b[at] = vec4<f32>(vec4<element>(v0.x, v1.x, v2.x, v3.x));
    tile_b[at + QUADS_N] = vec4<f32>(vec4<element>(v0.y, v1.y, v2.y, v3.y));
    tile_b[at + 2u * QUADS_N] = vec4<f32>(vec4<element>(v0.z, v1.z, v2.z, v3.z));
    tile_b[at + 3u * QUADS_N] = vec4<f32>(vec4<element>(v0.w, v1.w, v2.w, v3.w));
}

// Loading along the rows: a thread loads four consecutive rows, number `unit % QUADS`, of the depths
// `unit / QUADS + 4 i`.
fn stage_straight_a(buffer: u32, unit: u32) {
    let at = buffer * BUFFER_A + unit;
    tile_a[at] = vec4<f32>(v0);
    tile_a[at + TILE_M] = vec4<f32>(v1);
    tile_a[at + 2u * TILE_M] = vec4<f32>(v2);
    tile_a[at + 3u * TILE_M] = vec4<f32>(v3);
}

fn stage_straight_b(buffer: u32, unit: u32) {
    let at = buffer * BUFFER_B + unit;
    tile_b[at] = vec4<f32>(v0);
    tile_b[at + TILE_N] = vec4<f32>(v1);
    tile_b[at + 2u * TILE_N] = vec4<f32>(v2);
    tile_b[at + 3u * TILE_N] = vec4<f32>(v3);
}

// Adds the products of one depth.
fn multiply(at_a: u32, at_b: u32) {
    let a = tile_a[at_a];
    let b = tile_b[at_b];
    s00 += a.x * b;
    s10 += a.y * b;
    s20 += a.z * b;
    s30 += a.w * b;
    if (TILE_N == 128u) {
        let right = tile_b[at_b + 16u];
        s01 += a.x * right;
        s11 += a.y * right;
        s21 += a.z * right;
        s31 += a.w * right;
        if (TILE_M == 128u) {
            let lower = tile_a[at_a + 16u];
            s41 += lower.x * right;
            s51 += lower.y * right;
            s61 += lower.z * right;
            s71 += lower.w * right;
        }
    }
    if (TILE_M == 128u) {
        let lower = tile_a[at_a + 16u];
        s40 += lower.x * b;
        s50 += lower.y * b;
        s60 += lower.z * b;
        s70 += lower.w * b;
    }
}

// Adds the products of one step.
fn multiply_step(buffer: u32, row: u32, column: u32) {
    let at_a = buffer * BUFFER_A + row;
    let at_b = buffer * BUFFER_B + column;
    multiply(at_a + 0u * QUADS_M, at_b + 0u * QUADS_N);
    multiply(at_a + 1u * QUADS_M, at_b + 1u * QUADS_N);
    multiply(at_a + 2u * QUADS_M, at_b + 2u * QUADS_N);
    multiply(at_a + 3u * QUADS_M, at_b + 3u * QUADS_N);
    multiply(at_a + 4u * QUADS_M, at_b + 4u * QUADS_N);
    multiply(at_a + 5u * QUADS_M, at_b + 5u * QUADS_N);
    multiply(at_a + 6u * QUADS_M, at_b + 6u * QUADS_N);
    multiply(at_a + 7u * QUADS_M, at_b + 7u * QUADS_N);
    multiply(at_a + 8u * QUADS_M, at_b + 8u * QUADS_N);
    multiply(at_a + 9u * QUADS_M, at_b + 9u * QUADS_N);
    multiply(at_a + 10u * QUADS_M, at_b + 10u * QUADS_N);
    multiply(at_a + 11u * QUADS_M, at_b + 11u * QUADS_N);
    multiply(at_a + 12u * QUADS_M, at_b + 12u * QUADS_N);
    multiply(at_a + 13u * QUADS_M, at_b + 13u * QUADS_N);
    multiply(at_a + 14u * QUADS_M, at_b + 14u * QUADS_N);
    multiply(at_a + 15u * QUADS_M, at_b + 15u * QUADS_N);
}
