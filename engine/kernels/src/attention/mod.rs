//! Causal attention over stored keys and values, without a full score matrix.
//!
//! Keys come in tiles of [`TILE_KEYS`], aligned to absolute positions. A tile is brought from its stored format to
//! registers' form once, in a workspace of one tile (f32 for half precision, 16-bit codes for the quantised formats),
//! and serves all query rows of the block; each group of six rows then goes through scores, softmax and the sum over
//! values while everything is in the nearest cache. Every [`SEGMENT_KEYS`] keys a row's running result is merged into
//! its total, so that segments may also be computed apart and merged later ([`Partial`]): prompts and single tokens
//! take the same operations in the same order, whatever the block or the number of threads.

/// Calls the variant of a kernel for a number of rows.
#[cfg(target_arch = "x86_64")]
macro_rules! by_rows {
    ($rows:expr, $kernel:ident $args:tt) => {
        match $rows {
            1 => $kernel::<1> $args,
            2 => $kernel::<2> $args,
            3 => $kernel::<3> $args,
            4 => $kernel::<4> $args,
            5 => $kernel::<5> $args,
            _ => $kernel::<ROWS> $args,
        }
    };
}

mod float;
mod integer;
mod offset;

use crate::buffer::Buffer;
use crate::isa::Isa;
use crate::kv::KvFormat;
pub use crate::kv::TILE_KEYS;
use crate::kv::tq4::{Codebook, Side};
use crate::math::{by_level, exp};
pub use offset::{OffsetTable, Residual};
use std::ops::Range;

/// Keys whose softmax runs on its own before it is merged.
pub const SEGMENT_KEYS: usize = 512;
const ROWS: usize = 6;

/// Where a layer's keys and values for one head lie.
pub trait KeyValues: Sync {
    /// The tiles of keys and of values of positions `tile * TILE_KEYS..`, laid out as [`crate::kv`] says, whole,
    /// aligned to two bytes.
    fn tile(&self, tile: usize) -> (&[u8], &[u8]);
}

/// What attention has to know of one key head.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// Values in a vector, a multiple of 16.
    pub dim: usize,
    /// How keys are stored.
    pub keys: KvFormat,
    /// How values are stored.
    pub values: KvFormat,
    /// Keys a query sees, itself included; `None` for all.
    pub window: Option<usize>,
    /// Where keys are stored without their mean (Q8 and TQ4 only).
    pub residual: Option<Residual<'a>>,
}

impl Head<'_> {
    /// Keys and values in half precision, every key seen.
    pub fn half(dim: usize) -> Head<'static> {
        Head {
            dim,
            keys: KvFormat::F16,
            values: KvFormat::F16,
            window: None,
            residual: None,
        }
    }

    /// Writes a row's attention, from where values are stored back to where the model has them.
    fn finish(&self, isa: Isa, from: &Partial, row: usize, out: &mut [f32]) {
        let scale = 1.0 / from.sum[row];
        for (out, value) in out
            .iter_mut()
            .zip(&from.values[row * self.dim..(row + 1) * self.dim])
        {
            *out = value * scale;
        }
        if let (KvFormat::Tq4, Some(book)) = (self.values, Codebook::of(self.dim)) {
            book.rotate_back(isa, Side::Value, out);
        }
    }
}

/// A thread's scratch for attention.
#[derive(Debug)]
pub struct AttentionScratch {
    rows: usize,
    capacity_dim: usize,
    /// For float keys, `[group][dimension][6]`.
    queries: Buffer<f32>,
    /// A query on its way to the space in which keys are stored.
    stored: Buffer<f32>,
    /// For integer keys, `[row][dimension]`, and what a unit is worth.
    query_codes: Buffer<i16>,
    query_units: Buffer<f32>,
    /// For residual keys, `[group][coefficient][6]`: at position zero, and at the span in progress.
    coefficients: Buffer<f32>,
    turned: Buffer<f32>,
    keys: KeyTile,
    values: ValueTile,
    /// `[6][TILE_KEYS]`
    scores: Buffer<f32>,
    offsets: Buffer<f32>,
    weights: Buffer<i16>,
    segment: Partial,
    total: Partial,
}

/// A tile of keys on its way to the scores; one of the two forms is in use.
#[derive(Debug)]
struct KeyTile {
    /// `[dimension][TILE_KEYS]`
    floats: Buffer<f32>,
    /// `[dimension / 2][TILE_KEYS][2]`
    codes: Buffer<i16>,
    units: [f32; TILE_KEYS],
}

/// A tile of values likewise.
#[derive(Debug)]
struct ValueTile {
    /// `[TILE_KEYS][dimension]`
    floats: Buffer<f32>,
    /// `[TILE_KEYS / 2][dimension][2]`
    codes: Buffer<i16>,
    units: [f32; TILE_KEYS],
}

/// Softmax in progress for some rows: the maximum, the sum of exponentials and the weighted sum of values.
#[derive(Debug)]
pub struct Partial {
    max: Buffer<f32>,
    sum: Buffer<f32>,
    /// `[row][dimension]`
    values: Buffer<f32>,
}

impl Partial {
    /// For `rows` rows (rounded up to whole groups) of `dim` values.
    pub fn new(rows: usize, dim: usize) -> Partial {
        let rows = rows.next_multiple_of(ROWS);
        Partial {
            max: Buffer::zeroed(rows),
            sum: Buffer::zeroed(rows),
            values: Buffer::zeroed(rows * dim),
        }
    }

    /// Begins anew for `rows` rows of `dim` values: nothing seen yet.
    pub fn reset(&mut self, rows: usize, dim: usize) {
        self.max[..rows].fill(f32::NEG_INFINITY);
        self.sum[..rows].fill(0.0);
        self.values[..rows * dim].fill(0.0);
    }

    /// Merges `other`, the result over later keys, into this one.
    pub fn merge(&mut self, other: &Partial, rows: usize, dim: usize) {
        for row in 0..rows {
            let (m, n) = (self.max[row], other.max[row]);
            let max = m.max(n);
            if max == f32::NEG_INFINITY {
                continue;
            }
            let (a, b) = (exp(m - max), exp(n - max));
            self.max[row] = max;
            self.sum[row] = self.sum[row] * a + other.sum[row] * b;
            let from = &other.values[row * dim..(row + 1) * dim];
            for (to, from) in self.values[row * dim..(row + 1) * dim].iter_mut().zip(from) {
                *to = *to * a + *from * b;
            }
        }
    }

    /// Writes a row's attention, `head.dim` values.
    pub fn finish(&self, isa: Isa, head: &Head<'_>, row: usize, out: &mut [f32]) {
        head.finish(isa, self, row, out);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (self.max.len() + self.sum.len() + self.values.len())
    }
}

impl AttentionScratch {
    /// For blocks of up to `rows` query rows of dimension `dim` (a multiple of 16).
    pub fn new(rows: usize, dim: usize) -> AttentionScratch {
        let rows = rows.next_multiple_of(ROWS);
        AttentionScratch {
            rows,
            capacity_dim: dim,
            queries: Buffer::zeroed(rows * dim),
            stored: Buffer::zeroed(dim),
            query_codes: Buffer::zeroed(rows * dim),
            query_units: Buffer::zeroed(rows),
            coefficients: Buffer::zeroed(rows * dim),
            turned: Buffer::zeroed(rows * dim),
            keys: KeyTile {
                floats: Buffer::zeroed(TILE_KEYS * dim),
                codes: Buffer::zeroed(TILE_KEYS * dim),
                units: [0.0; TILE_KEYS],
            },
            values: ValueTile {
                floats: Buffer::zeroed(TILE_KEYS * dim),
                codes: Buffer::zeroed(TILE_KEYS * dim),
                units: [0.0; TILE_KEYS],
            },
            scores: Buffer::zeroed(ROWS * TILE_KEYS),
            offsets: Buffer::zeroed(ROWS * TILE_KEYS),
            weights: Buffer::zeroed(ROWS * TILE_KEYS),
            segment: Partial::new(rows, dim),
            total: Partial::new(rows, dim),
        }
    }

    /// Bytes held: a constant of the block's shape, whatever the context's length.
    pub fn bytes(&self) -> usize {
        let floats =
            self.queries.len() + self.query_units.len() + self.coefficients.len() + self.turned.len();
        let tiles = 2 * (4 + 2) * TILE_KEYS * self.capacity_dim;
        4 * floats + 2 * self.query_codes.len() + tiles + self.segment.bytes() + self.total.bytes()
    }

    /// Loads query row `row`, rotated to its position and scaled.
    pub fn set_query(&mut self, isa: Isa, head: &Head<'_>, row: usize, query: &[f32]) {
        let dim = head.dim;
        assert!(dim.is_multiple_of(16) && dim > 0 && dim <= self.capacity_dim && query.len() == dim);
        assert!(row < self.rows);
        let (group, column) = (row / ROWS, row % ROWS);
        if head.keys == KvFormat::F16 {
            let group = &mut self.queries[group * ROWS * dim..][..ROWS * dim];
            for (d, &value) in query.iter().enumerate() {
                group[d * ROWS + column] = value;
            }
            return;
        }
        let stored = &mut self.stored[..dim];
        stored.copy_from_slice(query);
        if let Some(residual) = &head.residual {
            let group = &mut self.coefficients[group * ROWS * dim..][..ROWS * dim];
            residual.set_coefficients(query, group, column);
            for (value, scale) in stored.iter_mut().zip(residual.scale) {
                *value *= scale;
            }
        }
        if let (KvFormat::Tq4, Some(book)) = (head.keys, Codebook::of(dim)) {
            book.rotate(isa, Side::Key, stored);
        }
        let codes = &mut self.query_codes[row * dim..(row + 1) * dim];
        self.query_units[row] = integer::quantise_query(isa, head.keys, stored, codes);
    }

    /// Runs rows `0..positions.len()` over all the keys each may see: those at or before its position, and within
    /// the head's window. `positions` ascend. Results are read by [`AttentionScratch::finish`].
    pub fn run(&mut self, isa: Isa, head: &Head<'_>, positions: &[usize], kv: &dyn KeyValues) {
        let rows = positions.len();
        let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
            return;
        };
        self.total.reset(rows, head.dim);
        for segment in segments(first, last, head.window) {
            self.run_segment(isa, head, positions, kv, segment);
            self.total.merge(&self.segment, rows, head.dim);
        }
    }

    /// Runs one segment alone and leaves the result for [`AttentionScratch::copy_segment`].
    pub fn run_segment(
        &mut self,
        isa: Isa,
        head: &Head<'_>,
        positions: &[usize],
        kv: &dyn KeyValues,
        segment: usize,
    ) {
        let (rows, dim, window) = (positions.len(), head.dim, head.window);
        assert!(rows <= self.rows && dim.is_multiple_of(16) && dim > 0 && dim <= self.capacity_dim);
        self.segment.reset(rows.next_multiple_of(ROWS), dim);
        let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
            return;
        };
        let keys = visible(first, window).start.max(segment * SEGMENT_KEYS)
            ..visible(last, window).end.min((segment + 1) * SEGMENT_KEYS);
        if keys.is_empty() {
            return;
        }
        let mut span = usize::MAX;
        for tile in keys.start / TILE_KEYS..keys.end.div_ceil(TILE_KEYS) {
            let at = tile * TILE_KEYS;
            let count = (last + 1 - at).min(TILE_KEYS);
            let (k, v) = kv.tile(tile);
            self.keys.load(isa, head, k, count);
            self.values.load(isa, head, v, count);
            if let Some(residual) = &head.residual
                && at / offset::SPAN != span
            {
                span = at / offset::SPAN;
                let groups = self
                    .coefficients
                    .chunks_exact(ROWS * dim)
                    .zip(self.turned.chunks_exact_mut(ROWS * dim));
                for (from, to) in groups.take(rows.div_ceil(ROWS)) {
                    residual.table.turn(at, from, to);
                }
            }
            for (group, positions) in positions.chunks(ROWS).enumerate() {
                let seen = visible(positions[0], window).start..positions[positions.len() - 1] + 1;
                if seen.start >= at + count || seen.end <= at {
                    continue;
                }
                self.score(isa, head, group, positions.len(), at);
                self.weigh(isa, head, group, positions, at, count);
            }
        }
    }

    /// A group's scores against the tile at hand, at positions `at..`.
    fn score(&mut self, isa: Isa, head: &Head<'_>, group: usize, rows: usize, at: usize) {
        let dim = head.dim;
        let range = group * ROWS * dim..(group + 1) * ROWS * dim;
        if head.keys == KvFormat::F16 {
            float::scores(
                isa,
                rows,
                &self.queries[range],
                &self.keys.floats,
                dim,
                &mut self.scores,
            );
            return;
        }
        integer::scores(
            isa,
            rows,
            &self.query_codes[range.clone()],
            &self.query_units[group * ROWS..(group + 1) * ROWS],
            &self.keys.codes,
            &self.keys.units,
            dim,
            &mut self.scores,
        );
        if let Some(residual) = &head.residual {
            let len = residual.table.coefficients();
            let coefficients = &self.turned[range.start..][..ROWS * len];
            float::scores(
                isa,
                rows,
                coefficients,
                residual.table.tile(at),
                len,
                &mut self.offsets,
            );
            for (score, offset) in self.scores.iter_mut().zip(&*self.offsets).take(rows * TILE_KEYS) {
                *score += offset;
            }
        }
    }

    /// Softmax of a group's scores, and the sum over the tile's values.
    fn weigh(
        &mut self,
        isa: Isa,
        head: &Head<'_>,
        group: usize,
        positions: &[usize],
        at: usize,
        count: usize,
    ) {
        let (dim, row, rows) = (head.dim, group * ROWS, positions.len());
        let mut rescale = [1.0; ROWS];
        let state = (
            &mut self.segment.max[row..row + ROWS],
            &mut self.segment.sum[row..row + ROWS],
        );
        softmax(
            isa,
            &mut self.scores,
            at,
            count,
            positions,
            head.window,
            state,
            &mut rescale,
        );
        let values = &mut self.segment.values[row * dim..][..ROWS * dim];
        if head.values == KvFormat::F16 {
            float::accumulate(
                isa,
                rows,
                &self.scores,
                &self.values.floats,
                dim,
                count,
                &rescale,
                values,
            );
            return;
        }
        let mut back = [0.0; ROWS];
        let (tile, units) = (&self.values.codes, &self.values.units);
        integer::quantise_weights(
            isa,
            head.values,
            rows,
            &self.scores,
            units,
            count,
            &mut self.weights,
            &mut back,
        );
        integer::accumulate(
            isa,
            rows,
            &self.weights,
            &back,
            tile,
            dim,
            count,
            &rescale,
            values,
        );
    }

    /// Copies the last segment's result for rows `0..rows` of `dim` values into `to`.
    pub fn copy_segment(&self, rows: usize, dim: usize, to: &mut Partial) {
        to.max[..rows].copy_from_slice(&self.segment.max[..rows]);
        to.sum[..rows].copy_from_slice(&self.segment.sum[..rows]);
        to.values[..rows * dim].copy_from_slice(&self.segment.values[..rows * dim]);
    }

    /// Writes a row's attention.
    pub fn finish(&self, isa: Isa, head: &Head<'_>, row: usize, out: &mut [f32]) {
        head.finish(isa, &self.total, row, out);
    }
}

impl KeyTile {
    fn load(&mut self, isa: Isa, head: &Head<'_>, tile: &[u8], count: usize) {
        match head.keys {
            KvFormat::F16 => {
                float::load_keys(isa, &halves(tile)[..count * head.dim], head.dim, &mut self.floats)
            }
            format => integer::expand_keys(isa, format, tile, head.dim, &mut self.codes, &mut self.units),
        }
    }
}

impl ValueTile {
    fn load(&mut self, isa: Isa, head: &Head<'_>, tile: &[u8], count: usize) {
        match head.values {
            KvFormat::F16 => float::load_values(isa, &halves(tile)[..count * head.dim], &mut self.floats),
            format => {
                integer::expand_values(
                    isa,
                    format,
                    tile,
                    head.dim,
                    count,
                    &mut self.codes,
                    &mut self.units,
                );
            }
        }
    }
}

/// A tile's bytes as half-precision numbers.
fn halves(tile: &[u8]) -> &[u16] {
    // SAFETY: any bytes are numbers.
    let (before, numbers, _) = unsafe { tile.align_to::<u16>() };
    assert!(before.is_empty(), "a tile is aligned to two bytes");
    numbers
}

/// The keys a query at `position` sees.
fn visible(position: usize, window: Option<usize>) -> Range<usize> {
    let start = window.map_or(0, |window| (position + 1).saturating_sub(window));
    start..position + 1
}

/// The segments that rows at positions `first..=last` see, in order.
pub fn segments(first: usize, last: usize, window: Option<usize>) -> Range<usize> {
    visible(first, window).start / SEGMENT_KEYS..(last + 1).div_ceil(SEGMENT_KEYS)
}

/// Masks the scores, moves the running maximum, and turns the scores into weights.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn softmax_body(
    scores: &mut [f32],
    at: usize,
    count: usize,
    positions: &[usize],
    window: Option<usize>,
    state: (&mut [f32], &mut [f32]),
    rescale: &mut [f32; ROWS],
) {
    let (maxima, sums) = state;
    let rows = scores.as_chunks_mut::<TILE_KEYS>().0;
    for (t, row) in rows.iter_mut().enumerate() {
        let Some(&position) = positions.get(t) else {
            row.fill(0.0);
            rescale[t] = 1.0;
            continue;
        };
        let seen = visible(position, window);
        if seen.start > at {
            row[..(seen.start - at).min(TILE_KEYS)].fill(f32::NEG_INFINITY);
        }
        let end = count.min(seen.end.saturating_sub(at));
        row[end.min(TILE_KEYS)..].fill(f32::NEG_INFINITY);
        let mut lanes = [f32::NEG_INFINITY; 8];
        for chunk in row.as_chunks::<8>().0 {
            for i in 0..8 {
                lanes[i] = if chunk[i] > lanes[i] { chunk[i] } else { lanes[i] };
            }
        }
        let top = lanes.iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v));
        let max = maxima[t].max(top);
        if max == f32::NEG_INFINITY {
            row.fill(0.0);
            rescale[t] = 1.0;
            continue;
        }
        rescale[t] = exp(maxima[t] - max);
        maxima[t] = max;
        let mut lanes = [0.0f32; 8];
        for chunk in row.as_chunks_mut::<8>().0 {
            for i in 0..8 {
                chunk[i] = exp(chunk[i] - max);
                lanes[i] += chunk[i];
            }
        }
        let sum =
            (lanes[0] + lanes[4]) + (lanes[1] + lanes[5]) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
        sums[t] = sums[t] * rescale[t] + sum;
    }
}

by_level! {
    /// See the body.
    softmax(scores: &mut [f32], at: usize, count: usize, positions: &[usize], window: Option<usize>,
        state: (&mut [f32], &mut [f32]), rescale: &mut [f32; ROWS]) => softmax_body
}
