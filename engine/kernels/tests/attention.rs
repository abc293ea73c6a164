//! Attention in blocks against the definition in f64.

use reprise_kernels::attention::{AttentionScratch, KeyValues, Partial, TILE_KEYS, segments};
use reprise_kernels::half::{f16_to_f32, f32_to_f16};
use reprise_kernels::isa::Isa;

struct Flat {
    dim: usize,
    keys: Vec<u16>,
    values: Vec<u16>,
}

impl KeyValues for Flat {
    fn tile(&self, tile: usize) -> (&[u16], &[u16]) {
        let range = tile * TILE_KEYS * self.dim..((tile + 1) * TILE_KEYS * self.dim).min(self.keys.len());
        (&self.keys[range.clone()], &self.values[range])
    }
}

fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n)
        .map(|i| (i as f32 * step).sin() + 0.3 * (i as f32 * step * 7.3).cos())
        .collect()
}

fn naive(query: &[f32], position: usize, window: Option<usize>, kv: &Flat) -> Vec<f64> {
    let dim = kv.dim;
    let first = window.map_or(0, |w| (position + 1).saturating_sub(w));
    let score = |j: usize| -> f64 {
        (0..dim)
            .map(|d| f64::from(query[d]) * f64::from(f16_to_f32(kv.keys[j * dim + d])))
            .sum()
    };
    let scores: Vec<f64> = (first..=position).map(score).collect();
    let max = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    (0..dim)
        .map(|d| {
            let value = |j: usize| f64::from(f16_to_f32(kv.values[(first + j) * dim + d]));
            weights.iter().enumerate().map(|(j, w)| w * value(j)).sum::<f64>() / sum
        })
        .collect()
}

fn store(dim: usize, count: usize) -> Flat {
    let half = |v: Vec<f32>| v.into_iter().map(f32_to_f16).collect();
    Flat {
        dim,
        keys: half(wave(count * dim, 0.37)),
        values: half(wave(count * dim, 0.11)),
    }
}

#[test]
fn blocks_agree_with_the_definition() {
    for dim in [16, 64, 80, 256] {
        for (start, tokens, heads) in [(0, 1, 1), (0, 70, 3), (500, 30, 7), (1100, 13, 2), (63, 2, 4)] {
            for window in [None, Some(1), Some(100), Some(512)] {
                let kv = store(dim, start + tokens);
                let positions: Vec<usize> = (0..tokens * heads).map(|row| start + row / heads).collect();
                for isa in Isa::available() {
                    let mut scratch = AttentionScratch::new(positions.len(), dim);
                    let queries: Vec<Vec<f32>> = (0..positions.len())
                        .map(|r| wave(dim, 0.05 + r as f32 * 0.01))
                        .collect();
                    for (row, query) in queries.iter().enumerate() {
                        scratch.set_query(row, query);
                    }
                    scratch.run(isa, &positions, window, &kv);
                    for (row, &position) in positions.iter().enumerate() {
                        let mut out = vec![0.0; dim];
                        scratch.finish(row, &mut out);
                        let exact = naive(&queries[row], position, window, &kv);
                        for (a, b) in out.iter().zip(&exact) {
                            assert!(
                                (f64::from(*a) - b).abs() < 2e-5,
                                "{} d{dim} start {start} row {row} {window:?}: {a} {b}",
                                isa.name()
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_company_or_on_how_segments_are_split() {
    let (dim, start, tokens) = (64, 1000, 90);
    let kv = store(dim, start + tokens);
    let positions: Vec<usize> = (start..start + tokens).collect();
    let isa = Isa::best();
    let mut together = AttentionScratch::new(tokens, dim);
    for row in 0..tokens {
        together.set_query(row, &wave(dim, 0.1 + row as f32 * 0.01));
    }
    together.run(isa, &positions, None, &kv);
    for row in [0, 23, 24, 88, 89] {
        let mut expected = vec![0.0; dim];
        together.finish(row, &mut expected);
        let mut alone = AttentionScratch::new(1, dim);
        alone.set_query(0, &wave(dim, 0.1 + row as f32 * 0.01));
        let at = [start + row];
        let mut parts: Vec<Partial> = segments(at[0], at[0], None)
            .map(|segment| {
                let mut part = Partial::new(1, dim);
                alone.run_segment(isa, &at, None, &kv, segment);
                alone.copy_segment(1, &mut part);
                part
            })
            .collect();
        let mut total = parts.remove(0);
        for part in &parts {
            total.merge(part, 1, dim);
        }
        let mut out = vec![0.0; dim];
        total.finish(0, dim, &mut out);
        assert!(out == expected, "row {row}");
    }
}
