// Convolution forward in f32 without tensor cores, as an implicit GEMM: rows are positions of the output map, columns its
// channels, the depth runs over the taps of the window and the channels of the input map.
//
//   sum[(n,p,q), k] = Σ_{r,s,c} x[n, p·stride + r − pad, q·stride + s − pad, c] · w[k, r, s, c]
//
// Threads, tiles, shared memory and limits: see conv2d_simt_tile.cu and conv2d_simt_gather.cu.
// Grid: x = row tiles · column tiles, columns first, z = part of the depth. With several parts each leaves its sums in
// `partial`, [part][position][k], and conv2d_simt_forward_finish adds them in their order; else the sums are finished at
// once. Statistics of y, where asked for, are left for each row tile and combined by conv2d_simt_statistics.

#if ELEMENT == 0 && TF32 == 0

struct SimtForward {
    Convolution layer;
    // Elements from one position to the next.
    u32 x_row, y_row, residual_row;
    u32 relu;
    // Steps of the depth in one part, and the number of parts.
    u32 part_steps, parts;
};

struct SimtStatistics {
    u32 rows, tile_rows, columns;
    float epsilon;
};

// relu(scale · sum + bias + residual) of four columns; nothing where a pointer is null.
__device__ __forceinline__ float4 finish4(float4 v, const float* scale, const float* bias, const float* residual,
                                          u64 position, u32 column, const SimtForward& parameters) {
    if (scale) {
        const float4 factor = load4(scale + column);
        v = make_float4(v.x * factor.x, v.y * factor.y, v.z * factor.z, v.w * factor.w);
    }
    if (bias) v = add4(v, load4(bias + column));
    if (residual) v = add4(v, load4(residual + position * parameters.residual_row + column));
    if (parameters.relu) v = make_float4(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f), fmaxf(v.z, 0.0f), fmaxf(v.w, 0.0f));
    return v;
}

// Finishes and stores the tile, and leaves the mean and the centered squares of the tile's columns of y.
template <class T>
__device__ __forceinline__ void finish_forward(Sums<T>& sums, Memory<T>& memory, const float* scale, const float* bias,
                                               const float* residual, float* y, float* statistics,
                                               const SimtForward& parameters, int first_column, int row_tile,
                                               int rows) {
    const int columns = parameters.layer.k;
#pragma unroll
    for (int quad = 0; quad < T::QUADS; ++quad) {
        const int column = first_column + T::column_of(quad);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const u32 position = memory.positions[T::row() + i * T::ROWS];
            float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (column < columns && position != INVALID) {
                value = finish4(sums.quad(i, quad), scale, bias, residual, position, column, parameters);
                store4(y + (u64)position * parameters.y_row + column, value);
            }
            sums.set_quad(i, quad, value);
        }
    }
    if (!statistics) return;
    float mean[T::WIDTH], squares[T::WIDTH];
#pragma unroll
    for (int j = 0; j < T::WIDTH; ++j) {
        mean[j] = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) mean[j] += sums.at[i][j];
    }
    sum_columns<T>(mean, memory.stages);
#pragma unroll
    for (int j = 0; j < T::WIDTH; ++j) {
        mean[j] /= (float)rows;
        squares[j] = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float d = sums.at[i][j] - mean[j];
            if (T::row() + i * T::ROWS < rows) squares[j] += d * d;
        }
    }
    sum_columns<T>(squares, memory.stages);
    if (T::row() != 0) return;
#pragma unroll
    for (int quad = 0; quad < T::QUADS; ++quad) {
        const int column = first_column + T::column_of(quad);
        if (column >= columns) continue;
        float* to = statistics + (u64)row_tile * 2 * columns + column;
        const float *m = mean + 4 * quad, *q = squares + 4 * quad;
        store4(to, make_float4(m[0], m[1], m[2], m[3]));
        store4(to + columns, make_float4(q[0], q[1], q[2], q[3]));
    }
}

template <class T>
__device__ __forceinline__ void forward(const float* x, const float* w, const float* scale, const float* bias,
                                        const float* residual, float* y, float* partial, float* statistics,
                                        const SimtForward& parameters) {
    __shared__ Memory<T> memory;
    const Convolution& layer = parameters.layer;
    const int column_tiles = tiles(layer.k, T::N), row_tile = blockIdx.x / column_tiles;
    const int first_column = (blockIdx.x - row_tile * column_tiles) * T::N;
    const u32 rows = layer.n * layer.p * layer.q, first_row = row_tile * T::M;
    for (u32 i = threadIdx.x; i < T::M; i += T::THREADS) {
        const u32 row = first_row + i, image = row / (layer.p * layer.q), position = row - image * layer.p * layer.q;
        const int p = position / layer.q, q = position - p * layer.q;
        const bool exists = row < rows;
        memory.positions[i] = exists ? row : INVALID;
        memory.rows[i].image = exists ? x + (u64)image * layer.h * layer.w * parameters.x_row : x;
        memory.rows[i].h = exists ? p * (int)layer.stride - (int)layer.pad : -0x40000000;
        memory.rows[i].w = q * (int)layer.stride - (int)layer.pad;
    }
    const Gathered map = {(int)layer.h, (int)layer.w, (int)parameters.x_row, (int)layer.c / 4, (int)layer.r, (int)layer.s};
    const int steps = tiles(layer.r * layer.s * layer.c, STEP), begin = blockIdx.z * parameters.part_steps;
    Sums<T> sums;
    convolve<T, true>(sums, memory, map, w, layer, Taps(), first_column, begin, min(steps, begin + (int)parameters.part_steps));
    if (parameters.parts > 1)
        leave<T>(sums, memory, partial + (u64)blockIdx.z * rows * layer.k, first_column, layer.k);
    else
        finish_forward<T>(sums, memory, scale, bias, residual, y, statistics, parameters, first_column, row_tile,
                          min(rows - first_row, (u32)T::M));
}

#define FORWARD_ENTRY(M, N, WIDTH, BLOCKS)                                                                                   \
    extern "C" __global__ void __launch_bounds__(Tile<M, N, WIDTH>::THREADS, BLOCKS) conv2d_simt_forward_##M##x##N(            \
        const float* x, const float* w, const float* scale, const float* bias, const float* residual, float* y,        \
        float* partial, float* statistics, SimtForward parameters) {                                                   \
        forward<Tile<M, N, WIDTH>>(x, w, scale, bias, residual, y, partial, statistics, parameters);                          \
    }

FORWARD_ENTRY(128, 128, 16, 2)
FORWARD_ENTRY(128, 64, 16, 4)
FORWARD_ENTRY(64, 128, 16, 4)

// Adds the parts and finishes them, without statistics. Grid: x = positions · k / 1024 rounded up. 256 threads, four
// columns each.
extern "C" __global__ void __launch_bounds__(256) conv2d_simt_forward_finish(const float* partial, const float* scale,
                                                                             const float* bias, const float* residual,
                                                                             float* y, SimtForward parameters) {
    const Convolution& layer = parameters.layer;
    const u64 size = (u64)layer.n * layer.p * layer.q * layer.k, at = ((u64)blockIdx.x * 256 + threadIdx.x) * 4;
    if (at >= size) return;
    const u64 position = at / layer.k;
    const u32 column = at - position * layer.k;
    const float4 sum = add_parts(partial, at, size, parameters.parts);
    const float4 value = finish4(sum, scale, bias, residual, position, column, parameters);
    store4(y + position * parameters.y_row + column, value);
}

// Mean and reciprocal standard deviation from what row tiles left: [row tile][mean, centered squares][column].
// Grid: x = columns / 8 rounded up. 512 threads, eight columns by 64 groups of row tiles.
extern "C" __global__ void __launch_bounds__(512) conv2d_simt_statistics(const float* partial, float* mean,
                                                                         float* inv_std, SimtStatistics parameters) {
    const u32 rows = parameters.rows, tile_rows = parameters.tile_rows, columns = parameters.columns;
    __shared__ float scratch[COMBINE_COLUMNS * COMBINE_GROUPS];
    const u32 row_tiles = tiles(rows, tile_rows), column = blockIdx.x * COMBINE_COLUMNS + threadIdx.x % COMBINE_COLUMNS;
    const u32 group = threadIdx.x / COMBINE_COLUMNS;
    const float* from = partial + min(column, columns - 1);
    float sum = 0.0f;
#pragma unroll 4
    for (u32 tile = group; tile < row_tiles; tile += COMBINE_GROUPS)
        sum += from[(u64)tile * 2 * columns] * (float)min(tile_rows, rows - tile * tile_rows);
    const float center = sum_groups(sum, scratch) / (float)rows;
    float squares = 0.0f;
#pragma unroll 4
    for (u32 tile = group; tile < row_tiles; tile += COMBINE_GROUPS) {
        const float d = from[(u64)tile * 2 * columns] - center;
        squares += from[(u64)tile * 2 * columns + columns] + d * d * (float)min(tile_rows, rows - tile * tile_rows);
    }
    squares = sum_groups(squares, scratch);
    if (group == 0 && column < columns) {
        mean[column] = center;
        inv_std[column] = 1.0f / sqrtf(squares / (float)rows + parameters.epsilon);
    }
}

#endif
