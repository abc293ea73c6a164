//! Plain encoders for the simple block types: enough to make weights for tests and to measure what a type costs. Each
//! takes the scale from the block's extremes and rounds every value to the nearest code; none searches for a better
//! scale.

use super::{QuantError, QuantType, check_lengths};
use crate::half::f32_to_f16;

/// Writes `src` to `dst` as blocks of `ty`: `F32`, `F16`, `BF16`, `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1` or `Q8_0`.
///
/// Fails, leaving `dst` untouched, for other types, when `src` is not whole blocks, or when `dst` is not exactly their
/// bytes. Values should be finite: a block that holds others decodes to something unspecified.
pub fn quantize(ty: QuantType, src: &[f32], dst: &mut [u8]) -> Result<(), QuantError> {
    check_lengths(ty, src.len(), dst.len())?;
    match ty {
        QuantType::F32 => each_block(src, dst, |[x]: &[f32; 1], out: &mut [u8; 4]| {
            *out = x.to_le_bytes()
        }),
        QuantType::F16 => each_block(src, dst, |[x]: &[f32; 1], out| {
            *out = f32_to_f16(*x).to_le_bytes()
        }),
        QuantType::BF16 => each_block(src, dst, |[x]: &[f32; 1], out| {
            *out = f32_to_bf16(*x).to_le_bytes()
        }),
        QuantType::Q4_0 => each_block(src, dst, q4_0),
        QuantType::Q4_1 => each_block(src, dst, q4_1),
        QuantType::Q5_0 => each_block(src, dst, q5_0),
        QuantType::Q5_1 => each_block(src, dst, q5_1),
        QuantType::Q8_0 => each_block(src, dst, q8_0),
        QuantType::Q2K
        | QuantType::Q3K
        | QuantType::Q4K
        | QuantType::Q5K
        | QuantType::Q6K
        | QuantType::Iq4Nl
        | QuantType::Mxfp4 => return Err(QuantError::NoQuantizer { ty }),
    }
    Ok(())
}

/// Calls `encode` for each block's values and bytes; the lengths have been checked.
fn each_block<const VALUES: usize, const BYTES: usize>(
    src: &[f32],
    dst: &mut [u8],
    encode: impl Fn(&[f32; VALUES], &mut [u8; BYTES]),
) {
    let (values, _) = src.as_chunks::<VALUES>();
    let (blocks, _) = dst.as_chunks_mut::<BYTES>();
    for (values, block) in values.iter().zip(blocks) {
        encode(values, block);
    }
}

/// Rounds to the nearest bfloat16, ties to even; NaN stays NaN.
fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// A scale and the factor that turns values into codes.
struct Scale {
    d: f32,
    inverse: f32,
}

impl Scale {
    fn new(d: f32) -> Scale {
        Scale {
            d,
            inverse: if d == 0.0 { 0.0 } else { 1.0 / d },
        }
    }

    /// For codes around a zero point: the value farthest from zero gets the code at the far end, `-levels`.
    fn symmetric(values: &[f32], levels: f32) -> Scale {
        let extreme = values
            .iter()
            .fold(0f32, |best, x| if x.abs() > best.abs() { *x } else { best });
        Scale::new(extreme / -levels)
    }

    /// For codes from the smallest value up; also returns that value.
    fn from_minimum(values: &[f32], top_code: f32) -> (Scale, f32) {
        let min = values.iter().copied().fold(f32::INFINITY, f32::min);
        let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        (Scale::new((max - min) / top_code), min)
    }

    fn to_bytes(&self) -> [u8; 2] {
        f32_to_f16(self.d).to_le_bytes()
    }

    /// The code nearest to `x` when code `zero` stands for 0; codes end at `top`.
    fn code(&self, x: f32, zero: f32, top: u8) -> u8 {
        ((x * self.inverse + (zero + 0.5)) as u8).min(top)
    }
}

/// Packs the low four bits of 32 codes: value `j` low and `j + 16` high in byte `j`.
fn pack_nibbles(codes: &[u8; 32], out: &mut [u8]) {
    let (low, high) = codes.split_at(16);
    for (byte, (l, h)) in out.iter_mut().zip(low.iter().zip(high)) {
        *byte = (l & 0x0f) | (h & 0x0f) << 4;
    }
}

/// The fifth bits of 32 codes, value `i` in bit `i`.
fn fifth_bits(codes: &[u8; 32]) -> [u8; 4] {
    let word = codes
        .iter()
        .rev()
        .fold(0u32, |word, q| word << 1 | u32::from(q >> 4 & 1));
    word.to_le_bytes()
}

fn q4_0(values: &[f32; 32], out: &mut [u8; 18]) {
    let scale = Scale::symmetric(values, 8.0);
    let codes = values.map(|x| scale.code(x, 8.0, 15));
    out[..2].copy_from_slice(&scale.to_bytes());
    pack_nibbles(&codes, &mut out[2..]);
}

fn q4_1(values: &[f32; 32], out: &mut [u8; 20]) {
    let (scale, min) = Scale::from_minimum(values, 15.0);
    let codes = values.map(|x| scale.code(x - min, 0.0, 15));
    out[..2].copy_from_slice(&scale.to_bytes());
    out[2..4].copy_from_slice(&f32_to_f16(min).to_le_bytes());
    pack_nibbles(&codes, &mut out[4..]);
}

fn q5_0(values: &[f32; 32], out: &mut [u8; 22]) {
    let scale = Scale::symmetric(values, 16.0);
    let codes = values.map(|x| scale.code(x, 16.0, 31));
    out[..2].copy_from_slice(&scale.to_bytes());
    out[2..6].copy_from_slice(&fifth_bits(&codes));
    pack_nibbles(&codes, &mut out[6..]);
}

fn q5_1(values: &[f32; 32], out: &mut [u8; 24]) {
    let (scale, min) = Scale::from_minimum(values, 31.0);
    let codes = values.map(|x| scale.code(x - min, 0.0, 31));
    out[..2].copy_from_slice(&scale.to_bytes());
    out[2..4].copy_from_slice(&f32_to_f16(min).to_le_bytes());
    out[4..8].copy_from_slice(&fifth_bits(&codes));
    pack_nibbles(&codes, &mut out[8..]);
}

fn q8_0(values: &[f32; 32], out: &mut [u8; 34]) {
    let largest = values.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    let scale = Scale::new(largest / 127.0);
    let (head, codes) = out.split_at_mut(2);
    head.copy_from_slice(&scale.to_bytes());
    for (code, x) in codes.iter_mut().zip(values) {
        *code = ((x * scale.inverse).round() as i8).cast_unsigned();
    }
}
