// Gradient of a convolution's input on tensor cores of compute capability 9.0a, f16 and bf16.
//
//   g = scale * sum dy[n,p,q,k] * w[k,i,j,c] over p*stride + i - pad = h, q*stride + j - pad = w
//   dx[n,h,w,c] = (g + dx[n,h,w,c] if accumulating) where mask > 0, else 0
//
// Gathers dy with the taps in reverse order, one slice of the grid (y) for each residue class of (h, w) modulo the
// stride: a class meets only its own taps. Tiles, threads, shared memory and limits: conv2d_wgmma_gather.cu. Grid x:
// tiles, columns fastest.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int BN, int STAGES, int PENDING>
__device__ __forceinline__ void backward_data(const element* dy, const element* filter, element* dx,
                                              const GradientInputs& inputs, float* partials,
                                              const Conv2dBackwardData& params) {
    // This grid slice's residue class: positions a + stride * u, which meet taps first + stride * i.
    const u32 stride = params.stride;
    const u32 a = blockIdx.y / stride, b = blockIdx.y % stride;
    const u32 first_r = (a + params.pad) % stride, first_s = (b + params.pad) % stride;
    const u32 taps_r = first_r < params.r ? (params.r - first_r + stride - 1) / stride : 0;
    const u32 taps_s = first_s < params.s ? (params.s - first_s + stride - 1) / stride : 0;
    Gemm g;
    g.a = (const uint4*)dy;
    g.a_h = params.p, g.a_w = params.q, g.a_row = params.dy_row / 8;
    g.channels = params.k / 8, g.taps = taps_r * taps_s, g.taps_s = taps_s ? taps_s : 1;
    g.images = params.n, g.grid_h = (params.h + stride - 1) / stride, g.grid_w = (params.w + stride - 1) / stride;
    g.step = 1;
    g.h0 = (int)((a + params.pad) / stride) - (int)taps_r + 1;
    g.w0 = (int)((b + params.pad) / stride) - (int)taps_s + 1;
    g.out_h = params.h, g.out_w = params.w, g.out_step = stride, g.out_h0 = a, g.out_w0 = b;
    g.filter = filter;
    g.filter_stride = params.r * params.s * params.c;
    const int last_r = (int)(first_r + stride * taps_r) - (int)stride;
    const int last_s = (int)(first_s + stride * taps_s) - (int)stride;
    g.filter_tap0 = (last_r * (int)params.s + last_s) * (int)params.c;
    g.filter_tap_i = -(int)(stride * params.s * params.c);
    g.filter_tap_j = -(int)(stride * params.c);
    g.columns = params.c;

    Origins& rows = *(Origins*)(shared_memory + STAGES * (128 + BN) * 128);
    const u32 tile_columns = (params.c + BN - 1) / BN;
    const u32 tile_row = blockIdx.x / tile_columns, column0 = blockIdx.x % tile_columns * BN;
    locate_rows(rows, g, tile_row * 128);
    __syncthreads();
    prefetch_gradient_inputs<BN>(dx, inputs, rows, column0, params);
    float sums[BN / 2] = {};
    multiply<BN, STAGES, PENDING, true>(sums, g, rows, column0);
    const u32 tile = blockIdx.y * (gridDim.x / tile_columns) + tile_row;
    finish_gradient<BN>(sums, rows, column0, shared_memory, tile, dx, inputs, partials, params);
}

#define ENTRY_POINT(NAME, BN, STAGES, PENDING, BLOCKS)                                                                \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) conv2d_wgmma_backward_data_##NAME(                      \
        const element* dy, const element* filter, const element* mask, const element* y1, const float* mean1,        \
        const element* y2, const float* mean2, element* dx, float* partials, Conv2dBackwardData params) {             \
        const GradientInputs inputs = {mask, y1, mean1, y2, mean2};                                                   \
        backward_data<BN, STAGES, PENDING>(dy, filter, dx, inputs, partials, params);                                 \
    }

ENTRY_POINT(128x256, 256, 4, 1, 1)
ENTRY_POINT(128x128, 128, 3, 0, 2)
ENTRY_POINT(128x64, 64, 3, 0, 3)

#endif
