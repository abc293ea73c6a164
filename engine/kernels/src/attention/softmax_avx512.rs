//! Softmax for AVX-512: the operations of the plain loops in their order, sixteen scores at a time. The sum runs in
//! eight lanes as everywhere, so that levels agree to the last bit.

use super::{Scores, TILE_KEYS, Weights, add_lanes, move_max, softmax_avx2};
use std::arch::x86_64::*;

/// Scores in a vector.
const LANES: usize = 16;

/// [`crate::math::exp`] of sixteen numbers that are not above zero.
#[inline]
#[target_feature(enable = "avx512f")]
fn exp(x: __m512) -> __m512 {
    let (least, rounder) = (_mm512_set1_ps(-87.0), _mm512_set1_ps(super::ROUNDER));
    let bounded = _mm512_max_ps(least, x);
    let shifted = _mm512_fmadd_ps(bounded, _mm512_set1_ps(std::f32::consts::LOG2_E), rounder);
    let n = _mm512_sub_ps(shifted, rounder);
    let r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0.693_359_4), bounded);
    let r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.121_944_4e-4), r);
    let mut p = _mm512_set1_ps(1.0 / 5040.0);
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c));
    }
    let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
    let value = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent));
    _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, least), value)
}

/// The first and the second eight.
#[inline]
#[target_feature(enable = "avx512f")]
fn halves(x: __m512) -> [__m256; 2] {
    let second = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(x));
    [_mm512_castps512_ps256(x), _mm256_castpd_ps(second)]
}

/// The scores as vectors.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(scores: &[f32; TILE_KEYS]) -> [__m512; TILE_KEYS / LANES] {
    let mut vectors = [_mm512_setzero_ps(); TILE_KEYS / LANES];
    for (vector, scores) in vectors.iter_mut().zip(scores.as_chunks::<LANES>().0) {
        // SAFETY: sixteen numbers.
        *vector = unsafe { _mm512_loadu_ps(scores.as_ptr()) };
    }
    vectors
}

/// The largest of all; what is no number counts as nothing.
#[inline]
#[target_feature(enable = "avx512f")]
fn largest(vectors: &[__m512; TILE_KEYS / LANES], least: f32) -> f32 {
    let mut top = _mm512_set1_ps(least);
    for &vector in vectors {
        top = _mm512_max_ps(vector, top);
    }
    let [first, second] = halves(top);
    softmax_avx2::largest(_mm256_max_ps(first, second))
}

/// # Safety
/// AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn weigh(scores: &mut Scores, max: &mut f32, sum: &mut f32) -> f32 {
    let vectors = load(scores);
    let Some(rescale) = move_max(largest(&vectors, f32::NEG_INFINITY), max) else {
        scores.fill(0.0);
        return 1.0;
    };
    let top = _mm512_set1_ps(*max);
    let mut total = _mm256_setzero_ps();
    for (vector, scores) in vectors.into_iter().zip(scores.as_chunks_mut::<LANES>().0) {
        let e = exp(_mm512_sub_ps(vector, top));
        let [first, second] = halves(e);
        total = _mm256_add_ps(_mm256_add_ps(total, first), second);
        // SAFETY: sixteen numbers.
        unsafe { _mm512_storeu_ps(scores.as_mut_ptr(), e) };
    }
    *sum = *sum * rescale + add_lanes(softmax_avx2::lanes(total));
    rescale
}

/// # Safety
/// AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn quantise(
    scores: &Scores,
    units: &[f32; TILE_KEYS],
    limit: f32,
    weights: &mut Weights,
) -> f32 {
    let mut scaled = load(scores);
    let mut sizes = scaled;
    for ((scaled, size), unit) in scaled.iter_mut().zip(&mut sizes).zip(load(units)) {
        *scaled = _mm512_mul_ps(*scaled, unit);
        *size = _mm512_abs_ps(*scaled);
    }
    let most = largest(&sizes, 0.0);
    let inverse = _mm512_set1_ps(if most > 0.0 { limit / most } else { 0.0 });
    let rounder = _mm512_set1_ps(super::ROUNDER);
    for (scaled, weights) in scaled.into_iter().zip(weights.as_chunks_mut::<LANES>().0) {
        let shifted = _mm512_add_ps(_mm512_mul_ps(scaled, inverse), rounder);
        let codes = _mm512_cvtepi32_epi16(_mm512_castps_si512(shifted));
        // SAFETY: sixteen codes.
        unsafe { _mm256_storeu_si256(weights.as_mut_ptr().cast(), codes) };
    }
    most / limit
}
