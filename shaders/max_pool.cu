// Maximum pooling. Forward keeps where each maximum came from, one byte an output, [n, p, q, channels with padding].
//
// Thread blocks and grid as in columns.cu, where a position is a strip of OUTPUTS neighboring outputs of one row: they
// share what their windows have in common. No shared memory. Limit: windows of at most 255 elements.
//
// `max_pool_forward_SIZE_STRIDE` are for square windows known at compile time, `max_pool_forward` takes any.

struct Pool {
    Extent extent;
    u32 x_row;
    u32 y_row;
    // Input map, output map, window.
    u32 h;
    u32 w;
    u32 p;
    u32 q;
    u32 r;
    u32 s;
    u32 stride;
    u32 pad;
};

// Values are handled as they are stored, in 32-bit words of one f32 or two halves.

// The greater of each value of two words; NaN is kept from compute capability 8.0 on.
__device__ __forceinline__ u32 maximum(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 800
    u32 result;
#if ELEMENT == 0
    asm("max.NaN.f32 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
#elif ELEMENT == 1
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
#else
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
#endif
    return result;
#elif ELEMENT == 0
    return __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b)));
#else
    const float low = fmaxf(to_float((element)a), to_float((element)b));
    const float high = fmaxf(to_float((element)(a >> 16)), to_float((element)(b >> 16)));
    return pack2(low, high);
#endif
}

// For each value of a word: its part of `place` where a and b are equal, else that of `otherwise`.
__device__ __forceinline__ u32 where_equal(u32 a, u32 b, u32 place, u32 otherwise) {
#if ELEMENT == 0
    return __uint_as_float(a) == __uint_as_float(b) ? place : otherwise;
#else
    u32 mask;
#if ELEMENT == 1
    asm("set.eq.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
#elif __CUDA_ARCH__ >= 900
    asm("set.eq.u32.bf16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
#else
    const u32 difference = a ^ b;
    mask = ((difference & 0xffffu) == 0 ? 0xffffu : 0) | (difference <= 0xffffu ? 0xffff0000u : 0);
#endif
    return (place & mask) | (otherwise & ~mask);
#endif
}

__device__ __forceinline__ uint4 maximum(uint4 a, uint4 b) {
    return make_uint4(maximum(a.x, b.x), maximum(a.y, b.y), maximum(a.z, b.z), maximum(a.w, b.w));
}

// A strip of neighboring outputs, and where its windows lie.
struct Strip {
    // Number of the first output, and how many the map has from there to the end of its row.
    u32 output;
    u32 count;
    // Number of the first input of the image.
    u32 image;
    // The first window's top left input, which may lie in the padding.
    int top;
    int left;

    __device__ __forceinline__ Strip(u32 strip, u32 outputs, const Pool& params, u32 stride) {
        const u32 strips = (params.q + outputs - 1) / outputs;
        const u32 row = strip / strips;
        const u32 n = row / params.p;
        const u32 q = (strip - row * strips) * outputs;
        output = row * params.q + q;
        count = params.q - q;
        image = n * params.h * params.w;
        top = (int)((row - n * params.p) * stride) - (int)params.pad;
        left = (int)(q * stride) - (int)params.pad;
    }
};

__device__ __forceinline__ int clamped(int at, u32 size) { return min(max(at, 0), (int)size - 1); }

__device__ __forceinline__ void words_of(uint4 bits, u32 (&words)[4]) {
    words[0] = bits.x;
    words[1] = bits.y;
    words[2] = bits.z;
    words[3] = bits.w;
}

// Bytes from words of the values' width, each below 256.
__device__ __forceinline__ void store_places(u8* index, const u32 (&places)[4]) {
#if ELEMENT == 0
    const u32 low = __byte_perm(places[0], places[1], 0x0040);
    const u32 high = __byte_perm(places[2], places[3], 0x0040);
    *reinterpret_cast<u32*>(index) = __byte_perm(low, high, 0x5410);
#else
    *reinterpret_cast<uint2*>(index) =
        make_uint2(__byte_perm(places[0], places[1], 0x6420), __byte_perm(places[2], places[3], 0x6420));
#endif
}

// `place` for each value of a word.
__device__ __forceinline__ u32 repeated(u32 place) { return ELEMENT == 0 ? place : place * 0x10001u; }

// What lies under a strip of windows. Where a window leaves the map, its last element inside is met again: that changes
// no maximum, and every load is unconditional.
template <u32 SIZE, u32 WIDTH>
struct Inputs {
    uint4 bits[SIZE][WIDTH];
    // Parts of an element's place in the strip's first window, that of its row and that of its column, for each value
    // of a word.
    u32 row_places[SIZE];
    u32 column_places[WIDTH];

    __device__ __forceinline__ Inputs(const element* x, const Strip& strip, u32 channel, const Pool& params) {
        int w[WIDTH];
#pragma unroll
        for (u32 j = 0; j < WIDTH; ++j) {
            w[j] = clamped(strip.left + (int)j, params.w);
            column_places[j] = repeated(w[j] - strip.left);
        }
#pragma unroll
        for (u32 r = 0; r < SIZE; ++r) {
            const int h = clamped(strip.top + (int)r, params.h);
            row_places[r] = repeated((h - strip.top) * SIZE);
            const element* const row = at(x, strip.image + h * params.w, params.x_row, channel);
#pragma unroll
            for (u32 j = 0; j < WIDTH; ++j) bits[r][j] = load_bits(at(row, w[j], params.x_row, 0));
        }
    }
};

template <u32 SIZE, u32 STRIDE, u32 OUTPUTS>
__device__ __forceinline__ void pool_strip(const element* x, element* y, u8* index, const Strip& strip, u32 channel,
                                           const Pool& params) {
    constexpr u32 WIDTH = (OUTPUTS - 1) * STRIDE + SIZE;
    const Inputs<SIZE, WIDTH> inputs(x, strip, channel, params);
    uint4 columns[WIDTH];
#pragma unroll
    for (u32 j = 0; j < WIDTH; ++j) {
        columns[j] = inputs.bits[0][j];
#pragma unroll
        for (u32 r = 1; r < SIZE; ++r) columns[j] = maximum(columns[j], inputs.bits[r][j]);
    }
#pragma unroll
    for (u32 output = 0; output < OUTPUTS; ++output) {
        if (output >= strip.count) break;
        uint4 result = columns[output * STRIDE];
#pragma unroll
        for (u32 s = 1; s < SIZE; ++s) result = maximum(result, columns[output * STRIDE + s]);
        const u32 position = strip.output + output;
        *reinterpret_cast<uint4*>(at(y, position, params.y_row, channel)) = result;
        if (!index) continue;
        u32 greatest[4];
        u32 places[4] = {};
        words_of(result, greatest);
        // From the last to the first: what is left is the first maximum's place.
#pragma unroll
        for (int tap = SIZE * SIZE - 1; tap >= 0; --tap) {
            const u32 r = tap / SIZE;
            const u32 j = output * STRIDE + tap % SIZE;
            const u32 place = inputs.row_places[r] + inputs.column_places[j] - repeated(output * STRIDE);
            u32 words[4];
            words_of(inputs.bits[r][j], words);
#pragma unroll
            for (int i = 0; i < 4; ++i) places[i] = where_equal(words[i], greatest[i], place, places[i]);
        }
        store_places(index + ((u64)position * params.extent.channels + channel), places);
    }
}

template <u32 SIZE, u32 STRIDE, u32 OUTPUTS>
__device__ __forceinline__ void pool(const element* x, element* y, u8* index, const Pool& params) {
    const Part part = part_of_thread(params.extent);
    for (u32 position = part.first; position < part.end; position += part.rows) {
        const Strip strip(position, OUTPUTS, params, STRIDE);
        pool_strip<SIZE, STRIDE, OUTPUTS>(x, y, index, strip, part.channel, params);
    }
}

// y = maximum over the window of x; index, where there is one, = place r * params.s + s of the first maximum.
extern "C" __global__ void __launch_bounds__(256)
    max_pool_forward_2_2(const element* x, element* y, u8* index, Pool params) {
    pool<2, 2, 1>(x, y, index, params);
}

extern "C" __global__ void __launch_bounds__(256)
    max_pool_forward_3_2(const element* x, element* y, u8* index, Pool params) {
    pool<3, 2, 1>(x, y, index, params);
}

extern "C" __global__ void __launch_bounds__(256)
    max_pool_forward_3_1(const element* x, element* y, u8* index, Pool params) {
    pool<3, 1, 2>(x, y, index, params);
}

extern "C" __global__ void __launch_bounds__(256)
    max_pool_forward(const element* x, element* y, u8* index, Pool params) {
    const Part part = part_of_thread(params.extent);
    for (u32 position = part.first; position < part.end; position += part.rows) {
        const Strip strip(position, 1, params, params.stride);
        u32 best[4] = {};
        u32 places[4] = {};
        bool is_found = false;
        for (u32 r = 0; r < params.r; ++r) {
            const int h = strip.top + (int)r;
            if (h < 0 || h >= (int)params.h) continue;
            for (u32 s = 0; s < params.s; ++s) {
                const int w = strip.left + (int)s;
                if (w < 0 || w >= (int)params.w) continue;
                u32 words[4];
                words_of(load_bits(at(x, strip.image + h * params.w + w, params.x_row, part.channel)), words);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const u32 place = repeated(r * params.s + s);
                    const u32 greater = is_found ? maximum(best[i], words[i]) : words[i];
                    places[i] = is_found ? where_equal(best[i], greater, places[i], place) : place;
                    best[i] = greater;
                }
                is_found = true;
            }
        }
        *reinterpret_cast<uint4*>(at(y, position, params.y_row, part.channel)) =
            make_uint4(best[0], best[1], best[2], best[3]);
        if (index) store_places(index + ((u64)position * params.extent.channels + part.channel), places);
    }
}
