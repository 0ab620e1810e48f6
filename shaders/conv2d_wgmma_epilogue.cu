// What the convolutions on `wgmma` do behind their sums, forward and backward data.
//
// The sums of a tile of BM rows by BN columns lie in the registers of two warp groups, half of the rows each. They pass
// 16 rows by 64 columns at a time through a warp's own shared memory, so that a thread then holds 8 consecutive channels
// of 4 rows and moves 16 bytes at a time. Per-channel sums of what is stored are left for each tile, in order, and added
// up by conv2d_wgmma_statistics_combine and conv2d_wgmma_reduction_combine (in conv2d_wgmma.cu).
//
// Shared memory: 36864 bytes and, with sums, 96 * BN more, where the operands were.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && ELEMENT != 0

struct Conv2dForward {
    u32 n, h, w, c, k, r, s, stride, pad, p, q;
    u32 x_row, y_row, residual_row;  // elements from one position to the next
    u32 relu;
};

struct Conv2dBackwardData {
    u32 n, h, w, c, k, r, s, stride, pad, p, q;
    u32 dy_row, dx_row, mask_row, y1_row, y2_row;
    u32 accumulate;
    float scale;
};

// Where the rows of a tile are.
template <int BM>
struct Positions {
    u32 output[BM];  // position in the output's map, OUTSIDE where the row is none
};

#define OUTSIDE 0xffffffffu

// Exact n / d for n * d < 2^32, given reciprocal(d).
__device__ __forceinline__ u32 reciprocal(u32 d) { return 0xffffffffu / d + 1; }
__device__ __forceinline__ u32 quotient(u32 n, u32 reciprocal) { return reciprocal ? __umulhi(n, reciprocal) : n; }

extern __shared__ __align__(1024) u8 shared_memory[];

// A warp's 16 rows by 64 columns in shared memory: 72 words a row, the even groups of four columns first.
struct Staging {
    float* words;

    __device__ __forceinline__ Staging() : words((float*)shared_memory + (threadIdx.x >> 5) * (16 * 72)) {}

    // Takes panel `panel` of the sums of 16 rows.
    template <int COUNT>
    __device__ __forceinline__ void put(const float (&sums)[COUNT], int panel) const {
        const u32 lane = threadIdx.x & 31;
        float* to = words + (lane >> 2) * 72 + ((lane >> 1) & 1) * 36 + (lane & 1) * 2;
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int first = panel * 32 + 4 * j;
            *(float2*)(to + 4 * j) = make_float2(sums[first], sums[first + 1]);
            *(float2*)(to + 8 * 72 + 4 * j) = make_float2(sums[first + 2], sums[first + 3]);
        }
        __syncwarp();
    }

    // Chunk `lane % 8` of row `lane / 8 + 4 * i`.
    __device__ __forceinline__ void get(int i, float (&values)[8]) const {
        const u32 lane = threadIdx.x & 31;
        const float* from = words + ((lane >> 3) + 4 * i) * 72 + (lane & 7) * 4;
        const float4 low = *(const float4*)from, high = *(const float4*)(from + 36);
        values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
        values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
    }
};

__device__ __forceinline__ void load8(const float* from, float (&values)[8]) {
    const float4 low = __ldg((const float4*)from), high = __ldg((const float4*)from + 1);
    values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
    values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
}

// The first of the 16 rows, of the tile's BM, that this warp finishes in its block `m` of 64.
template <int BM>
__device__ __forceinline__ u32 warp_row(int m) {
    const u32 warp = threadIdx.x >> 5;
    return (warp >> 2) * (BM / 2) + m * 64 + (warp & 3) * 16;
}

// Asks for the tile's part of a view that the epilogue will read.
template <int BM, int BN>
__device__ __forceinline__ void prefetch_tile(const element* view, u32 view_row, const Positions<BM>& rows, u32 column0,
                                              u32 columns) {
    if (!view) return;
#pragma unroll
    for (int i = 0; i < BM * BN / 64 / 256; ++i) {
        const u32 line = threadIdx.x + i * 256;
        const u32 output = rows.output[line / (BN / 64)], column = column0 + line % (BN / 64) * 64;
        if (output != OUTSIDE && column < columns) prefetch_l2(view + ((u64)output * view_row + column));
    }
}

__device__ __forceinline__ uint4 chunk_at(const element* view, u32 view_row, u32 position, u32 column) {
    return *(const uint4*)(view + ((u64)position * view_row + column));
}

template <int BM, int BN>
__device__ __forceinline__ void finish_forward(const float (&sums)[BM / 128][BN / 2], const Positions<BM>& rows,
                                               u32 column0, element* y, const float* scale, const float* bias,
                                               const element* residual, const Conv2dForward& params) {
    const Staging staging;
    const u32 lane = threadIdx.x & 31;
    const float floor = params.relu ? 0.0f : __int_as_float(0xff800000);
#pragma unroll
    for (int panel = 0; panel < BN / 64; ++panel) {
        const u32 column = column0 + panel * 64 + (lane & 7) * 8;
        const bool inside = column < params.k;
        float factor[8], summand[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) factor[i] = 1.0f, summand[i] = 0.0f;
        if (scale && inside) load8(scale + column, factor);
        if (bias && inside) load8(bias + column, summand);
#pragma unroll
        for (int m = 0; m < BM / 128; ++m) {
            u32 position[4];
            uint4 extra[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                position[i] = inside ? rows.output[warp_row<BM>(m) + (lane >> 3) + 4 * i] : OUTSIDE;
                extra[i] = make_uint4(0, 0, 0, 0);
                if (residual && position[i] != OUTSIDE)
                    extra[i] = chunk_at(residual, params.residual_row, position[i], column);
            }
            staging.put(sums[m], panel);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float values[8], added[8];
                staging.get(i, values);
                unpack16(extra[i], added);
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    values[e] = fmaxf(fmaf(values[e], factor[e], summand[e]) + added[e], floor);
                if (position[i] != OUTSIDE) store16(y + ((u64)position[i] * params.y_row + column), values);
            }
        }
    }
}

// Sums over a warp's 4 rows of lanes, into lanes 0 to 7.
__device__ __forceinline__ void sum_lane_rows(float (&values)[8]) {
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        values[e] += __shfl_down_sync(0xffffffffu, values[e], 16);
        values[e] += __shfl_down_sync(0xffffffffu, values[e], 8);
    }
}

// Stores y and, for each channel, sum and centered sum of squares of the tile's stored values:
// `partials[tile_rows][2][k]`, then the number of values of each tile, `[tile_rows]`. Takes no other epilogue.
template <int BM, int BN>
__device__ __forceinline__ void finish_with_statistics(const float (&sums)[BM / 128][BN / 2],
                                                       const Positions<BM>& rows, u32 column0, u32 tile_row,
                                                       u32 tile_rows, element* y, float* partials, const Conv2dForward& params) {
    const Staging staging;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float* totals = (float*)shared_memory + 8 * 16 * 72;  // [warp][2][BN]
    u32 valid[BM / 128][4];
    u32 warp_count = 0;
#pragma unroll
    for (int m = 0; m < BM / 128; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            valid[m][i] = rows.output[warp_row<BM>(m) + (lane >> 3) + 4 * i];
            warp_count += __popc(__ballot_sync(0xffffffffu, valid[m][i] != OUTSIDE));
        }
    const float count = (float)(warp_count / 8);
#pragma unroll
    for (int panel = 0; panel < BN / 64; ++panel) {
        const u32 column = column0 + panel * 64 + (lane & 7) * 8;
        const bool inside = column < params.k;
        float pivot[8], first[8], second[8];
#pragma unroll
        for (int m = 0; m < BM / 128; ++m) {
            staging.put(sums[m], panel);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float values[8];
                staging.get(i, values);
                const bool stored = valid[m][i] != OUTSIDE;
                const uint4 bits = pack16(values);
                if (stored && inside) *(uint4*)(y + ((u64)valid[m][i] * params.y_row + column)) = bits;
                unpack16(bits, values);
                if (m == 0 && i == 0)
#pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        pivot[e] = __shfl_sync(0xffffffffu, values[e], lane & 7);
                        first[e] = second[e] = 0.0f;
                    }
#pragma unroll
                for (int e = 0; e < 8; ++e) {
                    const float away = stored ? values[e] - pivot[e] : 0.0f;
                    first[e] += away;
                    second[e] = fmaf(away, away, second[e]);
                }
            }
        }
        sum_lane_rows(first);
        sum_lane_rows(second);
        if (lane < 8)
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                float* to = totals + warp * (2 * BN) + panel * 64 + lane * 8 + e;
                to[0] = count > 0.0f ? fmaf(count, pivot[e], first[e]) : 0.0f;
                to[BN] = count > 0.0f ? fmaxf(second[e] - first[e] * first[e] / count, 0.0f) : 0.0f;
            }
    }
    u32* counts = (u32*)(totals + 8 * 2 * BN);
    if (lane == 0) counts[warp] = warp_count / 8;
    __syncthreads();
    const u32 column = column0 + threadIdx.x;
    if (threadIdx.x >= BN || column >= params.k) return;
    float sum = 0.0f, squares = 0.0f, rows_in_tile = 0.0f;
    for (int i = 0; i < 8; ++i) {
        sum += totals[i * 2 * BN + threadIdx.x];
        rows_in_tile += (float)counts[i];
    }
    const float mean = sum / rows_in_tile;
    for (int i = 0; i < 8; ++i)
        if (counts[i]) {
            const float away = totals[i * 2 * BN + threadIdx.x] / (float)counts[i] - mean;
            squares += totals[i * 2 * BN + BN + threadIdx.x] + (float)counts[i] * away * away;
        }
    partials[(u64)tile_row * 2 * params.k + column] = sum;
    partials[((u64)tile_row * 2 + 1) * params.k + column] = squares;
    if (column == 0) partials[(u64)tile_rows * 2 * params.k + tile_row] = rows_in_tile;
}

// Inputs of the epilogue of backward data.
struct GradientInputs {
    const element* mask;
    const element* y1;
    const float* mean1;
    const element* y2;
    const float* mean2;
};

// Stores dx; with REDUCTIONS also, for each channel, the tile's sums of dx, dx * (y1 - mean1) and dx * (y2 - mean2).
template <int BM, int BN, int REDUCTIONS>
__device__ __forceinline__ void finish_reduced_gradient(const float (&sums)[BM / 128][BN / 2], const Positions<BM>& rows,
                                                u32 column0, u32 tile, element* dx, const GradientInputs& inputs,
                                                float* partials, const Conv2dBackwardData& params) {
    const Staging staging;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float* totals = (float*)shared_memory + 8 * 16 * 72;  // [warp][1 + REDUCTIONS][BN]
#pragma unroll
    for (int panel = 0; panel < BN / 64; ++panel) {
        const u32 column = column0 + panel * 64 + (lane & 7) * 8;
        const bool inside = column < params.c;
        float total[1 + REDUCTIONS][8] = {}, mean[2][8] = {};
        if (REDUCTIONS >= 1 && inside) load8(inputs.mean1 + column, mean[0]);
        if (REDUCTIONS >= 2 && inside) load8(inputs.mean2 + column, mean[1]);
#pragma unroll
        for (int m = 0; m < BM / 128; ++m) {
            u32 position[4];
            uint4 old[4], mask[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                position[i] = inside ? rows.output[warp_row<BM>(m) + (lane >> 3) + 4 * i] : OUTSIDE;
                old[i] = make_uint4(0, 0, 0, 0);
                if (position[i] == OUTSIDE) continue;
                if (params.accumulate) old[i] = chunk_at(dx, params.dx_row, position[i], column);
                if (inputs.mask) mask[i] = chunk_at(inputs.mask, params.mask_row, position[i], column);
            }
            staging.put(sums[m], panel);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (position[i] == OUTSIDE) continue;
                float values[8], other[8];
                staging.get(i, values);
                unpack16(old[i], other);
#pragma unroll
                for (int e = 0; e < 8; ++e) values[e] = fmaf(values[e], params.scale, other[e]);
                if (inputs.mask) {
                    unpack16(mask[i], other);
#pragma unroll
                    for (int e = 0; e < 8; ++e) values[e] = other[e] > 0.0f ? values[e] : 0.0f;
                }
                const uint4 bits = pack16(values);
                *(uint4*)(dx + ((u64)position[i] * params.dx_row + column)) = bits;
                if (REDUCTIONS >= 1) {
                    unpack16(bits, values);
                    unpack16(chunk_at(inputs.y1, params.y1_row, position[i], column), other);
#pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        total[0][e] += values[e];
                        total[1][e] = fmaf(values[e], other[e] - mean[0][e], total[1][e]);
                    }
                }
                if (REDUCTIONS >= 2) {
                    unpack16(chunk_at(inputs.y2, params.y2_row, position[i], column), other);
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        total[REDUCTIONS][e] = fmaf(values[e], other[e] - mean[1][e], total[REDUCTIONS][e]);
                }
            }
        }
        if (REDUCTIONS > 0)
#pragma unroll
            for (int t = 0; t < 1 + REDUCTIONS; ++t) {
                sum_lane_rows(total[t]);
                if (lane < 8)
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        totals[(warp * (1 + REDUCTIONS) + t) * BN + panel * 64 + lane * 8 + e] = total[t][e];
            }
    }
    if (REDUCTIONS == 0) return;
    __syncthreads();
    const u32 column = column0 + threadIdx.x;
    if (threadIdx.x >= BN || column >= params.c) return;
    for (int t = 0; t < 1 + REDUCTIONS; ++t) {
        float sum = 0.0f;
        for (int i = 0; i < 8; ++i) sum += totals[(i * (1 + REDUCTIONS) + t) * BN + threadIdx.x];
        partials[((u64)tile * (1 + REDUCTIONS) + t) * params.c + column] = sum;
    }
}

template <int BM, int BN>
__device__ __forceinline__ void finish_gradient(const float (&sums)[BM / 128][BN / 2], const Positions<BM>& rows,
                                                u32 column0, u32 tile, element* dx, const GradientInputs& inputs,
                                                float* partials, const Conv2dBackwardData& params) {
    if (inputs.y2)
        finish_reduced_gradient<BM, BN, 2>(sums, rows, column0, tile, dx, inputs, partials, params);
    else if (inputs.y1)
        finish_reduced_gradient<BM, BN, 1>(sums, rows, column0, tile, dx, inputs, partials, params);
    else
        finish_reduced_gradient<BM, BN, 0>(sums, rows, column0, tile, dx, inputs, partials, params);
}

template <int BM, int BN>
__device__ __forceinline__ void prefetch_gradient_inputs(const element* dx, const GradientInputs& inputs,
                                                         const Positions<BM>& rows, u32 column0,
                                                         const Conv2dBackwardData& params) {
    if (params.accumulate) prefetch_tile<BM, BN>(dx, params.dx_row, rows, column0, params.c);
    prefetch_tile<BM, BN>(inputs.mask, params.mask_row, rows, column0, params.c);
    prefetch_tile<BM, BN>(inputs.y1, params.y1_row, rows, column0, params.c);
    prefetch_tile<BM, BN>(inputs.y2, params.y2_row, rows, column0, params.c);
}

#endif
