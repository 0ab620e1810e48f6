// Backward through maximum pooling: an input gathers the gradients of the outputs whose maximum it was.
//
// v = scale * sum (+ dx); dx = mask > 0 ? v : 0.
//
// Thread blocks and grid as in columns.cu. No shared memory. `max_pool_backward_SIZE_STRIDE` are for square windows
// known at compile time: there a position is a strip of SQUARES neighboring squares of STRIDE * STRIDE inputs, each
// covered by the same windows; the squares begin where the padding does. `max_pool_backward` takes any window, and a
// position is an input.

struct PoolGradient {
    Extent extent;
    u32 dy_row;
    u32 dx_row;
    u32 mask_row;
    // Input map, output map, window.
    u32 h;
    u32 w;
    u32 p;
    u32 q;
    u32 r;
    u32 s;
    u32 stride;
    u32 pad;
    u32 accumulate;
    float scale;
};

// The gradient of an output, and where its maximum came from: VECTOR channels.
struct Output {
    float gradient[VECTOR];
    // Pairs of 16-bit places.
    u32 places[VECTOR / 2];

    // With `exists` false: a place that no input has.
    __device__ __forceinline__ Output(uint4 gradient_bits, uint2 place_bits, bool exists) {
        unpack16(gradient_bits, gradient);
        const u32 words[2] = {exists ? place_bits.x : ~0u, exists ? place_bits.y : ~0u};
#pragma unroll
        for (int i = 0; i < VECTOR / 4; ++i) {
            places[2 * i] = __byte_perm(words[i], 0, 0x4140);
            places[2 * i + 1] = __byte_perm(words[i], 0, 0x4342);
        }
    }

    // sums += gradient where the maximum came from `place`. Places are compared two at once, as the f16 that their bits
    // are: subnormal and each different from the others.
    __device__ __forceinline__ void add_to(float (&sums)[VECTOR], u32 place) const {
#pragma unroll
        for (int i = 0; i < VECTOR; i += 2) {
            asm("{\n"
                ".reg .pred p, q;\n"
                "setp.eq.f16x2 p|q, %2, %3;\n"
                "@p add.f32 %0, %0, %4;\n"
                "@q add.f32 %1, %1, %5;\n"
                "}"
                : "+f"(sums[i]), "+f"(sums[i + 1])
                : "r"(places[i / 2]), "r"(place * 0x10001u), "f"(gradient[i]), "f"(gradient[i + 1]));
        }
    }
};

// The places of VECTOR channels, a byte each.
__device__ __forceinline__ uint2 load_places(const u8* from) {
#if ELEMENT == 0
    return make_uint2(*reinterpret_cast<const u32*>(from), 0);
#else
    return *reinterpret_cast<const uint2*>(from);
#endif
}

__device__ __forceinline__ void finish(float (&values)[VECTOR], const element* mask, element* dx, u32 position,
                                       u32 channel, const PoolGradient& params) {
    element* const place = at(dx, position, params.dx_row, channel);
    float others[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) values[i] *= params.scale;
    if (params.accumulate) {
        load16(place, others);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) values[i] += others[i];
    }
    if (mask) {
        load16(at(mask, position, params.mask_row, channel), others);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) values[i] = others[i] > 0.0f ? values[i] : 0.0f;
    }
    store16(place, values);
}

template <u32 SIZE, u32 STRIDE, u32 SQUARES>
__device__ __forceinline__ void pool_backward(const element* dy, const u8* index, const element* mask, element* dx,
                                              const PoolGradient& params) {
    // Windows that cover a square, in each direction: the one that begins with it and those before.
    constexpr u32 WINDOWS = (SIZE + STRIDE - 1) / STRIDE;
    constexpr u32 WIDTH = SQUARES + WINDOWS - 1;
    const Part part = part_of_thread(params.extent);
    const u32 height = (params.h - 1 + params.pad) / STRIDE + 1;
    const u32 strips = ((params.w - 1 + params.pad) / STRIDE + SQUARES) / SQUARES;
    for (u32 strip = part.first; strip < part.end; strip += part.rows) {
        const u32 row = strip / strips;
        const u32 n = row / height;
        const u32 first_p = row - n * height;
        const u32 first_q = (strip - row * strips) * SQUARES;
        float sums[STRIDE][SQUARES * STRIDE][VECTOR] = {};
#pragma unroll
        for (u32 i = 0; i < WINDOWS; ++i) {
            // Below zero it wraps around, and is not below p; loads are unconditional.
            const u32 p = first_p - i;
            const u32 output = (n * params.p + min(p, params.p - 1)) * params.q;
            const element* const dy_at = at(dy, output, params.dy_row, part.channel);
            const u8* const index_at = index + ((u64)output * params.extent.channels + part.channel);
            uint4 gradient_bits[WIDTH];
            uint2 place_bits[WIDTH];
#pragma unroll
            for (u32 j = 0; j < WIDTH; ++j) {
                const u32 q = min(first_q + j - (WINDOWS - 1), params.q - 1);
                gradient_bits[j] = load_bits(at(dy_at, q, params.dy_row, 0));
                place_bits[j] = load_places(index_at + (u64)q * params.extent.channels);
            }
#pragma unroll
            for (u32 j = 0; j < WIDTH; ++j) {
                const bool exists = p < params.p && first_q + j - (WINDOWS - 1) < params.q;
                const Output from(gradient_bits[j], place_bits[j], exists);
                // Place of the strip's first square in this window.
                const int left = ((int)(WINDOWS - 1) - (int)j) * (int)STRIDE;
#pragma unroll
                for (u32 a = 0; a < STRIDE; ++a) {
#pragma unroll
                    for (u32 b = 0; b < SQUARES * STRIDE; ++b) {
                        const u32 r = a + STRIDE * i;
                        const int s = left + (int)b;
                        if (r < SIZE && s >= 0 && s < (int)SIZE) from.add_to(sums[a][b], r * SIZE + s);
                    }
                }
            }
        }
#pragma unroll
        for (u32 a = 0; a < STRIDE; ++a) {
#pragma unroll
            for (u32 b = 0; b < SQUARES * STRIDE; ++b) {
                const u32 h = first_p * STRIDE + a - params.pad;
                const u32 w = first_q * STRIDE + b - params.pad;
                if (h < params.h && w < params.w) {
                    finish(sums[a][b], mask, dx, (n * params.h + h) * params.w + w, part.channel, params);
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    max_pool_backward_2_2(const element* dy, const u8* index, const element* mask, element* dx, PoolGradient params) {
    pool_backward<2, 2, 1>(dy, index, mask, dx, params);
}

extern "C" __global__ void __launch_bounds__(256)
    max_pool_backward_3_2(const element* dy, const u8* index, const element* mask, element* dx, PoolGradient params) {
    pool_backward<3, 2, 1>(dy, index, mask, dx, params);
}

extern "C" __global__ void __launch_bounds__(256)
    max_pool_backward_3_1(const element* dy, const u8* index, const element* mask, element* dx, PoolGradient params) {
    pool_backward<3, 1, 4>(dy, index, mask, dx, params);
}

// First window that covers coordinate `at`, which counts from the start of the padding.
__device__ __forceinline__ u32 first_window(u32 at, u32 window, u32 stride) {
    return at < window ? 0 : (at - window) / stride + 1;
}

extern "C" __global__ void __launch_bounds__(256)
    max_pool_backward(const element* dy, const u8* index, const element* mask, element* dx, PoolGradient params) {
    const Part part = part_of_thread(params.extent);
    for (u32 position = part.first; position < part.end; position += part.rows) {
        const u32 row = position / params.w;
        const u32 n = row / params.h;
        const u32 h = row - n * params.h + params.pad;
        const u32 w = position - row * params.w + params.pad;
        const u32 end_p = min(h / params.stride + 1, params.p);
        const u32 end_q = min(w / params.stride + 1, params.q);
        float sums[VECTOR] = {};
        for (u32 p = first_window(h, params.r, params.stride); p < end_p; ++p) {
            for (u32 q = first_window(w, params.s, params.stride); q < end_q; ++q) {
                const u32 output = (n * params.p + p) * params.q + q;
                const element* const dy_at = at(dy, output, params.dy_row, part.channel);
                const u8* const index_at = index + ((u64)output * params.extent.channels + part.channel);
                const Output from(load_bits(dy_at), load_places(index_at), true);
                from.add_to(sums, (h - p * params.stride) * params.s + w - q * params.stride);
            }
        }
        finish(sums, mask, dx, position, part.channel, params);
    }
}
