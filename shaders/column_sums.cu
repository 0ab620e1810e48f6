// Sums over all positions for each channel, in one launch and in a fixed order.
//
// A thread sums over its positions (columns.cu), a block over its threads; it leaves its sums in `partials`, f32
// [chunk][quantity][channels]. The block that finishes last in its tile of channels, known by the tile's ticket, adds
// up the chunks. Limits: whole warps, at most 512 threads; a power of two of columns, at most 16; `tickets`, one a
// tile, are zero before the first launch and again after each. Shared memory: `Sums`, 26 KiB at most.

constexpr u32 MOST_THREADS = 512;
constexpr u32 MOST_COLUMNS = 16;

template <int QUANTITIES>
struct alignas(16) Sums {
    float of_warps[MOST_THREADS / 32][QUANTITIES][MOST_COLUMNS * VECTOR];
    // Sums for each channel of the tile.
    float of_channels[QUANTITIES][MOST_COLUMNS * VECTOR];
};

// Adds up `values` over the block's threads of each column and calls take(quantity, place, sum) for each channel of the
// tile, each in one thread.
template <int QUANTITIES, class Take>
__device__ __forceinline__ void sum_over_block(float (&values)[QUANTITIES][VECTOR], Sums<QUANTITIES>& sums, u32 columns,
                                               Take take) {
    const u32 lane = threadIdx.x % 32;
    for (u32 distance = columns; distance < 32; distance *= 2) {
#pragma unroll
        for (int quantity = 0; quantity < QUANTITIES; ++quantity) {
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                values[quantity][i] += __shfl_xor_sync(0xffffffffu, values[quantity][i], distance);
            }
        }
    }
    if (lane < columns) {
#pragma unroll
        for (int quantity = 0; quantity < QUANTITIES; ++quantity) {
#pragma unroll
            for (int i = 0; i < VECTOR; i += 4) {
                *reinterpret_cast<float4*>(&sums.of_warps[threadIdx.x / 32][quantity][lane * VECTOR + i]) =
                    make_float4(values[quantity][i], values[quantity][i + 1], values[quantity][i + 2],
                                values[quantity][i + 3]);
            }
        }
    }
    __syncthreads();
    for (u32 place = threadIdx.x; place < columns * VECTOR; place += blockDim.x) {
#pragma unroll
        for (int quantity = 0; quantity < QUANTITIES; ++quantity) {
            float sum = 0.0f;
#pragma unroll
            for (u32 warp = 0; warp < MOST_THREADS / 32; ++warp) {
                if (warp < blockDim.x / 32) sum += sums.of_warps[warp][quantity][place];
            }
            take(quantity, place, sum);
        }
    }
    __syncthreads();
}

// Sums of the block into `Sums::of_channels`, for all threads to read.
template <int QUANTITIES>
__device__ __forceinline__ void sum_to_channels(float (&values)[QUANTITIES][VECTOR], Sums<QUANTITIES>& sums,
                                                u32 columns) {
    sum_over_block(values, sums, columns,
                   [&](int quantity, u32 place, float sum) { sums.of_channels[quantity][place] = sum; });
    __syncthreads();
}

// Calls take(channel, its place in the tile) for each channel of the block's tile, each in one thread.
template <class Take>
__device__ __forceinline__ void for_each_channel(const Extent& extent, Take take) {
    const u32 first = blockIdx.y * extent.columns * VECTOR;
    const u32 count = min(extent.columns * VECTOR, extent.channels - first);
    for (u32 place = threadIdx.x; place < count; place += blockDim.x) take(first + place, place);
}

// Counts to gridDim.x - 1 and wraps around; orders what the block wrote and reads before and after.
__device__ __forceinline__ u32 draw_ticket(u32* ticket) {
    u32 drawn;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(drawn)
                 : "l"(__cvta_generic_to_global(ticket)), "r"(gridDim.x - 1)
                 : "memory");
    return drawn;
}

// Leaves the block's sums in `partials`, which have room for STORED quantities a chunk. True in the last block of the
// tile, which then sees those of all others.
template <int QUANTITIES, int STORED = QUANTITIES>
__device__ __forceinline__ bool leave_partials(float (&values)[QUANTITIES][VECTOR], Sums<QUANTITIES>& sums,
                                               float* partials, u32* tickets, const Extent& extent) {
    const u32 first = blockIdx.y * extent.columns * VECTOR;
    sum_over_block(values, sums, extent.columns, [&](int quantity, u32 place, float sum) {
        if (first + place < extent.channels) {
            partials[(blockIdx.x * STORED + quantity) * extent.channels + first + place] = sum;
        }
    });
    // The block's writes come before the barrier in `sum_over_block`, thus before the ticket is drawn.
    __shared__ bool is_last;
    if (threadIdx.x == 0) is_last = draw_ticket(tickets + blockIdx.y) == gridDim.x - 1;
    __syncthreads();
    return is_last;
}

// Adds up `values` over all threads of a tile. True in the block that then holds the result in `sums.of_channels`.
template <int QUANTITIES>
__device__ __forceinline__ bool sum_over_positions(float (&values)[QUANTITIES][VECTOR], Sums<QUANTITIES>& sums,
                                                   float* partials, u32* tickets, const Part& part,
                                                   const Extent& extent) {
    if (!leave_partials(values, sums, partials, tickets, extent)) return false;
#pragma unroll
    for (int quantity = 0; quantity < QUANTITIES; ++quantity) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) values[quantity][i] = 0.0f;
    }
    if (part.channel < extent.channels) {
        constexpr u32 UNROLL = 3;
        for (u32 first = threadIdx.x / extent.columns; first < gridDim.x; first += UNROLL * part.rows) {
            float partial[UNROLL][QUANTITIES][VECTOR] = {};
#pragma unroll
            for (u32 u = 0; u < UNROLL; ++u) {
                const u32 chunk = first + u * part.rows;
#pragma unroll
                for (int quantity = 0; quantity < QUANTITIES; ++quantity) {
                    const float* const from = partials + (chunk * QUANTITIES + quantity) * extent.channels;
                    if (chunk < gridDim.x) load_channels(from, part.channel, partial[u][quantity]);
                }
            }
#pragma unroll
            for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
                for (int quantity = 0; quantity < QUANTITIES; ++quantity) {
#pragma unroll
                    for (int i = 0; i < VECTOR; ++i) values[quantity][i] += partial[u][quantity][i];
                }
            }
        }
    }
    sum_to_channels(values, sums, extent.columns);
    return true;
}
