//! The integer kernels for AVX2.

use super::{ROWS, TILE_KEYS};
use crate::kv::tq4::Codebook;
use std::arch::x86_64::*;

/// The sixteen codes as a table for a byte shuffle.
#[inline]
#[target_feature(enable = "avx2")]
fn table(book: &Codebook) -> __m256i {
    // SAFETY: sixteen bytes.
    unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(book.codes.as_ptr().cast())) }
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

/// Stores two rows of 32 codes side by side: one of the first, one of the second, and so on, within halves.
///
/// # Safety
/// AVX2; 64 codes can be written at `to`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_pairs(to: *mut i8, first: __m256i, second: __m256i) {
    // SAFETY: twice 32 codes.
    unsafe {
        _mm256_storeu_si256(to.cast(), _mm256_unpacklo_epi8(first, second));
        _mm256_storeu_si256(to.add(32).cast(), _mm256_unpackhi_epi8(first, second));
    }
}

/// # Safety
/// AVX2; lengths as `super::codes_of` checks them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn look_up_keys(book: &Codebook, tile: &[u8], dim: usize, codes: &mut [i8]) {
    let (table, mask) = (table(book), _mm256_set1_epi8(15));
    for block in 0..dim / 2 * (TILE_KEYS / 32) {
        // SAFETY: 32 bytes and 64 codes a block, as many blocks as there are.
        unsafe {
            let bytes = _mm256_loadu_si256(tile.as_ptr().add(block * 32).cast());
            let even = _mm256_and_si256(bytes, mask);
            let odd = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask);
            store_pairs(
                codes.as_mut_ptr().add(block * 64),
                _mm256_shuffle_epi8(table, even),
                _mm256_shuffle_epi8(table, odd),
            );
        }
    }
}

/// # Safety
/// AVX2; lengths as `super::codes_of` checks them; `dim` is a multiple of 32.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn look_up_values(
    book: &Codebook,
    tile: &[u8],
    dim: usize,
    count: usize,
    codes: &mut [i8],
) {
    let (table, mask) = (table(book), _mm256_set1_epi8(15));
    let shift = _mm256_set_epi64x(4, 4, 0, 0);
    for pair in 0..count.div_ceil(2) {
        for block in 0..dim / 32 {
            // SAFETY: 16 bytes of each of two positions and 64 codes a block; the tile has an even number of positions.
            unsafe {
                let codes_of = |position: usize| {
                    let from = tile.as_ptr().add(position * dim / 2 + block * 16);
                    let both = _mm256_broadcastsi128_si256(_mm_loadu_si128(from.cast()));
                    _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srlv_epi64(both, shift), mask))
                };
                let to = codes.as_mut_ptr().add(pair * 2 * dim + block * 64);
                store_pairs(to, codes_of(2 * pair), codes_of(2 * pair + 1));
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
    keys: &[i8],
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

/// Sixteen pairs of codes, and for each row a pair of factors: eight sums for each row and half.
///
/// # Safety
/// AVX2; 32 codes can be read at `codes`, two factors at `factors + row * stride` for each row.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn add_products<const ROWS_NOW: usize>(
    sums: &mut [[__m256i; 2]; ROWS_NOW],
    codes: *const i8,
    factors: *const i16,
    stride: usize,
) {
    // SAFETY: by contract.
    unsafe {
        let low = _mm256_cvtepi8_epi16(_mm_loadu_si128(codes.cast()));
        let high = _mm256_cvtepi8_epi16(_mm_loadu_si128(codes.add(16).cast()));
        for (t, sum) in sums.iter_mut().enumerate() {
            let pair = _mm256_set1_epi32(factors.add(t * stride).cast::<i32>().read_unaligned());
            *sum = [
                _mm256_add_epi32(sum[0], _mm256_madd_epi16(pair, low)),
                _mm256_add_epi32(sum[1], _mm256_madd_epi16(pair, high)),
            ];
        }
    }
}

/// # Safety
/// AVX2; lengths as `super::scores` checks them.
#[target_feature(enable = "avx2")]
unsafe fn scores_of<const ROWS_NOW: usize>(
    queries: &[i16],
    query_units: &[f32],
    keys: &[i8],
    key_units: &[f32; TILE_KEYS],
    dim: usize,
    out: &mut [f32],
) {
    for j in (0..TILE_KEYS).step_by(16) {
        // SAFETY: pair + 1 < dim / 2, t < ROWS_NOW <= ROWS, j + 16 <= TILE_KEYS.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; ROWS_NOW];
            let (mut k, mut q) = (keys.as_ptr().add(2 * j), queries.as_ptr());
            for _ in 0..dim / 4 {
                add_products(&mut sums, k, q, dim);
                add_products(&mut sums, k.add(2 * TILE_KEYS), q.add(2), dim);
                (k, q) = (k.add(4 * TILE_KEYS), q.add(4));
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
    tile: &[i8],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    let pairs = count.div_ceil(2);
    for d in (0..dim).step_by(16) {
        // SAFETY: d + 16 <= dim, t < ROWS_NOW <= ROWS, pairs within TILE_KEYS / 2.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; ROWS_NOW];
            let (mut v, mut w) = (tile.as_ptr().add(2 * d), weights.as_ptr());
            for _ in 0..pairs / 2 {
                add_products(&mut sums, v, w, TILE_KEYS);
                add_products(&mut sums, v.add(2 * dim), w.add(2), TILE_KEYS);
                (v, w) = (v.add(4 * dim), w.add(4));
            }
            if pairs % 2 == 1 {
                add_products(&mut sums, v, w, TILE_KEYS);
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
