//! How long attention of a single token takes, by KV format: the least time of many, so that a busy machine show
//! little. `cargo run --release -p reprise-kernels --example attention_rates`

use reprise_kernels::attention::{AttentionScratch, Head, KeyValues, TILE_KEYS};
use reprise_kernels::encoder;
use reprise_kernels::isa::Isa;
use reprise_kernels::kv::tq4::Side;
use reprise_kernels::kv::{KvFormat, write};
use std::time::Instant;

struct Tiles {
    keys: Vec<Vec<u64>>,
    values: Vec<Vec<u64>>,
}

fn bytes(tile: &[u64]) -> &[u8] {
    // SAFETY: plain numbers.
    unsafe { std::slice::from_raw_parts(tile.as_ptr().cast(), tile.len() * 8) }
}

impl KeyValues for Tiles {
    fn tile(&self, tile: usize) -> (&[u8], &[u8]) {
        (bytes(&self.keys[tile]), bytes(&self.values[tile]))
    }
}

fn main() {
    let isa = Isa::best();
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(60);
    println!("{}; nanoseconds a key, one thread", isa.name());
    println!("| rows | dim | f16 | q8 | q8/tq4 | tq4 |");
    for (rows, dim) in [(3, 64), (7, 64), (6, 128), (4, 256), (12, 64)] {
        let mut line = format!("| {rows} | {dim} |");
        for (keys, values) in [
            (KvFormat::F16, KvFormat::F16),
            (KvFormat::Q8, KvFormat::Q8),
            (KvFormat::Q8, KvFormat::Tq4),
            (KvFormat::Tq4, KvFormat::Tq4),
        ] {
            let count = 4_096;
            let fill = |format: KvFormat, side| -> Vec<Vec<u64>> {
                (0..count / TILE_KEYS)
                    .map(|_| {
                        let mut tile = vec![0u64; format.tile_bytes(dim) / 8];
                        for slot in 0..TILE_KEYS {
                            let x: Vec<f32> = (0..dim).map(|d| ((d * 7 + slot) as f32).sin()).collect();
                            // SAFETY: a tile of this format, one thread.
                            unsafe { write(isa, format, side, tile.as_mut_ptr().cast(), slot, &x) };
                        }
                        tile
                    })
                    .collect()
            };
            let kv = Tiles {
                keys: fill(keys, Side::Key),
                values: fill(values, Side::Value),
            };
            let head = Head {
                keys,
                values,
                ..Head::half(dim)
            };
            let mut scratch = AttentionScratch::new(rows, dim);
            let query: Vec<f32> = (0..dim).map(|d| (d as f32).cos()).collect();
            for row in 0..rows {
                scratch.set_query(isa, &head, row, &query);
            }
            let positions = vec![count - 1; rows];
            let mut least = f64::INFINITY;
            for _ in 0..rounds {
                let begin = Instant::now();
                scratch.run(isa, &head, &positions, &kv);
                least = least.min(begin.elapsed().as_secs_f64());
            }
            line += &format!(" {:.1} |", least / count as f64 * 1e9);
        }
        println!("{line}");
    }
    encoder(isa, rounds);
}

/// What a passage of a document takes in one layer of the model for meanings.
fn encoder(isa: Isa, rounds: usize) {
    let (tokens, heads, dim) = (300, 12, 32);
    let width = heads * dim;
    let qkv: Vec<f32> = (0..tokens * 3 * width).map(|i| (i as f32).sin()).collect();
    let mut out = vec![0.0; tokens * width];
    let mut scratch = encoder::AttentionScratch::default();
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
        let begin = Instant::now();
        encoder::attend_all(isa, &qkv, heads, dim, &mut out, &mut scratch);
        least = least.min(begin.elapsed().as_secs_f64());
    }
    println!(
        "encoder, {tokens} tokens, {heads} heads of {dim}: {:.2} ms",
        least * 1e3
    );
}
