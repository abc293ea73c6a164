//! Rows of activations, made ready for the matrix kernels.
//!
//! Integer kernels take activations as int8 with one scale per 32 values; floating-point kernels take them as they
//! are. Either way the rows are interleaved in tiles of at most [`TILE_ROWS`] tokens, so that a kernel walks memory
//! straight ahead: for block `b`, step `s` (four values of k) and token `t`, the four values lie at
//! `((b * 8 + s) * rows + t) * 4` within the tile.

use crate::buffer::Buffer;
use crate::isa::Isa;

/// Values that share one activation scale.
pub const BLOCK: usize = 32;
/// Tokens in a full tile.
pub const TILE_ROWS: usize = 6;

/// Which forms of the activations a set of weights needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms {
    /// int8 blocks, for quantised weights.
    pub quantised: bool,
    /// f32, for floating-point weights.
    pub float: bool,
}

/// Activations of up to `capacity` tokens with up to `max_k` values each, reused from call to call.
#[derive(Debug)]
pub struct Activations {
    capacity: usize,
    max_k: usize,
    pub(crate) rows: usize,
    pub(crate) k: usize,
    pub(crate) codes: Buffer<i8>,
    /// Per block and token: the scale.
    pub(crate) scale: Buffer<f32>,
    /// Per block and token: scale times the sum of the codes.
    pub(crate) sum: Buffer<f32>,
    /// Per block and token: -16 times the sum of the codes at k%4 in {0,1} and {2,3}: where an i16 accumulator starts
    /// for weights stored with an offset of 16.
    pub(crate) start16: Buffer<i16>,
    /// The same per half block, -32 times: for weights stored with an offset of 32.
    pub(crate) start32: Buffer<i16>,
    /// Per half block and token: scale times the sum of the codes.
    pub(crate) half_sum: Buffer<f32>,
    pub(crate) floats: Buffer<f32>,
}

impl Activations {
    /// Room for `capacity` tokens of `max_k` values in the given forms.
    pub fn new(capacity: usize, max_k: usize, forms: Forms) -> Activations {
        let codes = if forms.quantised {
            capacity * max_k.next_multiple_of(BLOCK)
        } else {
            0
        };
        let blocks = codes / BLOCK;
        Activations {
            capacity,
            max_k,
            rows: 0,
            k: 0,
            codes: Buffer::zeroed(codes),
            scale: Buffer::zeroed(blocks),
            sum: Buffer::zeroed(blocks),
            start16: Buffer::zeroed(2 * blocks),
            start32: Buffer::zeroed(4 * blocks),
            half_sum: Buffer::zeroed(2 * blocks),
            floats: Buffer::zeroed(if forms.float { capacity * max_k } else { 0 }),
        }
    }

    /// Tokens held.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Takes these rows of `k` values each, on this thread.
    ///
    /// # Panics
    /// When they exceed the capacity given at creation, or are no whole rows: a mistake of the caller.
    pub fn take(&mut self, isa: Isa, k: usize, source: &[f32]) {
        let tiles = self.begin(source.len() / k, k);
        for tile in 0..tiles.tiles() {
            let rows = tiles.rows_of(tile);
            // SAFETY: this thread fills all tiles, one after the other.
            unsafe { tiles.fill(isa, tile, &source[rows.start * k..rows.end * k]) };
        }
    }

    /// Sets the shape for the rows that [`ActivationTiles::fill`] writes next.
    ///
    /// # Panics
    /// When the shape exceeds the capacity given at creation: a mistake of the caller, not of any input.
    pub fn begin(&mut self, rows: usize, k: usize) -> ActivationTiles<'_> {
        assert!(
            rows <= self.capacity && k <= self.max_k,
            "activations {rows}x{k} exceed {}x{}",
            self.capacity,
            self.max_k
        );
        self.rows = rows;
        self.k = k;
        ActivationTiles {
            rows,
            k,
            codes: self.codes.as_mut_ptr(),
            scale: self.scale.as_mut_ptr(),
            sum: self.sum.as_mut_ptr(),
            start16: self.start16.as_mut_ptr(),
            start32: self.start32.as_mut_ptr(),
            half_sum: self.half_sum.as_mut_ptr(),
            floats: self.floats.as_mut_ptr(),
            quantised: !self.codes.is_empty(),
            float: !self.floats.is_empty(),
            marker: std::marker::PhantomData,
        }
    }
}

/// A view through which several threads fill the tiles, each its own.
pub struct ActivationTiles<'a> {
    rows: usize,
    k: usize,
    codes: *mut i8,
    scale: *mut f32,
    sum: *mut f32,
    start16: *mut i16,
    start32: *mut i16,
    half_sum: *mut f32,
    floats: *mut f32,
    quantised: bool,
    float: bool,
    marker: std::marker::PhantomData<&'a mut Activations>,
}

// SAFETY: tiles do not overlap, and `fill` demands that no two threads fill the same tile.
unsafe impl Sync for ActivationTiles<'_> {}

impl ActivationTiles<'_> {
    /// Number of tiles.
    pub fn tiles(&self) -> usize {
        self.rows.div_ceil(TILE_ROWS)
    }

    /// The tokens of one tile.
    pub fn rows_of(&self, tile: usize) -> std::ops::Range<usize> {
        tile * TILE_ROWS..((tile + 1) * TILE_ROWS).min(self.rows)
    }

    /// Fills one tile from `source`: the tile's rows one after the other, `k` values each.
    ///
    /// # Safety
    /// No other thread may fill or read the same tile meanwhile.
    pub unsafe fn fill(&self, isa: Isa, tile: usize, source: &[f32]) {
        let rows = self.rows_of(tile);
        let count = rows.len();
        assert_eq!(source.len(), count * self.k);
        let first = rows.start;
        if self.float {
            // SAFETY: the tile's floats are `count * k` values from `first * k`, inside the buffer by `begin`.
            let out =
                unsafe { std::slice::from_raw_parts_mut(self.floats.add(first * self.k), count * self.k) };
            for (t, row) in source.chunks_exact(self.k).enumerate() {
                for (i, &value) in row.iter().enumerate() {
                    out[i * count + t] = value;
                }
            }
        }
        if self.quantised {
            let blocks = self.k.div_ceil(BLOCK);
            let base = first * blocks;
            // SAFETY: each slice below is this tile's part of its buffer; tiles do not overlap.
            let tile = unsafe {
                QuantisedTile {
                    rows: count,
                    codes: std::slice::from_raw_parts_mut(
                        self.codes.add(base * BLOCK),
                        count * blocks * BLOCK,
                    ),
                    scale: std::slice::from_raw_parts_mut(self.scale.add(base), count * blocks),
                    sum: std::slice::from_raw_parts_mut(self.sum.add(base), count * blocks),
                    start16: std::slice::from_raw_parts_mut(self.start16.add(2 * base), 2 * count * blocks),
                    start32: std::slice::from_raw_parts_mut(self.start32.add(4 * base), 4 * count * blocks),
                    half_sum: std::slice::from_raw_parts_mut(self.half_sum.add(2 * base), 2 * count * blocks),
                }
            };
            tile.quantise(isa, source, self.k);
        }
    }
}

struct QuantisedTile<'a> {
    rows: usize,
    codes: &'a mut [i8],
    scale: &'a mut [f32],
    sum: &'a mut [f32],
    start16: &'a mut [i16],
    start32: &'a mut [i16],
    half_sum: &'a mut [f32],
}

impl QuantisedTile<'_> {
    fn quantise(self, isa: Isa, source: &[f32], k: usize) {
        let rows = self.rows;
        for (t, row) in source.chunks_exact(k).enumerate() {
            for (b, values) in row.chunks(BLOCK).enumerate() {
                let mut padded = [0.0f32; BLOCK];
                let values: &[f32; BLOCK] = match values.try_into() {
                    Ok(block) => block,
                    Err(_) => {
                        padded[..values.len()].copy_from_slice(values);
                        &padded
                    }
                };
                let (codes, scale) = quantise_block(isa, values);
                let out = &mut self.codes[b * BLOCK * rows..(b + 1) * BLOCK * rows];
                let places = out.as_chunks_mut::<4>().0.iter_mut().skip(t).step_by(rows);
                for (place, four) in places.zip(codes.as_chunks::<4>().0) {
                    *place = *four;
                }
                let lanes = lane_sums(isa, &codes);
                let cell = b * rows + t;
                self.scale[cell] = scale;
                for (lane, (first, second)) in lanes[0].into_iter().zip(lanes[1]).enumerate() {
                    self.start16[2 * cell + lane] = -16 * (first + second);
                }
                let halves = lanes.map(|half| i32::from(half[0]) + i32::from(half[1]));
                self.sum[cell] = scale * (halves[0] + halves[1]) as f32;
                for (half, (sum, lanes)) in halves.into_iter().zip(lanes).enumerate() {
                    let cell = (2 * b + half) * rows + t;
                    self.start32[2 * cell] = -32 * lanes[0];
                    self.start32[2 * cell + 1] = -32 * lanes[1];
                    self.half_sum[cell] = scale * sum as f32;
                }
            }
        }
    }
}

/// Sums of a block's codes over the two i16 lanes, k%4 in {0,1} and {2,3}, of each half.
fn lane_sums(isa: Isa, codes: &[i8; BLOCK]) -> [[i16; 2]; 2] {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: both levels imply AVX2, and `isa` came from detection.
        return unsafe { lane_sums_avx2(codes) };
    }
    let _ = isa;
    let mut lanes = [[0i16; 2]; 2];
    for (step, four) in codes.as_chunks::<4>().0.iter().enumerate() {
        lanes[step / 4][0] += i16::from(four[0]) + i16::from(four[1]);
        lanes[step / 4][1] += i16::from(four[2]) + i16::from(four[3]);
    }
    lanes
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn lane_sums_avx2(codes: &[i8; BLOCK]) -> [[i16; 2]; 2] {
    use std::arch::x86_64::*;
    // SAFETY: the load covers the 32 codes.
    let codes = unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) };
    let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), codes);
    let pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32::<0b0100_1110>(pairs));
    let pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32::<0b1011_0001>(pairs));
    [
        _mm256_castsi256_si128(pairs),
        _mm256_extracti128_si256::<1>(pairs),
    ]
    .map(|half| {
        let both = _mm_cvtsi128_si32(half);
        [both as i16, (both >> 16) as i16]
    })
}

/// Rounds 32 values to int8 (nearest, ties to even) with the scale that maps the largest magnitude to 127.
fn quantise_block(isa: Isa, values: &[f32; BLOCK]) -> ([i8; BLOCK], f32) {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: both levels imply AVX2, and `isa` came from detection.
        return unsafe { quantise_block_avx2(values) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa == Isa::NeonDot {
        // SAFETY: every machine of this architecture has NEON.
        return unsafe { quantise_block_neon(values) };
    }
    let _ = isa;
    quantise_block_plain(values)
}

/// What maps the largest magnitude to 127, or 0 for a block so small (below 4e-37) that this would be infinite.
#[inline]
fn inverse_of(largest: f32) -> f32 {
    let inverse = 127.0 / largest;
    if inverse <= f32::MAX { inverse } else { 0.0 }
}

fn quantise_block_plain(values: &[f32; BLOCK]) -> ([i8; BLOCK], f32) {
    let largest = values.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    let scale = largest / 127.0;
    let inverse = inverse_of(largest);
    (
        values.map(|v| (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8),
        scale,
    )
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn quantise_block_avx2(values: &[f32; BLOCK]) -> ([i8; BLOCK], f32) {
    use std::arch::x86_64::*;
    // SAFETY: four loads of eight values cover the array of 32; the store covers the 32 codes.
    unsafe {
        let p = values.as_ptr();
        let v = [
            _mm256_loadu_ps(p),
            _mm256_loadu_ps(p.add(8)),
            _mm256_loadu_ps(p.add(16)),
            _mm256_loadu_ps(p.add(24)),
        ];
        let sign = _mm256_set1_ps(-0.0);
        let m01 = _mm256_max_ps(_mm256_andnot_ps(sign, v[0]), _mm256_andnot_ps(sign, v[1]));
        let m23 = _mm256_max_ps(_mm256_andnot_ps(sign, v[2]), _mm256_andnot_ps(sign, v[3]));
        let m = _mm256_max_ps(m01, m23);
        let m = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
        let m = _mm_max_ps(m, _mm_movehl_ps(m, m));
        let m = _mm_max_ss(m, _mm_movehdup_ps(m));
        let largest = _mm_cvtss_f32(m);
        let inverse = _mm256_set1_ps(inverse_of(largest));
        let i = [
            _mm256_cvtps_epi32(_mm256_mul_ps(v[0], inverse)),
            _mm256_cvtps_epi32(_mm256_mul_ps(v[1], inverse)),
            _mm256_cvtps_epi32(_mm256_mul_ps(v[2], inverse)),
            _mm256_cvtps_epi32(_mm256_mul_ps(v[3], inverse)),
        ];
        let packed = _mm256_packs_epi16(_mm256_packs_epi32(i[0], i[1]), _mm256_packs_epi32(i[2], i[3]));
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        // The pack saturates to -128 for NaN; keep the codes symmetric, as the accumulators' bounds assume.
        let codes = _mm256_max_epi8(_mm256_permutevar8x32_epi32(packed, order), _mm256_set1_epi8(-127));
        let mut out = [0i8; BLOCK];
        _mm256_storeu_si256(out.as_mut_ptr().cast(), codes);
        (out, largest / 127.0)
    }
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
unsafe fn quantise_block_neon(values: &[f32; BLOCK]) -> ([i8; BLOCK], f32) {
    use std::arch::aarch64::*;
    let mut out = [0i8; BLOCK];
    // SAFETY: eight loads of four values cover the array of 32; two stores of 16 codes cover `out`.
    unsafe {
        let mut v = [vdupq_n_f32(0.0); 8];
        let mut m = v[0];
        for (i, v) in v.iter_mut().enumerate() {
            *v = vld1q_f32(values.as_ptr().add(4 * i));
            m = vmaxnmq_f32(m, vabsq_f32(*v));
        }
        let largest = vmaxnmvq_f32(m);
        let inverse = inverse_of(largest);
        for (i, v) in v.as_chunks::<4>().0.iter().enumerate() {
            // Conversions and narrowings saturate, and NaN becomes 0, as with `as`.
            let r = v.map(|v| vcvtnq_s32_f32(vmulq_n_f32(v, inverse)));
            let low = vcombine_s16(vqmovn_s32(r[0]), vqmovn_s32(r[1]));
            let high = vcombine_s16(vqmovn_s32(r[2]), vqmovn_s32(r[3]));
            let codes = vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
            vst1q_s8(out.as_mut_ptr().add(16 * i), vmaxq_s8(codes, vdupq_n_s8(-127)));
        }
        (out, largest / 127.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels_agree(values: &[f32; BLOCK]) {
        let (codes, scale) = quantise_block_plain(values);
        for isa in Isa::available() {
            let (fast, fast_scale) = quantise_block(isa, values);
            assert_eq!(
                (codes, scale.to_bits()),
                (fast, fast_scale.to_bits()),
                "{}: {values:?}",
                isa.name()
            );
        }
    }

    #[test]
    fn every_level_quantises_as_the_plain_loop_does() {
        let mut state = 1u32;
        for round in 0..20_000 {
            let mut values = [0.0; BLOCK];
            for value in &mut values {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *value = (state >> 8) as f32 / (1 << 23) as f32 - 1.0;
            }
            // Every magnitude that blocks of finite numbers can have.
            let power = 2.0f32.powi(round % 254 - 126);
            levels_agree(&values.map(|v| v * power));
            // Values that end in a half once scaled, where the direction of rounding shows.
            values[0] = 127.0;
            levels_agree(
                &values
                    .map(|v| (v * 127.0).floor() + 0.5)
                    .map(|v| if v > 126.0 { 127.0 } else { v }),
            );
        }
        levels_agree(&[0.0; BLOCK]);
        levels_agree(&[-0.0; BLOCK]);
        levels_agree(&std::array::from_fn(
            |i| if i % 2 == 0 { f32::MAX } else { f32::MIN },
        ));
        for tiny in [1, 2, 126, 127, 0x7f_ffff, 0x80_0000, 0x0100_0000, 0x0300_0000] {
            levels_agree(&std::array::from_fn(|i| {
                f32::from_bits(if i == 7 { tiny } else { tiny / 2 })
            }));
            levels_agree(&std::array::from_fn(|i| {
                f32::from_bits(tiny * (i as u32 % 2)) * [1.0, -1.0][i / 16]
            }));
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn neon_agrees_on_blocks_that_are_not_finite() {
        for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            levels_agree(&[odd; BLOCK]);
            levels_agree(&std::array::from_fn(|i| if i == 3 { odd } else { i as f32 }));
        }
    }
}
