//! Stored keys and values on the move: between tiles and a packed form, and from one position to another.
//!
//! The packed form is what leaves the pool. A vector is its codes in natural order and then its f16 scale or norm,
//! [`KvFormat::vector_bytes`] in all, in the machine's order of bytes (little-endian wherever this runs):
//!
//! | format | bytes of a vector of `dim` values |
//! | --- | --- |
//! | F16 | `[dim]` f16 |
//! | Q8  | `[dim]` i8, then the f16 scale |
//! | TQ4 | `[dim / 2]` bytes, dimension 2i in the low four bits and 2i + 1 in the high ones, then the f16 norm |
//!
//! A run is consecutive positions, one vector after another without gaps. Packing and unpacking copy codes and change
//! none of them, and that is all a value ever needs. A key that moves to another position is turned by the difference
//! as well ([`Turn`]), which decodes it and encodes it again.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod turn;

pub use turn::Turn;

use super::tq4::Side;
use super::{KvFormat, TILE_KEYS, key_slot, value_dims};
use crate::isa::Isa;
use std::ops::Range;

/// Which vectors a tile or a run holds: those of one head of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vectors {
    /// How they are stored.
    pub format: KvFormat,
    /// Keys or values.
    pub side: Side,
    /// Values in a vector: the head's dimension.
    pub dim: usize,
}

impl Vectors {
    /// Bytes of one of them, packed.
    pub const fn bytes(self) -> usize {
        self.format.vector_bytes(self.dim)
    }

    fn assert_fits(self, slots: &Range<usize>) {
        assert!(self.format.supports(self.dim) && self.dim <= 1_024);
        assert!(slots.start <= slots.end && slots.end <= TILE_KEYS);
    }

    /// Bytes of codes, without the scale or norm.
    const fn code_bytes(self) -> usize {
        self.format.code_bytes(self.dim)
    }

    /// Where a tile has the scale or norm of a position; half precision has none.
    const fn unit_at(self, slot: usize) -> Option<usize> {
        match self.format {
            KvFormat::F16 => None,
            KvFormat::Q8 | KvFormat::Tq4 => Some(self.format.units_at(self.dim) + 2 * slot),
        }
    }

    /// Positions that vector code moves together, the first of them a multiple of this: those whose codes share words.
    const fn group(self) -> usize {
        match (self.format, self.side) {
            (KvFormat::F16, _) | (KvFormat::Tq4, Side::Value) => 1,
            (KvFormat::Q8, Side::Value) => 2,
            (KvFormat::Q8 | KvFormat::Tq4, Side::Key) => 8,
        }
    }

    /// Calls `each` with slots and count for whole groups at once, where there is code for them, and for every other
    /// position by itself.
    fn for_each_stretch(self, isa: Isa, slots: Range<usize>, mut each: impl FnMut(usize, usize)) {
        let group = match isa {
            Isa::Avx2 | Isa::Avx512Vnni => self.group(),
            Isa::Portable | Isa::NeonDot => TILE_KEYS + 1,
        };
        let mut slot = slots.start;
        while slot < slots.end {
            let whole = (slots.end - slot) / group * group;
            let count = if slot.is_multiple_of(group) {
                whole.max(1)
            } else {
                1
            };
            each(slot, count);
            slot += count;
        }
    }
}

/// Packs position `slot` of a tile into `out`.
///
/// # Panics
/// When the sizes do not fit.
pub fn pack(vectors: Vectors, tile: &[u8], slot: usize, out: &mut [u8]) {
    let Vectors { format, side, dim } = vectors;
    vectors.assert_fits(&(slot..slot + 1));
    assert!(tile.len() == format.tile_bytes(dim) && out.len() == vectors.bytes());
    let (codes, unit) = out.split_at_mut(vectors.code_bytes());
    match (format, side) {
        (KvFormat::F16, _) => codes.copy_from_slice(&tile[slot * 2 * dim..][..2 * dim]),
        (KvFormat::Q8, Side::Key) => {
            for (i, code) in codes.iter_mut().enumerate() {
                *code = tile[(i / 2 * TILE_KEYS + slot) * 2 + i % 2];
            }
        }
        (KvFormat::Q8, Side::Value) => {
            for (i, code) in codes.iter_mut().enumerate() {
                *code = tile[(slot / 2 * dim + i) * 2 + slot % 2];
            }
        }
        (KvFormat::Tq4, Side::Key) => {
            for (pair, code) in codes.iter_mut().enumerate() {
                *code = tile[pair * TILE_KEYS + key_slot(slot)];
            }
        }
        (KvFormat::Tq4, Side::Value) => {
            codes.fill(0);
            for (byte, &both) in tile[slot * dim / 2..][..dim / 2].iter().enumerate() {
                let (low, high) = value_dims(byte);
                codes[low / 2] |= (both & 15) << (4 * (low % 2));
                codes[high / 2] |= (both >> 4) << (4 * (high % 2));
            }
        }
    }
    if let Some(at) = vectors.unit_at(slot) {
        unit.copy_from_slice(&tile[at..at + 2]);
    }
}

/// Stores a packed vector as position `slot` of a tile. Any bytes can be stored; what was never packed stands for
/// numbers nobody asked for, and no worse.
///
/// # Safety
/// `tile` is the start of a tile of these vectors, and no other thread reads or writes this position of it meanwhile.
///
/// # Panics
/// When the sizes do not fit.
pub unsafe fn unpack(vectors: Vectors, tile: *mut u8, slot: usize, bytes: &[u8]) {
    let Vectors { format, side, dim } = vectors;
    vectors.assert_fits(&(slot..slot + 1));
    assert!(bytes.len() == vectors.bytes());
    let (codes, unit) = bytes.split_at(vectors.code_bytes());
    // SAFETY: every offset below is inside the tile and of this position, by the layout of tiles.
    let put = |at: usize, byte: u8| unsafe { tile.add(at).write(byte) };
    match (format, side) {
        (KvFormat::F16, _) => {
            for (i, &code) in codes.iter().enumerate() {
                put(slot * 2 * dim + i, code);
            }
        }
        (KvFormat::Q8, Side::Key) => {
            for (i, &code) in codes.iter().enumerate() {
                put((i / 2 * TILE_KEYS + slot) * 2 + i % 2, code);
            }
        }
        (KvFormat::Q8, Side::Value) => {
            for (i, &code) in codes.iter().enumerate() {
                put((slot / 2 * dim + i) * 2 + slot % 2, code);
            }
        }
        (KvFormat::Tq4, Side::Key) => {
            for (pair, &code) in codes.iter().enumerate() {
                put(pair * TILE_KEYS + key_slot(slot), code);
            }
        }
        (KvFormat::Tq4, Side::Value) => {
            let code = |i: usize| codes[i / 2] >> (4 * (i % 2)) & 15;
            for byte in 0..dim / 2 {
                let (low, high) = value_dims(byte);
                put(slot * dim / 2 + byte, code(low) | code(high) << 4);
            }
        }
    }
    if let Some(at) = vectors.unit_at(slot) {
        put(at, unit[0]);
        put(at + 1, unit[1]);
    }
}

/// Packs positions `slots` of a tile into `out`, one vector after another.
///
/// # Panics
/// When the sizes do not fit.
pub fn pack_run(isa: Isa, vectors: Vectors, tile: &[u8], slots: Range<usize>, out: &mut [u8]) {
    vectors.assert_fits(&slots);
    let bytes = vectors.bytes();
    assert!(tile.len() == vectors.format.tile_bytes(vectors.dim) && out.len() == slots.len() * bytes);
    if vectors.format == KvFormat::F16 {
        out.copy_from_slice(&tile[slots.start * bytes..slots.end * bytes]);
        return;
    }
    let start = slots.start;
    vectors.for_each_stretch(isa, slots, |slot, count| {
        let at = slot - start;
        let out = &mut out[at * bytes..(at + count) * bytes];
        #[cfg(target_arch = "x86_64")]
        if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) && count.is_multiple_of(vectors.group()) {
            // SAFETY: `isa` came from detection; the sizes were checked, and a stretch of whole groups begins with one.
            unsafe { avx2::pack_groups(vectors, tile, slot, count, out) };
            return;
        }
        pack(vectors, tile, slot, out);
    });
}

/// Stores a run of packed vectors as positions `slots` of a tile. As [`unpack`], any bytes can be stored.
///
/// # Safety
/// `tile` is the start of a tile of these vectors, and no other thread reads or writes these positions of it meanwhile.
///
/// # Panics
/// When the sizes do not fit.
pub unsafe fn unpack_run(isa: Isa, vectors: Vectors, tile: *mut u8, slots: Range<usize>, run: &[u8]) {
    vectors.assert_fits(&slots);
    let bytes = vectors.bytes();
    assert!(run.len() == slots.len() * bytes);
    if vectors.format == KvFormat::F16 {
        // SAFETY: these positions of the tile; nobody else is at them.
        unsafe { std::ptr::copy_nonoverlapping(run.as_ptr(), tile.add(slots.start * bytes), run.len()) };
        return;
    }
    let start = slots.start;
    vectors.for_each_stretch(isa, slots, |slot, count| {
        let at = slot - start;
        let run = &run[at * bytes..(at + count) * bytes];
        #[cfg(target_arch = "x86_64")]
        if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) && count.is_multiple_of(vectors.group()) {
            // SAFETY: as above, and the caller has these positions to itself.
            unsafe { avx2::unpack_groups(vectors, tile, slot, count, run) };
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { unpack(vectors, tile, slot, run) };
    });
}

/// Stores a run of packed keys as positions `slots` of a tile, turned on the way: what moving a chunk comes to. The run
/// itself stays as it is, so that errors do not add up from one move to the next.
///
/// # Safety
/// As for [`unpack_run`].
///
/// # Panics
/// When the sizes do not fit, or the vectors are values: those do not turn.
pub unsafe fn unpack_turned(
    isa: Isa,
    vectors: Vectors,
    turn: &Turn,
    tile: *mut u8,
    slots: Range<usize>,
    run: &[u8],
) {
    assert!(vectors.side == Side::Key, "values do not turn");
    vectors.assert_fits(&slots);
    let bytes = vectors.bytes();
    assert!(run.len() == slots.len() * bytes);
    if turn.is_still() {
        // SAFETY: the caller's promise.
        unsafe { unpack_run(isa, vectors, tile, slots, run) };
        return;
    }
    // As many groups at a time as there is room for; one at least.
    let mut turned = [0u8; 8 * 2 * 1_024];
    let step = (turned.len() / bytes).min(TILE_KEYS) / 8 * 8;
    let mut slot = slots.start;
    while slot < slots.end {
        let end = (slot / step * step + step).min(slots.end);
        let turned = &mut turned[..(end - slot) * bytes];
        turned.copy_from_slice(&run[(slot - slots.start) * bytes..(end - slots.start) * bytes]);
        turn.apply(isa, vectors.format, vectors.dim, turned);
        // SAFETY: the caller's promise.
        unsafe { unpack_run(isa, vectors, tile, slot..end, turned) };
        slot = end;
    }
}

#[cfg(test)]
mod tests;
