// What the convolutions on `wgmma` do behind their sums in half precisions, forward and backward data.
//
// The sums of a tile of 128 rows by BN columns lie in the registers of two warp groups, 64 rows each. They are
// scaled and rounded there, and pass 16 rows by 64 columns at a time through a warp's own shared memory, so that
// lane l then holds 8 consecutive channels, chunk `l % 8`, of rows `l / 8 + 4 * i`, and moves 16 bytes at a time.
// What comes from other activations is added there, in the storage's own arithmetic: these steps move more than they
// compute, and half as many instructions are half the time. Per-channel sums of what is stored are left for each
// tile, in order; conv2d_wgmma_combine.cu adds them up.
//
// Shared memory: STAGING_BYTES, free during the epilogue.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && ELEMENT != 0

// Pairs of stored values.
#if ELEMENT == 1
#define PAIR "f16x2"
#else
#define PAIR "bf16x2"
#endif

__device__ __forceinline__ u32 add_pair(u32 a, u32 b) {
    u32 sum;
    asm("add.rn." PAIR " %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

__device__ __forceinline__ u32 rectify_pair(u32 a) {
    u32 result;
    asm("max." PAIR " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(0));
    return result;
}

// All bits set where a value is positive.
__device__ __forceinline__ u32 positive_pair(u32 a) {
    u32 mask;
    asm("set.gt.u32." PAIR " %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(0));
    return mask;
}

__device__ __forceinline__ uint4 add_chunk(uint4 a, uint4 b) {
    return make_uint4(add_pair(a.x, b.x), add_pair(a.y, b.y), add_pair(a.z, b.z), add_pair(a.w, b.w));
}

__device__ __forceinline__ uint4 rectify_chunk(uint4 a) {
    return make_uint4(rectify_pair(a.x), rectify_pair(a.y), rectify_pair(a.z), rectify_pair(a.w));
}

__device__ __forceinline__ uint4 mask_chunk(uint4 a, uint4 mask) {
    return make_uint4(a.x & positive_pair(mask.x), a.y & positive_pair(mask.y), a.z & positive_pair(mask.z),
                      a.w & positive_pair(mask.w));
}

// A warp's 16 rows by 64 columns in shared memory, 16-byte chunks swizzled as operands are.
struct Staging {
    u32 lane, from, to;

    __device__ __forceinline__ Staging(const void* memory) {
        lane = threadIdx.x & 31;
        const u32 words = shared_address(memory) + (threadIdx.x >> 5) * 2048;
        const u32 row = lane & 15;
        to = words + row * 128 + (((lane >> 4) ^ (row & 7)) << 4);
        from = words + (lane >> 3) * 128 + (((lane & 7) ^ (lane >> 3)) << 4);
    }

    // Takes panel `panel` of the warp's sums, each times `scale` of its column plus `bias` of it where given, times
    // `factor` otherwise. `column` is the tile's first, and may be followed by fewer than BN.
    template <int COUNT>
    __device__ __forceinline__ void put(const float (&sums)[COUNT], int panel, const float* scale, const float* bias,
                                        u32 column, u32 columns, float factor) const {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            u32 words[4];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float* sum = sums + panel * 32 + i * 8 + j * 4;
                float2 times = make_float2(factor, factor), plus = make_float2(0.0f, 0.0f);
                const u32 at = column + panel * 64 + i * 16 + j * 8 + (lane & 3) * 2;
                if (scale && at < columns) times = __ldg((const float2*)(scale + at));
                if (bias && at < columns) plus = __ldg((const float2*)(bias + at));
                words[2 * j] = pack2(fmaf(sum[0], times.x, plus.x), fmaf(sum[1], times.y, plus.y));
                words[2 * j + 1] = pack2(fmaf(sum[2], times.x, plus.x), fmaf(sum[3], times.y, plus.y));
            }
            // Chunk 2 * i + lane / 16 of row lane % 16.
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to ^ (i << 5)),
                         "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                         : "memory");
        }
        __syncwarp();
    }

    // This lane's chunk of its row `i`, 0 to 3.
    __device__ __forceinline__ uint4 get(int i) const {
        uint4 chunk;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
                     : "r"((from ^ ((i & 1) << 6)) + i * 512)
                     : "memory");
        return chunk;
    }
};

__device__ __forceinline__ void load8(const float* from, float (&values)[8]) {
    const float4 low = __ldg((const float4*)from), high = __ldg((const float4*)from + 1);
    values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
    values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
}

__device__ __forceinline__ uint4 chunk_at(const element* view, u32 view_row, u32 position, u32 column) {
    return *(const uint4*)(view + ((u64)position * view_row + column));
}

// Sums each of 8 values over the 4 lanes that share a chunk; lane l gets values `l / 8 * 2` and the next.
__device__ __forceinline__ float2 sum_rows(const float (&values)[8]) {
    const u32 lane = threadIdx.x & 31;
    float four[4], two[2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float kept = lane & 16 ? values[i + 4] : values[i], given = lane & 16 ? values[i] : values[i + 4];
        four[i] = kept + __shfl_xor_sync(0xffffffffu, given, 16);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const float kept = lane & 8 ? four[i + 2] : four[i], given = lane & 8 ? four[i] : four[i + 2];
        two[i] = kept + __shfl_xor_sync(0xffffffffu, given, 8);
    }
    return make_float2(two[0], two[1]);
}

// Output positions of this lane's rows.
template <class Rows>
__device__ __forceinline__ void locate_lane(const Rows& rows, u32 (&positions)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
        positions[i] = rows.at((threadIdx.x >> 5) * 16 + ((threadIdx.x & 31) >> 3) + 4 * i);
}

template <int BN, class Rows>
__device__ __forceinline__ void finish_forward(const float (&sums)[BN / 2], const Rows& rows, u32 column0,
                                               void* staging_memory, element* y, const float* scale, const float* bias,
                                               const element* residual, const Conv2dForward& params) {
    const Staging staging(staging_memory);
    u32 positions[4];
    locate_lane(rows, positions);
#pragma unroll
    for (int panel = 0; panel < BN / 64; ++panel) {
        const u32 column = column0 + panel * 64 + (staging.lane & 7) * 8;
        const bool inside = column < params.k;
        uint4 added[4];
        if (residual)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (inside && positions[i] != OUTSIDE)
                    added[i] = chunk_at(residual, params.residual_row, positions[i], column);
        staging.put(sums, panel, scale, bias, column0, params.k, 1.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            uint4 chunk = staging.get(i);
            if (residual) chunk = add_chunk(chunk, added[i]);
            if (params.relu) chunk = rectify_chunk(chunk);
            if (inside && positions[i] != OUTSIDE)
                *(uint4*)(y + ((u64)positions[i] * params.y_row + column)) = chunk;
        }
    }
}

// Stores y and, for each channel, sum and centered sum of squares of the tile's stored values:
// `partials[tiles][2][k]`, then the number of values of each tile, `[tiles]`. Takes no other epilogue.
template <int BN, class Rows>
__device__ __forceinline__ void finish_with_statistics(const float (&sums)[BN / 2], const Rows& rows, u32 column0,
                                                       void* staging_memory, u32 tile, u32 tiles, element* y,
                                                       float* partials, const Conv2dForward& params) {
    const Staging staging(staging_memory);
    const u32 lane = staging.lane, warp = threadIdx.x >> 5;
    u32 positions[4];
    locate_lane(rows, positions);
    u32 count = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) count += __popc(__ballot_sync(0xffffffffu, positions[i] != OUTSIDE));
    count /= 8;
    const float divisor = count ? 1.0f / (float)count : 0.0f;
    float2 total[BN / 64], squares[BN / 64];
#pragma unroll
    for (int panel = 0; panel < BN / 64; ++panel) {
        const u32 column = column0 + panel * 64 + (lane & 7) * 8;
        float first[8] = {}, second[8] = {};
        staging.put(sums, panel, nullptr, nullptr, column0, params.k, 1.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            uint4 chunk = staging.get(i);
            if (positions[i] == OUTSIDE)
                chunk = make_uint4(0, 0, 0, 0);
            else if (column < params.k)
                *(uint4*)(y + ((u64)positions[i] * params.y_row + column)) = chunk;
            float values[8];
            unpack16(chunk, values);
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                first[e] += values[e];
                second[e] = fmaf(values[e], values[e], second[e]);
            }
        }
        // Sixteen values are few enough for their squares to be centered afterwards.
        total[panel] = sum_rows(first);
        squares[panel] = sum_rows(second);
        squares[panel].x = fmaxf(squares[panel].x - total[panel].x * total[panel].x * divisor, 0.0f);
        squares[panel].y = fmaxf(squares[panel].y - total[panel].y * total[panel].y * divisor, 0.0f);
    }
    float* own = (float*)staging_memory + warp * 512;  // [2][BN]
    __syncwarp();
#pragma unroll
    for (int panel = 0; panel < BN / 64; ++panel) {
        const u32 column = panel * 64 + (lane & 7) * 8 + (lane >> 3) * 2;
        *(float2*)(own + column) = total[panel];
        *(float2*)(own + BN + column) = squares[panel];
    }
    combine_statistics<BN>((float*)staging_memory, count, column0, tile, tiles, partials, params.k);
}

// Inputs of the epilogue of backward data, each nullable.
struct GradientInputs {
    const element* mask;
    const element* y1;
    const float* mean1;
    const element* y2;
    const float* mean2;
};

template <int BN, class Rows>
__device__ __forceinline__ void prefetch_gradient_inputs(const element* dx, const GradientInputs& inputs,
                                                         const Rows& rows, u32 column0,
                                                         const Conv2dBackwardData& params) {
    if (params.accumulate) prefetch_tile<BN>(dx, params.dx_row, rows, column0, params.c);
    prefetch_tile<BN>(inputs.mask, params.mask_row, rows, column0, params.c);
    prefetch_tile<BN>(inputs.y1, params.y1_row, rows, column0, params.c);
    prefetch_tile<BN>(inputs.y2, params.y2_row, rows, column0, params.c);
}

// For each channel the sum of g * (y - mean) over this lane's rows and those of the lanes that share its chunk.
__device__ __forceinline__ float2 sum_products(const uint4 (&g)[4], const element* y, u32 y_row, const float* mean,
                                               const u32 (&positions)[4], u32 column, bool inside) {
    uint4 chunks[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        chunks[i] = make_uint4(0, 0, 0, 0);
        if (inside && positions[i] != OUTSIDE) chunks[i] = chunk_at(y, y_row, positions[i], column);
    }
    float center[8] = {}, product[8] = {};
    if (inside) load8(mean + column, center);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float gradients[8], values[8];
        unpack16(g[i], gradients);
        unpack16(chunks[i], values);
#pragma unroll
        for (int e = 0; e < 8; ++e) product[e] = fmaf(gradients[e], values[e] - center[e], product[e]);
    }
    return sum_rows(product);
}

// Stores dx and, where y1 (and y2) are given, for each channel the tile's sums of dx, dx * (y1 - mean1) (and
// dx * (y2 - mean2)): `partials[tile][2 or 3][c]`.
template <int BN, class Rows>
__device__ __forceinline__ void finish_gradient(const float (&sums)[BN / 2], const Rows& rows, u32 column0,
                                                void* staging_memory, u32 tile, element* dx,
                                                const GradientInputs& inputs, float* partials,
                                                const Conv2dBackwardData& params) {
    const Staging staging(staging_memory);
    const u32 lane = staging.lane;
    u32 positions[4];
    locate_lane(rows, positions);
    float2 totals[3][BN / 64] = {};
#pragma unroll
    for (int panel = 0; panel < BN / 64; ++panel) {
        const u32 column = column0 + panel * 64 + (lane & 7) * 8;
        const bool inside = column < params.c;
        uint4 old[4], mask[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (!inside || positions[i] == OUTSIDE) continue;
            if (params.accumulate) old[i] = chunk_at(dx, params.dx_row, positions[i], column);
            if (inputs.mask) mask[i] = chunk_at(inputs.mask, params.mask_row, positions[i], column);
        }
        staging.put(sums, panel, nullptr, nullptr, column0, params.c, params.scale);
        uint4 finished[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            uint4 chunk = staging.get(i);
            if (params.accumulate) chunk = add_chunk(chunk, old[i]);
            if (inputs.mask) chunk = mask_chunk(chunk, mask[i]);
            finished[i] = make_uint4(0, 0, 0, 0);
            if (inside && positions[i] != OUTSIDE) {
                *(uint4*)(dx + ((u64)positions[i] * params.dx_row + column)) = chunk;
                finished[i] = chunk;
            }
        }
        if (!inputs.y1) continue;
        float sum[8] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float values[8];
            unpack16(finished[i], values);
#pragma unroll
            for (int e = 0; e < 8; ++e) sum[e] += values[e];
        }
        totals[0][panel] = sum_rows(sum);
        totals[1][panel] = sum_products(finished, inputs.y1, params.y1_row, inputs.mean1, positions, column, inside);
        if (inputs.y2)
            totals[2][panel] =
                sum_products(finished, inputs.y2, params.y2_row, inputs.mean2, positions, column, inside);
    }
    if (!inputs.y1) return;
    const u32 parts = inputs.y2 ? 3 : 2;
    const u32 column = column0 + threadIdx.x;
    float* words = (float*)staging_memory;
#pragma unroll
    for (int part = 0; part < 3; ++part) {
        if (part >= parts) break;
        __syncthreads();
#pragma unroll
        for (int panel = 0; panel < BN / 64; ++panel)
            *(float2*)(words + (threadIdx.x >> 5) * 512 + panel * 64 + (lane & 7) * 8 + (lane >> 3) * 2) =
                totals[part][panel];
        __syncthreads();
        if (threadIdx.x >= BN || column >= params.c) continue;
        float sum = 0.0f;
        for (int i = 0; i < 8; ++i) sum += words[i * 512 + threadIdx.x];
        partials[((u64)tile * parts + part) * params.c + column] = sum;
    }
}

#endif
