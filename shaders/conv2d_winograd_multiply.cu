// Products of convolutions by Winograd's minimal filtering: 36 GEMMs in one launch. See conv2d_winograd.cu.
//
// Threads, tiles and shared memory: see conv2d_simt_tile.cu.
//
// Limits: channels are multiples of 4; fewer than 2³¹ tiles.

#if ELEMENT == 0 && TF32 == 0

struct WinogradMultiply {
    // Tiles of the chunk; channels of the products and of the transformed input.
    u32 tiles, columns, depth;
};

struct WinogradMultiplyWeight {
    u32 tiles, k, c;
    // Tiles of one part, a multiple of 16, and whether earlier chunks have left sums.
    u32 part_tiles, accumulate;
};

// products[f][tile][column] = Σ_depth input[f][tile][depth] · filter: [f][column][depth], or [f][depth][column] where
// the filter is transposed.
template <class T, bool TRANSPOSED>
__device__ __forceinline__ void winograd_multiply(const float* input, const float* filter, float* products,
                                                  const WinogradMultiply& parameters) {
    __shared__ __align__(16) float stages[2 * T::STAGE];
    constexpr int SLOTS = T::THREADS / 4;
    const int chunk = threadIdx.x % 4, slot = threadIdx.x / 4;
    const int columns = parameters.columns, depth = parameters.depth;
    const int column_tiles = (columns + T::N - 1) / T::N, row_tile = blockIdx.x / column_tiles;
    const int first_row = row_tile * T::M, first_column = (blockIdx.x - row_tile * column_tiles) * T::N;
    const int column = first_column + (TRANSPOSED ? 0 : column_in_row<T>(slot));
    const int row = first_row + slot, rows = parameters.tiles;
    int at = chunk * 4;
    const float* a = input + ((u64)blockIdx.y * rows + row) * depth + at;
    const float* b = filter + (u64)blockIdx.y * columns * depth +
                     (TRANSPOSED ? (u64)at * columns + column : (u64)column * depth + at);

    const auto load = [&](float* stage) {
        const u32 to_a = shared_address(stage), to_b = shared_address(stage + T::STAGE_A);
        const bool inside = at < depth;
#pragma unroll
        for (int i = 0; i < T::M / SLOTS; ++i) {
            const bool valid = inside && row + i * SLOTS < rows;
            copy16(to_a + chunk_along(slot + i * SLOTS, chunk), valid ? a + (u64)(i * SLOTS) * depth : input, valid);
        }
#pragma unroll
        for (int i = 0; i < T::N / SLOTS; ++i) {
            if (TRANSPOSED) {
                const int d = copied_depth<T>(slot, i), quad = copied_quad<T>(slot, i);
                const bool valid = inside && column + quad * 4 < columns;
                const float* from = valid ? b + d * columns + quad * 4 : filter;
                copy16(to_b + chunk_across<T>(chunk * 4 + d, quad) * 4, from, valid);
            } else {
                constexpr int TURN = SLOTS / T::COLUMNS;
                const int further = i * TURN % 4 + i * TURN / 4 * (4 * T::COLUMNS);
                const bool valid = inside && column + further < columns;
                copy16(to_b + chunk_along(slot + i * SLOTS, chunk), valid ? b + (u64)further * depth : filter, valid);
            }
        }
    };

    Sums<T> sums;
    sums.clear();
    load(stages);
    u32 parity = 0;
    for (int first = 0; first < depth; first += STEP) {
        wait_copies();
        __syncthreads();
        if (first + STEP < depth) {
            at += STEP;
            a += STEP;
            b += TRANSPOSED ? STEP * columns : STEP;
            load(stages + (parity ^ 1) * T::STAGE);
        }
        multiply_step<T, !TRANSPOSED>(sums, stages + parity * T::STAGE);
        parity ^= 1;
    }
    float* to = products + (u64)blockIdx.y * rows * columns;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int r = first_row + T::row() + i * T::ROWS;
#pragma unroll
        for (int quad = 0; quad < T::QUADS; ++quad) {
            const int c = first_column + T::column_of(quad);
            const float* v = sums.at[i] + 4 * quad;
            if (r < rows && c < columns) store4(to + (u64)r * columns + c, make_float4(v[0], v[1], v[2], v[3]));
        }
    }
}

// Grid: x = row tiles · column tiles, columns first, y = 36.
#define MULTIPLY_ENTRY(M, N, WIDTH, BLOCKS)                                                                           \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS)                                  \
        conv2d_winograd_multiply_##M##x##N(                                                                           \
        const float* input, const float* filter, float* products, WinogradMultiply parameters) {                      \
        winograd_multiply<Tile<M, N, WIDTH>, false>(input, filter, products, parameters);                             \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS)                                  \
        conv2d_winograd_multiply_transposed_##M##x##N(const float* input, const float* filter, float* products,       \
                                                      WinogradMultiply parameters) {                                  \
        winograd_multiply<Tile<M, N, WIDTH>, true>(input, filter, products, parameters);                              \
    }

MULTIPLY_ENTRY(128, 128, 16, 2)
MULTIPLY_ENTRY(128, 64, 16, 4)
MULTIPLY_ENTRY(64, 64, 8, 8)

// sums[part][f][k][c] (+)= Σ_tiles gradient[f][tile][k] · input[f][tile][c]
template <class T>
__device__ __forceinline__ void winograd_multiply_weight(const float* gradient, const float* input, float* sums_out,
                                                         const WinogradMultiplyWeight& parameters) {
    __shared__ __align__(16) float stages[2 * T::STAGE];
    constexpr int CHUNKS_M = T::M / 4, CHUNKS_N = T::N / 4;
    const int rows = parameters.k, columns = parameters.c, column_tiles = (columns + T::N - 1) / T::N;
    const int row_tile = blockIdx.x / column_tiles;
    const int first_row = row_tile * T::M, first_column = (blockIdx.x - row_tile * column_tiles) * T::N;
    const u32 begin = blockIdx.z * parameters.part_tiles, end = min(parameters.tiles, begin + parameters.part_tiles);
    const int row = first_row + threadIdx.x % CHUNKS_M * 4, column = first_column + threadIdx.x % CHUNKS_N * 4;
    const float* a = gradient + (u64)blockIdx.y * parameters.tiles * rows + row;
    const float* b = input + (u64)blockIdx.y * parameters.tiles * columns + column;

    const auto load = [&](float* stage, u32 first) {
        const u32 to_a = shared_address(stage), to_b = shared_address(stage + T::STAGE_A);
#pragma unroll
        for (int i = 0; i < STEP * CHUNKS_M / T::THREADS; ++i) {
            const int d = threadIdx.x / CHUNKS_M + i * (T::THREADS / CHUNKS_M);
            const bool valid = row < rows && first + d < end;
            const float* from = valid ? a + (u64)(first + d) * rows : gradient;
            copy16(to_a + (d * T::M + threadIdx.x % CHUNKS_M * 4) * 4, from, valid);
        }
#pragma unroll
        for (int i = 0; i < STEP * CHUNKS_N / T::THREADS; ++i) {
            const int d = threadIdx.x / CHUNKS_N + i * (T::THREADS / CHUNKS_N);
            const bool valid = column < columns && first + d < end;
            const float* from = valid ? b + (u64)(first + d) * columns : input;
            copy16(to_b + (d * T::N + threadIdx.x % CHUNKS_N * 4) * 4, from, valid);
        }
    };

    Sums<T> sums;
    sums.clear();
    if (begin < end) load(stages, begin);
    u32 parity = 0;
    for (u32 first = begin; first < end; first += STEP) {
        wait_copies();
        __syncthreads();
        if (first + STEP < end) load(stages + (parity ^ 1) * T::STAGE, first + STEP);
        multiply_step_across<T>(sums, stages + parity * T::STAGE);
        parity ^= 1;
    }
    float* to = sums_out + ((u64)blockIdx.z * 36 + blockIdx.y) * rows * columns;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int k = first_row + (i / 4) * (T::M / 2) + 4 * T::row() + i % 4;
#pragma unroll
        for (int quad = 0; quad < T::QUADS; ++quad) {
            const int c = first_column + T::column_of(quad);
            const float* v = sums.at[i] + 4 * quad;
            if (k >= rows || c >= columns) continue;
            float* place = to + (u64)k * columns + c;
            float4 old = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (parameters.accumulate) old = load4(place);
            store4(place, make_float4(v[0] + old.x, v[1] + old.y, v[2] + old.z, v[3] + old.w));
        }
    }
}

// Grid: x = row tiles · column tiles, columns first, y = 36, z = parts of the chunk.
#define MULTIPLY_WEIGHT_ENTRY(M, N, WIDTH, BLOCKS)                                                                    \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS)                                  \
        conv2d_winograd_multiply_weight_##M##x##N(const float* gradient, const float* input, float* sums,             \
                                                  WinogradMultiplyWeight parameters) {                                \
        winograd_multiply_weight<Tile<M, N, WIDTH>>(gradient, input, sums, parameters);                               \
    }

MULTIPLY_WEIGHT_ENTRY(128, 128, 16, 2)
MULTIPLY_WEIGHT_ENTRY(128, 64, 16, 4)
MULTIPLY_WEIGHT_ENTRY(64, 128, 16, 4)
MULTIPLY_WEIGHT_ENTRY(64, 64, 8, 8)

#endif
