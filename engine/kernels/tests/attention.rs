//! Attention in blocks against its definition in f64, in every format.

mod common;

use common::{Shifted, Stored, formats, wave};
use reprise_kernels::attention::{AttentionScratch, Head, Partial, segments};
use reprise_kernels::isa::Isa;
use reprise_kernels::kv::KvFormat;
use reprise_kernels::kv::tq4::Side;
use reprise_kernels::math::RopePairs;

/// How far a result may be from the stored numbers' exact attention: f32 sums for half precision, queries and weights
/// of sixteen bits for the others.
fn tolerance(head: &Head<'_>) -> f64 {
    match (head.keys, head.values) {
        (KvFormat::F16, KvFormat::F16) => 2e-5,
        _ => 2e-3,
    }
}

#[test]
fn blocks_agree_with_the_definition_in_every_format() {
    for dim in [16, 64, 80, 128, 256] {
        for (start, tokens, heads) in [(0, 1, 1), (0, 70, 3), (500, 30, 7), (1100, 3, 2), (63, 2, 4)] {
            for (keys, values) in formats(dim) {
                let kv = Stored::waves(dim, keys, values, start + tokens);
                let positions: Vec<usize> = (0..tokens * heads).map(|row| start + row / heads).collect();
                for window in [None, Some(1), Some(100), Some(512)] {
                    let head = kv.head(window);
                    let isa = Isa::best();
                    let mut scratch = AttentionScratch::new(positions.len(), dim);
                    let queries: Vec<Vec<f32>> = (0..positions.len())
                        .map(|r| wave(dim, 0.05 + r as f32 * 0.01))
                        .collect();
                    for (row, query) in queries.iter().enumerate() {
                        scratch.set_query(isa, &head, row, query);
                    }
                    scratch.run(isa, &head, &positions, &kv);
                    // First, last and some rows between: the definition in f64 is slow.
                    for row in [0, positions.len() / 3, positions.len() / 2, positions.len() - 1] {
                        let mut out = vec![0.0; dim];
                        scratch.finish(isa, &head, row, &mut out);
                        let exact = kv.naive(&queries[row], positions[row], &head, &|_| 0.0);
                        for (a, b) in out.iter().zip(&exact) {
                            assert!(
                                (f64::from(*a) - b).abs() < tolerance(&head),
                                "{keys:?}/{values:?} d{dim} start {start} row {row} {window:?}: {a} {b}",
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_key_receives_is_what_the_rows_give() {
    let (isa, dim) = (Isa::best(), 64);
    let positions = [3, 90, 90, 200, 201, 202, 255, 256, 599];
    for (keys, values) in formats(dim) {
        let kv = Stored::waves(dim, keys, values, 600);
        for window in [None, Some(100)] {
            let head = kv.head(window);
            let mut scratch = AttentionScratch::new(positions.len(), dim);
            let mut exact = vec![0.0; 600];
            for (row, &position) in positions.iter().enumerate() {
                let query = wave(dim, 0.05 + row as f32 * 0.01);
                scratch.set_query(isa, &head, row, &query);
                let (first, shares) = kv.shares(&query, position, &head, &|_| 0.0);
                for (exact, share) in exact[first..].iter_mut().zip(shares) {
                    *exact += share;
                }
            }
            scratch.run(isa, &head, &positions, &kv);
            let mut received = vec![0.0; 600];
            scratch.add_received(isa, &head, &positions, &kv, &mut received);
            for (position, (a, b)) in received.iter().zip(&exact).enumerate() {
                assert!(
                    (f64::from(*a) - b).abs() < tolerance(&head),
                    "{keys:?}/{values:?} {window:?} at {position}: {a} {b}"
                );
            }
        }
    }
}

#[test]
fn keys_without_their_mean_give_the_scores_of_the_keys() {
    for (dim, keys) in [
        (80, KvFormat::Q8),
        (64, KvFormat::Q8),
        (64, KvFormat::Tq4),
        (128, KvFormat::Tq4),
    ] {
        for pairs in [RopePairs::Neighbours, RopePairs::Halves] {
            let shifted = Shifted::new(dim, pairs);
            let count = 700;
            let rows = |step: f32| -> Vec<Vec<f32>> {
                wave(count * dim, step)
                    .chunks_exact(dim)
                    .map(<[f32]>::to_vec)
                    .collect()
            };
            // What is stored is (key - mean) / scale, turned.
            let stored: Vec<Vec<f32>> = rows(0.37)
                .iter()
                .enumerate()
                .map(|(t, k)| shifted.turned(k, t))
                .collect();
            let kv = Stored::new(dim, keys, KvFormat::Q8, &stored, &rows(0.11));
            let head = Head {
                residual: Some(shifted.residual()),
                ..kv.head(None)
            };
            let positions = [255, 256, 300, 699];
            for isa in Isa::available() {
                let mut scratch = AttentionScratch::new(positions.len(), dim);
                let queries: Vec<Vec<f32>> = (0..positions.len())
                    .map(|r| wave(dim, 0.05 + r as f32 * 0.01))
                    .collect();
                for (row, query) in queries.iter().enumerate() {
                    scratch.set_query(isa, &head, row, query);
                }
                scratch.run(isa, &head, &positions, &kv);
                for (row, &position) in positions.iter().enumerate() {
                    let mut out = vec![0.0; dim];
                    scratch.finish(isa, &head, row, &mut out);
                    let scaled: Vec<f32> = queries[row]
                        .iter()
                        .zip(&shifted.scale)
                        .map(|(q, s)| q * s)
                        .collect();
                    let offset = |t: usize| -> f64 {
                        let mean = shifted.turned(&shifted.mean, t);
                        let dot = queries[row]
                            .iter()
                            .zip(&mean)
                            .map(|(a, b)| f64::from(*a) * f64::from(*b));
                        dot.sum()
                    };
                    let exact = kv.naive(&scaled, position, &head, &offset);
                    for (a, b) in out.iter().zip(&exact) {
                        assert!(
                            (f64::from(*a) - b).abs() < 5e-3,
                            "{} {keys:?} {pairs:?} d{dim} row {row}: {a} {b}",
                            isa.name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_company_or_on_how_segments_are_split() {
    let (dim, start, tokens) = (64, 1000, 90);
    for (keys, values) in formats(dim) {
        let kv = Stored::waves(dim, keys, values, start + tokens);
        let head = kv.head(None);
        let positions: Vec<usize> = (start..start + tokens).collect();
        let isa = Isa::best();
        let mut together = AttentionScratch::new(tokens, dim);
        for row in 0..tokens {
            together.set_query(isa, &head, row, &wave(dim, 0.1 + row as f32 * 0.01));
        }
        together.run(isa, &head, &positions, &kv);
        for row in [0, 23, 24, 88, 89] {
            let mut expected = vec![0.0; dim];
            together.finish(isa, &head, row, &mut expected);
            let mut alone = AttentionScratch::new(1, dim);
            alone.set_query(isa, &head, 0, &wave(dim, 0.1 + row as f32 * 0.01));
            let at = [start + row];
            let mut parts: Vec<Partial> = segments(at[0], at[0], None)
                .map(|segment| {
                    let mut part = Partial::new(1, dim);
                    alone.run_segment(isa, &head, &at, &kv, segment, &[]);
                    alone.copy_segment(1, dim, &mut part);
                    part
                })
                .collect();
            let mut total = parts.remove(0);
            for part in &parts {
                total.merge(isa, part, 1, dim);
            }
            let mut out = vec![0.0; dim];
            total.finish(isa, &head, 0, &mut out);
            assert!(out == expected, "{keys:?}/{values:?} row {row}");
        }
    }
}

#[test]
fn a_tile_is_read_as_the_numbers_that_were_stored() {
    let k: Vec<Vec<f32>> = (0..3).map(|i| wave(64, 0.2 + i as f32 * 0.1)).collect();
    let kv = Stored::new(64, KvFormat::Q8, KvFormat::F16, &k, &k);
    for (position, k) in k.iter().enumerate() {
        let error = |side| -> f32 {
            kv.vector(side, position)
                .iter()
                .zip(k)
                .map(|(a, b)| (a - b).abs())
                .sum()
        };
        assert!(error(Side::Key) < 0.5 && error(Side::Value) < 0.02);
    }
}
