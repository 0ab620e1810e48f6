// A strided convolution of a picture, 3 channels, made into one of stride 1 with many channels.
//
// Blocks of S * S pixels become channels: x'[n][i][j][(a * S + b) * 3 + c] = x[n][i * S + a - pad][j * S + b - pad][c],
// zero outside of x; likewise w'[k][i][j][(a * S + b) * 3 + c] = w[k][i * S + a][j * S + b][c], zero where i * S + a >=
// r or j * S + b >= s. A convolution of window (r, s), stride S and padding `pad` is then one of window (ceil(r / S),
// ceil(s / S)), stride 1 and no padding on x', whose map has p + ceil(r / S) - 1 rows and q + ceil(s / S) - 1 columns.
//
// A thread takes a part of a position of x', or one weight: blocks of 256 threads, as many as that needs; for x' one
// thread a position where S = 2, four where S = 4 (two with half precisions). No shared memory.

constexpr u32 COLORS = 3;

struct StemInput {
    // Of all images of x': n * map_h * map_w.
    u32 positions;
    u32 x_row;
    u32 h;
    u32 w;
    // Map of x'.
    u32 map_h;
    u32 map_w;
    u32 pad;
};

// The 32-bit words that hold the colors of a pixel.
#if ELEMENT == 0
constexpr u32 WORDS = 3;
#else
constexpr u32 WORDS = 2;
#endif

// A thread takes ROWS of the S rows of a block of pixels: as many as fill whole vectors.
template <u32 S, u32 ROWS>
__device__ __forceinline__ void stem_input(const element* x, element* made, const StemInput& params) {
    constexpr u32 VALUES = ROWS * S * COLORS;
    constexpr u32 VECTORS = (VALUES + VECTOR - 1) / VECTOR;
    static_assert(ROWS == S || VALUES % VECTOR == 0, "only the last vector of a position is padded");
    const u32 part = blockIdx.x * 256 + threadIdx.x;
    const u32 position = part / (S / ROWS);
    if (position >= params.positions) return;
    const u32 row = position / params.map_w;
    const u32 n = row / params.map_h;
    const u32 top = (row - n * params.map_h) * S + part % (S / ROWS) * ROWS - params.pad;
    const u32 left = (position - row * params.map_w) * S - params.pad;
    u32 words[ROWS * S][WORDS] = {};
#pragma unroll
    for (u32 a = 0; a < ROWS; ++a) {
#pragma unroll
        for (u32 b = 0; b < S; ++b) {
            const u32 h = top + a;
            const u32 w = left + b;
            if (h >= params.h || w >= params.w) continue;
            const element* const pixel = x + (u64)((n * params.h + h) * params.w + w) * params.x_row;
#if ELEMENT == 0
            const uint4 bits = *reinterpret_cast<const uint4*>(pixel);
            words[a * S + b][2] = bits.z;
#else
            const uint2 bits = *reinterpret_cast<const uint2*>(pixel);
#endif
            words[a * S + b][0] = bits.x;
            words[a * S + b][1] = bits.y;
        }
    }
    // Value number `place` of the thread's, as bits.
    const auto value = [&](u32 place) -> u32 {
        if (place >= VALUES) return 0;
        const u32 pixel = place / COLORS;
        const u32 color = place % COLORS;
#if ELEMENT == 0
        return words[pixel][color];
#else
        return words[pixel][color / 2] >> (16 * (color % 2)) & 0xffffu;
#endif
    };
    uint4* const to = reinterpret_cast<uint4*>(made) + (u64)part * VECTORS;
#pragma unroll
    for (u32 i = 0; i < VECTORS; ++i) {
        const u32 first = i * VECTOR;
#if ELEMENT == 0
        to[i] = make_uint4(value(first), value(first + 1), value(first + 2), value(first + 3));
#else
        const auto pair = [&](u32 place) { return value(place) | value(place + 1) << 16; };
        to[i] = make_uint4(pair(first), pair(first + 2), pair(first + 4), pair(first + 6));
#endif
    }
}

extern "C" __global__ void __launch_bounds__(256)
    conv2d_stem_input_2(const element* x, element* made, StemInput params) {
    stem_input<2, 2>(x, made, params);
}

extern "C" __global__ void __launch_bounds__(256)
    conv2d_stem_input_4(const element* x, element* made, StemInput params) {
    stem_input<4, ELEMENT == 0 ? 1 : 2>(x, made, params);
}

struct StemFilter {
    // Weights of the filter that is made: [k][made_r][made_s][made_c], or [k][r][s][c] in the other direction.
    u32 count;
    u32 r;
    u32 s;
    // With padding.
    u32 c;
    u32 made_r;
    u32 made_s;
    u32 made_c;
    u32 stride;
};

extern "C" __global__ void __launch_bounds__(256)
    conv2d_stem_filter(const element* w, element* made, StemFilter params) {
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i >= params.count) return;
    const u32 channel = i % params.made_c;
    const u32 tap = i / params.made_c;
    const u32 pixel = channel / COLORS;
    const u32 column = tap % params.made_s * params.stride + pixel % params.stride;
    const u32 row = tap / params.made_s % params.made_r * params.stride + pixel / params.stride;
    const u32 k = tap / params.made_s / params.made_r;
    const bool exists = pixel < params.stride * params.stride && row < params.r && column < params.s;
    const u32 from = ((k * params.r + row) * params.s + column) * params.c + channel % COLORS;
    made[i] = exists ? w[from] : (element)0;
}

// The gradient of w, of that of w'.
extern "C" __global__ void __launch_bounds__(256)
    conv2d_stem_filter_gradient(const float* made, float* dw, StemFilter params) {
    const u32 i = blockIdx.x * 256 + threadIdx.x;
    if (i >= params.count) return;
    const u32 color = i % params.c;
    const u32 tap = i / params.c;
    const u32 column = tap % params.s;
    const u32 row = tap / params.s % params.r;
    const u32 k = tap / params.s / params.r;
    const u32 pixel = row % params.stride * params.stride + column % params.stride;
    const u32 position = (k * params.made_r + row / params.stride) * params.made_s + column / params.stride;
    dw[i] = color < COLORS ? made[position * params.made_c + pixel * COLORS + color] : 0.0f;
}
