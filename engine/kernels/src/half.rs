//! Half-precision conversions: IEEE binary16 and bfloat16, both as raw `u16` bits.

/// Converts binary16 bits to `f32`, exactly (subnormals, infinities and NaN included).
#[inline]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    if magnitude >= 0x7c00 {
        return f32::from_bits(sign | 0x7f80_0000 | (magnitude & 0x3ff) << 13);
    }
    // Shift the exponent and mantissa into f32's place, then let a multiplication by 2^112 fix the bias; it also
    // normalises subnormals.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    f32::from_bits(sign | scaled.to_bits())
}

/// Converts `f32` to binary16 bits, rounding to nearest, ties to even; overflow gives infinity.
#[inline]
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Subnormal: adding 0.5 in f32 puts the rounded mantissa in the low bits.
        let rounded = f32::from_bits(magnitude) + 0.5;
        return sign | (rounded.to_bits() - 0.5f32.to_bits()) as u16;
    }
    let odd = (magnitude >> 13) & 1;
    let rebased = magnitude - ((127 - 15) << 23) + 0xfff + odd;
    sign | (rebased >> 13) as u16
}

/// Converts bfloat16 bits to `f32`, exactly.
#[inline]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}
