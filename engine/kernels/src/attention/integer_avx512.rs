//! The integer kernels for AVX-512 VNNI: sixteen pairs of codes to a vector, one instruction for their products and
//! sums. Integer sums are exact, so that they agree with every other level to the last bit.

use super::{ROWS, TILE_KEYS};
use std::arch::x86_64::*;

/// Vectors of sums a row has at once: with six rows they, their codes and a factor take 29 of the 32 registers.
const WIDE: usize = 4;
/// Keys, or dimensions of values, in a vector.
const LANES: usize = 16;

/// # Safety
/// AVX-512 F, BW and VNNI; lengths as `super::scores` checks them.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) unsafe fn scores(
    rows: usize,
    queries: &[i16],
    query_units: &[f32],
    keys: &[i8],
    key_units: &[f32; TILE_KEYS],
    dim: usize,
    out: &mut [f32],
) {
    // SAFETY: passed on.
    unsafe { by_rows!(rows, scores_of(queries, query_units, keys, key_units, dim, out)) }
}

/// # Safety
/// AVX-512 F, BW and VNNI; lengths as `super::accumulate` checks them.
#[allow(clippy::too_many_arguments)]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) unsafe fn accumulate(
    rows: usize,
    weights: &[i16],
    back: &[f32; ROWS],
    tile: &[i8],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    // SAFETY: passed on.
    unsafe {
        by_rows!(
            rows,
            accumulate_of(weights, back, tile, dim, count, rescale, values)
        )
    }
}

/// `sum + a * b` over pairs of 16-bit numbers.
///
/// The intrinsic will not do: where the sums are many the compiler makes a product and a sum of it, as the processors it
/// builds for may be slow at both in one (measured: a tenth of the speed).
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_pairs(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    let mut sum = sum;
    // SAFETY: an instruction on registers that the features above imply.
    unsafe {
        std::arch::asm!(
            "vpdpwssd {0}, {1}, {2}",
            inout(zmm_reg) sum, in(zmm_reg) a, in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

/// `WIDTH` times sixteen pairs of codes, and for each row a pair of factors: as many sums for each row.
///
/// # Safety
/// AVX-512 F, BW and VNNI; `32 * WIDTH` codes can be read at `codes`, two factors at `factors + row * stride` for each
/// row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn add_products<const WIDTH: usize, const ROWS_NOW: usize>(
    sums: &mut [[__m512i; WIDTH]; ROWS_NOW],
    codes: *const i8,
    factors: *const i16,
    stride: usize,
) {
    let mut wide = [_mm512_setzero_si512(); WIDTH];
    for (i, wide) in wide.iter_mut().enumerate() {
        // SAFETY: by contract.
        *wide = unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(codes.add(2 * LANES * i).cast())) };
    }
    for (t, sums) in sums.iter_mut().enumerate() {
        // SAFETY: by contract.
        let pair = unsafe { _mm512_set1_epi32(factors.add(t * stride).cast::<i32>().read_unaligned()) };
        for (sum, &codes) in sums.iter_mut().zip(&wide) {
            *sum = add_pairs(*sum, pair, codes);
        }
    }
}

/// # Safety
/// AVX-512 F, BW and VNNI; lengths as `super::scores` checks them.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn scores_of<const ROWS_NOW: usize>(
    queries: &[i16],
    query_units: &[f32],
    keys: &[i8],
    key_units: &[f32; TILE_KEYS],
    dim: usize,
    out: &mut [f32],
) {
    const { assert!(TILE_KEYS == WIDE * LANES) };
    let mut sums = [[_mm512_setzero_si512(); WIDE]; ROWS_NOW];
    for pair in 0..dim / 2 {
        // SAFETY: a pair has `2 * TILE_KEYS` codes, a row `dim` factors, and ROWS_NOW <= ROWS.
        unsafe {
            let codes = keys.as_ptr().add(2 * TILE_KEYS * pair);
            add_products(&mut sums, codes, queries.as_ptr().add(2 * pair), dim);
        }
    }
    for (t, sums) in sums.iter().enumerate() {
        let unit = _mm512_set1_ps(query_units[t]);
        for (i, &sum) in sums.iter().enumerate() {
            // SAFETY: `i < WIDE` and t < ROWS.
            unsafe {
                let units = _mm512_mul_ps(_mm512_loadu_ps(key_units.as_ptr().add(LANES * i)), unit);
                let to = out.as_mut_ptr().add(t * TILE_KEYS + LANES * i);
                _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_cvtepi32_ps(sum), units));
            }
        }
    }
}

/// # Safety
/// AVX-512 F, BW and VNNI; lengths as `super::accumulate` checks them.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn accumulate_of<const ROWS_NOW: usize>(
    weights: &[i16],
    back: &[f32; ROWS],
    tile: &[i8],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    // SAFETY: stretches of dimensions are inside `dim`, a multiple of sixteen; the rest is passed on.
    unsafe {
        let mut d = 0;
        while d + WIDE * LANES <= dim {
            accumulate_at::<WIDE, ROWS_NOW>(weights, back, tile, dim, d, count, rescale, values);
            d += WIDE * LANES;
        }
        while d < dim {
            accumulate_at::<1, ROWS_NOW>(weights, back, tile, dim, d, count, rescale, values);
            d += LANES;
        }
    }
}

/// The dimensions `d..d + WIDTH * LANES`.
///
/// # Safety
/// AVX-512 F, BW and VNNI; lengths as `super::accumulate` checks them; the dimensions are inside `dim`.
#[allow(clippy::too_many_arguments)]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn accumulate_at<const WIDTH: usize, const ROWS_NOW: usize>(
    weights: &[i16],
    back: &[f32; ROWS],
    tile: &[i8],
    dim: usize,
    d: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    let mut sums = [[_mm512_setzero_si512(); WIDTH]; ROWS_NOW];
    for pair in 0..count.div_ceil(2) {
        // SAFETY: a pair has `2 * dim` codes, of which `2 * (dim - d)` follow; a row has TILE_KEYS factors.
        unsafe {
            let codes = tile.as_ptr().add(2 * dim * pair + 2 * d);
            add_products(&mut sums, codes, weights.as_ptr().add(2 * pair), TILE_KEYS);
        }
    }
    for (t, sums) in sums.iter().enumerate() {
        let (scale, back) = (_mm512_set1_ps(rescale[t]), _mm512_set1_ps(back[t]));
        for (i, &sum) in sums.iter().enumerate() {
            // SAFETY: `t < ROWS`, and the dimensions are inside `dim`.
            unsafe {
                let to = values.as_mut_ptr().add(t * dim + d + LANES * i);
                let old = _mm512_mul_ps(_mm512_loadu_ps(to), scale);
                _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), back, old));
            }
        }
    }
}
