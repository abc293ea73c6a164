//! What graph calls cost here: their capacities and how long they take, which decides how a prompt is split into calls.

use super::schedule::{Call, CallKind, Graphs, Ratio, RecomputeGraph};
use crate::backend::{Backend, GraphKind};
use std::num::NonZeroUsize;

/// The fixed part of a call before anything was measured, in tokens that take as long: reading the weights once.
const FIXED_TOKENS: f64 = 12.0;

/// Capacities of a backend's graphs, and the latencies of its prefill calls.
#[derive(Debug, Clone, PartialEq)]
pub struct CallCosts {
    prefill_tokens: usize,
    recompute_tokens: usize,
    probe_tokens: usize,
    /// By tokens, ascending; empty where nothing was measured.
    latencies: Vec<(usize, f64)>,
    layers: usize,
}

impl CallCosts {
    /// Of a backend with a model of so many layers. `latencies` are what tuning measured: tokens of a prefill call, and
    /// its seconds.
    pub fn new(backend: &dyn Backend, layers: usize, latencies: Vec<(usize, f64)>) -> CallCosts {
        let mut latencies: Vec<(usize, f64)> = latencies
            .into_iter()
            .filter(|&(tokens, seconds)| tokens > 0 && seconds.is_finite() && seconds > 0.0)
            .collect();
        latencies.sort_by_key(|&(tokens, _)| tokens);
        latencies.dedup_by_key(|&mut (tokens, _)| tokens);
        CallCosts {
            prefill_tokens: backend.capacity(GraphKind::Prefill),
            recompute_tokens: backend.capacity(GraphKind::Recompute),
            probe_tokens: backend.capacity(GraphKind::Probe),
            latencies,
            layers: layers.max(1),
        }
    }

    /// Tokens that can be asked what they attend to at once.
    pub fn probe_tokens(&self) -> usize {
        self.probe_tokens
    }

    /// The graphs, for calls of at most `most` tokens computed to the end. The backend computes as many rows as are
    /// chosen, so that a recompute call is full when its tokens are, whatever share of them is due.
    pub fn graphs(&self, most: usize, ratio: f64) -> Graphs {
        let tokens = self.recompute_tokens as u32;
        Graphs {
            prefill_tokens: NonZeroUsize::new(most.min(self.prefill_tokens)).unwrap_or(NonZeroUsize::MIN),
            recompute: Ratio::nearest(ratio).map(|ratio| RecomputeGraph::with_any_rows(tokens, ratio)),
        }
    }

    /// How long a call takes; seconds where tuning measured some, else in the time a token takes. In a recompute call
    /// all tokens go through the layers up to `check`, and the rows through the others.
    pub fn latency(&self, call: &Call, check: usize) -> f64 {
        match call.kind {
            CallKind::Prefill => self.of_rows(call.rows),
            CallKind::Recompute => {
                let first = (check + 1) as f64 / self.layers as f64;
                self.of_rows(call.reused + call.new) * first + self.of_rows(call.rows) * (1.0 - first)
            }
        }
    }

    /// The time of a prefill call: between two sizes that were measured on the line through both, beyond them on the line
    /// through the last two.
    fn of_rows(&self, rows: usize) -> f64 {
        let known = &self.latencies;
        let rows = rows as f64;
        let [.., _, _] = known[..] else {
            return match known.first() {
                Some(&(tokens, seconds)) => seconds * (rows + FIXED_TOKENS) / (tokens as f64 + FIXED_TOKENS),
                None => rows + FIXED_TOKENS,
            };
        };
        let after = known
            .partition_point(|&(tokens, _)| (tokens as f64) < rows)
            .clamp(1, known.len() - 1);
        let ((a, from), (b, to)) = (known[after - 1], known[after]);
        let slope = (to - from) / (b - a) as f64;
        (from + slope * (rows - a as f64)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(latencies: &[(usize, f64)]) -> CallCosts {
        CallCosts {
            prefill_tokens: 512,
            recompute_tokens: 512,
            probe_tokens: 128,
            latencies: latencies.to_vec(),
            layers: 10,
        }
    }

    #[test]
    fn latencies_lie_on_lines_through_what_was_measured() {
        let measured = costs(&[(32, 1.0), (64, 1.5), (128, 3.5)]);
        assert_eq!(
            [32, 48, 64, 96, 160].map(|rows| measured.of_rows(rows)),
            [1.0, 1.25, 1.5, 2.5, 4.5]
        );
        assert_eq!(measured.of_rows(0), 0.5);
        // One size, or none: a fixed part and a part per token.
        assert_eq!(costs(&[(12, 2.0)]).of_rows(36), 4.0);
        assert_eq!(costs(&[]).of_rows(100), 112.0);
    }

    #[test]
    fn a_recompute_call_takes_all_its_tokens_through_the_first_layers() {
        let call = Call {
            kind: CallKind::Recompute,
            tokens: 0..100,
            reused: 90,
            new: 10,
            rows: 28,
        };
        let expected = 112.0 * 0.2 + 40.0 * 0.8;
        assert!((costs(&[]).latency(&call, 1) - expected).abs() < 1e-9);
    }
}
