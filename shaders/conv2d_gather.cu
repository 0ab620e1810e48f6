// Operands of a convolution's implicit GEMM, forward and backward data: which rows a block has, where their elements
// lie, and the copies of a mainloop's steps into shared memory.
//
// Forward: rows are output positions (n, p, q), columns output channels k, the reduction runs over (r, s, c).
// Backward data: rows are input positions (n, h, w), columns input channels c, the reduction runs over (r, s, k). For a
// stride above 1, grid.z counts the residue classes of (h + pad, w + pad): each is a dense convolution over its own
// taps. Its rows are the positions of ceil(h / stride) x ceil(w / stride) maps, those outside of the true map skipped.
//
// The gathered operand (x forward, dy backward) is read in chunks of 16 bytes, the reduction counted in chunks: any
// number of channels fills the steps. A row keeps the chunk of its first tap, and two bits a tap that tell whether it
// lies inside of the map; a step finds one tap a thread.
// Limits: windows up to 15 a side, fewer than 2^31 rows, tensors up to 32 GiB, filters up to 2^31 chunks.

#ifdef TENSOR_CORES

struct Geometry {
    // The gathered operand: its map, the chunks from one position to the next, its channels.
    u32 height, width, row_chunks, channel_chunks;
    // The result (y forward, dx backward): its map and channels.
    u32 images, out_height, out_width, columns;
    u32 window_height, window_width, stride, pad;
    // Divisors by the positions of a map of rows, by the width of that map, by `channel_chunks`, and by the tiles that
    // lie side by side.
    Divisor by_map, by_width, by_channels, by_column_tiles;
    // Parts of the reduction.
    u32 splits;
};

// Which rows of the result a block's GEMM has, and which taps.
struct Class {
    u32 first_r, first_s;  // first tap
    u32 taps_height, taps_width;
    u32 first_h, first_w;  // first position
    u32 rows, step;        // rows of the GEMM, and positions from one to the next in each direction
};

__device__ __forceinline__ Class only_class(const Geometry& g) {
    return {0, 0, g.window_height, g.window_width, 0, 0, g.images * g.by_map.divisor, 1};
}

__device__ __forceinline__ Class residue_class(const Geometry& g) {
    if (g.stride == 1) return only_class(g);
    const u32 r = blockIdx.z / g.stride, s = blockIdx.z % g.stride;
    const u32 lift = (g.pad + g.stride - 1) / g.stride * g.stride - g.pad;
    return {r,
            s,
            r < g.window_height ? (g.window_height - r + g.stride - 1) / g.stride : 0,
            s < g.window_width ? (g.window_width - s + g.stride - 1) / g.stride : 0,
            (r + lift) % g.stride,
            (s + lift) % g.stride,
            g.images * g.by_map.divisor,
            g.stride};
}

// A block's tile: columns run first, so that blocks at work together share rows.
struct Corner {
    u32 row_tile, row, column;
};

template <class T>
__device__ __forceinline__ Corner corner(const Geometry& g) {
    const u32 row_tile = g.by_column_tiles.divide(blockIdx.x);
    return {row_tile, row_tile * T::M, (blockIdx.x - row_tile * g.by_column_tiles.divisor) * T::N};
}

// A position of the result, by GEMM row; none where the row lies outside.
constexpr u32 NONE = 0xffffffff;

__device__ __forceinline__ u32 position(const Geometry& g, const Class& c, u32 row) {
    if (row >= c.rows) return NONE;
    if (c.step == 1) return row;
    const u32 n = g.by_map.divide(row), in_map = row - n * g.by_map.divisor, line = g.by_width.divide(in_map);
    const u32 h = c.first_h + line * c.step, w = c.first_w + (in_map - line * g.by_width.divisor) * c.step;
    return h < g.out_height && w < g.out_width ? (n * g.out_height + h) * g.out_width + w : NONE;
}

// Brings the steps of both operands. A tap is valid for a row when its two bits are set in the row's mask; bit 15 of
// either half never is.
template <class T, bool BACKWARD>
struct Loader {
    static constexpr int ROW_STEP = T::THREADS / T::CHUNKS;
    static constexpr u32 NO_TAP = 0x80008000u;
    const Geometry& g;
    const Class& c;
    const element* from;
    const element* filter;
    u32 first_column;
    u32 depth;  // chunks of the reduction
    u32 width_multiplier;
    int offsets[T::A_LOADS];
    u32 masks[T::A_LOADS];

    __device__ __forceinline__ Loader(const Geometry& g, const Class& c, const element* from, const element* filter,
                                      const Corner& corner)
        : g(g), c(c), from(from), filter(filter), first_column(corner.column) {
        depth = c.taps_height * c.taps_width * g.channel_chunks;
        // At least 65536 / width, and too large by less than matters for taps below 256.
        width_multiplier = (u32)__fdividef(65536.0f, (float)max(c.taps_width, 1u)) + 1;
        const int first_h = first_position(c.first_h, c.first_r), first_w = first_position(c.first_w, c.first_s);
        const int step = BACKWARD ? 1 : (int)g.stride;
#pragma unroll
        for (int i = 0; i < T::A_LOADS; ++i) {
            const u32 row = corner.row + threadIdx.x / T::CHUNKS + i * ROW_STEP;
            const u32 n = g.by_map.divide(row), in_map = row - n * g.by_map.divisor, line = g.by_width.divide(in_map);
            const u32 in_line = in_map - line * g.by_width.divisor;
            const int h = first_h + (int)line * step, w = first_w + (int)in_line * step;
            offsets[i] = (((int)n * (int)g.height + h) * (int)g.width + w) * (int)g.row_chunks;
            const u32 mask = inside(h, c.taps_height, g.height) | inside(w, c.taps_width, g.width) << 16;
            bool is_row = row < c.rows;
            if (BACKWARD)
                is_row = is_row && c.first_h + line * c.step < g.out_height &&
                         c.first_w + in_line * c.step < g.out_width;
            masks[i] = is_row ? mask : 0;
        }
    }

    // Where the first tap of row 0 lies along one side of the gathered map.
    __device__ __forceinline__ int first_position(u32 first, u32 tap) const {
        if (!BACKWARD) return -(int)g.pad;
        return (int)(g.stride == 1 ? g.pad : (first + g.pad - tap) / g.stride);
    }

    // Bits of `count` taps that lie inside of a map's side: tap t at `at + t`, backward at `at - t`.
    static __device__ __forceinline__ u32 inside(int at, u32 count, u32 side) {
        const int end = min(max(BACKWARD ? at + 1 : (int)side - at, 0), (int)count);
        const int first = min(max(BACKWARD ? at + 1 - (int)side : -at, 0), end);
        return (1u << end) - (1u << first);
    }

    // Chunk `index` of the reduction: its tap and channel chunk.
    __device__ __forceinline__ void locate(u32 index, u32& r, u32& s, u32& channel) const {
        const u32 tap = g.by_channels.divide(index);
        channel = index - tap * g.channel_chunks;
        r = tap * width_multiplier >> 16;
        s = tap - r * c.taps_width;
    }

    __device__ __forceinline__ void a(u32 step, u32 stage) const {
        u32 r, s, channel;
        const u32 column = threadIdx.x % T::CHUNKS, row = threadIdx.x / T::CHUNKS;
        const u32 index = step * T::CHUNKS + column;
        locate(index, r, s, channel);
        const int taps = (int)((r * g.width + s) * g.row_chunks);
        const int delta = (BACKWARD ? -taps : taps) + (int)channel;
        const u32 bits = index < depth ? 1u << r | 0x10000u << s : NO_TAP;
        const u32 to = stage + deep_place<T::CHUNKS>(row, column);
#pragma unroll
        for (int i = 0; i < T::A_LOADS; ++i)
            copy_chunk(to + i * ROW_STEP * T::CHUNKS * 16, from + (long long)(offsets[i] + delta) * VECTOR,
                       (masks[i] & bits) == bits);
    }

    __device__ __forceinline__ void b(u32 step, u32 stage) const {
        if (BACKWARD) load_wide_filter(step, stage + T::A_BYTES);
        else load_deep_filter(step, stage + T::A_BYTES);
    }

    // Filter rows are columns of the GEMM, contiguous along the reduction.
    __device__ __forceinline__ void load_deep_filter(u32 step, u32 to) const {
        const u32 column = threadIdx.x % T::CHUNKS, row = threadIdx.x / T::CHUNKS;
        const u32 index = step * T::CHUNKS + column, k = first_column + row;
        const u32 end = index < depth ? g.columns : 0;
        const element* at = filter + ((long long)k * depth + index) * VECTOR;
        to += deep_place<T::CHUNKS>(row, column);
#pragma unroll
        for (int i = 0; i < T::B_LOADS; ++i)
            copy_chunk(to + i * ROW_STEP * T::CHUNKS * 16, at + (long long)(i * ROW_STEP * depth) * VECTOR,
                       k + i * ROW_STEP < end);
    }

    // Filter rows lie along the reduction, contiguous along the GEMM's columns. Each thread serves one chunk of the
    // reduction, so that it too finds one tap a step.
    __device__ __forceinline__ void load_wide_filter(u32 step, u32 to) const {
        constexpr int WIDTH = T::N / VECTOR;
        u32 r, s, channel;
        const u32 part = threadIdx.x / ROW_STEP, item = threadIdx.x % ROW_STEP;
        const u32 index = step * T::CHUNKS + part;
        locate(index, r, s, channel);
        r = c.first_r + r * c.step;
        s = c.first_s + s * c.step;
        const u32 columns = g.columns / VECTOR, first = first_column / VECTOR;
        const u32 k_step = g.window_height * g.window_width * columns;
        const u32 end = index < depth ? columns : 0;
        const element* at = filter + ((long long)(channel * VECTOR) * k_step +
                                      (r * g.window_width + s) * columns + first) * VECTOR;
#pragma unroll
        for (int i = 0; i < T::B_LOADS; ++i) {
            const u32 row = (item + i * ROW_STEP) / WIDTH, column = (item + i * ROW_STEP) % WIDTH;
            copy_chunk(to + wide_place<WIDTH>(part * VECTOR + row, column),
                       at + (long long)(row * k_step + column) * VECTOR, first + column < end);
        }
    }
};

#endif
