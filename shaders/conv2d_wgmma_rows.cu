// Parameters of the convolutions on `wgmma`, the rows of their tiles, and what every epilogue shares.
//
// A tile has 128 rows, positions of the output; eight warps hold 16 of them each.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

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

// Asks for the tile's part of a view that the epilogue will read.
template <int BN, class Rows>
__device__ __forceinline__ void prefetch_tile(const element* view, u32 view_row, const Rows& rows, u32 column0,
                                              u32 columns) {
    if (!view) return;
    constexpr u32 LINE = 8 * VECTOR;
    for (u32 line = threadIdx.x; line < 128 * BN / LINE; line += 256) {
        const u32 output = rows.at(line / (BN / LINE)), column = column0 + line % (BN / LINE) * LINE;
        if (output != OUTSIDE && column < columns) prefetch_l2(view + ((u64)output * view_row + column));
    }
}

// Combines what warp w of eight left at `words + 512 * w`, sums and centered sums of squares of its `count` rows for each
// of BN columns: `partials[tiles][2][k]`, then the number of values of each tile, `[tiles]`.
template <int BN>
__device__ __forceinline__ void combine_statistics(float* words, u32 count, u32 column0, u32 tile, u32 tiles,
                                                   float* partials, u32 k) {
    u32* counts = (u32*)words + 8 * 512;
    if ((threadIdx.x & 31) == 0) counts[threadIdx.x >> 5] = count;
    __syncthreads();
    const u32 column = column0 + threadIdx.x;
    if (threadIdx.x >= BN || column >= k) return;
    words += threadIdx.x;
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
    partials[(u64)tile * 2 * k + column] = sum;
    partials[((u64)tile * 2 + 1) * k + column] = square;
    if (column == 0) partials[(u64)tiles * 2 * k + tile] = rows_in_tile;
}

#endif
