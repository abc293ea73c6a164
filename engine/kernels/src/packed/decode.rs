//! From panels to the kernels' scratch. The loops are plain; on x86-64 they are compiled a second time with AVX2, which
//! vectorises them.

use super::{Family, PANEL_ROWS, PackedMatrix, PanelScratch};
use crate::half::{bf16_to_f32, f16_to_f32};
use crate::isa::Isa;
use crate::quant::QuantType;
use std::ops::Range;

/// IQ4_NL's table of values (the type's definition).
const IQ4_NL: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/// MXFP4's table: E2M1 values doubled, plus the family's offset of 16.
const MXFP4: [u8; 16] = [16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4];

impl PackedMatrix {
    /// How far [`PackedMatrix::decode`] can go at once from `k`: at most `limit` values, in whole superblocks.
    pub fn stretch(&self, k: usize, limit: usize) -> Range<usize> {
        let sb = self.layout.superblock;
        let limit = (limit.min(super::MAX_STRETCH) / sb).max(1) * sb;
        k..(k + limit).min(self.k)
    }

    /// Expands values `ks` (a range from [`PackedMatrix::stretch`]) of one panel into `scratch`.
    pub fn decode(&self, isa: Isa, panel: usize, ks: Range<usize>, scratch: &mut PanelScratch) {
        let sb = self.layout.superblock;
        let panel_bytes = self.panel_bytes();
        let source = &self.data[panel * panel_bytes..][..panel_bytes];
        let source = &source[ks.start / sb * self.layout.bytes..ks.end / sb * self.layout.bytes];
        #[cfg(target_arch = "x86_64")]
        if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
            // SAFETY: `isa` came from detection.
            return unsafe { decode_avx2(self.ty, source, scratch) };
        }
        let _ = isa;
        decode_plain(self.ty, source, scratch);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn decode_avx2(ty: QuantType, source: &[u8], scratch: &mut PanelScratch) {
    decode_plain(ty, source, scratch);
}

#[inline(always)]
fn decode_plain(ty: QuantType, source: &[u8], scratch: &mut PanelScratch) {
    let bytes = super::Layout::of(ty).bytes;
    match ty {
        QuantType::F32 => {
            for (out, four) in scratch.floats.iter_mut().zip(source.as_chunks::<4>().0) {
                *out = f32::from_le_bytes(*four);
            }
        }
        QuantType::F16 => {
            for (out, two) in scratch.floats.iter_mut().zip(source.as_chunks::<2>().0) {
                *out = f16_to_f32(u16::from_le_bytes(*two));
            }
        }
        QuantType::BF16 => {
            for (out, two) in scratch.floats.iter_mut().zip(source.as_chunks::<2>().0) {
                *out = bf16_to_f32(u16::from_le_bytes(*two));
            }
        }
        QuantType::Q4_0 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                nibbles(block, codes_of(scratch, b));
                let scale = halves(&block[256..]);
                scale_of(scratch, b).copy_from_slice(&scale);
                min_of(scratch, b).copy_from_slice(&scale.map(|d| -8.0 * d));
            }
        }
        QuantType::Q4_1 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                nibbles(block, codes_of(scratch, b));
                scale_of(scratch, b).copy_from_slice(&halves(&block[256..]));
                min_of(scratch, b).copy_from_slice(&halves(&block[288..]));
            }
        }
        QuantType::Q5_0 | QuantType::Q5_1 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                nibbles(block, codes_of(scratch, b));
                high_bits(&block[256..], codes_of(scratch, b));
                let scale = halves(&block[320..]);
                scale_of(scratch, b).copy_from_slice(&scale);
                if ty == QuantType::Q5_1 {
                    let min = halves(&block[352..]);
                    for (out, (m, d)) in min_of(scratch, b).iter_mut().zip(min.iter().zip(scale)) {
                        *out = m + 16.0 * d;
                    }
                }
            }
        }
        QuantType::Q8_0 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                codes_of(scratch, b).copy_from_slice(&block[..512]);
                scale_of(scratch, b).copy_from_slice(&halves(&block[512..]));
            }
        }
        QuantType::Iq4Nl => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                nibbles(block, codes_of(scratch, b));
                for code in codes_of(scratch, b) {
                    *code = IQ4_NL[usize::from(*code & 15)] as u8;
                }
                scale_of(scratch, b).copy_from_slice(&halves(&block[256..]));
            }
        }
        QuantType::Mxfp4 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                nibbles(block, codes_of(scratch, b));
                for code in codes_of(scratch, b) {
                    *code = MXFP4[usize::from(*code & 15)];
                }
                for (out, &e) in scale_of(scratch, b).iter_mut().zip(&block[256..]) {
                    *out = half_power_of_two(e);
                }
            }
        }
        QuantType::Q4K | QuantType::Q5K => {
            let per_block = if ty == QuantType::Q4K { 256 } else { 320 };
            let low_at = 8 * per_block;
            for (sb, block) in source.chunks_exact(bytes).enumerate() {
                let d = halves(&block[low_at + 192..]);
                let dmin = halves(&block[low_at + 224..]);
                for b in 0..8 {
                    let at = sb * 8 + b;
                    let codes = &block[b * per_block..];
                    nibbles(codes, codes_of(scratch, at));
                    if ty == QuantType::Q5K {
                        high_bits(&codes[256..], codes_of(scratch, at));
                    }
                    let low = sixteen(&block[low_at + b * 16..]);
                    let high = sixteen(&block[low_at + 128 + b / 2 * 16..]).map(|h| h >> (b % 2 * 4));
                    let mut scale = [0.0; PANEL_ROWS];
                    let mut min = [0.0; PANEL_ROWS];
                    for r in 0..PANEL_ROWS {
                        scale[r] = d[r] * f32::from((low[r] & 15) | (high[r] & 3) << 4);
                        min[r] = -dmin[r] * f32::from((low[r] >> 4) | (high[r] & 12) << 2);
                    }
                    if ty == QuantType::Q5K {
                        for r in 0..PANEL_ROWS {
                            min[r] += 16.0 * scale[r];
                        }
                    }
                    scale_of(scratch, at).copy_from_slice(&scale);
                    min_of(scratch, at).copy_from_slice(&min);
                }
            }
        }
        QuantType::Q6K | QuantType::Q3K => {
            for (sb, block) in source.chunks_exact(bytes).enumerate() {
                let d = halves(&block[8 * 384 + 256..]);
                for b in 0..8 {
                    let at = sb * 8 + b;
                    let codes = &block[b * 384..];
                    nibbles(codes, codes_of(scratch, at));
                    high_two(&codes[256..], codes_of(scratch, at));
                    scale_of(scratch, at).copy_from_slice(&d);
                    for half in 0..2 {
                        let scales = sixteen(&block[8 * 384 + (b * 2 + half) * 16..]);
                        group_scale(scratch, at * 2 + half, scales.map(|s| i16::from(s as i8)));
                    }
                }
            }
        }
        QuantType::Q2K => {
            for (sb, block) in source.chunks_exact(bytes).enumerate() {
                let d = halves(&block[8 * 256 + 256..]);
                let dmin = halves(&block[8 * 256 + 288..]);
                for b in 0..8 {
                    let at = sb * 8 + b;
                    nibbles(&block[b * 256..], codes_of(scratch, at));
                    for code in codes_of(scratch, at) {
                        *code += 32;
                    }
                    scale_of(scratch, at).copy_from_slice(&d);
                    for half in 0..2 {
                        let both = sixteen(&block[8 * 256 + (b * 2 + half) * 16..]);
                        group_scale(scratch, at * 2 + half, both.map(|s| i16::from(s & 15)));
                        for (out, (s, m)) in min_of(scratch, at * 2 + half).iter_mut().zip(both.iter().zip(dmin)) {
                            *out = -m * f32::from(s >> 4);
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn codes_of(scratch: &mut PanelScratch, block: usize) -> &mut [u8; 512] {
    &mut scratch.codes.as_chunks_mut::<512>().0[block]
}

#[inline(always)]
fn scale_of(scratch: &mut PanelScratch, block: usize) -> &mut [f32; PANEL_ROWS] {
    &mut scratch.scale.as_chunks_mut::<PANEL_ROWS>().0[block]
}

#[inline(always)]
fn min_of(scratch: &mut PanelScratch, block: usize) -> &mut [f32; PANEL_ROWS] {
    &mut scratch.min.as_chunks_mut::<PANEL_ROWS>().0[block]
}

#[inline(always)]
fn group_scale(scratch: &mut PanelScratch, half_block: usize, scales: [i16; PANEL_ROWS]) {
    let out = &mut scratch.group_scale.as_chunks_mut::<{ 2 * PANEL_ROWS }>().0[half_block];
    for (pair, scale) in out.as_chunks_mut::<2>().0.iter_mut().zip(scales) {
        *pair = [scale, scale];
    }
}

#[inline(always)]
fn sixteen(bytes: &[u8]) -> [u8; PANEL_ROWS] {
    *bytes.first_chunk().expect("a superblock holds its scales")
}

#[inline(always)]
fn halves(bytes: &[u8]) -> [f32; PANEL_ROWS] {
    let pairs: &[u8; 2 * PANEL_ROWS] = bytes.first_chunk().expect("a superblock holds its scales");
    let mut out = [0.0; PANEL_ROWS];
    for (value, pair) in out.iter_mut().zip(pairs.as_chunks::<2>().0) {
        *value = f16_to_f32(u16::from_le_bytes(*pair));
    }
    out
}

#[inline(always)]
fn nibbles(bytes: &[u8], out: &mut [u8; 512]) {
    let (steps, _) = bytes.as_chunks::<32>();
    for (step, out) in steps.iter().zip(out.as_chunks_mut::<64>().0) {
        for i in 0..32 {
            out[i] = step[i] & 15;
            out[32 + i] = step[i] >> 4;
        }
    }
}

#[inline(always)]
fn high_bits(bytes: &[u8], out: &mut [u8; 512]) {
    let bits: &[u8; 64] = bytes.first_chunk().expect("a superblock holds its high bits");
    for (s, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        for i in 0..64 {
            out[i] |= ((bits[i] >> s) & 1) << 4;
        }
    }
}

#[inline(always)]
fn high_two(bytes: &[u8], out: &mut [u8; 512]) {
    let bits: &[u8; 128] = bytes.first_chunk().expect("a superblock holds its high bits");
    for (s, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        for half in 0..2 {
            for i in 0..32 {
                out[half * 32 + i] |= ((bits[(half * 2 + s / 4) * 32 + i] >> (s % 4 * 2)) & 3) << 4;
            }
        }
    }
}

/// 2^(e - 128): MXFP4's scale for the doubled table.
fn half_power_of_two(e: u8) -> f32 {
    match e {
        0 => f32::from_bits(0x0020_0000),
        1 => f32::from_bits(0x0040_0000),
        e => f32::from_bits(u32::from(e - 1) << 23),
    }
}

impl Family {
    /// Whether activations are taken as int8 blocks.
    pub fn takes_quantised(self) -> bool {
        self != Family::Float
    }
}
