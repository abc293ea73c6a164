//! How keys and values are stored: formats, their codecs, and the byte layout of a tile.
//!
//! A tile holds one head's keys, or values, of [`TILE_KEYS`] positions. Its layout is made for attention, which brings
//! a whole tile to registers at once:
//!
//! | format | keys | values |
//! | --- | --- | --- |
//! | F16 | `[position][dim]` f16 | the same |
//! | Q8  | `[dim / 2][position][2]` i8, then `[position]` f16 scales | `[position / 2][dim][2]` i8, then scales |
//! | TQ4 | `[dim / 2][slot]` bytes, then `[position]` f16 norms | `[position][dim / 2]` bytes, then norms |
//!
//! A byte of TQ4 keys holds the codes of dimensions 2i (low four bits) and 2i + 1 of one position; positions stand in
//! the order of [`key_slot`]. A byte of TQ4 values holds two dimensions of one position, [`value_dims`]. Both orders
//! are those in which vector instructions give the codes back in natural order. No byte belongs to two positions, so
//! threads can write different positions of a tile at once.

pub mod moving;
mod tables;
pub mod tq4;

use crate::half::{f16_to_f32, f32_to_f16};
use crate::isa::Isa;
use crate::math::to_half;
use tq4::{Codebook, Side};

/// Positions in a tile.
pub const TILE_KEYS: usize = 64;

/// How one head's keys or values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KvFormat {
    /// Half precision.
    F16,
    /// Eight bits a value and one f16 scale a vector.
    Q8,
    /// Four bits a value after a rotation and one f16 norm a vector; head dimensions 64, 128 and 256.
    Tq4,
}

impl KvFormat {
    /// Every format, largest first.
    pub const ALL: [KvFormat; 3] = [KvFormat::F16, KvFormat::Q8, KvFormat::Tq4];

    /// The name in tables and settings.
    pub const fn name(self) -> &'static str {
        match self {
            KvFormat::F16 => "f16",
            KvFormat::Q8 => "q8",
            KvFormat::Tq4 => "tq4",
        }
    }

    /// Whether heads of `dim` values can be stored like this.
    pub fn supports(self, dim: usize) -> bool {
        match self {
            KvFormat::F16 | KvFormat::Q8 => dim > 0 && dim.is_multiple_of(16),
            KvFormat::Tq4 => Codebook::of(dim).is_some(),
        }
    }

    /// Bytes of the codes of one vector of `dim` values, without the scale or norm.
    pub(crate) const fn code_bytes(self, dim: usize) -> usize {
        match self {
            KvFormat::F16 => 2 * dim,
            KvFormat::Q8 => dim,
            KvFormat::Tq4 => dim / 2,
        }
    }

    /// Bytes of one vector of `dim` values.
    pub const fn vector_bytes(self, dim: usize) -> usize {
        self.code_bytes(dim)
            + match self {
                KvFormat::F16 => 0,
                KvFormat::Q8 | KvFormat::Tq4 => 2,
            }
    }

    /// Bytes of a tile of vectors of `dim` values.
    pub const fn tile_bytes(self, dim: usize) -> usize {
        TILE_KEYS * self.vector_bytes(dim)
    }

    /// Where a tile's scales or norms begin: `TILE_KEYS` half-precision numbers.
    pub(crate) const fn units_at(self, dim: usize) -> usize {
        match self {
            KvFormat::F16 => 0,
            KvFormat::Q8 | KvFormat::Tq4 => TILE_KEYS * self.code_bytes(dim),
        }
    }
}

/// Where a position's byte stands in a row of TQ4 keys.
///
/// Blocks of 32: the low half of a 256-bit register takes positions 0-7 and 16-23, the high half the others, which is
/// how interleaving bytes within halves gives positions in order.
#[inline(always)]
pub const fn key_slot(position: usize) -> usize {
    let within = position % 32;
    position / 32 * 32 + (within >> 3 & 1) * 16 + (within >> 4) * 8 + (within & 7)
}

/// The dimensions in byte `byte` of a TQ4 value: low four bits, high four bits.
#[inline(always)]
pub const fn value_dims(byte: usize) -> (usize, usize) {
    let within = byte % 16;
    let low = byte / 16 * 32 + within / 8 * 16 + within % 8;
    (low, low + 8)
}

/// Stores a vector as position `slot` of a tile.
///
/// # Safety
/// `tile` is the start of a tile of this format and dimension, aligned to two bytes, and no other thread reads or
/// writes this position of it meanwhile.
///
/// # Panics
/// When the vector or the slot does not fit: a mistake of the caller.
pub unsafe fn write(isa: Isa, format: KvFormat, side: Side, tile: *mut u8, slot: usize, x: &[f32]) {
    let dim = x.len();
    assert!(slot < TILE_KEYS && format.supports(dim) && dim <= 1_024);
    // SAFETY: this position's scale or norm; every offset here and below is inside the tile, by the layout above.
    let set_unit = |unit: u16| unsafe {
        tile.add(format.units_at(dim)).cast::<u16>().add(slot).write(unit);
    };
    match format {
        KvFormat::F16 => {
            // SAFETY: this position's `dim` numbers.
            let to = unsafe { std::slice::from_raw_parts_mut(tile.cast::<u16>().add(slot * dim), dim) };
            to_half(isa, x, to);
        }
        KvFormat::Q8 => {
            let mut codes = [0i8; 1_024];
            let codes = &mut codes[..dim];
            set_unit(quantise_q8(isa, x, codes));
            match side {
                Side::Key => {
                    for (pair, &codes) in codes.as_chunks::<2>().0.iter().enumerate() {
                        let at = (pair * TILE_KEYS + slot) * 2;
                        // SAFETY: two bytes of this position, at an even offset.
                        unsafe { tile.add(at).cast::<[i8; 2]>().write(codes) };
                    }
                }
                Side::Value => {
                    for (d, &code) in codes.iter().enumerate() {
                        let at = (slot / 2 * dim + d) * 2 + slot % 2;
                        // SAFETY: one of this position's `dim` bytes.
                        unsafe { tile.add(at).cast::<i8>().write(code) };
                    }
                }
            }
        }
        KvFormat::Tq4 => {
            let Some(book) = Codebook::of(dim) else {
                unreachable!("the format supports this dimension");
            };
            let mut z = [0u8; 256];
            let z = &mut z[..dim];
            set_unit(book.encode(isa, side, x, z));
            match side {
                Side::Key => {
                    let column = key_slot(slot);
                    for (pair, [low, high]) in z.as_chunks::<2>().0.iter().enumerate() {
                        // SAFETY: this position's byte of the row.
                        unsafe { tile.add(pair * TILE_KEYS + column).write(low | high << 4) };
                    }
                }
                Side::Value => {
                    for byte in 0..dim / 2 {
                        let (low, high) = value_dims(byte);
                        // SAFETY: one of this position's `dim / 2` bytes.
                        unsafe { tile.add(slot * dim / 2 + byte).write(z[low] | z[high] << 4) };
                    }
                }
            }
        }
    }
}

/// Reads position `slot` of a tile back as numbers: what attention takes the stored vector for.
///
/// # Panics
/// When the sizes do not fit.
pub fn read(isa: Isa, format: KvFormat, side: Side, tile: &[u8], slot: usize, x: &mut [f32]) {
    let dim = x.len();
    assert!(slot < TILE_KEYS && format.supports(dim) && tile.len() == format.tile_bytes(dim));
    let half = |at: usize| u16::from_ne_bytes([tile[at], tile[at + 1]]);
    let unit = half(format.units_at(dim) + 2 * slot);
    match format {
        KvFormat::F16 => {
            for (i, x) in x.iter_mut().enumerate() {
                *x = f16_to_f32(half((slot * dim + i) * 2));
            }
        }
        KvFormat::Q8 => {
            for (i, x) in x.iter_mut().enumerate() {
                let at = match side {
                    Side::Key => (i / 2 * TILE_KEYS + slot) * 2 + i % 2,
                    Side::Value => (slot / 2 * dim + i) * 2 + slot % 2,
                };
                *x = f32::from(tile[at] as i8) * f16_to_f32(unit);
            }
        }
        KvFormat::Tq4 => {
            let Some(book) = Codebook::of(dim) else {
                unreachable!("the format supports this dimension");
            };
            let mut z = [0u8; 256];
            for byte in 0..dim / 2 {
                let (at, low, high) = match side {
                    Side::Key => (byte * TILE_KEYS + key_slot(slot), 2 * byte, 2 * byte + 1),
                    Side::Value => {
                        let (low, high) = value_dims(byte);
                        (slot * dim / 2 + byte, low, high)
                    }
                };
                (z[low], z[high]) = (tile[at] & 15, tile[at] >> 4);
            }
            book.decode(isa, side, &z[..dim], unit, x);
        }
    }
}

#[inline(always)]
fn quantise_q8_body(x: &[f32], codes: &mut [i8]) -> u16 {
    // Added to a small number, it leaves the nearest integer in the low bits of the sum.
    const ROUNDER: f32 = 12_582_912.0;
    let mut lanes = [0.0f32; 16];
    for chunk in x.as_chunks::<16>().0 {
        for i in 0..16 {
            let size = chunk[i].abs();
            lanes[i] = if size > lanes[i] { size } else { lanes[i] };
        }
    }
    let most = lanes.iter().fold(0.0f32, |m, &v| if v > m { v } else { m });
    let unit = f32_to_f16((most / 127.0).min(65_504.0));
    let scale = f16_to_f32(unit);
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    for (code, &x) in codes.iter_mut().zip(x) {
        // The scale was rounded, so that the largest value may come out past 127.
        let bounded = (x * inverse).clamp(-127.0, 127.0);
        *code = (bounded + ROUNDER).to_bits() as i8;
    }
    unit
}

crate::math::by_level! {
    /// Eight-bit codes of a vector; returns the scale.
    quantise_q8(x: &[f32], codes: &mut [i8]) -> u16 => quantise_q8_body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize, step: f32) -> Vec<f32> {
        (0..n)
            .map(|i| (i as f32 * step).sin() + 0.3 * (i as f32 * step * 7.3).cos())
            .collect()
    }

    #[test]
    fn a_tile_gives_back_each_position_as_it_was_stored() {
        for (format, dims, bound) in [
            (KvFormat::F16, vec![16, 80, 64, 256], 1e-6),
            (KvFormat::Q8, vec![16, 80, 64, 256], 1e-4),
            (KvFormat::Tq4, vec![64, 128, 256], 0.04),
        ] {
            for dim in dims {
                for side in [Side::Key, Side::Value] {
                    let mut tile = vec![0u16; format.tile_bytes(dim) / 2];
                    let start = tile.as_mut_ptr().cast::<u8>();
                    let vectors: Vec<Vec<f32>> = (0..TILE_KEYS)
                        .map(|j| wave(dim, 0.05 + j as f32 * 0.013))
                        .collect();
                    for slot in (0..TILE_KEYS).rev() {
                        // SAFETY: the tile is of this format, and this is the only thread.
                        unsafe { write(Isa::best(), format, side, start, slot, &vectors[slot]) };
                    }
                    let bytes: Vec<u8> = tile.iter().flat_map(|half| half.to_ne_bytes()).collect();
                    for (slot, x) in vectors.iter().enumerate() {
                        let mut back = vec![0.0; dim];
                        read(Isa::best(), format, side, &bytes, slot, &mut back);
                        let error: f32 = x.iter().zip(&back).map(|(a, b)| (a - b) * (a - b)).sum();
                        let energy: f32 = x.iter().map(|a| a * a).sum();
                        assert!(
                            error <= bound * energy,
                            "{format:?} {side:?} d {dim} slot {slot}: {}",
                            error / energy
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_orders_within_a_tile_are_permutations() {
        let mut slots: Vec<usize> = (0..TILE_KEYS).map(key_slot).collect();
        slots.sort_unstable();
        assert!(slots.into_iter().eq(0..TILE_KEYS));
        let mut dims: Vec<usize> = (0..64)
            .flat_map(|byte| <[usize; 2]>::from(value_dims(byte)))
            .collect();
        dims.sort_unstable();
        assert!(dims.into_iter().eq(0..128));
    }

    #[test]
    fn a_vector_costs_what_the_design_says() {
        // SmolLM2: 30 layers of 3 key heads of 64 values, keys and values.
        assert_eq!(30 * 2 * 3 * KvFormat::Tq4.vector_bytes(64), 6_120);
        assert_eq!(KvFormat::Q8.vector_bytes(64), 66);
        assert_eq!(KvFormat::F16.vector_bytes(64), 128);
    }
}
