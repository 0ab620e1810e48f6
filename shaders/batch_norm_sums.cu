// Sums over n, h, w for each channel: the statistics of batch norm, the gradients of gamma and beta, and that of a
// bias.
//
// Thread blocks and grid as in columns.cu, sums as in column_sums.cu.

// Calls take for the vector at each of a thread's positions; UNROLL of them are on their way while as many are taken.
template <u32 UNROLL, class Take>
__device__ __forceinline__ void for_each_vector(const element* from, u32 row, const Part& part, Take take) {
    uint4 next[UNROLL];
    const auto load = [&](u32 first) {
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            const u32 position = first + u * part.rows;
            if (position < part.end) next[u] = load_bits(at(from, position, row, part.channel));
        }
    };
    load(part.first);
    for (u32 first = part.first; first < part.end; first += UNROLL * part.rows) {
        uint4 bits[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) bits[u] = next[u];
        load(first + UNROLL * part.rows);
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            if (first + u * part.rows < part.end) take(bits[u]);
        }
    }
}

struct Statistics {
    Extent extent;
    u32 y_row;
    float epsilon;
};

// Mean of some values and sum of the squares of their distances from it, of sums about a pivot. `share` is 1 / count.
struct Moments {
    float mean;
    float squares;

    __device__ __forceinline__ Moments(float share, float sum, float sum_of_squares, float pivot) {
        const float distance = sum * share;
        mean = pivot + distance;
        squares = fmaxf(sum_of_squares - sum * distance, 0.0f);
    }
};

// What a chunk left: sum and sum of squares about its pivot, and the pivot.
__device__ __forceinline__ void load_partials(const float* partials, u32 chunk, u32 channel, const Extent& extent,
                                              float (&partial)[3][VECTOR]) {
#pragma unroll
    for (int n = 0; n < 3; ++n) load_channels(partials + (3 * chunk + n) * extent.channels, channel, partial[n]);
}

// mean = sum(y) / positions, inv_std = 1 / sqrt(sum((y - mean)^2) / positions + epsilon).
//
// Sums are taken about a pivot, the chunk's first value, and those of the chunks' means about that of the first chunk:
// no cancellation where the mean is large against the deviation.
extern "C" __global__ void __launch_bounds__(512)
    batch_norm_statistics(const element* y, float* mean, float* inv_std, float* partials, u32* tickets,
                          Statistics params) {
    __shared__ Sums<2> shared;
    const Part part = part_of_thread(params.extent);
    const u32 channel = part.channel;
    const bool exists = channel < params.extent.channels;
    float sums[2][VECTOR] = {};
    float pivot[VECTOR] = {};
    if (exists) load16(at(y, blockIdx.x * params.extent.chunk, params.y_row, channel), pivot);
    for_each_vector<4>(y, params.y_row, part, [&](uint4 bits) {
        float values[VECTOR];
        unpack16(bits, values);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const float distance = values[i] - pivot[i];
            sums[0][i] += distance;
            sums[1][i] = fmaf(distance, distance, sums[1][i]);
        }
    });
    // Behind each chunk's sums stands its pivot.
    if (exists && threadIdx.x < params.extent.columns) {
        store_channels(partials + (3 * blockIdx.x + 2) * params.extent.channels, channel, pivot);
    }
    if (!leave_partials<2, 3>(sums, shared, partials, tickets, params.extent)) return;

    // The last chunk may be shorter.
    const float positions = params.extent.positions;
    const float full_count = min(params.extent.chunk, params.extent.positions);
    const float last_count = positions - (float)(gridDim.x - 1) * full_count;
    const float full_share = 1.0f / full_count;
    const float last_share = 1.0f / last_count;
    float center[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) sums[0][i] = sums[1][i] = 0.0f;
    if (exists) {
        float of_first[3][VECTOR];
        load_partials(partials, 0, channel, params.extent, of_first);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) center[i] = fmaf(of_first[0][i], full_share, of_first[2][i]);
        constexpr u32 UNROLL = 2;
        for (u32 first = threadIdx.x / params.extent.columns; first < gridDim.x; first += UNROLL * part.rows) {
            float partial[UNROLL][3][VECTOR];
#pragma unroll
            for (u32 u = 0; u < UNROLL; ++u) {
                const u32 chunk = first + u * part.rows;
                if (chunk < gridDim.x) load_partials(partials, chunk, channel, params.extent, partial[u]);
            }
#pragma unroll
            for (u32 u = 0; u < UNROLL; ++u) {
                const u32 chunk = first + u * part.rows;
                if (chunk >= gridDim.x) break;
                const bool is_last = chunk == gridDim.x - 1;
                const float count = is_last ? last_count : full_count;
                const float share = is_last ? last_share : full_share;
#pragma unroll
                for (int i = 0; i < VECTOR; ++i) {
                    const Moments moments(share, partial[u][0][i], partial[u][1][i], partial[u][2][i]);
                    const float distance = moments.mean - center[i];
                    sums[0][i] = fmaf(count, distance, sums[0][i]);
                    sums[1][i] += fmaf(count * distance, distance, moments.squares);
                }
            }
        }
    }
    sum_to_channels(sums, shared, params.extent.columns);
    for_each_channel(params.extent, [&](u32 channel, u32 place) {
        const float pivot = fmaf(partials[channel], full_share, partials[2 * params.extent.channels + channel]);
        const Moments moments(1.0f / positions, shared.of_channels[0][place], shared.of_channels[1][place], pivot);
        mean[channel] = moments.mean;
        inv_std[channel] = 1.0f / sqrtf(moments.squares / positions + params.epsilon);
    });
}

struct Reduction {
    Extent extent;
    u32 g_row;
    u32 y_row;
    float factor;
};

// dbeta = factor * sum(g), dgamma = factor * sum(g * (y - mean) * inv_std).
extern "C" __global__ void __launch_bounds__(512)
    batch_norm_reduction(const element* g, const element* y, const float* mean_of, const float* inv_std, float* dgamma,
                         float* dbeta, float* partials, u32* tickets, Reduction params) {
    __shared__ Sums<2> shared;
    const Part part = part_of_thread(params.extent);
    float sums[2][VECTOR] = {};
    if (part.first < part.end) {
        float mean[VECTOR];
        load_channels(mean_of, part.channel, mean);
        const auto take = [&](u32, const float (&gradient)[VECTOR], const float (&values)[VECTOR]) {
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                sums[0][i] += gradient[i];
                sums[1][i] = fmaf(gradient[i], values[i] - mean[i], sums[1][i]);
            }
        };
        for_each_pair<4>(g, params.g_row, y, params.y_row, part, take);
    }
    if (!sum_over_positions(sums, shared, partials, tickets, part, params.extent)) return;
    for_each_channel(params.extent, [&](u32 channel, u32 place) {
        dbeta[channel] = params.factor * shared.of_channels[0][place];
        dgamma[channel] = params.factor * inv_std[channel] * shared.of_channels[1][place];
    });
}

struct Bias {
    Extent extent;
    u32 dy_row;
    float factor;
};

// dbias = factor * sum(dy).
extern "C" __global__ void __launch_bounds__(512)
    bias_gradient(const element* dy, float* dbias, float* partials, u32* tickets, Bias params) {
    __shared__ Sums<1> shared;
    const Part part = part_of_thread(params.extent);
    float sums[1][VECTOR] = {};
    for_each_vector<4>(dy, params.dy_row, part, [&](uint4 bits) {
        float values[VECTOR];
        unpack16(bits, values);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) sums[0][i] += values[i];
    });
    if (!sum_over_positions(sums, shared, partials, tickets, part, params.extent)) return;
    for_each_channel(params.extent, [&](u32 channel, u32 place) {
        dbias[channel] = params.factor * shared.of_channels[0][place];
    });
}
