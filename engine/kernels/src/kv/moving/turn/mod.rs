//! Turning stored keys to another position (DESIGN section 7): decoded, rotated by what the distance adds to the angle
//! of every rotary pair, and encoded again.
//!
//! Rotary positions compose: a key at position p turned by delta is the key at p + delta. That holds for residual keys
//! too, which are stored as `R(p) (k - mu) / s`: s is the same for both values of a pair, so it commutes, and the mean
//! is added by attention, at the new position. What is lost is one more rounding, so every move should begin from the
//! codes as they were first stored.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::half::{f16_to_f32, f32_to_f16};
use crate::isa::Isa;
use crate::kv::KvFormat;
use crate::kv::quantise_q8_body;
use crate::kv::tq4::{Codebook, Side};
use crate::math::{RopePairs, by_level, rope_body};

/// A rotation by a distance, for one kind of rotary positions: made once for a chunk and used for all its keys.
#[derive(Debug, Clone)]
pub struct Turn {
    delta: i64,
    pairs: RopePairs,
    /// Of every rotary pair: `delta * frequency`, taken in f64.
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Turn {
    /// A move by `delta` positions, where pair i turns by `frequencies[i]` radians a position. The first
    /// `2 * frequencies.len()` values of a head turn, the others stay.
    pub fn new(frequencies: &[f64], pairs: RopePairs, delta: i64) -> Turn {
        let (sin, cos) = frequencies
            .iter()
            .map(|frequency| {
                let (sin, cos) = (delta as f64 * frequency).sin_cos();
                (sin as f32, cos as f32)
            })
            .unzip();
        Turn {
            delta,
            pairs,
            cos,
            sin,
        }
    }

    /// Positions moved by.
    pub fn delta(&self) -> i64 {
        self.delta
    }

    /// Whether nothing moves: keys then keep their codes to the bit.
    pub fn is_still(&self) -> bool {
        self.delta == 0 || self.cos.is_empty()
    }

    /// Turns packed keys in place. Every level gives the same bits, as long as the numbers are finite.
    ///
    /// # Panics
    /// When `run` is not a number of vectors of `dim` values, the format cannot have such, or more values turn than
    /// there are.
    pub fn apply(&self, isa: Isa, format: KvFormat, dim: usize, run: &mut [u8]) {
        assert!(format.supports(dim) && dim <= 1_024 && 2 * self.cos.len() <= dim);
        assert!(run.len().is_multiple_of(format.vector_bytes(dim)));
        if self.is_still() {
            return;
        }
        match format {
            KvFormat::F16 => self.apply_f16(isa, dim, run),
            KvFormat::Q8 => turn_q8(isa, run, dim, &self.cos, &self.sin, self.pairs),
            KvFormat::Tq4 => self.apply_tq4(isa, dim, run),
        }
    }

    fn apply_f16(&self, isa: Isa, dim: usize, run: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
            // SAFETY: both levels imply these features, and `isa` came from detection.
            return unsafe { avx2::turn_f16(run, dim, &self.cos, &self.sin, self.pairs) };
        }
        let _ = isa;
        turn_f16(run, dim, &self.cos, &self.sin, self.pairs);
    }

    fn apply_tq4(&self, isa: Isa, dim: usize, run: &mut [u8]) {
        let Some(book) = Codebook::of(dim) else {
            unreachable!("the format supports this dimension");
        };
        let (cos, sin, pairs) = (&self.cos, &self.sin, self.pairs);
        #[cfg(target_arch = "x86_64")]
        if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
            // SAFETY: both levels imply these features, and `isa` came from detection; the dimension is the book's.
            return unsafe {
                match dim {
                    64 => avx2::turn_tq4::<8>(run, book, cos, sin, pairs),
                    128 => avx2::turn_tq4::<16>(run, book, cos, sin, pairs),
                    _ => avx2::turn_tq4::<32>(run, book, cos, sin, pairs),
                }
            };
        }
        let (mut x, mut z) = ([0.0; 256], [0u8; 256]);
        let (x, z) = (&mut x[..dim], &mut z[..dim]);
        for vector in run.chunks_exact_mut(KvFormat::Tq4.vector_bytes(dim)) {
            let (codes, unit) = vector.split_at_mut(dim / 2);
            for (z, code) in z.as_chunks_mut::<2>().0.iter_mut().zip(codes.iter()) {
                *z = [code & 15, code >> 4];
            }
            book.decode(isa, Side::Key, z, u16::from_ne_bytes([unit[0], unit[1]]), x);
            crate::math::rope(isa, x, cos, sin, pairs);
            let norm = book.encode(isa, Side::Key, x, z);
            for (code, [low, high]) in codes.iter_mut().zip(z.as_chunks::<2>().0) {
                *code = low | high << 4;
            }
            unit.copy_from_slice(&norm.to_ne_bytes());
        }
    }
}

fn turn_f16(run: &mut [u8], dim: usize, cos: &[f32], sin: &[f32], pairs: RopePairs) {
    let mut x = [0.0; 1_024];
    let x = &mut x[..dim];
    for vector in run.chunks_exact_mut(2 * dim) {
        let halves = vector.as_chunks_mut::<2>().0;
        for (x, half) in x.iter_mut().zip(halves.iter()) {
            *x = f16_to_f32(u16::from_ne_bytes(*half));
        }
        rope_body(x, cos, sin, pairs);
        for (half, &x) in halves.iter_mut().zip(x.iter()) {
            *half = f32_to_f16(x).to_ne_bytes();
        }
    }
}

#[inline(always)]
fn turn_q8_body(run: &mut [u8], dim: usize, cos: &[f32], sin: &[f32], pairs: RopePairs) {
    let (mut x, mut turned) = ([0.0; 1_024], [0i8; 1_024]);
    let (x, turned) = (&mut x[..dim], &mut turned[..dim]);
    for vector in run.chunks_exact_mut(dim + 2) {
        let (codes, unit) = vector.split_at_mut(dim);
        let scale = f16_to_f32(u16::from_ne_bytes([unit[0], unit[1]]));
        for (x, &code) in x.iter_mut().zip(codes.iter()) {
            *x = f32::from(code as i8) * scale;
        }
        rope_body(x, cos, sin, pairs);
        let scale = quantise_q8_body(x, turned);
        for (code, &turned) in codes.iter_mut().zip(turned.iter()) {
            *code = turned as u8;
        }
        unit.copy_from_slice(&scale.to_ne_bytes());
    }
}

by_level! {
    /// Turns packed keys of eight bits.
    turn_q8(run: &mut [u8], dim: usize, cos: &[f32], sin: &[f32], pairs: RopePairs) => turn_q8_body
}
