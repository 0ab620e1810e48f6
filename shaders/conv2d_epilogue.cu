// What is fused behind a convolution's sum, for sums that something else left in memory.
//
// y = relu?(scale[k] * acc + bias[k] + residual), each part where it is not null. acc is packed: its row is the padded
// channels. y may be acc.
//
// Thread blocks and grid as in columns.cu; a thread has UNROLL positions in flight. No shared memory.

struct Epilogue {
    Extent extent;
    u32 residual_row;
    u32 y_row;
    u32 relu;
};

extern "C" __global__ void __launch_bounds__(256)
    conv2d_epilogue(const element* acc, const float* scale_of, const float* bias_of, const element* residual,
                    element* y, Epilogue params) {
    constexpr u32 UNROLL = 4;
    const Part part = part_of_thread(params.extent);
    if (part.first >= part.end) return;
    const u32 channel = part.channel;
    float scale[VECTOR];
    float bias[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        scale[i] = 1.0f;
        bias[i] = 0.0f;
    }
    if (scale_of) load_channels(scale_of, channel, scale);
    if (bias_of) load_channels(bias_of, channel, bias);
    uint4 acc_bits[UNROLL];
    uint4 residual_bits[UNROLL];
    const auto load = [&](u32 u, u32 position) {
        acc_bits[u] = load_bits(at(acc, position, params.extent.channels, channel));
        if (residual) residual_bits[u] = load_bits(at(residual, position, params.residual_row, channel));
    };
    for_each_position<UNROLL>(part, load, [&](u32 u, u32 position) {
        float values[VECTOR];
        float added[VECTOR];
        unpack16(acc_bits[u], values);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) values[i] = fmaf(scale[i], values[i], bias[i]);
        if (residual) {
            unpack16(residual_bits[u], added);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) values[i] += added[i];
        }
        if (params.relu) {
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) values[i] = fmaxf(values[i], 0.0f);
        }
        store16(at(y, position, params.y_row, channel), values);
    });
}
