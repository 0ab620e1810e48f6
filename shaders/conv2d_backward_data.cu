// Gradient of a convolution's input on tensor cores as an implicit GEMM, with everything fused behind it:
//   v = scale * acc (+ dx where `accumulate`); dx = v where mask > 0 (or without a mask), else 0,
// and, of dx as stored, the sums that up to two batch norms before it need: of each row tile sum g and
// sum g * (y - mean) * inv_std, which `conv2d_reduction_combine` joins.
//
// Threads: grid.x = row tiles * column tiles, columns first; grid.y = parts of the reduction; grid.z = stride^2
// residue classes. See conv2d_gather.cu for the rows and limits, conv2d_tile.cu for the mainloop, conv2d_finish.cu for
// parts and tickets.
// Shared memory (dynamic): STAGES * (M + N) * CHUNKS * 16 bytes.

#ifdef TENSOR_CORES

struct Params {
    Geometry geometry;
    // Elements from one position to the next.
    u32 dx_row, mask_row, first_row, second_row;
    u32 accumulate;
    float scale;
};

// A batch norm before the gradient: the convolution's output, its mean and reciprocal standard deviation.
struct Normalized {
    const element* y;
    const float *mean, *inv_std;
};

// Adds the threads' sums in order of their groups, and writes those of the tile's columns.
template <class T, int COUNT>
__device__ __forceinline__ void write_sums(const Finish<T>& finish, const float (&sums)[COUNT][VECTOR], float* to,
                                           u32 columns, u32 first_column) {
    __syncthreads();
    float* shared = reinterpret_cast<float*>(shared_bytes);
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
#pragma unroll
        for (int e = 0; e < VECTOR; ++e)
            shared[(finish.group * COUNT + i) * T::N + finish.chunk * VECTOR + e] = sums[i][e];
    __syncthreads();
#pragma unroll 1
    for (u32 item = threadIdx.x; item < COUNT * T::N; item += T::THREADS) {
        const u32 column = first_column + item % T::N;
        if (column >= columns) continue;
        float sum = 0.0f;
#pragma unroll 4
        for (int group = 0; group < Finish<T>::GROUPS; ++group) sum += shared[group * COUNT * T::N + item];
        to[item / T::N * columns + column] = sum;
    }
}

// A batch of a chunk's rows at positions, zeros where there are none.
template <class T>
__device__ __forceinline__ void load_rows(uint4 (&to)[Finish<T>::BATCH], const element* from, u32 row_elements,
                                          const u32 (&at)[Finish<T>::BATCH]) {
#pragma unroll
    for (int i = 0; i < Finish<T>::BATCH; ++i)
        to[i] = at[i] != NONE ? load_bits(from + (u64)at[i] * row_elements) : make_uint4(0, 0, 0, 0);
}

// Zeros values where the mask's are not positive.
__device__ __forceinline__ void keep_positive(float (&values)[VECTOR], uint4 mask_bits) {
    float mask[VECTOR];
    unpack16(mask_bits, mask);
#pragma unroll
    for (int e = 0; e < VECTOR; ++e) values[e] = mask[e] > 0.0f ? values[e] : 0.0f;
}

// sums += g * (y - mean) * inv_std over a batch. The statistics are loaded each time: registers are dearer.
template <class T>
__device__ __forceinline__ void reduce(float (&sums)[VECTOR], const float (&g)[Finish<T>::BATCH][VECTOR],
                                       const uint4 (&y_bits)[Finish<T>::BATCH], const Normalized& norm, u32 column) {
    float mean[VECTOR], inv_std[VECTOR];
    load_channels(mean, norm.mean, column, 0.0f);
    load_channels(inv_std, norm.inv_std, column, 0.0f);
#pragma unroll
    for (int i = 0; i < Finish<T>::BATCH; ++i) {
        float y[VECTOR];
        unpack16(y_bits[i], y);
#pragma unroll
        for (int e = 0; e < VECTOR; ++e) sums[e] += g[i][e] * ((y[e] - mean[e]) * inv_std[e]);
    }
}

template <class T>
__device__ __forceinline__ void backward_data(const element* dy, const element* w, const element* mask,
                                              const Normalized& first, const Normalized& second, element* dx,
                                              float* reductions, float* partials, u32* tickets, const Params& params) {
    using F = Finish<T>;
    const Geometry& g = params.geometry;
    const Class c = residue_class(g);
    const Corner tile = corner<T>(g);
    const F finish;
    prefetch<T, 4>({{params.accumulate ? dx : nullptr, params.dx_row},
                    {mask, params.mask_row},
                    {first.y, params.first_row},
                    {second.y, params.second_row}},
                   g, c, tile);
    if (!gather_sums<T, true>(finish, g, c, tile, dy, w, partials, tickets)) return;

    const u32 column = tile.column + finish.chunk * VECTOR;
    const bool is_inside = column < g.columns;
    float totals[3][VECTOR];
#pragma unroll
    for (int e = 0; e < VECTOR; ++e) totals[0][e] = totals[1][e] = totals[2][e] = 0.0f;
    // Rows outside of the result have zero sums and load zeros: they add nothing.
#pragma unroll 1
    for (u32 row = finish.group; row < T::M; row += F::BATCH * F::GROUPS) {
        u32 at[F::BATCH];
        float values[F::BATCH][VECTOR];
        uint4 old[F::BATCH], masks[F::BATCH], first_y[F::BATCH], second_y[F::BATCH];
#pragma unroll
        for (int i = 0; i < F::BATCH; ++i)
            at[i] = is_inside ? position(g, c, tile.row + row + i * F::GROUPS) : NONE;
        if (params.accumulate) load_rows<T>(old, dx + column, params.dx_row, at);
        if (mask) load_rows<T>(masks, mask + column, params.mask_row, at);
        if (first.y) load_rows<T>(first_y, first.y + column, params.first_row, at);
        if (second.y) load_rows<T>(second_y, second.y + column, params.second_row, at);
        finish.read(values, row);
#pragma unroll
        for (int i = 0; i < F::BATCH; ++i)
#pragma unroll
            for (int e = 0; e < VECTOR; ++e) values[i][e] *= params.scale;
        if (params.accumulate) {
#pragma unroll
            for (int i = 0; i < F::BATCH; ++i) add(values[i], old[i]);
        }
        if (mask) {
#pragma unroll
            for (int i = 0; i < F::BATCH; ++i) keep_positive(values[i], masks[i]);
        }
#pragma unroll
        for (int i = 0; i < F::BATCH; ++i) {
            const uint4 bits = pack16(values[i]);
            if (at[i] != NONE) *reinterpret_cast<uint4*>(dx + (u64)at[i] * params.dx_row + column) = bits;
            if (reductions) unpack16(bits, values[i]);
        }
        if (!reductions) continue;
#pragma unroll
        for (int i = 0; i < F::BATCH; ++i)
#pragma unroll
            for (int e = 0; e < VECTOR; ++e) totals[0][e] += values[i][e];
        if (first.y && is_inside) reduce<T>(totals[1], values, first_y, first, column);
        if (second.y && is_inside) reduce<T>(totals[2], values, second_y, second, column);
    }
    if (reductions) {
        const u32 row_tiles = g.by_column_tiles.divide(gridDim.x);
        write_sums<T, 3>(finish, totals, reductions + (u64)(blockIdx.z * row_tiles + tile.row_tile) * 3 * g.columns,
                         g.columns, tile.column);
    }
}

// The lists of tiles agree with the engine's.
#define ENTRY_POINT(NAME, ...)                                                                                         \
    extern "C" __global__ void __launch_bounds__(Tile<__VA_ARGS__>::THREADS, Tile<__VA_ARGS__>::BLOCKS)                \
        conv2d_backward_data_##NAME(const element* dy, const element* w, const element* mask, const element* first_y,  \
                                    const float* first_mean, const float* first_inv_std, const element* second_y,      \
                                    const float* second_mean, const float* second_inv_std, element* dx,                \
                                    float* reductions, float* partials, u32* tickets, Params params) {                 \
        backward_data<Tile<__VA_ARGS__>>(dy, w, mask, {first_y, first_mean, first_inv_std},                            \
                                         {second_y, second_mean, second_inv_std}, dx, reductions, partials, tickets,   \
                                         params);                                                                      \
    }

ENTRY_POINT(128x128, 128, 128, 64, 64, 8, 3, 2)
ENTRY_POINT(128x64, 128, 64, 64, 32, 8, 3, 3)
ENTRY_POINT(64x64, 64, 64, 32, 32, 8, 3, 3)

struct ReductionParams {
    u32 tiles, columns;
    float factor;
};

// Gradients of scale and shift of up to two batch norms from the row tiles' [tiles][3][columns]; blocks of 1024
// threads, eight channels each. Outputs may be null.
extern "C" __global__ void __launch_bounds__(1024)
    conv2d_reduction_combine(const float* reductions, float* first_dgamma, float* first_dbeta, float* second_dgamma,
                             float* second_dbeta, ReductionParams params) {
    const u32 column = blockIdx.x * 8 + (threadIdx.x & 7);
    const u32 tiles = column < params.columns ? params.tiles : 0;
    float sums[3] = {0.0f, 0.0f, 0.0f};
#pragma unroll 4
    for (u32 tile = threadIdx.x / 8; tile < tiles; tile += 128)
#pragma unroll
        for (u32 i = 0; i < 3; ++i) sums[i] += reductions[((u64)tile * 3 + i) * params.columns + column];
    sum_strips(sums);
#pragma unroll
    for (u32 i = 0; i < 3; ++i) sums[i] *= params.factor;
    if (threadIdx.x < 8 && tiles) {
        if (first_dbeta) first_dbeta[column] = sums[0];
        if (first_dgamma) first_dgamma[column] = sums[1];
        if (second_dbeta) second_dbeta[column] = sums[0];
        if (second_dgamma) second_dgamma[column] = sums[2];
    }
}

#endif
