//! Keys and values on their way out of a sequence's pages and into those of another: the bytes of a chunk.
//!
//! A chunk's bytes are its layers one after the other. A layer is, for each key head, the packed keys of all positions,
//! then the same of the values; how a vector is packed is told in [`reprise_kernels::kv::moving`]. Values and keys are
//! copied as they are stored; a key that goes to another position is turned while it is packed
//! ([`LayerLayout::turn_packed`]), always from a chunk as it was first stored, so that errors do not add up.

use crate::PAGE_TOKENS;
use crate::layout::{LayerLayout, PAGE_TILES};
use crate::pool::Sequence;
use reprise_kernels::attention::TILE_KEYS;
use reprise_kernels::isa::Isa;
use reprise_kernels::kv::moving::{Turn, Vectors, pack_run, unpack_run};
use reprise_kernels::kv::tq4::Side;
use std::ops::Range;

/// Positions of one tile: which page, which tile of it, which slots, and how many positions of the range stand before.
struct Piece {
    page: usize,
    tile: usize,
    slots: Range<usize>,
    before: usize,
}

/// The tiles that a range of positions covers.
fn pieces(range: Range<usize>) -> impl Iterator<Item = Piece> {
    let tiles = match range.is_empty() {
        true => 0..0,
        false => range.start / TILE_KEYS..range.end.div_ceil(TILE_KEYS),
    };
    tiles.map(move |tile| {
        let first = tile * TILE_KEYS;
        let positions = range.start.max(first)..range.end.min(first + TILE_KEYS);
        Piece {
            page: tile / PAGE_TILES,
            tile: tile % PAGE_TILES,
            slots: positions.start - first..positions.end - first,
            before: positions.start - range.start,
        }
    })
}

impl LayerLayout {
    fn vectors(&self, side: Side) -> Vectors {
        Vectors {
            format: match side {
                Side::Key => self.keys,
                Side::Value => self.values,
            },
            side,
            dim: self.shape.head_dim,
        }
    }

    /// Keys and values of each head, in the order of a chunk's bytes, with where they begin, for `count` positions.
    fn parts(&self, count: usize) -> impl Iterator<Item = (Side, usize, usize)> + use<> {
        let heads = self.shape.kv_heads;
        let (k, v) = (
            count * self.vectors(Side::Key).bytes(),
            count * self.vectors(Side::Value).bytes(),
        );
        let keys = (0..heads).map(move |head| (Side::Key, head, head * k));
        let values = (0..heads).map(move |head| (Side::Value, head, heads * k + head * v));
        keys.chain(values)
    }

    /// Packs committed positions of a sequence, of the layer that is laid out like this. `out` is replaced.
    ///
    /// # Panics
    /// When the positions are not committed or there is no such layer.
    pub fn pack(&self, isa: Isa, sequence: &Sequence, layer: usize, range: Range<usize>, out: &mut Vec<u8>) {
        let count = range.len();
        out.clear();
        out.resize(count * self.token_bytes(), 0);
        let pages: Vec<&[u8]> = sequence.runs(layer, range.clone()).map(|run| run.bytes).collect();
        let first_page = range.start / PAGE_TOKENS;
        for (side, head, begin) in self.parts(count) {
            let vectors = self.vectors(side);
            let out = &mut out[begin..begin + count * vectors.bytes()];
            for piece in pieces(range.clone()) {
                let at = self.tile_of(side, head, piece.tile);
                let tile = &pages[piece.page - first_page][at..at + self.tile_bytes(side)];
                let to = piece.before * vectors.bytes()..(piece.before + piece.slots.len()) * vectors.bytes();
                pack_run(isa, vectors, tile, piece.slots, &mut out[to]);
            }
        }
    }

    /// Turns the keys in the packed bytes of `count` positions of this layer.
    ///
    /// # Panics
    /// When there are not so many bytes, or more values turn than a head has.
    pub fn turn_packed(&self, isa: Isa, turn: &Turn, count: usize, bytes: &mut [u8]) {
        assert!(bytes.len() == count * self.token_bytes());
        let keys = self.shape.kv_heads * count * self.vectors(Side::Key).bytes();
        turn.apply(isa, self.keys, self.shape.head_dim, &mut bytes[..keys]);
    }

    /// Stores packed positions of this layer in a sequence, at positions that were prepared and are not committed:
    /// those of the chunk in `of`, out of `count` in all, from position `at` on.
    ///
    /// # Panics
    /// When the positions were not prepared, the sizes do not fit, or there is no such layer.
    #[allow(clippy::too_many_arguments)]
    pub fn place(
        &self,
        isa: Isa,
        sequence: &mut Sequence,
        layer: usize,
        at: usize,
        bytes: &[u8],
        count: usize,
        of: Range<usize>,
    ) {
        let range = at..at + of.len();
        assert!(sequence.len() <= range.start && range.end <= sequence.prepared());
        assert!(of.end <= count && bytes.len() == count * self.token_bytes());
        for (side, head, begin) in self.parts(count) {
            let vectors = self.vectors(side);
            let size = vectors.bytes();
            let run = &bytes[begin + of.start * size..begin + of.end * size];
            for piece in pieces(range.clone()) {
                let page = sequence.page_ptr(layer, piece.page).as_ptr().cast::<u8>();
                let from = piece.before * size..(piece.before + piece.slots.len()) * size;
                // SAFETY: the page is the sequence's own at these positions, as they are prepared and not committed, and
                // the sequence is borrowed alone; the tile lies inside the page.
                unsafe {
                    let tile = page.add(self.tile_of(side, head, piece.tile));
                    unpack_run(isa, vectors, tile, piece.slots, &run[from]);
                }
            }
        }
    }

    fn tile_of(&self, side: Side, head: usize, tile: usize) -> usize {
        let (keys, values) = self.tile_at(head, tile);
        match side {
            Side::Key => keys,
            Side::Value => values,
        }
    }

    fn tile_bytes(&self, side: Side) -> usize {
        let vectors = self.vectors(side);
        vectors.format.tile_bytes(vectors.dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KvFormat, KvLanes, LayerShape};

    const SHAPE: LayerShape = LayerShape {
        kv_heads: 2,
        head_dim: 64,
    };

    fn vector(position: usize, head: usize, sign: f32) -> Vec<f32> {
        (0..64)
            .map(|d| sign * ((position * 3 + head * 7 + d) as f32 * 0.7).sin())
            .collect()
    }

    /// A sequence with positions `0..len` written.
    fn written(layouts: &[LayerLayout], len: usize) -> Sequence {
        let pool = LayerLayout::pool(layouts, 8).unwrap();
        let mut sequences = [pool.sequence()];
        sequences[0].prepare(len, None).unwrap();
        let lanes = KvLanes::new(layouts, &mut sequences);
        for layer in 0..layouts.len() {
            let layer = lanes.layer(layer, 0);
            for (position, head) in (0..len).flat_map(|p| (0..2).map(move |h| (p, h))) {
                let (k, v) = (vector(position, head, 1.0), vector(position, head, -1.0));
                // SAFETY: one thread, and the positions were prepared.
                unsafe { layer.write(Isa::best(), head, position, &k, &v) };
            }
        }
        let [mut sequence] = sequences;
        sequence.commit(len);
        sequence
    }

    #[test]
    fn a_chunk_comes_back_as_it_left_wherever_it_is_placed() {
        let isa = Isa::best();
        for (keys, values) in [
            (KvFormat::F16, KvFormat::F16),
            (KvFormat::Q8, KvFormat::Tq4),
            (KvFormat::Tq4, KvFormat::Q8),
        ] {
            let layouts = [LayerLayout {
                shape: SHAPE,
                keys,
                values,
            }; 2];
            let from = written(&layouts, 700);
            let mut chunk = Vec::new();
            layouts[1].pack(isa, &from, 1, 190..446, &mut chunk);
            assert_eq!(chunk.len(), 256 * layouts[1].token_bytes());
            // All of it, and a part, at places with another remainder.
            for (at, of) in [
                (0, 0..256),
                (333, 0..256),
                (65, 13..200),
                (511, 255..256),
                (7, 9..9),
            ] {
                let mut to = from.pool().sequence();
                to.prepare(at + of.len() + 5, None).unwrap();
                layouts[1].place(isa, &mut to, 1, at, &chunk, 256, of.clone());
                to.commit(at + of.len());
                let (mut there, mut here) = (Vec::new(), Vec::new());
                layouts[1].pack(isa, &to, 1, at..at + of.len(), &mut there);
                layouts[1].pack(isa, &from, 1, 190 + of.start..190 + of.end, &mut here);
                assert!(there == here, "{keys:?}/{values:?} {at} {of:?}");
            }
        }
    }

    #[test]
    fn only_keys_turn() {
        let layout = LayerLayout {
            shape: SHAPE,
            keys: KvFormat::Q8,
            values: KvFormat::Tq4,
        };
        let from = written(&[layout], 40);
        let mut chunk = Vec::new();
        layout.pack(Isa::best(), &from, 0, 3..40, &mut chunk);
        let before = chunk.clone();
        let frequencies: Vec<f64> = (0..32).map(|i| 1e4f64.powf(-f64::from(i) / 32.0)).collect();
        let turn = Turn::new(&frequencies, reprise_kernels::math::RopePairs::Halves, 100);
        layout.turn_packed(Isa::best(), &turn, 37, &mut chunk);
        let keys = 2 * 37 * KvFormat::Q8.vector_bytes(64);
        assert!(chunk[..keys] != before[..keys] && chunk[keys..] == before[keys..]);
    }
}
