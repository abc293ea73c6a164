//! What an encoder needs beside matrix products: layer norms, the exact GELU, and attention in which every position sees
//! every other. In f32, for one thread: callers give each thread texts of its own.

use crate::isa::Isa;
use crate::math::{by_level, exp, lane_most, lane_sum};

/// Columns of a matrix that a block of rows is multiplied by at once: keys, or values of a head.
const COLUMNS: usize = 16;
/// Queries that are computed together.
const QUERIES: usize = 4;

#[inline(always)]
fn layer_norm_body(x: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let mean = lane_sum(x, |v| v) / x.len() as f32;
    let variance = lane_sum(x, |v| (v - mean) * (v - mean)) / x.len() as f32;
    let scale = 1.0 / (variance + epsilon).sqrt();
    for ((v, &w), &b) in x.iter_mut().zip(weight).zip(bias) {
        *v = (*v - mean) * scale * w + b;
    }
}

by_level! {
    /// `x = (x - mean) / sqrt(variance + epsilon) * weight + bias`, in place.
    layer_norm(x: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) => layer_norm_body
}

#[inline(always)]
fn gelu_body(x: &mut [f32]) {
    // erf to within 2e-7 (Abramowitz and Stegun 7.1.26).
    const P: f32 = 0.327_591_1;
    const A: [f32; 5] = [1.061_405_4, -1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6];
    for x in x {
        let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
        let t = 1.0 / (1.0 + P * z);
        let mut sum = A[0];
        for a in &A[1..] {
            sum = sum.mul_add(t, *a);
        }
        let erf = 1.0 - sum * t * exp(-z * z);
        *x = 0.5 * *x * (1.0 + erf.copysign(*x));
    }
}

by_level! {
    /// `x = x * (1 + erf(x / sqrt 2)) / 2`, in place.
    gelu(x: &mut [f32]) => gelu_body
}

#[inline(always)]
fn dot_f16_body(query: &[f32], rows: &[u16], scores: &mut [f32]) {
    for (row, score) in rows.chunks_exact(query.len()).zip(scores) {
        let mut lanes = [0.0f32; COLUMNS];
        let (whole, rest) = query.as_chunks::<COLUMNS>();
        let (halves, halves_rest) = row.as_chunks::<COLUMNS>();
        for (q, h) in whole.iter().zip(halves) {
            for i in 0..COLUMNS {
                lanes[i] += q[i] * crate::half::f16_to_f32(h[i]);
            }
        }
        for (i, (q, h)) in rest.iter().zip(halves_rest).enumerate() {
            lanes[i] += q * crate::half::f16_to_f32(*h);
        }
        *score = lanes.iter().sum();
    }
}

by_level! {
    /// The products of a vector with rows of binary16, one row after the other, as many as there are scores.
    dot_f16(query: &[f32], rows: &[u16], scores: &mut [f32]) => dot_f16_body
}

/// A thread's scratch for [`attend_all`].
#[derive(Debug, Default)]
pub struct AttentionScratch {
    /// A head's keys, `[dim][keys]`.
    keys: Vec<f32>,
    /// A head's values, `[keys][dim]`, the dimension filled up to whole blocks.
    values: Vec<f32>,
    /// Scores of [`QUERIES`] queries.
    scores: Vec<f32>,
}

#[inline(always)]
fn attend_all_body(qkv: &[f32], heads: usize, dim: usize, out: &mut [f32], scratch: &mut AttentionScratch) {
    let width = heads * dim;
    let tokens = qkv.len() / (3 * width);
    let padded = tokens.next_multiple_of(COLUMNS);
    let padded_dim = dim.next_multiple_of(COLUMNS);
    let scale = 1.0 / (dim as f32).sqrt();
    scratch.keys.clear();
    scratch.keys.resize(dim * padded, 0.0);
    scratch.values.clear();
    scratch.values.resize(tokens * padded_dim, 0.0);
    scratch.scores.clear();
    scratch.scores.resize(QUERIES * padded, 0.0);
    for head in 0..heads {
        let at = |token: usize, part: usize| token * 3 * width + part * width + head * dim;
        for token in 0..tokens {
            for (d, &key) in qkv[at(token, 1)..][..dim].iter().enumerate() {
                scratch.keys[d * padded + token] = key;
            }
            scratch.values[token * padded_dim..][..dim].copy_from_slice(&qkv[at(token, 2)..][..dim]);
        }
        for first in (0..tokens).step_by(QUERIES) {
            let count = QUERIES.min(tokens - first);
            // The last block repeats its last query: a fixed number keeps the sums in registers.
            let queries: [&[f32]; QUERIES] =
                std::array::from_fn(|i| &qkv[at(first + i.min(count - 1), 0)..][..dim]);
            for block in (0..padded).step_by(COLUMNS) {
                let sums = block_sums(queries, &scratch.keys[block..], padded);
                for (row, sums) in scratch.scores.chunks_exact_mut(padded).zip(sums) {
                    row[block..block + COLUMNS].copy_from_slice(&sums);
                }
            }
            let mut inverse = [0.0f32; QUERIES];
            let rows = scratch.scores.chunks_exact_mut(padded).take(count);
            for (row, inverse) in rows.zip(&mut inverse) {
                let row = &mut row[..tokens];
                let most = lane_most(row);
                for score in row.iter_mut() {
                    *score = exp((*score - most) * scale);
                }
                *inverse = 1.0 / lane_sum(row, |v| v);
            }
            let rows: [&[f32]; QUERIES] = std::array::from_fn(|i| &scratch.scores[i * padded..][..tokens]);
            for from in (0..dim).step_by(COLUMNS) {
                let sums = block_sums(rows, &scratch.values[from..], padded_dim);
                let wide = COLUMNS.min(dim - from);
                for (i, (sums, inverse)) in sums.iter().zip(inverse).take(count).enumerate() {
                    let out = &mut out[(first + i) * width + head * dim + from..][..wide];
                    for (out, sum) in out.iter_mut().zip(sums) {
                        *out = sum * inverse;
                    }
                }
            }
        }
    }
}

/// Products of [`QUERIES`] rows with [`COLUMNS`] columns of a matrix, whose rows are `stride` apart and at least as many as the
/// values of a row: sums in the order of these rows.
#[inline(always)]
fn block_sums(rows: [&[f32]; QUERIES], matrix: &[f32], stride: usize) -> [[f32; COLUMNS]; QUERIES] {
    let mut sums = [[0.0f32; COLUMNS]; QUERIES];
    for d in 0..rows[0].len() {
        let Some(columns) = matrix.get(d * stride..).and_then(<[f32]>::first_chunk::<COLUMNS>) else {
            continue;
        };
        for (sums, row) in sums.iter_mut().zip(rows) {
            let q = row[d];
            for i in 0..COLUMNS {
                sums[i] = q.mul_add(columns[i], sums[i]);
            }
        }
    }
    sums
}

by_level! {
    /// Attention of every token to every other of one text. `qkv` has for each token its queries, keys and values, `heads`
    /// times `dim` values each; `out` gets as many for each token.
    ///
    /// # Panics
    /// When `out` is too short: a mistake of the caller.
    attend_all(qkv: &[f32], heads: usize, dim: usize, out: &mut [f32], scratch: &mut AttentionScratch) => attend_all_body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect()
    }

    #[test]
    fn gelu_is_the_exact_one() {
        // Values by an arbitrary-precision library.
        let known = [
            (0.5, 0.345_731_2),
            (1.0, 0.841_344_8),
            (-1.0, -0.158_655_3),
            (3.0, 2.995_950_3),
            (-4.0, -0.000_126_7),
        ];
        for isa in Isa::available() {
            for (x, y) in known {
                let mut value = [x];
                gelu(isa, &mut value);
                assert!((value[0] - y).abs() < 2e-6, "{x}: {} is not {y}", value[0]);
            }
        }
    }

    #[test]
    fn attention_is_what_a_plain_loop_gives() {
        for (tokens, heads, dim) in [(1, 2, 32), (17, 3, 32), (33, 2, 24), (6, 1, 64)] {
            let width = heads * dim;
            let qkv = noise(tokens * 3 * width, tokens as u32);
            let mut expected = vec![0.0f64; tokens * width];
            for h in 0..heads {
                for t in 0..tokens {
                    let value = |token: usize, part: usize, d: usize| {
                        f64::from(qkv[token * 3 * width + part * width + h * dim + d])
                    };
                    let scores: Vec<f64> = (0..tokens)
                        .map(|s| {
                            (0..dim).map(|d| value(t, 0, d) * value(s, 1, d)).sum::<f64>()
                                / (dim as f64).sqrt()
                        })
                        .map(f64::exp)
                        .collect();
                    let sum: f64 = scores.iter().sum();
                    for d in 0..dim {
                        expected[t * width + h * dim + d] = scores
                            .iter()
                            .enumerate()
                            .map(|(s, p)| p * value(s, 2, d))
                            .sum::<f64>()
                            / sum;
                    }
                }
            }
            for isa in Isa::available() {
                let mut out = vec![0.0; tokens * width];
                attend_all(isa, &qkv, heads, dim, &mut out, &mut AttentionScratch::default());
                for (got, want) in out.iter().zip(&expected) {
                    assert!((f64::from(*got) - want).abs() < 1e-5, "{got} is not {want}");
                }
            }
        }
    }

    #[test]
    fn norms_have_mean_and_variance_of_their_weights() {
        for isa in Isa::available() {
            let mut x = noise(384, 7);
            layer_norm(isa, &mut x, &[2.0; 384], &[1.0; 384], 1e-12);
            let mean = x.iter().sum::<f32>() / 384.0;
            let variance = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / 384.0;
            assert!((mean - 1.0).abs() < 1e-4 && (variance - 4.0).abs() < 1e-3);
        }
    }

    #[test]
    fn products_with_halves_are_exact_sums_of_exact_values() {
        let query = noise(40, 3);
        let rows: Vec<u16> = noise(120, 4).into_iter().map(crate::half::f32_to_f16).collect();
        for isa in Isa::available() {
            let mut scores = [0.0; 3];
            dot_f16(isa, &query, &rows, &mut scores);
            for (row, score) in rows.chunks_exact(40).zip(scores) {
                let plain: f32 = row
                    .iter()
                    .zip(&query)
                    .map(|(&h, q)| crate::half::f16_to_f32(h) * q)
                    .sum();
                assert!((plain - score).abs() < 1e-4);
            }
        }
    }
}
