// Gradients of a convolution's filter and bias in f32 without tensor cores, as a GEMM: rows are output channels, columns
// the filter's elements (r,s,c), the depth runs over the positions of the output map.
//
//   dw[k, r, s, c] = factor · Σ_{n,p,q} dy[n, p, q, k] · x[n, p·stride + r − pad, q·stride + s − pad, c]
//   dbias[k] = factor · Σ_{n,p,q} dy[n, p, q, k]
//
// Threads, tiles and shared memory: see conv2d_simt_tile.cu.
// Grid: x = row tiles · column tiles, columns first, z = part of the depth. Each part leaves its sums in `partial`,
// [part][(k, r, s, c)], and those of the bias in `partial_bias`, [part][k]; conv2d_simt_backward_weight_combine adds
// them in their order. A single part writes dw and dbias at once.
//
// Limits: as conv2d_simt.cu.

#if ELEMENT == 0 && TF32 == 0

struct SimtBackwardWeight {
    // The layer: input map [n][h][w][c], output map [n][p][q][k].
    u32 n, h, w, c;
    u32 k, p, q;
    u32 r, s, stride, pad;
    // Elements from one position to the next.
    u32 x_row, dy_row;
    // Positions of the depth in one part, a multiple of 16, and the number of parts.
    u32 part_positions, parts;
    float factor;
    // p·q and q.
    Divisor plane, line;
};

template <class T>
__device__ __forceinline__ void backward_weight(const float* x, const float* dy, float* dw, float* dbias,
                                                float* partial, float* partial_bias,
                                                const SimtBackwardWeight& parameters) {
    __shared__ float stages[2 * T::STAGE];
    constexpr int CHUNKS_M = T::M / 4, CHUNKS_N = T::N / 4;
    const SimtBackwardWeight& layer = parameters;
    const int columns = layer.r * layer.s * layer.c, column_tiles = (columns + T::N - 1) / T::N;
    const int row_tile = blockIdx.x / column_tiles, column_tile = blockIdx.x - row_tile * column_tiles;
    const int first_row = row_tile * T::M, first_column = column_tile * T::N;
    const u32 positions = layer.n * layer.p * layer.q;
    const u32 begin = blockIdx.z * layer.part_positions, end = min(positions, begin + layer.part_positions);

    // This thread's four rows of operand A, and its four columns of operand B.
    const int row = first_row + threadIdx.x % CHUNKS_M * 4, column = first_column + threadIdx.x % CHUNKS_N * 4;
    const int tap = column / (int)layer.c, channel = column - tap * (int)layer.c;
    const int shift_h = tap / (int)layer.s - (int)layer.pad, shift_w = tap % (int)layer.s - (int)layer.pad;
    const bool row_exists = row < (int)layer.k, column_exists = column < columns;

    const auto load = [&](float* stage, u32 first) {
        const u32 a = shared_address(stage), b = shared_address(stage + T::STAGE_A);
#pragma unroll
        for (int i = 0; i < STEP * CHUNKS_M / T::THREADS; ++i) {
            const int d = threadIdx.x / CHUNKS_M + i * (T::THREADS / CHUNKS_M);
            const u32 position = first + d;
            const bool valid = row_exists && position < end;
            copy16(a + (d * T::M + threadIdx.x % CHUNKS_M * 4) * 4,
                   valid ? dy + (u64)position * layer.dy_row + row : dy, valid);
        }
#pragma unroll
        for (int i = 0; i < STEP * CHUNKS_N / T::THREADS; ++i) {
            const int d = threadIdx.x / CHUNKS_N + i * (T::THREADS / CHUNKS_N);
            const u32 position = first + d, image = layer.plane.divide(position);
            const u32 inside = position - image * layer.plane.divisor, p = layer.line.divide(inside);
            const int h = (int)(p * layer.stride) + shift_h;
            const int w = (int)((inside - p * layer.line.divisor) * layer.stride) + shift_w;
            const bool valid = column_exists && position < end && (u32)h < layer.h && (u32)w < layer.w;
            copy16(b + (d * T::N + threadIdx.x % CHUNKS_N * 4) * 4,
                   valid ? x + ((u64)(image * layer.h + h) * layer.w + w) * layer.x_row + channel : x, valid);
        }
    };

    Sums<T> sums;
    sums.clear();
    // Blocks of the first columns also add up dy.
    constexpr int BIASES = T::M / T::THREADS;
    const bool adds_bias = dbias && column_tile == 0;
    float bias[BIASES] = {};
    if (begin < end) load(stages, begin);
    u32 parity = 0;
    for (u32 first = begin; first < end; first += STEP) {
        wait_copies();
        __syncthreads();
        const float* stage = stages + parity * T::STAGE;
        if (adds_bias) {
#pragma unroll
            for (int d = 0; d < STEP; ++d)
#pragma unroll
                for (int i = 0; i < BIASES; ++i) bias[i] += stage[d * T::M + i * T::THREADS + threadIdx.x];
        }
        multiply_step_across<T>(sums, stage, [&]() {
            if (first + STEP < end) load(stages + (parity ^ 1) * T::STAGE, first + STEP);
        });
        parity ^= 1;
    }

    const bool whole = layer.parts == 1;
    const float factor = whole ? layer.factor : 1.0f;
    float* to = whole ? dw : partial + (u64)blockIdx.z * layer.k * columns;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int k = first_row + (i / 4) * (T::M / 2) + 4 * T::row() + i % 4;
#pragma unroll
        for (int quad = 0; quad < T::QUADS; ++quad) {
            const int at = first_column + T::column_of(quad);
            const float* v = sums.at[i] + 4 * quad;
            if (k < (int)layer.k && at < columns)
                store4(to + (u64)k * columns + at,
                       make_float4(v[0] * factor, v[1] * factor, v[2] * factor, v[3] * factor));
        }
    }
    if (!adds_bias) return;
#pragma unroll
    for (int i = 0; i < BIASES; ++i) {
        const u32 k = first_row + i * T::THREADS + threadIdx.x;
        if (k < layer.k) (whole ? dbias : partial_bias + blockIdx.z * layer.k)[k] = bias[i] * factor;
    }
}

#define BACKWARD_WEIGHT_ENTRY(M, N, WIDTH, BLOCKS)                                                                           \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS)                                          \
        conv2d_simt_backward_weight_##M##x##N(const float* x, const float* dy, float* dw, float* dbias,                \
                                              float* partial, float* partial_bias, SimtBackwardWeight parameters) {    \
        backward_weight<Tile<M, N, WIDTH>>(x, dy, dw, dbias, partial, partial_bias, parameters);                              \
    }

BACKWARD_WEIGHT_ENTRY(128, 128, 16, 2)
BACKWARD_WEIGHT_ENTRY(128, 64, 16, 4)
BACKWARD_WEIGHT_ENTRY(64, 128, 16, 4)
BACKWARD_WEIGHT_ENTRY(64, 64, 8, 8)

struct SimtCombine {
    // Of dw, and of dbias.
    u32 elements, k;
    u32 parts;
    float factor;
};

// Adds the parts of dw and, where `dbias` is not null, of dbias. Grid: x = (elements + k) / 1024 rounded up, 256
// threads, four elements each.
extern "C" __global__ void __launch_bounds__(256) conv2d_simt_backward_weight_combine(
    const float* partial, const float* partial_bias, float* dw, float* dbias, SimtCombine parameters) {
    const u32 elements = parameters.elements, parts = parameters.parts;
    const float factor = parameters.factor;
    u32 at = (blockIdx.x * 256 + threadIdx.x) * 4;
    const float* from = partial;
    float* to = dw;
    u32 size = elements;
    if (at >= elements) {
        at -= elements;
        from = partial_bias;
        to = dbias;
        size = parameters.k;
    }
    if (!to || at >= size) return;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (u32 part = 0; part < parts; ++part) sum = add4(sum, load4(from + (u64)part * size + at));
    store4(to + at, make_float4(sum.x * factor, sum.y * factor, sum.z * factor, sum.w * factor));
}

#endif
