// What the convolutions on `wgmma` do behind their sums, forward and backward data.
//
// The sums of a tile of 128 rows by BN columns lie in the registers of two warp groups, 64 rows each. They pass 16 rows
// by 32 columns at a time through a warp's own shared memory, so that lane l then holds 8 consecutive channels, chunk
// `l % 4`, of rows `l / 4` and that plus 8, and moves 16 bytes at a time. Per-channel sums of what is stored are left for
// each tile, in order; conv2d_wgmma_combine.cu adds them up.
//
// Shared memory: STAGING_BYTES, free during the epilogue.

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

#define OUTSIDE 0xffffffffu
#define STAGING_BYTES (8 * 2048 + 32)

extern __shared__ __align__(1024) u8 shared_memory[];

// Output positions of a tile's rows, OUTSIDE where a row is none: listed,
struct ListedRows {
    u32 output[128];

    __device__ __forceinline__ u32 at(u32 row) const { return output[row]; }
};

// or consecutive.
struct ConsecutiveRows {
    u32 first, end;

    __device__ __forceinline__ u32 at(u32 row) const { return first + row < end ? first + row : OUTSIDE; }
};

// A warp's 16 rows by 32 columns in shared memory, 16-byte groups swizzled.
struct Staging {
    float* words;
    u32 lane;

    __device__ __forceinline__ Staging(void* memory)
        : words((float*)memory + (threadIdx.x >> 5) * 512), lane(threadIdx.x & 31) {}

    // Takes panel `panel` of the warp's sums.
    template <int COUNT>
    __device__ __forceinline__ void put(const float (&sums)[COUNT], int panel) const {
        const u32 row = lane >> 2;
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int first = panel * 16 + 4 * j;
            const u32 group = (2 * j + ((lane >> 1) & 1)) ^ (2 * (row & 3));
            float* to = words + row * 32 + group * 4 + (lane & 1) * 2;
            *(float2*)to = make_float2(sums[first], sums[first + 1]);
            *(float2*)(to + 8 * 32) = make_float2(sums[first + 2], sums[first + 3]);
        }
        __syncwarp();
    }

    // This lane's chunk of its row `i`, 0 or 1.
    __device__ __forceinline__ void get(int i, float (&values)[8]) const {
        const u32 row = (lane >> 2) + 8 * i;
        const float4* from = (const float4*)(words + row * 32 + ((2 * (lane & 3)) ^ (2 * (row & 3))) * 4);
        const float4 low = from[0], high = from[1];
        values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
        values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
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

// Asks for the tile's part of a view that the epilogue will read.
template <int BN, class Rows>
__device__ __forceinline__ void prefetch_tile(const element* view, u32 view_row, const Rows& rows, u32 column0,
                                              u32 columns) {
    if (!view) return;
    for (u32 line = threadIdx.x; line < 128 * BN / 64; line += 256) {
        const u32 output = rows.at(line / (BN / 64)), column = column0 + line % (BN / 64) * 64;
        if (output != OUTSIDE && column < columns) prefetch_l2(view + ((u64)output * view_row + column));
    }
}

// Sums each of 8 values over the 8 lanes that share a chunk; lane l gets value `l / 4`.
__device__ __forceinline__ float sum_rows(const float (&values)[8]) {
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
    const float kept = lane & 4 ? two[1] : two[0], given = lane & 4 ? two[0] : two[1];
    return kept + __shfl_xor_sync(0xffffffffu, given, 4);
}

template <int BN, class Rows>
__device__ __forceinline__ void finish_forward(const float (&sums)[BN / 2], const Rows& rows, u32 column0,
                                               void* staging_memory, element* y, const float* scale, const float* bias,
                                               const element* residual, const Conv2dForward& params) {
    const Staging staging(staging_memory);
    const u32 lane = threadIdx.x & 31, row0 = (threadIdx.x >> 5) * 16 + (lane >> 2);
    const float floor = params.relu ? 0.0f : __int_as_float(0xff800000);
    const u32 positions[2] = {rows.at(row0), rows.at(row0 + 8)};
#pragma unroll
    for (int panel = 0; panel < BN / 32; ++panel) {
        const u32 column = column0 + panel * 32 + (lane & 3) * 8;
        const bool inside = column < params.k;
        uint4 extra[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            extra[i] = make_uint4(0, 0, 0, 0);
            if (residual && inside && positions[i] != OUTSIDE)
                extra[i] = chunk_at(residual, params.residual_row, positions[i], column);
        }
        float factor[8], summand[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) factor[i] = 1.0f, summand[i] = 0.0f;
        if (scale && inside) load8(scale + column, factor);
        if (bias && inside) load8(bias + column, summand);
        staging.put(sums, panel);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float values[8], added[8];
            staging.get(i, values);
            unpack16(extra[i], added);
#pragma unroll
            for (int e = 0; e < 8; ++e) values[e] = fmaxf(fmaf(values[e], factor[e], summand[e]) + added[e], floor);
            if (inside && positions[i] != OUTSIDE) store16(y + ((u64)positions[i] * params.y_row + column), values);
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
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row0 = warp * 16 + (lane >> 2);
    const u32 positions[2] = {rows.at(row0), rows.at(row0 + 8)};
    const float stored[2] = {positions[0] != OUTSIDE ? 1.0f : 0.0f, positions[1] != OUTSIDE ? 1.0f : 0.0f};
    const u32 count = (__popc(__ballot_sync(0xffffffffu, positions[0] != OUTSIDE)) +
                       __popc(__ballot_sync(0xffffffffu, positions[1] != OUTSIDE))) / 4;
    const float divisor = count ? 1.0f / (float)count : 0.0f;
    float total[BN / 32], squares[BN / 32];
#pragma unroll
    for (int panel = 0; panel < BN / 32; ++panel) {
        const u32 column = column0 + panel * 32 + (lane & 3) * 8;
        float pivot[8], first[8], second[8];
        staging.put(sums, panel);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float values[8];
            staging.get(i, values);
            const uint4 bits = pack16(values);
            if (column < params.k && positions[i] != OUTSIDE)
                *(uint4*)(y + ((u64)positions[i] * params.y_row + column)) = bits;
            unpack16(bits, values);
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                if (i == 0) pivot[e] = __shfl_sync(0xffffffffu, values[e], lane & 3), first[e] = second[e] = 0.0f;
                const float away = (values[e] - pivot[e]) * stored[i];
                first[e] += away;
                second[e] = fmaf(away, away, second[e]);
            }
        }
        // Sums about the pivot become a plain sum and one about the warp's mean.
        const float moved = sum_rows(first), about = sum_rows(second);
        float center = pivot[0];
#pragma unroll
        for (int e = 1; e < 8; ++e) center = (lane >> 2) == e ? pivot[e] : center;
        total[panel] = count ? fmaf((float)count, center, moved) : 0.0f;
        squares[panel] = fmaxf(about - moved * moved * divisor, 0.0f);
    }
    float* own = staging.words;  // [2][BN]
    __syncwarp();
#pragma unroll
    for (int panel = 0; panel < BN / 32; ++panel) {
        const u32 column = panel * 32 + (lane & 3) * 8 + (lane >> 2);
        own[column] = total[panel];
        own[BN + column] = squares[panel];
    }
    u32* counts = (u32*)staging_memory + 8 * 512;
    if (lane == 0) counts[warp] = count;
    __syncthreads();
    const u32 column = column0 + threadIdx.x;
    if (threadIdx.x >= BN || column >= params.k) return;
    const float* words = (const float*)staging_memory + threadIdx.x;
    float sum = 0.0f, square = 0.0f, rows_in_tile = 0.0f;
    for (int i = 0; i < 8; ++i) {
        sum += words[i * 512];
        rows_in_tile += (float)counts[i];
    }
    const float mean = rows_in_tile > 0.0f ? sum / rows_in_tile : 0.0f;
    for (int i = 0; i < 8; ++i)
        if (counts[i]) {
            const float away = words[i * 512] / (float)counts[i] - mean;
            square += words[i * 512 + BN] + (float)counts[i] * away * away;
        }
    partials[(u64)tile * 2 * params.k + column] = sum;
    partials[((u64)tile * 2 + 1) * params.k + column] = square;
    if (column == 0) partials[(u64)tiles * 2 * params.k + tile] = rows_in_tile;
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

// Stores dx and, where y1 (and y2) are given, for each channel the tile's sums of dx, dx * (y1 - mean1) (and
// dx * (y2 - mean2)): `partials[tile][2 or 3][c]`.
template <int BN, class Rows>
__device__ __forceinline__ void finish_gradient(const float (&sums)[BN / 2], const Rows& rows, u32 column0,
                                                void* staging_memory, u32 tile, element* dx,
                                                const GradientInputs& inputs, float* partials,
                                                const Conv2dBackwardData& params) {
    const Staging staging(staging_memory);
    const u32 lane = threadIdx.x & 31, row0 = (threadIdx.x >> 5) * 16 + (lane >> 2);
    const u32 positions[2] = {rows.at(row0), rows.at(row0 + 8)};
    float totals[3][BN / 32] = {};
#pragma unroll
    for (int panel = 0; panel < BN / 32; ++panel) {
        const u32 column = column0 + panel * 32 + (lane & 3) * 8;
        const bool inside = column < params.c;
        uint4 old[2], mask[2], y1[2], bits[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            old[i] = mask[i] = y1[i] = make_uint4(0, 0, 0, 0);
            if (!inside || positions[i] == OUTSIDE) continue;
            if (params.accumulate) old[i] = chunk_at(dx, params.dx_row, positions[i], column);
            if (inputs.mask) mask[i] = chunk_at(inputs.mask, params.mask_row, positions[i], column);
            if (inputs.y1) y1[i] = chunk_at(inputs.y1, params.y1_row, positions[i], column);
        }
        staging.put(sums, panel);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
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
            bits[i] = pack16(values);
            if (inside && positions[i] != OUTSIDE)
                *(uint4*)(dx + ((u64)positions[i] * params.dx_row + column)) = bits[i];
            else
                bits[i] = make_uint4(0, 0, 0, 0);
        }
        if (!inputs.y1) continue;
        float sum[8] = {}, product[8] = {}, mean[8] = {};
        if (inside) load8(inputs.mean1 + column, mean);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float values[8], other[8];
            unpack16(bits[i], values);
            unpack16(y1[i], other);
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                sum[e] += values[e];
                product[e] = fmaf(values[e], other[e] - mean[e], product[e]);
            }
        }
        totals[0][panel] = sum_rows(sum);
        totals[1][panel] = sum_rows(product);
        if (!inputs.y2) continue;
        if (inside) load8(inputs.mean2 + column, mean);
#pragma unroll
        for (int e = 0; e < 8; ++e) product[e] = 0.0f;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            if (!inside || positions[i] == OUTSIDE) continue;
            float values[8], other[8];
            unpack16(bits[i], values);
            unpack16(chunk_at(inputs.y2, params.y2_row, positions[i], column), other);
#pragma unroll
            for (int e = 0; e < 8; ++e) product[e] = fmaf(values[e], other[e] - mean[e], product[e]);
        }
        totals[2][panel] = sum_rows(product);
    }
    if (!inputs.y1) return;
    const u32 parts = inputs.y2 ? 3 : 2;
    const u32 column = column0 + threadIdx.x;
#pragma unroll
    for (int part = 0; part < 3; ++part) {
        if (part >= parts) break;
        __syncthreads();
#pragma unroll
        for (int panel = 0; panel < BN / 32; ++panel)
            staging.words[panel * 32 + (lane & 3) * 8 + (lane >> 2)] = totals[part][panel];
        __syncthreads();
        if (threadIdx.x >= BN || column >= params.c) continue;
        const float* words = (const float*)staging_memory + threadIdx.x;
        float sum = 0.0f;
        for (int i = 0; i < 8; ++i) sum += words[i * 512];
        partials[((u64)tile * parts + part) * params.c + column] = sum;
    }
}

#endif
