// Convolutions of 3x3 windows at stride 1 by Winograd's minimal filtering F(4x4, 3x3), in f32 without tensor cores: each
// 4x4 tile of the output takes 36 products a channel instead of 144.
//
//   y = Aᵀ [ Σ_c (G g Gᵀ) ∘ (Bᵀ d B) ] A        d: 6x6 tile of the input, g: 3x3 filter, ∘ elementwise
//
// and its transpose for the gradient of the filter: dg = Gᵀ [ Σ_tiles (A dy Aᵀ) ∘ (Bᵀ d B) ] G. The gradient of the
// input is the forward pass of dy with flipped, transposed filters and padding 2 − pad.
//
// Source: Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks", 2016. The points are 0, ±3/4, ±3/2 and ∞,
// whose coefficients are exact; the normalized error over 256 channels is 1.2e-6 (2.4e-6 with the usual 0, ±1, ±2, ∞).
//
// Steps: transform the filter; for chunks of consecutive tiles, sized so that what passes between the kernels stays in
// the L2 cache: transform the input, multiply 36 matrices, transform the output. Layouts, f = 6·i + j numbering the
// products of a tile:
//   filter  [f][k][c]   input  [f][tile of the chunk][c]   products  [f][tile of the chunk][k]
//
// Transforms: one thread a tile and two channels, channels first. Products: tiles and shared memory as
// conv2d_simt_tile.cu.
//
// Limits: channels in memory are multiples of 4; fewer than 2³¹ tiles, and elements in one image of a map.

#if ELEMENT == 0 && TF32 == 0

struct WinogradChunk {
    // The map: input of the input transform, output of the output transform.
    u32 h, w, row, channels;
    // Zeros above and left of the input; 0 for the output.
    u32 pad;
    // Tiles along the map, the chunk's first one and their number.
    u32 tiles_h, tiles_w, first_tile, tiles;
};

struct WinogradForward {
    WinogradChunk chunk;
    u32 residual_row, relu;
};

struct WinogradBackwardData {
    WinogradChunk chunk;
    u32 mask_row, accumulate;
    float scale;
};

struct WinogradFilter {
    u32 k, c;
    // For the gradient of the input.
    u32 flipped;
};

struct WinogradFilterGradient {
    u32 k, c, parts;
    float factor;
};

struct WinogradMultiply {
    // Tiles of the chunk; channels of the products and of the transformed input.
    u32 tiles, columns, depth;
};

struct WinogradMultiplyWeight {
    u32 tiles, k, c;
    // Tiles of one part, a multiple of 16, and whether earlier chunks have left sums.
    u32 part_tiles, accumulate;
};

__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ float2 operator*(float a, float2 b) { return make_float2(a * b.x, a * b.y); }
// a · b + c
__device__ __forceinline__ float2 fma2(float a, float2 b, float2 c) {
    return make_float2(fmaf(a, b.x, c.x), fmaf(a, b.y, c.y));
}

// The points ±P1, ±P2.
#define P1 0.75f
#define P2 1.5f

// Bᵀ v
__device__ __forceinline__ void transform_input(float2& v0, float2& v1, float2& v2, float2& v3, float2& v4, float2& v5) {
    const float2 even1 = fma2(-P2 * P2, v2, v4), odd1 = P1 * fma2(-P2 * P2, v1, v3);
    const float2 even2 = fma2(-P1 * P1, v2, v4), odd2 = P2 * fma2(-P1 * P1, v1, v3);
    v0 = fma2(P1 * P1 * P2 * P2, v0, fma2(-P1 * P1 - P2 * P2, v2, v4));
    v5 = fma2(P1 * P1 * P2 * P2, v1, fma2(-P1 * P1 - P2 * P2, v3, v5));
    v1 = even1 + odd1;
    v2 = even1 - odd1;
    v3 = even2 + odd2;
    v4 = even2 - odd2;
}

// Aᵀ v
__device__ __forceinline__ void transform_output(const float2 (&v)[6], float2& y0, float2& y1, float2& y2, float2& y3) {
    const float2 even1 = v[1] + v[2], odd1 = v[1] - v[2], even2 = v[3] + v[4], odd2 = v[3] - v[4];
    y0 = v[0] + even1 + even2;
    y1 = fma2(P1, odd1, P2 * odd2);
    y2 = fma2(P1 * P1, even1, P2 * P2 * even2);
    y3 = fma2(P1 * P1 * P1, odd1, fma2(P2 * P2 * P2, odd2, v[5]));
}

// A v
__device__ __forceinline__ void transform_gradient(float2 v0, float2 v1, float2 v2, float2 v3, float2 (&y)[6]) {
    const float2 even1 = fma2(P1 * P1, v2, v0), odd1 = P1 * fma2(P1 * P1, v3, v1);
    const float2 even2 = fma2(P2 * P2, v2, v0), odd2 = P2 * fma2(P2 * P2, v3, v1);
    y[0] = v0;
    y[1] = even1 + odd1;
    y[2] = even1 - odd1;
    y[3] = even2 + odd2;
    y[4] = even2 - odd2;
    y[5] = v3;
}

// Factors of G's rows: reciprocals of the products of the differences of a point to all others.
#define G0 (1.0f / (P1 * P1 * P2 * P2))
#define G1 (0.5f / (P1 * P1 * (P1 * P1 - P2 * P2)))
#define G2 (0.5f / (P2 * P2 * (P2 * P2 - P1 * P1)))

// G v
__device__ __forceinline__ void transform_filter(float2 v0, float2 v1, float2 v2, float2 (&u)[6]) {
    const float2 even1 = G1 * fma2(P1 * P1, v2, v0), even2 = G2 * fma2(P2 * P2, v2, v0);
    u[0] = G0 * v0;
    u[1] = fma2(G1 * P1, v1, even1);
    u[2] = fma2(-G1 * P1, v1, even1);
    u[3] = fma2(G2 * P2, v1, even2);
    u[4] = fma2(-G2 * P2, v1, even2);
    u[5] = v2;
}

// Gᵀ u
__device__ __forceinline__ void transform_filter_gradient(const float2 (&u)[6], float2& v0, float2& v1, float2& v2) {
    const float2 even1 = G1 * (u[1] + u[2]), even2 = G2 * (u[3] + u[4]);
    v0 = fma2(G0, u[0], even1 + even2);
    v1 = fma2(G1 * P1, u[1] - u[2], G2 * P2 * (u[3] - u[4]));
    v2 = fma2(P1 * P1, even1, fma2(P2 * P2, even2, u[5]));
}

__device__ __forceinline__ float2 load2(const float* from) { return *reinterpret_cast<const float2*>(from); }

__device__ __forceinline__ void store2(float* to, float2 value) { *reinterpret_cast<float2*>(to) = value; }

// Filter [k][3][3][c] to [f][k][c]; flipped where it is meant for the gradient of the input.
// Grid: x = k · c / 512 rounded up. 256 threads.
extern "C" __global__ void __launch_bounds__(256) conv2d_winograd_filter(const float* w, float* transformed,
                                                                         WinogradFilter parameters) {
    const u32 k = parameters.k, c = parameters.c, flipped = parameters.flipped;
    const u32 index = blockIdx.x * 256 + threadIdx.x;
    if (index >= k * c / 2) return;
    const u32 row = index / (c / 2), channel = (index - row * (c / 2)) * 2;
    const float* from = w + (u64)row * 9 * c + channel;
    float2 columns[3][6];
#pragma unroll
    for (int s = 0; s < 3; ++s) {
        float2 v[3];
#pragma unroll
        for (int r = 0; r < 3; ++r) v[r] = load2(from + (flipped ? (2 - r) * 3 + 2 - s : r * 3 + s) * c);
        transform_filter(v[0], v[1], v[2], columns[s]);
    }
    float* to = transformed + (u64)row * c + channel;
    const u64 size = (u64)k * c;
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        float2 u[6];
        transform_filter(columns[0][i], columns[1][i], columns[2][i], u);
#pragma unroll
        for (int j = 0; j < 6; ++j) store2(to + (i * 6 + j) * size, u[j]);
    }
}

// Where a thread of a transform works.
struct TilePosition {
    bool exists;
    u32 tile, channel;
    // First position of the tile in the map, padding included, and the first element of the image at the channel.
    int h, w;
    u64 image;
};

__device__ __forceinline__ TilePosition tile_position(const WinogradChunk& chunk) {
    TilePosition at;
    const u32 pairs = chunk.channels / 2, index = blockIdx.x * 256 + threadIdx.x;
    at.tile = index / pairs;
    at.channel = (index - at.tile * pairs) * 2;
    at.exists = at.tile < chunk.tiles;
    const u32 number = chunk.first_tile + at.tile, line = number / chunk.tiles_w, image = line / chunk.tiles_h;
    at.h = (int)(line - image * chunk.tiles_h) * 4 - (int)chunk.pad;
    at.w = (int)(number - line * chunk.tiles_w) * 4 - (int)chunk.pad;
    at.image = (u64)image * chunk.h * chunk.w * chunk.row + at.channel;
    return at;
}

// Map to [f][tile][c]. Grid: x = tiles · channels / 512 rounded up. 256 threads.
extern "C" __global__ void __launch_bounds__(256) conv2d_winograd_input(const float* x, float* transformed,
                                                                        WinogradChunk chunk) {
    const TilePosition at = tile_position(chunk);
    if (!at.exists) return;
    float2 v[6][6];
#pragma unroll
    for (int i = 0; i < 6; ++i)
#pragma unroll
        for (int j = 0; j < 6; ++j) {
            const int h = at.h + i, w = at.w + j;
            v[i][j] = make_float2(0.0f, 0.0f);
            if ((u32)h < chunk.h && (u32)w < chunk.w) v[i][j] = load2(x + at.image + (h * (int)chunk.w + w) * (int)chunk.row);
        }
#pragma unroll
    for (int j = 0; j < 6; ++j) transform_input(v[0][j], v[1][j], v[2][j], v[3][j], v[4][j], v[5][j]);
    float* to = transformed + (u64)at.tile * chunk.channels + at.channel;
    const u64 size = (u64)chunk.tiles * chunk.channels;
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        transform_input(v[i][0], v[i][1], v[i][2], v[i][3], v[i][4], v[i][5]);
#pragma unroll
        for (int j = 0; j < 6; ++j) store2(to + (i * 6 + j) * size, v[i][j]);
    }
}

// Gradient of the output to [f][tile][k], for the gradient of the filter. Grid and threads as above.
extern "C" __global__ void __launch_bounds__(256) conv2d_winograd_gradient(const float* dy, float* transformed,
                                                                           WinogradChunk chunk) {
    const TilePosition at = tile_position(chunk);
    if (!at.exists) return;
    float2 columns[4][6];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        float2 v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int h = at.h + i, w = at.w + j;
            v[i] = make_float2(0.0f, 0.0f);
            if ((u32)h < chunk.h && (u32)w < chunk.w) v[i] = load2(dy + at.image + (h * (int)chunk.w + w) * (int)chunk.row);
        }
        transform_gradient(v[0], v[1], v[2], v[3], columns[j]);
    }
    float* to = transformed + (u64)at.tile * chunk.channels + at.channel;
    const u64 size = (u64)chunk.tiles * chunk.channels;
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        float2 u[6];
        transform_gradient(columns[0][i], columns[1][i], columns[2][i], columns[3][i], u);
#pragma unroll
        for (int j = 0; j < 6; ++j) store2(to + (i * 6 + j) * size, u[j]);
    }
}

// One 4x4 tile of the output from its products.
__device__ __forceinline__ void output_tile(const float* products, const WinogradChunk& chunk, const TilePosition& at,
                                            float2 (&y)[4][4]) {
    const float* from = products + (u64)at.tile * chunk.channels + at.channel;
    const u64 size = (u64)chunk.tiles * chunk.channels;
    float2 columns[6][4];
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        float2 v[6];
#pragma unroll
        for (int i = 0; i < 6; ++i) v[i] = load2(from + (i * 6 + j) * size);
        transform_output(v, columns[j][0], columns[j][1], columns[j][2], columns[j][3]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 v[6] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i], columns[4][i], columns[5][i]};
        transform_output(v, y[i][0], y[i][1], y[i][2], y[i][3]);
    }
}

// y = relu(scale · sum + bias + residual); nothing where a pointer is null. Grid and threads as above.
extern "C" __global__ void __launch_bounds__(256) conv2d_winograd_forward_output(
    const float* products, const float* scale, const float* bias, const float* residual, float* y,
    WinogradForward parameters) {
    const WinogradChunk& chunk = parameters.chunk;
    const TilePosition at = tile_position(chunk);
    if (!at.exists) return;
    float2 sums[4][4];
    output_tile(products, chunk, at, sums);
    const float2 factor = scale ? load2(scale + at.channel) : make_float2(1.0f, 1.0f);
    const float2 summand = bias ? load2(bias + at.channel) : make_float2(0.0f, 0.0f);
    const u64 first = at.image - at.channel, image = chunk.row ? first / chunk.row : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int h = at.h + i, w = at.w + j;
            if ((u32)h >= chunk.h || (u32)w >= chunk.w) continue;
            const u64 position = image + h * (int)chunk.w + w;
            float2 v = summand;
            if (residual) v = v + load2(residual + position * parameters.residual_row + at.channel);
            v = make_float2(fmaf(sums[i][j].x, factor.x, v.x), fmaf(sums[i][j].y, factor.y, v.y));
            if (parameters.relu) v = make_float2(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f));
            store2(y + position * chunk.row + at.channel, v);
        }
}

// dx = scale · sum (+ dx), zero where the mask is not positive. Grid and threads as above.
extern "C" __global__ void __launch_bounds__(256) conv2d_winograd_backward_data_output(
    const float* products, const float* mask, float* dx, WinogradBackwardData parameters) {
    const WinogradChunk& chunk = parameters.chunk;
    const TilePosition at = tile_position(chunk);
    if (!at.exists) return;
    float2 sums[4][4];
    output_tile(products, chunk, at, sums);
    const u64 first = at.image - at.channel, image = chunk.row ? first / chunk.row : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int h = at.h + i, w = at.w + j;
            if ((u32)h >= chunk.h || (u32)w >= chunk.w) continue;
            const u64 position = image + h * (int)chunk.w + w;
            float* to = dx + position * chunk.row + at.channel;
            float2 v = parameters.accumulate ? load2(to) : make_float2(0.0f, 0.0f);
            v = fma2(parameters.scale, sums[i][j], v);
            if (mask) {
                const float2 kept = load2(mask + position * parameters.mask_row + at.channel);
                v = make_float2(kept.x > 0.0f ? v.x : 0.0f, kept.y > 0.0f ? v.y : 0.0f);
            }
            store2(to, v);
        }
}

// products[f][tile][column] = Σ_depth input[f][tile][depth] · filter: [f][column][depth], or [f][depth][column] where
// the filter is transposed.
template <class T, bool TRANSPOSED>
__device__ __forceinline__ void winograd_multiply(const float* input, const float* filter, float* products,
                                                  const WinogradMultiply& parameters) {
    __shared__ float stages[2 * T::STAGE];
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
                copy16(to_b + chunk_across<T>(chunk * 4 + d, quad) * 4, valid ? b + d * columns + quad * 4 : filter, valid);
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
        multiply_step<T, !TRANSPOSED>(sums, stages + parity * T::STAGE, [&]() {
            if (first + STEP >= depth) return;
            at += STEP;
            a += STEP;
            b += TRANSPOSED ? STEP * columns : STEP;
            load(stages + (parity ^ 1) * T::STAGE);
        });
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
#define MULTIPLY_ENTRY(M, N, WIDTH, BLOCKS)                                                                                  \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS) conv2d_winograd_multiply_##M##x##N(       \
        const float* input, const float* filter, float* products, WinogradMultiply parameters) {                       \
        winograd_multiply<Tile<M, N, WIDTH>, false>(input, filter, products, parameters);                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS)                                          \
        conv2d_winograd_multiply_transposed_##M##x##N(const float* input, const float* filter, float* products,        \
                                                      WinogradMultiply parameters) {                                   \
        winograd_multiply<Tile<M, N, WIDTH>, true>(input, filter, products, parameters);                                      \
    }

MULTIPLY_ENTRY(128, 128, 16, 2)
MULTIPLY_ENTRY(128, 64, 16, 4)
MULTIPLY_ENTRY(64, 64, 8, 8)

// sums[part][f][k][c] (+)= Σ_tiles gradient[f][tile][k] · input[f][tile][c]
template <class T>
__device__ __forceinline__ void winograd_multiply_weight(const float* gradient, const float* input, float* sums_out,
                                                         const WinogradMultiplyWeight& parameters) {
    __shared__ float stages[2 * T::STAGE];
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
            copy16(to_a + (d * T::M + threadIdx.x % CHUNKS_M * 4) * 4, valid ? a + (u64)(first + d) * rows : gradient, valid);
        }
#pragma unroll
        for (int i = 0; i < STEP * CHUNKS_N / T::THREADS; ++i) {
            const int d = threadIdx.x / CHUNKS_N + i * (T::THREADS / CHUNKS_N);
            const bool valid = column < columns && first + d < end;
            copy16(to_b + (d * T::N + threadIdx.x % CHUNKS_N * 4) * 4, valid ? b + (u64)(first + d) * columns : input, valid);
        }
    };

    Sums<T> sums;
    sums.clear();
    if (begin < end) load(stages, begin);
    u32 parity = 0;
    for (u32 first = begin; first < end; first += STEP) {
        wait_copies();
        __syncthreads();
        multiply_step_across<T>(sums, stages + parity * T::STAGE, [&]() {
            if (first + STEP < end) load(stages + (parity ^ 1) * T::STAGE, first + STEP);
        });
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
#define MULTIPLY_WEIGHT_ENTRY(M, N, WIDTH, BLOCKS)                                                                           \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS)                                          \
        conv2d_winograd_multiply_weight_##M##x##N(const float* gradient, const float* input, float* sums,              \
                                                  WinogradMultiplyWeight parameters) {                                 \
        winograd_multiply_weight<Tile<M, N, WIDTH>>(gradient, input, sums, parameters);                                       \
    }

MULTIPLY_WEIGHT_ENTRY(128, 128, 16, 2)
MULTIPLY_WEIGHT_ENTRY(128, 64, 16, 4)
MULTIPLY_WEIGHT_ENTRY(64, 128, 16, 4)
MULTIPLY_WEIGHT_ENTRY(64, 64, 8, 8)

// dw[k][3][3][c] = factor · Gᵀ (Σ_parts sums) G. Grid: x = k · c / 512 rounded up. 256 threads.
extern "C" __global__ void __launch_bounds__(256) conv2d_winograd_filter_gradient(const float* sums, float* dw,
                                                                                  WinogradFilterGradient parameters) {
    const u32 k = parameters.k, c = parameters.c, parts = parameters.parts;
    const float factor = parameters.factor;
    const u32 index = blockIdx.x * 256 + threadIdx.x;
    if (index >= k * c / 2) return;
    const u32 row = index / (c / 2), channel = (index - row * (c / 2)) * 2;
    const u64 size = (u64)k * c;
    const float* from = sums + (u64)row * c + channel;
    float2 columns[6][3];
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        float2 u[6];
#pragma unroll
        for (int i = 0; i < 6; ++i) u[i] = make_float2(0.0f, 0.0f);
        for (u32 part = 0; part < parts; ++part)
#pragma unroll
            for (int i = 0; i < 6; ++i) u[i] = u[i] + load2(from + (part * 36 + i * 6 + j) * size);
        transform_filter_gradient(u, columns[j][0], columns[j][1], columns[j][2]);
    }
    float* to = dw + (u64)row * 9 * c + channel;
#pragma unroll
    for (int r = 0; r < 3; ++r) {
        const float2 u[6] = {columns[0][r], columns[1][r], columns[2][r], columns[3][r], columns[4][r], columns[5][r]};
        float2 v[3];
        transform_filter_gradient(u, v[0], v[1], v[2]);
#pragma unroll
        for (int s = 0; s < 3; ++s) store2(to + (r * 3 + s) * c, factor * v[s]);
    }
}

#endif
