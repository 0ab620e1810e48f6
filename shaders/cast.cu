// Rounding of f32 master weights to `element`, over one contiguous range.
//
// A thread takes UNROLL vectors of VECTOR elements, blockDim.x vectors apart; a block of 256 threads thus 256 * UNROLL
// neighboring vectors. Grid: one block for each of those. No shared memory. Limit: `count` is a multiple of VECTOR.

struct Cast {
    u32 vectors;
};

extern "C" __global__ void __launch_bounds__(256) cast(const float* x, element* y, Cast params) {
    constexpr u32 UNROLL = 4;
    const u32 first = blockIdx.x * (256 * UNROLL) + threadIdx.x;
    float values[UNROLL][VECTOR];
#pragma unroll
    for (u32 i = 0; i < UNROLL; ++i) {
        const u32 vector = first + 256 * i;
        if (vector < params.vectors) {
#pragma unroll
            for (u32 j = 0; j < VECTOR; j += 4) {
                const float4 four = __ldcs(reinterpret_cast<const float4*>(x + (u64)vector * VECTOR + j));
                values[i][j] = four.x;
                values[i][j + 1] = four.y;
                values[i][j + 2] = four.z;
                values[i][j + 3] = four.w;
            }
        }
    }
#pragma unroll
    for (u32 i = 0; i < UNROLL; ++i) {
        const u32 vector = first + 256 * i;
        if (vector < params.vectors) store16(y + (u64)vector * VECTOR, values[i]);
    }
}
