// Batch normalization applied, forward and backward.
//
// Thread blocks and grid as in columns.cu; a thread has UNROLL positions in flight. No shared memory.

constexpr u32 UNROLL = 4;

// gamma * (y - mean) * inv_std + beta for a thread's channels.
struct Normalization {
    float mean[VECTOR];
    float factor[VECTOR];
    float beta[VECTOR];

    __device__ __forceinline__ void load(const float* mean_of, const float* inv_std_of, const float* gamma_of,
                                         const float* beta_of, u32 channel) {
        float inv_std[VECTOR];
        load_channels(mean_of, channel, mean);
        load_channels(inv_std_of, channel, inv_std);
        load_channels(gamma_of, channel, factor);
        load_channels(beta_of, channel, beta);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) factor[i] *= inv_std[i];
    }

    __device__ __forceinline__ float apply(float y, int i) const {
        return fmaf(y - mean[i], factor[i], beta[i]);
    }
};

struct Forward {
    Extent extent;
    u32 y_row;
    u32 residual_row;
    u32 z_row;
    u32 relu;
};

enum Residual { NONE, IDENTITY, NORMALIZED };

template <Residual RESIDUAL>
__device__ __forceinline__ void forward(const element* y, const Normalization& normalization, const element* residual,
                                        const Normalization& shortcut, element* z, const Forward& params,
                                        const Part& part) {
    uint4 y_bits[UNROLL];
    uint4 residual_bits[UNROLL];
    const auto load = [&](u32 u, u32 position) {
        y_bits[u] = load_bits(at(y, position, params.y_row, part.channel));
        if (RESIDUAL != NONE) residual_bits[u] = load_bits(at(residual, position, params.residual_row, part.channel));
    };
    for_each_position<UNROLL>(part, load, [&](u32 u, u32 position) {
        float values[VECTOR];
        float added[VECTOR];
        unpack16(y_bits[u], values);
        if (RESIDUAL != NONE) unpack16(residual_bits[u], added);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            float value = normalization.apply(values[i], i);
            if (RESIDUAL == IDENTITY) value += added[i];
            if (RESIDUAL == NORMALIZED) value += shortcut.apply(added[i], i);
            values[i] = params.relu ? fmaxf(value, 0.0f) : value;
        }
        store16(at(z, position, params.z_row, part.channel), values);
    });
}

// z = relu?(normalize(y) + residual): no residual where it is null, a finished activation where `shortcut_mean` is
// null, else one that is normalized on the way.
extern "C" __global__ void __launch_bounds__(256)
    batch_norm_forward(const element* y, const float* mean, const float* inv_std, const float* gamma, const float* beta,
                       const element* residual, const float* shortcut_mean, const float* shortcut_inv_std,
                       const float* shortcut_gamma, const float* shortcut_beta, element* z, Forward params) {
    const Part part = part_of_thread(params.extent);
    if (part.first >= part.end) return;
    Normalization normalization;
    Normalization shortcut;
    normalization.load(mean, inv_std, gamma, beta, part.channel);
    if (!residual) {
        forward<NONE>(y, normalization, residual, shortcut, z, params, part);
    } else if (!shortcut_mean) {
        forward<IDENTITY>(y, normalization, residual, shortcut, z, params, part);
    } else {
        shortcut.load(shortcut_mean, shortcut_inv_std, shortcut_gamma, shortcut_beta, part.channel);
        forward<NORMALIZED>(y, normalization, residual, shortcut, z, params, part);
    }
}

struct Backward {
    Extent extent;
    u32 g_row;
    u32 y_row;
    u32 dy_row;
    // loss_scale / positions.
    float share;
};

// dy = gamma * inv_std * (g - share * (dbeta + xhat * dgamma)), xhat = (y - mean) * inv_std. dy may be g.
extern "C" __global__ void __launch_bounds__(256)
    batch_norm_backward(const element* g, const element* y, const float* mean_of, const float* inv_std_of,
                        const float* gamma_of, const float* dgamma_of, const float* dbeta_of, element* dy,
                        Backward params) {
    const Part part = part_of_thread(params.extent);
    if (part.first >= part.end) return;
    // dy = factor * g + slope * (y - mean) + offset.
    float mean[VECTOR];
    float factor[VECTOR];
    float slope[VECTOR];
    float offset[VECTOR];
    {
        float inv_std[VECTOR];
        load_channels(mean_of, part.channel, mean);
        load_channels(inv_std_of, part.channel, inv_std);
        load_channels(gamma_of, part.channel, factor);
        load_channels(dgamma_of, part.channel, slope);
        load_channels(dbeta_of, part.channel, offset);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            factor[i] *= inv_std[i];
            slope[i] *= -params.share * factor[i] * inv_std[i];
            offset[i] *= -params.share * factor[i];
        }
    }
    const auto take = [&](u32 position, const float (&gradient)[VECTOR], float (&values)[VECTOR]) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            values[i] = fmaf(factor[i], gradient[i], fmaf(slope[i], values[i] - mean[i], offset[i]));
        }
        store16(at(dy, position, params.dy_row, part.channel), values);
    };
    for_each_pair<UNROLL>(g, params.g_row, y, params.y_row, part, take);
}
