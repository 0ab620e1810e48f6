// From a tile's sums to stored elements: what forward and backward data do alike behind their mainloops.
//
// The f32 sums go from the warps' registers to shared memory, so that each thread finishes whole chunks of 16 bytes:
// one chunk of columns in every GROUPS-th row. Where the reduction is in parts, every block leaves its sums in `partials`
// ([grid.z][grid.x][grid.y][M][N]), and the last of a tile adds them in order; one ticket a tile.
// Shared memory: M * Finish::PITCH * 4 bytes, in place of the mainloop's.

#ifdef TENSOR_CORES

template <class T>
struct Finish {
    static constexpr int WIDTH = T::N / VECTOR, GROUPS = T::THREADS / WIDTH, BATCH = 4;
    // Half precisions: a row holds the first halves of its chunks, then the second halves, at distances that let
    // neither the fragments nor the chunks meet a bank twice. f32: a chunk is a whole one.
    static constexpr int SECOND = T::N / 2 + 16, PITCH = VECTOR == 8 ? T::N + 20 : T::N + 8;
    static_assert(T::M * PITCH * 4 <= T::STAGES * T::STAGE_BYTES, "sums take the place of the stages");
    static_assert(T::M % (BATCH * GROUPS) == 0, "whole batches");
    u32 chunk, group;

    __device__ __forceinline__ Finish() : chunk(threadIdx.x % WIDTH), group(threadIdx.x / WIDTH) {}

    // Word of shared memory for a column and, where `column` is even, the next.
    static __device__ __forceinline__ u32 place(u32 row, u32 column) {
        if (VECTOR == 4) return row * PITCH + column;
        return row * PITCH + (column & 4 ? SECOND : 0) + (column >> 3) * 4 + (column & 3);
    }

    // Puts the sums where `read` finds them. False where another block finishes the tile.
    __device__ __forceinline__ bool take(const Sums<T>& sums, u32 splits, float* partials, u32* tickets) const {
        const u32 lane = threadIdx.x & 31;
        const u32 row = warp_row<T>() + (lane >> 2), column = warp_column<T>() + (lane & 3) * 2;
        float* shared = reinterpret_cast<float*>(shared_bytes);
        if (splits == 1) {
#pragma unroll
            for (int i = 0; i < T::FRAGMENTS_M; ++i)
#pragma unroll
                for (int j = 0; j < T::FRAGMENTS_N; ++j) {
                    float* to = shared + place(row + i * 16, column + j * 8);
                    *reinterpret_cast<float2*>(to) = make_float2(sums.of[i][j][0], sums.of[i][j][1]);
                    *reinterpret_cast<float2*>(to + 8 * PITCH) = make_float2(sums.of[i][j][2], sums.of[i][j][3]);
                }
            __syncthreads();
            return true;
        }
        const u32 tile = blockIdx.z * gridDim.x + blockIdx.x;
        partials += (u64)tile * splits * (T::M * T::N);
        float* part = partials + blockIdx.y * (T::M * T::N);
#pragma unroll
        for (int i = 0; i < T::FRAGMENTS_M; ++i)
#pragma unroll
            for (int j = 0; j < T::FRAGMENTS_N; ++j) {
                float* to = part + (row + i * 16) * T::N + column + j * 8;
                *reinterpret_cast<float2*>(to) = make_float2(sums.of[i][j][0], sums.of[i][j][1]);
                *reinterpret_cast<float2*>(to + 8 * T::N) = make_float2(sums.of[i][j][2], sums.of[i][j][3]);
            }
        if (!is_last(tickets + tile, splits)) return false;
#pragma unroll 1
        for (u32 item = threadIdx.x; item < T::M * T::N / 4; item += T::THREADS) {
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
            for (u32 split = 0; split < splits; ++split) {
                const float4 more = __ldcg(reinterpret_cast<const float4*>(partials + split * (T::M * T::N)) + item);
                sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
            }
            *reinterpret_cast<float4*>(shared + place(item / (T::N / 4), item % (T::N / 4) * 4)) = sum;
        }
        __syncthreads();
        return true;
    }

    // Whether this block is the last of a tile's to get here. The ticket is zero again then.
    static __device__ __forceinline__ bool is_last(u32* ticket, u32 splits) {
        u32* shared = reinterpret_cast<u32*>(shared_bytes);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *shared = atomicInc(ticket, splits - 1) == splits - 1;
        __syncthreads();
        const bool last = *shared;
        __threadfence();
        __syncthreads();
        return last;
    }

    __device__ __forceinline__ void read_row(float (&sums)[VECTOR], u32 row) const {
        const float* at = reinterpret_cast<const float*>(shared_bytes) + row * PITCH + chunk * 4;
        *reinterpret_cast<float4*>(sums) = *reinterpret_cast<const float4*>(at);
        if (VECTOR == 8) *reinterpret_cast<float4*>(sums + VECTOR - 4) = *reinterpret_cast<const float4*>(at + SECOND);
    }

    // Sums of a batch of rows, of which `row` is the first.
    __device__ __forceinline__ void read(float (&sums)[BATCH][VECTOR], u32 row) const {
#pragma unroll
        for (int i = 0; i < BATCH; ++i) read_row(sums[i], row + i * GROUPS);
    }
};

__device__ __forceinline__ uint4 load_bits(const element* from) { return *reinterpret_cast<const uint4*>(from); }

__device__ __forceinline__ void add(float (&values)[VECTOR], uint4 bits) {
    float more[VECTOR];
    unpack16(bits, more);
#pragma unroll
    for (int e = 0; e < VECTOR; ++e) values[e] += more[e];
}

// A chunk's values of a vector over channels, `otherwise` where there is no vector.
__device__ __forceinline__ void load_channels(float (&to)[VECTOR], const float* from, u32 column, float otherwise) {
#pragma unroll
    for (int e = 0; e < VECTOR; e += 4) {
        const float4 four = from ? *reinterpret_cast<const float4*>(from + column + e)
                                 : make_float4(otherwise, otherwise, otherwise, otherwise);
        to[e] = four.x;
        to[e + 1] = four.y;
        to[e + 2] = four.z;
        to[e + 3] = four.w;
    }
}

// A view of the result's shape, null where there is none.
struct View {
    const element* from;
    u32 row_elements;
};

// Asks for the parts of views that the tile's end will read, so that they wait in the L2 cache then.
template <class T, int COUNT>
__device__ __forceinline__ void prefetch(const View (&views)[COUNT], const Geometry& g, const Class& c,
                                         const Corner& corner) {
    constexpr u32 LINE = 128 / sizeof(element), LINES = T::N / LINE;
    bool any = false;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) any = any || views[i].from;
    if (!any) return;
#pragma unroll 1
    for (u32 item = threadIdx.x; item < T::M * LINES; item += T::THREADS) {
        const u32 at = position(g, c, corner.row + item / LINES), column = corner.column + item % LINES * LINE;
        if (at == NONE || column >= g.columns) continue;
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (views[i].from)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(views[i].from + (u64)at * views[i].row_elements +
                                                              column));
    }
}

// The whole computation up to the sums.
template <class T, bool BACKWARD>
__device__ __forceinline__ bool gather_sums(const Finish<T>& finish, const Geometry& g, const Class& c,
                                            const Corner& corner, const element* from, const element* filter,
                                            float* partials, u32* tickets) {
    struct {
        __device__ __forceinline__ void operator()(const Fragments<T>&) const {}
    } nothing;
    Sums<T> sums;
    {
        const Loader<T, BACKWARD> load(g, c, from, filter, corner);
        const Steps part = part_of((load.depth + T::CHUNKS - 1) / T::CHUNKS, g.splits, blockIdx.y);
        accumulate<T, false, BACKWARD>(sums, part.first, part.end, load, nothing);
    }
    return finish.take(sums, g.splits, partials, tickets);
}

// Sums over the 128 strips of each of eight channels: thread = strip * 8 + channel of 1024. Valid in the first warp.
template <int COUNT>
__device__ __forceinline__ void sum_strips(float (&values)[COUNT]) {
    __shared__ float shared[COUNT][256];
    const u32 lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        values[i] += __shfl_xor_sync(0xffffffff, values[i], 8);
        values[i] += __shfl_xor_sync(0xffffffff, values[i], 16);
        if (lane < 8) shared[i][threadIdx.x / 32 * 8 + lane] = values[i];
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        values[i] = 0.0f;
#pragma unroll
        for (int warp = 0; warp < 8; ++warp) values[i] += shared[i][lane + warp * 32];
        values[i] += __shfl_xor_sync(0xffffffff, values[i], 8);
        values[i] += __shfl_xor_sync(0xffffffff, values[i], 16);
    }
}

#endif
