//! The other side: llama-bench, one repetition at a time.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::{Test, Work};
use crate::failure::{Failure, Outcome};

#[derive(Deserialize)]
struct Row {
    avg_ts: f64,
}

/// One way to run the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    kv: String,
    flash_attention: bool,
}

impl Variant {
    /// For tables.
    pub fn name(&self) -> String {
        format!("{} fa{}", self.kv, u8::from(self.flash_attention))
    }
}

/// Every KV type without and with flash attention; a quantised one needs it.
pub fn variants(types: &[String]) -> Vec<Variant> {
    let both = |kv: &String| {
        [false, true].map(|flash_attention| Variant {
            kv: kv.clone(),
            flash_attention,
        })
    };
    types
        .iter()
        .flat_map(both)
        .filter(|variant| variant.flash_attention || variant.kv == "f16")
        .collect()
}

/// Runs one test once; returns tokens a second. The process warms up by itself, and loading is not counted.
pub fn measure(binary: &Path, model: &Path, test: Test, threads: usize, variant: &Variant) -> Outcome<f64> {
    let (prompt, generate) = match test.work {
        Work::Prompt(n) => (n, 0),
        Work::Generate(n) => (0, n),
    };
    let output = Command::new(binary)
        .arg("-m")
        .arg(model)
        .args(["-r", "1", "-o", "json"])
        .args(["-p", &prompt.to_string(), "-n", &generate.to_string()])
        .args(["-d", &test.depth.to_string(), "-t", &threads.to_string()])
        .args(["-ctk", &variant.kv, "-ctv", &variant.kv])
        .args(["-fa", if variant.flash_attention { "1" } else { "0" }])
        .output()
        .map_err(|e| Failure::message(format!("{}: cannot be run: {e}", binary.display())))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("it said nothing");
        return Err(Failure::message(format!(
            "{} failed ({}): {last}",
            binary.display(),
            output.status
        )));
    }
    let rows: Vec<Row> = serde_json::from_slice(&output.stdout).map_err(|e| {
        Failure::message(format!(
            "{} did not print llama-bench's JSON: {e}",
            binary.display()
        ))
    })?;
    match rows.as_slice() {
        [row] => Ok(row.avg_ts),
        rows => Err(Failure::message(format!(
            "{} printed {} results for one test",
            binary.display(),
            rows.len()
        ))),
    }
}
