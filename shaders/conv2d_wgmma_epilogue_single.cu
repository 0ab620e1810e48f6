// What the convolutions on `wgmma` do behind their sums in TF32, forward.
//
// Of each 8 columns a thread holds two neighbors in two rows (conv2d_wgmma_tile.cu), and four lanes hold a whole sector
// of a row: they store it without passing it through shared memory.
//
// Shared memory: STAGING_BYTES, free during the epilogue, for statistics alone.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && ELEMENT == 0

// Output positions of this thread's two rows.
template <class Rows>
__device__ __forceinline__ void locate_thread(const Rows& rows, u32 (&positions)[2]) {
    const u32 row = (threadIdx.x >> 5) * 16 + ((threadIdx.x & 31) >> 2);
    positions[0] = rows.at(row);
    positions[1] = rows.at(row + 8);
}

template <int BN, class Rows>
__device__ __forceinline__ void finish_forward(const float (&sums)[BN / 2], const Rows& rows, u32 column0, void*,
                                               element* y, const float* scale, const float* bias,
                                               const element* residual, const Conv2dForward& params) {
    u32 positions[2];
    locate_thread(rows, positions);
#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {
        const u32 column = column0 + 8 * j + 2 * (threadIdx.x & 3);
        if (column >= params.k) break;
        float2 times = make_float2(1.0f, 1.0f), plus = make_float2(0.0f, 0.0f);
        if (scale) times = __ldg((const float2*)(scale + column));
        if (bias) plus = __ldg((const float2*)(bias + column));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (positions[half] == OUTSIDE) continue;
            const float* sum = sums + 4 * j + 2 * half;
            float2 value = make_float2(fmaf(sum[0], times.x, plus.x), fmaf(sum[1], times.y, plus.y));
            if (residual) {
                const u64 at = (u64)positions[half] * params.residual_row + column;
                const float2 added = *(const float2*)(residual + at);
                value.x += added.x, value.y += added.y;
            }
            if (params.relu) value.x = fmaxf(value.x, 0.0f), value.y = fmaxf(value.y, 0.0f);
            *(float2*)(y + ((u64)positions[half] * params.y_row + column)) = value;
        }
    }
}

// The sum over the eight lanes that hold the same columns.
__device__ __forceinline__ float sum_lanes(float value) {
#pragma unroll
    for (int step = 4; step < 32; step *= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

// Stores y and leaves the tile's statistics (conv2d_wgmma_rows.cu). Takes no other epilogue.
template <int BN, class Rows>
__device__ __forceinline__ void finish_with_statistics(const float (&sums)[BN / 2], const Rows& rows, u32 column0,
                                                       void* staging_memory, u32 tile, u32 tiles, element* y,
                                                       float* partials, const Conv2dForward& params) {
    const u32 lane = threadIdx.x & 31;
    float* own = (float*)staging_memory + (threadIdx.x >> 5) * 512;  // [2][BN]
    u32 positions[2];
    locate_thread(rows, positions);
    const bool inside[2] = {positions[0] != OUTSIDE, positions[1] != OUTSIDE};
    const u32 count = (__popc(__ballot_sync(0xffffffffu, inside[0])) + __popc(__ballot_sync(0xffffffffu, inside[1]))) / 4;
    const float divisor = count ? 1.0f / (float)count : 0.0f;
#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {
        const u32 column = 8 * j + 2 * (lane & 3);
        float2 total = make_float2(0.0f, 0.0f), squares = make_float2(0.0f, 0.0f);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (!inside[half]) continue;
            const float2 value = make_float2(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
            if (column0 + column < params.k)
                *(float2*)(y + ((u64)positions[half] * params.y_row + column0 + column)) = value;
            total.x += value.x, total.y += value.y;
            squares.x = fmaf(value.x, value.x, squares.x), squares.y = fmaf(value.y, value.y, squares.y);
        }
        total.x = sum_lanes(total.x), total.y = sum_lanes(total.y);
        // Sixteen values are few enough for their squares to be centered afterwards.
        squares.x = fmaxf(sum_lanes(squares.x) - total.x * total.x * divisor, 0.0f);
        squares.y = fmaxf(sum_lanes(squares.y) - total.y * total.y * divisor, 0.0f);
        if (lane >= 4) continue;
        *(float2*)(own + column) = total;
        *(float2*)(own + BN + column) = squares;
    }
    combine_statistics<BN>((float*)staging_memory, count, column0, tile, tiles, partials, params.k);
}

#endif
