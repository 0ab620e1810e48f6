// Mainloop of the f32 implicit GEMMs without tensor cores, conv2d_simt and conv2d_simt_backward_data: operand A is
// gathered from a map as the tile walks over the taps of the window and the channels of the map, operand B is the
// filter. What is left of a sum that is split over the depth, and the order in which tiles' sums are added, is here too.
//
// Shared memory: see conv2d_simt_tile.cu; here another 20 bytes for each row of the tile.
//
// Limits: channels in memory are multiples of 4; a filter and one image of a map have fewer than 2³¹ elements; fewer
// than 2³¹ positions.

#if ELEMENT == 0 && TF32 == 0

// The layer: input map [n][h][w][c], output map [n][p][q][k].
struct Convolution {
    u32 n, h, w, c;
    u32 k, p, q;
    u32 r, s, stride, pad;
};

// One row of a tile: its image and the position of the tap 0; the position is far outside where there is no row.
struct Row {
    const float* image;
    int h;
    int w;
};

// The map that a tile gathers, and its taps.
struct Gathered {
    int h, w, row;
    int channels4;
    int taps_r, taps_s;
};

// The filter's taps of a residue class.
struct Taps {
    int first_r, first_s, stride;
};

template <class T>
struct Memory {
    float stages[2 * T::STAGE];
    Row rows[T::M];
    // Output position of each row, INVALID where there is none.
    u32 positions[T::M];
};

// Sums of the tile over steps `begin` to `end` of the depth.
template <class T, bool FORWARD>
__device__ __forceinline__ void convolve(Sums<T>& sums, Memory<T>& memory, const Gathered& map, const float* w,
                                         const Convolution& layer, const Taps& taps, int first_column, int begin,
                                         int end) {
    constexpr int SLOTS = T::THREADS / 4;
    const int chunk = threadIdx.x % 4, slot = threadIdx.x / 4;
    const int columns = FORWARD ? layer.k : layer.c;
    int channel4, tap_r, tap_s;
    {
        const int at = begin * 4 + chunk, tap = at / map.channels4;
        channel4 = at % map.channels4;
        tap_r = map.taps_s ? tap / map.taps_s : 0;
        tap_s = map.taps_s ? tap % map.taps_s : 0;
    }
    const int depth = layer.r * layer.s * layer.c;
    const int column = first_column + (FORWARD ? column_in_row<T>(slot) : 0);
    // Forward: this thread's first column at the present depth.
    const float* filter = w + (FORWARD ? (u64)column * depth + begin * STEP + chunk * 4 : (u64)column);

    const auto load = [&](float* stage) {
        const u32 a = shared_address(stage), b = shared_address(stage + T::STAGE_A);
        const bool tap_exists = tap_r < map.taps_r;
#pragma unroll
        for (int i = 0; i < T::M / SLOTS; ++i) {
            const int row = slot + i * SLOTS;
            const Row from = memory.rows[row];
            const int h = FORWARD ? from.h + tap_r : from.h - tap_r;
            const int q = FORWARD ? from.w + tap_s : from.w - tap_s;
            const bool valid = tap_exists && (u32)h < (u32)map.h && (u32)q < (u32)map.w;
            copy16(a + chunk_along(row, chunk), from.image + (valid ? (h * map.w + q) * map.row + channel4 * 4 : 0), valid);
        }
        if (FORWARD) {
            constexpr int TURN = SLOTS / T::COLUMNS;
#pragma unroll
            for (int i = 0; i < T::N / SLOTS; ++i) {
                const int further = i * TURN % 4 + i * TURN / 4 * (4 * T::COLUMNS);
                const bool valid = tap_exists && column + further < columns;
                copy16(b + chunk_along(slot + i * SLOTS, chunk), valid ? filter + further * depth : w, valid);
            }
        } else {
            const int tap = (taps.first_r + taps.stride * tap_r) * layer.s + taps.first_s + taps.stride * tap_s;
#pragma unroll
            for (int i = 0; i < T::N / SLOTS; ++i) {
                const int d = copied_depth<T>(slot, i), quad = copied_quad<T>(slot, i);
                const bool valid = tap_exists && column + quad * 4 < columns;
                const int at = (channel4 * 4 + d) * depth + tap * layer.c + quad * 4;
                copy16(b + chunk_across<T>(chunk * 4 + d, quad) * 4, valid ? filter + at : w, valid);
            }
        }
    };
    const auto advance = [&]() {
        if (FORWARD) filter += STEP;
        channel4 += 4;
        while (channel4 >= map.channels4) {
            channel4 -= map.channels4;
            if (++tap_s == map.taps_s) {
                tap_s = 0;
                ++tap_r;
            }
        }
    };

    sums.clear();
    __syncthreads();
    if (begin < end) load(memory.stages);
    for (int step = begin; step < end; ++step) {
        wait_copies();
        __syncthreads();
        const float* stage = memory.stages + ((step - begin) & 1) * T::STAGE;
        multiply_step<T, FORWARD>(sums, stage, [&]() {
            if (step + 1 == end) return;
            advance();
            load(memory.stages + ((step - begin + 1) & 1) * T::STAGE);
        });
    }
    __syncthreads();
}

// Leaves the sums of one part of the depth.
template <class T>
__device__ __forceinline__ void leave(const Sums<T>& sums, const Memory<T>& memory, float* partial, int first_column,
                                      int columns) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u32 position = memory.positions[T::row() + i * T::ROWS];
#pragma unroll
        for (int quad = 0; quad < T::QUADS; ++quad) {
            const int column = first_column + T::column_of(quad);
            if (position != INVALID && column < columns)
                store4(partial + (u64)position * columns + column, sums.quad(i, quad));
        }
    }
}

__device__ __forceinline__ int tiles(int size, int tile) { return (size + tile - 1) / tile; }

// Adds four columns of the parts that `leave` left, in their order.
__device__ __forceinline__ float4 add_parts(const float* partial, u64 at, u64 part_size, u32 parts) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (u32 part = 0; part < parts; ++part) sum = add4(sum, load4(partial + part * part_size + at));
    return sum;
}

#define COMBINE_COLUMNS 8
#define COMBINE_GROUPS 64

// Sum of a value of each group over the groups, in their order, in every thread of the column.
__device__ __forceinline__ float sum_groups(float value, float* scratch) {
    const int column = threadIdx.x % COMBINE_COLUMNS, group = threadIdx.x / COMBINE_COLUMNS;
    __syncthreads();
    scratch[group * COMBINE_COLUMNS + column] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < COMBINE_GROUPS; ++i) sum += scratch[i * COMBINE_COLUMNS + column];
    return sum;
}

#endif
