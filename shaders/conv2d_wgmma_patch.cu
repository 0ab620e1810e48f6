// Convolution and its gradient with respect to the input for windows that keep the map's size (r = s = 2 * pad + 1,
// stride 1), on tensor cores of compute capability 9.0a. Same formulas as conv2d_wgmma.cu. TF32 goes forward only.
//
// The rows of a tile share most of what their taps read. So the patch of the map under a tile, 128 bytes of channels, is
// copied to shared memory once and all taps multiply from there: an operand of `wgmma` may start at any row of a
// swizzled patch. This takes a third of the traffic from L2, which bounds the plain implicit GEMM.
//
// A tile is one of
//   flat:   128 consecutive positions of the map with `pad` zero columns behind each line, `pad` zero lines behind each
//           image, so that a tap is the same shift for every row; rows that are padding are computed and dropped.
//   square: 8 wide by 16 high positions of one image.
// The reduction runs over slices of 128 bytes of channels and, in a slice, over taps; the next slice's patch is copied
// meanwhile, 32 rows in a step. Backward data is the same with flipped taps.
//
// Shared memory, dynamic: patch, STAGES * BN * 128 bytes, tables, second patch (left out where one slice is all).
// Limits: channels and rows of views multiples of 8; at least 9 taps; a patch of at most PATCH_ROWS positions.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct Conv2dPatchForward {
    Conv2dForward conv;
    u32 flat;  // 1 or 0: square
};

struct Conv2dPatchBackwardData {
    Conv2dBackwardData conv;
    u32 flat;
};

struct PatchGemm {
    const uint4* a;  // gathered map of h by w, chunks from one position to the next and in all channels
    int h, w, a_row;
    u32 images, channels;
    u32 window, pad, flat;
    const element* filter;  // [filter row][tap][filter column], both counted in elements
    u32 filter_rows, filter_columns;
    u32 columns;
};

constexpr int PATCH_ROWS = 248;

// The tables of a tile, laid out over whole kilobytes.
struct PatchTables {
    ListedRows rows;
    int gather[PATCH_ROWS];  // chunk in the gathered map, negative for zeros
};

// From one line of the patch to the next, in rows of the patch.
__device__ __forceinline__ u32 patch_pitch(const PatchGemm& g) {
    return g.flat ? (u32)g.w + g.pad : 8 + 2 * g.pad;
}

__device__ __forceinline__ u32 patch_rows(const PatchGemm& g) {
    const u32 pitch = patch_pitch(g);
    return g.flat ? 128 + 2 * g.pad * (pitch + 1) : pitch * (16 + 2 * g.pad);
}

__device__ __forceinline__ void fill_tables(PatchTables& tables, const PatchGemm& g, u32 tile) {
    const u32 pitch = patch_pitch(g), rows = patch_rows(g);
    const int pad = (int)g.pad;
    const u32 tiles_w = ((u32)g.w + 7) / 8, tiles_h = ((u32)g.h + 15) / 16;
    const u32 image0 = tile / (tiles_w * tiles_h);
    const int h0 = (int)(tile / tiles_w % tiles_h * 16), w0 = (int)(tile % tiles_w * 8);
    const u32 lines = (u32)g.h + g.pad;
    for (u32 row = threadIdx.x; row < rows; row += 256) {
        u32 image = image0;
        int h, w;
        if (g.flat) {
            // Shifted by a whole image, so that it is never negative.
            const u32 at = tile * 128 + lines * pitch + row - g.pad * (pitch + 1);
            w = (int)(at % pitch);
            h = (int)(at / pitch % lines);
            image = at / (pitch * lines) - 1;
        } else {
            h = h0 - pad + (int)(row / pitch);
            w = w0 - pad + (int)(row % pitch);
        }
        const bool inside = image < g.images && (u32)h < (u32)g.h && (u32)w < (u32)g.w;
        tables.gather[row] = inside ? (((int)image * g.h + h) * g.w + w) * g.a_row : -1;
    }
    if (threadIdx.x < 128) {
        const u32 row = threadIdx.x;
        u32 image = image0;
        int h, w;
        if (g.flat) {
            const u32 at = tile * 128 + row;
            w = (int)(at % pitch);
            h = (int)(at / pitch % lines);
            image = at / (pitch * lines);
        } else {
            h = h0 + (int)(row / 8);
            w = w0 + (int)(row % 8);
        }
        const bool inside = image < g.images && h < g.h && w < g.w;
        tables.rows.output[row] = inside ? ((image * (u32)g.h + (u32)h) * (u32)g.w + (u32)w) : OUTSIDE;
    }
}

// The copies of one thread: chunk `t % 8` of rows `t / 8 + 32 * i`.
template <int BN, bool BACKWARD>
struct PatchLoader {
    const PatchGemm& g;
    const PatchTables& tables;
    u32 rows, chunk, swizzled, column0, taps;

    __device__ __forceinline__ PatchLoader(const PatchGemm& gemm, const PatchTables& from, u32 first_column)
        : g(gemm), tables(from), rows(patch_rows(gemm)), chunk(threadIdx.x & 7), column0(first_column),
          taps(gemm.window * gemm.window) {
        const u32 row = threadIdx.x >> 3;
        swizzled = row * 128 + ((chunk ^ (row & 7)) << 4);
    }

    __device__ __forceinline__ void load_patch(u32 patch, u32 slice, u32 part) const {
        const u32 row = part * 32 + (threadIdx.x >> 3);
        if (row >= rows) return;
        const int from = tables.gather[row];
        const u32 channel = slice * 8 + chunk;
        copy16(patch + swizzled + part * 4096, g.a + (from + (int)channel), from >= 0 && channel < g.channels);
    }

    __device__ __forceinline__ void load_filter(u32 tile, u32 slice, u32 tap) const {
        if constexpr (BACKWARD) {
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                const u32 channel = slice * 64 + (threadIdx.x >> 3) + 32 * row;
                const element* from = g.filter + (u64)(channel * taps + (taps - 1 - tap)) * g.filter_columns;
#pragma unroll
                for (int panel = 0; panel < BN / 64; ++panel) {
                    const u32 column = column0 + panel * 64 + chunk * 8;
                    copy16(tile + swizzled + row * 4096 + panel * 8192, from + column,
                           channel < g.filter_rows && column < g.columns);
                }
            }
        } else {
            const u32 channel = slice * 8 + chunk;
#pragma unroll
            for (int row = 0; row < BN / 32; ++row) {
                const u32 column = column0 + (threadIdx.x >> 3) + 32 * row;
                copy16(tile + swizzled + row * 4096,
                       (const uint4*)g.filter + ((u64)(column * taps + tap) * g.channels + channel),
                       channel < g.channels && column < g.columns);
            }
        }
    }
};

template <int BN, int STAGES>
struct PatchMemory {
    static constexpr int PATCH_BYTES = PATCH_ROWS * 128;
    static constexpr int TABLES = PATCH_BYTES + STAGES * BN * 128;
    static constexpr int SECOND_PATCH = TABLES + (sizeof(PatchTables) + 1023) / 1024 * 1024;
};

template <int BN, int STAGES, int PENDING, bool BACKWARD>
__device__ __forceinline__ void multiply_patch(float (&sums)[BN / 2], const PatchGemm& g,
                                               const PatchTables& tables, u32 first_column) {
    using Memory = PatchMemory<BN, STAGES>;
    constexpr int AHEAD = STAGES - 1 - PENDING;
    const u32 memory = shared_address(shared_memory);
    const u32 filters = memory + Memory::PATCH_BYTES;
    const u32 group = threadIdx.x >> 7;
    const PatchLoader<BN, BACKWARD> loader(g, tables, first_column);
    const u32 slices = (g.channels + 7) / 8;
    const u32 pitch = patch_pitch(g);
    const u32 group_bytes = g.flat ? 1024 : pitch * 128;
    const u32 block_rows = g.flat ? 64 : 8 * pitch;

    for (u32 part = 0; part * 32 < loader.rows; ++part) loader.load_patch(memory, 0, part);
    u32 next_slice = 0, next_tap = 0;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        loader.load_filter(filters + i * BN * 128, 0, next_tap++);
        commit_copies();
    }
    pin(sums);
    u32 read = 0, write = AHEAD;
    for (u32 slice = 0; slice < slices; ++slice) {
        const u32 patch = memory + (slice & 1 ? Memory::SECOND_PATCH : 0);
        const u32 next_patch = memory + (slice & 1 ? 0 : Memory::SECOND_PATCH);
        u32 tap = 0;
        for (u32 i = 0; i < g.window; ++i)
            for (u32 j = 0; j < g.window; ++j, ++tap) {
                wait_copies<AHEAD - 1>();
                publish_copies();
                __syncthreads();
                const u32 tile = filters + read * (BN * 128);
                const u32 a_tile = patch + (group * block_rows + i * pitch + j) * 128;
                multiply_panel<BACKWARD>(sums, a_tile, group_bytes, tile);
                if (next_slice < slices) {
                    loader.load_filter(filters + write * (BN * 128), next_slice, next_tap);
                    if (++next_tap == loader.taps) next_tap = 0, ++next_slice;
                }
                if ((int)tap >= PENDING && slice + 1 < slices)
                    loader.load_patch(next_patch, slice + 1, tap - PENDING);
                commit_copies();
                wgmma_wait<PENDING>();
                read = read + 1 == STAGES ? 0 : read + 1;
                write = write + 1 == STAGES ? 0 : write + 1;
            }
    }
    wgmma_wait<0>();
    pin(sums);
    __syncthreads();
}

template <int BN, int STAGES, int PENDING>
__device__ __forceinline__ void forward_patch(const element* x, const element* filter, element* y, const float* scale,
                                              const float* bias, const element* residual, float* partials,
                                              const Conv2dForward& params, u32 flat) {
    PatchGemm g;
    g.a = (const uint4*)x;
    g.h = params.h, g.w = params.w, g.a_row = params.x_row / VECTOR;
    g.images = params.n, g.channels = params.c / VECTOR;
    g.window = params.r, g.pad = params.pad, g.flat = flat;
    g.filter = filter;
    g.filter_rows = params.k, g.filter_columns = params.c;
    g.columns = params.k;
    auto& tables = *(PatchTables*)(shared_memory + PatchMemory<BN, STAGES>::TABLES);
    const u32 tile_columns = (g.columns + BN - 1) / BN;
    const u32 tile_row = blockIdx.x / tile_columns, column0 = blockIdx.x % tile_columns * BN;
    fill_tables(tables, g, tile_row);
    __syncthreads();
    prefetch_tile<BN>(residual, params.residual_row, tables.rows, column0, params.k);
    float sums[BN / 2] = {};
    multiply_patch<BN, STAGES, PENDING, false>(sums, g, tables, column0);
    if (partials)
        finish_with_statistics<BN>(sums, tables.rows, column0, shared_memory, tile_row, gridDim.x / tile_columns,
                                   y, partials, params);
    else
        finish_forward<BN>(sums, tables.rows, column0, shared_memory, y, scale, bias, residual, params);
}

#define FORWARD(NAME, BN, STAGES, PENDING, BLOCKS)                                                                    \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_patch_forward_##NAME(                      \
        const element* x, const element* filter, const float* scale, const float* bias, const element* residual,     \
        element* y, float* partials, Conv2dPatchForward params) {                                                     \
        forward_patch<BN, STAGES, PENDING>(x, filter, y, scale, bias, residual, partials, params.conv, params.flat);  \
    }

FORWARD(128x128, 128, 3, 0, 2)
FORWARD(128x64, 64, 3, 0, 3)

#if ELEMENT != 0

template <int BN, int STAGES, int PENDING>
__device__ __forceinline__ void backward_data_patch(const element* dy, const element* filter, element* dx,
                                                    const GradientInputs& inputs, float* partials,
                                                    const Conv2dBackwardData& params, u32 flat) {
    PatchGemm g;
    g.a = (const uint4*)dy;
    g.h = params.h, g.w = params.w, g.a_row = params.dy_row / 8;
    g.images = params.n, g.channels = params.k / 8;
    g.window = params.r, g.pad = params.pad, g.flat = flat;
    g.filter = filter;
    g.filter_rows = params.k, g.filter_columns = params.c;
    g.columns = params.c;
    auto& tables = *(PatchTables*)(shared_memory + PatchMemory<BN, STAGES>::TABLES);
    const u32 tile_columns = (g.columns + BN - 1) / BN;
    const u32 tile_row = blockIdx.x / tile_columns, column0 = blockIdx.x % tile_columns * BN;
    fill_tables(tables, g, tile_row);
    __syncthreads();
    prefetch_gradient_inputs<BN>(dx, inputs, tables.rows, column0, params);
    float sums[BN / 2] = {};
    multiply_patch<BN, STAGES, PENDING, true>(sums, g, tables, column0);
    finish_gradient<BN>(sums, tables.rows, column0, shared_memory, tile_row, dx, inputs, partials, params);
}

#define BACKWARD_DATA(NAME, BN, STAGES, PENDING, BLOCKS)                                                              \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_patch_backward_data_##NAME(                \
        const element* dy, const element* filter, const element* mask, const element* y1, const float* mean1,        \
        const element* y2, const float* mean2, element* dx, float* partials, Conv2dPatchBackwardData params) {        \
        const GradientInputs inputs = {mask, y1, mean1, y2, mean2};                                                   \
        backward_data_patch<BN, STAGES, PENDING>(dy, filter, dx, inputs, partials, params.conv, params.flat);         \
    }

BACKWARD_DATA(128x128, 128, 3, 0, 2)
BACKWARD_DATA(128x64, 64, 3, 0, 3)

#endif

#endif
