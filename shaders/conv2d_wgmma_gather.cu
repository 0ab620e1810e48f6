// The gathering GEMM of convolutions on tensor cores of compute capability 9.0a, forward and backward data.
//
// A row is an output position, a column an output channel, the reduction runs over (tap, channel) in steps of 128 bytes,
// flattened, so that few channels waste nothing. A thread block of two warp groups makes a tile of 128 rows by BN
// columns, each warp group 64 of the rows. Threads copy 16-byte chunks into STAGES buffers, the gathered rows with
// zeros where a tap leaves the map; chunk `t % 8` of rows `t / 8 + 32 * i` is thread t's.
//
// Shared memory, dynamic: STAGES * (128 + BN) * 128 bytes, then 1536 bytes for where the rows are.
// Limits: channels and rows of views multiples of VECTOR, at most 255 taps, maps below 16384, 2^31 positions.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The GEMM that a thread block works on.
struct Gemm {
    // The gathered operand: its map, 16-byte chunks from one position to the next and in one tap, taps in a row.
    const uint4* a;
    int a_h, a_w, a_row;
    u32 channels, taps, taps_s;
    // Row (image, u, v) meets tap (i, j) at position (u * step + h0 + i, v * step + w0 + j).
    u32 images, grid_h, grid_w, step;
    int h0, w0;
    // The row is position (u * out_step + out_h0, v * out_step + out_w0) of the output's map.
    u32 out_h, out_w, out_step, out_h0, out_w0;
    // The filter, elements from one reduction channel to the next and of its taps (backward only).
    const element* filter;
    u32 filter_stride;
    int filter_tap0, filter_tap_i, filter_tap_j;
    u32 columns;
};

// Where the rows of a tile gather from.
struct Origins : ListedRows {
    int gather[128];  // chunk of tap (0, 0) in the gathered operand
    u32 origin[128];  // map position of tap (0, 0): h in the low, w in the high half, both signed
};

__device__ __forceinline__ void locate_rows(Origins& rows, const Gemm& g, u32 row0) {
    if (threadIdx.x >= 128) return;
    const u32 row = row0 + threadIdx.x;
    const u32 v = row % g.grid_w, line = row / g.grid_w;
    const u32 u = line % g.grid_h, image = line / g.grid_h;
    const u32 out_h = u * g.out_step + g.out_h0, out_w = v * g.out_step + g.out_w0;
    const bool inside = image < g.images && out_h < g.out_h && out_w < g.out_w;
    const int h = inside ? (int)(u * g.step) + g.h0 : -32768;
    const int w = (int)(v * g.step) + g.w0;
    rows.gather[threadIdx.x] = (((int)image * g.a_h + h) * g.a_w + w) * g.a_row;
    rows.origin[threadIdx.x] = ((u32)h & 0xffffu) | ((u32)w << 16);
    rows.output[threadIdx.x] = inside ? (image * g.out_h + out_h) * g.out_w + out_w : OUTSIDE;
}

// Exact n / d for n * d < 2^32, given reciprocal(d).
__device__ __forceinline__ u32 reciprocal(u32 d) { return 0xffffffffu / d + 1; }
__device__ __forceinline__ u32 quotient(u32 n, u32 reciprocal) { return reciprocal ? __umulhi(n, reciprocal) : n; }

// The copies of one thread.
template <int BN, bool BACKWARD>
struct Loader {
    const Gemm& g;
    int gather[4];
    int h[4], w[4];
    u32 channels_reciprocal, depth_reciprocal, taps_reciprocal;
    u32 chunks;    // of the reduction
    u32 chunk;     // this thread's of each row
    u32 swizzled;  // byte offset of its first copy in a panel
    u32 column0;

    __device__ __forceinline__ Loader(const Gemm& gemm, const Origins& rows, u32 first_column) : g(gemm) {
        const u32 row = threadIdx.x >> 3;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const u32 origin = rows.origin[row + 32 * i];
            gather[i] = rows.gather[row + 32 * i];
            h[i] = (int)(short)(origin & 0xffffu);
            w[i] = (int)origin >> 16;
        }
        chunk = threadIdx.x & 7;
        swizzled = row * 128 + ((chunk ^ (row & 7)) << 4);
        chunks = g.channels * g.taps;
        channels_reciprocal = reciprocal(g.channels);
        depth_reciprocal = reciprocal(g.channels * 8);
        taps_reciprocal = 65536u / g.taps_s + 1;
        column0 = first_column;
    }

    __device__ __forceinline__ void load(u32 iteration, u32 a_tile, u32 b_tile) const {
        const u32 step = iteration * 8 + chunk;
        const u32 tap = quotient(step, channels_reciprocal);
        const u32 i = (tap * taps_reciprocal) >> 16, j = tap - i * g.taps_s;
        const int shift = ((int)i * g.a_w + (int)j) * g.a_row + (int)(step - tap * g.channels);
        const bool inside = step < chunks;
        const int di = inside ? (int)i : 65536;
#pragma unroll
        for (int row = 0; row < 4; ++row) {
            const bool covered = (u32)(h[row] + di) < (u32)g.a_h && (u32)(w[row] + (int)j) < (u32)g.a_w;
            copy16(a_tile + swizzled + row * 4096, g.a + (gather[row] + shift), covered);
        }
        if constexpr (BACKWARD) {
            load_transposed_filter(iteration, b_tile);
        } else {
#pragma unroll
            for (int row = 0; row < BN / 32; ++row) {
                const u32 column = column0 + (threadIdx.x >> 3) + 32 * row;
                copy16(b_tile + swizzled + row * 4096, (const uint4*)g.filter + ((u64)column * chunks + step),
                       inside && column < g.columns);
            }
        }
    }

    __device__ __forceinline__ void load_transposed_filter(u32 iteration, u32 b_tile) const {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const u32 step = iteration * 64 + (threadIdx.x >> 3) + 32 * row;
            const u32 tap = quotient(step, depth_reciprocal);
            const u32 i = (tap * taps_reciprocal) >> 16, j = tap - i * g.taps_s;
            const u32 channel = step - tap * g.channels * 8;
            const int offset = g.filter_tap0 + (int)i * g.filter_tap_i + (int)j * g.filter_tap_j;
            const element* from = g.filter + ((u64)channel * g.filter_stride + (u64)offset);
#pragma unroll
            for (int panel = 0; panel < BN / 64; ++panel) {
                const u32 column = column0 + panel * 64 + chunk * 8;
                copy16(b_tile + swizzled + row * 4096 + panel * 8192, from + column,
                       step < chunks * 8 && column < g.columns);
            }
        }
    }
};

// sums += the whole reduction, for this warp group's 64 rows. PENDING steps of wgmma stay under way while the next
// copies are started: 0 where two thread blocks share the multiprocessor, 1 where one is alone.
template <int BN, int STAGES, int PENDING, bool BACKWARD>
__device__ __forceinline__ void multiply(float (&sums)[BN / 2], const Gemm& g, const Origins& rows,
                                         u32 first_column) {
    constexpr int STAGE_BYTES = (128 + BN) * 128;
    constexpr int AHEAD = STAGES - 1 - PENDING;
    const u32 buffers = shared_address(shared_memory);
    const u32 group = threadIdx.x >> 7;
    const Loader<BN, BACKWARD> loader(g, rows, first_column);
    const u32 iterations = (loader.chunks + 7) / 8;

#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        const u32 tile = buffers + i * STAGE_BYTES;
        if (i < iterations) loader.load(i, tile, tile + 16384);
        commit_copies();
    }
    pin(sums);
    u32 read = 0, write = AHEAD;
    for (u32 iteration = 0; iteration < iterations; ++iteration) {
        wait_copies<AHEAD - 1>();
        publish_copies();
        __syncthreads();
        const u32 tile = buffers + read * STAGE_BYTES;
        multiply_panel<BACKWARD>(sums, tile + group * 8192, 1024, tile + 16384);
        if (iteration + AHEAD < iterations) {
            const u32 next = buffers + write * STAGE_BYTES;
            loader.load(iteration + AHEAD, next, next + 16384);
        }
        commit_copies();
        wgmma_wait<PENDING>();
        read = read + 1 == STAGES ? 0 : read + 1;
        write = write + 1 == STAGES ? 0 : write + 1;
    }
    wgmma_wait<0>();
    pin(sums);
    __syncthreads();
}

#endif
