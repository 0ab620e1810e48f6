// Tiles of tensor-core GEMMs: what the convolution kernels share.
//
// A block computes an M x N tile of f32 sums in the registers of its warps, each a WARP_M x WARP_N part, by
// mma.sync. Operands travel in chunks of 16 bytes: cp.async brings STAGES steps of CHUNKS chunks along the reduction
// into shared memory ahead of their use, zeros where a source is invalid, and ldmatrix takes them from there. A step of
// the mainloop is CHUNKS * VECTOR deep, an mma of any element type 32 bytes.
//
// Shared memory holds an operand in one of two orders, both swizzled by exclusive or so that neither cp.async nor
// ldmatrix meets a bank twice:
//   deep: [row of the tile][chunk along the reduction]    (x and w forward, dy backward)
//   wide: [position along the reduction][chunk of rows]   (w backward data, both operands of backward weight)
//
// Serves f16 from compute capability 7.5 (without cp.async there), bf16 and TensorFloat-32 from 8.0; otherwise the text
// is empty. TensorFloat-32 rounds to nearest on the way from shared memory; its wide operands are read word by word,
// which ldmatrix cannot transpose.

#if ELEMENT == 1 || (__CUDA_ARCH__ >= 800 && (ELEMENT == 2 || TF32 == 1))
#define TENSOR_CORES 1

template <int M_, int N_, int WARP_M_, int WARP_N_, int CHUNKS_, int STAGES_, int BLOCKS_>
struct Tile {
    static constexpr int M = M_, N = N_, WARP_M = WARP_M_, WARP_N = WARP_N_;
    static constexpr int CHUNKS = CHUNKS_, STAGES = STAGES_;
    // Blocks that share a multiprocessor.
    static constexpr int BLOCKS = BLOCKS_;
    static constexpr int WARPS_M = M / WARP_M, THREADS = 32 * WARPS_M * (N / WARP_N);
    static constexpr int FRAGMENTS_M = WARP_M / 16, FRAGMENTS_N = WARP_N / 8;
    static constexpr int DEPTH = CHUNKS * VECTOR;
    static constexpr int A_BYTES = M * CHUNKS * 16, STAGE_BYTES = (M + N) * CHUNKS * 16;
    // Chunks of A and B that each thread brings a step.
    static constexpr int A_LOADS = (M * CHUNKS + THREADS - 1) / THREADS, B_LOADS = (N * CHUNKS + THREADS - 1) / THREADS;
};

// Sums of one warp: row `lane / 4` (+ 8 for the last two), columns `2 * (lane % 4)` and the next of each fragment.
template <class T>
struct Sums {
    float of[T::FRAGMENTS_M][T::FRAGMENTS_N][4];
};

extern __shared__ __align__(1024) unsigned char shared_bytes[];

__device__ __forceinline__ u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Sixteen bytes from global to shared memory, zeros unless `valid`; nothing is read then.
__device__ __forceinline__ void copy_chunk(u32 to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
#else
    uint4 bits = make_uint4(0, 0, 0, 0);
    if (valid) bits = *reinterpret_cast<const uint4*>(from);
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(bits.x), "r"(bits.y), "r"(bits.z),
                 "r"(bits.w)
                 : "memory");
#endif
}

__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `pending` of the last commits are under way.
template <int pending>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// Byte of a chunk in a deep operand.
template <int CHUNKS>
__device__ __forceinline__ u32 deep_place(u32 row, u32 chunk) {
    static_assert(CHUNKS == 4 || CHUNKS == 8, "rows of 64 or 128 bytes");
    return CHUNKS == 8 ? row * 128 + ((chunk ^ (row & 7)) << 4) : row * 64 + ((chunk ^ (row >> 1 & 3)) << 4);
}

// Byte of a chunk in a wide operand of WIDTH chunks a row.
template <int WIDTH>
__device__ __forceinline__ u32 wide_place(u32 row, u32 chunk) {
#if ELEMENT == 0
    return row * (WIDTH * 16) + ((chunk ^ ((row & 3) << 1)) << 4);
#else
    return row * (WIDTH * 16) + ((chunk ^ (row & 7)) << 4);
#endif
}

__device__ __forceinline__ void load_matrices(u32 (&to)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ __forceinline__ void load_transposed(u32 (&to)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// A lane's word of the wide operand at `from`, of WIDTH words a row: row `depth + lane % 4`, column
// `first + 8 * eight + lane / 4`, `first` a multiple of 32. All but the exclusive or with two bits of `eight` is the
// same for every word.
template <int WIDTH>
__device__ __forceinline__ u32 load_wide_word(u32 from, u32 first, int eight, int depth) {
    const u32 lane = threadIdx.x & 31;
    const u32 base = from + (lane & 3) * (WIDTH * 4 + 32) + first * 4 + (lane >> 2) * 4;
    u32 bits;
    asm volatile("ld.shared.u32 %0, [%1];"
                 : "=r"(bits)
                 : "r"((base ^ (eight & 3) << 5) + depth * WIDTH * 4 + (eight >> 2) * 128)
                 : "memory");
    return bits;
}

// sums += a * b for 16 rows, 8 columns and 32 bytes of depth.
__device__ __forceinline__ void multiply(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if ELEMENT == 0
#define MULTIPLY "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#elif ELEMENT == 1
#define MULTIPLY "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#else
#define MULTIPLY "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#endif
#if __CUDA_ARCH__ >= 800
    asm(MULTIPLY " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
#undef MULTIPLY
}

// One warp's operands of one mma's depth.
template <class T>
struct Fragments {
    u32 a[T::FRAGMENTS_M][4];
    u32 b[T::FRAGMENTS_N][2];
};

// Rounds f32 operands to what an mma takes, which drops the last 13 bits: half of their weight is added, that is to
// nearest, ties away from zero. What overflows becomes infinite. The NaN of all ones becomes zero, as it does in a
// rectified linear unit; `cvt.rna.tf32.f32` keeps it, at twice the instructions.
template <class T>
__device__ __forceinline__ void round_operands(Fragments<T>& fragments) {
#if ELEMENT == 0
#pragma unroll
    for (int i = 0; i < T::FRAGMENTS_M; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) fragments.a[i][j] += 0x1000;
#pragma unroll
    for (int i = 0; i < T::FRAGMENTS_N; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) fragments.b[i][j] += 0x1000;
#endif
}

// Fragments of A at depth `part` (in 32 bytes) of the stage at `from`; `row` is the warp's first row.
template <class T, bool WIDE>
__device__ __forceinline__ void load_a(Fragments<T>& to, u32 from, u32 row, int part) {
    const u32 lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < T::FRAGMENTS_M; ++i) {
        if (!WIDE) {
            load_matrices(to.a[i], from + deep_place<T::CHUNKS>(row + i * 16 + (lane & 15), part * 2 + (lane >> 4)));
        } else {
#if ELEMENT == 0
#pragma unroll
            for (int j = 0; j < 4; ++j)
                to.a[i][j] = load_wide_word<T::M>(from, row, 2 * i + (j & 1), part * 8 + (j >> 1) * 4);
#else
            const u32 depth = part * 16 + (lane >> 4) * 8 + (lane & 7);
            load_transposed(to.a[i], from + wide_place<T::M / VECTOR>(depth, row / 8 + i * 2 + (lane >> 3 & 1)));
#endif
        }
    }
}

// Fragments of B likewise; `column` is the warp's first column.
template <class T, bool WIDE>
__device__ __forceinline__ void load_b(Fragments<T>& to, u32 from, u32 column, int part) {
    const u32 lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < T::FRAGMENTS_N; i += 2) {
        u32 pair[4];
        if (!WIDE) {
            const u32 row = column + i * 8 + (lane >> 4) * 8 + (lane & 7);
            load_matrices(pair, from + deep_place<T::CHUNKS>(row, part * 2 + (lane >> 3 & 1)));
        } else {
#if ELEMENT == 0
#pragma unroll
            for (int j = 0; j < 4; ++j)
                pair[j] = load_wide_word<T::N>(from, column, i + (j >> 1), part * 8 + (j & 1) * 4);
#else
            const u32 depth = part * 16 + (lane & 15);
            load_transposed(pair, from + wide_place<T::N / VECTOR>(depth, column / 8 + i + (lane >> 4)));
#endif
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) to.b[i + (j >> 1)][j & 1] = pair[j];
    }
}

// First row and column of a warp's part of the tile.
template <class T>
__device__ __forceinline__ u32 warp_row() { return (threadIdx.x >> 5) % T::WARPS_M * T::WARP_M; }
template <class T>
__device__ __forceinline__ u32 warp_column() { return (threadIdx.x >> 5) / T::WARPS_M * T::WARP_N; }

template <class T>
__device__ __forceinline__ u32 next_stage(u32 stage, u32 stages) {
    const u32 next = stage + T::STAGE_BYTES;
    return next == stages + T::STAGES * T::STAGE_BYTES ? stages : next;
}

// Steps of one of `splits` parts of a reduction.
struct Steps {
    u32 first, end;
};

__device__ __forceinline__ Steps part_of(u32 steps, u32 splits, u32 part) {
    if (splits == 1) return {0, steps};
    return {steps * part / splits, steps * (part + 1) / splits};
}

// The mainloop: sums over steps `first` to `end`. `load.a(step, stage)` and `load.b` start the copies of a step's
// operands to a stage's address; `also(fragments)` may use every mma's operands once more.
// Fragments are read one mma ahead, those of the next step before the last products of this one.
template <class T, bool A_WIDE, bool B_WIDE, class Load, class Also>
__device__ __forceinline__ void accumulate(Sums<T>& sums, u32 first, u32 end, const Load& load, Also& also) {
    constexpr int PARTS = T::CHUNKS / 2;
    // f32 with one operand wide: rounding right behind the loads, and copies without a branch around them (what they
    // bring past the end is never used), are 5% faster on an H200. For the other orders they are slower.
    constexpr bool EAGER = ELEMENT == 0 && A_WIDE != B_WIDE;
    const u32 stages = shared_address(shared_bytes);
    const u32 row = warp_row<T>(), column = warp_column<T>();
#pragma unroll
    for (int i = 0; i < T::FRAGMENTS_M; ++i)
#pragma unroll
        for (int j = 0; j < T::FRAGMENTS_N; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) sums.of[i][j][e] = 0.0f;

#pragma unroll 1
    for (int stage = 0; stage < T::STAGES - 1; ++stage) {
        if (first + stage < end) {
            load.a(first + stage, stages + stage * T::STAGE_BYTES);
            load.b(first + stage, stages + stage * T::STAGE_BYTES);
        }
        commit_copies();
    }
    u32 reading = stages, writing = stages + (T::STAGES - 1) * T::STAGE_BYTES;
    Fragments<T> fragments[2];
    wait_copies<T::STAGES - 2>();
    __syncthreads();
    load_a<T, A_WIDE>(fragments[0], reading, row, 0);
    load_b<T, B_WIDE>(fragments[0], reading + T::A_BYTES, column, 0);
    if (EAGER) round_operands(fragments[0]);
#pragma unroll 1
    for (u32 step = first; step < end; ++step) {
        const u32 ahead = step + T::STAGES - 1;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            if (part == PARTS - 1) {
                wait_copies<T::STAGES - 2>();
                __syncthreads();
                reading = next_stage<T>(reading, stages);
            }
            load_a<T, A_WIDE>(fragments[(part + 1) & 1], reading, row, (part + 1) % PARTS);
            load_b<T, B_WIDE>(fragments[(part + 1) & 1], reading + T::A_BYTES, column, (part + 1) % PARTS);
            if (EAGER) round_operands(fragments[(part + 1) & 1]);
            if (part == 0 && (EAGER || ahead < end)) load.a(ahead, writing);
            if (part == (PARTS > 2 ? 1 : 0) && (EAGER || ahead < end)) load.b(ahead, writing);
            if (part == PARTS - 2) {
                commit_copies();
                writing = next_stage<T>(writing, stages);
            }
            Fragments<T>& now = fragments[part & 1];
            if (!EAGER) round_operands(now);
#pragma unroll
            for (int i = 0; i < T::FRAGMENTS_M; ++i)
#pragma unroll
                for (int j = 0; j < T::FRAGMENTS_N; ++j) multiply(sums.of[i][j], now.a[i], now.b[j]);
            also(now);
        }
    }
    wait_copies<0>();
    __syncthreads();
}

#endif
