//! The part of a score that comes from the keys' mean (DESIGN section 5, residual keys).
//!
//! Keys are stored without their mean mu; what is missing from the score of a query q at key position t is
//! `B[t] = q . R(t) mu`, a sum of one cosine and one sine for each rotary pair: with `a = q1 m1 + q2 m2` and
//! `b = q2 m1 - q1 m2`, `B[t] = sum a cos(t theta) + b sin(t theta)`. The coefficients are turned to the beginning of
//! each span of positions, so that one small table of angles within a span serves every layer and head.

use super::{ROWS, TILE_KEYS};
use crate::buffer::Buffer;
use crate::math::RopePairs;

/// Positions in a span.
pub const SPAN: usize = 256;

/// Cosines and sines for one kind of rotary positions.
#[derive(Debug)]
pub struct OffsetTable {
    pairs: usize,
    /// `[tile within the span][cosines of all pairs, then sines][TILE_KEYS]`
    within: Buffer<f32>,
    /// `[span][cosines of all pairs, then sines]`
    starts: Buffer<f32>,
}

impl OffsetTable {
    /// For positions below `positions`; pair i turns by `frequencies[i]` (radians a position).
    pub fn new(frequencies: &[f64], positions: usize) -> OffsetTable {
        let pairs = frequencies.len();
        let spans = positions.div_ceil(SPAN);
        let mut within = Buffer::zeroed(2 * pairs * SPAN);
        let mut starts = Buffer::zeroed(2 * pairs * spans);
        for (i, frequency) in frequencies.iter().enumerate() {
            for position in 0..SPAN {
                let (sin, cos) = (position as f64 * frequency).sin_cos();
                let at = position / TILE_KEYS * 2 * pairs * TILE_KEYS + position % TILE_KEYS;
                within[at + i * TILE_KEYS] = cos as f32;
                within[at + (pairs + i) * TILE_KEYS] = sin as f32;
            }
            for span in 0..spans {
                let (sin, cos) = ((span * SPAN) as f64 * frequency).sin_cos();
                starts[span * 2 * pairs + i] = cos as f32;
                starts[span * 2 * pairs + pairs + i] = sin as f32;
            }
        }
        OffsetTable {
            pairs,
            within,
            starts,
        }
    }

    /// Coefficients of a query: twice the number of pairs.
    pub fn coefficients(&self) -> usize {
        2 * self.pairs
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (self.within.len() + self.starts.len())
    }

    /// Angles of the tile of keys at position `at`, as a tile of "keys" for the coefficients.
    pub(super) fn tile(&self, at: usize) -> &[f32] {
        let len = 2 * self.pairs * TILE_KEYS;
        &self.within[at % SPAN / TILE_KEYS * len..][..len]
    }

    /// Turns the coefficients of six queries, `[coefficient][6]`, to the beginning of the span at position `at`.
    pub(super) fn turn(&self, at: usize, from: &[f32], to: &mut [f32]) {
        let row = &self.starts[at / SPAN * 2 * self.pairs..][..2 * self.pairs];
        let (cos, sin) = row.split_at(self.pairs);
        let (a, b) = from[..2 * self.pairs * ROWS].split_at(self.pairs * ROWS);
        let (to_a, to_b) = to[..2 * self.pairs * ROWS].split_at_mut(self.pairs * ROWS);
        for (i, (c, s)) in cos.iter().zip(sin).enumerate() {
            for t in i * ROWS..(i + 1) * ROWS {
                to_a[t] = a[t] * c + b[t] * s;
                to_b[t] = b[t] * c - a[t] * s;
            }
        }
    }
}

/// How one head's keys differ from what is stored.
#[derive(Debug, Clone, Copy)]
pub struct Residual<'a> {
    /// What was taken from keys before their rotation, `[dim]`.
    pub mean: &'a [f32],
    /// What they were divided by then, `[dim]`, equal within a rotary pair.
    pub scale: &'a [f32],
    /// How values pair up.
    pub pairs: RopePairs,
    /// Angles of this layer's rotary positions.
    pub table: &'a OffsetTable,
}

impl Residual<'_> {
    /// Writes the coefficients of a rotated query as column `column` of `[coefficient][6]`.
    ///
    /// Dimensions that do not turn add the same to the score of every key, which changes no weight: they are left out.
    pub(super) fn set_coefficients(&self, query: &[f32], to: &mut [f32], column: usize) {
        let pairs = self.table.pairs;
        for i in 0..pairs {
            let (first, second) = match self.pairs {
                RopePairs::Neighbours => (2 * i, 2 * i + 1),
                RopePairs::Halves => (i, i + pairs),
            };
            let ([q1, q2], [m1, m2]) = (
                [query[first], query[second]],
                [self.mean[first], self.mean[second]],
            );
            to[i * ROWS + column] = q1 * m1 + q2 * m2;
            to[(pairs + i) * ROWS + column] = q2 * m1 - q1 * m2;
        }
    }
}
