// Convolutions at stride 1 by Winograd's minimal filtering, in f32 without tensor cores: 36 products a channel and tile.
//
//   F(4x4, 3x3): 3x3 windows, tiles of 4x4 outputs, 144 products otherwise
//   F(2x2, 5x5): 5x5 windows, tiles of 2x2 outputs, 100 products otherwise
//
//   y = Aᵀ [ Σ_c (G g Gᵀ) ∘ (Bᵀ d B) ] A        d: 6x6 tile of the input, g: filter, ∘ elementwise
//
// and its transpose for the gradient of a 3x3 filter: dg = Gᵀ [ Σ_tiles (A dy Aᵀ) ∘ (Bᵀ d B) ] G. The gradient of the
// input is the forward pass of dy with flipped, transposed filters and padding `window - 1 - pad`.
//
// Source: Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks", 2016. The points are 0, ±3/4, ±3/2 and ∞,
// whose coefficients are exact; the normalized error over 256 channels is 1.2e-6 (2.4e-6 with the usual 0, ±1, ±2, ∞).
//
// Steps: transform the filter; for chunks of consecutive tiles, as many as a workspace holds: transform the input,
// multiply 36 matrices, transform the output. Layouts, f = 6·i + j numbering the products of a tile:
//   filter  [f][k][c]   input  [f][tile of the chunk][c]   products  [f][tile of the chunk][k]
//
// conv2d_winograd_points.cu holds what is done along one side, this file the transforms of tiles,
// conv2d_winograd_multiply.cu the products. One thread transforms a tile of two channels, channels first.
//
// Limits: channels in memory are multiples of 4; fewer than 2³¹ tiles, and elements in one image of a map.

#if ELEMENT == 0 && TF32 == 0

struct WinogradChunk {
    // The map: input of the input transform, output of the output transform.
    u32 h, w, row, channels;
    // Zeros above and left of the input; 0 for the output.
    u32 pad;
    // Tiles along the map, the chunk's first one and their number; outputs along a side of a tile.
    u32 tiles_h, tiles_w, first_tile, tiles, side;
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

__device__ __forceinline__ float2 load2(const float* from) { return *reinterpret_cast<const float2*>(from); }

__device__ __forceinline__ void store2(float* to, float2 value) { *reinterpret_cast<float2*>(to) = value; }

// Filter [k][TAPS][TAPS][c] to [f][k][c]; flipped where it is meant for the gradient of the input.
template <int TAPS>
__device__ __forceinline__ void filter(const float* w, float* transformed, const WinogradFilter& parameters) {
    const u32 k = parameters.k, c = parameters.c, flipped = parameters.flipped;
    const u32 index = blockIdx.x * 256 + threadIdx.x;
    if (index >= k * c / 2) return;
    const u32 row = index / (c / 2), channel = (index - row * (c / 2)) * 2;
    const float* from = w + (u64)row * (TAPS * TAPS) * c + channel;
    float2 columns[TAPS][6];
#pragma unroll
    for (int s = 0; s < TAPS; ++s) {
        float2 v[TAPS];
#pragma unroll
        for (int r = 0; r < TAPS; ++r) {
            const int tap = r * TAPS + s;
            v[r] = load2(from + (flipped ? TAPS * TAPS - 1 - tap : tap) * c);
        }
        transform_filter(v, columns[s]);
    }
    float* to = transformed + (u64)row * c + channel;
    const u64 size = (u64)k * c;
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        float2 v[TAPS], u[6];
#pragma unroll
        for (int s = 0; s < TAPS; ++s) v[s] = columns[s][i];
        transform_filter(v, u);
#pragma unroll
        for (int j = 0; j < 6; ++j) store2(to + (i * 6 + j) * size, u[j]);
    }
}

// Grid: x = k · c / 512 rounded up. 256 threads.
#define FILTER(NAME, TAPS)                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) NAME(const float* w, float* transformed,                        \
                                                           WinogradFilter parameters) {                               \
        filter<TAPS>(w, transformed, parameters);                                                                     \
    }

FILTER(conv2d_winograd_filter_3x3, 3)
FILTER(conv2d_winograd_filter_5x5, 5)

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
    at.h = (int)((line - image * chunk.tiles_h) * chunk.side) - (int)chunk.pad;
    at.w = (int)((number - line * chunk.tiles_w) * chunk.side) - (int)chunk.pad;
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
            const bool inside = (u32)h < chunk.h && (u32)w < chunk.w;
            v[i][j] = make_float2(0.0f, 0.0f);
            if (inside) v[i][j] = load2(x + at.image + (h * (int)chunk.w + w) * (int)chunk.row);
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
            const bool inside = (u32)h < chunk.h && (u32)w < chunk.w;
            v[i] = make_float2(0.0f, 0.0f);
            if (inside) v[i] = load2(dy + at.image + (h * (int)chunk.w + w) * (int)chunk.row);
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

// One tile of the output from its products.
template <int SIDE>
__device__ __forceinline__ void output_tile(const float* products, const WinogradChunk& chunk, const TilePosition& at,
                                            float2 (&y)[SIDE][SIDE]) {
    const float* from = products + (u64)at.tile * chunk.channels + at.channel;
    const u64 size = (u64)chunk.tiles * chunk.channels;
    float2 columns[6][SIDE];
#pragma unroll
    for (int j = 0; j < 6; ++j) {
        float2 v[6];
#pragma unroll
        for (int i = 0; i < 6; ++i) v[i] = load2(from + (i * 6 + j) * size);
        transform_output(v, columns[j]);
    }
#pragma unroll
    for (int i = 0; i < SIDE; ++i) {
        const float2 v[6] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i], columns[4][i], columns[5][i]};
        transform_output(v, y[i]);
    }
}

// Calls finish(sum, position) for each output of this thread's tile that the map has.
template <int SIDE, class Finish>
__device__ __forceinline__ void for_each_output(const float* products, const WinogradChunk& chunk,
                                                const TilePosition& at, Finish finish) {
    float2 sums[SIDE][SIDE];
    output_tile(products, chunk, at, sums);
    const u64 first = at.image - at.channel, image = chunk.row ? first / chunk.row : 0;
#pragma unroll
    for (int i = 0; i < SIDE; ++i)
#pragma unroll
        for (int j = 0; j < SIDE; ++j) {
            const int h = at.h + i, w = at.w + j;
            if ((u32)h < chunk.h && (u32)w < chunk.w) finish(sums[i][j], image + h * (int)chunk.w + w);
        }
}

// y = relu(scale · sum + bias + residual); nothing where a pointer is null.
template <int SIDE>
__device__ __forceinline__ void forward_output(const float* products, const float* scale, const float* bias,
                                               const float* residual, float* y, const WinogradForward& parameters) {
    const WinogradChunk& chunk = parameters.chunk;
    const TilePosition at = tile_position(chunk);
    if (!at.exists) return;
    const float2 factor = scale ? load2(scale + at.channel) : make_float2(1.0f, 1.0f);
    const float2 summand = bias ? load2(bias + at.channel) : make_float2(0.0f, 0.0f);
    for_each_output<SIDE>(products, chunk, at, [&](float2 sum, u64 position) {
        float2 v = summand;
        if (residual) v = v + load2(residual + position * parameters.residual_row + at.channel);
        v = make_float2(fmaf(sum.x, factor.x, v.x), fmaf(sum.y, factor.y, v.y));
        if (parameters.relu) v = make_float2(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f));
        store2(y + position * chunk.row + at.channel, v);
    });
}

// dx = scale · sum (+ dx), zero where the mask is not positive.
template <int SIDE>
__device__ __forceinline__ void backward_data_output(const float* products, const float* mask, float* dx,
                                                     const WinogradBackwardData& parameters) {
    const WinogradChunk& chunk = parameters.chunk;
    const TilePosition at = tile_position(chunk);
    if (!at.exists) return;
    for_each_output<SIDE>(products, chunk, at, [&](float2 sum, u64 position) {
        float* to = dx + position * chunk.row + at.channel;
        float2 v = parameters.accumulate ? load2(to) : make_float2(0.0f, 0.0f);
        v = fma2(parameters.scale, sum, v);
        if (mask) {
            const float2 kept = load2(mask + position * parameters.mask_row + at.channel);
            v = make_float2(kept.x > 0.0f ? v.x : 0.0f, kept.y > 0.0f ? v.y : 0.0f);
        }
        store2(to, v);
    });
}

// Grid: x = tiles · channels / 512 rounded up. 256 threads.
#define OUTPUT(TAPS, SIDE)                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) conv2d_winograd_forward_output_##TAPS(                          \
        const float* products, const float* scale, const float* bias, const float* residual, float* y,                \
        WinogradForward parameters) {                                                                                 \
        forward_output<SIDE>(products, scale, bias, residual, y, parameters);                                         \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256) conv2d_winograd_backward_data_output_##TAPS(                    \
        const float* products, const float* mask, float* dx, WinogradBackwardData parameters) {                       \
        backward_data_output<SIDE>(products, mask, dx, parameters);                                                   \
    }

OUTPUT(3x3, 4)
OUTPUT(5x5, 2)

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
