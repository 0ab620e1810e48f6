// Storage elements and their conversion to f32: the opening of every CUDA kernel text.
//
// Constants set by the engine: ELEMENT (0 = f32, 1 = f16, 2 = bf16) and TF32 (1 where products of f32 storage are to be
// rounded to TensorFloat-32). No header of the toolkit is needed. Half precisions are raw 16-bit words; bf16 works on
// every compute capability, by integer arithmetic where the device has no conversion.
//
// VECTOR elements make 16 bytes, the width of every load and store. Channels are padded to a multiple of VECTOR with
// zeros, so that no access is ever shorter.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#if ELEMENT == 0
typedef float element;
#define VECTOR 4
#else
typedef u16 element;
#define VECTOR 8
#endif

__device__ __forceinline__ float f16_to_float(u16 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ __forceinline__ u16 float_to_f16(float value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ __forceinline__ float bf16_to_float(u16 bits) { return __uint_as_float((u32)bits << 16); }

// Rounds to nearest even.
__device__ __forceinline__ u16 float_to_bf16(float value) {
#if __CUDA_ARCH__ >= 800
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    u32 bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

__device__ __forceinline__ float to_float(element value) {
#if ELEMENT == 0
    return value;
#elif ELEMENT == 1
    return f16_to_float(value);
#else
    return bf16_to_float(value);
#endif
}

__device__ __forceinline__ element from_float(float value) {
#if ELEMENT == 0
    return value;
#elif ELEMENT == 1
    return float_to_f16(value);
#else
    return float_to_bf16(value);
#endif
}

// The value that storage keeps of `value`.
__device__ __forceinline__ float rounded(float value) { return to_float(from_float(value)); }

// Two values packed into one 32-bit word, the first in the low half. Half precisions only.
#if ELEMENT != 0
__device__ __forceinline__ u32 pack2(float low, float high) {
#if __CUDA_ARCH__ >= 800
    u32 bits;
#if ELEMENT == 1
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
#else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
#endif
    return bits;
#else
    return (u32)from_float(low) | ((u32)from_float(high) << 16);
#endif
}
#endif

__device__ __forceinline__ void unpack16(uint4 bits, float (&values)[VECTOR]) {
#if ELEMENT == 0
    values[0] = __uint_as_float(bits.x);
    values[1] = __uint_as_float(bits.y);
    values[2] = __uint_as_float(bits.z);
    values[3] = __uint_as_float(bits.w);
#else
    const u32 words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        values[2 * i] = to_float((element)(words[i] & 0xffffu));
        values[2 * i + 1] = to_float((element)(words[i] >> 16));
    }
#endif
}

__device__ __forceinline__ uint4 pack16(const float (&values)[VECTOR]) {
#if ELEMENT == 0
    return make_uint4(__float_as_uint(values[0]), __float_as_uint(values[1]), __float_as_uint(values[2]),
                      __float_as_uint(values[3]));
#else
    return make_uint4(pack2(values[0], values[1]), pack2(values[2], values[3]), pack2(values[4], values[5]),
                      pack2(values[6], values[7]));
#endif
}

// Sixteen bytes from an aligned address.
__device__ __forceinline__ void load16(const element* from, float (&values)[VECTOR]) {
    unpack16(*reinterpret_cast<const uint4*>(from), values);
}

// Sixteen bytes to an aligned address, each value rounded to nearest even.
__device__ __forceinline__ void store16(element* to, const float (&values)[VECTOR]) {
    *reinterpret_cast<uint4*>(to) = pack16(values);
}
