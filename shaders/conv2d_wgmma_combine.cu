// Second passes of the convolutions on `wgmma`: per-channel sums of all tiles, in a fixed order. A thread block has 8
// channels by 128 shares of the tiles.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Adds up the partial statistics: mean and 1 / sqrt(variance + epsilon) of each channel. A block of 8 channels by 128
// shares of the tiles.
struct Conv2dStatistics {
    u32 columns, tiles, rows;
    float epsilon;
};

// Sums 128 shares of 8 channels; the result is in share 0.
__device__ __forceinline__ float sum_shares(float value, float* scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (u32 half = 512; half >= 8; half /= 2) {
        if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
    }
    value = scratch[threadIdx.x & 7];
    __syncthreads();
    return value;
}

extern "C" __global__ void __launch_bounds__(1024) conv2d_wgmma_statistics_combine(
    const float* partials, float* mean, float* inv_std, Conv2dStatistics params) {
    __shared__ float scratch[1024];
    const u32 column = blockIdx.x * 8 + (threadIdx.x & 7);
    const float* counts = partials + (u64)params.tiles * 2 * params.columns;
    const float pivot = partials[column] / counts[0];
    float first = 0.0f, second = 0.0f;
    for (u32 tile = threadIdx.x >> 3; tile < params.tiles; tile += 128) {
        const float count = counts[tile];
        if (count == 0.0f) continue;
        const float sum = partials[(u64)tile * 2 * params.columns + column];
        const float squares = partials[((u64)tile * 2 + 1) * params.columns + column];
        const float away = sum / count - pivot;
        first = fmaf(count, away, first);
        second += fmaf(count * away, away, squares);
    }
    first = sum_shares(first, scratch);
    second = sum_shares(second, scratch);
    if (threadIdx.x >= 8) return;
    const float shift = first / (float)params.rows;
    const float variance = fmaxf(second / (float)params.rows - shift * shift, 0.0f);
    mean[column] = pivot + shift;
    inv_std[column] = 1.0f / sqrtf(variance + params.epsilon);
}

// Adds up the partial reductions of backward data: gradients of one or two batch norms.
struct Conv2dReduction {
    u32 columns, tiles, reductions;
    float factor1, factor2;
};

extern "C" __global__ void __launch_bounds__(1024) conv2d_wgmma_reduction_combine(
    const float* partials, const float* inv_std1, const float* inv_std2, float* dgamma1, float* dbeta1, float* dgamma2,
    float* dbeta2, Conv2dReduction params) {
    __shared__ float scratch[1024];
    const u32 column = blockIdx.x * 8 + (threadIdx.x & 7);
    const u32 parts = 1 + params.reductions;
    float total[3] = {};
    for (u32 tile = threadIdx.x >> 3; tile < params.tiles; tile += 128)
        for (u32 part = 0; part < 3; ++part)
            if (part < parts) total[part] += partials[((u64)tile * parts + part) * params.columns + column];
    for (u32 part = 0; part < 3; ++part) total[part] = sum_shares(total[part], scratch);
    if (threadIdx.x >= 8) return;
    dbeta1[column] = params.factor1 * total[0];
    dgamma1[column] = params.factor1 * total[1] * inv_std1[column];
    if (params.reductions < 2) return;
    dbeta2[column] = params.factor2 * total[0];
    dgamma2[column] = params.factor2 * total[2] * inv_std2[column];
}

#endif
