//! From panels to the kernels' scratch. The loops are plain; on x86-64 they are compiled a second time with AVX2, which
//! vectorises them.

use super::{Family, PANEL_ROWS, PackedMatrix, PanelScratch};
use crate::half::{bf16_to_f32, f16_to_f32};
use crate::isa::Isa;
use crate::quant::QuantType;
use std::ops::Range;

/// IQ4_NL's table of values (the type's definition).
const IQ4_NL: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];
/// MXFP4's table: E2M1 values doubled, plus the family's offset of 16.
const MXFP4: [u8; 16] = [16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4];

impl PackedMatrix {
    /// How far [`PackedMatrix::decode`] can go at once from `k`: at most `limit` values, in whole superblocks.
    pub fn stretch(&self, k: usize, limit: usize) -> Range<usize> {
        let sb = self.layout.superblock;
        let limit = (limit.min(super::MAX_STRETCH) / sb).max(1) * sb;
        k..(k + limit).min(self.k)
    }

    /// Where codes need no expansion: those of values `ks` of one panel, and the bytes from one block to the next.
    pub(crate) fn direct_codes(&self, panel: usize, ks: Range<usize>) -> Option<(&[u8], usize)> {
        (self.ty == QuantType::Q8_0).then(|| (self.superblocks(panel, ks), self.layout.bytes))
    }

    /// The packed bytes of values `ks`, whole superblocks, of one panel.
    pub(crate) fn superblocks(&self, panel: usize, ks: Range<usize>) -> &[u8] {
        let sb = self.layout.superblock;
        let panel_bytes = self.panel_bytes();
        let source = &self.data[panel * panel_bytes..][..panel_bytes];
        &source[ks.start / sb * self.layout.bytes..ks.end / sb * self.layout.bytes]
    }

    /// Expands values `ks` (a range from [`PackedMatrix::stretch`]) of one panel into `scratch`.
    pub fn decode(&self, isa: Isa, panel: usize, ks: Range<usize>, scratch: &mut PanelScratch) {
        let source = self.superblocks(panel, ks);
        #[cfg(target_arch = "x86_64")]
        if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
            // SAFETY: `isa` came from detection.
            return unsafe { decode_avx2(self.ty, source, scratch) };
        }
        let _ = isa;
        decode_with::<Plain>(self.ty, source, scratch);
    }
}

/// The four steps whose speed matters; everything else is written once.
trait Expand {
    /// 16 half-precision numbers.
    fn halves(bytes: &[u8; 2 * PANEL_ROWS]) -> [f32; PANEL_ROWS];
    /// The low nibbles to half 0, the high ones to half 1.
    fn nibbles(bytes: &[u8; 256], out: &mut [u8; 512]);
    /// Bit `step` of each byte becomes bit 4 of the code.
    fn high_bits(bytes: &[u8; 64], out: &mut [u8; 512]);
    /// Bits `2 * (step % 4)` of each byte become bits 4 and 5 of the code.
    fn high_two(bytes: &[u8; 128], out: &mut [u8; 512]);
}

struct Plain;

impl Expand for Plain {
    #[inline]
    fn halves(bytes: &[u8; 2 * PANEL_ROWS]) -> [f32; PANEL_ROWS] {
        let mut out = [0.0; PANEL_ROWS];
        for (value, pair) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
            *value = f16_to_f32(u16::from_le_bytes(*pair));
        }
        out
    }

    #[inline]
    fn nibbles(bytes: &[u8; 256], out: &mut [u8; 512]) {
        for (step, out) in bytes.as_chunks::<32>().0.iter().zip(out.as_chunks_mut::<64>().0) {
            for i in 0..32 {
                out[i] = step[i] & 15;
                out[32 + i] = step[i] >> 4;
            }
        }
    }

    #[inline]
    fn high_bits(bytes: &[u8; 64], out: &mut [u8; 512]) {
        for (s, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
            for i in 0..64 {
                out[i] |= ((bytes[i] >> s) & 1) << 4;
            }
        }
    }

    #[inline]
    fn high_two(bytes: &[u8; 128], out: &mut [u8; 512]) {
        for (s, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
            for half in 0..2 {
                for i in 0..32 {
                    out[half * 32 + i] |= ((bytes[(half * 2 + s / 4) * 32 + i] >> (s % 4 * 2)) & 3) << 4;
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::*;
    use std::arch::x86_64::*;

    pub(super) struct Avx2;

    // SAFETY (of every block here): `Avx2` is used by `decode_avx2` alone, whose caller has seen that the machine has
    // AVX2 and F16C; loads and stores stay inside the arrays, whose lengths the types give.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Expand for Avx2 {
        #[inline(always)]
        fn halves(bytes: &[u8; 2 * PANEL_ROWS]) -> [f32; PANEL_ROWS] {
            let mut out = [0.0; PANEL_ROWS];
            unsafe {
                let from = bytes.as_ptr().cast::<__m128i>();
                for i in 0..2 {
                    let eight = _mm256_cvtph_ps(_mm_loadu_si128(from.add(i)));
                    _mm256_storeu_ps(out.as_mut_ptr().add(8 * i), eight);
                }
            }
            out
        }

        #[inline(always)]
        fn nibbles(bytes: &[u8; 256], out: &mut [u8; 512]) {
            unsafe {
                let (from, to) = (
                    bytes.as_ptr().cast::<__m256i>(),
                    out.as_mut_ptr().cast::<__m256i>(),
                );
                let mask = _mm256_set1_epi8(15);
                for s in 0..8 {
                    let both = _mm256_loadu_si256(from.add(s));
                    _mm256_storeu_si256(to.add(2 * s), _mm256_and_si256(both, mask));
                    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), mask);
                    _mm256_storeu_si256(to.add(2 * s + 1), high);
                }
            }
        }

        #[inline(always)]
        fn high_bits(bytes: &[u8; 64], out: &mut [u8; 512]) {
            unsafe {
                let (from, to) = (
                    bytes.as_ptr().cast::<__m256i>(),
                    out.as_mut_ptr().cast::<__m256i>(),
                );
                let mask = _mm256_set1_epi8(16);
                for half in 0..2 {
                    let bits = _mm256_loadu_si256(from.add(half));
                    for s in 0..8i32 {
                        let left = _mm256_sll_epi16(bits, _mm_cvtsi32_si128((4 - s).max(0)));
                        let moved = _mm256_srl_epi16(left, _mm_cvtsi32_si128((s - 4).max(0)));
                        let at = to.add(2 * s as usize + half);
                        let code = _mm256_or_si256(_mm256_loadu_si256(at), _mm256_and_si256(moved, mask));
                        _mm256_storeu_si256(at, code);
                    }
                }
            }
        }

        #[inline(always)]
        fn high_two(bytes: &[u8; 128], out: &mut [u8; 512]) {
            unsafe {
                let (from, to) = (
                    bytes.as_ptr().cast::<__m256i>(),
                    out.as_mut_ptr().cast::<__m256i>(),
                );
                let mask = _mm256_set1_epi8(48);
                for half in 0..2 {
                    for s in 0..8i32 {
                        let bits = _mm256_loadu_si256(from.add(half * 2 + s as usize / 4));
                        let part = s % 4 * 2;
                        let left = _mm256_sll_epi16(bits, _mm_cvtsi32_si128((4 - part).max(0)));
                        let moved = _mm256_srl_epi16(left, _mm_cvtsi32_si128((part - 4).max(0)));
                        let at = to.add(2 * s as usize + half);
                        let code = _mm256_or_si256(_mm256_loadu_si256(at), _mm256_and_si256(moved, mask));
                        _mm256_storeu_si256(at, code);
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn decode_avx2(ty: QuantType, source: &[u8], scratch: &mut PanelScratch) {
    decode_with::<avx2::Avx2>(ty, source, scratch);
}

#[inline(always)]
fn decode_with<E: Expand>(ty: QuantType, source: &[u8], scratch: &mut PanelScratch) {
    let bytes = super::Layout::of(ty).bytes;
    match ty {
        QuantType::F32 => {
            for (out, four) in scratch.floats.iter_mut().zip(source.as_chunks::<4>().0) {
                *out = f32::from_le_bytes(*four);
            }
        }
        QuantType::F16 => {
            let rows = source.as_chunks::<{ 2 * PANEL_ROWS }>().0;
            for (out, row) in scratch
                .floats
                .as_chunks_mut::<PANEL_ROWS>()
                .0
                .iter_mut()
                .zip(rows)
            {
                *out = E::halves(row);
            }
        }
        QuantType::BF16 => {
            for (out, two) in scratch.floats.iter_mut().zip(source.as_chunks::<2>().0) {
                *out = bf16_to_f32(u16::from_le_bytes(*two));
            }
        }
        QuantType::Q4_0 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                E::nibbles(head(block), codes_of(scratch, b));
                let scale = halves::<E>(&block[256..]);
                scale_of(scratch, b).copy_from_slice(&scale);
                min_of(scratch, b).copy_from_slice(&scale.map(|d| -8.0 * d));
            }
        }
        QuantType::Q4_1 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                E::nibbles(head(block), codes_of(scratch, b));
                scale_of(scratch, b).copy_from_slice(&halves::<E>(&block[256..]));
                min_of(scratch, b).copy_from_slice(&halves::<E>(&block[288..]));
            }
        }
        QuantType::Q5_0 | QuantType::Q5_1 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                E::nibbles(head(block), codes_of(scratch, b));
                E::high_bits(head(&block[256..]), codes_of(scratch, b));
                let scale = halves::<E>(&block[320..]);
                scale_of(scratch, b).copy_from_slice(&scale);
                if ty == QuantType::Q5_1 {
                    let min = halves::<E>(&block[352..]);
                    for (out, (m, d)) in min_of(scratch, b).iter_mut().zip(min.iter().zip(scale)) {
                        *out = m + 16.0 * d;
                    }
                }
            }
        }
        QuantType::Q8_0 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                scale_of(scratch, b).copy_from_slice(&halves::<E>(&block[512..]));
            }
        }
        QuantType::Iq4Nl => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                E::nibbles(head(block), codes_of(scratch, b));
                for code in codes_of(scratch, b) {
                    *code = IQ4_NL[usize::from(*code & 15)] as u8;
                }
                scale_of(scratch, b).copy_from_slice(&halves::<E>(&block[256..]));
            }
        }
        QuantType::Mxfp4 => {
            for (b, block) in source.chunks_exact(bytes).enumerate() {
                E::nibbles(head(block), codes_of(scratch, b));
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
                let d = halves::<E>(&block[low_at + 192..]);
                let dmin = halves::<E>(&block[low_at + 224..]);
                for b in 0..8 {
                    let at = sb * 8 + b;
                    let codes = &block[b * per_block..];
                    E::nibbles(head(codes), codes_of(scratch, at));
                    if ty == QuantType::Q5K {
                        E::high_bits(head(&codes[256..]), codes_of(scratch, at));
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
                let d = halves::<E>(&block[8 * 384 + 256..]);
                for b in 0..8 {
                    let at = sb * 8 + b;
                    let codes = &block[b * 384..];
                    E::nibbles(head(codes), codes_of(scratch, at));
                    E::high_two(head(&codes[256..]), codes_of(scratch, at));
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
                let d = halves::<E>(&block[8 * 256 + 256..]);
                let dmin = halves::<E>(&block[8 * 256 + 288..]);
                for b in 0..8 {
                    let at = sb * 8 + b;
                    E::nibbles(head(&block[b * 256..]), codes_of(scratch, at));
                    for code in codes_of(scratch, at) {
                        *code += 32;
                    }
                    scale_of(scratch, at).copy_from_slice(&d);
                    for half in 0..2 {
                        let both = sixteen(&block[8 * 256 + (b * 2 + half) * 16..]);
                        group_scale(scratch, at * 2 + half, both.map(|s| i16::from(s & 15)));
                        for (out, (s, m)) in min_of(scratch, at * 2 + half)
                            .iter_mut()
                            .zip(both.iter().zip(dmin))
                        {
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

/// The first `N` bytes: a superblock always holds what its layout says.
#[inline(always)]
fn head<const N: usize>(bytes: &[u8]) -> &[u8; N] {
    bytes
        .first_chunk()
        .expect("a superblock holds what its layout says")
}

#[inline(always)]
fn sixteen(bytes: &[u8]) -> [u8; PANEL_ROWS] {
    *head(bytes)
}

#[inline(always)]
fn halves<E: Expand>(bytes: &[u8]) -> [f32; PANEL_ROWS] {
    E::halves(head(bytes))
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
