//! Softmax over a tile of scores, one row at a time, with a running maximum and sum.

#[cfg(target_arch = "x86_64")]
#[path = "softmax_avx2.rs"]
mod softmax_avx2;
#[cfg(target_arch = "x86_64")]
#[path = "softmax_avx512.rs"]
mod softmax_avx512;

use super::TILE_KEYS;
use super::integer::{ROUNDER, quantise_row};
use crate::isa::Isa;
use crate::math::{by_level, exp, lane_most};
use std::ops::Range;

/// A row's scores against a tile.
pub(super) type Scores = [f32; TILE_KEYS];
/// A row's weights as integers.
pub(super) type Weights = [i16; TILE_KEYS];

/// Scores of the keys in `seen` become `exp(score - max)`, those of others zero. Moves the maximum and the sum on;
/// returns what earlier results are to be multiplied with.
pub(super) fn weigh(isa: Isa, scores: &mut Scores, seen: Range<usize>, max: &mut f32, sum: &mut f32) -> f32 {
    let seen = seen.start.min(TILE_KEYS)..seen.end.min(TILE_KEYS);
    scores[..seen.start].fill(f32::NEG_INFINITY);
    scores[seen.end.max(seen.start)..].fill(f32::NEG_INFINITY);
    #[cfg(target_arch = "x86_64")]
    match isa {
        // SAFETY: the level implies what the kernel needs.
        Isa::Avx512Vnni => return unsafe { softmax_avx512::weigh(scores, max, sum) },
        // SAFETY: as above.
        Isa::Avx2 => return unsafe { softmax_avx2::weigh(scores, max, sum) },
        _ => {}
    }
    let _ = isa;
    let Some(rescale) = move_max(lane_most(scores), max) else {
        scores.fill(0.0);
        return 1.0;
    };
    let mut lanes = [0.0f32; 8];
    for chunk in scores.as_chunks_mut::<8>().0 {
        for i in 0..8 {
            chunk[i] = exp(chunk[i] - *max);
            lanes[i] += chunk[i];
        }
    }
    *sum = *sum * rescale + add_lanes(lanes);
    rescale
}

/// The new maximum, and the factor for what was summed under the old one; none while no key was seen.
#[inline(always)]
fn move_max(top: f32, max: &mut f32) -> Option<f32> {
    let new = max.max(top);
    if new == f32::NEG_INFINITY {
        return None;
    }
    let rescale = if new == *max { 1.0 } else { exp(*max - new) };
    *max = new;
    Some(rescale)
}

/// Eight lanes pairwise, as registers are halved.
#[inline(always)]
fn add_lanes(lanes: [f32; 8]) -> f32 {
    let four = [0, 1, 2, 3].map(|i| lanes[i] + lanes[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// The first `count` weights times the values' units, to integers of at most `limit`; those of other keys are zero,
/// whatever stands in their place. Returns what a unit of the integers is worth.
pub(super) fn quantise(
    isa: Isa,
    scores: &Scores,
    units: &[f32; TILE_KEYS],
    count: usize,
    limit: f32,
    weights: &mut Weights,
) -> f32 {
    let mut whole;
    let units = if count < TILE_KEYS {
        whole = *units;
        whole[count..].fill(0.0);
        &whole
    } else {
        units
    };
    #[cfg(target_arch = "x86_64")]
    match isa {
        // SAFETY: the level implies what the kernel needs.
        Isa::Avx512Vnni => return unsafe { softmax_avx512::quantise(scores, units, limit, weights) },
        // SAFETY: as above.
        Isa::Avx2 => return unsafe { softmax_avx2::quantise(scores, units, limit, weights) },
        _ => {}
    }
    let scaled: Scores = std::array::from_fn(|key| scores[key] * units[key]);
    quantise_row(isa, &scaled, limit, weights)
}

#[inline(always)]
fn add_shares_body(scores: &[f32], max: f32, scale: f32, received: &mut [f32]) {
    for (received, score) in received.iter_mut().zip(scores) {
        *received += exp(score - max) * scale;
    }
}

by_level! {
    /// Adds `exp(score - max) * scale` of each score: what a row whose softmax is known gives to the keys.
    add_shares(scores: &[f32], max: f32, scale: f32, received: &mut [f32]) => add_shares_body
}
