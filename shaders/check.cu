// What the choice among candidates needs to see that they agree: made-up values, and the distance of two results.
//
// A thread takes every (blocks * 256)-th element. No alignment is assumed. Shared memory: 2 KiB.

struct Check {
    u32 count_low;
    u32 count_high;
    u32 seed;
};

__device__ __forceinline__ u64 count_of(const Check& params) {
    return (u64)params.count_high << 32 | params.count_low;
}

// Uniform in [-1, 1), a function of the place alone.
__device__ __forceinline__ float made_up(u64 place, u32 seed) {
    u32 h = (u32)place * 0x9e3779b1u + (u32)(place >> 32) + seed;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return (int)(h ^ (h >> 16)) * (1.0f / 2147483648.0f);
}

extern "C" __global__ void __launch_bounds__(256) check_fill(element* to, Check params) {
    const u64 count = count_of(params);
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += (u64)gridDim.x * 256) {
        to[i] = from_float(made_up(i, params.seed));
    }
}

extern "C" __global__ void __launch_bounds__(256) check_fill_f32(float* to, Check params) {
    const u64 count = count_of(params);
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += (u64)gridDim.x * 256) {
        to[i] = made_up(i, params.seed);
    }
}

// Leaves the sums of (a - b)^2 and b^2 over the block's elements in sums[2 * block].
template <typename Read>
__device__ __forceinline__ void distance(u64 count, float* sums, Read read) {
    __shared__ float shared[2][256];
    float difference = 0.0f;
    float size = 0.0f;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += (u64)gridDim.x * 256) {
        float a;
        float b;
        read(i, a, b);
        difference += (a - b) * (a - b);
        size += b * b;
    }
    shared[0][threadIdx.x] = difference;
    shared[1][threadIdx.x] = size;
    for (u32 half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            shared[0][threadIdx.x] += shared[0][threadIdx.x + half];
            shared[1][threadIdx.x] += shared[1][threadIdx.x + half];
        }
    }
    if (threadIdx.x < 2) sums[2 * blockIdx.x + threadIdx.x] = shared[threadIdx.x][0];
}

extern "C" __global__ void __launch_bounds__(256)
    check_distance(const element* a, const element* b, float* sums, Check params) {
    distance(count_of(params), sums, [&](u64 i, float& x, float& y) {
        x = to_float(a[i]);
        y = to_float(b[i]);
    });
}

extern "C" __global__ void __launch_bounds__(256)
    check_distance_f32(const float* a, const float* b, float* sums, Check params) {
    distance(count_of(params), sums, [&](u64 i, float& x, float& y) {
        x = a[i];
        y = b[i];
    });
}
