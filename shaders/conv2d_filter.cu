// What the filters of some convolutions need beside them: a vendor library knows neither scales nor sums of half
// precisions in f32, `wgmma` no rounding.
//
// Filters are [K][R][S][C] with padded channels. A thread takes one vector of VECTOR elements; blocks of 256 threads, grid
// x: vectors / 256, rounded up. No shared memory. Limits: row lengths are multiples of VECTOR, at most 2^32 elements.

struct ScaleFilter {
    // Of the whole filter, and of one output channel's part, R * S * C / VECTOR.
    u32 vectors;
    u32 row_vectors;
};

// y = scale[k] * w: batch norm in inference, folded into the filter.
extern "C" __global__ void __launch_bounds__(256)
    conv2d_scale_filter(const element* w, const float* scale, element* y, ScaleFilter params) {
    const u32 vector = blockIdx.x * 256 + threadIdx.x;
    if (vector >= params.vectors) return;
    const float factor = scale[vector / params.row_vectors];
    float values[VECTOR];
    load16(w + (u64)vector * VECTOR, values);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) values[i] *= factor;
    store16(y + (u64)vector * VECTOR, values);
}

struct WidenFilter {
    u32 vectors;
    float factor;
};

// dw = factor * sums: a filter's gradient that the library left in the type of the activations.
extern "C" __global__ void __launch_bounds__(256)
    conv2d_widen_filter(const element* sums, float* dw, WidenFilter params) {
    const u32 vector = blockIdx.x * 256 + threadIdx.x;
    if (vector >= params.vectors) return;
    float values[VECTOR];
    load16(sums + (u64)vector * VECTOR, values);
#pragma unroll
    for (int i = 0; i < VECTOR; i += 4) {
        const float4 four = make_float4(params.factor * values[i], params.factor * values[i + 1],
                                        params.factor * values[i + 2], params.factor * values[i + 3]);
        *reinterpret_cast<float4*>(dw + (u64)vector * VECTOR + i) = four;
    }
}

#if TF32

struct RoundFilter {
    u32 vectors;
};

// y = w rounded to TF32, for tensor cores that would drop the other bits.
extern "C" __global__ void __launch_bounds__(256) conv2d_round_filter(const element* w, element* y, RoundFilter params) {
    const u32 vector = blockIdx.x * 256 + threadIdx.x;
    if (vector >= params.vectors) return;
    float values[VECTOR];
    load16(w + (u64)vector * VECTOR, values);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        u32 bits;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(values[i]));
        values[i] = __uint_as_float(bits);
    }
    store16(y + (u64)vector * VECTOR, values);
}

#endif
