//! Softmax for AVX2 and FMA: the operations of the plain loops in their order.

use super::{Scores, TILE_KEYS, Weights, add_lanes, move_max};
use std::arch::x86_64::*;

/// [`crate::math::exp`] of eight numbers that are not above zero.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn exp(x: __m256) -> __m256 {
    let (least, rounder) = (_mm256_set1_ps(-87.0), _mm256_set1_ps(super::ROUNDER));
    let bounded = _mm256_max_ps(least, x);
    let shifted = _mm256_fmadd_ps(bounded, _mm256_set1_ps(std::f32::consts::LOG2_E), rounder);
    let n = _mm256_sub_ps(shifted, rounder);
    let r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0.693_359_4), bounded);
    let r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.121_944_4e-4), r);
    let mut p = _mm256_set1_ps(1.0 / 5040.0);
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c));
    }
    let exponent = _mm256_slli_epi32::<23>(_mm256_castps_si256(shifted));
    let value = _mm256_add_epi32(_mm256_castps_si256(p), exponent);
    _mm256_and_ps(_mm256_castsi256_ps(value), _mm256_cmp_ps::<_CMP_NLT_UQ>(x, least))
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn lanes(x: __m256) -> [f32; 8] {
    let mut lanes = [0.0; 8];
    // SAFETY: eight numbers.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), x) };
    lanes
}

/// The largest of eight.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn largest(x: __m256) -> f32 {
    let four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
}

/// # Safety
/// AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn weigh(scores: &mut Scores, max: &mut f32, sum: &mut f32) -> f32 {
    // SAFETY: `at + 8 <= TILE_KEYS`, here and below.
    let load = |scores: &Scores, at: usize| unsafe { _mm256_loadu_ps(scores.as_ptr().add(at)) };
    let mut tops = [_mm256_set1_ps(f32::NEG_INFINITY); 2];
    for at in (0..TILE_KEYS).step_by(16) {
        tops = [
            _mm256_max_ps(load(scores, at), tops[0]),
            _mm256_max_ps(load(scores, at + 8), tops[1]),
        ];
    }
    let Some(rescale) = move_max(largest(_mm256_max_ps(tops[0], tops[1])), max) else {
        scores.fill(0.0);
        return 1.0;
    };
    let top = _mm256_set1_ps(*max);
    let mut total = _mm256_setzero_ps();
    for at in (0..TILE_KEYS).step_by(8) {
        let e = exp(_mm256_sub_ps(load(scores, at), top));
        total = _mm256_add_ps(total, e);
        // SAFETY: as above.
        unsafe { _mm256_storeu_ps(scores.as_mut_ptr().add(at), e) };
    }
    *sum = *sum * rescale + add_lanes(lanes(total));
    rescale
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn quantise(
    scores: &Scores,
    units: &[f32; TILE_KEYS],
    limit: f32,
    weights: &mut Weights,
) -> f32 {
    // SAFETY: `at + 8 <= TILE_KEYS`.
    let scaled = |at: usize| unsafe {
        _mm256_mul_ps(
            _mm256_loadu_ps(scores.as_ptr().add(at)),
            _mm256_loadu_ps(units.as_ptr().add(at)),
        )
    };
    let sign = _mm256_set1_ps(-0.0);
    let mut tops = [_mm256_setzero_ps(); 2];
    for at in (0..TILE_KEYS).step_by(16) {
        tops = [
            _mm256_max_ps(_mm256_andnot_ps(sign, scaled(at)), tops[0]),
            _mm256_max_ps(_mm256_andnot_ps(sign, scaled(at + 8)), tops[1]),
        ];
    }
    let most = largest(_mm256_max_ps(tops[0], tops[1]));
    let inverse = _mm256_set1_ps(if most > 0.0 { limit / most } else { 0.0 });
    let (rounder, low) = (_mm256_set1_ps(super::ROUNDER), _mm256_set1_epi32(0xffff));
    let code = |at: usize| {
        let shifted = _mm256_add_ps(_mm256_mul_ps(scaled(at), inverse), rounder);
        _mm256_and_si256(_mm256_castps_si256(shifted), low)
    };
    for at in (0..TILE_KEYS).step_by(16) {
        let codes = _mm256_packus_epi32(code(at), code(at + 8));
        let codes = _mm256_permute4x64_epi64::<0b1101_1000>(codes);
        // SAFETY: `at + 16 <= TILE_KEYS`.
        unsafe { _mm256_storeu_si256(weights.as_mut_ptr().add(at).cast(), codes) };
    }
    most / limit
}
