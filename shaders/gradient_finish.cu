// What is done to a new gradient before it counts as finished, and the sums that batch norms need over it.
//
// v = scale * g (+ dx); dx = mask > 0 ? v : 0. Then for up to two batch norms that the gradient enters:
// dbeta = factor * sum(dx), dgamma = factor * sum(dx * (y - mean) * inv_std), of dx as it is stored.
//
// Thread blocks and grid as in columns.cu, sums as in column_sums.cu.

struct Finish {
    Extent extent;
    u32 g_row;
    u32 dx_row;
    u32 mask_row;
    u32 first_y_row;
    u32 second_y_row;
    u32 accumulate;
    float scale;
    // Of the sums.
    float factor;
};

// Finishes a thread's part. sums[0] is that of dx, sums[1 + n] that of dx * (y - mean) of batch norm n.
template <int REDUCTIONS, u32 UNROLL>
__device__ __forceinline__ void finish(const element* g, const element* mask, const element* const (&y)[2],
                                       const float* const (&mean_of)[2], element* dx, const Finish& params,
                                       const Part& part, float (&sums)[1 + REDUCTIONS][VECTOR]) {
    const u32 y_row[2] = {params.first_y_row, params.second_y_row};
    const u32 channel = part.channel;
    float mean[2][VECTOR];
#pragma unroll
    for (int n = 0; n < REDUCTIONS; ++n) load_channels(mean_of[n], channel, mean[n]);
    uint4 g_bits[UNROLL];
    uint4 dx_bits[UNROLL];
    uint4 mask_bits[UNROLL];
    uint4 y_bits[2][UNROLL];
    const auto load = [&](u32 u, u32 position) {
        g_bits[u] = load_bits(at(g, position, params.g_row, channel));
        if (params.accumulate) dx_bits[u] = load_bits(at(dx, position, params.dx_row, channel));
        if (mask) mask_bits[u] = load_bits(at(mask, position, params.mask_row, channel));
#pragma unroll
        for (int n = 0; n < REDUCTIONS; ++n) y_bits[n][u] = load_bits(at(y[n], position, y_row[n], channel));
    };
    for_each_position<UNROLL>(part, load, [&](u32 u, u32 position) {
        float gradient[VECTOR];
        float values[VECTOR];
        unpack16(g_bits[u], gradient);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) gradient[i] *= params.scale;
        if (params.accumulate) {
            unpack16(dx_bits[u], values);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) gradient[i] += values[i];
        }
        if (mask) {
            unpack16(mask_bits[u], values);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) gradient[i] = values[i] > 0.0f ? gradient[i] : 0.0f;
        }
        const uint4 stored = pack16(gradient);
        *reinterpret_cast<uint4*>(at(dx, position, params.dx_row, channel)) = stored;
        if (REDUCTIONS != 0) {
            unpack16(stored, gradient);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) sums[0][i] += gradient[i];
        }
#pragma unroll
        for (int n = 0; n < REDUCTIONS; ++n) {
            unpack16(y_bits[n][u], values);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                sums[1 + n][i] = fmaf(gradient[i], values[i] - mean[n][i], sums[1 + n][i]);
            }
        }
    });
}

extern "C" __global__ void __launch_bounds__(256)
    gradient_finish(const element* g, const element* mask, element* dx, Finish params) {
    const Part part = part_of_thread(params.extent);
    if (part.first >= part.end) return;
    float unused[1][VECTOR];
    finish<0, 4>(g, mask, {}, {}, dx, params, part, unused);
}

extern "C" __global__ void __launch_bounds__(512)
    gradient_finish_reduction(const element* g, const element* mask, const element* y, const float* mean,
                              const float* inv_std, element* dx, float* dgamma, float* dbeta, float* partials,
                              u32* tickets, Finish params) {
    __shared__ Sums<2> shared;
    const Part part = part_of_thread(params.extent);
    float sums[2][VECTOR] = {};
    if (part.first < part.end) finish<1, 4>(g, mask, {y}, {mean}, dx, params, part, sums);
    if (!sum_over_positions(sums, shared, partials, tickets, part, params.extent)) return;
    for_each_channel(params.extent, [&](u32 channel, u32 place) {
        dbeta[channel] = params.factor * shared.of_channels[0][place];
        dgamma[channel] = params.factor * inv_std[channel] * shared.of_channels[1][place];
    });
}

extern "C" __global__ void __launch_bounds__(512)
    gradient_finish_two_reductions(const element* g, const element* mask, const element* first_y,
                                   const float* first_mean, const float* first_inv_std, const element* second_y,
                                   const float* second_mean, const float* second_inv_std, element* dx,
                                   float* first_dgamma, float* first_dbeta, float* second_dgamma, float* second_dbeta,
                                   float* partials, u32* tickets, Finish params) {
    __shared__ Sums<3> shared;
    const Part part = part_of_thread(params.extent);
    float sums[3][VECTOR] = {};
    if (part.first < part.end) {
        finish<2, 2>(g, mask, {first_y, second_y}, {first_mean, second_mean}, dx, params, part, sums);
    }
    if (!sum_over_positions(sums, shared, partials, tickets, part, params.extent)) return;
    for_each_channel(params.extent, [&](u32 channel, u32 place) {
        const float sum = params.factor * shared.of_channels[0][place];
        first_dbeta[channel] = sum;
        second_dbeta[channel] = sum;
        first_dgamma[channel] = params.factor * first_inv_std[channel] * shared.of_channels[1][place];
        second_dgamma[channel] = params.factor * second_inv_std[channel] * shared.of_channels[2][place];
    });
}
