// Dropout from a counter-based generator, in place on a view. Twin of `compute/src/random.rs`.
//
// Thread blocks and grid as in columns.cu. No shared memory.

// Twice the 32-bit finalizer of MurmurHash3, the key mixed in between.
__device__ __forceinline__ u32 dropout_finalize(u32 h) {
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

__device__ __forceinline__ u32 dropout_bits(u32 key, u32 index) {
    return dropout_finalize(dropout_finalize(index + 0x9e3779b9u) ^ key);
}

struct Dropout {
    Extent extent;
    // Without padding.
    u32 logical_channels;
    u32 row;
    // Positions of one image, h * w.
    u32 plane;
    u32 key;
    u32 threshold;
    float scale;
};

// x[i] *= bits(key, i) >= threshold ? scale : 0, where i counts row-major in the logical [n, c, h, w].
extern "C" __global__ void __launch_bounds__(256) dropout(element* x, Dropout params) {
    const Part part = part_of_thread(params.extent);
    for (u32 position = part.first; position < part.end; position += part.rows) {
        element* const place = at(x, position, params.row, part.channel);
        float values[VECTOR];
        load16(place, values);
        const u32 image = position / params.plane;
        const u32 index = (image * params.logical_channels + part.channel) * params.plane + position % params.plane;
#pragma unroll
        for (u32 i = 0; i < VECTOR; ++i) {
            const bool is_kept = dropout_bits(params.key, index + i * params.plane) >= params.threshold;
            values[i] = is_kept ? values[i] * params.scale : 0.0f;
        }
        store16(place, values);
    }
}
