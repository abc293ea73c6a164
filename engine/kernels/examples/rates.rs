//! Measures what this machine can do and what the matrix kernels reach of it.
//!
//! `cargo run --release -p reprise-kernels --example rates [threads]`

use reprise_kernels::activations::{Activations, Forms};
use reprise_kernels::isa::Isa;
use reprise_kernels::matmul::{Output, Scratch, Store, matmul_panel};
use reprise_kernels::packed::Packing;
use reprise_kernels::quant::QuantType;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

fn main() {
    let threads: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1);
    let isa = Isa::best();
    println!("level {}, {threads} threads", isa.name());
    for ty in [
        QuantType::Q4_1,
        QuantType::Q4_0,
        QuantType::Q5_0,
        QuantType::Q4K,
        QuantType::Q5K,
        QuantType::Q6K,
        QuantType::Q8_0,
        QuantType::F16,
    ] {
        let mut line = format!("{:6}", ty.name());
        for (tokens, k, n) in [
            (510, 576, 96),
            (510, 1536, 96),
            (126, 1536, 96),
            (510, 4864, 32),
            (1, 1536, 24576),
        ] {
            let k = if ty.block_len() == 256 { k / 256 * 256 } else { k };
            let data: Vec<u8> = (0..ty.bytes_for(k).unwrap() * n)
                .map(|i| (i * 37 % 101) as u8)
                .collect();
            let mut packing = Packing::new(ty, n, k, &data).unwrap();
            packing.panels().for_each(|panel| panel.pack());
            let weights = packing.finish();
            let x = vec![0.5; tokens * k];
            let mut activations = Activations::new(
                tokens,
                k,
                Forms {
                    quantised: true,
                    float: true,
                },
            );
            let tiles = activations.begin(tokens, k);
            for tile in 0..tiles.tiles() {
                let rows = tiles.rows_of(tile);
                // SAFETY: one thread fills all tiles.
                unsafe { tiles.fill(isa, tile, &x[rows.start * k..rows.end * k]) };
            }
            let mut out = vec![0.0; tokens * n];
            let out = Output::new(&mut out, n);
            let mut best = f64::MAX;
            // The best of many short runs: what else the machine does falls on some of them only.
            for _ in 0..100 {
                let next = AtomicUsize::new(0);
                let begin = Instant::now();
                std::thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(|| {
                            let mut scratch = Scratch::new(tokens);
                            loop {
                                let panel = next.fetch_add(1, Ordering::Relaxed);
                                if panel >= weights.panels() {
                                    break;
                                }
                                // SAFETY: each panel is taken once.
                                unsafe {
                                    matmul_panel(
                                        isa,
                                        &weights,
                                        panel,
                                        &activations,
                                        None,
                                        &out,
                                        Store::Set,
                                        &mut scratch,
                                    )
                                };
                            }
                        });
                    }
                });
                best = best.min(begin.elapsed().as_secs_f64());
            }
            if tokens == 1 {
                line += &format!(
                    "  {tokens}x{k}x{n}: {:5.1} GB/s",
                    weights.bytes() as f64 / best / 1e9
                );
            } else {
                line += &format!(
                    "  {tokens}x{k}x{n}: {:4.0} G/s",
                    2.0 * (tokens * k * n) as f64 / best / 1e9
                );
            }
        }
        println!("{line}");
    }
}
