//! How long planning takes for a prompt of many passages: the least time of many.
//! `cargo run --release -p reprise-engine --example schedule_rates`

use reprise_engine::reuse::schedule::{
    Call, CallKind, Graphs, Ratio, RecomputeGraph, Schedule, TokenKind, plan, plan_fixed,
};
use std::num::NonZeroUsize;
use std::time::Instant;

fn main() {
    // 8,192 tokens: a prefix, then passages from other prompts with a few new tokens between them, then a question.
    let mut kinds = vec![TokenKind::Prefix; 256];
    while kinds.len() < 8_000 {
        kinds.extend([TokenKind::NonPrefix; 237]);
        kinds.extend([TokenKind::New; 19]);
    }
    kinds.resize(8_192, TokenKind::New);
    let (Some(prefill_tokens), Some(ratio)) = (NonZeroUsize::new(128), Ratio::new(1, 4)) else {
        return;
    };
    let graphs = Graphs {
        prefill_tokens,
        recompute: Some(RecomputeGraph::new(512, ratio)),
    };
    // As a CPU's: so much a call, a row, and a row and token of context.
    let general = |call: &Call| {
        let embedded = match call.kind {
            CallKind::Prefill => 0.0,
            CallKind::Recompute => 0.1 * (call.reused + call.new) as f64,
        };
        2.0 + embedded + call.rows as f64 * (4.0 + call.tokens.end as f64 / 2_000.0)
    };
    report("fixed latencies", kinds.len(), &mut || {
        plan_fixed(&kinds, &graphs, 700.0, 900.0)
    });
    report("latencies by call", kinds.len(), &mut || {
        plan(&kinds, &graphs, general)
    });
}

fn report(what: &str, tokens: usize, make: &mut dyn FnMut() -> Schedule) {
    let mut least = f64::INFINITY;
    let mut calls = 0;
    for _ in 0..20 {
        let begin = Instant::now();
        calls = make().calls.len();
        least = least.min(begin.elapsed().as_secs_f64() * 1e3);
    }
    println!("{what}: {tokens} tokens planned in {least:.3} ms, {calls} calls");
}
