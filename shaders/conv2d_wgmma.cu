// Convolution on tensor cores of compute capability 9.0a.
//
//   y[n,p,q,k] = relu(scale[k] * sum x[n, p*stride + i - pad, q*stride + j - pad, c] * w[k,i,j,c] + bias[k]
//                     + residual[n,p,q,k]), scale, bias and residual nullable
//
// or y without any of these and the statistics of each tile in `partials`. Tiles, threads, shared memory and limits:
// conv2d_wgmma_gather.cu. Grid: tiles, columns fastest.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int BN, int STAGES, int PENDING>
__device__ __forceinline__ void forward(const element* x, const element* filter, element* y, const float* scale,
                                        const float* bias, const element* residual, float* partials,
                                        const Conv2dForward& params) {
    Gemm g;
    g.a = (const uint4*)x;
    g.a_h = params.h, g.a_w = params.w, g.a_row = params.x_row / VECTOR;
    g.channels = params.c / VECTOR, g.taps = params.r * params.s, g.taps_s = params.s;
    g.images = params.n, g.grid_h = params.p, g.grid_w = params.q, g.step = params.stride;
    g.h0 = g.w0 = -(int)params.pad;
    g.out_h = params.p, g.out_w = params.q, g.out_step = 1, g.out_h0 = g.out_w0 = 0;
    g.filter = filter;
    g.columns = params.k;

    Origins& rows = *(Origins*)(shared_memory + STAGES * (128 + BN) * 128);
    const u32 tile_columns = (params.k + BN - 1) / BN;
    const u32 tile_row = blockIdx.x / tile_columns, column0 = blockIdx.x % tile_columns * BN;
    locate_rows(rows, g, tile_row * 128);
    __syncthreads();
    prefetch_tile<BN>(residual, params.residual_row, rows, column0, params.k);
    float sums[BN / 2] = {};
    multiply<BN, STAGES, PENDING, false>(sums, g, rows, column0);
    if (partials)
        finish_with_statistics<BN>(sums, rows, column0, shared_memory, tile_row, gridDim.x / tile_columns, y,
                                   partials, params);
    else
        finish_forward<BN>(sums, rows, column0, shared_memory, y, scale, bias, residual, params);
}

#define ENTRY_POINT(NAME, BN, STAGES, PENDING, BLOCKS)                                                                \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_forward_##NAME(                            \
        const element* x, const element* filter, const float* scale, const float* bias, const element* residual,     \
        element* y, float* partials, Conv2dForward params) {                                                          \
        forward<BN, STAGES, PENDING>(x, filter, y, scale, bias, residual, partials, params);                          \
    }

ENTRY_POINT(128x256, 256, 4, TF32 ? 0 : 1, 1)
ENTRY_POINT(128x128, 128, 3, 0, 2)
ENTRY_POINT(128x64, 64, 3, 0, 3)

#endif
