//! The integer kernels for AVX2.

use super::{ROWS, TILE_KEYS};
use crate::kv::tq4::Codebook;
use std::arch::x86_64::*;

/// The low and the high bytes of the sixteen codes, as tables for a byte shuffle.
#[target_feature(enable = "avx2")]
fn tables(book: &Codebook) -> (__m256i, __m256i) {
    let (mut low, mut high) = ([0u8; 16], [0u8; 16]);
    for ((low, high), code) in low.iter_mut().zip(&mut high).zip(book.codes) {
        [*low, *high] = code.to_le_bytes();
    }
    // SAFETY: sixteen bytes each.
    let load =
        |bytes: &[u8; 16]| unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast())) };
    (load(&low), load(&high))
}

/// # Safety
/// AVX and F16C.
#[target_feature(enable = "avx,f16c")]
pub(super) unsafe fn convert_units(halves: &[u8; 2 * TILE_KEYS], unit: f32, units: &mut [f32; TILE_KEYS]) {
    for at in (0..TILE_KEYS).step_by(8) {
        // SAFETY: eight of each at `at`.
        unsafe {
            let eight = _mm_loadu_si128(halves.as_ptr().add(2 * at).cast());
            let eight = _mm256_mul_ps(_mm256_cvtph_ps(eight), _mm256_set1_ps(unit));
            _mm256_storeu_ps(units.as_mut_ptr().add(at), eight);
        }
    }
}

/// Thirty-two four-bit indexes to codes: of the low eight bytes of each half, and of the high eight.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up((low, high): (__m256i, __m256i), index: __m256i) -> (__m256i, __m256i) {
    let (l, h) = (_mm256_shuffle_epi8(low, index), _mm256_shuffle_epi8(high, index));
    (_mm256_unpacklo_epi8(l, h), _mm256_unpackhi_epi8(l, h))
}

/// Stores codes of two rows of 32 side by side: one of the first, one of the second, and so on.
///
/// # Safety
/// AVX2; 64 codes can be written at `to`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_pairs(to: *mut i16, first: (__m256i, __m256i), second: (__m256i, __m256i)) {
    // SAFETY: four times sixteen codes.
    unsafe {
        _mm256_storeu_si256(to.cast(), _mm256_unpacklo_epi16(first.0, second.0));
        _mm256_storeu_si256(to.add(16).cast(), _mm256_unpackhi_epi16(first.0, second.0));
        _mm256_storeu_si256(to.add(32).cast(), _mm256_unpacklo_epi16(first.1, second.1));
        _mm256_storeu_si256(to.add(48).cast(), _mm256_unpackhi_epi16(first.1, second.1));
    }
}

/// # Safety
/// AVX2; lengths as `super::expand_keys` checks them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn expand_keys_tq4(book: &Codebook, tile: &[u8], dim: usize, codes: &mut [i16]) {
    let tables = tables(book);
    let mask = _mm256_set1_epi8(15);
    for block in 0..dim / 2 * (TILE_KEYS / 32) {
        // SAFETY: 32 bytes and 64 codes a block, as many blocks as there are.
        unsafe {
            let bytes = _mm256_loadu_si256(tile.as_ptr().add(block * 32).cast());
            let even = _mm256_and_si256(bytes, mask);
            let odd = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask);
            store_pairs(
                codes.as_mut_ptr().add(block * 64),
                look_up(tables, even),
                look_up(tables, odd),
            );
        }
    }
}

/// # Safety
/// AVX2; lengths as `super::expand_keys` checks them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn expand_keys_q8(tile: &[u8], dim: usize, codes: &mut [i16]) {
    for at in (0..dim * TILE_KEYS).step_by(16) {
        // SAFETY: 16 bytes and 16 codes at `at`, of `dim * TILE_KEYS` each.
        unsafe {
            let bytes = _mm_loadu_si128(tile.as_ptr().add(at).cast());
            _mm256_storeu_si256(codes.as_mut_ptr().add(at).cast(), _mm256_cvtepi8_epi16(bytes));
        }
    }
}

/// # Safety
/// AVX2; lengths as `super::expand_values` checks them; `dim` is a multiple of 32.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn expand_values_tq4(
    book: &Codebook,
    tile: &[u8],
    dim: usize,
    count: usize,
    codes: &mut [i16],
) {
    let tables = tables(book);
    let mask = _mm256_set1_epi8(15);
    let shift = _mm256_set_epi64x(4, 4, 0, 0);
    for pair in 0..count.div_ceil(2) {
        for block in 0..dim / 32 {
            // SAFETY: 16 bytes of each of two positions and 64 codes a block; the tile has an even number of positions.
            unsafe {
                let index = |position: usize| {
                    let from = tile.as_ptr().add(position * dim / 2 + block * 16);
                    let both = _mm256_broadcastsi128_si256(_mm_loadu_si128(from.cast()));
                    _mm256_and_si256(_mm256_srlv_epi64(both, shift), mask)
                };
                let to = codes.as_mut_ptr().add(pair * 2 * dim + block * 64);
                let (first, second) = (index(2 * pair), index(2 * pair + 1));
                store_pairs(to, look_up(tables, first), look_up(tables, second));
            }
        }
    }
}

/// # Safety
/// AVX2; lengths as `super::expand_values` checks them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn expand_values_q8(tile: &[u8], dim: usize, count: usize, codes: &mut [i16]) {
    for pair in 0..count.div_ceil(2) {
        for d in (0..dim).step_by(16) {
            // SAFETY: 16 bytes of each of two positions and 32 codes; the tile has an even number of positions.
            unsafe {
                let from = tile.as_ptr().add(2 * pair * dim + d);
                let a = _mm_loadu_si128(from.cast());
                let b = _mm_loadu_si128(from.add(dim).cast());
                let to = codes.as_mut_ptr().add((pair * dim + d) * 2);
                _mm256_storeu_si256(to.cast(), _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)));
                _mm256_storeu_si256(to.add(16).cast(), _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b)));
            }
        }
    }
}

/// # Safety
/// AVX2; lengths as `super::scores` checks them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn scores(
    rows: usize,
    queries: &[i16],
    query_units: &[f32],
    keys: &[i16],
    key_units: &[f32; TILE_KEYS],
    dim: usize,
    out: &mut [f32],
) {
    // SAFETY: passed on.
    unsafe { by_rows!(rows, scores_of(queries, query_units, keys, key_units, dim, out)) }
}

/// # Safety
/// AVX2 and FMA; lengths as `super::accumulate` checks them.
#[allow(clippy::too_many_arguments)]
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn accumulate(
    rows: usize,
    weights: &[i16],
    back: &[f32; ROWS],
    tile: &[i16],
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

/// # Safety
/// AVX2; lengths as `super::scores` checks them.
#[target_feature(enable = "avx2")]
unsafe fn scores_of<const ROWS_NOW: usize>(
    queries: &[i16],
    query_units: &[f32],
    keys: &[i16],
    key_units: &[f32; TILE_KEYS],
    dim: usize,
    out: &mut [f32],
) {
    for j in (0..TILE_KEYS).step_by(16) {
        // SAFETY: pair < dim / 2, t < ROWS_NOW <= ROWS, j + 16 <= TILE_KEYS.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; ROWS_NOW];
            for pair in 0..dim / 2 {
                let k = keys.as_ptr().add((pair * TILE_KEYS + j) * 2);
                let k0 = _mm256_loadu_si256(k.cast());
                let k1 = _mm256_loadu_si256(k.add(16).cast());
                for (t, sum) in sums.iter_mut().enumerate() {
                    let q = queries
                        .as_ptr()
                        .add(t * dim + 2 * pair)
                        .cast::<i32>()
                        .read_unaligned();
                    let q = _mm256_set1_epi32(q);
                    *sum = [
                        _mm256_add_epi32(sum[0], _mm256_madd_epi16(q, k0)),
                        _mm256_add_epi32(sum[1], _mm256_madd_epi16(q, k1)),
                    ];
                }
            }
            for (t, sum) in sums.iter().enumerate() {
                let unit = _mm256_set1_ps(query_units[t]);
                let to = out.as_mut_ptr().add(t * TILE_KEYS + j);
                for (half, &sum) in sum.iter().enumerate() {
                    let units = _mm256_mul_ps(_mm256_loadu_ps(key_units.as_ptr().add(j + 8 * half)), unit);
                    _mm256_storeu_ps(to.add(8 * half), _mm256_mul_ps(_mm256_cvtepi32_ps(sum), units));
                }
            }
        }
    }
}

/// # Safety
/// AVX2 and FMA; lengths as `super::accumulate` checks them.
#[target_feature(enable = "avx2,fma")]
unsafe fn accumulate_of<const ROWS_NOW: usize>(
    weights: &[i16],
    back: &[f32; ROWS],
    tile: &[i16],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    for d in (0..dim).step_by(16) {
        // SAFETY: d + 16 <= dim, t < ROWS_NOW <= ROWS, pairs within TILE_KEYS / 2.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; ROWS_NOW];
            for pair in 0..count.div_ceil(2) {
                let v = tile.as_ptr().add((pair * dim + d) * 2);
                let v0 = _mm256_loadu_si256(v.cast());
                let v1 = _mm256_loadu_si256(v.add(16).cast());
                for (t, sum) in sums.iter_mut().enumerate() {
                    let w = weights
                        .as_ptr()
                        .add(t * TILE_KEYS + 2 * pair)
                        .cast::<i32>()
                        .read_unaligned();
                    let w = _mm256_set1_epi32(w);
                    *sum = [
                        _mm256_add_epi32(sum[0], _mm256_madd_epi16(w, v0)),
                        _mm256_add_epi32(sum[1], _mm256_madd_epi16(w, v1)),
                    ];
                }
            }
            for (t, sum) in sums.iter().enumerate() {
                let (scale, back) = (_mm256_set1_ps(rescale[t]), _mm256_set1_ps(back[t]));
                let to = values.as_mut_ptr().add(t * dim + d);
                for (half, &sum) in sum.iter().enumerate() {
                    let to = to.add(8 * half);
                    let old = _mm256_mul_ps(_mm256_loadu_ps(to), scale);
                    _mm256_storeu_ps(to, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), back, old));
                }
            }
        }
    }
}
