//! Division inside kernels by numbers that the host knows.

/// What a kernel divides by: divisor, multiplier and shift of `Divisor` in `shaders/conv2d_divisor.cu`, for dividends below 2³¹.
pub(super) fn divisor(value: u32) -> [u32; 3] {
    let shift = value.next_power_of_two().ilog2();
    let excess = (1u64 << shift) - u64::from(value);
    [value, ((excess << 32) / u64::from(value) + 1) as u32, shift]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_divisor_divides_as_the_kernels_do() {
        for value in [1, 2, 3, 5, 7, 8, 49, 64, 112, 3136, 12_544, 50_176, (1 << 20) + 1, (1 << 31) - 1] {
            let [_, multiplier, shift] = divisor(value);
            for dividend in [0, 1, value - 1, value, value.saturating_add(1), 1_605_631, (1 << 31) - 1] {
                let high = ((u64::from(dividend) * u64::from(multiplier)) >> 32) as u32;
                assert_eq!((high + dividend) >> shift, dividend / value, "{dividend} / {value}");
            }
        }
    }
}
