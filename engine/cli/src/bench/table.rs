//! Results as JSON and as a table with what they are worth on this machine.

use std::io::{self, Write};

use reprise_engine::machine;
use reprise_engine::worker::Worker;
use serde_json::json;

use super::{Measured, Work, median};
use crate::failure::{Failure, Outcome};

/// An array of `{test, kv, ours, peer, ratio, peer_variant}`; without a peer the last three are null.
pub fn print_json(results: &[Measured]) -> Outcome {
    let rows: Vec<_> = results
        .iter()
        .map(|result| {
            let (ours, peer) = (median(&result.ours), median(&result.peer));
            let number = |value: f64| value.is_finite().then_some((value * 1_000.0).round() / 1_000.0);
            json!({
                "test": result.test.name(),
                "kv": result.kv,
                "ours": number(ours),
                "peer": number(peer),
                "ratio": number(ours / peer),
                "peer_variant": (!result.variant.is_empty()).then_some(&result.variant),
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&rows)?;
    writeln!(io::stdout(), "{text}").map_err(|e| Failure::output(&e))
}

/// A table, the machine, and the share of the machine's ceilings that each test reaches.
pub fn print(results: &[Measured], workers: &[Worker], has_peer: bool) -> Outcome {
    let Some(worker) = workers.first() else {
        return Ok(());
    };
    let info = worker.info().clone();
    let work_of = |kv: &str| {
        let own = workers.iter().find(|worker| worker.info().kv_format == kv);
        own.unwrap_or(worker).work()
    };
    // Before the ceilings are measured, which takes memory of its own.
    let resident = machine::peak_resident_bytes();
    let ceilings = machine::Ceilings::measure(info.threads);
    let mut text = format!(
        "{}, {}, {:.1} M weights, {} threads ({})\n{}\n\n",
        info.name,
        info.quantisation,
        info.parameters as f64 / 1e6,
        info.threads,
        worker.backend_name(),
        machine::describe(),
    );
    text += "| test           | KV       | tokens/s | spread |";
    text += if has_peer {
        "     peer | as        |  ratio |"
    } else {
        ""
    };
    text += " share of ceiling |\n| -------------- | -------- | -------: | -----: |";
    text += if has_peer {
        " -------: | --------- | -----: |"
    } else {
        ""
    };
    text += " ---------------: |\n";
    for result in results {
        let ours = median(&result.ours);
        let (least, most) = result
            .ours
            .iter()
            .fold((f64::MAX, 0.0f64), |(l, m), &v| (l.min(v), m.max(v)));
        text += &format!(
            "| {:14} | {:8} | {ours:8.1} | {:5.1}% |",
            result.test.name(),
            result.kv,
            (most - least) / ours * 50.0
        );
        if has_peer {
            let peer = median(&result.peer);
            text += &match peer.is_finite() {
                true => format!(" {peer:8.1} | {:9} | {:5.2}x |", result.variant, ours / peer),
                false => format!(" {:>8} | {:9} | {:>6} |", "-", "", "-"),
            };
        }
        let work = work_of(&result.kv);
        let share = match result.test.work {
            Work::Prompt(n) => ceilings
                .integer_ops
                .map(|peak| (work.matrix_ops_per_token * ours / peak, n, "integer peak")),
            Work::Generate(n) => {
                let depth = result.test.depth + n / 2;
                // A step reads the weights once, and the keys and values of every lane.
                let lanes = result.test.lanes as f64;
                let bytes = work.weight_bytes / lanes + work.kv_bytes_per_token * depth as f64;
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
    for worker in workers {
        let (weights, _) = worker.bytes();
        let usage = worker.pool().usage();
        text += &format!(
            "\nKV {}: {} bytes a token, at most {:.0} MB in use; file {:.0} MB, weights and scratch {:.0} MB, of that scratch \
             {:.1} MB",
            worker.info().kv_format,
            worker.info().kv_token_bytes,
            (usage.high_water * usage.page_bytes) as f64 / 1e6,
            info.file_bytes as f64 / 1e6,
            weights as f64 / 1e6,
            worker.workspace_bytes() as f64 / 1e6,
        );
    }
    writeln!(io::stdout(), "{text}").map_err(|e| Failure::output(&e))
}
