// Gradients of a convolution's filter and bias on tensor cores of compute capability 9.0a, f16 and bf16.
//
//   dw[k,i,j,c] = factor * sum dy[n,p,q,k] * x[n, p*stride + i - pad, q*stride + j - pad, c]
//   dbias[k] = factor * sum dy[n,p,q,k]
//
// A GEMM whose rows are output channels k, whose columns are (i, j, c) and whose reduction runs over positions (n,
// p, q) in steps of 64. Both operands are transposed ones: a position's channels are contiguous. Grid: x is the
// tile, columns fastest, y the share of the positions. Shares are left as f32 `partials[share][k][i,j,c]` and added
// up in order by conv2d_wgmma_backward_weight_combine; bias shares follow as `bias_partials[share][k]`, made by the
// tiles of column 0.
//
// A thread block of two warp groups makes a tile of BM rows by BN columns: each group half of the rows or, where BM is
// 64, all of the tile from half of the positions, the halves being added at the end. Thread t copies 16-byte chunk
// `t % 8` of every panel of 64 channels, of the step's positions `t / 8` and that plus 32.
//
// Shared memory: STAGES * (BM + BN) * 128 bytes, dynamic.
// Limits: channels and rows of views multiples of 8, maps below 16384, 2^31 positions.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Conv2dBackwardWeight {
    u32 n, h, w, c, k, r, s, stride, pad, p, q;
    u32 x_row, dy_row;  // elements from one position to the next
    u32 share;          // positions of one share, a multiple of 64
};

// An output position, stepping by 64.
struct Walk {
    u32 image, u, v;

    __device__ __forceinline__ void start(u32 position, const Conv2dBackwardWeight& params) {
        v = position % params.q;
        const u32 line = position / params.q;
        u = line % params.p;
        image = line / params.p;
    }

    __device__ __forceinline__ void advance(u32 images, u32 lines, u32 columns, const Conv2dBackwardWeight& params) {
        v += columns;
        u += lines;
        image += images;
        if (v >= params.q) v -= params.q, ++u;
        if (u >= params.p) u -= params.p, ++image;
    }
};

// The copies of one thread.
template <int BM, int BN>
struct WeightLoader {
    const Conv2dBackwardWeight& params;
    const uint4* dy;
    const uint4* x;
    u32 position, end;  // this thread's first position of the next step, and where its share ends
    Walk walk[2];
    u32 step_images, step_lines, step_columns;
    int shift[BN / 64], tap_h[BN / 64], tap_w[BN / 64];
    u32 swizzled;
    u32 dy_row, x_row;
    u32 rows_inside;  // bit for each panel of dy

    __device__ __forceinline__ WeightLoader(const Conv2dBackwardWeight& p, const element* from_dy,
                                            const element* from_x, u32 row0, u32 column0)
        : params(p) {
        const u32 row = threadIdx.x >> 3, chunk = threadIdx.x & 7;
        const u32 positions = p.n * p.p * p.q;
        position = blockIdx.y * p.share + row;
        end = min(blockIdx.y * p.share + p.share, positions);
        walk[0].start(position, p);
        walk[1].start(position + 32, p);
        step_columns = 64 % p.q;
        step_lines = 64 / p.q % p.p;
        step_images = 64 / p.q / p.p;
        swizzled = row * 128 + ((chunk ^ (row & 7)) << 4);
        dy_row = p.dy_row / 8;
        x_row = p.x_row / 8;
        dy = (const uint4*)from_dy + (row0 / 8 + chunk);
        x = (const uint4*)from_x;
        rows_inside = 0;
#pragma unroll
        for (int panel = 0; panel < BM / 64; ++panel)
            if (row0 + panel * 64 + chunk * 8 < p.k) rows_inside |= 1u << panel;
#pragma unroll
        for (int panel = 0; panel < BN / 64; ++panel) {
            const u32 column = column0 + panel * 64 + chunk * 8;
            const u32 tap = column / p.c, channel = column - tap * p.c;
            const int i = (int)(tap / p.s), j = (int)(tap % p.s);
            tap_h[panel] = tap < p.r * p.s ? i - (int)p.pad : 65536;
            tap_w[panel] = j - (int)p.pad;
            shift[panel] = ((i - (int)p.pad) * (int)p.w + tap_w[panel]) * (int)x_row + (int)(channel / 8);
        }
    }

    // Starts the copies of the next step.
    __device__ __forceinline__ void load(u32 a_tile, u32 b_tile) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const u32 at = position + 32 * half;
            const bool inside = at < end;
            const u32 row_offset = swizzled + half * 4096;
            const uint4* gradient = dy + (u64)at * dy_row;
#pragma unroll
            for (int panel = 0; panel < BM / 64; ++panel)
                copy16(a_tile + row_offset + panel * 8192, gradient + panel * 8, inside && (rows_inside >> panel & 1));
            const int h = (int)(walk[half].u * params.stride), w = (int)(walk[half].v * params.stride);
            const int origin = (((int)walk[half].image * (int)params.h + h) * (int)params.w + w) * (int)x_row;
            const int limit = inside ? (int)params.h : 0;
#pragma unroll
            for (int panel = 0; panel < BN / 64; ++panel) {
                const bool covered = (u32)(h + tap_h[panel]) < (u32)limit && (u32)(w + tap_w[panel]) < params.w;
                copy16(b_tile + row_offset + panel * 8192, x + (origin + shift[panel]), covered);
            }
            walk[half].advance(step_images, step_lines, step_columns, params);
        }
        position += 64;
    }
};

extern __shared__ __align__(1024) u8 shared_memory[];

template <int BM, int BN, int STAGES, int PENDING>
__device__ __forceinline__ void backward_weight(const element* x, const element* dy, float* partials,
                                                float* bias_partials, const Conv2dBackwardWeight& params) {
    constexpr bool HALVED = BM == 64;
    constexpr int BLOCKS = HALVED ? 1 : BM / 128;  // of 64 rows in a warp group
    constexpr int STAGE_BYTES = (BM + BN) * 128;
    constexpr int AHEAD = STAGES - 1 - PENDING;
    const u32 buffers = shared_address(shared_memory);
    const u32 group = threadIdx.x >> 7;
    const u32 depth = params.r * params.s * params.c;
    const u32 tile_columns = (depth + BN - 1) / BN;
    const u32 row0 = blockIdx.x / tile_columns * BM, column0 = blockIdx.x % tile_columns * BN;
    WeightLoader<BM, BN> loader(params, dy, x, row0, column0);
    const u32 first = blockIdx.y * params.share;
    const u32 iterations = loader.end > first ? (loader.end - first + 63) / 64 : 0;
    const bool with_bias = bias_partials && column0 == 0;
    float bias[8] = {};
    float sums[BLOCKS][BN / 2] = {};

#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        const u32 tile = buffers + i * STAGE_BYTES;
        if (i < iterations) loader.load(tile, tile + BM * 128);
        commit_copies();
    }
#pragma unroll
    for (int m = 0; m < BLOCKS; ++m) pin(sums[m]);
    u32 read = 0, write = AHEAD;
    for (u32 iteration = 0; iteration < iterations; ++iteration) {
        wait_copies<AHEAD - 1>();
        publish_copies();
        __syncthreads();
        const u32 tile = buffers + read * STAGE_BYTES;
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < (HALVED ? 2 : 4); ++i) {
            const u32 step = HALVED ? group * 2 + i : i;
            const u64 b = operand(tile + BM * 128 + step * 2048, 8192);
#pragma unroll
            for (int m = 0; m < BLOCKS; ++m) {
                const u32 panel = HALVED ? 0 : group * BLOCKS + m;
                wgmma<1, 1>(sums[m], operand(tile + panel * 8192 + step * 2048, 8192), b);
            }
        }
        wgmma_commit();
        if (iteration + AHEAD < iterations) {
            const u32 next = buffers + write * STAGE_BYTES;
            loader.load(next, next + BM * 128);
        }
        commit_copies();
        if (with_bias) {
            // Thread t adds up chunk t % (BM / 8) of every (2048 / BM)-th position.
            const u8* panel = shared_memory + read * STAGE_BYTES + (threadIdx.x % (BM / 8) / 8) * 8192;
#pragma unroll
            for (int i = 0; i < BM / 32; ++i) {
                const u32 row = threadIdx.x / (BM / 8) + i * (2048 / BM);
                float values[8];
                unpack16(*(const uint4*)(panel + row * 128 + (((threadIdx.x & 7) ^ (row & 7)) << 4)), values);
#pragma unroll
                for (int e = 0; e < 8; ++e) bias[e] += values[e];
            }
        }
        wgmma_wait<PENDING>();
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
    }
    wgmma_wait<0>();
#pragma unroll
    for (int m = 0; m < BLOCKS; ++m) pin(sums[m]);
    __syncthreads();

    float* words = (float*)shared_memory;
    if (with_bias) {
#pragma unroll
        for (int e = 0; e < 8; ++e) words[threadIdx.x * 8 + e] = bias[e];
        __syncthreads();
        if (threadIdx.x < BM && row0 + threadIdx.x < params.k) {
            float sum = 0.0f;
            for (int i = 0; i < 2048 / BM; ++i) sum += words[threadIdx.x + i * BM];
            bias_partials[blockIdx.y * params.k + row0 + threadIdx.x] = sum;
        }
        __syncthreads();
    }
    if constexpr (HALVED) {
        if (group == 1)
#pragma unroll
            for (int i = 0; i < BN / 2; ++i) words[i * 128 + (threadIdx.x & 127)] = sums[0][i];
        __syncthreads();
        if (group == 1) return;
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) sums[0][i] += words[i * 128 + threadIdx.x];
    }
    const u32 lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
    float* to = partials + (u64)blockIdx.y * params.k * depth;
#pragma unroll
    for (int m = 0; m < BLOCKS; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const u32 row = row0 + (group * BLOCKS + m) * 64 + warp * 16 + (lane >> 2) + half * 8;
            if (row >= params.k) continue;
#pragma unroll
            for (int j = 0; j < BN / 8; ++j) {
                const u32 column = column0 + j * 8 + (lane & 3) * 2;
                if (column < depth)
                    *(float2*)(to + ((u64)row * depth + column)) =
                        make_float2(sums[m][4 * j + 2 * half], sums[m][4 * j + 2 * half + 1]);
            }
        }
}

#define ENTRY_POINT(NAME, BM, BN, STAGES, PENDING, BLOCKS)                                                            \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_backward_weight_##NAME(                    \
        const element* x, const element* dy, float* partials, float* bias_partials, Conv2dBackwardWeight params) {   \
        backward_weight<BM, BN, STAGES, PENDING>(x, dy, partials, bias_partials, params);                             \
    }

ENTRY_POINT(128x256, 128, 256, 4, 1, 1)
ENTRY_POINT(128x128, 128, 128, 3, 0, 2)
ENTRY_POINT(64x128, 64, 128, 4, 0, 2)

struct Conv2dWeightShares {
    u32 weights, biases;  // elements of one share, multiples of 4
    u32 shares;
    float factor;
};

// Adds up the shares: a block of 32 vectors of four gradients by 8 groups of shares. The vectors of the filter come
// first, then those of the bias.
extern "C" __global__ void __launch_bounds__(256) conv2d_wgmma_backward_weight_combine(
    const float* partials, const float* bias_partials, float* dw, float* dbias, Conv2dWeightShares params) {
    __shared__ float4 scratch[256];
    u32 vector = blockIdx.x * 32 + (threadIdx.x & 31);
    const bool of_filter = vector < params.weights / 4;
    if (!of_filter) vector -= params.weights / 4;
    const u32 vectors = (of_filter ? params.weights : params.biases) / 4;
    const float4* from = (const float4*)(of_filter ? partials : bias_partials);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (vector < vectors)
#pragma unroll 4
        for (u32 share = threadIdx.x >> 5; share < params.shares; share += 8) {
            const float4 part = from[(u64)share * vectors + vector];
            sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
    scratch[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= 32 || vector >= vectors) return;
    for (int i = 1; i < 8; ++i) {
        const float4 part = scratch[threadIdx.x + 32 * i];
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    sum.x *= params.factor, sum.y *= params.factor, sum.z *= params.factor, sum.w *= params.factor;
    ((float4*)(of_filter ? dw : dbias))[vector] = sum;
}

#endif
