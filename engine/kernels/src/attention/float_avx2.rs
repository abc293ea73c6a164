//! The float kernels for AVX2, FMA and F16C: the same sums in the same order as the plain loops.

use super::{ROWS, TILE_KEYS};
use std::arch::x86_64::*;

/// # Safety
/// AVX2 and F16C; `to` at least as long as `from`.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn load_values(from: &[u16], to: &mut [f32]) {
    let whole = from.len() / 8 * 8;
    for i in (0..whole).step_by(8) {
        // SAFETY: i + 8 <= from.len() <= to.len().
        unsafe {
            let eight = _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().add(i).cast()));
            _mm256_storeu_ps(to.as_mut_ptr().add(i), eight);
        }
    }
    super::load_values_body(&from[whole..], &mut to[whole..]);
}

/// # Safety
/// AVX2 and F16C; `from` holds whole rows of `dim` (a multiple of 8), `to` holds `dim * TILE_KEYS`.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn load_keys(from: &[u16], dim: usize, to: &mut [f32]) {
    let rows = from.len() / dim;
    for j in (0..rows).step_by(8) {
        for d in (0..dim).step_by(8) {
            // SAFETY: rows past the end read the last row again; j + 8 <= TILE_KEYS, d + 8 <= dim.
            unsafe {
                let row = |i: usize| {
                    let at = (j + i).min(rows - 1) * dim + d;
                    _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().add(at).cast()))
                };
                let turned = transpose([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)]);
                for (i, column) in turned.into_iter().enumerate() {
                    _mm256_storeu_ps(to.as_mut_ptr().add((d + i) * TILE_KEYS + j), column);
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn transpose(r: [__m256; 8]) -> [__m256; 8] {
    let (a0, a1) = (_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
    let (a2, a3) = (_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
    let (a4, a5) = (_mm256_unpacklo_ps(r[4], r[5]), _mm256_unpackhi_ps(r[4], r[5]));
    let (a6, a7) = (_mm256_unpacklo_ps(r[6], r[7]), _mm256_unpackhi_ps(r[6], r[7]));
    let (b0, b1) = (
        _mm256_shuffle_ps::<0x44>(a0, a2),
        _mm256_shuffle_ps::<0xee>(a0, a2),
    );
    let (b2, b3) = (
        _mm256_shuffle_ps::<0x44>(a1, a3),
        _mm256_shuffle_ps::<0xee>(a1, a3),
    );
    let (b4, b5) = (
        _mm256_shuffle_ps::<0x44>(a4, a6),
        _mm256_shuffle_ps::<0xee>(a4, a6),
    );
    let (b6, b7) = (
        _mm256_shuffle_ps::<0x44>(a5, a7),
        _mm256_shuffle_ps::<0xee>(a5, a7),
    );
    [
        _mm256_permute2f128_ps::<0x20>(b0, b4),
        _mm256_permute2f128_ps::<0x20>(b1, b5),
        _mm256_permute2f128_ps::<0x20>(b2, b6),
        _mm256_permute2f128_ps::<0x20>(b3, b7),
        _mm256_permute2f128_ps::<0x31>(b0, b4),
        _mm256_permute2f128_ps::<0x31>(b1, b5),
        _mm256_permute2f128_ps::<0x31>(b2, b6),
        _mm256_permute2f128_ps::<0x31>(b3, b7),
    ]
}

/// # Safety
/// AVX2 and FMA; lengths as `super::scores` checks them.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn scores(rows: usize, queries: &[f32], keys: &[f32], dim: usize, out: &mut [f32]) {
    // SAFETY: passed on.
    unsafe { by_rows!(rows, scores_of(queries, keys, dim, out)) }
}

/// # Safety
/// AVX2 and FMA; lengths as `super::accumulate` checks them.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn accumulate(
    rows: usize,
    weights: &[f32],
    tile: &[f32],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    // SAFETY: passed on.
    unsafe { by_rows!(rows, accumulate_of(weights, tile, dim, count, rescale, values)) }
}

/// # Safety
/// AVX2 and FMA; lengths as `super::scores` checks them.
#[target_feature(enable = "avx2,fma")]
unsafe fn scores_of<const ROWS_NOW: usize>(queries: &[f32], keys: &[f32], dim: usize, out: &mut [f32]) {
    for j in (0..TILE_KEYS).step_by(16) {
        // SAFETY: d < dim, t < ROWS_NOW <= ROWS, j + 16 <= TILE_KEYS.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; ROWS_NOW];
            for d in 0..dim {
                let k = keys.as_ptr().add(d * TILE_KEYS + j);
                let (k0, k1) = (_mm256_loadu_ps(k), _mm256_loadu_ps(k.add(8)));
                for (t, sum) in sums.iter_mut().enumerate() {
                    let q = _mm256_broadcast_ss(&*queries.as_ptr().add(d * ROWS + t));
                    *sum = [_mm256_fmadd_ps(q, k0, sum[0]), _mm256_fmadd_ps(q, k1, sum[1])];
                }
            }
            for (t, sum) in sums.iter().enumerate() {
                let to = out.as_mut_ptr().add(t * TILE_KEYS + j);
                _mm256_storeu_ps(to, sum[0]);
                _mm256_storeu_ps(to.add(8), sum[1]);
            }
        }
    }
}

/// # Safety
/// AVX2 and FMA; lengths as `super::accumulate` checks them.
#[target_feature(enable = "avx2,fma")]
unsafe fn accumulate_of<const ROWS_NOW: usize>(
    weights: &[f32],
    tile: &[f32],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    for d in (0..dim).step_by(16) {
        // SAFETY: d + 16 <= dim, t < ROWS_NOW <= ROWS, j < count <= TILE_KEYS.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); 2]; ROWS_NOW];
            for (t, sum) in sums.iter_mut().enumerate() {
                let scale = _mm256_set1_ps(rescale[t]);
                let from = values.as_ptr().add(t * dim + d);
                sum[0] = _mm256_mul_ps(_mm256_loadu_ps(from), scale);
                sum[1] = _mm256_mul_ps(_mm256_loadu_ps(from.add(8)), scale);
            }
            for j in 0..count {
                let v = tile.as_ptr().add(j * dim + d);
                let (v0, v1) = (_mm256_loadu_ps(v), _mm256_loadu_ps(v.add(8)));
                for (t, sum) in sums.iter_mut().enumerate() {
                    let w = _mm256_broadcast_ss(&*weights.as_ptr().add(t * TILE_KEYS + j));
                    *sum = [_mm256_fmadd_ps(w, v0, sum[0]), _mm256_fmadd_ps(w, v1, sum[1])];
                }
            }
            for (t, sum) in sums.iter().enumerate() {
                let to = values.as_mut_ptr().add(t * dim + d);
                _mm256_storeu_ps(to, sum[0]);
                _mm256_storeu_ps(to.add(8), sum[1]);
            }
        }
    }
}
