//! Results as JSON and as a table with what they are worth on this machine.

use std::io::{self, Write};

use reprise_engine::{Engine, machine};
use serde_json::json;

use super::{Measured, Work, median};
use crate::failure::{Failure, Outcome};

/// An array of `{test, ours, peer, ratio}`; without a peer the last two are null.
pub fn print_json(results: &[Measured]) -> Outcome {
    let rows: Vec<_> = results
        .iter()
        .map(|result| {
            let (ours, peer) = (median(&result.ours), median(&result.peer));
            let number = |value: f64| value.is_finite().then_some((value * 1_000.0).round() / 1_000.0);
            json!({
                "test": result.test.name(),
                "ours": number(ours),
                "peer": number(peer),
                "ratio": number(ours / peer),
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&rows)?;
    writeln!(io::stdout(), "{text}").map_err(|e| Failure::output(&e))
}

/// A table, the machine, and the share of the machine's ceilings that each test reaches.
pub fn print(results: &[Measured], engine: &Engine, has_peer: bool) -> Outcome {
    let info = engine.info().clone();
    let work = engine.work();
    // Before the ceilings are measured, which takes memory of its own.
    let resident = machine::peak_resident_bytes();
    let ceilings = machine::Ceilings::measure(info.threads);
    let mut text = format!(
        "{}, {}, {:.1} M weights, {} threads ({})\n{}\n\n",
        info.name,
        info.quantisation,
        info.parameters as f64 / 1e6,
        info.threads,
        engine.backend_name(),
        machine::describe(),
    );
    text += "| test         | tokens/s | spread |";
    text += if has_peer { "     peer |  ratio |" } else { "" };
    text += " share of ceiling |\n| ------------ | -------: | -----: |";
    text += if has_peer { " -------: | -----: |" } else { "" };
    text += " ---------------: |\n";
    for result in results {
        let ours = median(&result.ours);
        let (least, most) = result
            .ours
            .iter()
            .fold((f64::MAX, 0.0f64), |(l, m), &v| (l.min(v), m.max(v)));
        text += &format!(
            "| {:12} | {ours:8.1} | {:5.1}% |",
            result.test.name(),
            (most - least) / ours * 50.0
        );
        if has_peer {
            let peer = median(&result.peer);
            text += &format!(" {peer:8.1} | {:5.2}x |", ours / peer);
        }
        let share = match result.test.work {
            Work::Prompt(n) => ceilings
                .integer_ops
                .map(|peak| (work.matrix_ops_per_token * ours / peak, n, "integer peak")),
            Work::Generate(n) => {
                let depth = result.test.depth + n / 2;
                let bytes = work.weight_bytes + work.kv_bytes_per_token * depth as f64;
                Some((bytes * ours / ceilings.read_bytes, n, "read bandwidth"))
            }
        };
        text += &match share {
            Some((share, _, of)) => format!(" {:.0}% of {of} |\n", share * 100.0),
            None => " not measured here |\n".to_owned(),
        };
    }
    if let Some(peak) = ceilings.integer_ops {
        text += &format!("\ninteger peak {:.0} G/s, ", peak / 1e9);
    }
    text += &format!("read bandwidth {:.1} GB/s", ceilings.read_bytes / 1e9);
    if let Some(bytes) = resident {
        text += &format!(", peak memory {:.0} MB", bytes as f64 / 1e6);
    }
    let (weights, kv) = engine.bytes();
    text += &format!(
        " (file {:.0} MB, weights and scratch {:.0} MB, KV {:.0} MB)",
        info.file_bytes as f64 / 1e6,
        weights as f64 / 1e6,
        kv as f64 / 1e6
    );
    writeln!(io::stdout(), "{text}").map_err(|e| Failure::output(&e))
}
