//! One plain function per block type, from its bytes to `f32`. Each documents its block to the byte; all numbers are
//! little-endian, `f16` is IEEE binary16. The products and sums are done in the order the formulas show and never
//! fused, so that results are the same bits on every machine.

use super::{QuantError, QuantType, check_lengths};
use crate::half::{bf16_to_f32, f16_to_f32};

/// The sixteen values of an `IQ4_NL` code, to be multiplied by the block's scale.
pub(crate) const IQ4_NL_VALUES: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// The sixteen values of an `MXFP4` code (sign, two exponent bits, one mantissa bit), doubled to be whole numbers.
pub(crate) const MXFP4_DOUBLED_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Writes the values of the blocks `src` to `dst`.
///
/// Fails, leaving `dst` untouched, when `dst` is not whole blocks or `src` is not exactly their bytes. Any bytes are
/// accepted as blocks; scales that are not finite give values that are not finite.
pub fn dequantize(ty: QuantType, src: &[u8], dst: &mut [f32]) -> Result<(), QuantError> {
    check_lengths(ty, dst.len(), src.len())?;
    match ty {
        QuantType::F32 => each_block(src, dst, |bytes, out: &mut [f32; 1]| {
            *out = [f32::from_le_bytes(*bytes)]
        }),
        QuantType::F16 => {
            each_block(src, dst, |bytes, out: &mut [f32; 1]| {
                *out = [f16_to_f32(u16::from_le_bytes(*bytes))]
            });
        }
        QuantType::BF16 => {
            each_block(src, dst, |bytes, out: &mut [f32; 1]| {
                *out = [bf16_to_f32(u16::from_le_bytes(*bytes))]
            });
        }
        QuantType::Q4_0 => each_block(src, dst, q4_0),
        QuantType::Q4_1 => each_block(src, dst, q4_1),
        QuantType::Q5_0 => each_block(src, dst, q5_0),
        QuantType::Q5_1 => each_block(src, dst, q5_1),
        QuantType::Q8_0 => each_block(src, dst, q8_0),
        QuantType::Q2K => each_block(src, dst, q2_k),
        QuantType::Q3K => each_block(src, dst, q3_k),
        QuantType::Q4K => each_block(src, dst, q4_k),
        QuantType::Q5K => each_block(src, dst, q5_k),
        QuantType::Q6K => each_block(src, dst, q6_k),
        QuantType::Iq4Nl => each_block(src, dst, iq4_nl),
        QuantType::Mxfp4 => each_block(src, dst, mxfp4),
    }
    Ok(())
}

/// Calls `decode` for each block and its values; the lengths have been checked.
fn each_block<const BYTES: usize, const VALUES: usize>(
    src: &[u8],
    dst: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; VALUES]),
) {
    let (blocks, _) = src.as_chunks::<BYTES>();
    let (values, _) = dst.as_chunks_mut::<VALUES>();
    for (block, out) in blocks.iter().zip(values) {
        decode(block, out);
    }
}

/// The `f16` whose bytes are `low` and `high`.
fn half(low: u8, high: u8) -> f32 {
    f16_to_f32(u16::from_le_bytes([low, high]))
}

/// The code of value `i` in a block of 32 four-bit codes: byte `j` holds value `j` low and value `j + 16` high.
fn nibble_of_32(codes: &[u8], i: usize) -> u8 {
    if i < 16 {
        codes[i] & 0x0f
    } else {
        codes[i - 16] >> 4
    }
}

/// `Q4_0`, 32 values in 18 bytes: `x = d * (q - 8)`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..2 | `d`, f16 |
/// | 2..18 | 4-bit codes, value `j` low and `j + 16` high in byte `j` |
fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let [d0, d1, codes @ ..] = block;
    let d = half(*d0, *d1);
    for (i, x) in out.iter_mut().enumerate() {
        *x = d * (f32::from(nibble_of_32(codes, i)) - 8.0);
    }
}

/// `Q4_1`, 32 values in 20 bytes: `x = d * q + m`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..2 | `d`, f16 |
/// | 2..4 | `m`, f16 |
/// | 4..20 | 4-bit codes as in `Q4_0` |
fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let [d0, d1, m0, m1, codes @ ..] = block;
    let (d, m) = (half(*d0, *d1), half(*m0, *m1));
    for (i, x) in out.iter_mut().enumerate() {
        *x = d * f32::from(nibble_of_32(codes, i)) + m;
    }
}

/// `Q5_0`, 32 values in 22 bytes: `x = d * (q - 16)`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..2 | `d`, f16 |
/// | 2..6 | a 32-bit word; bit `i` is the fifth bit of value `i` |
/// | 6..22 | low four bits as in `Q4_0` |
fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let [d0, d1, h0, h1, h2, h3, codes @ ..] = block;
    let d = half(*d0, *d1);
    let high = u32::from_le_bytes([*h0, *h1, *h2, *h3]);
    for (i, x) in out.iter_mut().enumerate() {
        let q = nibble_of_32(codes, i) | ((high >> i & 1) as u8) << 4;
        *x = d * (f32::from(q) - 16.0);
    }
}

/// `Q5_1`, 32 values in 24 bytes: `x = d * q + m`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..2 | `d`, f16 |
/// | 2..4 | `m`, f16 |
/// | 4..8 | fifth bits as in `Q5_0` |
/// | 8..24 | low four bits as in `Q4_0` |
fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let [d0, d1, m0, m1, h0, h1, h2, h3, codes @ ..] = block;
    let (d, m) = (half(*d0, *d1), half(*m0, *m1));
    let high = u32::from_le_bytes([*h0, *h1, *h2, *h3]);
    for (i, x) in out.iter_mut().enumerate() {
        let q = nibble_of_32(codes, i) | ((high >> i & 1) as u8) << 4;
        *x = d * f32::from(q) + m;
    }
}

/// `Q8_0`, 32 values in 34 bytes: `x = d * q`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..2 | `d`, f16 |
/// | 2..34 | codes, i8 |
fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let [d0, d1, codes @ ..] = block;
    let d = half(*d0, *d1);
    for (x, q) in out.iter_mut().zip(codes) {
        *x = d * f32::from(q.cast_signed());
    }
}

/// `Q2_K`, 256 values in 84 bytes, in 16 groups of 16: `x = (d * scale) * q - (dmin * min)`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..16 | one byte a group: scale in the low, min in the high four bits |
/// | 16..80 | 2-bit codes: value `128 h + 32 s + j` is bits `2 s` and up of byte `32 h + j` |
/// | 80..82 | `d`, f16 |
/// | 82..84 | `dmin`, f16 |
fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (groups, codes) = (&block[..16], &block[16..80]);
    let (d, dmin) = (half(block[80], block[81]), half(block[82], block[83]));
    for (i, x) in out.iter_mut().enumerate() {
        let group = groups[i / 16];
        let (scale, min) = (d * f32::from(group & 0x0f), dmin * f32::from(group >> 4));
        *x = scale * f32::from(two_bits_of_256(codes, i)) - min;
    }
}

/// `Q3_K`, 256 values in 110 bytes, in 16 groups of 16: `x = (d * (scale - 32)) * q`, `q` from -4 to 3.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..32 | value `32 k + j` has bit `k` of byte `j`: set, `q` is the 2-bit code; clear, the code - 4 |
/// | 32..96 | 2-bit codes as in `Q2_K` |
/// | 96..108 | 16 scales of 6 bits, see [`six_bit_scale`] |
/// | 108..110 | `d`, f16 |
fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let (high, codes, scales) = (&block[..32], &block[32..96], &block[96..108]);
    let d = half(block[108], block[109]);
    for (i, x) in out.iter_mut().enumerate() {
        let offset = if high[i % 32] >> (i / 32) & 1 == 1 {
            0.0
        } else {
            4.0
        };
        let scale = d * (f32::from(six_bit_scale(scales, i / 16)) - 32.0);
        *x = scale * (f32::from(two_bits_of_256(codes, i)) - offset);
    }
}

/// The scale of group `g` in the 12 bytes of `Q3_K`: its low four bits are the low half of byte `g`, or for `g` from 8 up
/// the high half of byte `g - 8`; its top two are bits `2 (g / 4)` and up of byte `8 + g % 4`.
fn six_bit_scale(packed: &[u8], g: usize) -> u8 {
    let low = if g < 8 {
        packed[g] & 0x0f
    } else {
        packed[g - 8] >> 4
    };
    low | (packed[8 + g % 4] >> (2 * (g / 4)) & 3) << 4
}

/// The 2-bit code of value `i` of 256 in 64 bytes.
fn two_bits_of_256(codes: &[u8], i: usize) -> u8 {
    let (half, shift, j) = (i / 128, i % 128 / 32, i % 32);
    codes[32 * half + j] >> (2 * shift) & 3
}

/// `Q4_K`, 256 values in 144 bytes, in 8 groups of 32: `x = (d * scale) * q - (dmin * min)`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..2 | `d`, f16 |
/// | 2..4 | `dmin`, f16 |
/// | 4..16 | scales and mins of 6 bits, see [`scale_and_min`] |
/// | 16..144 | 4-bit codes: value `64 c + j` is the low, value `64 c + 32 + j` the high half of byte `32 c + j` |
fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (scales, codes) = (&block[4..16], &block[16..144]);
    let (d, dmin) = (half(block[0], block[1]), half(block[2], block[3]));
    for (i, x) in out.iter_mut().enumerate() {
        let (scale, min) = scale_and_min(scales, i / 32);
        let q = nibble_of_256(codes, i);
        *x = (d * f32::from(scale)) * f32::from(q) - dmin * f32::from(min);
    }
}

/// `Q5_K`, 256 values in 176 bytes, in 8 groups of 32: `x = (d * scale) * q - (dmin * min)`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..2 | `d`, f16 |
/// | 2..4 | `dmin`, f16 |
/// | 4..16 | scales and mins as in `Q4_K` |
/// | 16..48 | the fifth bit of value `32 k + j` is bit `k` of byte `j` |
/// | 48..176 | low four bits as in `Q4_K` |
fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (scales, high, codes) = (&block[4..16], &block[16..48], &block[48..176]);
    let (d, dmin) = (half(block[0], block[1]), half(block[2], block[3]));
    for (i, x) in out.iter_mut().enumerate() {
        let (scale, min) = scale_and_min(scales, i / 32);
        let q = nibble_of_256(codes, i) | (high[i % 32] >> (i / 32) & 1) << 4;
        *x = (d * f32::from(scale)) * f32::from(q) - dmin * f32::from(min);
    }
}

/// Scale and min of group `g` in the 12 bytes that `Q4_K` and `Q5_K` share.
///
/// Groups 0 to 3 lie in the low six bits: scales in bytes 0..4, mins in bytes 4..8. Groups 4 to 7 have their low four
/// bits in bytes 8..12 (scale low, min high) and their top two bits at the top of bytes 0..4 and 4..8.
pub(crate) fn scale_and_min(packed: &[u8], g: usize) -> (u8, u8) {
    if g < 4 {
        (packed[g] & 0x3f, packed[4 + g] & 0x3f)
    } else {
        let low = packed[4 + g];
        (
            (low & 0x0f) | (packed[g - 4] >> 6) << 4,
            (low >> 4) | (packed[g] >> 6) << 4,
        )
    }
}

/// The 4-bit code of value `i` of 256 in 128 bytes.
fn nibble_of_256(codes: &[u8], i: usize) -> u8 {
    let (chunk, shift, j) = (i / 64, i % 64 / 32, i % 32);
    codes[32 * chunk + j] >> (4 * shift) & 0x0f
}

/// `Q6_K`, 256 values in 210 bytes, in 16 groups of 16: `x = (d * scale) * (q - 32)`.
///
/// | bytes | what |
/// | --- | --- |
/// | 0..128 | low four bits: value `128 h + j` is the low, value `128 h + 64 + j` the high half of byte `64 h + j` |
/// | 128..192 | top two bits as the codes of `Q2_K` |
/// | 192..208 | one scale a group, i8 |
/// | 208..210 | `d`, f16 |
fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let d = half(block[208], block[209]);
    for (i, x) in out.iter_mut().enumerate() {
        let (half, shift, j) = (i / 128, i % 128 / 64, i % 64);
        let q = (low[64 * half + j] >> (4 * shift) & 0x0f) | two_bits_of_256(high, i) << 4;
        *x = (d * f32::from(scales[i / 16].cast_signed())) * (f32::from(q) - 32.0);
    }
}

/// `IQ4_NL`, 32 values in 18 bytes: `x = d * table[q]`, see [`IQ4_NL_VALUES`].
///
/// | bytes | what |
/// | --- | --- |
/// | 0..2 | `d`, f16 |
/// | 2..18 | 4-bit codes as in `Q4_0` |
fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let [d0, d1, codes @ ..] = block;
    let d = half(*d0, *d1);
    for (i, x) in out.iter_mut().enumerate() {
        *x = d * f32::from(IQ4_NL_VALUES[usize::from(nibble_of_32(codes, i))]);
    }
}

/// `MXFP4`, 32 values in 17 bytes: `x = 2^(e - 128) * table[q]`, see [`MXFP4_DOUBLED_VALUES`].
///
/// | bytes | what |
/// | --- | --- |
/// | 0..1 | `e`, an exponent of 2 with bias 127 (the table is doubled, so the scale is halved) |
/// | 1..17 | 4-bit codes as in `Q4_0` |
fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let [e, codes @ ..] = block;
    let scale = halved_power_of_two(*e);
    for (i, x) in out.iter_mut().enumerate() {
        *x = scale * f32::from(MXFP4_DOUBLED_VALUES[usize::from(nibble_of_32(codes, i))]);
    }
}

/// `2^(exponent - 128)`; exponents 0 and 1 give subnormal numbers.
pub(crate) fn halved_power_of_two(exponent: u8) -> f32 {
    match u32::from(exponent) {
        small @ 0..=1 => f32::from_bits(0x0020_0000 << small),
        normal => f32::from_bits((normal - 1) << 23),
    }
}
