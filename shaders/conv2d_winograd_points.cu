// Minimal filtering along one side of a tile, of two channels at once: the transforms of conv2d_winograd.cu.

#if ELEMENT == 0 && TF32 == 0

__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ float2 operator*(float a, float2 b) { return make_float2(a * b.x, a * b.y); }
// a · b + c
__device__ __forceinline__ float2 fma2(float a, float2 b, float2 c) {
    return make_float2(fmaf(a, b.x, c.x), fmaf(a, b.y, c.y));
}

// The points ±P1, ±P2.
#define P1 0.75f
#define P2 1.5f

// Bᵀ v
__device__ __forceinline__ void transform_input(float2& v0, float2& v1, float2& v2, float2& v3, float2& v4,
                                                float2& v5) {
    const float2 even1 = fma2(-P2 * P2, v2, v4), odd1 = P1 * fma2(-P2 * P2, v1, v3);
    const float2 even2 = fma2(-P1 * P1, v2, v4), odd2 = P2 * fma2(-P1 * P1, v1, v3);
    v0 = fma2(P1 * P1 * P2 * P2, v0, fma2(-P1 * P1 - P2 * P2, v2, v4));
    v5 = fma2(P1 * P1 * P2 * P2, v1, fma2(-P1 * P1 - P2 * P2, v3, v5));
    v1 = even1 + odd1;
    v2 = even1 - odd1;
    v3 = even2 + odd2;
    v4 = even2 - odd2;
}

// Aᵀ v, four outputs of three taps,
__device__ __forceinline__ void transform_output(const float2 (&v)[6], float2 (&y)[4]) {
    const float2 even1 = v[1] + v[2], odd1 = v[1] - v[2], even2 = v[3] + v[4], odd2 = v[3] - v[4];
    y[0] = v[0] + even1 + even2;
    y[1] = fma2(P1, odd1, P2 * odd2);
    y[2] = fma2(P1 * P1, even1, P2 * P2 * even2);
    y[3] = fma2(P1 * P1 * P1, odd1, fma2(P2 * P2 * P2, odd2, v[5]));
}

// or two of five.
__device__ __forceinline__ void transform_output(const float2 (&v)[6], float2 (&y)[2]) {
    y[0] = v[0] + (v[1] + v[2]) + (v[3] + v[4]);
    y[1] = fma2(P1, v[1] - v[2], fma2(P2, v[3] - v[4], v[5]));
}

// A v
__device__ __forceinline__ void transform_gradient(float2 v0, float2 v1, float2 v2, float2 v3, float2 (&y)[6]) {
    const float2 even1 = fma2(P1 * P1, v2, v0), odd1 = P1 * fma2(P1 * P1, v3, v1);
    const float2 even2 = fma2(P2 * P2, v2, v0), odd2 = P2 * fma2(P2 * P2, v3, v1);
    y[0] = v0;
    y[1] = even1 + odd1;
    y[2] = even1 - odd1;
    y[3] = even2 + odd2;
    y[4] = even2 - odd2;
    y[5] = v3;
}

// Factors of G's rows: reciprocals of the products of the differences of a point to all others.
#define G0 (1.0f / (P1 * P1 * P2 * P2))
#define G1 (0.5f / (P1 * P1 * (P1 * P1 - P2 * P2)))
#define G2 (0.5f / (P2 * P2 * (P2 * P2 - P1 * P1)))

// G v, three taps,
__device__ __forceinline__ void transform_filter(const float2 (&v)[3], float2 (&u)[6]) {
    const float2 even1 = G1 * fma2(P1 * P1, v[2], v[0]), even2 = G2 * fma2(P2 * P2, v[2], v[0]);
    u[0] = G0 * v[0];
    u[1] = fma2(G1 * P1, v[1], even1);
    u[2] = fma2(-G1 * P1, v[1], even1);
    u[3] = fma2(G2 * P2, v[1], even2);
    u[4] = fma2(-G2 * P2, v[1], even2);
    u[5] = v[2];
}

// or five.
__device__ __forceinline__ void transform_filter(const float2 (&v)[5], float2 (&u)[6]) {
    const float2 even1 = G1 * fma2(P1 * P1, fma2(P1 * P1, v[4], v[2]), v[0]), odd1 = fma2(P1 * P1, v[3], v[1]);
    const float2 even2 = G2 * fma2(P2 * P2, fma2(P2 * P2, v[4], v[2]), v[0]), odd2 = fma2(P2 * P2, v[3], v[1]);
    u[0] = G0 * v[0];
    u[1] = fma2(G1 * P1, odd1, even1);
    u[2] = fma2(-G1 * P1, odd1, even1);
    u[3] = fma2(G2 * P2, odd2, even2);
    u[4] = fma2(-G2 * P2, odd2, even2);
    u[5] = v[4];
}

// Gᵀ u
__device__ __forceinline__ void transform_filter_gradient(const float2 (&u)[6], float2& v0, float2& v1, float2& v2) {
    const float2 even1 = G1 * (u[1] + u[2]), even2 = G2 * (u[3] + u[4]);
    v0 = fma2(G0, u[0], even1 + even2);
    v1 = fma2(G1 * P1, u[1] - u[2], G2 * P2 * (u[3] - u[4]));
    v2 = fma2(P1 * P1, even1, fma2(P2 * P2, even2, u[5]));
}

#endif
