// A channel's normalization: shared by batch_norm.cu and batch_norm_sums.cu.

// gamma * (y - mean) * inv_std + beta for a thread's channels. Forward, and the mask that the backward pass recomputes,
// round alike.
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
        for (int i = 0; i < VECTOR; ++i) factor[i] = __fmul_rn(factor[i], inv_std[i]);
    }

    __device__ __forceinline__ float apply(float y, int i) const {
        return __fmaf_rn(__fsub_rn(y, mean[i]), factor[i], beta[i]);
    }
};
