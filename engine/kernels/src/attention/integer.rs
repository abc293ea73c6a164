//! Tiles in eight or four bits: scores and sums over values as integer dot products.
//!
//! Codes have eight bits in both formats; queries and weights are brought to fifteen, so that rounding them costs no
//! more than half precision would. Integer sums are the same in every order, which makes every level, block size and
//! number of threads agree to the last bit.

#[cfg(target_arch = "x86_64")]
#[path = "integer_avx2.rs"]
mod integer_avx2;
#[cfg(target_arch = "x86_64")]
#[path = "integer_avx512.rs"]
mod integer_avx512;

use super::{ROWS, TILE_KEYS};
use crate::half::f16_to_f32;
use crate::isa::Isa;
use crate::kv::tq4::{Codebook, MOST_CODE, Side};
use crate::kv::{KvFormat, key_slot, value_dims};
use crate::math::by_level;

/// Added to a small number, it leaves the nearest integer in the low bits of the sum.
pub(super) const ROUNDER: f32 = 12_582_912.0;

/// The largest integer a factor may have when `terms` products with codes are summed in 32 bits.
pub(super) const fn limit(terms: usize) -> f32 {
    let most = i32::MAX as i64 / (terms as i64 * MOST_CODE as i64);
    (if most < i16::MAX as i64 {
        most
    } else {
        i16::MAX as i64
    }) as f32
}

#[inline(always)]
fn quantise_row_body(values: &[f32], limit: f32, codes: &mut [i16]) -> f32 {
    let mut lanes = [0.0f32; 16];
    for chunk in values.as_chunks::<16>().0 {
        for i in 0..16 {
            let size = chunk[i].abs();
            lanes[i] = if size > lanes[i] { size } else { lanes[i] };
        }
    }
    let most = lanes.iter().fold(0.0f32, |m, &v| if v > m { v } else { m });
    let inverse = if most > 0.0 { limit / most } else { 0.0 };
    for (code, &value) in codes.iter_mut().zip(values) {
        *code = (value * inverse + ROUNDER).to_bits() as i16;
    }
    most / limit
}

by_level! {
    /// Values to integers of at most `limit`; returns what one unit is worth.
    quantise_row(values: &[f32], limit: f32, codes: &mut [i16]) -> f32 => quantise_row_body
}

/// Query values to integers; returns what one unit is worth.
pub(super) fn quantise_query(isa: Isa, query: &[f32], codes: &mut [i16]) -> f32 {
    quantise_row(isa, query, limit(query.len()), codes)
}

/// A tile's scales or norms as numbers, in units of its codes.
pub(super) fn units_of(isa: Isa, format: KvFormat, tile: &[u8], dim: usize, units: &mut [f32; TILE_KEYS]) {
    assert!(tile.len() == format.tile_bytes(dim) && dim.is_multiple_of(16));
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

/// A tile's eight-bit codes: keys as `[dim / 2][TILE_KEYS][2]`, values as `[TILE_KEYS / 2][dim][2]`. Q8 has them as they
/// are stored; those of TQ4 are looked up into `room`, of values the first `count` positions.
pub(super) fn codes_of<'a>(
    isa: Isa,
    (format, side): (KvFormat, Side),
    tile: &'a [u8],
    dim: usize,
    count: usize,
    room: &'a mut [i8],
) -> &'a [i8] {
    assert!(tile.len() == format.tile_bytes(dim) && room.len() >= dim * TILE_KEYS && count <= TILE_KEYS);
    let (KvFormat::Tq4, Some(book)) = (format, Codebook::of(dim)) else {
        // SAFETY: every byte is a number of eight bits.
        return unsafe { tile[..dim * TILE_KEYS].align_to().1 };
    };
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2; lengths were checked.
        unsafe {
            match side {
                Side::Key => integer_avx2::look_up_keys(book, tile, dim, room),
                Side::Value => integer_avx2::look_up_values(book, tile, dim, count, room),
            }
        }
        return room;
    }
    let _ = isa;
    if side == Side::Key {
        let rows = tile[..dim / 2 * TILE_KEYS].as_chunks::<TILE_KEYS>().0;
        for (row, codes) in rows.iter().zip(room.as_chunks_mut::<{ 2 * TILE_KEYS }>().0) {
            for (position, to) in codes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let byte = row[key_slot(position)];
                *to = [
                    book.codes[usize::from(byte & 15)],
                    book.codes[usize::from(byte >> 4)],
                ];
            }
        }
    } else {
        for position in 0..count {
            let codes = &mut room[position / 2 * 2 * dim..][..2 * dim];
            for (byte, &value) in tile[position * dim / 2..][..dim / 2].iter().enumerate() {
                let (low, high) = value_dims(byte);
                codes[2 * low + position % 2] = book.codes[usize::from(value & 15)];
                codes[2 * high + position % 2] = book.codes[usize::from(value >> 4)];
            }
        }
    }
    room
}

/// The first `rows` of six queries `[row][dim]` times a tile of keys: `scores[row][key] = dot * key unit * query unit`.
#[allow(clippy::too_many_arguments)]
pub(super) fn scores(
    isa: Isa,
    rows: usize,
    queries: &[i16],
    query_units: &[f32],
    keys: &[i8],
    key_units: &[f32; TILE_KEYS],
    dim: usize,
    out: &mut [f32],
) {
    assert!(queries.len() == ROWS * dim && keys.len() >= TILE_KEYS * dim && out.len() == ROWS * TILE_KEYS);
    assert!(query_units.len() == ROWS && dim.is_multiple_of(4) && rows <= ROWS);
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Avx512Vnni => {
            // SAFETY: the level implies what the kernel needs; lengths were checked.
            return unsafe { integer_avx512::scores(rows, queries, query_units, keys, key_units, dim, out) };
        }
        Isa::Avx2 => {
            // SAFETY: as above.
            return unsafe { integer_avx2::scores(rows, queries, query_units, keys, key_units, dim, out) };
        }
        _ => {}
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

/// `values = values * rescale + weights * tile * back`, over the first `count` keys. Weights of other keys are zero.
#[allow(clippy::too_many_arguments)]
pub(super) fn accumulate(
    isa: Isa,
    rows: usize,
    weights: &[i16],
    back: &[f32; ROWS],
    tile: &[i8],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    assert!(weights.len() == ROWS * TILE_KEYS && tile.len() >= dim * TILE_KEYS && values.len() == ROWS * dim);
    assert!(count <= TILE_KEYS && dim.is_multiple_of(16) && rows <= ROWS);
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Avx512Vnni => {
            // SAFETY: the level implies what the kernel needs; lengths were checked.
            return unsafe {
                integer_avx512::accumulate(rows, weights, back, tile, dim, count, rescale, values)
            };
        }
        Isa::Avx2 => {
            // SAFETY: as above.
            return unsafe {
                integer_avx2::accumulate(rows, weights, back, tile, dim, count, rescale, values)
            };
        }
        _ => {}
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
