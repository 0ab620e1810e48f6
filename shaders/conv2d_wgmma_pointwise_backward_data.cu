// Gradient of the input of a 1x1 convolution of stride 1 on tensor cores of compute capability 9.0a, f16 and bf16:
// formula of conv2d_wgmma_backward_data.cu, tiles, threads, shared memory and limits of conv2d_wgmma_pointwise_tile.cu.
// Grid: at most the tiles, as many thread blocks as run at once.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int BN, int STAGES, int PENDING>
__device__ __forceinline__ void backward_data(const element* dy, const element* filter, element* dx,
                                              const GradientInputs& inputs, float* partials,
                                              const Conv2dBackwardData& params) {
    const u32 rows = params.n * params.h * params.w;
    const PointwiseGemm g = {(const uint4*)dy, params.dy_row / 8, rows, params.k / 8, filter, params.c};
    multiply_pointwise<BN, STAGES, PENDING, true>(
        g,
        [&](u32 row0, u32 column0) {
            prefetch_gradient_inputs<BN>(dx, inputs, ConsecutiveRows{row0, rows}, column0, params);
        },
        [&](const float(&sums)[BN / 2], u32 tile, u32 column0) {
            finish_gradient<BN>(sums, ConsecutiveRows{tile * 128, rows}, column0,
                                shared_memory + STAGES * (128 + BN) * 128, tile, dx, inputs, partials, params);
        });
}

#define ENTRY_POINT(NAME, BN, STAGES, PENDING, BLOCKS)                                                                \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_pointwise_backward_data_##NAME(            \
        const element* dy, const element* filter, const element* mask, const element* y1, const float* mean1,        \
        const element* y2, const float* mean2, element* dx, float* partials, Conv2dBackwardData params) {             \
        const GradientInputs inputs = {mask, y1, mean1, y2, mean2};                                                   \
        backward_data<BN, STAGES, PENDING>(dy, filter, dx, inputs, partials, params);                                 \
    }

ENTRY_POINT(128x128, 128, 3, 0, 2)
ENTRY_POINT(128x64, 64, 4, 0, 2)

#endif
