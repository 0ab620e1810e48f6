// Softmax with cross-entropy: the loss and the gradient of the logits, in one launch.
//
// A block of 256 threads takes one sample, its threads share the classes; the block that finishes last adds up the
// samples' losses in a fixed order. Grid: samples. Shared memory: 36 bytes. `tickets` as in column_sums.cu.

struct CrossEntropy {
    u32 samples;
    // Without padding.
    u32 classes;
    u32 logits_row;
    u32 dlogits_row;
    // loss_scale / samples.
    float scale;
};

constexpr u32 THREADS = 256;

// combine over the values of all threads, in a fixed order.
template <class Combine>
__device__ __forceinline__ float combined(float value, float (&of_warps)[THREADS / 32], Combine combine) {
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warps[0];
#pragma unroll
    for (u32 warp = 1; warp < THREADS / 32; ++warp) value = combine(value, of_warps[warp]);
    return value;
}

// losses[n] = -ln p[label], loss = mean of them, dlogits = scale * (p - onehot(label)), p = softmax(logits).
extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy(const element* logits, const u32* labels, float* loss, element* dlogits, float* losses, u32* tickets,
                  CrossEntropy params) {
    __shared__ float shared[THREADS / 32];
    __shared__ bool is_last;
    const auto sum = [](float a, float b) { return a + b; };
    const auto greater = [](float a, float b) { return fmaxf(a, b); };
    const u32 n = blockIdx.x;
    const element* const row = logits + (u64)n * params.logits_row;
    const u32 padded = (params.classes + VECTOR - 1) / VECTOR * VECTOR;

    float greatest = -3.402823466e38f;
    for (u32 first = threadIdx.x * VECTOR; first < padded; first += THREADS * VECTOR) {
        float values[VECTOR];
        load16(row + first, values);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            if (first + i < params.classes) greatest = fmaxf(greatest, values[i]);
        }
    }
    greatest = combined(greatest, shared, greater);
    float total = 0.0f;
    for (u32 first = threadIdx.x * VECTOR; first < padded; first += THREADS * VECTOR) {
        float values[VECTOR];
        load16(row + first, values);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            if (first + i < params.classes) total += expf(values[i] - greatest);
        }
    }
    total = combined(total, shared, sum);
    const u32 label = labels[n];
    for (u32 first = threadIdx.x * VECTOR; first < padded; first += THREADS * VECTOR) {
        float values[VECTOR];
        load16(row + first, values);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const u32 place = first + i;
            const float p = expf(values[i] - greatest) / total;
            const float gradient = params.scale * (p - (place == label ? 1.0f : 0.0f));
            values[i] = place < params.classes ? gradient : 0.0f;
        }
        store16(dlogits + (u64)n * params.dlogits_row + first, values);
    }

    if (threadIdx.x == 0) {
        losses[n] = logf(total) - (to_float(row[label]) - greatest);
        __threadfence();
        is_last = atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return;
    total = 0.0f;
    for (u32 sample = threadIdx.x; sample < params.samples; sample += THREADS) total += __ldcg(losses + sample);
    total = combined(total, shared, sum);
    if (threadIdx.x == 0) loss[0] = total / (float)params.samples;
}
