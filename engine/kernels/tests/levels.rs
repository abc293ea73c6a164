//! What holds of every instruction-set level of the machine at hand, beyond matrix products.

use reprise_kernels::attention::{AttentionScratch, KeyValues, TILE_KEYS};
use reprise_kernels::half::f32_to_f16;
use reprise_kernels::isa::Isa;

/// Keys and values of one head, as many as `dim` divides.
struct Flat {
    dim: usize,
    keys: Vec<u16>,
    values: Vec<u16>,
}

impl KeyValues for Flat {
    fn tile(&self, tile: usize) -> (&[u16], &[u16]) {
        let start = tile * TILE_KEYS * self.dim;
        let end = (start + TILE_KEYS * self.dim).min(self.keys.len());
        (&self.keys[start..end], &self.values[start..end])
    }
}

fn wave(n: usize, step: f32) -> Vec<f32> {
    let value = |i: usize| (i as f32 * step).sin() + 0.3 * (i as f32 * step * 7.3).cos();
    (0..n).map(value).collect()
}

fn attention(isa: Isa, positions: &[usize], window: Option<usize>, kv: &Flat) -> Vec<f32> {
    let mut scratch = AttentionScratch::new(positions.len(), kv.dim);
    for row in 0..positions.len() {
        scratch.set_query(row, &wave(kv.dim, 0.05 + row as f32 * 0.01));
    }
    scratch.run(isa, positions, window, kv);
    let mut out = vec![0.0; positions.len() * kv.dim];
    for (row, out) in out.chunks_exact_mut(kv.dim).enumerate() {
        scratch.finish(row, out);
    }
    out
}

#[test]
fn attention_agrees_with_the_portable_level_to_the_last_bit() {
    for dim in [16, 48, 64, 128] {
        for (start, tokens) in [(0, 1), (0, 67), (61, 5), (509, 14)] {
            let half = |step: f32| {
                wave((start + tokens) * dim, step)
                    .into_iter()
                    .map(f32_to_f16)
                    .collect()
            };
            let kv = Flat {
                dim,
                keys: half(0.37),
                values: half(0.11),
            };
            let positions: Vec<usize> = (start..start + tokens).collect();
            for window in [None, Some(1), Some(100)] {
                let plain = attention(Isa::Portable, &positions, window, &kv);
                for isa in Isa::available() {
                    let fast = attention(isa, &positions, window, &kv);
                    assert!(plain == fast, "{} d{dim} {start}+{tokens} {window:?}", isa.name());
                }
            }
        }
    }
}

/// Elsewhere an unknown or missing level falls back in silence; a test run that names one must have run it.
#[test]
fn the_level_that_the_environment_names_is_the_one_in_use() {
    if let Ok(name) = std::env::var("REPRISE_ISA") {
        assert_eq!(Isa::best().name(), name);
    }
}
