//! Activations times packed weights.
//!
//! [`matmul_panel`] computes one panel of outputs for all tokens: it decodes the panel stretch by stretch and runs the
//! family's tile kernel over the tiles of activations. Callers hand panels to threads as they like; neither that nor
//! the number of tokens changes a result.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod gemv_avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use crate::activations::{Activations, BLOCK, TILE_ROWS};
use crate::buffer::Buffer;
use crate::isa::Isa;
use crate::packed::{CODE_BYTES, Family, MAX_STRETCH, PANEL_ROWS, PackedMatrix, PanelScratch};
use std::ops::Range;

/// Fewer tokens than this decode in short stretches that leave the first-level cache to the rest.
const FEW_ROWS: usize = 2 * TILE_ROWS;

/// One tile's work: `rows` tokens by [`PANEL_ROWS`] outputs over a stretch of k. Slices start at the stretch.
struct Tile<'a> {
    family: Family,
    rows: usize,
    /// Blocks of 32 values, or single values for [`Family::Float`].
    count: usize,
    weights: &'a PanelScratch,
    /// The panel's codes, `code_stride` bytes from block to block: the scratch's, or the packed weights' own.
    panel_codes: &'a [u8],
    code_stride: usize,
    codes: &'a [i8],
    scale: &'a [f32],
    sum: &'a [f32],
    start16: &'a [i16],
    start32: &'a [i16],
    half_sum: &'a [f32],
    floats: &'a [f32],
    /// `[rows][16]`, added to.
    accumulators: &'a mut [f32],
}

impl Tile<'_> {
    /// Checks every length a tile kernel relies on.
    fn check(&self) {
        let (n, rows) = (self.count, self.rows);
        if self.family == Family::Float {
            assert!((1..=TILE_ROWS).contains(&rows) && self.accumulators.len() == rows * PANEL_ROWS);
            assert!(self.floats.len() >= n * rows && self.weights.floats.len() >= n * PANEL_ROWS);
            return;
        }
        self.check_activations();
        assert!(n * BLOCK <= MAX_STRETCH);
        assert!(n == 0 || self.panel_codes.len() >= (n - 1) * self.code_stride + CODE_BYTES);
    }

    /// Checks the lengths of everything but the weights.
    fn check_activations(&self) {
        let (n, rows) = (self.count, self.rows);
        assert!((1..=TILE_ROWS).contains(&rows) && self.accumulators.len() == rows * PANEL_ROWS);
        assert!(self.codes.len() >= n * BLOCK * rows && self.half_sum.len() >= 2 * n * rows);
        assert!(self.scale.len() >= n * rows && self.sum.len() >= n * rows);
        assert!(self.start16.len() >= 2 * n * rows && self.start32.len() >= 4 * n * rows);
    }

    fn run(mut self, isa: Isa) {
        self.check();
        match isa {
            Isa::Portable => portable::run(&mut self),
            // SAFETY: lengths were checked, and `isa` came from detection.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::run(&mut self) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { avx512::run(&mut self) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::NeonDot => unsafe { neon::run(&mut self) },
            #[allow(unreachable_patterns)]
            _ => portable::run(&mut self),
        }
    }
}

/// A thread's scratch.
#[derive(Debug)]
pub struct Scratch {
    panel: PanelScratch,
    /// `[token][16]`
    accumulators: Buffer<f32>,
}

impl Scratch {
    /// For up to `capacity` tokens.
    pub fn new(capacity: usize) -> Scratch {
        Scratch {
            panel: PanelScratch::new(),
            accumulators: Buffer::zeroed(capacity * PANEL_ROWS),
        }
    }
}

/// Where results go: `[tokens][stride]` floats that several threads write, each its own columns.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    start: *mut f32,
    tokens: usize,
    stride: usize,
    columns: usize,
    marker: std::marker::PhantomData<&'a mut [f32]>,
}

// SAFETY: writers keep to their own panels' columns, as `matmul_panel` demands.
unsafe impl Send for Output<'_> {}
// SAFETY: as above.
unsafe impl Sync for Output<'_> {}

impl<'a> Output<'a> {
    /// All of a matrix whose rows are `stride` apart.
    pub fn new(matrix: &'a mut [f32], stride: usize) -> Output<'a> {
        assert!(stride > 0);
        Output {
            tokens: matrix.len() / stride,
            stride,
            columns: stride,
            start: matrix.as_mut_ptr(),
            marker: std::marker::PhantomData,
        }
    }

    /// Some of its columns.
    pub fn columns(self, columns: Range<usize>) -> Output<'a> {
        assert!(columns.start <= columns.end && columns.end <= self.columns);
        // The offset stays inside the first row; an empty matrix has no tokens and is never written.
        Output {
            columns: columns.len(),
            start: self.start.wrapping_add(columns.start),
            ..self
        }
    }
}

/// What is done with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Overwrite.
    Set,
    /// Add to what is there.
    Add,
}

/// Computes `out[t][n] = bias[n] + sum over k of x[t][k] w[n][k]` for the 16 rows n of one panel and all tokens t.
///
/// # Safety
/// No other thread may work on the same panel's columns of `out` meanwhile.
///
/// # Panics
/// When shapes do not agree: a mistake of the caller.
#[allow(clippy::too_many_arguments)]
pub unsafe fn matmul_panel(
    isa: Isa,
    weights: &PackedMatrix,
    panel: usize,
    x: &Activations,
    bias: Option<&[f32]>,
    out: &Output<'_>,
    store: Store,
    scratch: &mut Scratch,
) {
    let tokens = x.rows;
    let family = weights.family();
    let columns = panel * PANEL_ROWS..((panel + 1) * PANEL_ROWS).min(weights.rows());
    assert!(
        x.k == weights.k() && tokens <= out.tokens && weights.rows() == out.columns && !columns.is_empty()
    );
    let accumulators = &mut scratch.accumulators[..tokens * PANEL_ROWS];
    let mut first = [0.0; PANEL_ROWS];
    if let Some(bias) = bias {
        first[..columns.len()].copy_from_slice(&bias[columns.clone()]);
    }
    for row in accumulators.as_chunks_mut::<PANEL_ROWS>().0 {
        *row = first;
    }
    let limit = if tokens < FEW_ROWS { 256 } else { MAX_STRETCH };
    let blocks = x.k.div_ceil(BLOCK);
    if run_direct(isa, weights, panel, x, &scratch.panel, accumulators) {
        write(accumulators, out, &columns, store);
        return;
    }
    let mut k = 0;
    while k < x.k {
        let ks = weights.stretch(k, limit);
        weights.decode(isa, panel, ks.clone(), &mut scratch.panel);
        let direct = weights.direct_codes(panel, ks.clone());
        let mut done = 0;
        while done < tokens {
            let rows = TILE_ROWS.min(tokens - done);
            let acc = &mut accumulators[done * PANEL_ROWS..(done + rows) * PANEL_ROWS];
            tile(family, rows, done, blocks, &ks, x, &scratch.panel, direct, acc).run(isa);
            done += rows;
        }
        k = ks.end;
    }
    write(accumulators, out, &columns, store);
}

/// Computes all panels on this thread: `out[t][n] = bias[n] + sum over k of x[t][k] w[n][k]`, rows one after the other.
///
/// # Panics
/// When shapes do not agree: a mistake of the caller.
pub fn matmul(
    isa: Isa,
    weights: &PackedMatrix,
    x: &Activations,
    bias: Option<&[f32]>,
    out: &mut [f32],
    store: Store,
    scratch: &mut Scratch,
) {
    let out = Output::new(out, weights.rows());
    for panel in 0..weights.panels() {
        // SAFETY: this thread alone has `out`.
        unsafe { matmul_panel(isa, weights, panel, x, bias, &out, store, scratch) };
    }
}

/// Brings a panel's results to their place. The caller has checked that they fit, and owns the columns.
fn write(accumulators: &[f32], out: &Output<'_>, columns: &Range<usize>, store: Store) {
    for (t, row) in accumulators.as_chunks::<PANEL_ROWS>().0.iter().enumerate() {
        // SAFETY: `matmul_panel` asserts that token t and these columns are inside the matrix, and by its contract they
        // are this thread's alone.
        let to = unsafe {
            std::slice::from_raw_parts_mut(out.start.add(t * out.stride + columns.start), columns.len())
        };
        // A whole panel's length is known when compiled: that spares a call for 64 bytes.
        match (store, to.first_chunk_mut::<PANEL_ROWS>()) {
            (Store::Set, Some(to)) => *to = *row,
            (Store::Add, Some(to)) => to.iter_mut().zip(row).for_each(|(to, value)| *to += value),
            (Store::Set, None) => to.copy_from_slice(&row[..columns.len()]),
            (Store::Add, None) => to.iter_mut().zip(row).for_each(|(to, value)| *to += value),
        }
    }
}

/// Few tokens by a kernel that reads the packed weights themselves, where there is one; false where there is none.
fn run_direct(
    isa: Isa,
    weights: &PackedMatrix,
    panel: usize,
    x: &Activations,
    scratch: &PanelScratch,
    accumulators: &mut [f32],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni)
        && weights.family() != Family::Float
        && x.rows() <= gemv_avx2::MOST_ROWS
    {
        let ks = 0..weights.k();
        let packed = weights.superblocks(panel, ks.clone());
        let mut tile = tile(
            weights.family(),
            x.rows(),
            0,
            x.k.div_ceil(BLOCK),
            &ks,
            x,
            scratch,
            None,
            accumulators,
        );
        tile.check_activations();
        // SAFETY: both levels imply AVX2, FMA and F16C; the tile is checked, and `packed` holds the superblocks of all
        // its blocks.
        return unsafe { gemv_avx2::run(weights.ty(), packed, &mut tile) };
    }
    let _ = (isa, weights, panel, x, scratch, accumulators);
    false
}

/// The part of the activations that tile `first..first + rows` needs for `ks`.
#[allow(clippy::too_many_arguments)]
fn tile<'a>(
    family: Family,
    rows: usize,
    first: usize,
    blocks: usize,
    ks: &Range<usize>,
    x: &'a Activations,
    weights: &'a PanelScratch,
    direct: Option<(&'a [u8], usize)>,
    accumulators: &'a mut [f32],
) -> Tile<'a> {
    let (panel_codes, code_stride) = direct.unwrap_or((&weights.codes, CODE_BYTES));
    if family == Family::Float {
        let at = first * x.k + ks.start * rows;
        let floats = &x.floats[at..at + ks.len() * rows];
        return Tile {
            family,
            rows,
            count: ks.len(),
            weights,
            panel_codes,
            code_stride,
            codes: &[],
            scale: &[],
            sum: &[],
            start16: &[],
            start32: &[],
            half_sum: &[],
            floats,
            accumulators,
        };
    }
    let (b, count) = (ks.start / BLOCK, ks.len() / BLOCK);
    let (at, len) = (first * blocks + b * rows, count * rows);
    Tile {
        family,
        rows,
        count,
        weights,
        panel_codes,
        code_stride,
        codes: &x.codes[at * BLOCK..(at + len) * BLOCK],
        scale: &x.scale[at..at + len],
        sum: &x.sum[at..at + len],
        start16: &x.start16[2 * at..2 * (at + len)],
        start32: &x.start32[4 * at..4 * (at + len)],
        half_sum: &x.half_sum[2 * at..2 * (at + len)],
        floats: &[],
        accumulators,
    }
}
