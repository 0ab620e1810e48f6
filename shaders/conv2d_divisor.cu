// Division by a number known to the host, for dividends below 2^31; conv2d/divisor.rs makes the words.
struct Divisor {
    u32 divisor;
    u32 multiplier;
    u32 shift;

    __device__ __forceinline__ u32 divide(u32 value) const { return (__umulhi(value, multiplier) + value) >> shift; }
};
