//! TQ4: four bits a value after a random rotation, one norm a vector (DESIGN section 5).
//!
//! A vector x of d values with norm rho is stored as `z` and `norm`:
//! `y = H(s * x) / (rho sqrt d)`, `z_i` the nearest of 16 centroids, `norm = rho / |c[z]|`; it stands for
//! `norm * s * H(c[z]) / sqrt d`. H is the unnormalised Walsh-Hadamard transform, s a fixed vector of signs.
//!
//! Attention works in the rotated space, so stored vectors are never rotated back there: the query is rotated once,
//! and the sum over values once at the end. Centroids are held as integers of eight bits ([`Codebook::codes`]), so
//! that scores and sums are integer dot products, the same on every machine and in every order.

use super::tables::{D64, D128, D256};
use crate::half::{f16_to_f32, f32_to_f16};
use crate::isa::Isa;
use crate::math::{by_level, lane_sum};

/// No centroid is larger as an integer.
pub const MOST_CODE: i8 = 127;

/// One dimension's constants, as they were computed.
pub(super) struct Table {
    /// The largest centroid as an integer: of those from 90 to 127 the one that moves the centroids least (a squared
    /// error of 2e-5 of a vector's at most, where the format itself has 9e-3).
    pub largest_code: i8,
    pub centroids: [f32; 16],
    pub midpoints: [f32; 15],
    /// One bit a dimension, least significant first; set is +1.
    pub key_signs: &'static [u8],
    pub value_signs: &'static [u8],
}

/// What a vector is: keys and values have different signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A key.
    Key,
    /// A value.
    Value,
}

/// The constants of one head dimension, ready to use.
#[derive(Debug)]
pub struct Codebook {
    /// Values in a vector.
    pub dim: usize,
    /// Centroids as integers: `codes[z] * unit` is the centroid.
    pub codes: [i8; 16],
    /// What one unit of `codes` is worth.
    pub unit: f32,
    midpoints: [f32; 15],
    /// The signs divided by sqrt d, so that one multiplication does both.
    key_signs: [f32; 256],
    value_signs: [f32; 256],
}

impl Codebook {
    const fn new(dim: usize, root: f32, table: &Table) -> Codebook {
        let unit = table.centroids[15] / table.largest_code as f32;
        let mut codes = [0; 16];
        let mut i = 0;
        while i < 16 {
            let exact = table.centroids[i] / unit;
            codes[i] = (if exact < 0.0 { exact - 0.5 } else { exact + 0.5 }) as i8;
            i += 1;
        }
        Codebook {
            dim,
            codes,
            unit,
            midpoints: table.midpoints,
            key_signs: signs(dim, 1.0 / root, table.key_signs),
            value_signs: signs(dim, 1.0 / root, table.value_signs),
        }
    }

    /// The codebook for a head dimension, where there is one.
    pub fn of(dim: usize) -> Option<&'static Codebook> {
        static BOOKS: [Codebook; 3] = [
            Codebook::new(64, 8.0, &D64),
            Codebook::new(128, 11.313_708, &D128),
            Codebook::new(256, 16.0, &D256),
        ];
        BOOKS.iter().find(|book| book.dim == dim)
    }

    /// What the values of a vector of this side are multiplied by: signs divided by sqrt d.
    pub(super) fn signs(&self, side: Side) -> &[f32] {
        match side {
            Side::Key => &self.key_signs[..self.dim],
            Side::Value => &self.value_signs[..self.dim],
        }
    }

    /// The borders between centroids, ascending, for vectors of length one.
    pub(super) fn midpoints(&self) -> &[f32; 15] {
        &self.midpoints
    }

    /// `x = H(s * x) / sqrt d`: into the space in which vectors of this side are stored. Keeps the length.
    pub fn rotate(&self, isa: Isa, side: Side, x: &mut [f32]) {
        rotate(isa, self.signs(side), x);
    }

    /// `x = s * H(x) / sqrt d`: back again.
    pub fn rotate_back(&self, isa: Isa, side: Side, x: &mut [f32]) {
        rotate_back(isa, self.signs(side), x);
    }

    /// Encodes a vector: its nearest centroids into `z`, its norm returned as half precision.
    pub fn encode(&self, isa: Isa, side: Side, x: &[f32], z: &mut [u8]) -> u16 {
        let mut rotated = [0.0; 256];
        let rotated = &mut rotated[..self.dim];
        rotated.copy_from_slice(x);
        rotate(isa, self.signs(side), rotated);
        quantise(isa, rotated, &self.midpoints, &self.codes, self.unit, z)
    }

    /// The vector that `z` and `norm` stand for.
    pub fn decode(&self, isa: Isa, side: Side, z: &[u8], norm: u16, x: &mut [f32]) {
        let unit = f16_to_f32(norm) * self.unit;
        for (x, &z) in x.iter_mut().zip(z) {
            *x = f32::from(self.codes[usize::from(z & 15)]) * unit;
        }
        self.rotate_back(isa, side, x);
    }
}

const fn signs(dim: usize, size: f32, bits: &[u8]) -> [f32; 256] {
    let mut signs = [0.0; 256];
    let mut i = 0;
    while i < dim {
        signs[i] = if bits[i / 8] >> (i % 8) & 1 == 1 {
            size
        } else {
            -size
        };
        i += 1;
    }
    signs
}

/// The unnormalised Walsh-Hadamard transform of a power of two (at least eight) of values.
#[inline(always)]
fn hadamard(x: &mut [f32]) {
    let mut half = x.len() / 2;
    while half >= 8 {
        for block in x.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half /= 2;
    }
    for eight in x.as_chunks_mut::<8>().0 {
        let [a, b, c, d, e, f, g, h] = *eight;
        let [a, b, c, d, e, f, g, h] = [a + e, b + f, c + g, d + h, a - e, b - f, c - g, d - h];
        let [a, b, c, d, e, f, g, h] = [a + c, b + d, a - c, b - d, e + g, f + h, e - g, f - h];
        *eight = [a + b, a - b, c + d, c - d, e + f, e - f, g + h, g - h];
    }
}

#[inline(always)]
fn rotate_body(signs: &[f32], x: &mut [f32]) {
    for (x, sign) in x.iter_mut().zip(signs) {
        *x *= sign;
    }
    hadamard(x);
}

#[inline(always)]
fn rotate_back_body(signs: &[f32], x: &mut [f32]) {
    hadamard(x);
    for (x, sign) in x.iter_mut().zip(signs) {
        *x *= sign;
    }
}

by_level! {
    /// See [`Codebook::rotate`].
    rotate(signs: &[f32], x: &mut [f32]) => rotate_body
}
by_level! {
    /// See [`Codebook::rotate_back`].
    rotate_back(signs: &[f32], x: &mut [f32]) => rotate_back_body
}

/// `z[i]` = midpoints below `y[i] / |y|`; returns the norm `|y| / |c[z]|`.
#[inline(always)]
fn quantise_body(y: &[f32], midpoints: &[f32; 15], codes: &[i8; 16], unit: f32, z: &mut [u8]) -> u16 {
    let length = lane_sum(y, |v| v * v).sqrt();
    let mut bounds = [0.0; 15];
    for (bound, midpoint) in bounds.iter_mut().zip(midpoints) {
        *bound = midpoint * length;
    }
    for (z, y) in z.chunks_mut(16).zip(y.chunks(16)) {
        let mut counts = [0u32; 16];
        for bound in bounds {
            for (count, &y) in counts.iter_mut().zip(y) {
                *count += u32::from(y > bound);
            }
        }
        for (z, count) in z.iter_mut().zip(counts) {
            *z = count as u8;
        }
    }
    let mut squares = 0i32;
    for &z in z.iter() {
        let code = i32::from(codes[usize::from(z & 15)]);
        squares += code * code;
    }
    // The smallest code is not zero, so neither is the sum.
    let norm = length / ((squares as f32).sqrt() * unit);
    // Half precision ends at 65,504; a longer vector is shortened rather than made infinite.
    f32_to_f16(if norm > 65_504.0 { 65_504.0 } else { norm })
}

by_level! {
    /// See [`Codebook::encode`].
    quantise(y: &[f32], midpoints: &[f32; 15], codes: &[i8; 16], unit: f32, z: &mut [u8]) -> u16 => quantise_body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaussian(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as f64 + 0.5) / f64::from(1u32 << 31)
        };
        (0..count)
            .map(|_| ((-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()) as f32)
            .collect()
    }

    #[test]
    fn a_gaussian_vector_loses_what_theory_says() {
        // DESIGN section 5: relative squared error with this norm.
        for (dim, expected) in [(64, 0.0089), (128, 0.0092), (256, 0.0093)] {
            let book = Codebook::of(dim).unwrap();
            for side in [Side::Key, Side::Value] {
                let (mut error, mut energy) = (0.0, 0.0);
                for seed in 0..400 {
                    let x = gaussian(dim, seed);
                    let (mut z, mut back) = (vec![0; dim], vec![0.0; dim]);
                    let norm = book.encode(Isa::best(), side, &x, &mut z);
                    book.decode(Isa::best(), side, &z, norm, &mut back);
                    error += x
                        .iter()
                        .zip(&back)
                        .map(|(a, b)| f64::from(a - b).powi(2))
                        .sum::<f64>();
                    energy += x.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>();
                }
                let relative = error / energy;
                assert!(
                    (relative - expected).abs() < 0.0004,
                    "d {dim} {side:?}: {relative}"
                );
            }
        }
    }

    #[test]
    fn every_level_stores_the_same_bits() {
        for dim in [64, 128, 256] {
            let book = Codebook::of(dim).unwrap();
            for seed in 0..50 {
                let x = gaussian(dim, seed);
                let mut plain = vec![0; dim];
                let plain_norm = book.encode(Isa::Portable, Side::Key, &x, &mut plain);
                for isa in Isa::available() {
                    let mut z = vec![0; dim];
                    assert_eq!(book.encode(isa, Side::Key, &x, &mut z), plain_norm);
                    assert_eq!(z, plain);
                }
            }
        }
    }

    #[test]
    fn turning_there_and_back_changes_nothing_but_rounding() {
        for dim in [64, 128, 256] {
            let book = Codebook::of(dim).unwrap();
            let x = gaussian(dim, 7);
            let mut y = x.clone();
            book.rotate(Isa::best(), Side::Value, &mut y);
            let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>();
            assert!((length(&x) / length(&y) - 1.0).abs() < 1e-5);
            book.rotate_back(Isa::best(), Side::Value, &mut y);
            assert!(x.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-5));
        }
    }

    #[test]
    fn odd_vectors_are_stored_without_harm() {
        let book = Codebook::of(64).unwrap();
        let (mut z, mut back) = (vec![0; 64], vec![0.0; 64]);
        let norm = book.encode(Isa::best(), Side::Key, &[0.0; 64], &mut z);
        book.decode(Isa::best(), Side::Key, &z, norm, &mut back);
        assert!(back.iter().all(|&x| x == 0.0));
        let norm = book.encode(Isa::best(), Side::Key, &[1e6; 64], &mut z);
        assert_eq!(f16_to_f32(norm), 65_504.0);
        let norm = book.encode(Isa::best(), Side::Key, &[f32::NAN; 64], &mut z);
        assert!(f16_to_f32(norm).is_nan(), "a broken model's numbers stay visible");
    }
}
