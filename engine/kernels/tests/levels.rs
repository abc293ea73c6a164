//! What holds of every instruction-set level of the machine at hand, beyond matrix products.

mod common;

use common::{Shifted, Stored, formats, wave};
use reprise_kernels::attention::{AttentionScratch, Head};
use reprise_kernels::isa::Isa;
use reprise_kernels::kv::KvFormat;
use reprise_kernels::math::RopePairs;

fn attention(isa: Isa, head: &Head<'_>, positions: &[usize], kv: &Stored) -> Vec<f32> {
    let mut scratch = AttentionScratch::new(positions.len(), kv.dim);
    for row in 0..positions.len() {
        scratch.set_query(isa, head, row, &wave(kv.dim, 0.05 + row as f32 * 0.01));
    }
    scratch.run(isa, head, positions, kv);
    let mut out = vec![0.0; positions.len() * kv.dim];
    for (row, out) in out.chunks_exact_mut(kv.dim).enumerate() {
        scratch.finish(isa, head, row, out);
    }
    out
}

#[test]
fn attention_agrees_with_the_portable_level_to_the_last_bit() {
    for dim in [16, 48, 64, 128, 256] {
        for (start, tokens) in [(0, 1), (0, 67), (61, 5), (509, 14)] {
            for (keys, values) in formats(dim) {
                let kv = Stored::waves(dim, keys, values, start + tokens);
                let positions: Vec<usize> = (start..start + tokens).collect();
                for window in [None, Some(1), Some(100)] {
                    let head = kv.head(window);
                    let plain = attention(Isa::Portable, &head, &positions, &kv);
                    for isa in Isa::available() {
                        let fast = attention(isa, &head, &positions, &kv);
                        assert!(
                            plain == fast,
                            "{} {keys:?}/{values:?} d{dim} {start}+{tokens} {window:?}",
                            isa.name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn attention_to_keys_without_their_mean_agrees_to_the_last_bit() {
    for keys in [KvFormat::Q8, KvFormat::Tq4] {
        let shifted = Shifted::new(64, RopePairs::Halves);
        let kv = Stored::waves(64, keys, KvFormat::Tq4, 600);
        let head = Head {
            residual: Some(shifted.residual()),
            ..kv.head(None)
        };
        let positions: Vec<usize> = (510..600).collect();
        let plain = attention(Isa::Portable, &head, &positions, &kv);
        for isa in Isa::available() {
            assert!(
                plain == attention(isa, &head, &positions, &kv),
                "{} {keys:?}",
                isa.name()
            );
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
