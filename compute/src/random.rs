//! Counter-based random numbers: element `index` of stream `stream` is a pure function of both, so that every engine
//! and every thread draws the same value in any order.

use std::f64::consts::TAU;

/// Bits of element `index` of a stream.
///
/// Formula: the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)
/// on an arithmetic sequence whose start depends on the stream.
pub fn bits64(stream: u64, index: u64) -> u64 {
    let start = finalize64(stream.wrapping_add(0x9e37_79b9_7f4a_7c15));
    finalize64(start.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn finalize64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Uniform number in `[-1, 1)` on a grid of 2⁻²³, exact in f32.
pub fn uniform(stream: u64, index: u64) -> f32 {
    let top = (bits64(stream, index) >> 40) as i32; // 24 bits
    (top - (1 << 23)) as f32 / (1 << 23) as f32
}

/// Standard normal number.
///
/// Formula: Box and Muller, "A note on the generation of random normal deviates", 1958, in f64.
pub fn normal(stream: u64, index: u64) -> f32 {
    let bits = bits64(stream, index);
    let radius_uniform = ((bits >> 32) as f64 + 0.5) / f64::from(1u32 << 31) / 2.0;
    let angle_uniform = (bits & 0xffff_ffff) as f64 / f64::from(1u32 << 31) / 2.0;
    ((-2.0 * radius_uniform.ln()).sqrt() * (TAU * angle_uniform).cos()) as f32
}

/// Stream number of a name, so that a parameter's values depend on its name and not on its place.
///
/// Formula: 64-bit FNV-1a (Fowler, Noll, Vo).
pub fn stream(seed: u64, name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Bits that decide whether dropout keeps element `index` of layer `key`; every engine computes the same in 32-bit
/// arithmetic.
///
/// Formula: twice the 32-bit finalizer of MurmurHash3 (Appleby), the key mixed in between.
pub fn dropout_bits(key: u32, index: u32) -> u32 {
    finalize32(finalize32(index.wrapping_add(0x9e37_79b9)) ^ key)
}

fn finalize32(mut h: u32) -> u32 {
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distributions() {
        let n = 100_000u64;
        let mean = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        let stream = stream(1, "moments");
        for (name, draw, variance) in
            [("uniform", uniform as fn(u64, u64) -> f32, 1.0 / 3.0), ("normal", normal as fn(u64, u64) -> f32, 1.0)]
        {
            let first = mean(&|i| f64::from(draw(stream, i)));
            let second = mean(&|i| f64::from(draw(stream, i)).powi(2));
            assert!(first.abs() < 0.02, "{name}: mean {first}");
            assert!((second - variance).abs() < 0.02, "{name}: second moment {second}");
        }
    }

    #[test]
    fn streams_differ_and_repeat() {
        let (a, b) = (stream(1, "conv1.weight"), stream(1, "conv2.weight"));
        assert_ne!(a, b);
        assert_ne!(bits64(a, 0), bits64(b, 0));
        assert_eq!(bits64(a, 7), bits64(a, 7));
    }

    #[test]
    fn dropout_bits_are_fair() {
        let kept = (0..100_000).filter(|&i| dropout_bits(3, i) >= 1 << 31).count();
        assert!((49_000..51_000).contains(&kept), "{kept} of 100000 kept at probability one half");
    }
}
