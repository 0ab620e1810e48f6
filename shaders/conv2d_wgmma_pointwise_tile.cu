// The GEMM of 1x1 convolutions of stride 1 on tensor cores of compute capability 9.0a, forward and backward data.
//
// Rows are positions, columns output channels, the reduction runs over channels in steps of 128 bytes. These layers move
// more than they multiply, so the thread blocks stay: each makes every gridDim.x-th tile of 128 rows by BN columns
// and copies the next tiles' steps while it finishes one. Two warp groups have 64 rows each; chunk `t % 8` of rows
// `t / 8 + 32 * i` is thread t's.
//
// Shared memory, dynamic: STAGES * (128 + BN) * 128 bytes, then STAGING_BYTES.
// Limits: channels and rows of views multiples of VECTOR, 2^31 positions.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct PointwiseGemm {
    const uint4* a;
    u32 a_row, rows, channels;  // chunks from one row to the next; rows; chunks of the reduction
    const element* filter;      // forward [column][channel], backward [channel][column]
    u32 columns;
};

// The copies of one thread, step by step through the block's tiles.
template <int BN, bool BACKWARD>
struct PointwiseLoader {
    const PointwiseGemm& g;
    u32 chunk, row, swizzled;
    u32 tile, step;
    u32 row0, column0;

    __device__ __forceinline__ PointwiseLoader(const PointwiseGemm& gemm)
        : g(gemm), chunk(threadIdx.x & 7), row(threadIdx.x >> 3), step(0) {
        swizzled = row * 128 + ((chunk ^ (row & 7)) << 4);
        start(blockIdx.x);
    }

    __device__ __forceinline__ void start(u32 next) {
        const u32 tile_columns = (g.columns + BN - 1) / BN;
        tile = next;
        row0 = tile / tile_columns * 128;
        column0 = tile % tile_columns * BN;
    }

    __device__ __forceinline__ void load(u32 a_tile, u32 b_tile) const {
        const u32 channel = step * 8 + chunk;
        const bool inside = channel < g.channels;
        const uint4* a = g.a + ((u64)(row0 + row) * g.a_row + channel);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            copy16(a_tile + swizzled + i * 4096, a + (u64)(32 * i) * g.a_row, inside && row0 + row + 32 * i < g.rows);
        if constexpr (BACKWARD) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const u32 depth = step * 64 + row + 32 * i;
                const element* from = g.filter + (u64)depth * g.columns;
#pragma unroll
                for (int panel = 0; panel < BN / 64; ++panel) {
                    const u32 column = column0 + panel * 64 + chunk * 8;
                    copy16(b_tile + swizzled + i * 4096 + panel * 8192, from + column,
                           depth < g.channels * 8 && column < g.columns);
                }
            }
        } else {
            const uint4* from = (const uint4*)g.filter + ((u64)(column0 + row) * g.channels + channel);
#pragma unroll
            for (int i = 0; i < BN / 32; ++i)
                copy16(b_tile + swizzled + i * 4096, from + (u64)(32 * i) * g.channels,
                       inside && column0 + row + 32 * i < g.columns);
        }
    }
};

// Calls prefetch(row0, column0) early and finish(sums, row0, column0) for every tile of this block. PENDING as in
// conv2d_wgmma_gather.cu.
template <int BN, int STAGES, int PENDING, bool BACKWARD, class Prefetch, class Finish>
__device__ __forceinline__ void multiply_pointwise(const PointwiseGemm& g, Prefetch prefetch, Finish finish) {
    constexpr int STAGE_BYTES = (128 + BN) * 128;
    constexpr int AHEAD = STAGES - 1 - PENDING;
    const u32 buffers = shared_address(shared_memory);
    const u32 group = threadIdx.x >> 7;
    const u32 tile_columns = (g.columns + BN - 1) / BN;
    const u32 tiles = (g.rows + 127) / 128 * tile_columns;
    const u32 steps = (g.channels + 7) / 8;
    PointwiseLoader<BN, BACKWARD> loader(g);
    u32 read = 0, write = 0;
    const auto load_next = [&]() {
        if (loader.tile < tiles) {
            if (loader.step == 0) prefetch(loader.row0, loader.column0);
            const u32 stage = buffers + write * STAGE_BYTES;
            loader.load(stage, stage + 16384);
            if (++loader.step == steps) {
                loader.step = 0;
                loader.start(loader.tile + gridDim.x);
            }
        }
        commit_copies();
        write = write + 1 == STAGES ? 0 : write + 1;
    };
    for (int i = 0; i < AHEAD; ++i) load_next();
    for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sums[BN / 2] = {};
        pin(sums);
        for (u32 step = 0; step < steps; ++step) {
            wait_copies<AHEAD - 1>();
            publish_copies();
            __syncthreads();
            const u32 stage = buffers + read * STAGE_BYTES;
            multiply_panel<BACKWARD>(sums, stage + group * 8192, 1024, stage + 16384);
            load_next();
            wgmma_wait<PENDING>();
            read = read + 1 == STAGES ? 0 : read + 1;
        }
        wgmma_wait<0>();
        pin(sums);
        finish(sums, tile / tile_columns, tile % tile_columns * BN);
    }
}

#endif
