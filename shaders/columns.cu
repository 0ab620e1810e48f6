// Which part of an activation a thread works on: shared by the kernels that go over whole activations.
//
// A thread block has `columns` * rows threads, at most 256 (512 where it sums); neighbors take neighboring vectors of
// VECTOR channels. The grid's x counts chunks of `chunk` positions, its y tiles of `columns` vectors. A thread keeps its
// channels, whose coefficients stay in registers, and takes the positions of its chunk that are `rows` apart.

// What a launch covers; opens every parameter block.
struct Extent {
    u32 positions;
    // With padding.
    u32 channels;
    // Positions of a block.
    u32 chunk;
    // Vectors of a block.
    u32 columns;
};

struct Part {
    // First of the thread's channels.
    u32 channel;
    // The thread's positions: `first`, `first + rows`, ... below `end`. None where the channels do not exist.
    u32 first;
    u32 end;
    u32 rows;
};

__device__ __forceinline__ Part part_of_thread(const Extent& extent) {
    Part part;
    const u32 row = threadIdx.x / extent.columns;
    const u32 column = threadIdx.x - row * extent.columns;
    part.rows = blockDim.x / extent.columns;
    part.channel = (blockIdx.y * extent.columns + column) * VECTOR;
    const u32 start = blockIdx.x * extent.chunk;
    part.end = min(start + extent.chunk, extent.positions);
    part.first = part.channel < extent.channels ? start + row : part.end;
    return part;
}

// Calls load(u, position), then take(u, position), for each of a thread's positions: UNROLL of them at a time, so that as
// many loads are on their way; `u` is the place among these.
template <u32 UNROLL, class Load, class Take>
__device__ __forceinline__ void for_each_position(const Part& part, Load load, Take take) {
    for (u32 first = part.first; first < part.end; first += UNROLL * part.rows) {
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            const u32 position = first + u * part.rows;
            if (position < part.end) load(u, position);
        }
#pragma unroll
        for (u32 u = 0; u < UNROLL; ++u) {
            const u32 position = first + u * part.rows;
            if (position < part.end) take(u, position);
        }
    }
}

// Address of some channels at a position.
__device__ __forceinline__ const element* at(const element* view, u32 position, u32 row, u32 channel) {
    return view + ((u64)position * row + channel);
}

__device__ __forceinline__ element* at(element* view, u32 position, u32 row, u32 channel) {
    return view + ((u64)position * row + channel);
}

__device__ __forceinline__ uint4 load_bits(const element* from) { return *reinterpret_cast<const uint4*>(from); }

// VECTOR values of a per-channel vector.
__device__ __forceinline__ void load_channels(const float* from, u32 channel, float (&values)[VECTOR]) {
#pragma unroll
    for (int i = 0; i < VECTOR; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(from + channel + i);
        values[i] = four.x;
        values[i + 1] = four.y;
        values[i + 2] = four.z;
        values[i + 3] = four.w;
    }
}

__device__ __forceinline__ void store_channels(float* to, u32 channel, const float (&values)[VECTOR]) {
#pragma unroll
    for (int i = 0; i < VECTOR; i += 4) {
        *reinterpret_cast<float4*>(to + channel + i) =
            make_float4(values[i], values[i + 1], values[i + 2], values[i + 3]);
    }
}

// take(position, values of a, values of b) for every position of the part, of two views.
template <u32 UNROLL, class Take>
__device__ __forceinline__ void for_each_pair(const element* a, u32 a_row, const element* b, u32 b_row,
                                              const Part& part, Take take) {
    uint4 a_bits[UNROLL];
    uint4 b_bits[UNROLL];
    const auto load = [&](u32 u, u32 position) {
        a_bits[u] = load_bits(at(a, position, a_row, part.channel));
        b_bits[u] = load_bits(at(b, position, b_row, part.channel));
    };
    for_each_position<UNROLL>(part, load, [&](u32 u, u32 position) {
        float a_values[VECTOR];
        float b_values[VECTOR];
        unpack16(a_bits[u], a_values);
        unpack16(b_bits[u], b_values);
        take(position, a_values, b_values);
    });
}
