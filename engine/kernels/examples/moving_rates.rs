//! How fast stored keys and values move: packed out of tiles, stored again, and keys turned to another position on the
//! way; one thread over chunks of 256 positions, the least time of many, so that a busy machine show little. Rates count
//! the packed bytes once. `cargo run --release -p reprise-kernels --example moving_rates`

use reprise_kernels::isa::Isa;
use reprise_kernels::kv::moving::{Turn, Vectors, pack_run, unpack_run, unpack_turned};
use reprise_kernels::kv::tq4::Side;
use reprise_kernels::kv::{KvFormat, TILE_KEYS, write};
use reprise_kernels::math::RopePairs;
use std::time::Instant;

/// Tiles of a chunk of 256 positions.
const TILES: usize = 4;
/// Heads and layers, so that caches hold what they would hold of a model.
const STREAMS: usize = 48;

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20);
    println!("ns a vector (GB/s)");
    println!("| level | format | side | dim | pack | unpack | unpack from position 13 | unpack turned |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for isa in [Isa::Portable, Isa::best()] {
        for format in KvFormat::ALL {
            for side in [Side::Key, Side::Value] {
                for dim in [64, 128, 256] {
                    line(isa, Vectors { format, side, dim }, rounds);
                }
            }
        }
    }
}

fn line(isa: Isa, vectors: Vectors, rounds: usize) {
    let Vectors { format, side, dim } = vectors;
    let tile_bytes = format.tile_bytes(dim);
    let mut tiles = vec![0u64; STREAMS * TILES * tile_bytes / 8];
    let start = tiles.as_mut_ptr().cast::<u8>();
    for tile in 0..STREAMS * TILES {
        for slot in 0..TILE_KEYS {
            let x: Vec<f32> = (0..dim).map(|d| ((d * 7 + slot + tile) as f32).sin()).collect();
            // SAFETY: a tile of these vectors, one thread.
            unsafe { write(isa, format, side, start.add(tile * tile_bytes), slot, &x) };
        }
    }
    let run_bytes = TILE_KEYS * vectors.bytes();
    // Large allocations begin alike within a page, and copies between places that do are several times slower.
    let mut packed = vec![0u8; STREAMS * TILES * run_bytes + 2_112];
    let packed = &mut packed[2_112..];
    let count = STREAMS * TILES * TILE_KEYS;
    let frequencies: Vec<f64> = (0..dim / 2)
        .map(|i| 10_000f64.powf(-2.0 * i as f64 / dim as f64))
        .collect();
    let turn = Turn::new(&frequencies, RopePairs::Halves, 777);

    let mut least = [f64::INFINITY; 4];
    for _ in 0..rounds {
        let mut timed = |which: usize, each: &mut dyn FnMut(usize)| {
            let begin = Instant::now();
            (0..STREAMS * TILES).for_each(each);
            least[which] = least[which].min(begin.elapsed().as_secs_f64() / count as f64 * 1e9);
        };
        timed(0, &mut |tile| {
            // SAFETY: a tile, initialised above; one thread.
            let bytes = unsafe { std::slice::from_raw_parts(start.add(tile * tile_bytes), tile_bytes) };
            let out = &mut packed[tile * run_bytes..][..run_bytes];
            pack_run(isa, vectors, bytes, 0..TILE_KEYS, out);
        });
        timed(1, &mut |tile| {
            let run = &packed[tile * run_bytes..][..run_bytes];
            // SAFETY: a tile of these vectors, one thread.
            unsafe { unpack_run(isa, vectors, start.add(tile * tile_bytes), 0..TILE_KEYS, run) };
        });
        // The same positions as they fall when a chunk does not begin where a tile does.
        timed(2, &mut |tile| {
            let (first, second) = packed[tile * run_bytes..][..run_bytes].split_at(51 * vectors.bytes());
            // SAFETY: tiles of these vectors, one thread.
            unsafe {
                unpack_run(isa, vectors, start.add(tile * tile_bytes), 13..64, first);
                unpack_run(isa, vectors, start.add(tile * tile_bytes), 0..13, second);
            }
        });
        if side == Side::Key {
            timed(3, &mut |tile| {
                let run = &packed[tile * run_bytes..][..run_bytes];
                let tile = start.wrapping_add(tile * tile_bytes);
                // SAFETY: a tile of these vectors, one thread.
                unsafe { unpack_turned(isa, vectors, &turn, tile, 0..TILE_KEYS, run) };
            });
        }
    }
    let cells: Vec<String> = least
        .iter()
        .filter(|ns| ns.is_finite())
        .map(|ns| format!("{ns:.1} ({:.1})", vectors.bytes() as f64 / ns))
        .collect();
    let (level, format) = (isa.name(), format.name());
    println!(
        "| {level} | {format} | {side:?} | {dim} | {} |",
        cells.join(" | ")
    );
}
