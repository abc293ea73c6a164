//! Keys and values of one head in any format, for tests of attention.
#![allow(dead_code)] // each test binary uses a part

use reprise_kernels::attention::{Head, KeyValues, OffsetTable, Residual, TILE_KEYS};
use reprise_kernels::isa::Isa;
use reprise_kernels::kv::tq4::Side;
use reprise_kernels::kv::{KvFormat, read, write};
use reprise_kernels::math::{RopePairs, rope};

pub fn wave(n: usize, step: f32) -> Vec<f32> {
    let value = |i: usize| (i as f32 * step).sin() + 0.3 * (i as f32 * step * 7.3).cos();
    (0..n).map(value).collect()
}

/// One head's tiles.
pub struct Stored {
    pub dim: usize,
    pub keys: KvFormat,
    pub values: KvFormat,
    key_tiles: Vec<Vec<u64>>,
    value_tiles: Vec<Vec<u64>>,
}

fn bytes(tile: &[u64], len: usize) -> &[u8] {
    // SAFETY: plain numbers, and more of them than `len` bytes.
    unsafe { std::slice::from_raw_parts(tile.as_ptr().cast(), len) }
}

impl KeyValues for Stored {
    fn tile(&self, tile: usize) -> (&[u8], &[u8]) {
        (
            bytes(&self.key_tiles[tile], self.keys.tile_bytes(self.dim)),
            bytes(&self.value_tiles[tile], self.values.tile_bytes(self.dim)),
        )
    }
}

impl Stored {
    /// Stores one vector after the other. Positions behind the last hold rubbish, as a page used before does.
    pub fn new(dim: usize, keys: KvFormat, values: KvFormat, k: &[Vec<f32>], v: &[Vec<f32>]) -> Stored {
        let tiles = |format: KvFormat, side, vectors: &[Vec<f32>]| {
            let mut tiles =
                vec![vec![u64::MAX; format.tile_bytes(dim) / 8]; vectors.len().div_ceil(TILE_KEYS)];
            for (position, x) in vectors.iter().enumerate() {
                let start = tiles[position / TILE_KEYS].as_mut_ptr().cast();
                // SAFETY: a tile of this format, and one thread.
                unsafe { write(Isa::best(), format, side, start, position % TILE_KEYS, x) };
            }
            tiles
        };
        Stored {
            dim,
            keys,
            values,
            key_tiles: tiles(keys, Side::Key, k),
            value_tiles: tiles(values, Side::Value, v),
        }
    }

    pub fn waves(dim: usize, keys: KvFormat, values: KvFormat, count: usize) -> Stored {
        let rows = |step: f32| {
            wave(count * dim, step)
                .chunks_exact(dim)
                .map(<[f32]>::to_vec)
                .collect::<Vec<_>>()
        };
        Stored::new(dim, keys, values, &rows(0.37), &rows(0.11))
    }

    pub fn head(&self, window: Option<usize>) -> Head<'static> {
        Head {
            dim: self.dim,
            keys: self.keys,
            values: self.values,
            window,
            residual: None,
        }
    }

    /// What the stored bytes stand for.
    pub fn vector(&self, side: Side, position: usize) -> Vec<f32> {
        let mut x = vec![0.0; self.dim];
        let (k, v) = self.tile(position / TILE_KEYS);
        let (format, tile) = match side {
            Side::Key => (self.keys, k),
            Side::Value => (self.values, v),
        };
        read(Isa::Portable, format, side, tile, position % TILE_KEYS, &mut x);
        x
    }

    /// The share of attention that each position gets, from the first one seen on, by definition, in f64. `offset` is
    /// what is added to the score of each position.
    pub fn shares(
        &self,
        query: &[f32],
        position: usize,
        head: &Head<'_>,
        offset: &dyn Fn(usize) -> f64,
    ) -> (usize, Vec<f64>) {
        let first = head.window.map_or(0, |w| (position + 1).saturating_sub(w));
        let dot = |a: &[f32], b: &[f32]| {
            a.iter()
                .zip(b)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum::<f64>()
        };
        let scores: Vec<f64> = (first..=position)
            .map(|t| dot(query, &self.vector(Side::Key, t)) + offset(t))
            .collect();
        let max = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        (first, weights.iter().map(|weight| weight / sum).collect())
    }

    /// Attention by its definition, in f64.
    pub fn naive(
        &self,
        query: &[f32],
        position: usize,
        head: &Head<'_>,
        offset: &dyn Fn(usize) -> f64,
    ) -> Vec<f64> {
        let (first, shares) = self.shares(query, position, head, offset);
        let mut out = vec![0.0; self.dim];
        for (j, share) in shares.iter().enumerate() {
            for (out, v) in out.iter_mut().zip(self.vector(Side::Value, first + j)) {
                *out += share * f64::from(v);
            }
        }
        out
    }
}

/// Every pair of formats that heads of `dim` values can have.
pub fn formats(dim: usize) -> Vec<(KvFormat, KvFormat)> {
    let known = || KvFormat::ALL.into_iter().filter(|format| format.supports(dim));
    known()
        .flat_map(|keys| known().map(move |values| (keys, values)))
        .collect()
}

/// A head whose keys have a mean and scales.
pub struct Shifted {
    pub mean: Vec<f32>,
    pub scale: Vec<f32>,
    pub pairs: RopePairs,
    pub table: OffsetTable,
    pub frequencies: Vec<f64>,
}

impl Shifted {
    pub fn new(dim: usize, pairs: RopePairs) -> Shifted {
        let half = dim / 2;
        let frequencies: Vec<f64> = (0..half)
            .map(|i| 10_000f64.powf(-(i as f64) / half as f64))
            .collect();
        let scale = (0..dim).map(|d| {
            let pair = match pairs {
                RopePairs::Neighbours => d / 2,
                RopePairs::Halves => d % half,
            };
            0.5 + (pair as f32 * 0.4).sin().abs()
        });
        Shifted {
            mean: wave(dim, 0.9).iter().map(|v| v * 4.0).collect(),
            scale: scale.collect(),
            pairs,
            table: OffsetTable::new(&frequencies, 2_048),
            frequencies,
        }
    }

    pub fn residual(&self) -> Residual<'_> {
        Residual {
            mean: &self.mean,
            scale: &self.scale,
            pairs: self.pairs,
            table: &self.table,
        }
    }

    /// Turns a vector to a position.
    pub fn turned(&self, x: &[f32], position: usize) -> Vec<f32> {
        let (sin, cos): (Vec<f32>, Vec<f32>) = self
            .frequencies
            .iter()
            .map(|f| (position as f64 * f).sin_cos())
            .map(|(s, c)| (s as f32, c as f32))
            .unzip();
        let mut x = x.to_vec();
        rope(Isa::Portable, &mut x, &cos, &sin, self.pairs);
        x
    }
}
