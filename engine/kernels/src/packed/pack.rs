//! From a file's rows to panels.

use super::{Layout, PANEL_ROWS, PackedMatrix};
use crate::buffer::Buffer;
use crate::quant::QuantType;

/// Why weights could not be packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeError {
    what: String,
}

impl std::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ShapeError {}

/// A matrix being packed; panels may be packed by several threads.
pub struct Packing<'a> {
    source: &'a [u8],
    row_bytes: usize,
    matrix: PackedMatrix,
}

impl<'a> Packing<'a> {
    /// Starts packing `rows` rows of `k` values of type `ty`, stored one row after the other in `source`.
    pub fn new(ty: QuantType, rows: usize, k: usize, source: &'a [u8]) -> Result<Packing<'a>, ShapeError> {
        let row_bytes = ty
            .bytes_for(k)
            .filter(|_| k > 0 && rows > 0)
            .ok_or_else(|| ShapeError {
                what: format!("{rows} rows of {k} values are not whole blocks of {}", ty.name()),
            })?;
        if row_bytes.checked_mul(rows) != Some(source.len()) {
            return Err(ShapeError {
                what: format!(
                    "{rows} rows of {k} {} values do not take {} bytes",
                    ty.name(),
                    source.len()
                ),
            });
        }
        let layout = Layout::of(ty);
        let bytes = rows.div_ceil(PANEL_ROWS) * (k / layout.superblock) * layout.bytes;
        Ok(Packing {
            source,
            row_bytes,
            matrix: PackedMatrix {
                ty,
                layout,
                rows,
                k,
                data: Buffer::zeroed(bytes),
            },
        })
    }

    /// Splits the work: one part per panel, each to be given to [`PanelPacking::pack`].
    pub fn panels(&mut self) -> impl Iterator<Item = PanelPacking<'_>> {
        let PackedMatrix { ty, layout, rows, .. } = self.matrix;
        let (source, row_bytes) = (self.source, self.row_bytes);
        let bytes = self.matrix.panel_bytes();
        self.matrix
            .data
            .chunks_exact_mut(bytes)
            .enumerate()
            .map(move |(panel, out)| {
                let first = panel * PANEL_ROWS;
                let last = (first + PANEL_ROWS).min(rows);
                PanelPacking {
                    ty,
                    layout,
                    row_bytes,
                    source: &source[first * row_bytes..last * row_bytes],
                    out,
                }
            })
    }

    /// The matrix; panels not yet packed are zero.
    pub fn finish(self) -> PackedMatrix {
        self.matrix
    }
}

/// One panel to be packed.
pub struct PanelPacking<'a> {
    ty: QuantType,
    layout: Layout,
    row_bytes: usize,
    source: &'a [u8],
    out: &'a mut [u8],
}

impl PanelPacking<'_> {
    /// Packs it.
    pub fn pack(self) {
        let block_bytes = self.ty.block_bytes();
        for (sb, out) in self.out.chunks_exact_mut(self.layout.bytes).enumerate() {
            for (row, bytes) in self.source.chunks_exact(self.row_bytes).enumerate() {
                pack_block(self.ty, &bytes[sb * block_bytes..][..block_bytes], row, out);
            }
        }
    }
}

/// Writes one row's block into its place in the panel's superblock.
fn pack_block(ty: QuantType, block: &[u8], row: usize, out: &mut [u8]) {
    let put_half =
        |out: &mut [u8], at: usize, bytes: &[u8]| out[at + 2 * row..][..2].copy_from_slice(&bytes[..2]);
    match ty {
        QuantType::F32 => out[4 * row..][..4].copy_from_slice(block),
        QuantType::F16 | QuantType::BF16 => out[2 * row..][..2].copy_from_slice(block),
        QuantType::Q4_0 | QuantType::Iq4Nl => {
            put_nibbles(out, row, &split_nibbles(&block[2..]));
            put_half(out, 256, block);
        }
        QuantType::Mxfp4 => {
            put_nibbles(out, row, &split_nibbles(&block[1..]));
            out[256 + row] = block[0];
        }
        QuantType::Q4_1 => {
            put_nibbles(out, row, &split_nibbles(&block[4..]));
            put_half(out, 256, block);
            put_half(out, 256 + 32, &block[2..]);
        }
        QuantType::Q5_0 | QuantType::Q5_1 => {
            let head = if ty == QuantType::Q5_0 { 2 } else { 4 };
            put_nibbles(out, row, &split_nibbles(&block[head + 4..]));
            let high: [u8; 32] = std::array::from_fn(|i| (block[head + i / 8] >> (i % 8)) & 1);
            put_high_bit(&mut out[256..], row, &high);
            put_half(out, 320, block);
            if ty == QuantType::Q5_1 {
                put_half(out, 320 + 32, &block[2..]);
            }
        }
        QuantType::Q8_0 => {
            put_half(out, 512, block);
            put_bytes(
                out,
                row,
                block.last_chunk().expect("a block ends with its 32 codes"),
            );
        }
        QuantType::Q4K | QuantType::Q5K => {
            let per_block = if ty == QuantType::Q4K { 256 } else { 320 };
            let scales = &block[4..16];
            let (high, codes) = if ty == QuantType::Q4K {
                (&[][..], &block[16..])
            } else {
                block[16..].split_at(32)
            };
            let low_at = 8 * per_block;
            for b in 0..8 {
                let bytes = &codes[b / 2 * 32..][..32];
                let four: [u8; 32] = std::array::from_fn(|i| (bytes[i] >> (b % 2 * 4)) & 15);
                put_nibbles(&mut out[b * per_block..], row, &four);
                if ty == QuantType::Q5K {
                    let bits: [u8; 32] = std::array::from_fn(|i| (high[i] >> b) & 1);
                    put_high_bit(&mut out[b * per_block + 256..], row, &bits);
                }
                let (scale, min) = k_scale_min(scales, b);
                out[low_at + b * 16 + row] = (scale & 15) | (min & 15) << 4;
                out[low_at + 128 + b / 2 * 16 + row] |= ((scale >> 4) | (min >> 4) << 2) << (b % 2 * 4);
            }
            put_half(out, low_at + 192, block);
            put_half(out, low_at + 192 + 32, &block[2..]);
        }
        QuantType::Q6K => {
            let (low, high) = (&block[..128], &block[128..192]);
            for b in 0..8 {
                let (n, part) = (b / 4, b % 4);
                let six: [u8; 32] = std::array::from_fn(|i| {
                    let four = (low[n * 64 + part % 2 * 32 + i] >> (part / 2 * 4)) & 15;
                    four | ((high[n * 32 + i] >> (2 * part)) & 3) << 4
                });
                put_six(&mut out[b * 384..], row, &six);
            }
            for (g, &scale) in block[192..208].iter().enumerate() {
                out[8 * 384 + g * 16 + row] = scale;
            }
            put_half(out, 8 * 384 + 256, &block[208..]);
        }
        QuantType::Q3K => {
            let (mask, two, scales) = (&block[..32], &block[32..96], &block[96..108]);
            for b in 0..8 {
                let six: [u8; 32] = std::array::from_fn(|i| {
                    let low = (two[b / 4 * 32 + i] >> (b % 4 * 2)) & 3;
                    // Offset 4 in the file, 32 in the packed form.
                    low + ((mask[i] >> b) & 1) * 4 + 28
                });
                put_six(&mut out[b * 384..], row, &six);
            }
            for g in 0..16 {
                let low = if g < 8 { scales[g] & 15 } else { scales[g - 8] >> 4 };
                let high = (scales[8 + g % 4] >> (g / 4 * 2)) & 3;
                out[8 * 384 + g * 16 + row] = ((low | high << 4) as i8 - 32) as u8;
            }
            put_half(out, 8 * 384 + 256, &block[108..]);
        }
        QuantType::Q2K => {
            let (scales, two) = (&block[..16], &block[16..80]);
            for b in 0..8 {
                let codes: [u8; 32] = std::array::from_fn(|i| (two[b / 4 * 32 + i] >> (b % 4 * 2)) & 3);
                put_nibbles(&mut out[b * 256..], row, &codes);
            }
            for (g, &scale_min) in scales.iter().enumerate() {
                out[8 * 256 + g * 16 + row] = scale_min;
            }
            put_half(out, 8 * 256 + 256, &block[80..]);
            put_half(out, 8 * 256 + 256 + 32, &block[82..]);
        }
    }
}

/// The nibbles of the 32-value types: the first 16 values are the low ones.
fn split_nibbles(bytes: &[u8]) -> [u8; 32] {
    std::array::from_fn(|i| (bytes[i % 16] >> (i / 16 * 4)) & 15)
}

/// The six-bit scale and minimum of block `b` of a Q4_K or Q5_K superblock.
fn k_scale_min(scales: &[u8], b: usize) -> (u8, u8) {
    if b < 4 {
        (scales[b] & 63, scales[b + 4] & 63)
    } else {
        (
            (scales[b + 4] & 15) | (scales[b - 4] >> 6) << 4,
            (scales[b + 4] >> 4) | (scales[b] >> 6) << 4,
        )
    }
}

/// Four codes as one number: the codes of a step move together, each in its own byte.
fn fours(codes: &[u8; 32]) -> [u32; 8] {
    let mut out = [0; 8];
    for (out, four) in out.iter_mut().zip(codes.as_chunks::<4>().0) {
        *out = u32::from_le_bytes(*four);
    }
    out
}

/// Ors four codes into the place `index` of four bytes each.
fn or_at(out: &mut [u8], index: usize, four: u32) {
    if let Some(place) = out.as_chunks_mut::<4>().0.get_mut(index) {
        *place = (u32::from_le_bytes(*place) | four).to_le_bytes();
    }
}

fn put_bytes(out: &mut [u8], row: usize, codes: &[u8; 32]) {
    for (step, four) in fours(codes).into_iter().enumerate() {
        or_at(out, step * PANEL_ROWS + row, four);
    }
}

fn put_nibbles(out: &mut [u8], row: usize, codes: &[u8; 32]) {
    for (step, four) in fours(codes).into_iter().enumerate() {
        or_at(out, step * 8 + row % 8, (four & 0x0f0f_0f0f) << (row / 8 * 4));
    }
}

fn put_high_bit(out: &mut [u8], row: usize, bits: &[u8; 32]) {
    let both = fours(bits)
        .into_iter()
        .enumerate()
        .fold(0, |both, (step, four)| both | four << step);
    or_at(out, row, both);
}

fn put_six(out: &mut [u8], row: usize, codes: &[u8; 32]) {
    put_nibbles(out, row, codes);
    for (step, four) in fours(codes).into_iter().enumerate() {
        let high = ((four >> 4) & 0x0303_0303) << (step % 4 * 2);
        or_at(&mut out[256..], (row / 8 * 2 + step / 4) * 8 + row % 8, high);
    }
}
