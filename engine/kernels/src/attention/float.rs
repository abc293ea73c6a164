//! Tiles in half precision: brought to f32, then multiplied and summed there.

#[cfg(target_arch = "x86_64")]
#[path = "float_avx2.rs"]
mod float_avx2;
#[cfg(target_arch = "aarch64")]
#[path = "neon.rs"]
mod neon;

use super::{ROWS, TILE_KEYS};
use crate::half::f16_to_f32;
use crate::isa::Isa;
use crate::math::by_level;

#[inline(always)]
fn load_values_body(from: &[u16], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f16_to_f32(from);
    }
}

by_level! {
    /// `[position][dimension]` to f32.
    load_values_plain(from: &[u16], to: &mut [f32]) => load_values_body
}

pub(super) fn load_values(isa: Isa, from: &[u16], to: &mut [f32]) {
    assert!(from.len() <= to.len());
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies F16C; lengths were checked.
        return unsafe { float_avx2::load_values(from, to) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa == Isa::NeonDot {
        // SAFETY: every machine of this architecture has NEON; lengths were checked.
        return unsafe { neon::load_values(from, to) };
    }
    load_values_plain(isa, from, to);
}

/// `[position][dimension]` to f32 `[dimension][TILE_KEYS]`; positions past the end keep finite leftovers or zeros.
pub(super) fn load_keys(isa: Isa, from: &[u16], dim: usize, to: &mut [f32]) {
    assert!(from.len() <= TILE_KEYS * dim && to.len() >= TILE_KEYS * dim && from.len().is_multiple_of(dim));
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2 and F16C; lengths were checked.
        return unsafe { float_avx2::load_keys(from, dim, to) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa == Isa::NeonDot {
        // SAFETY: every machine of this architecture has NEON; lengths were checked.
        return unsafe { neon::load_keys(from, dim, to) };
    }
    let _ = isa;
    for (j, row) in from.chunks_exact(dim).enumerate() {
        for (d, &value) in row.iter().enumerate() {
            to[d * TILE_KEYS + j] = f16_to_f32(value);
        }
    }
}

/// The first `rows` of six queries times a tile of keys.
pub(super) fn scores(isa: Isa, rows: usize, queries: &[f32], keys: &[f32], dim: usize, out: &mut [f32]) {
    assert!(queries.len() == ROWS * dim && keys.len() >= TILE_KEYS * dim && out.len() == ROWS * TILE_KEYS);
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2 and FMA; lengths were checked.
        return unsafe { float_avx2::scores(rows, queries, keys, dim, out) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa == Isa::NeonDot {
        // SAFETY: every machine of this architecture has NEON; lengths were checked.
        return unsafe { neon::scores(queries, keys, dim, out) };
    }
    let _ = isa;
    for t in 0..rows.min(ROWS) {
        for j in 0..TILE_KEYS {
            let mut sum = 0.0f32;
            for d in 0..dim {
                sum = queries[d * ROWS + t].mul_add(keys[d * TILE_KEYS + j], sum);
            }
            out[t * TILE_KEYS + j] = sum;
        }
    }
}

/// `values = values * rescale + weights * tile`.
#[allow(clippy::too_many_arguments)]
pub(super) fn accumulate(
    isa: Isa,
    rows: usize,
    weights: &[f32],
    tile: &[f32],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    assert!(weights.len() == ROWS * TILE_KEYS && tile.len() >= count * dim && values.len() == ROWS * dim);
    assert!(count <= TILE_KEYS && dim.is_multiple_of(16));
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2 and FMA; lengths were checked.
        return unsafe { float_avx2::accumulate(rows, weights, tile, dim, count, rescale, values) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa == Isa::NeonDot {
        // SAFETY: every machine of this architecture has NEON; lengths were checked.
        return unsafe { neon::accumulate(weights, tile, dim, count, rescale, values) };
    }
    let _ = isa;
    for t in 0..rows.min(ROWS) {
        for d in 0..dim {
            let mut sum = values[t * dim + d] * rescale[t];
            for j in 0..count {
                sum = weights[t * TILE_KEYS + j].mul_add(tile[j * dim + d], sum);
            }
            values[t * dim + d] = sum;
        }
    }
}
