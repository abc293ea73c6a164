//! Tiles in eight or four bits: scores and sums over values as integer dot products.
//!
//! Queries and weights are brought to sixteen bits, as many of them as sums of 32 bits allow, so that rounding them
//! costs no more than half precision would. Integer sums are the same in every order, which makes every level, block
//! size and number of threads agree to the last bit.

#[cfg(target_arch = "x86_64")]
#[path = "integer_avx2.rs"]
mod integer_avx2;

use super::{ROWS, TILE_KEYS};
use crate::half::f16_to_f32;
use crate::isa::Isa;
use crate::kv::tq4::{Codebook, MOST_CODE};
use crate::kv::{KvFormat, key_slot, value_dims};
use crate::math::by_level;

/// Added to a small number, it leaves the nearest integer in the low bits of the sum.
const ROUNDER: f32 = 12_582_912.0;

const fn most_code(format: KvFormat) -> i64 {
    match format {
        KvFormat::Tq4 => MOST_CODE as i64,
        _ => 127,
    }
}

/// The largest integer a factor may have when `terms` products with codes are summed in 32 bits.
const fn limit(format: KvFormat, terms: usize) -> f32 {
    let most = i32::MAX as i64 / (terms as i64 * most_code(format));
    (if most < i16::MAX as i64 {
        most
    } else {
        i16::MAX as i64
    }) as f32
}

/// Query values to integers; returns what one unit is worth.
pub(super) fn quantise_query(isa: Isa, format: KvFormat, query: &[f32], codes: &mut [i16]) -> f32 {
    quantise_row(isa, query, limit(format, query.len()), codes)
}

#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    for chunk in values.as_chunks::<16>().0 {
        for i in 0..16 {
            let size = chunk[i].abs();
            lanes[i] = if size > lanes[i] { size } else { lanes[i] };
        }
    }
    lanes.iter().fold(0.0f32, |m, &v| if v > m { v } else { m })
}

#[inline(always)]
fn quantise_row_body(values: &[f32], limit: f32, codes: &mut [i16]) -> f32 {
    let most = largest(values);
    let inverse = if most > 0.0 { limit / most } else { 0.0 };
    for (code, &value) in codes.iter_mut().zip(values) {
        *code = (value * inverse + ROUNDER).to_bits() as i16;
    }
    most / limit
}

by_level! {
    /// See the body.
    quantise_row(values: &[f32], limit: f32, codes: &mut [i16]) -> f32 => quantise_row_body
}

/// Weights times the values' units, to integers: `[row][TILE_KEYS]`; `back` is what a unit is worth. Keys from
/// `count` on have weight zero, whatever stands in their place.
#[inline(always)]
fn quantise_weights_body(
    rows: usize,
    scores: &[f32],
    units: &[f32; TILE_KEYS],
    count: usize,
    limit: f32,
    weights: &mut [i16],
    back: &mut [f32; ROWS],
) {
    let rows_of = scores.as_chunks::<TILE_KEYS>().0.iter();
    let weights_of = weights.as_chunks_mut::<TILE_KEYS>().0.iter_mut();
    for ((scores, weights), back) in rows_of.zip(weights_of).zip(back).take(rows) {
        let mut scaled = [0.0; TILE_KEYS];
        for j in 0..TILE_KEYS {
            scaled[j] = scores[j] * units[j];
        }
        scaled[count..].fill(0.0);
        *back = quantise_row_body(&scaled, limit, weights);
    }
}

by_level! {
    /// See the body.
    quantise_weights_to(rows: usize, scores: &[f32], units: &[f32; TILE_KEYS], count: usize, limit: f32,
        weights: &mut [i16], back: &mut [f32; ROWS]) => quantise_weights_body
}

/// See [`quantise_weights_to`].
#[allow(clippy::too_many_arguments)]
pub(super) fn quantise_weights(
    isa: Isa,
    format: KvFormat,
    rows: usize,
    scores: &[f32],
    units: &[f32; TILE_KEYS],
    count: usize,
    weights: &mut [i16],
    back: &mut [f32; ROWS],
) {
    assert!(rows <= ROWS && count <= TILE_KEYS);
    quantise_weights_to(
        isa,
        rows,
        scores,
        units,
        count,
        limit(format, TILE_KEYS),
        weights,
        back,
    );
}

/// A tile's scales or norms as numbers, in units of its codes.
fn units_of(isa: Isa, format: KvFormat, tile: &[u8], dim: usize, units: &mut [f32; TILE_KEYS]) {
    let unit = match format {
        KvFormat::Tq4 => Codebook::of(dim).map_or(0.0, |book| book.unit),
        _ => 1.0,
    };
    let halves: &[u8; 2 * TILE_KEYS] = tile[format.units_at(dim)..][..2 * TILE_KEYS]
        .try_into()
        .unwrap_or(&[0; 2 * TILE_KEYS]);
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX and F16C.
        return unsafe { integer_avx2::convert_units(halves, unit, units) };
    }
    convert_units(isa, halves, unit, units);
}

#[inline(always)]
fn convert_units_body(halves: &[u8; 2 * TILE_KEYS], unit: f32, units: &mut [f32; TILE_KEYS]) {
    for (to, half) in units.iter_mut().zip(halves.as_chunks::<2>().0) {
        *to = f16_to_f32(u16::from_ne_bytes(*half)) * unit;
    }
}

by_level! {
    /// See the body.
    convert_units(halves: &[u8; 2 * TILE_KEYS], unit: f32, units: &mut [f32; TILE_KEYS]) => convert_units_body
}

/// A tile of keys to `[dim / 2][TILE_KEYS][2]` codes.
pub(super) fn expand_keys(
    isa: Isa,
    format: KvFormat,
    tile: &[u8],
    dim: usize,
    codes: &mut [i16],
    units: &mut [f32; TILE_KEYS],
) {
    assert!(tile.len() == format.tile_bytes(dim) && codes.len() >= dim * TILE_KEYS && dim.is_multiple_of(16));
    units_of(isa, format, tile, dim, units);
    let book = Codebook::of(dim);
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2; lengths were checked.
        return unsafe {
            match (format, book) {
                (KvFormat::Tq4, Some(book)) => integer_avx2::expand_keys_tq4(book, tile, dim, codes),
                _ => integer_avx2::expand_keys_q8(tile, dim, codes),
            }
        };
    }
    let pairs = codes[..dim * TILE_KEYS]
        .as_chunks_mut::<{ 2 * TILE_KEYS }>()
        .0
        .iter_mut();
    for (pair, codes) in pairs.enumerate() {
        for (position, to) in codes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            *to = match (format, book) {
                (KvFormat::Tq4, Some(book)) => {
                    let byte = tile[pair * TILE_KEYS + key_slot(position)];
                    [
                        book.codes[usize::from(byte & 15)],
                        book.codes[usize::from(byte >> 4)],
                    ]
                }
                _ => {
                    let at = (pair * TILE_KEYS + position) * 2;
                    [i16::from(tile[at] as i8), i16::from(tile[at + 1] as i8)]
                }
            };
        }
    }
}

/// The first `count` values of a tile to `[TILE_KEYS / 2][dim][2]` codes, pairs of positions.
pub(super) fn expand_values(
    isa: Isa,
    format: KvFormat,
    tile: &[u8],
    dim: usize,
    count: usize,
    codes: &mut [i16],
    units: &mut [f32; TILE_KEYS],
) {
    assert!(tile.len() == format.tile_bytes(dim) && codes.len() >= dim * TILE_KEYS && dim.is_multiple_of(16));
    assert!(count <= TILE_KEYS);
    units_of(isa, format, tile, dim, units);
    let book = Codebook::of(dim);
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2; lengths were checked.
        return unsafe {
            match (format, book) {
                (KvFormat::Tq4, Some(book)) => integer_avx2::expand_values_tq4(book, tile, dim, count, codes),
                _ => integer_avx2::expand_values_q8(tile, dim, count, codes),
            }
        };
    }
    for (pair, codes) in codes
        .chunks_exact_mut(2 * dim)
        .take(count.div_ceil(2))
        .enumerate()
    {
        for side in 0..2 {
            let position = 2 * pair + side;
            match (format, book) {
                (KvFormat::Tq4, Some(book)) => {
                    let bytes = &tile[position * dim / 2..][..dim / 2];
                    for (byte, &value) in bytes.iter().enumerate() {
                        let (low, high) = value_dims(byte);
                        codes[2 * low + side] = book.codes[usize::from(value & 15)];
                        codes[2 * high + side] = book.codes[usize::from(value >> 4)];
                    }
                }
                _ => {
                    let bytes = &tile[position * dim..][..dim];
                    for (d, &value) in bytes.iter().enumerate() {
                        codes[2 * d + side] = i16::from(value as i8);
                    }
                }
            }
        }
    }
}

/// The first `rows` of six queries `[row][dim]` times a tile of keys: `scores[row][key] = dot * key unit * query unit`.
#[allow(clippy::too_many_arguments)]
pub(super) fn scores(
    isa: Isa,
    rows: usize,
    queries: &[i16],
    query_units: &[f32],
    keys: &[i16],
    key_units: &[f32; TILE_KEYS],
    dim: usize,
    out: &mut [f32],
) {
    assert!(queries.len() == ROWS * dim && keys.len() >= TILE_KEYS * dim && out.len() == ROWS * TILE_KEYS);
    assert!(query_units.len() == ROWS && dim.is_multiple_of(2) && rows <= ROWS);
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2; lengths were checked.
        return unsafe { integer_avx2::scores(rows, queries, query_units, keys, key_units, dim, out) };
    }
    let _ = isa;
    for t in 0..rows {
        let query = queries[t * dim..(t + 1) * dim].as_chunks::<2>().0;
        for j in 0..TILE_KEYS {
            let mut sum = 0i32;
            for (pair, &[a, b]) in query.iter().enumerate() {
                let at = (pair * TILE_KEYS + j) * 2;
                sum = sum
                    .wrapping_add(i32::from(a) * i32::from(keys[at]))
                    .wrapping_add(i32::from(b) * i32::from(keys[at + 1]));
            }
            out[t * TILE_KEYS + j] = sum as f32 * (key_units[j] * query_units[t]);
        }
    }
}

/// `values = values * rescale + weights * tile * back`, over the first `count` keys.
#[allow(clippy::too_many_arguments)]
pub(super) fn accumulate(
    isa: Isa,
    rows: usize,
    weights: &[i16],
    back: &[f32; ROWS],
    tile: &[i16],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    assert!(weights.len() == ROWS * TILE_KEYS && tile.len() >= dim * TILE_KEYS && values.len() == ROWS * dim);
    assert!(count <= TILE_KEYS && dim.is_multiple_of(16) && rows <= ROWS);
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2 and FMA; lengths were checked.
        return unsafe { integer_avx2::accumulate(rows, weights, back, tile, dim, count, rescale, values) };
    }
    let _ = isa;
    for t in 0..rows {
        let weights = weights[t * TILE_KEYS..][..TILE_KEYS].as_chunks::<2>().0;
        for d in 0..dim {
            let mut sum = 0i32;
            for (pair, &[a, b]) in weights.iter().take(count.div_ceil(2)).enumerate() {
                let at = (pair * dim + d) * 2;
                sum = sum
                    .wrapping_add(i32::from(a) * i32::from(tile[at]))
                    .wrapping_add(i32::from(b) * i32::from(tile[at + 1]));
            }
            let value = &mut values[t * dim + d];
            *value = (sum as f32).mul_add(back[t], *value * rescale[t]);
        }
    }
}
