// Gradients of the filter and bias of 3x3 convolutions of stride 1 and padding 1, on tensor cores of compute capability
// 9.0a, f16 and bf16. Formulas and partial sums as in conv2d_wgmma_backward_weight.cu, whose combine adds these up too.
//
// A thread block of three warp groups makes 64 output channels by 64 input channels of all nine taps: warp group i
// the three taps of window row i. It goes through its share of the positions 256 at a time: their dy, and the patch
// of x under them that all taps multiply from. An operand of `wgmma` may start at any row of a patch, and its panels
// of 64 columns may lie one row apart: so one instruction takes the three taps of a window row. 256 positions are
// one of
//   flat:   consecutive positions of the map with one zero column behind each line and one zero line behind each image,
//   square: 16 by 16 positions of one image, in two halves 8 wide.
// While one batch is multiplied the next is copied; chunk `t % 8` of rows `t / 8 + 48 * i` is thread t's.
//
// Grid: x is the tile, input channels fastest, y the share. Bias shares are made by the tiles of input channel 0.
// Shared memory, dynamic: two batches of (256 + 376) * 128 bytes, and 2528 bytes of tables.
// Limits: channels and rows of views multiples of 8; flat maps at most 58 wide.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Conv2dPatchBackwardWeight {
    u32 n, h, w, c, k;
    u32 x_row, dy_row;  // elements from one position to the next
    u32 flat;           // 1 or 0: square
    u32 batches;        // of one share
};

#define BATCH 256
#define PATCH_ROWS 376
#define BATCH_BYTES ((BATCH + PATCH_ROWS) * 128)

extern __shared__ __align__(1024) u8 shared_memory[];

// Chunk index of every row of a batch in its map, negative for zeros.
struct BatchTable {
    int dy[BATCH];
    int x[PATCH_ROWS];
};

struct BatchGeometry {
    u32 pitch, lines, patch_rows;
    u32 tiles_w, tiles_h;
    u32 count;  // batches of all shares

    __device__ __forceinline__ BatchGeometry(const Conv2dPatchBackwardWeight& params) {
        pitch = params.flat ? params.w + 1 : 18;
        lines = params.h + 1;
        patch_rows = params.flat ? BATCH + 2 * pitch + 2 : 18 * 18;
        tiles_w = (params.w + 15) / 16;
        tiles_h = (params.h + 15) / 16;
        count = params.flat ? (params.n * lines * pitch + BATCH - 1) / BATCH : params.n * tiles_h * tiles_w;
    }
};

__device__ __forceinline__ void fill_table(BatchTable& table, u32 batch, const BatchGeometry& g,
                                           const Conv2dPatchBackwardWeight& params) {
    for (u32 i = threadIdx.x; i < BATCH + g.patch_rows; i += 384) {
        const bool of_dy = i < BATCH;
        const u32 row = of_dy ? i : i - BATCH;
        u32 image;
        int h, w;
        if (params.flat) {
            // Shifted by a whole image, so that it is never negative.
            const u32 at = batch * BATCH + g.lines * g.pitch + row - (of_dy ? 0 : g.pitch + 1);
            w = (int)(at % g.pitch);
            h = (int)(at / g.pitch % g.lines);
            image = at / (g.pitch * g.lines) - 1;
        } else {
            image = batch / (g.tiles_w * g.tiles_h);
            h = (int)(batch / g.tiles_w % g.tiles_h * 16);
            w = (int)(batch % g.tiles_w * 16);
            h += of_dy ? (int)(row % 128 / 8) : (int)(row / 18) - 1;
            w += of_dy ? (int)(row / 128 * 8 + row % 8) : (int)(row % 18) - 1;
        }
        const bool inside = image < params.n && (u32)h < params.h && (u32)w < params.w;
        const int position = ((int)image * (int)params.h + h) * (int)params.w + w;
        const int chunk = inside ? position * (int)((of_dy ? params.dy_row : params.x_row) / 8) : -1;
        if (of_dy)
            table.dy[row] = chunk;
        else
            table.x[row] = chunk;
    }
}

extern "C" __global__ void __launch_bounds__(384, 1) conv2d_wgmma_patch_backward_weight(
    const element* x, const element* dy, float* partials, float* bias_partials, Conv2dPatchBackwardWeight params) {
    BatchTable& table = *(BatchTable*)(shared_memory + 2 * BATCH_BYTES);
    const u32 memory = shared_address(shared_memory);
    const u32 group = threadIdx.x >> 7, chunk = threadIdx.x & 7, row = threadIdx.x >> 3;
    const u32 slices = (params.c + 63) / 64;
    const u32 k0 = blockIdx.x / slices * 64, c0 = blockIdx.x % slices * 64;
    const BatchGeometry g(params);
    const u32 first = blockIdx.y * params.batches, end = min(first + params.batches, g.count);
    const bool dy_inside = k0 + chunk * 8 < params.k, x_inside = c0 + chunk * 8 < params.c;
    const uint4* dy_from = (const uint4*)dy + (k0 / 8 + chunk);
    const uint4* x_from = (const uint4*)x + (c0 / 8 + chunk);
    const u32 swizzled = row * 128 + ((chunk ^ (row & 7)) << 4);
    const bool with_bias = bias_partials && c0 == 0;
    const u32 group_bytes = params.flat ? 1024 : g.pitch * 128;
    float bias[8] = {};
    float sums[96] = {};

    const auto load = [&](u32 to) {
#pragma unroll
        for (int i = 0; i < 6; ++i)
            if (row + 48 * i < BATCH) {
                const int from = table.dy[row + 48 * i];
                copy16(to + swizzled + i * (48 * 128), dy_from + from, from >= 0 && dy_inside);
            }
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (row + 48 * i < g.patch_rows) {
                const int from = table.x[row + 48 * i];
                copy16(to + BATCH * 128 + swizzled + i * (48 * 128), x_from + from, from >= 0 && x_inside);
            }
    };
    // Starts four steps of 16 positions.
    const auto multiply = [&](u32 batch, int quarter) {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const u32 pair = quarter * 8 + 2 * i;  // of rows of eight positions
            const u32 patch_row = params.flat ? pair * 8 : pair % 16 * 18 + pair / 16 * 8;
            const u32 b = batch + (BATCH + patch_row + group * g.pitch) * 128;
            wgmma<1, 1>(sums, operand(batch + pair * 1024, 8192), operand(b, 128, group_bytes));
        }
        wgmma_commit();
    };

    if (first < end) {
        fill_table(table, first, g, params);
        __syncthreads();
        load(memory);
    }
    commit_copies();
    pin(sums);
    for (u32 batch = first; batch < end; ++batch) {
        const u32 parity = (batch - first) & 1;
        const u32 current = memory + parity * BATCH_BYTES, next = memory + (parity ^ 1) * BATCH_BYTES;
        wait_copies<0>();
        publish_copies();
        __syncthreads();
        multiply(current, 0);
        if (batch + 1 < end) fill_table(table, batch + 1, g, params);
        wgmma_wait<1>();
        __syncthreads();
        multiply(current, 1);
        if (batch + 1 < end) load(next);
        commit_copies();
        multiply(current, 2);
        multiply(current, 3);
        if (with_bias)
            for (u32 at = row; at < BATCH; at += 48) {
                float values[8];
                const u8* from = shared_memory + parity * BATCH_BYTES + at * 128 + ((chunk ^ (at & 7)) << 4);
                unpack16(*(const uint4*)from, values);
#pragma unroll
                for (int e = 0; e < 8; ++e) bias[e] += values[e];
            }
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    pin(sums);

    if (with_bias) {
        wait_copies<0>();
        __syncthreads();
        float* words = (float*)shared_memory;
#pragma unroll
        for (int e = 0; e < 8; ++e) words[threadIdx.x * 8 + e] = bias[e];
        __syncthreads();
        if (threadIdx.x < 64 && k0 + threadIdx.x < params.k) {
            float sum = 0.0f;
            for (int i = 0; i < 48; ++i) sum += words[i * 64 + threadIdx.x];
            bias_partials[blockIdx.y * params.k + k0 + threadIdx.x] = sum;
        }
    }
    const u32 lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const u32 k = k0 + warp * 16 + (lane >> 2) + half * 8;
        if (k >= params.k) continue;
#pragma unroll
        for (int j = 0; j < 24; ++j) {
            const u32 tap = group * 3 + j / 8, c = c0 + j % 8 * 8 + (lane & 3) * 2;
            float* to = partials + ((u64)(blockIdx.y * params.k + k) * 9 + tap) * params.c + c;
            if (c < params.c) *(float2*)to = make_float2(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
        }
    }
}

#endif
