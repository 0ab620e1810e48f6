// Convolution and its gradient with respect to the input, on tensor cores of compute capability 9.0a, f16 and bf16.
//
// Implicit GEMM: a row is an output position, a column an output channel, the reduction runs over (tap, channel) in
// steps of 64, flattened, so that few channels waste nothing.
//   forward:       y[n,p,q,k] = relu(scale[k] * sum x[n, p*stride + i - pad, q*stride + j - pad, c] * w[k,i,j,c]
//                                    + bias[k] + residual[n,p,q,k])
//   backward data: g = scale * sum dy[n, p, q, k] * w[k,i,j,c] over p*stride + i - pad = h, q*stride + j - pad = w
//                  dx[n,h,w,c] = (g + dx[n,h,w,c] if accumulating) where mask > 0, else 0
// Backward data gathers dy with the taps in reverse order, one grid slice for each residue class of (h, w) modulo the
// stride: a class meets only its own taps.
//
// A thread block of two warp groups makes a tile of BM rows by BN columns, each warp group half of its rows. Threads
// copy 16-byte chunks into STAGES buffers, the gathered rows with zeros where a tap leaves the map; chunk `t % 8` of
// rows `t / 8 + 32 * i` is thread t's.
//
// Shared memory: STAGES * (BM + BN) * 128 + BM * 12 bytes, dynamic.
// Limits: channels and rows of views multiples of 8, at most 255 taps, maps below 16384, 2^31 positions.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && ELEMENT != 0

// The GEMM that a thread block works on.
struct Gemm {
    // The gathered operand: its map, 16-byte chunks from one position to the next and in one tap, taps in a row.
    const uint4* a;
    int a_h, a_w, a_row;
    u32 channels, taps, taps_s;
    // Row (image, u, v) meets tap (i, j) at position (u * step + h0 + i, v * step + w0 + j).
    u32 images, grid_h, grid_w, step;
    int h0, w0;
    // The row is position (u * out_step + out_h0, v * out_step + out_w0) of the output's map.
    u32 out_h, out_w, out_step, out_h0, out_w0;
    // The filter, elements from one reduction channel to the next and of its taps (backward only).
    const element* filter;
    u32 filter_stride;
    int filter_tap0, filter_tap_i, filter_tap_j;
    u32 columns;
};

// Where the rows of a tile gather from.
template <int BM>
struct Origins : Positions<BM> {
    int gather[BM];  // chunk of tap (0, 0) in the gathered operand
    u32 origin[BM];  // map position of tap (0, 0): h in the low, w in the high half, both signed
};

template <int BM>
__device__ __forceinline__ void locate_rows(Origins<BM>& rows, const Gemm& g, u32 row0) {
    if (threadIdx.x >= BM) return;
    const u32 row = row0 + threadIdx.x;
    const u32 v = row % g.grid_w, line = row / g.grid_w;
    const u32 u = line % g.grid_h, image = line / g.grid_h;
    const u32 out_h = u * g.out_step + g.out_h0, out_w = v * g.out_step + g.out_w0;
    const bool inside = image < g.images && out_h < g.out_h && out_w < g.out_w;
    const int h = inside ? (int)(u * g.step) + g.h0 : -32768;
    const int w = (int)(v * g.step) + g.w0;
    rows.gather[threadIdx.x] = (((int)image * g.a_h + h) * g.a_w + w) * g.a_row;
    rows.origin[threadIdx.x] = ((u32)h & 0xffffu) | ((u32)w << 16);
    rows.output[threadIdx.x] = inside ? (image * g.out_h + out_h) * g.out_w + out_w : OUTSIDE;
}

// The copies of one thread.
template <int BM, int BN, bool BACKWARD>
struct Loader {
    const Gemm& g;
    int gather[BM / 32];
    int h[BM / 32], w[BM / 32];
    u32 channels_reciprocal, depth_reciprocal, taps_reciprocal;
    u32 chunks;    // of the reduction
    u32 chunk;     // this thread's of each row
    u32 swizzled;  // byte offset of its first copy in a panel
    u32 column0;

    __device__ __forceinline__ Loader(const Gemm& gemm, const Origins<BM>& rows, u32 first_column) : g(gemm) {
        const u32 row = threadIdx.x >> 3;
#pragma unroll
        for (int i = 0; i < BM / 32; ++i) {
            const u32 origin = rows.origin[row + 32 * i];
            gather[i] = rows.gather[row + 32 * i];
            h[i] = (int)(short)(origin & 0xffffu);
            w[i] = (int)origin >> 16;
        }
        chunk = threadIdx.x & 7;
        swizzled = row * 128 + ((chunk ^ (row & 7)) << 4);
        chunks = g.channels * g.taps;
        channels_reciprocal = reciprocal(g.channels);
        depth_reciprocal = reciprocal(g.channels * 8);
        taps_reciprocal = 65536u / g.taps_s + 1;
        column0 = first_column;
    }

    __device__ __forceinline__ void load(u32 iteration, u32 a_tile, u32 b_tile) const {
        const u32 step = iteration * 8 + chunk;
        const u32 tap = quotient(step, channels_reciprocal);
        const u32 i = (tap * taps_reciprocal) >> 16, j = tap - i * g.taps_s;
        const int shift = ((int)i * g.a_w + (int)j) * g.a_row + (int)(step - tap * g.channels);
        const bool inside = step < chunks;
        const int di = inside ? (int)i : 65536;
#pragma unroll
        for (int row = 0; row < BM / 32; ++row) {
            const bool covered = (u32)(h[row] + di) < (u32)g.a_h && (u32)(w[row] + (int)j) < (u32)g.a_w;
            copy16(a_tile + swizzled + row * 4096, g.a + (gather[row] + shift), covered);
        }
        if constexpr (BACKWARD) {
            load_transposed_filter(iteration, b_tile);
        } else {
#pragma unroll
            for (int row = 0; row < BN / 32; ++row) {
                const u32 column = column0 + (threadIdx.x >> 3) + 32 * row;
                copy16(b_tile + swizzled + row * 4096, (const uint4*)g.filter + ((u64)column * chunks + step),
                       inside && column < g.columns);
            }
        }
    }

    __device__ __forceinline__ void load_transposed_filter(u32 iteration, u32 b_tile) const {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const u32 step = iteration * 64 + (threadIdx.x >> 3) + 32 * row;
            const u32 tap = quotient(step, depth_reciprocal);
            const u32 i = (tap * taps_reciprocal) >> 16, j = tap - i * g.taps_s;
            const u32 channel = step - tap * g.channels * 8;
            const int offset = g.filter_tap0 + (int)i * g.filter_tap_i + (int)j * g.filter_tap_j;
            const element* from = g.filter + ((u64)channel * g.filter_stride + (u64)offset);
#pragma unroll
            for (int panel = 0; panel < BN / 64; ++panel) {
                const u32 column = column0 + panel * 64 + chunk * 8;
                copy16(b_tile + swizzled + row * 4096 + panel * 8192, from + column,
                       step < chunks * 8 && column < g.columns);
            }
        }
    }
};

// sums += the whole reduction, for this warp group's BM / 2 rows. PENDING steps of wgmma stay under way while the next
// copies are started: 0 where two thread blocks share the multiprocessor, 1 where one is alone.
template <int BM, int BN, int STAGES, int PENDING, bool BACKWARD>
__device__ __forceinline__ void multiply(float (&sums)[BM / 128][BN / 2], const Gemm& g, const Origins<BM>& rows,
                                         u32 first_column) {
    constexpr int STAGE_BYTES = (BM + BN) * 128;
    constexpr int AHEAD = STAGES - 1 - PENDING;
    const u32 buffers = shared_address(shared_memory);
    const u32 group = threadIdx.x >> 7;
    const Loader<BM, BN, BACKWARD> loader(g, rows, first_column);
    const u32 iterations = (loader.chunks + 7) / 8;

#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        const u32 tile = buffers + i * STAGE_BYTES;
        if (i < iterations) loader.load(i, tile, tile + BM * 128);
        commit_copies();
    }
#pragma unroll
    for (int m = 0; m < BM / 128; ++m) pin(sums[m]);
    u32 read = 0, write = AHEAD;
    for (u32 iteration = 0; iteration < iterations; ++iteration) {
        wait_copies<AHEAD - 1>();
        publish_copies();
        __syncthreads();
        const u32 tile = buffers + read * STAGE_BYTES;
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const u64 b = BACKWARD ? operand(tile + BM * 128 + step * 2048, 8192)
                                   : operand(tile + BM * 128 + step * 32, 16);
#pragma unroll
            for (int m = 0; m < BM / 128; ++m) {
                const u64 a = operand(tile + (group * (BM / 128) + m) * 8192 + step * 32, 16);
                wgmma<0, BACKWARD ? 1 : 0>(sums[m], a, b);
            }
        }
        wgmma_commit();
        if (iteration + AHEAD < iterations) {
            const u32 next = buffers + write * STAGE_BYTES;
            loader.load(iteration + AHEAD, next, next + BM * 128);
        }
        commit_copies();
        wgmma_wait<PENDING>();
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
    }
    wgmma_wait<0>();
#pragma unroll
    for (int m = 0; m < BM / 128; ++m) pin(sums[m]);
    __syncthreads();
}

template <int BM, int BN, int STAGES, int PENDING>
__device__ __forceinline__ void forward(const element* x, const element* filter, element* y, const float* scale,
                                        const float* bias, const element* residual, float* partials,
                                        const Conv2dForward& params) {
    Gemm g;
    g.a = (const uint4*)x;
    g.a_h = params.h, g.a_w = params.w, g.a_row = params.x_row / 8;
    g.channels = params.c / 8, g.taps = params.r * params.s, g.taps_s = params.s;
    g.images = params.n, g.grid_h = params.p, g.grid_w = params.q, g.step = params.stride;
    g.h0 = g.w0 = -(int)params.pad;
    g.out_h = params.p, g.out_w = params.q, g.out_step = 1, g.out_h0 = g.out_w0 = 0;
    g.filter = filter;
    g.columns = params.k;

    Origins<BM>& rows = *(Origins<BM>*)(shared_memory + STAGES * (BM + BN) * 128);
    const u32 tile_columns = (params.k + BN - 1) / BN;
    const u32 tile_row = blockIdx.x / tile_columns, column0 = blockIdx.x % tile_columns * BN;
    locate_rows(rows, g, tile_row * BM);
    __syncthreads();
    prefetch_tile<BM, BN>(residual, params.residual_row, rows, column0, params.k);
    float sums[BM / 128][BN / 2] = {};
    multiply<BM, BN, STAGES, PENDING, false>(sums, g, rows, column0);
    if (partials)
        finish_with_statistics<BM, BN>(sums, rows, column0, tile_row, gridDim.x / tile_columns, y, partials, params);
    else
        finish_forward<BM, BN>(sums, rows, column0, y, scale, bias, residual, params);
}

template <int BM, int BN, int STAGES, int PENDING>
__device__ __forceinline__ void backward_data(const element* dy, const element* filter, element* dx,
                                              const GradientInputs& inputs, float* partials,
                                              const Conv2dBackwardData& params) {
    // This grid slice's residue class: positions a + stride * u, which meet taps first + stride * i.
    const u32 stride = params.stride;
    const u32 a = blockIdx.y / stride, b = blockIdx.y % stride;
    const u32 first_r = (a + params.pad) % stride, first_s = (b + params.pad) % stride;
    const u32 taps_r = first_r < params.r ? (params.r - first_r + stride - 1) / stride : 0;
    const u32 taps_s = first_s < params.s ? (params.s - first_s + stride - 1) / stride : 0;
    Gemm g;
    g.a = (const uint4*)dy;
    g.a_h = params.p, g.a_w = params.q, g.a_row = params.dy_row / 8;
    g.channels = params.k / 8, g.taps = taps_r * taps_s, g.taps_s = taps_s ? taps_s : 1;
    g.images = params.n, g.grid_h = (params.h + stride - 1) / stride, g.grid_w = (params.w + stride - 1) / stride;
    g.step = 1;
    g.h0 = (int)((a + params.pad) / stride) - (int)taps_r + 1;
    g.w0 = (int)((b + params.pad) / stride) - (int)taps_s + 1;
    g.out_h = params.h, g.out_w = params.w, g.out_step = stride, g.out_h0 = a, g.out_w0 = b;
    g.filter = filter;
    g.filter_stride = params.r * params.s * params.c;
    const int last_r = (int)(first_r + stride * taps_r) - (int)stride;
    const int last_s = (int)(first_s + stride * taps_s) - (int)stride;
    g.filter_tap0 = (last_r * (int)params.s + last_s) * (int)params.c;
    g.filter_tap_i = -(int)(stride * params.s * params.c);
    g.filter_tap_j = -(int)(stride * params.c);
    g.columns = params.c;

    Origins<BM>& rows = *(Origins<BM>*)(shared_memory + STAGES * (BM + BN) * 128);
    const u32 tile_columns = (params.c + BN - 1) / BN;
    const u32 tile_row = blockIdx.x / tile_columns, column0 = blockIdx.x % tile_columns * BN;
    locate_rows(rows, g, tile_row * BM);
    __syncthreads();
    prefetch_gradient_inputs<BM, BN>(dx, inputs, rows, column0, params);
    float sums[BM / 128][BN / 2] = {};
    multiply<BM, BN, STAGES, PENDING, true>(sums, g, rows, column0);
    const u32 tile = blockIdx.y * (gridDim.x / tile_columns) + tile_row;
    finish_gradient<BM, BN>(sums, rows, column0, tile, dx, inputs, partials, params);
}

#define ENTRY_POINTS(NAME, BM, BN, STAGES, PENDING, BLOCKS)                                                           \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_forward_##NAME(                            \
        const element* x, const element* filter, const float* scale, const float* bias, const element* residual,     \
        element* y, float* partials, Conv2dForward params) {                                                          \
        forward<BM, BN, STAGES, PENDING>(x, filter, y, scale, bias, residual, partials, params);                      \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_backward_data_##NAME(                      \
        const element* dy, const element* filter, const element* mask, const element* y1, const float* mean1,        \
        const element* y2, const float* mean2, element* dx, float* partials, Conv2dBackwardData params) {             \
        const GradientInputs inputs = {mask, y1, mean1, y2, mean2};                                                   \
        backward_data<BM, BN, STAGES, PENDING>(dy, filter, dx, inputs, partials, params);                             \
    }

ENTRY_POINTS(128x256, 128, 256, 4, 1, 1)
ENTRY_POINTS(256x128, 256, 128, 4, 1, 1)
ENTRY_POINTS(128x128, 128, 128, 3, 0, 2)
ENTRY_POINTS(128x64, 128, 64, 3, 0, 3)

// Adds up the partial statistics: mean and 1 / sqrt(variance + epsilon) of each channel. A block of 8 channels by 128
// shares of the tiles.
struct Conv2dStatistics {
    u32 columns, tiles, rows;
    float epsilon;
};

// Sums 128 shares of 8 channels; the result is in share 0.
__device__ __forceinline__ float sum_shares(float value, float* scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (u32 half = 512; half >= 8; half /= 2) {
        if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
    }
    value = scratch[threadIdx.x & 7];
    __syncthreads();
    return value;
}

extern "C" __global__ void __launch_bounds__(1024) conv2d_wgmma_statistics_combine(
    const float* partials, float* mean, float* inv_std, Conv2dStatistics params) {
    __shared__ float scratch[1024];
    const u32 column = blockIdx.x * 8 + (threadIdx.x & 7);
    const float* counts = partials + (u64)params.tiles * 2 * params.columns;
    const float pivot = partials[column] / counts[0];
    float first = 0.0f, second = 0.0f;
    for (u32 tile = threadIdx.x >> 3; tile < params.tiles; tile += 128) {
        const float count = counts[tile];
        if (count == 0.0f) continue;
        const float sum = partials[(u64)tile * 2 * params.columns + column];
        const float squares = partials[((u64)tile * 2 + 1) * params.columns + column];
        const float away = sum / count - pivot;
        first = fmaf(count, away, first);
        second += fmaf(count * away, away, squares);
    }
    first = sum_shares(first, scratch);
    second = sum_shares(second, scratch);
    if (threadIdx.x >= 8) return;
    const float shift = first / (float)params.rows;
    const float variance = fmaxf(second / (float)params.rows - shift * shift, 0.0f);
    mean[column] = pivot + shift;
    inv_std[column] = 1.0f / sqrtf(variance + params.epsilon);
}

// Adds up the partial reductions of backward data: gradients of one or two batch norms.
struct Conv2dReduction {
    u32 columns, tiles, reductions;
    float factor1, factor2;
};

extern "C" __global__ void __launch_bounds__(1024) conv2d_wgmma_reduction_combine(
    const float* partials, const float* inv_std1, const float* inv_std2, float* dgamma1, float* dbeta1, float* dgamma2,
    float* dbeta2, Conv2dReduction params) {
    __shared__ float scratch[1024];
    const u32 column = blockIdx.x * 8 + (threadIdx.x & 7);
    const u32 parts = 1 + params.reductions;
    float total[3] = {};
    for (u32 tile = threadIdx.x >> 3; tile < params.tiles; tile += 128)
        for (u32 part = 0; part < 3; ++part)
            if (part < parts) total[part] += partials[((u64)tile * parts + part) * params.columns + column];
    for (u32 part = 0; part < 3; ++part) total[part] = sum_shares(total[part], scratch);
    if (threadIdx.x >= 8) return;
    dbeta1[column] = params.factor1 * total[0];
    dgamma1[column] = params.factor1 * total[1] * inv_std1[column];
    if (params.reductions < 2) return;
    dbeta2[column] = params.factor2 * total[0];
    dgamma2[column] = params.factor2 * total[2] * inv_std2[column];
}

#endif
