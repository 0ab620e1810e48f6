// Output tile of an f32 GEMM in registers, without tensor cores; part of the conv2d_simt and conv2d_winograd kernels.
//
// A block owns M rows and N columns and walks the depth in steps of 16. Each thread sums 8x16 elements (8x8 in the
// smallest tiles); a warp is 8 rows by 4 columns of threads (4 by 8). Two stages of operands lie in shared
// memory (32 KiB for 128x128): one is copied by cp.async while the other is multiplied, one barrier a step. Compute
// capability 7.5 has no cp.async and copies through registers.
//
// An operand lies in shared memory as it lies in memory, so that every copy is of 16 bytes:
//   along the depth   [row][16 depths], the four 16-byte chunks of a row permuted by its number so that eight rows of
//                     one chunk fall into different banks;
//   across the depth  [16 depths][row].

#if ELEMENT == 0 && TF32 == 0

#define STEP 16
#define INVALID 0xffffffffu

// A tile of TILE_M rows and TILE_N columns, eight rows and WIDTH columns of it a thread.
template <int TILE_M, int TILE_N, int THREAD_N>
struct Tile {
    static constexpr int M = TILE_M;
    static constexpr int N = TILE_N;
    static constexpr int WIDTH = THREAD_N;
    // A thread's columns are quads of neighbors.
    static constexpr int QUADS = WIDTH / 4;
    // Threads along the rows and along the columns; threads of one warp, and warps, along the columns.
    static constexpr int ROWS = M / 8;
    static constexpr int COLUMNS = N / WIDTH;
    static constexpr int THREADS = ROWS * COLUMNS;
    static constexpr int LANES_N = WIDTH == 8 ? 8 : 4;
    static constexpr int WARPS_N = COLUMNS / LANES_N;
    // Floats of one stage, operand A first.
    static constexpr int STAGE_A = M * STEP;
    static constexpr int STAGE = (M + N) * STEP;

    static __device__ __forceinline__ int row() {
        return threadIdx.x / 32 / WARPS_N * (32 / LANES_N) + threadIdx.x % 32 / LANES_N;
    }
    static __device__ __forceinline__ int column() {
        return threadIdx.x / 32 % WARPS_N * LANES_N + threadIdx.x % LANES_N;
    }
    // First column of a thread's quad.
    static __device__ __forceinline__ int column_of(int quad) { return 4 * (quad * COLUMNS + column()); }
};

// Sums of one thread: rows `row() + i·ROWS` where operand A lies along the depth, else 4·row() + i % 4 + (i / 4)·M/2;
// columns `column_of(j / 4) + j % 4`.
template <class T>
struct Sums {
    float at[8][T::WIDTH];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < T::WIDTH; ++j) at[i][j] = 0.0f;
    }

    __device__ __forceinline__ float4 quad(int i, int quad) const {
        return make_float4(at[i][4 * quad], at[i][4 * quad + 1], at[i][4 * quad + 2], at[i][4 * quad + 3]);
    }
};

__device__ __forceinline__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ __forceinline__ void store4(float* to, const float4& value) { *reinterpret_cast<float4*>(to) = value; }

__device__ __forceinline__ float4 add4(const float4& a, const float4& b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ __forceinline__ u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Copies 16 bytes, or zeros, into shared memory.
__device__ __forceinline__ void copy16(u32 to, const float* from, bool valid) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
#else
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (valid) value = *reinterpret_cast<const float4*>(from);
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(value.x), "f"(value.y), "f"(value.z),
                 "f"(value.w)
                 : "memory");
#endif
}

// Waits for this thread's copies.
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Where a chunk of four depths of an operand along the depth lies in its stage, in bytes.
__device__ __forceinline__ u32 chunk_along(int row, int chunk) { return row * 64 + ((chunk ^ ((row >> 1) & 3)) << 4); }

// The column that lies in row `row` of an operand B along the depth: a thread reads rows `column() + j·COLUMNS` for its
// columns.
template <class T>
__device__ __forceinline__ int column_in_row(int row) {
    const int j = row / T::COLUMNS;
    return (row % T::COLUMNS + j / 4 * T::COLUMNS) * 4 + j % 4;
}

// Where four columns of one depth of an operand B across the depth lie in its stage, in floats. Depths of one chunk of
// four are permuted alike, so that threads that copy different chunks write to different banks.
template <class T>
__device__ __forceinline__ int chunk_across(int depth, int column4) {
    return depth * T::N + ((column4 ^ ((depth >> 2) << 1)) << 2);
}

// Copies of an operand B across the depth: copy `i` of slot `slot`, one of THREADS / 4 that share a chunk of depths.
template <class T>
__device__ __forceinline__ int copied_quad(int slot, int i) {
    constexpr int SLOTS = T::THREADS / 4, QUADS = T::N / 4;
    return SLOTS >= QUADS ? slot % QUADS : slot + i * SLOTS % QUADS;
}

template <class T>
__device__ __forceinline__ int copied_depth(int slot, int i) {
    constexpr int SLOTS = T::THREADS / 4, QUADS = T::N / 4;
    return SLOTS >= QUADS ? slot / QUADS + i * (SLOTS / QUADS) : i * SLOTS / QUADS;
}

// Four depths of a thread's rows of an operand A along the depth.
struct Rows {
    float4 at[8];
};

template <class T>
__device__ __forceinline__ void load_rows(Rows& a, const float* stage, int chunk) {
    const char* rows = reinterpret_cast<const char*>(stage) + chunk_along(T::row(), chunk);
#pragma unroll
    for (int i = 0; i < 8; ++i) a.at[i] = *reinterpret_cast<const float4*>(rows + i * T::ROWS * 64);
}

template <int D>
__device__ __forceinline__ float component(const float4& v) {
    return D == 0 ? v.x : D == 1 ? v.y : D == 2 ? v.z : v.w;
}

// Adds the products of one column, in one of the four depths of the rows. D is a constant because a loop over
// components takes compilers minutes.
template <int D, class T>
__device__ __forceinline__ void multiply_column(Sums<T>& sums, int j, const Rows& a, float b) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sums.at[i][j] += component<D>(a.at[i]) * b;
}

template <int D, class T>
__device__ __forceinline__ void multiply_quad(Sums<T>& sums, int quad, const Rows& a, const float4& b) {
    multiply_column<D>(sums, 4 * quad, a, b.x);
    multiply_column<D>(sums, 4 * quad + 1, a, b.y);
    multiply_column<D>(sums, 4 * quad + 2, a, b.z);
    multiply_column<D>(sums, 4 * quad + 3, a, b.w);
}

// Adds the products of four depths; B along the depth.
template <class T>
__device__ __forceinline__ void multiply_along(Sums<T>& sums, const Rows& a, const float* stage, int chunk) {
    const char* columns = reinterpret_cast<const char*>(stage + T::STAGE_A);
#pragma unroll
    for (int j = 0; j < T::WIDTH; ++j) {
        // Rows of the operand that are eight apart are permuted alike.
        const int near = j * T::COLUMNS % 8, far = j * T::COLUMNS - near;
        const float4 b = *reinterpret_cast<const float4*>(columns + chunk_along(T::column() + near, chunk) + far * 64);
        multiply_column<0>(sums, j, a, b.x);
        multiply_column<1>(sums, j, a, b.y);
        multiply_column<2>(sums, j, a, b.z);
        multiply_column<3>(sums, j, a, b.w);
    }
}

// Adds the products of four depths; B across the depth.
template <class T>
__device__ __forceinline__ void multiply_across(Sums<T>& sums, const Rows& a, const float* stage, int chunk) {
    const float* columns = stage + T::STAGE_A;
#pragma unroll
    for (int quad = 0; quad < T::QUADS; ++quad) {
        // Quads that are eight apart are permuted alike.
        const int near = quad * T::COLUMNS % 8, far = quad * T::COLUMNS - near;
        const float* from = columns + chunk_across<T>(chunk * 4, T::column() + near) + far * 4;
        multiply_quad<0>(sums, quad, a, load4(from));
        multiply_quad<1>(sums, quad, a, load4(from + T::N));
        multiply_quad<2>(sums, quad, a, load4(from + 2 * T::N));
        multiply_quad<3>(sums, quad, a, load4(from + 3 * T::N));
    }
}

// Adds the products of a step; A along the depth, B along or across it. Unrolled, and with the rows of the next depths
// loaded ahead, it is no faster (H200, 2026-11-30) and takes compilers twice as long.
template <class T, bool B_ALONG>
__device__ __forceinline__ void multiply_step(Sums<T>& sums, const float* stage) {
#pragma unroll 1
    for (int chunk = 0; chunk < STEP / 4; ++chunk) {
        Rows a;
        load_rows<T>(a, stage, chunk);
        if (B_ALONG)
            multiply_along<T>(sums, a, stage, chunk);
        else
            multiply_across<T>(sums, a, stage, chunk);
    }
}

// Adds the products of one column; rows across the depth.
template <class T>
__device__ __forceinline__ void multiply_column(Sums<T>& sums, int j, const float4& upper, const float4& lower,
                                                float b) {
    sums.at[0][j] += upper.x * b;
    sums.at[1][j] += upper.y * b;
    sums.at[2][j] += upper.z * b;
    sums.at[3][j] += upper.w * b;
    sums.at[4][j] += lower.x * b;
    sums.at[5][j] += lower.y * b;
    sums.at[6][j] += lower.z * b;
    sums.at[7][j] += lower.w * b;
}

// Adds the products of one depth; both operands across it, neither permuted.
template <class T>
__device__ __forceinline__ void multiply_depth(Sums<T>& sums, const float* rows, const float* columns) {
    const float4 upper = load4(rows), lower = load4(rows + T::M / 2);
#pragma unroll
    for (int quad = 0; quad < T::QUADS; ++quad) {
        const float4 b = load4(columns + quad * 4 * T::COLUMNS);
        multiply_column(sums, 4 * quad, upper, lower, b.x);
        multiply_column(sums, 4 * quad + 1, upper, lower, b.y);
        multiply_column(sums, 4 * quad + 2, upper, lower, b.z);
        multiply_column(sums, 4 * quad + 3, upper, lower, b.w);
    }
}

// Adds the products of a step; both operands across the depth.
template <class T>
__device__ __forceinline__ void multiply_step_across(Sums<T>& sums, const float* stage) {
#pragma unroll 4
    for (int d = 0; d < STEP; ++d)
        multiply_depth<T>(sums, stage + d * T::M + 4 * T::row(), stage + T::STAGE_A + d * T::N + 4 * T::column());
}

#endif
