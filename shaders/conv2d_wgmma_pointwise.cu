// 1x1 convolution of stride 1 on tensor cores of compute capability 9.0a: formula of conv2d_wgmma.cu,
// tiles, threads, shared memory and limits of conv2d_wgmma_pointwise_tile.cu. Grid: at most the tiles, as many thread
// blocks as run at once.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int BN, int STAGES, int PENDING>
__device__ __forceinline__ void forward(const element* x, const element* filter, element* y, const float* scale,
                                        const float* bias, const element* residual, float* partials,
                                        const Conv2dForward& params) {
    const u32 rows = params.n * params.h * params.w;
    const PointwiseGemm g = {(const uint4*)x, params.x_row / VECTOR, rows, params.c / VECTOR, filter, params.k};
    void* staging = shared_memory + STAGES * (128 + BN) * 128;
    multiply_pointwise<BN, STAGES, PENDING, false>(
        g,
        [&](u32 row0, u32 column0) {
            prefetch_tile<BN>(residual, params.residual_row, ConsecutiveRows{row0, rows}, column0, params.k);
        },
        [&](const float(&sums)[BN / 2], u32 tile, u32 column0) {
            const ConsecutiveRows at = {tile * 128, rows};
            if (partials)
                finish_with_statistics<BN>(sums, at, column0, staging, tile, (rows + 127) / 128, y, partials, params);
            else
                finish_forward<BN>(sums, at, column0, staging, y, scale, bias, residual, params);
        });
}

#define ENTRY_POINT(NAME, BN, STAGES, PENDING, BLOCKS)                                                                \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_pointwise_forward_##NAME(                  \
        const element* x, const element* filter, const float* scale, const float* bias, const element* residual,     \
        element* y, float* partials, Conv2dForward params) {                                                          \
        forward<BN, STAGES, PENDING>(x, filter, y, scale, bias, residual, partials, params);                          \
    }

ENTRY_POINT(128x128, 128, 3, 0, 2)
ENTRY_POINT(128x64, 64, 4, 0, 2)

#endif
