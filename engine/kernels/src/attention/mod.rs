//! Causal attention over stored keys and values, without a full score matrix.
//!
//! Keys come in tiles of [`TILE_KEYS`], aligned to absolute positions. A tile is brought from its stored format to
//! registers' form once, in a workspace of one tile (f32 for half precision, eight-bit codes for the quantised formats),
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
mod softmax;

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
    queries: QueryBlock,
    keys: Tile,
    values: Tile,
    work: Work,
    total: Partial,
}

/// The query rows of a block, in the forms in which they meet keys.
#[derive(Debug)]
struct QueryBlock {
    /// For float keys, `[group][dimension][6]`.
    floats: Buffer<f32>,
    /// A query on its way to the space in which keys are stored.
    stored: Buffer<f32>,
    /// For integer keys, `[row][dimension]`, and what a unit is worth.
    codes: Buffer<i16>,
    units: Buffer<f32>,
    /// For residual keys, `[group][coefficient][6]`: at position zero, and at the span in progress.
    coefficients: Buffer<f32>,
    turned: Buffer<f32>,
}

/// What a group of rows goes through with one tile.
#[derive(Debug)]
struct Work {
    /// `[6][TILE_KEYS]`
    scores: Buffer<f32>,
    offsets: Buffer<f32>,
    weights: Buffer<i16>,
    segment: Partial,
}

/// A tile of keys or values in the form in which it is worked on; one of the two is in use.
#[derive(Debug)]
struct Tile {
    /// Of keys `[dimension][TILE_KEYS]`, of values `[TILE_KEYS][dimension]`.
    floats: Buffer<f32>,
    /// See [`integer::codes_of`].
    codes: Buffer<i8>,
    units: [f32; TILE_KEYS],
}

impl Tile {
    fn new(dim: usize) -> Tile {
        Tile {
            floats: Buffer::zeroed(TILE_KEYS * dim),
            codes: Buffer::zeroed(TILE_KEYS * dim),
            units: [0.0; TILE_KEYS],
        }
    }

    /// Brings the first `count` keys or values to their form.
    fn load<'a>(
        &'a mut self,
        isa: Isa,
        (format, side): (KvFormat, Side),
        tile: &'a [u8],
        dim: usize,
        count: usize,
    ) -> Form<'a> {
        if format == KvFormat::F16 {
            let numbers = &halves(tile)[..count * dim];
            match side {
                Side::Key => float::load_keys(isa, numbers, dim, &mut self.floats),
                Side::Value => float::load_values(isa, numbers, &mut self.floats),
            }
            return Form::Floats(&self.floats);
        }
        integer::units_of(isa, format, tile, dim, &mut self.units);
        Form::Codes {
            codes: integer::codes_of(isa, (format, side), tile, dim, count, &mut self.codes),
            units: &self.units,
        }
    }
}

/// A tile ready to be worked on.
#[derive(Clone, Copy)]
enum Form<'a> {
    Floats(&'a [f32]),
    Codes {
        codes: &'a [i8],
        units: &'a [f32; TILE_KEYS],
    },
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
    pub fn merge(&mut self, isa: Isa, other: &Partial, rows: usize, dim: usize) {
        let state = (&mut self.max[..rows], &mut self.sum[..rows]);
        let later = (&other.max[..rows], &other.sum[..rows]);
        merge(
            isa,
            state,
            later,
            &mut self.values[..rows * dim],
            &other.values[..rows * dim],
        );
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
            queries: QueryBlock {
                floats: Buffer::zeroed(rows * dim),
                stored: Buffer::zeroed(dim),
                codes: Buffer::zeroed(rows * dim),
                units: Buffer::zeroed(rows),
                coefficients: Buffer::zeroed(rows * dim),
                turned: Buffer::zeroed(rows * dim),
            },
            keys: Tile::new(dim),
            values: Tile::new(dim),
            work: Work {
                scores: Buffer::zeroed(ROWS * TILE_KEYS),
                offsets: Buffer::zeroed(ROWS * TILE_KEYS),
                weights: Buffer::zeroed(ROWS * TILE_KEYS),
                segment: Partial::new(rows, dim),
            },
            total: Partial::new(rows, dim),
        }
    }

    /// Bytes held: a constant of the block's shape, whatever the context's length.
    pub fn bytes(&self) -> usize {
        let QueryBlock {
            floats,
            stored,
            codes,
            units,
            coefficients,
            turned,
        } = &self.queries;
        let numbers = floats.len() + stored.len() + units.len() + coefficients.len() + turned.len();
        let tiles = 2 * (4 + 1) * TILE_KEYS * self.capacity_dim;
        4 * numbers + 2 * codes.len() + tiles + self.work.segment.bytes() + self.total.bytes()
    }

    /// Loads query row `row`, rotated to its position and scaled.
    pub fn set_query(&mut self, isa: Isa, head: &Head<'_>, row: usize, query: &[f32]) {
        let dim = head.dim;
        assert!(dim.is_multiple_of(16) && dim > 0 && dim <= self.capacity_dim && query.len() == dim);
        assert!(row < self.rows);
        self.queries.set(isa, head, row, query);
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
            self.run_segment(isa, head, positions, kv, segment, &[]);
            self.total.merge(isa, &self.work.segment, rows, head.dim);
        }
    }

    /// Runs one segment alone and leaves the result for [`AttentionScratch::copy_segment`].
    ///
    /// `after` is what the machine reads once attention is done, weights for example: attention computes more than it
    /// reads, so the way to memory has room for it. Of a long one the beginning is asked for.
    pub fn run_segment<'a>(
        &mut self,
        isa: Isa,
        head: &Head<'_>,
        positions: &[usize],
        kv: &'a dyn KeyValues,
        segment: usize,
        mut after: &'a [u8],
    ) {
        let (rows, dim, window) = (positions.len(), head.dim, head.window);
        assert!(rows <= self.rows && dim.is_multiple_of(16) && dim > 0 && dim <= self.capacity_dim);
        let AttentionScratch {
            queries,
            keys,
            values,
            work,
            ..
        } = self;
        work.segment.reset(rows.next_multiple_of(ROWS), dim);
        let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
            return;
        };
        let seen = visible(first, window).start.max(segment * SEGMENT_KEYS)
            ..visible(last, window).end.min((segment + 1) * SEGMENT_KEYS);
        if seen.is_empty() {
            return;
        }
        let mut span = usize::MAX;
        let tiles = seen.start / TILE_KEYS..seen.end.div_ceil(TILE_KEYS);
        for tile in tiles {
            let at = tile * TILE_KEYS;
            let count = (last + 1 - at).min(TILE_KEYS);
            let (k, v) = kv.tile(tile);
            // Not of the segment alone: who works on this one mostly goes on with the next.
            let (keys_ahead, values_ahead) = match (tile + 1) * TILE_KEYS <= last {
                true => kv.tile(tile + 1),
                false => (&[] as &[u8], &[] as &[u8]),
            };
            let mut ahead = Ahead([keys_ahead, values_ahead, after]);
            ahead.step();
            let k = keys.load(isa, (head.keys, Side::Key), k, dim, count);
            ahead.step();
            let v = values.load(isa, (head.values, Side::Value), v, dim, count);
            ahead.step();
            if let Some(residual) = &head.residual
                && at / offset::SPAN != span
            {
                span = at / offset::SPAN;
                queries.turn(residual, at, rows.div_ceil(ROWS), dim);
            }
            for (group, positions) in positions.chunks(ROWS).enumerate() {
                let seen = visible(positions[0], window).start..positions[positions.len() - 1] + 1;
                if seen.start < at + count && seen.end > at {
                    work.score(isa, head, &queries.group(group, dim), positions.len(), k, at);
                    ahead.step();
                    work.weigh(isa, head, group, positions, v, at, count, &mut ahead);
                }
            }
            after = ahead.0[2];
        }
    }

    /// Copies the last segment's result for rows `0..rows` of `dim` values into `to`.
    pub fn copy_segment(&self, rows: usize, dim: usize, to: &mut Partial) {
        to.max[..rows].copy_from_slice(&self.work.segment.max[..rows]);
        to.sum[..rows].copy_from_slice(&self.work.segment.sum[..rows]);
        to.values[..rows * dim].copy_from_slice(&self.work.segment.values[..rows * dim]);
    }

    /// Writes a row's attention.
    pub fn finish(&self, isa: Isa, head: &Head<'_>, row: usize, out: &mut [f32]) {
        head.finish(isa, &self.total, row, out);
    }

    /// Adds to `received[p]`, for every position p, the share of attention that each row gives to the key at p: what
    /// the rows of the last [`AttentionScratch::run`] give, with the same arguments. A row gives one in all.
    ///
    /// # Panics
    /// When `received` does not reach to the last row's position.
    pub fn add_received(
        &mut self,
        isa: Isa,
        head: &Head<'_>,
        positions: &[usize],
        kv: &dyn KeyValues,
        received: &mut [f32],
    ) {
        let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
            return;
        };
        let (rows, dim, window) = (positions.len(), head.dim, head.window);
        assert!(rows <= self.rows && last < received.len());
        let mut span = usize::MAX;
        for tile in visible(first, window).start / TILE_KEYS..last / TILE_KEYS + 1 {
            let at = tile * TILE_KEYS;
            let count = (last + 1 - at).min(TILE_KEYS);
            let keys = self
                .keys
                .load(isa, (head.keys, Side::Key), kv.tile(tile).0, dim, count);
            if let Some(residual) = &head.residual
                && at / offset::SPAN != span
            {
                span = at / offset::SPAN;
                self.queries.turn(residual, at, rows.div_ceil(ROWS), dim);
            }
            for (group, positions) in positions.chunks(ROWS).enumerate() {
                self.work.score(
                    isa,
                    head,
                    &self.queries.group(group, dim),
                    positions.len(),
                    keys,
                    at,
                );
                let scores = self.work.scores.as_chunks::<TILE_KEYS>().0.iter();
                for (row, (scores, &position)) in scores.zip(positions).enumerate() {
                    let seen = visible(position, window);
                    let seen = seen.start.saturating_sub(at)..seen.end.saturating_sub(at).min(count);
                    let row = group * ROWS + row;
                    let (max, scale) = (self.total.max[row], 1.0 / self.total.sum[row]);
                    if seen.start < seen.end {
                        let received = &mut received[at + seen.start..at + seen.end];
                        softmax::add_shares(isa, &scores[seen], max, scale, received);
                    }
                }
            }
        }
    }
}

impl QueryBlock {
    fn set(&mut self, isa: Isa, head: &Head<'_>, row: usize, query: &[f32]) {
        let dim = head.dim;
        let (group, column) = (row / ROWS, row % ROWS);
        if head.keys == KvFormat::F16 {
            let group = &mut self.floats[group * ROWS * dim..][..ROWS * dim];
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
        let codes = &mut self.codes[row * dim..(row + 1) * dim];
        self.units[row] = integer::quantise_query(isa, stored, codes);
    }

    /// Turns the coefficients of the first groups to the span that begins at `at`.
    fn turn(&mut self, residual: &Residual<'_>, at: usize, groups: usize, dim: usize) {
        let from = self.coefficients.chunks_exact(ROWS * dim);
        let to = self.turned.chunks_exact_mut(ROWS * dim);
        for (from, to) in from.zip(to).take(groups) {
            residual.table.turn(at, from, to);
        }
    }

    fn group(&self, group: usize, dim: usize) -> Group<'_> {
        let range = group * ROWS * dim..(group + 1) * ROWS * dim;
        Group {
            floats: &self.floats[range.clone()],
            codes: &self.codes[range.clone()],
            units: &self.units[group * ROWS..(group + 1) * ROWS],
            turned: &self.turned[range],
        }
    }
}

/// Six rows of a [`QueryBlock`].
struct Group<'a> {
    floats: &'a [f32],
    codes: &'a [i16],
    units: &'a [f32],
    turned: &'a [f32],
}

impl Work {
    /// A group's scores against the tile at hand, at positions `at..`.
    fn score(
        &mut self,
        isa: Isa,
        head: &Head<'_>,
        group: &Group<'_>,
        rows: usize,
        keys: Form<'_>,
        at: usize,
    ) {
        let dim = head.dim;
        match keys {
            Form::Floats(keys) => float::scores(isa, rows, group.floats, keys, dim, &mut self.scores),
            Form::Codes { codes, units } => integer::scores(
                isa,
                rows,
                group.codes,
                group.units,
                codes,
                units,
                dim,
                &mut self.scores,
            ),
        }
        if let (Some(residual), Form::Codes { .. }) = (&head.residual, keys) {
            let len = residual.table.coefficients();
            let coefficients = &group.turned[..ROWS * len];
            let table = residual.table.tile(at);
            float::scores(isa, rows, coefficients, table, len, &mut self.offsets);
            for (score, offset) in self.scores.iter_mut().zip(&*self.offsets).take(rows * TILE_KEYS) {
                *score += offset;
            }
        }
    }

    /// Softmax of a group's scores, and the sum over the tile's values.
    #[allow(clippy::too_many_arguments)]
    fn weigh(
        &mut self,
        isa: Isa,
        head: &Head<'_>,
        group: usize,
        positions: &[usize],
        values: Form<'_>,
        at: usize,
        count: usize,
        ahead: &mut Ahead<'_>,
    ) {
        let (dim, first) = (head.dim, group * ROWS);
        let (mut rescale, mut back) = ([1.0; ROWS], [0.0; ROWS]);
        let scores = self.scores.as_chunks_mut::<TILE_KEYS>().0.iter_mut();
        let weights = self.weights.as_chunks_mut::<TILE_KEYS>().0.iter_mut();
        for (t, ((scores, weights), &position)) in scores.zip(weights).zip(positions).enumerate() {
            ahead.step();
            let seen = visible(position, head.window);
            let seen = seen.start.saturating_sub(at)..seen.end.saturating_sub(at).min(count);
            let Partial { max, sum, .. } = &mut self.segment;
            rescale[t] = softmax::weigh(isa, scores, seen, &mut max[first + t], &mut sum[first + t]);
            if let Form::Codes { units, .. } = values {
                back[t] = softmax::quantise(isa, scores, units, count, integer::limit(TILE_KEYS), weights);
            }
        }
        let to = &mut self.segment.values[first * dim..][..ROWS * dim];
        let rows = positions.len();
        match values {
            Form::Floats(tile) => {
                // The sums over values in half precision run over all six rows on some machines.
                self.scores[rows * TILE_KEYS..].fill(0.0);
                float::accumulate(isa, rows, &self.scores, tile, dim, count, &rescale, to);
            }
            Form::Codes { codes, .. } => {
                integer::accumulate(isa, rows, &self.weights, &back, codes, dim, count, &rescale, to)
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

/// The next tile's keys and values, and what is read after attention: asked for from memory a little at a time while a
/// tile is worked on. A core has room for a few dozen lines on their way, and asking for more makes it stand still.
struct Ahead<'a>([&'a [u8]; 3]);

impl Ahead<'_> {
    /// Bytes asked for in a step.
    const STEP: usize = 20 * 64;

    #[inline]
    fn step(&mut self) {
        if let Some(from) = self.0.iter_mut().find(|bytes| !bytes.is_empty()) {
            let (now, later) = from.split_at(from.len().min(Ahead::STEP));
            prefetch(now);
            *from = later;
        }
    }
}

/// Asks for bytes that are needed soon; where the machine cannot be asked, nothing happens.
#[inline]
fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing; the address is inside the slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
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

#[inline(always)]
fn merge_body(
    state: (&mut [f32], &mut [f32]),
    later: (&[f32], &[f32]),
    values: &mut [f32],
    later_values: &[f32],
) {
    let (maxima, sums) = state;
    let rows = maxima.len();
    let dim = values.len() / rows.max(1);
    for row in 0..rows {
        let (m, n) = (maxima[row], later.0[row]);
        let max = m.max(n);
        if max == f32::NEG_INFINITY {
            continue;
        }
        let (a, b) = (exp(m - max), exp(n - max));
        maxima[row] = max;
        sums[row] = sums[row] * a + later.1[row] * b;
        let range = row * dim..(row + 1) * dim;
        for (to, from) in values[range.clone()].iter_mut().zip(&later_values[range]) {
            *to = *to * a + *from * b;
        }
    }
}

by_level! {
    /// See the body.
    merge(state: (&mut [f32], &mut [f32]), later: (&[f32], &[f32]), values: &mut [f32], later_values: &[f32])
        => merge_body
}
