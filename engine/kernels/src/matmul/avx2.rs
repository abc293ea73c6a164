//! Tile kernels for AVX2 and FMA.
//!
//! A 4-bit code times an int8 activation is at most 15 * 127, so the eight steps of a block add up in i16 lanes
//! (16 products of at most 1,905 each) and need widening only once a block. For 5-bit codes the accumulator starts
//! at -16 times the lane's activations instead of zero: i16 addition wraps, the end value (16 products of at most
//! 16 * 127) fits, and so no intermediate widening is needed either. The same holds for 6-bit codes over half a
//! block with an offset of 32. Signed bytes move their sign to the activation, and widen every step.

// Indices name the token of a register; iterators over several arrays at once would hide that.
#![allow(clippy::needless_range_loop)]

use super::Tile;
use crate::activations::TILE_ROWS;
use crate::packed::{Family, PANEL_ROWS};
use std::arch::x86_64::*;

/// # Safety
/// The tile's lengths are checked, and the machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run(tile: &mut Tile<'_>) {
    const { assert!(TILE_ROWS == 6 && PANEL_ROWS == 16) };
    macro_rules! by_rows {
        ($kernel:ident $(, $flag:literal)*) => {
            // SAFETY: passed on from this function's contract.
            unsafe {
                match tile.rows {
                    1 => $kernel::<1 $(, $flag)*>(tile),
                    2 => $kernel::<2 $(, $flag)*>(tile),
                    3 => $kernel::<3 $(, $flag)*>(tile),
                    4 => $kernel::<4 $(, $flag)*>(tile),
                    5 => $kernel::<5 $(, $flag)*>(tile),
                    _ => $kernel::<6 $(, $flag)*>(tile),
                }
            }
        };
    }
    match tile.family {
        Family::Nibble => by_rows!(blocks, false, true),
        Family::Five => by_rows!(blocks, true, false),
        Family::FiveMin => by_rows!(blocks, true, true),
        Family::Grouped => by_rows!(grouped, false),
        Family::GroupedMin => by_rows!(grouped, true),
        Family::Byte => by_rows!(bytes),
        Family::Float => by_rows!(floats),
    }
}

/// Keeps the compiler from reordering sums of accumulators: it would add products of several steps first, which takes
/// more registers than there are (measured: a fifth of the speed).
#[inline]
#[target_feature(enable = "avx2")]
fn settled(accumulator: __m256i) -> __m256i {
    let mut accumulator = accumulator;
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(ymm_reg) accumulator, options(pure, nomem, nostack, preserves_flags))
    };
    accumulator
}

/// Four activations of one token, in every lane.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn broadcast(at: *const i32) -> __m256i {
    // SAFETY: the caller stays inside the tile.
    _mm256_set1_epi32(unsafe { at.read_unaligned() })
}

/// `acc += f32(sum) * (weight scale * activation scale)`, then the minimum's part.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn finish(acc: *mut f32, sum: __m256i, scale: *const f32, token_scale: __m256) -> __m256 {
    // SAFETY: the caller passes eight valid floats.
    unsafe {
        let scale = _mm256_mul_ps(_mm256_loadu_ps(scale), token_scale);
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, _mm256_loadu_ps(acc))
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn blocks<const ROWS: usize, const OFFSET: bool, const MIN: bool>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below: b < count, s < 8, t < ROWS.
    unsafe {
        let mut w = tile.panel_codes.as_ptr();
        let mut x = tile.codes.as_ptr().cast::<i32>();
        let ones = _mm256_set1_epi16(1);
        let acc = tile.accumulators.as_mut_ptr();
        let mut scale = tile.weights.scale.as_ptr();
        let mut min = tile.weights.min.as_ptr();
        let mut token_scale = tile.scale.as_ptr();
        let mut token_sum = tile.sum.as_ptr();
        let mut start = tile.start16.as_ptr().cast::<i32>();
        for _ in 0..tile.count {
            let mut low = [_mm256_setzero_si256(); ROWS];
            let mut high = [_mm256_setzero_si256(); ROWS];
            if OFFSET {
                for t in 0..ROWS {
                    low[t] = broadcast(start.add(t));
                    high[t] = low[t];
                }
            }
            for s in 0..8 {
                let w0 = _mm256_loadu_si256(w.add(s * 64).cast());
                let w1 = _mm256_loadu_si256(w.add(s * 64 + 32).cast());
                for t in 0..ROWS {
                    let xt = broadcast(x.add(s * ROWS + t));
                    let p0 = _mm256_maddubs_epi16(w0, xt);
                    let p1 = _mm256_maddubs_epi16(w1, xt);
                    if s == 0 && !OFFSET {
                        (low[t], high[t]) = (p0, p1);
                    } else {
                        low[t] = settled(_mm256_add_epi16(low[t], p0));
                        high[t] = settled(_mm256_add_epi16(high[t], p1));
                    }
                }
            }
            w = w.add(512);
            x = x.add(8 * ROWS);
            for t in 0..ROWS {
                let product = _mm256_broadcast_ss(&*token_scale.add(t));
                let at = acc.add(t * PANEL_ROWS);
                let mut a0 = finish(at, _mm256_madd_epi16(low[t], ones), scale, product);
                let mut a1 = finish(at.add(8), _mm256_madd_epi16(high[t], ones), scale.add(8), product);
                if MIN {
                    let sum = _mm256_broadcast_ss(&*token_sum.add(t));
                    a0 = _mm256_fmadd_ps(_mm256_loadu_ps(min), sum, a0);
                    a1 = _mm256_fmadd_ps(_mm256_loadu_ps(min.add(8)), sum, a1);
                }
                _mm256_storeu_ps(at, a0);
                _mm256_storeu_ps(at.add(8), a1);
            }
            scale = scale.add(PANEL_ROWS);
            min = min.add(PANEL_ROWS);
            token_scale = token_scale.add(ROWS);
            token_sum = token_sum.add(ROWS);
            start = start.add(ROWS);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn grouped<const ROWS: usize, const MIN: bool>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below.
    unsafe {
        let mut w = tile.panel_codes.as_ptr();
        let mut x = tile.codes.as_ptr().cast::<i32>();
        let acc = tile.accumulators.as_mut_ptr();
        for b in 0..tile.count {
            // The first half block's sums wait in memory: registers hold one half block's accumulators.
            let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
            for half in 0..2 {
                let mut low = [_mm256_setzero_si256(); ROWS];
                let mut high = [_mm256_setzero_si256(); ROWS];
                for t in 0..ROWS {
                    low[t] = broadcast(tile.start32.as_ptr().cast::<i32>().add((2 * b + half) * ROWS + t));
                    high[t] = low[t];
                }
                for s in 0..4 {
                    let w0 = _mm256_loadu_si256(w.add(s * 64).cast());
                    let w1 = _mm256_loadu_si256(w.add(s * 64 + 32).cast());
                    for t in 0..ROWS {
                        let xt = broadcast(x.add(s * ROWS + t));
                        low[t] = settled(_mm256_add_epi16(low[t], _mm256_maddubs_epi16(w0, xt)));
                        high[t] = settled(_mm256_add_epi16(high[t], _mm256_maddubs_epi16(w1, xt)));
                    }
                }
                w = w.add(256);
                x = x.add(4 * ROWS);
                let group = tile
                    .weights
                    .group_scale
                    .as_ptr()
                    .add((2 * b + half) * PANEL_ROWS * 2);
                let g0 = _mm256_loadu_si256(group.cast());
                let g1 = _mm256_loadu_si256(group.add(16).cast());
                for t in 0..ROWS {
                    sums[t][0] = _mm256_add_epi32(sums[t][0], _mm256_madd_epi16(low[t], g0));
                    sums[t][1] = _mm256_add_epi32(sums[t][1], _mm256_madd_epi16(high[t], g1));
                }
            }
            for t in 0..ROWS {
                let scale = tile.weights.scale.as_ptr().add(b * PANEL_ROWS);
                let token_scale = _mm256_broadcast_ss(&*tile.scale.as_ptr().add(b * ROWS + t));
                let at = acc.add(t * PANEL_ROWS);
                let mut a0 = finish(at, sums[t][0], scale, token_scale);
                let mut a1 = finish(at.add(8), sums[t][1], scale.add(8), token_scale);
                if MIN {
                    for half in 0..2 {
                        let min = tile.weights.min.as_ptr().add((2 * b + half) * PANEL_ROWS);
                        let sum =
                            _mm256_broadcast_ss(&*tile.half_sum.as_ptr().add((2 * b + half) * ROWS + t));
                        a0 = _mm256_fmadd_ps(_mm256_loadu_ps(min), sum, a0);
                        a1 = _mm256_fmadd_ps(_mm256_loadu_ps(min.add(8)), sum, a1);
                    }
                }
                _mm256_storeu_ps(at, a0);
                _mm256_storeu_ps(at.add(8), a1);
            }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn bytes<const ROWS: usize>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below.
    unsafe {
        let mut w = tile.panel_codes.as_ptr();
        let mut x = tile.codes.as_ptr().cast::<i32>();
        let ones = _mm256_set1_epi16(1);
        let acc = tile.accumulators.as_mut_ptr();
        for b in 0..tile.count {
            // One half of the rows at a time: the weights and their magnitudes need registers too.
            for half in 0..2 {
                let mut sums = [_mm256_setzero_si256(); ROWS];
                for s in 0..8 {
                    let w0 = _mm256_loadu_si256(w.add(s * 64 + half * 32).cast());
                    let magnitude = _mm256_abs_epi8(w0);
                    for t in 0..ROWS {
                        let xt = _mm256_sign_epi8(broadcast(x.add(s * ROWS + t)), w0);
                        let p = _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, xt), ones);
                        sums[t] = settled(_mm256_add_epi32(sums[t], p));
                    }
                }
                for t in 0..ROWS {
                    let scale = tile.weights.scale.as_ptr().add(b * PANEL_ROWS + half * 8);
                    let token_scale = _mm256_broadcast_ss(&*tile.scale.as_ptr().add(b * ROWS + t));
                    let at = acc.add(t * PANEL_ROWS + half * 8);
                    _mm256_storeu_ps(at, finish(at, sums[t], scale, token_scale));
                }
            }
            w = w.add(tile.code_stride);
            x = x.add(8 * ROWS);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn floats<const ROWS: usize>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below.
    unsafe {
        let w = tile.weights.floats.as_ptr();
        let x = tile.floats.as_ptr();
        let acc = tile.accumulators.as_mut_ptr();
        let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
        for (t, sum) in sums.iter_mut().enumerate() {
            *sum = [
                _mm256_loadu_ps(acc.add(t * PANEL_ROWS)),
                _mm256_loadu_ps(acc.add(t * PANEL_ROWS + 8)),
            ];
        }
        for k in 0..tile.count {
            let w0 = _mm256_loadu_ps(w.add(k * PANEL_ROWS));
            let w1 = _mm256_loadu_ps(w.add(k * PANEL_ROWS + 8));
            for (t, sum) in sums.iter_mut().enumerate() {
                let xt = _mm256_broadcast_ss(&*x.add(k * ROWS + t));
                *sum = [_mm256_fmadd_ps(xt, w0, sum[0]), _mm256_fmadd_ps(xt, w1, sum[1])];
            }
        }
        for (t, sum) in sums.iter().enumerate() {
            _mm256_storeu_ps(acc.add(t * PANEL_ROWS), sum[0]);
            _mm256_storeu_ps(acc.add(t * PANEL_ROWS + 8), sum[1]);
        }
    }
}
