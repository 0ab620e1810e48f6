// Gradient of a convolution's input in f32 without tensor cores, as an implicit GEMM: rows are positions of the input map,
// columns its channels, the depth runs over the taps that reach a position and the channels of the output map.
//
//   sum[(n,i,j), c] = Σ_{r',s',k} dy[n, i + start_h − r', j + start_w − s', k] · w[k, r, s, c]
//
// for the positions h = i·stride + class_h, w = j·stride + class_w of one residue class and the taps
// r = first_r + stride·r', s = first_s + stride·s' that reach it.
//
// Threads, tiles, shared memory and limits: see conv2d_simt_tile.cu and conv2d_simt_gather.cu.
// Grid: x = row tiles of the first class · column tiles, columns first, y = residue class (stride²), z = part of the
// depth. With several parts each leaves its sums in `partial`, [part][position][c], and conv2d_simt_backward_data_finish
// adds them in their order; else the sums are finished at once. Batch norm's sums, where asked for, are left for each row
// tile and combined by conv2d_simt_reduction.

#if ELEMENT == 0 && TF32 == 0

struct SimtBackwardData {
    Convolution layer;
    u32 dy_row, dx_row, mask_row;
    // Rows of the forward values of the two reductions.
    u32 y_row, y2_row;
    u32 accumulate;
    float scale;
    u32 part_steps, parts;
};

struct SimtReduction {
    // Row tiles of all residue classes.
    u32 row_tiles, columns;
    float factor;
};

// What batch norm's sums need of one forward value, nothing where `y` is null.
struct Reduction {
    const float* y;
    const float* mean;
    const float* inv_std;
    float* partial;
};

// dx = scale · sum (+ dx), zero where the mask is not positive, of four columns.
__device__ __forceinline__ float4 finish4(float4 v, const float* mask, float* dx, u64 position, u32 column,
                                          const SimtBackwardData& parameters) {
    const float scale = parameters.scale;
    float* to = dx + position * parameters.dx_row + column;
    v = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    if (parameters.accumulate) v = add4(v, load4(to));
    if (mask) {
        const float4 kept = load4(mask + position * parameters.mask_row + column);
        v = make_float4(kept.x > 0.0f ? v.x : 0.0f, kept.y > 0.0f ? v.y : 0.0f, kept.z > 0.0f ? v.z : 0.0f,
                        kept.w > 0.0f ? v.w : 0.0f);
    }
    store4(to, v);
    return v;
}

// Sums over the tile of a gradient g and of g · (y − mean) · inv_std.
template <class T>
__device__ __forceinline__ void reduce_gradient(const Sums<T>& sums, Memory<T>& memory, const Reduction& reduction,
                                                u32 y_row, int first_column, int columns, int row_tile) {
    float plain[T::WIDTH], normalized[T::WIDTH];
#pragma unroll
    for (int quad = 0; quad < T::QUADS; ++quad) {
        const int column = first_column + T::column_of(quad);
        const bool exists = column < columns;
        const float4 none = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        const float4 center = exists ? load4(reduction.mean + column) : none, factor = exists ? load4(reduction.inv_std + column) : none;
#pragma unroll
        for (int j = 0; j < 4; ++j) plain[4 * quad + j] = normalized[4 * quad + j] = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const u32 position = memory.positions[T::row() + i * T::ROWS];
            if (!exists || position == INVALID) continue;
            const float4 value = load4(reduction.y + (u64)position * y_row + column);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float g = sums.at[i][4 * quad + j];
                plain[4 * quad + j] += g;
                normalized[4 * quad + j] += g * ((component(value, j) - component(center, j)) * component(factor, j));
            }
        }
    }
    sum_columns<T>(plain, memory.stages);
    sum_columns<T>(normalized, memory.stages);
    if (T::row() != 0) return;
#pragma unroll
    for (int quad = 0; quad < T::QUADS; ++quad) {
        const int column = first_column + T::column_of(quad);
        if (column >= columns) continue;
        float* to = reduction.partial + (u64)row_tile * 2 * columns + column;
        const float *a = plain + 4 * quad, *b = normalized + 4 * quad;
        store4(to, make_float4(a[0], a[1], a[2], a[3]));
        store4(to + columns, make_float4(b[0], b[1], b[2], b[3]));
    }
}

// Finishes and stores the tile, and leaves the sums that batch norm needs.
template <class T>
__device__ __forceinline__ void finish_backward_data(Sums<T>& sums, Memory<T>& memory, const float* mask, float* dx,
                                                     const Reduction& first, const Reduction& second,
                                                     const SimtBackwardData& parameters, int first_column,
                                                     int row_tile) {
    const int columns = parameters.layer.c;
#pragma unroll
    for (int quad = 0; quad < T::QUADS; ++quad) {
        const int column = first_column + T::column_of(quad);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const u32 position = memory.positions[T::row() + i * T::ROWS];
            if (column < columns && position != INVALID)
                sums.set_quad(i, quad, finish4(sums.quad(i, quad), mask, dx, position, column, parameters));
        }
    }
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
        const Reduction& reduction = i == 0 ? first : second;
        const u32 y_row = i == 0 ? parameters.y_row : parameters.y2_row;
        if (reduction.y) reduce_gradient<T>(sums, memory, reduction, y_row, first_column, columns, row_tile);
    }
}

template <class T>
__device__ __forceinline__ void backward_data(const float* dy, const float* w, const float* mask, float* dx,
                                              float* partial, const Reduction& first, const Reduction& second,
                                              const SimtBackwardData& parameters) {
    __shared__ Memory<T> memory;
    const Convolution& layer = parameters.layer;
    const int stride = layer.stride, class_h = blockIdx.y / stride, class_w = blockIdx.y - class_h * stride;
    const int column_tiles = tiles(layer.c, T::N), row_tile = blockIdx.x / column_tiles;
    const int first_column = (blockIdx.x - row_tile * column_tiles) * T::N;
    // The class's part of the input map.
    const u32 class_rows = tiles((int)layer.h - class_h, stride), class_columns = tiles((int)layer.w - class_w, stride);
    const u32 rows = layer.n * class_rows * class_columns, first_row = row_tile * T::M;
    const int first_r = (class_h + (int)layer.pad) % stride, first_s = (class_w + (int)layer.pad) % stride;
    const int start_h = (class_h + (int)layer.pad - first_r) / stride, start_w = (class_w + (int)layer.pad - first_s) / stride;
    for (u32 i = threadIdx.x; i < T::M; i += T::THREADS) {
        const u32 row = first_row + i;
        const bool exists = row < rows;
        const u32 image = exists ? row / (class_rows * class_columns) : 0, position = row - image * class_rows * class_columns;
        const u32 h = exists ? position / class_columns : 0, q = position - h * class_columns;
        memory.positions[i] = exists ? (image * layer.h + h * stride + class_h) * layer.w + q * stride + class_w : INVALID;
        memory.rows[i].image = dy + (u64)image * layer.p * layer.q * parameters.dy_row;
        memory.rows[i].h = exists ? (int)h + start_h : -0x40000000;
        memory.rows[i].w = (int)q + start_w;
    }
    const int taps_r = tiles(max((int)layer.r - first_r, 0), stride), taps_s = tiles(max((int)layer.s - first_s, 0), stride);
    const Gathered map = {(int)layer.p, (int)layer.q, (int)parameters.dy_row, (int)layer.k / 4, taps_r, taps_s};
    const Taps taps = {first_r, first_s, stride};
    const int steps = tiles(taps_r * taps_s * layer.k, STEP), begin = blockIdx.z * parameters.part_steps;
    Sums<T> sums;
    convolve<T, false>(sums, memory, map, w, layer, taps, first_column, begin, min(steps, begin + (int)parameters.part_steps));
    if (parameters.parts > 1)
        leave<T>(sums, memory, partial + (u64)blockIdx.z * layer.n * layer.h * layer.w * layer.c, first_column, layer.c);
    else
        finish_backward_data<T>(sums, memory, mask, dx, first, second, parameters, first_column,
                                blockIdx.y * (gridDim.x / column_tiles) + row_tile);
}

#define BACKWARD_DATA_ENTRY(M, N, WIDTH, BLOCKS)                                                                             \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS) conv2d_simt_backward_data_##M##x##N(      \
        const float* dy, const float* w, const float* mask, float* dx, float* partial, const float* y,                 \
        const float* mean, const float* inv_std, float* reduction, const float* y2, const float* mean2,                \
        const float* inv_std2, float* reduction2, SimtBackwardData parameters) {                                       \
        backward_data<Tile<M, N, WIDTH>>(dy, w, mask, dx, partial, Reduction{y, mean, inv_std, reduction},                    \
                                  Reduction{y2, mean2, inv_std2, reduction2}, parameters);                             \
    }

BACKWARD_DATA_ENTRY(128, 128, 16, 2)
BACKWARD_DATA_ENTRY(128, 64, 16, 4)
BACKWARD_DATA_ENTRY(64, 128, 16, 4)

// Adds the parts and finishes them, without batch norm's sums. Grid: x = positions · c / 1024 rounded up. 256 threads,
// four columns each.
extern "C" __global__ void __launch_bounds__(256) conv2d_simt_backward_data_finish(const float* partial,
                                                                                   const float* mask, float* dx,
                                                                                   SimtBackwardData parameters) {
    const Convolution& layer = parameters.layer;
    const u64 size = (u64)layer.n * layer.h * layer.w * layer.c, at = ((u64)blockIdx.x * 256 + threadIdx.x) * 4;
    if (at >= size) return;
    const u64 position = at / layer.c;
    const u32 column = at - position * layer.c;
    finish4(add_parts(partial, at, size, parameters.parts), mask, dx, position, column, parameters);
}

// Gradients of batch norm's shift and scale from what row tiles left: [row tile][Σ g, Σ g·x̂][column].
// Grid and threads as above.
extern "C" __global__ void __launch_bounds__(512) conv2d_simt_reduction(const float* partial, float* dbeta,
                                                                        float* dgamma, SimtReduction parameters) {
    const u32 row_tiles = parameters.row_tiles, columns = parameters.columns;
    const float factor = parameters.factor;
    __shared__ float scratch[COMBINE_COLUMNS * COMBINE_GROUPS];
    const u32 column = blockIdx.x * COMBINE_COLUMNS + threadIdx.x % COMBINE_COLUMNS;
    const u32 group = threadIdx.x / COMBINE_COLUMNS;
    const float* from = partial + min(column, columns - 1);
    float plain = 0.0f, normalized = 0.0f;
#pragma unroll 4
    for (u32 tile = group; tile < row_tiles; tile += COMBINE_GROUPS) {
        plain += from[(u64)tile * 2 * columns];
        normalized += from[(u64)tile * 2 * columns + columns];
    }
    plain = sum_groups(plain, scratch);
    normalized = sum_groups(normalized, scratch);
    if (group == 0 && column < columns) {
        dbeta[column] = factor * plain;
        dgamma[column] = factor * normalized;
    }
}

#endif
