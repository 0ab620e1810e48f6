// Dropout from a counter-based generator; part of every kernel. Twin of `compute/src/random.rs`.

// Twice the 32-bit finalizer of MurmurHash3, the key mixed in between.
fn dropout_finalize(bits: u32) -> u32 {
    var h = bits;
    h = (h ^ (h >> 16u)) * 0x85ebca6bu;
    h = (h ^ (h >> 13u)) * 0xc2b2ae35u;
    return h ^ (h >> 16u);
}

// Bits of element `index` (row-major in the logical [n, c, h, w]) of the layer with number `key`.
fn dropout_bits(key: u32, index: u32) -> u32 {
    return dropout_finalize(dropout_finalize(index + 0x9e3779b9u) ^ key);
}

// `scale` where the element is kept, else 0.
fn dropout_factor(key: u32, threshold: u32, scale: f32, index: u32) -> f32 {
    return select(0.0, scale, dropout_bits(key, index) >= threshold);
}

// Factors of four consecutive channels whose first has index `index`; `plane` is h * w.
fn dropout_factor4(key: u32, threshold: u32, scale: f32, index: u32, plane: u32) -> vec4<f32> {
    return vec4<f32>(
        dropout_factor(key, threshold, scale, index),
        dropout_factor(key, threshold, scale, index + plane),
        dropout_factor(key, threshold, scale, index + 2u * plane),
        dropout_factor(key, threshold, scale, index + 3u * plane),
    );
}
