// Average over the whole map, forward and backward.
//
// Thread blocks and grid as in columns.cu, a chunk being an image; sums of a block as in column_sums.cu.

struct Average {
    // chunk = h * w.
    Extent extent;
    u32 x_row;
    u32 y_row;
};

// y[n][c] = sum of x[n][h][w][c] / (h * w).
extern "C" __global__ void __launch_bounds__(256) average_pool_forward(const element* x, element* y, Average params) {
    constexpr u32 UNROLL = 4;
    __shared__ Sums<1> shared;
    const Part part = part_of_thread(params.extent);
    float sums[1][VECTOR] = {};
    for (u32 first = part.first; first < part.end; first += UNROLL * part.rows) {
        uint4 bits[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            const u32 position = first + u * part.rows;
            if (position < part.end) bits[u] = load_bits(at(x, position, params.x_row, part.channel));
        }
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            if (first + u * part.rows < part.end) {
                float values[VECTOR];
                unpack16(bits[u], values);
#pragma unroll
                for (int i = 0; i < VECTOR; ++i) sums[0][i] += values[i];
            }
        }
    }
    sum_to_channels(sums, shared, params.extent.columns);
    for_each_channel(params.extent, [&](u32 channel, u32 place) {
        const float mean = shared.of_channels[0][place] / (float)params.extent.chunk;
        y[(u64)blockIdx.x * params.y_row + channel] = from_float(mean);
    });
}

struct AverageGradient {
    // chunk = h * w.
    Extent extent;
    u32 dy_row;
    u32 dx_row;
    u32 mask_row;
    u32 accumulate;
    // That of the epilogue divided by h * w.
    float scale;
};

// v = scale * dy[n][c] (+ dx); dx[n][h][w][c] = mask > 0 ? v : 0.
extern "C" __global__ void __launch_bounds__(256)
    average_pool_backward(const element* dy, const element* mask, element* dx, AverageGradient params) {
    const Part part = part_of_thread(params.extent);
    if (part.first >= part.end) return;
    float gradient[VECTOR];
    load16(at(dy, blockIdx.x, params.dy_row, part.channel), gradient);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) gradient[i] *= params.scale;
#pragma unroll 4
    for (u32 position = part.first; position < part.end; position += part.rows) {
        element* const place = at(dx, position, params.dx_row, part.channel);
        float values[VECTOR];
        float others[VECTOR];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) values[i] = gradient[i];
        if (params.accumulate) {
            load16(place, others);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) values[i] += others[i];
        }
        if (mask) {
            load16(at(mask, position, params.mask_row, part.channel), others);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) values[i] = others[i] > 0.0f ? values[i] : 0.0f;
        }
        store16(place, values);
    }
}
