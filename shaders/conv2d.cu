// Convolution on tensor cores as an implicit GEMM, with everything fused behind it:
//   y = relu(scale[k] * acc + bias[k] + residual), each part where its pointer or flag is given,
// and the batch statistics of y as stored: of each row tile the mean and the squares about it, which
// `conv2d_statistics_combine` joins.
//
// Threads: grid.x = row tiles * column tiles, columns first; grid.y = parts of the reduction. See conv2d_gather.cu for
// the rows and limits, conv2d_tile.cu for the mainloop, conv2d_finish.cu for parts and tickets.
// Shared memory (dynamic): STAGES * (M + N) * CHUNKS * 16 bytes.

#ifdef TENSOR_CORES

struct Params {
    Geometry geometry;
    // Elements from one position to the next.
    u32 y_row, residual_row;
    u32 relu;
};

// Sum and summed squares of a thread's values, both about a pivot near them.
struct Moments {
    float pivot[VECTOR], sum[VECTOR], squares[VECTOR];

    __device__ __forceinline__ void add(const float (&values)[VECTOR]) {
#pragma unroll
        for (int e = 0; e < VECTOR; ++e) {
            const float distance = values[e] - pivot[e];
            sum[e] += distance;
            squares[e] += distance * distance;
        }
    }
};

// Joins the threads' moments in order of their groups, and writes mean and squares of the tile's columns.
template <class T>
__device__ __forceinline__ void write_moments(const Finish<T>& finish, const Moments& moments, float* to, u32 rows,
                                              u32 columns, u32 first_column) {
    constexpr u32 GROUPS = Finish<T>::GROUPS;
    __syncthreads();
    float* shared = reinterpret_cast<float*>(shared_bytes);
    float* at = shared + 2 * finish.group * T::N + finish.chunk * VECTOR;
    rows = min(rows, (u32)T::M);
    const float share = __fdividef(1.0f, (float)max((rows + GROUPS - 1 - finish.group) / GROUPS, 1u));
#pragma unroll
    for (int e = 0; e < VECTOR; ++e) {
        const float mean = moments.sum[e] * share;
        at[e] = moments.pivot[e] + mean;
        at[T::N + e] = moments.squares[e] - moments.sum[e] * mean;
    }
    __syncthreads();
#pragma unroll 1
    for (u32 column = threadIdx.x; column < T::N && first_column + column < columns; column += T::THREADS) {
        float count = 0.0f, mean = 0.0f, squares = 0.0f;
#pragma unroll 1
        for (u32 group = 0; group < min(GROUPS, rows); ++group) {
            const float more = (float)((rows + GROUPS - 1 - group) / GROUPS);
            const float distance = shared[2 * group * T::N + column] - mean;
            const float share = __fdividef(more, count + more);
            mean += distance * share;
            squares += shared[(2 * group + 1) * T::N + column] + distance * distance * (count * share);
            count += more;
        }
        to[first_column + column] = mean;
        to[columns + first_column + column] = squares;
    }
}

// A batch of a chunk's rows, zeros from `end` on.
template <class T>
__device__ __forceinline__ void load_rows(uint4 (&to)[Finish<T>::BATCH], const element* from, u32 row_elements, u32 row,
                                          u32 end) {
#pragma unroll
    for (int i = 0; i < Finish<T>::BATCH; ++i) {
        const u32 at = row + i * Finish<T>::GROUPS;
        to[i] = at < end ? load_bits(from + (u64)at * row_elements) : make_uint4(0, 0, 0, 0);
    }
}

template <class T>
__device__ __forceinline__ void forward(const element* x, const element* w, const float* scale, const float* bias,
                                        const element* residual, element* y, float* statistics, float* partials,
                                        u32* tickets, const Params& params) {
    using F = Finish<T>;
    const Geometry& g = params.geometry;
    const Class c = only_class(g);
    const Corner tile = corner<T>(g);
    const F finish;
    prefetch<T, 1>({{residual, params.residual_row}}, g, c, tile);
    if (!gather_sums<T, false>(finish, g, c, tile, x, w, partials, tickets)) return;

    const u32 column = tile.column + finish.chunk * VECTOR;
    const u32 end = column < g.columns ? c.rows : 0;
    float scales[VECTOR], biases[VECTOR];
    load_channels(scales, end ? scale : nullptr, column, 1.0f);
    load_channels(biases, end ? bias : nullptr, column, 0.0f);
    Moments moments;
    finish.read_row(moments.pivot, 0);
#pragma unroll
    for (int e = 0; e < VECTOR; ++e) {
        moments.pivot[e] = moments.pivot[e] * scales[e] + biases[e];
        moments.sum[e] = moments.squares[e] = 0.0f;
    }
    const float floor = params.relu ? 0.0f : -__int_as_float(0x7f800000);
#pragma unroll 1
    for (u32 row = finish.group; row < T::M; row += F::BATCH * F::GROUPS) {
        const u32 at = tile.row + row;
        if (at >= end) break;
        float values[F::BATCH][VECTOR];
        finish.read(values, row);
#pragma unroll
        for (int i = 0; i < F::BATCH; ++i)
#pragma unroll
            for (int e = 0; e < VECTOR; ++e) values[i][e] = values[i][e] * scales[e] + biases[e];
        if (residual) {
            uint4 more[F::BATCH];
            load_rows<T>(more, residual + column, params.residual_row, at, end);
#pragma unroll
            for (int i = 0; i < F::BATCH; ++i) add(values[i], more[i]);
        }
        element* to = y + (u64)at * params.y_row + column;
#pragma unroll
        for (int i = 0; i < F::BATCH; ++i) {
#pragma unroll
            for (int e = 0; e < VECTOR; ++e) values[i][e] = fmaxf(values[i][e], floor);
            const uint4 bits = pack16(values[i]);
            if (at + i * F::GROUPS < end)
                *reinterpret_cast<uint4*>(to + (u64)(i * F::GROUPS) * params.y_row) = bits;
            if (statistics) unpack16(bits, values[i]);
        }
        if (statistics) {
#pragma unroll
            for (int i = 0; i < F::BATCH; ++i)
                if (at + i * F::GROUPS < end) moments.add(values[i]);
        }
    }
    if (statistics)
        write_moments<T>(finish, moments, statistics + (u64)tile.row_tile * 2 * g.columns, c.rows - tile.row, g.columns,
                         tile.column);
}

// The lists of tiles agree with the engine's. Parts of 64x64 a warp reuse most; the smaller ones are for few rows or
// columns and for devices with little shared memory.
#define ENTRY_POINT(NAME, ...)                                                                                         \
    extern "C" __global__ void __launch_bounds__(Tile<__VA_ARGS__>::THREADS, Tile<__VA_ARGS__>::BLOCKS)                \
        conv2d_forward_##NAME(const element* x, const element* w, const float* scale, const float* bias,               \
                              const element* residual, element* y, float* statistics, float* partials, u32* tickets,   \
                              Params params) {                                                                         \
        forward<Tile<__VA_ARGS__>>(x, w, scale, bias, residual, y, statistics, partials, tickets, params);             \
    }

ENTRY_POINT(128x128, 128, 128, 64, 64, 8, 3, 2)
ENTRY_POINT(128x64, 128, 64, 64, 32, 8, 3, 3)
ENTRY_POINT(64x64, 64, 64, 32, 32, 8, 3, 4)

struct StatisticsParams {
    u32 tiles, tile_rows, rows, columns;
    float epsilon;
};

// Mean and reciprocal standard deviation from the row tiles' [tiles][2][columns]; blocks of 1024 threads, eight
// channels each. Squares are taken about the first tile's mean.
extern "C" __global__ void __launch_bounds__(1024) conv2d_statistics_combine(const float* statistics, float* mean,
                                                                             float* inv_std, StatisticsParams params) {
    __shared__ float shared[1024];
    const u32 column = blockIdx.x * 8 + (threadIdx.x & 7);
    const u32 tiles = column < params.columns ? params.tiles : 0;
    const float pivot = tiles ? statistics[column] : 0.0f;
    float sum = 0.0f, squares = 0.0f;
#pragma unroll 4
    for (u32 tile = threadIdx.x / 8; tile < tiles; tile += 128) {
        const float* at = statistics + (u64)tile * 2 * params.columns + column;
        const float count = (float)min(params.tile_rows, params.rows - tile * params.tile_rows);
        const float distance = at[0] - pivot;
        sum += count * distance;
        squares += at[params.columns] + count * distance * distance;
    }
    sum = sum_strips<128>(sum, shared);
    squares = sum_strips<128>(squares, shared);
    if (threadIdx.x < 8 && tiles) {
        const float distance = sum / (float)params.rows;
        const float variance = fmaxf(squares / (float)params.rows - distance * distance, 0.0f);
        mean[column] = pivot + distance;
        inv_std[column] = 1.0f / sqrtf(variance + params.epsilon);
    }
}

#endif
