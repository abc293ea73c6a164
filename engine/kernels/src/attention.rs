//! Causal attention over half-precision keys and values, without a full score matrix.
//!
//! Keys come in tiles of [`TILE_KEYS`], aligned to absolute positions. A tile is brought to f32 once (keys
//! transposed) and serves all query rows of the block; each group of six rows then goes through scores, softmax and
//! the sum over values while everything is in the nearest cache. Every [`SEGMENT_KEYS`] keys a row's running result
//! is merged into its total, so that segments may also be computed apart and merged later ([`Partial`]): prompts and
//! single tokens take the same operations in the same order, whatever the block or the number of threads.

#[cfg(target_arch = "aarch64")]
mod neon;

use crate::buffer::Buffer;
use crate::half::f16_to_f32;
use crate::isa::Isa;
use crate::math::{by_level, exp};
use std::ops::Range;

/// Keys in a tile.
pub const TILE_KEYS: usize = 64;
/// Keys whose softmax runs on its own before it is merged.
pub const SEGMENT_KEYS: usize = 512;
const ROWS: usize = 6;

/// Where a layer's keys and values for one head lie.
pub trait KeyValues: Sync {
    /// Keys and values of positions `tile * TILE_KEYS..`, `[position][dimension]` in half precision; at least as many
    /// as have been written.
    fn tile(&self, tile: usize) -> (&[u16], &[u16]);
}

/// A thread's scratch for attention.
#[derive(Debug)]
pub struct AttentionScratch {
    rows: usize,
    capacity_dim: usize,
    dim: usize,
    /// `[group][dimension][6]`
    queries: Buffer<f32>,
    /// `[dimension][TILE_KEYS]`
    keys: Buffer<f32>,
    /// `[TILE_KEYS][dimension]`
    values: Buffer<f32>,
    /// `[6][TILE_KEYS]`
    scores: Buffer<f32>,
    segment: Partial,
    total: Partial,
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

    fn reset(&mut self, rows: usize, dim: usize) {
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

    /// Writes a row's result.
    pub fn finish(&self, row: usize, dim: usize, out: &mut [f32]) {
        let scale = 1.0 / self.sum[row];
        for (out, value) in out.iter_mut().zip(&self.values[row * dim..(row + 1) * dim]) {
            *out = value * scale;
        }
    }
}

impl AttentionScratch {
    /// For blocks of up to `rows` query rows of dimension `dim` (a multiple of 16).
    pub fn new(rows: usize, dim: usize) -> AttentionScratch {
        let rows = rows.next_multiple_of(ROWS);
        AttentionScratch {
            rows,
            capacity_dim: dim,
            dim,
            queries: Buffer::zeroed(rows * dim),
            keys: Buffer::zeroed(TILE_KEYS * dim),
            values: Buffer::zeroed(TILE_KEYS * dim),
            scores: Buffer::zeroed(ROWS * TILE_KEYS),
            segment: Partial::new(rows, dim),
            total: Partial::new(rows, dim),
        }
    }

    /// Sets the dimension of the rows to come, at most the one given at creation.
    pub fn set_dim(&mut self, dim: usize) {
        assert!(dim.is_multiple_of(16) && dim > 0 && dim <= self.capacity_dim);
        self.dim = dim;
    }

    /// Loads query row `row`, already scaled.
    pub fn set_query(&mut self, row: usize, query: &[f32]) {
        let group = &mut self.queries[row / ROWS * ROWS * self.dim..][..ROWS * self.dim];
        for (d, &value) in query.iter().enumerate() {
            group[d * ROWS + row % ROWS] = value;
        }
    }

    /// Runs rows `0..positions.len()` over all the keys each may see: those at or before its position, and within
    /// `window` of it where there is one. `positions` ascend. Results are read by [`AttentionScratch::finish`].
    pub fn run(&mut self, isa: Isa, positions: &[usize], window: Option<usize>, kv: &dyn KeyValues) {
        let rows = positions.len();
        let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
            return;
        };
        self.total.reset(rows, self.dim);
        for segment in segments(first, last, window) {
            self.run_segment(isa, positions, window, kv, segment);
            self.total.merge(&self.segment, rows, self.dim);
        }
    }

    /// Runs one segment alone and leaves the result for [`AttentionScratch::copy_segment`].
    pub fn run_segment(
        &mut self,
        isa: Isa,
        positions: &[usize],
        window: Option<usize>,
        kv: &dyn KeyValues,
        segment: usize,
    ) {
        let (rows, dim) = (positions.len(), self.dim);
        assert!(rows <= self.rows && dim.is_multiple_of(16) && dim > 0);
        self.segment.reset(rows.next_multiple_of(ROWS), dim);
        let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
            return;
        };
        let keys = visible(first, window).start.max(segment * SEGMENT_KEYS)
            ..visible(last, window).end.min((segment + 1) * SEGMENT_KEYS);
        if keys.is_empty() {
            return;
        }
        for tile in keys.start / TILE_KEYS..keys.end.div_ceil(TILE_KEYS) {
            let at = tile * TILE_KEYS;
            let count = (last + 1 - at).min(TILE_KEYS);
            let (k, v) = kv.tile(tile);
            load_keys(isa, &k[..count * dim], dim, &mut self.keys);
            load_values(isa, &v[..count * dim], &mut self.values);
            for (group, positions) in positions.chunks(ROWS).enumerate() {
                let seen = visible(positions[0], window).start..positions[positions.len() - 1] + 1;
                if seen.start >= at + count || seen.end <= at {
                    continue;
                }
                let queries = &self.queries[group * ROWS * dim..][..ROWS * dim];
                scores(isa, positions.len(), queries, &self.keys, dim, &mut self.scores);
                let row = group * ROWS;
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
                    window,
                    state,
                    &mut rescale,
                );
                let values = &mut self.segment.values[row * dim..][..ROWS * dim];
                accumulate(
                    isa,
                    positions.len(),
                    &self.scores,
                    &self.values,
                    dim,
                    count,
                    &rescale,
                    values,
                );
            }
        }
    }

    /// Copies the last segment's result for rows `0..rows` into `to`.
    pub fn copy_segment(&self, rows: usize, to: &mut Partial) {
        to.max[..rows].copy_from_slice(&self.segment.max[..rows]);
        to.sum[..rows].copy_from_slice(&self.segment.sum[..rows]);
        to.values[..rows * self.dim].copy_from_slice(&self.segment.values[..rows * self.dim]);
    }

    /// Writes a row's attention.
    pub fn finish(&self, row: usize, out: &mut [f32]) {
        self.total.finish(row, self.dim, out);
    }
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
fn load_values_body(from: &[u16], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = f16_to_f32(from);
    }
}

by_level! {
    /// `[position][dimension]` to f32.
    load_values_plain(from: &[u16], to: &mut [f32]) => load_values_body
}

fn load_values(isa: Isa, from: &[u16], to: &mut [f32]) {
    assert!(from.len() <= to.len());
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies F16C; lengths were checked.
        return unsafe { avx2::load_values(from, to) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa == Isa::NeonDot {
        // SAFETY: every machine of this architecture has NEON; lengths were checked.
        return unsafe { neon::load_values(from, to) };
    }
    load_values_plain(isa, from, to);
}

/// `[position][dimension]` to f32 `[dimension][TILE_KEYS]`; positions past the end keep finite leftovers or zeros.
fn load_keys(isa: Isa, from: &[u16], dim: usize, to: &mut [f32]) {
    assert!(from.len() <= TILE_KEYS * dim && to.len() >= TILE_KEYS * dim && from.len().is_multiple_of(dim));
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2 and F16C; lengths were checked.
        return unsafe { avx2::load_keys(from, dim, to) };
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
fn scores(isa: Isa, rows: usize, queries: &[f32], keys: &[f32], dim: usize, out: &mut [f32]) {
    assert!(queries.len() == ROWS * dim && keys.len() >= TILE_KEYS * dim && out.len() == ROWS * TILE_KEYS);
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
        // SAFETY: the level implies AVX2 and FMA; lengths were checked.
        return unsafe { avx2::scores(rows, queries, keys, dim, out) };
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

/// `values = values * rescale + weights * tile`.
#[allow(clippy::too_many_arguments)]
fn accumulate(
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
        return unsafe { avx2::accumulate(rows, weights, tile, dim, count, rescale, values) };
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

#[cfg(target_arch = "x86_64")]
mod avx2 {
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

    /// Calls the variant for a number of rows.
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
}
