// Tensor cores of compute capability 9.0a (`wgmma`): what the convolutions of conv2d_wgmma*.cu have in common.
//
// A warp group (128 threads) multiplies 64 rows of A by N columns of B, 16 halves or 8 words deep; both operands lie in
// shared memory and the sums in registers: thread t of the group holds rows 16 * (t / 32) + t % 32 / 4 and that plus 8, columns
// 8 * j + 2 * (t % 4) and the next, as sums[4 * j + {0, 1}] and sums[4 * j + {2, 3}].
//
// Operands are panels of rows of 128 bytes (64 halves or 32 words of f32) whose 16-byte chunk `i` of row `r` is stored at chunk
// `i ^ (r & 7)`, the 128-byte swizzle of the hardware. A panel starts at a multiple of 1024 bytes. Rows are either rows
// of A or columns of B (the reduction runs along the row), or steps of the reduction ("transposed": 64 rows or columns
// run along the row, wider tiles are several panels).
//
// Everything is empty on other architectures.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#if ELEMENT == 1
#define WGMMA_TYPES "f16.f16"
#elif ELEMENT == 2
#define WGMMA_TYPES "bf16.bf16"
#endif

__device__ __forceinline__ u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Copies 16 bytes to shared memory without waiting; zeros where `inside` is false, nothing is read then.
__device__ __forceinline__ void copy16(u32 to, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most PENDING of this thread's latest groups of copies are under way.
template <int PENDING>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Makes this thread's finished writes to shared memory visible to the tensor cores, behind the next barrier.
__device__ __forceinline__ void publish_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void prefetch_l2(const void* address) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving uses of the sums across this point.
template <int COUNT>
__device__ __forceinline__ void pin(float (&sums)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Descriptor of an operand at `address`: 8 rows of 128 bytes every `group_bytes`, the next panel of a transposed
// operand after `panel_bytes`. The swizzle goes by the address in shared memory, so an operand may start at any row.
__device__ __forceinline__ u64 operand(u32 address, u32 panel_bytes, u32 group_bytes = 1024) {
    const u32 low = ((address & 0x3ffffu) >> 4) | ((panel_bytes >> 4) << 16);
    const u32 high = (group_bytes >> 4) | (1u << 30);
    return ((u64)high << 32) | low;
}

#define SUM8(i)                                                                                                       \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),       \
        "+f"(d[i + 7])
#define SUMS_32 SUM8(0), SUM8(8), SUM8(16), SUM8(24)
#define SUMS_64 SUMS_32, SUM8(32), SUM8(40), SUM8(48), SUM8(56)
#define SUMS_96 SUMS_64, SUM8(64), SUM8(72), SUM8(80), SUM8(88)
#define SUMS_128 SUMS_96, SUM8(96), SUM8(104), SUM8(112), SUM8(120)

// The same sums in an instruction's text.
#define TEXT_32                                                                                                       \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                          \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TEXT_64 TEXT_32 ", "                                                                                          \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TEXT_96 TEXT_64 ", "                                                                                          \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                                \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TEXT_128 TEXT_96 ", "                                                                                         \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "                    \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#if ELEMENT == 0

// d += A * B, started but not waited for: 8 words of the reduction. A is this thread's part, rounded to TF32; of B the
// hardware drops the bits that TF32 has not.
#define DEFINE_WGMMA(SUMS, COLUMNS, A0, A1, A2, A3, B, ON)                                                            \
    __device__ __forceinline__ void wgmma(float (&d)[SUMS], const u32 (&a)[4], u64 b) {                               \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ON ", 0;\n"                                                \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k8.f32.tf32.tf32 {" TEXT_##SUMS "}, {%" #A0        \
                     ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", p, 1, 1;\n}\n"                                        \
                     : SUMS_##SUMS                                                                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));                                   \
    }

DEFINE_WGMMA(32, 64, 32, 33, 34, 35, 36, 37)
DEFINE_WGMMA(64, 128, 64, 65, 66, 67, 68, 69)
DEFINE_WGMMA(128, 256, 128, 129, 130, 131, 132, 133)

// sums += 64 rows of A by B, a whole panel's width of the reduction: started but not waited for. Row r of A is at
// `a + r / 8 * a_group_bytes + r % 8 * 128`. It passes through registers, where it is rounded: no step may be pending.
template <bool TRANSPOSE_B, int SUMS>
__device__ __forceinline__ void multiply_panel(float (&sums)[SUMS], u32 a, u32 a_group_bytes, u32 b) {
    static_assert(!TRANSPOSE_B, "the instruction takes no transposed words");
    const u32 lane = threadIdx.x & 31, row = (threadIdx.x >> 5 & 3) * 16 + (lane & 15);
    const u32 from = a + (row >> 3) * a_group_bytes + (row & 7) * 128;
    const u32 swizzle = (from >> 7) & 7;
    u32 words[4][4];
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[step][0]), "=r"(words[step][1]), "=r"(words[step][2]), "=r"(words[step][3])
                     : "r"(from + (((2 * step + (lane >> 4)) ^ swizzle) << 4))
                     : "memory");
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(words[step][i]) : "f"(__uint_as_float(words[step][i])));
    }
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) wgmma(sums, words[step], operand(b + step * 32, 16));
    wgmma_commit();
}

#else

// d += A * B, started but not waited for: 16 halves of the reduction.
#define DEFINE_WGMMA(SUMS, COLUMNS, A, B, ON, A_ROWS, B_ROWS)                                                         \
    template <int TRANSPOSE_A, int TRANSPOSE_B>                                                                       \
    __device__ __forceinline__ void wgmma(float (&d)[SUMS], u64 a, u64 b) {                                           \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ON ", 0;\n"                                                \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32." WGMMA_TYPES " {" TEXT_##SUMS "}, %" #A   \
                     ", %" #B ", p, 1, 1, %" #A_ROWS ", %" #B_ROWS ";\n}\n"                                           \
                     : SUMS_##SUMS                                                                                    \
                     : "l"(a), "l"(b), "r"(1), "n"(TRANSPOSE_A), "n"(TRANSPOSE_B));                                   \
    }

DEFINE_WGMMA(32, 64, 32, 33, 34, 35, 36)
DEFINE_WGMMA(64, 128, 64, 65, 66, 67, 68)
DEFINE_WGMMA(96, 192, 96, 97, 98, 99, 100)
DEFINE_WGMMA(128, 256, 128, 129, 130, 131, 132)

// sums += 64 rows of A by B, a whole panel's width of the reduction: started but not waited for. Row r of A is at
// `a + r / 8 * a_group_bytes + r % 8 * 128`.
template <bool TRANSPOSE_B, int SUMS>
__device__ __forceinline__ void multiply_panel(float (&sums)[SUMS], u32 a, u32 a_group_bytes, u32 b) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step)
        wgmma<0, TRANSPOSE_B ? 1 : 0>(sums, operand(a + step * 32, 16, a_group_bytes),
                                      TRANSPOSE_B ? operand(b + step * 2048, 8192) : operand(b + step * 32, 16));
    wgmma_commit();
}

#endif

#undef DEFINE_WGMMA
#undef SUM8

#endif
