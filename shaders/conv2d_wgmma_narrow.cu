// 3x3 convolution of stride 1 and padding 1 with at most 64 input channels, and its gradient with respect to the
// input with at most 64 output channels, on tensor cores of compute capability 9.0a, f16 and bf16. Formulas of
// conv2d_wgmma.cu and conv2d_wgmma_backward_data.cu.
//
// With so few channels the filters of 64 result channels fit into shared memory, and thread blocks stay. Rows of the
// GEMM are the 64 result channels (blockIdx.y counts them), columns 8 wide by 16 high positions of one image: the
// wide side of an instruction is the one whose operand is not read again. Each of three warp groups goes through
// tiles of its own, blockIdx.x * 3 + group and every (gridDim.x * 3)-th from there: while one finishes a tile the
// others multiply. A patch of the map serves all taps, the next one is copied meanwhile; a finished tile passes
// through its patch's memory. Thread t of a group copies chunk `t % 8` of rows `t / 8 + 16 * i`; later it holds 8
// consecutive channels, chunk `t % 8`, of positions `t / 32 * 32 + t % 32 / 8 + 4 * i`.
//
// Sums for statistics and reductions are kept over all tiles of a warp group: one part a group, as of a tile elsewhere.
// Shared memory, dynamic: 9 * 8192 bytes of filters, and six patches of 184 * 128 bytes.
// Limits: channels and rows of views multiples of 8, 2^31 positions.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#define PATCH_BYTES (184 * 128)
#define FILTER_BYTES (9 * 8192)
#define PITCH 10

struct NarrowGemm {
    const uint4* a;  // gathered map of h by w, chunks from one position to the next
    int h, w, a_row;
    u32 images;
    u32 channels;  // of the reduction
    u32 columns;   // result channels
    const element* filter;
};

// A warp group's place in its tiles.
struct NarrowTile {
    u32 image;
    int h, w;

    __device__ __forceinline__ NarrowTile(const NarrowGemm& g, u32 tile) {
        const u32 tiles_w = ((u32)g.w + 7) / 8, tiles_h = ((u32)g.h + 15) / 16;
        w = (int)(tile % tiles_w * 8);
        h = (int)(tile / tiles_w % tiles_h * 16);
        image = tile / (tiles_w * tiles_h);
    }
};

__device__ __forceinline__ void wait_group(u32 group) {
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

template <bool BACKWARD>
__device__ __forceinline__ void load_filters(const NarrowGemm& g, u32 column0, u32 steps) {
    const u32 chunk = threadIdx.x & 7;
    const u32 memory = shared_address(shared_memory);
    for (u32 line = threadIdx.x >> 3; line < 9 * 64; line += 48) {
        const u32 tap = line / 64, row = line % 64;
        const u32 to = memory + tap * 8192 + row * 128 + ((chunk ^ (row & 7)) << 4);
        if (BACKWARD)
            copy16(to, g.filter + ((u64)(row * 9 + 8 - tap) * g.columns + column0 + chunk * 8),
                   row < g.channels && column0 + chunk * 8 < g.columns);
        else if (chunk < 2 * steps)
            copy16(to, g.filter + ((u64)((column0 + row) * 9 + tap) * g.channels + chunk * 8),
                   column0 + row < g.columns && chunk * 8 < g.channels);
    }
}

__device__ __forceinline__ void load_patch(const NarrowGemm& g, u32 tile, u32 patch, u32 steps) {
    const NarrowTile at(g, tile);
    const u32 chunk = threadIdx.x & 7;
    if (chunk >= 2 * steps) return;
    const uint4* image = g.a + ((u64)at.image * (u32)(g.h * g.w) * (u32)g.a_row + chunk);
    for (u32 row = (threadIdx.x & 127) >> 3; row < PITCH * 18; row += 16) {
        const int h = at.h - 1 + (int)(row / PITCH), w = at.w - 1 + (int)(row % PITCH);
        const bool inside = (u32)h < (u32)g.h && (u32)w < (u32)g.w && chunk * 8 < g.channels;
        copy16(patch + row * 128 + ((chunk ^ (row & 7)) << 4), image + (long long)(h * g.w + w) * g.a_row, inside);
    }
}

// Position of this thread's row `i`, 0 to 7, in the map.
__device__ __forceinline__ u32 narrow_position(const NarrowGemm& g, const NarrowTile& at, int i) {
    const u32 row = (threadIdx.x & 96) + ((threadIdx.x & 31) >> 3) + 4 * i;
    const u32 h = (u32)at.h + row / 8, w = (u32)at.w + row % 8;
    return h < (u32)g.h && w < (u32)g.w ? (at.image * (u32)g.h + h) * (u32)g.w + w : OUTSIDE;
}

// For each tile calls begin(positions) while it is multiplied, then finish(positions, i, chunk) for this thread's rows.
// Result channel m's sum is scaled by `scale` and `bias` as forward's, or by `factor`.
template <bool BACKWARD, class Begin, class Finish>
__device__ __forceinline__ void multiply_narrow(const NarrowGemm& g, const float* scale, const float* bias,
                                                float factor, Begin begin, Finish finish) {
    const u32 group = threadIdx.x >> 7, lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3;
    const u32 column0 = blockIdx.y * 64;
    const u32 steps = (g.channels + 15) / 16;
    const u32 tiles = g.images * (((u32)g.h + 15) / 16) * (((u32)g.w + 7) / 8);
    const u32 filters = shared_address(shared_memory);
    const u32 patches = filters + FILTER_BYTES + group * (2 * PATCH_BYTES);
    float times[2] = {factor, factor}, plus[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const u32 column = column0 + warp * 16 + (lane >> 2) + 8 * i;
        if (scale && column < g.columns) times[i] = scale[column];
        if (bias && column < g.columns) plus[i] = bias[column];
    }
    const u32 first = blockIdx.x * 3 + group, stride = gridDim.x * 3;
    load_filters<BACKWARD>(g, column0, steps);
    if (first < tiles) load_patch(g, first, patches, steps);
    commit_copies();
    wait_copies<0>();
    publish_copies();
    __syncthreads();
    u32 current = 0;
    for (u32 tile = first; tile < tiles; tile += stride) {
        const u32 patch = patches + current * PATCH_BYTES;
        if (tile + stride < tiles) load_patch(g, tile + stride, patches + (current ^ 1) * PATCH_BYTES, steps);
        commit_copies();
        wait_copies<1>();
        publish_copies();
        wait_group(group);
        float sums[64] = {};
        pin(sums);
        wgmma_fence();
        for (u32 i = 0; i < 3; ++i)
            for (u32 j = 0; j < 3; ++j)
                for (u32 step = 0; step < steps; ++step) {
                    const u32 filter = filters + (i * 3 + j) * 8192;
                    const u64 a = BACKWARD ? operand(filter + step * 2048, 8192) : operand(filter + step * 32, 16);
                    const u64 b = operand(patch + (i * PITCH + j) * 128 + step * 32, 16, PITCH * 128);
                    wgmma<BACKWARD ? 1 : 0, 0>(sums, a, b);
                }
        wgmma_commit();
        const NarrowTile at(g, tile);
        u32 positions[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            positions[i] = column0 + (lane & 7) * 8 < g.columns ? narrow_position(g, at, i) : OUTSIDE;
        begin(positions);
        wgmma_wait<0>();
        pin(sums);
        wait_group(group);
        // Transposed on the way: a row of the patch's memory is a position, its chunks are channels.
        const u32 to = patch + ((lane >> 4) * 8 + (lane & 7)) * 128 +
                       (((warp * 2 + ((lane >> 3) & 1)) ^ (lane & 7)) << 4);
#pragma unroll
        for (int j = 0; j < 16; j += 2) {
            u32 words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* sum = sums + 4 * j + 2 * i;
                words[i] = pack2(fmaf(sum[0], times[i & 1], plus[i & 1]), fmaf(sum[1], times[i & 1], plus[i & 1]));
            }
            asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to + j * 1024),
                         "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                         : "memory");
        }
        wait_group(group);
        const u32 from = patch + (warp * 32 + (lane >> 3)) * 128 + (((lane & 7) ^ (lane >> 3)) << 4);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            uint4 chunk;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
                         : "r"((from ^ ((i & 1) << 6)) + i * 512)
                         : "memory");
            finish(positions, i, chunk);
        }
        wait_group(group);
        current ^= 1;
    }
}

// Sums over a warp group of what its threads kept for 8 channels each; the result, in threads 0 to 63, is channel t's.
__device__ __forceinline__ float sum_group(const float (&values)[8], u32 group) {
    float* words = (float*)(shared_memory + FILTER_BYTES + group * (2 * PATCH_BYTES));
    const float2 two = sum_rows(values);
    const u32 lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) & 3, thread = threadIdx.x & 127;
    wait_group(group);
    *(float2*)(words + warp * 64 + (lane & 7) * 8 + (lane >> 3) * 2) = two;
    wait_group(group);
    return thread < 64 ? words[thread] + words[64 + thread] + words[128 + thread] + words[192 + thread] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(384, 1) conv2d_wgmma_narrow_forward(
    const element* x, const element* filter, const float* scale, const float* bias, const element* residual, element* y,
    float* partials, Conv2dForward params) {
    const NarrowGemm g = {(const uint4*)x, (int)params.h, (int)params.w, (int)params.x_row / 8, params.n, params.c,
                          params.k, filter};
    const u32 group = threadIdx.x >> 7, column = blockIdx.y * 64 + (threadIdx.x & 7) * 8;
    uint4 added[8];
    // About a pivot, the first value that this thread meets.
    float pivot[8] = {}, first[8] = {}, second[8] = {};
    float count = 0.0f;
    multiply_narrow<false>(
        g, scale, bias, 1.0f,
        [&](const u32(&positions)[8]) {
            if (residual)
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    if (positions[i] != OUTSIDE)
                        added[i] = chunk_at(residual, params.residual_row, positions[i], column);
        },
        [&](const u32(&positions)[8], int i, uint4 chunk) {
            if (positions[i] == OUTSIDE) return;
            if (residual) chunk = add_chunk(chunk, added[i]);
            if (params.relu) chunk = rectify_chunk(chunk);
            *(uint4*)(y + ((u64)positions[i] * params.y_row + column)) = chunk;
            if (!partials) return;
            float values[8];
            unpack16(chunk, values);
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                if (count == 0.0f) pivot[e] = values[e];
                const float away = values[e] - pivot[e];
                first[e] += away;
                second[e] = fmaf(away, away, second[e]);
            }
            count += 1.0f;
        });
    if (!partials) return;
    // Sums about the threads' pivots become the group's sum and its sum of squares about the mean.
    float counts[8], sums[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        counts[e] = count;
        sums[e] = fmaf(count, pivot[e], first[e]);
    }
    const float rows = sum_group(counts, group), sum = sum_group(sums, group);
    float* means = (float*)(shared_memory + FILTER_BYTES + group * (2 * PATCH_BYTES)) + 256;
    if ((threadIdx.x & 127) < 64) means[threadIdx.x & 127] = rows > 0.0f ? sum / rows : 0.0f;
    wait_group(group);
    float squares[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        const float away = pivot[e] - means[(threadIdx.x & 7) * 8 + e];
        squares[e] = second[e] + 2.0f * away * first[e] + count * away * away;
    }
    const float square = fmaxf(sum_group(squares, group), 0.0f);
    const u32 part = blockIdx.x * 3 + group, parts = gridDim.x * 3;
    const u32 channel = blockIdx.y * 64 + (threadIdx.x & 127);
    if ((threadIdx.x & 127) >= 64 || channel >= params.k) return;
    partials[(u64)part * 2 * params.k + channel] = sum;
    partials[((u64)part * 2 + 1) * params.k + channel] = square;
    if (channel == 0) partials[(u64)parts * 2 * params.k + part] = rows;
}

extern "C" __global__ void __launch_bounds__(384, 1) conv2d_wgmma_narrow_backward_data(
    const element* dy, const element* filter, const element* mask, const element* y1, const float* mean1,
    const element* y2, const float* mean2, element* dx, float* partials, Conv2dBackwardData params) {
    const NarrowGemm g = {(const uint4*)dy, (int)params.h, (int)params.w, (int)params.dy_row / 8, params.n, params.k,
                          params.c, filter};
    const u32 group = threadIdx.x >> 7, column = blockIdx.y * 64 + (threadIdx.x & 7) * 8;
    const bool inside = column < params.c;
    uint4 masks[8];
    float center1[8] = {}, center2[8] = {}, sum[8] = {}, product1[8] = {}, product2[8] = {};
    if (y1 && inside) load8(mean1 + column, center1);
    if (y2 && inside) load8(mean2 + column, center2);
    multiply_narrow<true>(
        g, nullptr, nullptr, params.scale,
        [&](const u32(&positions)[8]) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                if (positions[i] == OUTSIDE) continue;
                if (params.accumulate) prefetch_l2(dx + ((u64)positions[i] * params.dx_row + column));
                if (mask) masks[i] = chunk_at(mask, params.mask_row, positions[i], column);
                if (y1) prefetch_l2(y1 + ((u64)positions[i] * params.y1_row + column));
            }
        },
        [&](const u32(&positions)[8], int i, uint4 chunk) {
            if (positions[i] == OUTSIDE) return;
            if (params.accumulate)
                chunk = add_chunk(chunk, chunk_at(dx, params.dx_row, positions[i], column));
            if (mask) chunk = mask_chunk(chunk, masks[i]);
            *(uint4*)(dx + ((u64)positions[i] * params.dx_row + column)) = chunk;
            if (!y1) return;
            float gradients[8], values[8];
            unpack16(chunk, gradients);
            unpack16(chunk_at(y1, params.y1_row, positions[i], column), values);
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                sum[e] += gradients[e];
                product1[e] = fmaf(gradients[e], values[e] - center1[e], product1[e]);
            }
            if (!y2) return;
            unpack16(chunk_at(y2, params.y2_row, positions[i], column), values);
#pragma unroll
            for (int e = 0; e < 8; ++e) product2[e] = fmaf(gradients[e], values[e] - center2[e], product2[e]);
        });
    if (!y1) return;
    const u32 parts = y2 ? 3 : 2;
    const float totals[3] = {sum_group(sum, group), sum_group(product1, group), y2 ? sum_group(product2, group) : 0.0f};
    const u32 channel = blockIdx.y * 64 + (threadIdx.x & 127);
    if ((threadIdx.x & 127) >= 64 || channel >= params.c) return;
    for (u32 part = 0; part < 3; ++part)
        if (part < parts)
            partials[((u64)(blockIdx.x * 3 + group) * parts + part) * params.c + channel] = totals[part];
}

#endif
