// Gradients of a convolution's filter and bias on tensor cores, f32:
//   dw[k][r][s][c] = factor * sum over (n, p, q) of dy[n,p,q,k] * x[n, p*stride + r - pad, q*stride + s - pad, c],
//   dbias[k] = factor * sum of dy.
// A GEMM with rows k and columns (r, s, c); the reduction runs over output positions and is cut into parts, each of
// which leaves its sums in `partials` ([parts][dw and, behind it, dbias]) for `conv2d_backward_weight_combine` to add
// in order. A single part writes the gradients itself.
//
// Threads: grid.x = row tiles * column tiles, rows first; grid.y = parts. A thread brings the same column chunk, thus
// the same tap, in every step; where a step's positions lie is worked out once a block, ahead of time.
// Shared memory (dynamic): STAGES * (M + N) * CHUNKS * 16 + 32 * DEPTH bytes.
// Limits: windows up to 15 a side, fewer than 2^31 positions, tensors up to 32 GiB.

#ifdef TENSOR_CORES

struct Params {
    // x: its map, and the chunks from one position to the next.
    u32 height, width, row_chunks, channels;
    // dy: its map, the chunks from one position to the next, and channels.
    u32 positions, dy_row_chunks, k;
    u32 window_height, window_width, stride, pad;
    // Divisors by the positions of dy's map, by its width, by chunks of x's channels, and by the window's width.
    Divisor by_map, by_width, by_channels, by_window;
    u32 splits;
    float factor;
};

// A position of dy in x: the chunk of its window's first tap, and bits of the taps inside of the map, rows of the
// window in the low half.
struct Source {
    int offset;
    u32 taps;
};

template <class T>
struct WeightLoader {
    static constexpr int A_WIDTH = T::M / VECTOR, B_WIDTH = T::N / VECTOR;
    static constexpr int A_STEP = T::THREADS / A_WIDTH, B_STEP = T::THREADS / B_WIDTH;
    static_assert(T::THREADS % A_WIDTH == 0 && T::THREADS % B_WIDTH == 0 && T::DEPTH % B_STEP == 0, "whole rows");
    const Params& params;
    // Sources are found STAGES - 1 steps before they are used, a barrier of the mainloop in between.
    static constexpr int AHEAD = T::STAGES - 1, SLOTS = 4;
    static_assert(2 * AHEAD <= SLOTS, "no slot is written before all have read it");
    Source* sources;
    const element *dy, *x;
    bool has_row;
    u32 bits;  // of the tap in a source's; bit 15 of either half where there is none

    __device__ __forceinline__ WeightLoader(const Params& params, const element* dy_, const element* x_, u32 row,
                                            u32 column)
        : params(params) {
        sources = reinterpret_cast<Source*>(shared_bytes + T::STAGES * T::STAGE_BYTES);
        const u32 k = row / VECTOR + threadIdx.x % A_WIDTH, chunk = column / VECTOR + threadIdx.x % B_WIDTH;
        has_row = k < params.k / VECTOR;
        dy = dy_ + (u64)k * VECTOR;
        const u32 tap = params.by_channels.divide(chunk), channel = chunk - tap * params.by_channels.divisor;
        const u32 r = params.by_window.divide(tap), s = tap - r * params.window_width;
        bits = r < params.window_height ? 1u << r | 0x10000u << s : 0x80008000u;
        x = x_ + ((long long)(r * params.width + s) * params.row_chunks + channel) * VECTOR;
    }

    // Works out where a step's positions lie.
    __device__ __forceinline__ void find(u32 step) const {
        if (threadIdx.x >= T::DEPTH) return;
        const u32 at = step * T::DEPTH + threadIdx.x;
        const u32 n = params.by_map.divide(at), in_map = at - n * params.by_map.divisor;
        const u32 p = params.by_width.divide(in_map), q = in_map - p * params.by_width.divisor;
        const int h = (int)(p * params.stride) - (int)params.pad, w = (int)(q * params.stride) - (int)params.pad;
        Source source = {(((int)n * (int)params.height + h) * (int)params.width + w) * (int)params.row_chunks, 0};
        if (at < params.positions)
            source.taps = inside(h, params.window_height, params.height) |
                          inside(w, params.window_width, params.width) << 16;
        sources[step % SLOTS * T::DEPTH + threadIdx.x] = source;
    }

    // Bits of `count` taps from `from` on that lie inside of a map's side.
    static __device__ __forceinline__ u32 inside(int from, u32 count, u32 side) {
        const int end = min(max((int)side - from, 0), (int)count);
        return (1u << end) - (1u << min(max(-from, 0), end));
    }

    __device__ __forceinline__ void a(u32 step, u32 stage) const {
        const u32 first = threadIdx.x / A_WIDTH, end = has_row ? params.positions : 0;
        const element* from = dy + (u64)(step * T::DEPTH + first) * params.dy_row_chunks * VECTOR;
#pragma unroll
        for (int i = 0; i < T::A_LOADS; ++i) {
            const u32 row = first + i * A_STEP;
            if (T::DEPTH % A_STEP != 0 && row >= T::DEPTH) break;
            copy_chunk(stage + wide_place<A_WIDTH>(row, threadIdx.x % A_WIDTH),
                       from + (u64)(i * A_STEP * params.dy_row_chunks) * VECTOR, step * T::DEPTH + row < end);
        }
    }

    __device__ __forceinline__ void b(u32 step, u32 stage) const {
        const u32 b_chunk = threadIdx.x % B_WIDTH;
#pragma unroll
        for (int i = 0; i < T::B_LOADS; ++i) {
            const u32 row = threadIdx.x / B_WIDTH + i * B_STEP;
            const Source source = sources[step % SLOTS * T::DEPTH + row];
            copy_chunk(stage + T::A_BYTES + wide_place<B_WIDTH>(row, b_chunk), x + (long long)source.offset * VECTOR,
                       (source.taps & bits) == bits);
        }
        find(step + AHEAD);
    }
};

// Sums of dy by a product with ones, in one warp of those that share rows.
template <class T, bool BIAS>
struct BiasSums {
    float of[BIAS ? T::FRAGMENTS_M : 1][4];
    bool serves;

    __device__ __forceinline__ void operator()(const Fragments<T>& fragments) {
        if (!BIAS || !serves) return;
        const u32 one = ELEMENT == 0 ? 0x3f800000u : ELEMENT == 1 ? 0x3c003c00u : 0x3f803f80u;
        const u32 ones[2] = {one, one};
#pragma unroll
        for (int i = 0; i < T::FRAGMENTS_M; ++i) multiply(of[BIAS ? i : 0], fragments.a[i], ones);
    }
};

template <class T, bool BIAS>
__device__ __forceinline__ void backward_weight(const element* x, const element* dy, float* dw, float* dbias,
                                                float* partials, const Params& params) {
    const u32 row_tiles = (params.k + T::M - 1) / T::M;
    const u32 first_row = blockIdx.x % row_tiles * T::M, first_column = blockIdx.x / row_tiles * T::N;
    const u32 columns = params.window_height * params.window_width * params.channels;
    const u32 steps = (params.positions + T::DEPTH - 1) / T::DEPTH;
    const Steps part = part_of(steps, params.splits, blockIdx.y);

    Sums<T> sums;
    BiasSums<T, BIAS> bias;
    bias.serves = BIAS && first_column == 0 && warp_column<T>() == 0;
#pragma unroll
    for (int i = 0; i < (BIAS ? T::FRAGMENTS_M : 1); ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) bias.of[i][e] = 0.0f;
    WeightLoader<T> load(params, dy, x, first_row, first_column);
#pragma unroll
    for (int ahead = 0; ahead < WeightLoader<T>::AHEAD; ++ahead) load.find(part.first + ahead);
    __syncthreads();
    accumulate<T, true, true>(sums, part.first, part.end, load, bias);

    float factor = params.factor;
    if (params.splits > 1) {
        factor = 1.0f;
        dw = partials + (u64)blockIdx.y * ((u64)params.k * columns + (BIAS ? params.k : 0));
        dbias = dw + (u64)params.k * columns;
    }
    const u32 lane = threadIdx.x & 31;
    const u32 row = first_row + warp_row<T>() + (lane >> 2);
    const u32 column = first_column + warp_column<T>() + (lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < T::FRAGMENTS_M; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const u32 k = row + i * 16 + half * 8;
            if (k >= params.k) continue;
#pragma unroll
            for (int j = 0; j < T::FRAGMENTS_N; ++j)
                if (column + j * 8 < columns)
                    *reinterpret_cast<float2*>(dw + (u64)k * columns + column + j * 8) =
                        make_float2(sums.of[i][j][2 * half] * factor, sums.of[i][j][2 * half + 1] * factor);
            if (BIAS && bias.serves && (lane & 3) == 0) dbias[k] = bias.of[i][2 * half] * factor;
        }
}

// The lists of tiles agree with the engine's.
#define ENTRY_POINT(NAME, BIAS, ...)                                                                                   \
    extern "C" __global__ void __launch_bounds__(Tile<__VA_ARGS__>::THREADS, Tile<__VA_ARGS__>::BLOCKS)                \
        conv2d_backward_weight_##NAME(const element* x, const element* dy, float* dw, float* dbias, float* partials,   \
                                      Params params) {                                                                 \
        backward_weight<Tile<__VA_ARGS__>, BIAS>(x, dy, dw, dbias, partials, params);                                  \
    }

ENTRY_POINT(128x128, false, 128, 128, 64, 64, 8, 3, 2)
ENTRY_POINT(128x128_bias, true, 128, 128, 64, 64, 8, 3, 2)
ENTRY_POINT(64x192, false, 64, 192, 32, 64, 8, 3, 2)
ENTRY_POINT(64x192_bias, true, 64, 192, 32, 64, 8, 3, 2)
ENTRY_POINT(64x64, false, 64, 64, 32, 32, 8, 3, 4)
ENTRY_POINT(64x64_bias, true, 64, 64, 32, 32, 8, 3, 4)

struct CombineParams {
    u32 elements;  // of dw, a multiple of 4
    u32 k;         // of dbias, a multiple of 4; 0 where it is not wanted
    u32 splits;
    float factor;
};

// Adds the parts in order. A thread adds four elements; blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256) conv2d_backward_weight_combine(const float4* partials, float* dw,
                                                                                 float* dbias, CombineParams params) {
    const u32 at = (blockIdx.x * 256 + threadIdx.x) * 4, all = params.elements + params.k;
    if (at >= all) return;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (u32 split = 0; split < params.splits; ++split) {
        const float4 part = partials[((u64)split * all + at) / 4];
        sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
    }
    float* to = at < params.elements ? dw + at : dbias + (at - params.elements);
    *reinterpret_cast<float4*>(to) =
        make_float4(sum.x * params.factor, sum.y * params.factor, sum.z * params.factor, sum.w * params.factor);
}

#endif
