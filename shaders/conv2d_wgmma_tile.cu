// Tensor cores of compute capability 9.0a (`wgmma`): what the convolutions of conv2d_wgmma*.cu have in common.
//
// A warp group (128 threads) multiplies 64 rows of A by N columns of B, 16 deep; both operands lie in shared memory and
// the sums in registers: thread t of the group holds rows 16 * (t / 32) + t % 32 / 4 and that plus 8, columns
// 8 * j + 2 * (t % 4) and the next, as sums[4 * j + {0, 1}] and sums[4 * j + {2, 3}].
//
// Operands are panels of rows of 128 bytes (64 halves) whose 16-byte chunk `i` of row `r` is stored at chunk
// `i ^ (r & 7)`, the 128-byte swizzle of the hardware. A panel starts at a multiple of 1024 bytes. Rows are either rows
// of A or columns of B (the reduction runs along the row), or steps of the reduction ("transposed": 64 rows or columns
// run along the row, wider tiles are several panels).
//
// Everything is empty on other architectures and for f32 storage.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && ELEMENT != 0

#if ELEMENT == 1
#define WGMMA_TYPES "f16.f16"
#else
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

// d += A * B, started but not waited for.
template <int TRANSPOSE_A, int TRANSPOSE_B>
__device__ __forceinline__ void wgmma(float (&d)[32], u64 a, u64 b) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." WGMMA_TYPES " {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, p, 1, 1, %35, %36;\n}\n"
        : SUM8(0), SUM8(8), SUM8(16), SUM8(24)
        : "l"(a), "l"(b), "r"(1), "n"(TRANSPOSE_A), "n"(TRANSPOSE_B));
}

template <int TRANSPOSE_A, int TRANSPOSE_B>
__device__ __forceinline__ void wgmma(float (&d)[64], u64 a, u64 b) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." WGMMA_TYPES " {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
        "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1, %67, %68;\n}\n"
        : SUM8(0), SUM8(8), SUM8(16), SUM8(24), SUM8(32), SUM8(40), SUM8(48), SUM8(56)
        : "l"(a), "l"(b), "r"(1), "n"(TRANSPOSE_A), "n"(TRANSPOSE_B));
}

template <int TRANSPOSE_A, int TRANSPOSE_B>
__device__ __forceinline__ void wgmma(float (&d)[96], u64 a, u64 b) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n192k16.f32." WGMMA_TYPES " {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
        "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, "
        "%74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
        "%92, %93, %94, %95"
        "}, %96, %97, p, 1, 1, %99, %100;\n}\n"
        : SUM8(0), SUM8(8), SUM8(16), SUM8(24), SUM8(32), SUM8(40), SUM8(48), SUM8(56), SUM8(64), SUM8(72),
          SUM8(80), SUM8(88)
        : "l"(a), "l"(b), "r"(1), "n"(TRANSPOSE_A), "n"(TRANSPOSE_B));
}

template <int TRANSPOSE_A, int TRANSPOSE_B>
__device__ __forceinline__ void wgmma(float (&d)[128], u64 a, u64 b) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32." WGMMA_TYPES " {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
        "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
        "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, "
        "%74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "
        "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
        "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "
        "%123, %124, %125, %126, %127"
        "}, %128, %129, p, 1, 1, %131, %132;\n}\n"
        : SUM8(0), SUM8(8), SUM8(16), SUM8(24), SUM8(32), SUM8(40), SUM8(48), SUM8(56), SUM8(64), SUM8(72),
          SUM8(80), SUM8(88), SUM8(96), SUM8(104), SUM8(112), SUM8(120)
        : "l"(a), "l"(b), "r"(1), "n"(TRANSPOSE_A), "n"(TRANSPOSE_B));
}


#undef SUM8

#endif
