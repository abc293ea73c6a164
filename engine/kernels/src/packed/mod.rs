//! Weights repacked once at load for the matrix kernels.
//!
//! Rows are grouped in panels of [`PANEL_ROWS`]. Within a panel the codes of four neighbouring values of k stand
//! together for each row, eight rows to a 32-byte vector, so that one vector instruction multiplies them by four
//! broadcast activations. The packed form takes the bytes of the file's own form (Q2_K and Q3_K take more): decoding
//! a token is bound by reading it. One packed form serves prompts and single tokens alike: [`PackedMatrix::decode`]
//! expands a stretch of one panel into a small scratch that stays in the first-level cache, and a kernel of the
//! format's [`Family`] multiplies it by a tile of activations. Since every path performs the same operations in the
//! same order, a row's result does not depend on how many rows are computed with it.
//!
//! Layout of one superblock (32 or 256 values of k) of one panel, with `s` the step (four k), `h` the half (rows 0-7
//! or 8-15), `r` the row in the half, `j` the k in the step:
//! ```text
//! nibbles    256 bytes per 32 k   byte s*32 + r*4 + j: half 0 in the low four bits, half 1 in the high four
//! high bit    64 bytes per 32 k   byte h*32 + r*4 + j: bit s
//! high two   128 bytes per 32 k   byte (h*2 + s/4)*32 + r*4 + j: bits 2*(s%4)..
//! bytes      512 bytes per 32 k   byte s*64 + h*32 + r*4 + j
//! ```
//! The scales follow the codes of the superblock; see `Layout`.

mod decode;
mod pack;

pub use pack::{Packing, PanelPacking, ShapeError};

use crate::buffer::Buffer;
use crate::quant::QuantType;

/// Rows of weights in a panel.
pub const PANEL_ROWS: usize = 16;
/// Bytes of a panel's codes for 32 values of k, decoded.
pub(crate) const CODE_BYTES: usize = 32 * PANEL_ROWS;
/// Longest stretch of k decoded at once.
pub const MAX_STRETCH: usize = 1024;

/// Which kernel multiplies a format's decoded panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Codes 0..15 with a scale and a minimum per 32 values.
    Nibble,
    /// Codes 0..31 with an offset of 16 and a scale per 32 values.
    Five,
    /// As `Five` with a minimum.
    FiveMin,
    /// Codes 0..63 with an offset of 32, an integer scale per 16 values and a scale per 32.
    Grouped,
    /// As `Grouped` with a minimum per 16 values.
    GroupedMin,
    /// Signed bytes with a scale per 32 values.
    Byte,
    /// f32.
    Float,
}

/// How a format's superblock is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    family: Family,
    /// Values of k in a superblock.
    superblock: usize,
    /// Bytes of a panel's superblock.
    bytes: usize,
}

impl Layout {
    const fn of(ty: QuantType) -> Layout {
        use Family::*;
        let (family, superblock, bytes) = match ty {
            // nibbles, f16 d[16] (and f16 m[16])
            QuantType::Q4_0 => (Nibble, 32, 256 + 32),
            QuantType::Q4_1 => (Nibble, 32, 256 + 64),
            // nibbles, high bit, f16 d[16] (and f16 m[16])
            QuantType::Q5_0 => (Five, 32, 256 + 64 + 32),
            QuantType::Q5_1 => (FiveMin, 32, 256 + 64 + 64),
            // bytes, f16 d[16]
            QuantType::Q8_0 => (Byte, 32, 512 + 32),
            // nibbles, f16 d[16]; codes index a table of signed bytes
            QuantType::Iq4Nl => (Byte, 32, 256 + 32),
            // nibbles, exponent e[16]; codes index a table of small integers
            QuantType::Mxfp4 => (Five, 32, 256 + 16),
            // 8 x nibbles, 8 x [16] scale | minimum << 4 (low bits), 4 x [16] high bits of two blocks, f16 d[16], dmin[16]
            QuantType::Q4K => (Nibble, 256, 8 * 256 + 8 * 16 + 4 * 16 + 64),
            // as Q4_K with 8 x high bit after the nibbles
            QuantType::Q5K => (FiveMin, 256, 8 * (256 + 64) + 8 * 16 + 4 * 16 + 64),
            // 8 x (nibbles, high two), i8 scale 16 x [16], f16 d[16]
            QuantType::Q3K | QuantType::Q6K => (Grouped, 256, 8 * (256 + 128) + 16 * 16 + 32),
            // 8 x nibbles, 16 x [16] scale | minimum << 4, f16 d[16], dmin[16]
            QuantType::Q2K => (GroupedMin, 256, 8 * 256 + 16 * 16 + 64),
            // one k, rows side by side
            QuantType::F32 => (Float, 1, 4 * PANEL_ROWS),
            QuantType::F16 | QuantType::BF16 => (Float, 1, 2 * PANEL_ROWS),
        };
        Layout {
            family,
            superblock,
            bytes,
        }
    }
}

/// A weight matrix of `rows` outputs by `k` inputs, repacked.
#[derive(Debug)]
pub struct PackedMatrix {
    ty: QuantType,
    layout: Layout,
    rows: usize,
    k: usize,
    data: Buffer<u8>,
}

impl PackedMatrix {
    /// Outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Inputs.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The type it came from.
    pub fn ty(&self) -> QuantType {
        self.ty
    }

    /// Which kernel it takes.
    pub fn family(&self) -> Family {
        self.layout.family
    }

    /// Panels of [`PANEL_ROWS`] rows; the last one may be part empty.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(PANEL_ROWS)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    /// The packed bytes, in the order in which products read them.
    pub fn packed(&self) -> &[u8] {
        &self.data
    }

    fn panel_bytes(&self) -> usize {
        self.k / self.layout.superblock * self.layout.bytes
    }
}

/// A stretch of one panel, decoded for the kernels. What a family does not use is left as it was.
#[derive(Debug)]
pub struct PanelScratch {
    /// `[step][half][row][4]`: codes, or signed bytes as their bits.
    pub(crate) codes: Buffer<u8>,
    /// `[block][16]`
    pub(crate) scale: Buffer<f32>,
    /// `[block][16]`, or `[half block][16]` for `GroupedMin`.
    pub(crate) min: Buffer<f32>,
    /// `[half block][16 rows][2]`: the integer scale, twice.
    pub(crate) group_scale: Buffer<i16>,
    /// `[k][16]`
    pub(crate) floats: Buffer<f32>,
}

impl PanelScratch {
    /// Scratch for stretches of up to [`MAX_STRETCH`] values.
    pub fn new() -> PanelScratch {
        PanelScratch {
            codes: Buffer::zeroed(MAX_STRETCH * PANEL_ROWS),
            scale: Buffer::zeroed(MAX_STRETCH / 32 * PANEL_ROWS),
            min: Buffer::zeroed(MAX_STRETCH / 16 * PANEL_ROWS),
            group_scale: Buffer::zeroed(MAX_STRETCH / 16 * PANEL_ROWS * 2),
            floats: Buffer::zeroed(MAX_STRETCH * PANEL_ROWS),
        }
    }
}

impl Default for PanelScratch {
    fn default() -> Self {
        Self::new()
    }
}
