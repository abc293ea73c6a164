//! What is worth keeping: how much a chunk was used lately, what losing it would cost, and whom to evict.
//!
//! ```text
//! R(c)       = sum over uses of 2^-((now - t)/half_life)
//! C_mem(c)   = max(0, bytes/flash_bandwidth + t0 - hidden)     a prefix chunk in memory; 0 for other chunks
//! C_flash(c) = Latency_P(|c|) + sum over descendants d of min(1, R(d)/R(c)) * Latency_S(|d|)
//! evicted is the smallest R*C per byte; never a pinned chunk
//! ```
//!
//! Numbers only: nothing here reads a clock, a file or the index.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

/// R(c): the uses of a chunk, each weighing half as much after each half-life. One number and the time it is true for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UseRecord {
    /// The weight of all uses at `at_ms`.
    pub weight: f64,
    /// Milliseconds since 1970.
    pub at_ms: i64,
}

impl UseRecord {
    /// The record of a chunk that is used for the first time: by being made.
    pub fn first(now_ms: i64) -> UseRecord {
        UseRecord {
            weight: 1.0,
            at_ms: now_ms,
        }
    }

    /// R now. A clock that went back makes no use older or younger: the weight stays until time has caught up. A
    /// half-life of zero forgets at once.
    pub fn weight_at(&self, now_ms: i64, half_life: Duration) -> f64 {
        let age_ms = now_ms.saturating_sub(self.at_ms).max(0) as f64;
        if age_ms == 0.0 {
            return self.weight;
        }
        self.weight * (-age_ms / (1e3 * half_life.as_secs_f64())).exp2()
    }

    /// The record with one more use now. The time is the clock's even when that went back, so that decay goes on from
    /// there.
    pub fn used(&self, now_ms: i64, half_life: Duration) -> UseRecord {
        UseRecord {
            weight: self.weight_at(now_ms, half_life) + 1.0,
            at_ms: now_ms,
        }
    }
}

/// How long a computation over n tokens takes: `fixed_ms + n * token_ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Whatever the number of tokens, in milliseconds.
    pub fixed_ms: f64,
    /// For each token, in milliseconds.
    pub token_ms: f64,
}

impl Latency {
    /// Milliseconds for so many tokens.
    pub fn of(&self, tokens: usize) -> f64 {
        self.fixed_ms + self.token_ms * tokens as f64
    }
}

/// What it costs to have a chunk again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Latency_P: computing a chunk from nothing.
    pub prefill: Latency,
    /// Latency_S: recomputing a part of a chunk whose left context has changed.
    pub recompute: Latency,
}

/// Milliseconds a token on a small computer: one prefills some 200 tokens a second and recomputes a quarter of them.
/// Only the ratio of the two matters to the order of eviction.
impl Default for Costs {
    fn default() -> Costs {
        Costs {
            prefill: Latency {
                fixed_ms: 0.0,
                token_ms: 5.0,
            },
            recompute: Latency {
                fixed_ms: 0.0,
                token_ms: 1.25,
            },
        }
    }
}

/// C_mem: milliseconds lost when a chunk must come from flash again rather than from memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reload {
    /// Bytes that flash gives in a millisecond.
    pub flash_bytes_per_ms: f64,
    /// t0: what a read takes before its first byte, in milliseconds.
    pub start_ms: f64,
    /// How much of a load is hidden behind computation, in milliseconds.
    pub hidden_ms: f64,
}

impl Reload {
    /// Milliseconds for a chunk of so many bytes. A chunk that is reused without its prefix costs nothing: its load
    /// hides behind recomputation.
    pub fn cost(&self, bytes: u64, is_prefix: bool) -> f64 {
        if !is_prefix {
            return 0.0;
        }
        (bytes as f64 / self.flash_bytes_per_ms + self.start_ms - self.hidden_ms).max(0.0)
    }
}

/// A chunk as eviction sees it. `N` names a place in the tree: a namespace and a chain hash.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate<N> {
    /// The chunk before it.
    pub parent: N,
    /// Its own place.
    pub node: N,
    /// How many tokens it has.
    pub tokens: usize,
    /// What evicting it gives back.
    pub bytes: u64,
    /// R now.
    pub weight: f64,
    /// Whether it may not be evicted.
    pub pinned: bool,
}

/// All chunks of a store with what losing each would cost.
#[derive(Debug)]
pub struct Ranking<'a, N> {
    chunks: &'a [Candidate<N>],
    costs: Costs,
    /// The chunk whose node is this one's parent.
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    /// R*C_flash of each.
    worth: Vec<f64>,
    gone: Vec<bool>,
}

impl<'a, N: Copy + Eq + std::hash::Hash> Ranking<'a, N> {
    /// Takes time proportional to the chunks and their depth.
    pub fn new(chunks: &'a [Candidate<N>], costs: Costs) -> Ranking<'a, N> {
        let places: HashMap<N, usize> = chunks
            .iter()
            .enumerate()
            .map(|(at, chunk)| (chunk.node, at))
            .collect();
        let mut parents: Vec<_> = chunks
            .iter()
            .map(|chunk| places.get(&chunk.parent).copied())
            .collect();
        cut_loops(&mut parents);
        let mut children = vec![Vec::new(); chunks.len()];
        for (child, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(child);
            }
        }
        let mut ranking = Ranking {
            worth: chunks
                .iter()
                .map(|chunk| chunk.weight * costs.prefill.of(chunk.tokens))
                .collect(),
            gone: vec![false; chunks.len()],
            chunks,
            costs,
            parents,
            children,
        };
        for descendant in 0..chunks.len() {
            ranking.add_to_ancestors(descendant, descendant, 1.0);
        }
        ranking
    }

    /// C_flash of a chunk, in milliseconds. Of one that was never used, the cost of computing it alone.
    pub fn cost(&self, chunk: usize) -> f64 {
        let Candidate { weight, tokens, .. } = self.chunks[chunk];
        if weight > 0.0 {
            self.worth[chunk] / weight
        } else {
            self.costs.prefill.of(tokens)
        }
    }

    /// R*C per byte of a chunk: the smallest is evicted first.
    pub fn score(&self, chunk: usize) -> f64 {
        self.worth[chunk] / self.chunks[chunk].bytes.max(1) as f64
    }

    /// Chooses whom to evict, one after the other, until at least `bytes` are free. After each, the chunks before it
    /// have fewer descendants to lose: scores are those of the moment. Gives all that may go when that is too little.
    pub fn evict(&mut self, bytes: u64) -> Vec<usize> {
        let mut queue: BinaryHeap<_> = (0..self.chunks.len())
            .filter(|&chunk| !self.chunks[chunk].pinned)
            .map(|chunk| Reverse((Score(self.score(chunk)), chunk)))
            .collect();
        let (mut evicted, mut freed) = (Vec::new(), 0_u64);
        while freed < bytes
            && let Some(Reverse((score, chunk))) = queue.pop()
        {
            if self.gone[chunk] || score != Score(self.score(chunk)) {
                // It is in the queue with its present score as well, or is out of it.
                continue;
            }
            self.remove(chunk);
            freed = freed.saturating_add(self.chunks[chunk].bytes);
            evicted.push(chunk);
            let mut ancestor = self.parents[chunk];
            while let Some(at) = ancestor.filter(|&at| !self.gone[at]) {
                if !self.chunks[at].pinned {
                    queue.push(Reverse((Score(self.score(at)), at)));
                }
                ancestor = self.parents[at];
            }
        }
        evicted
    }

    /// Takes a chunk out of the tree: it and what hangs below it no longer lose anything when those above it go.
    fn remove(&mut self, chunk: usize) {
        let mut below = vec![chunk];
        while let Some(descendant) = below.pop() {
            self.add_to_ancestors(chunk, descendant, -1.0);
            below.extend(
                self.children[descendant]
                    .iter()
                    .copied()
                    .filter(|&child| !self.gone[child]),
            );
        }
        self.gone[chunk] = true;
    }

    /// Adds to the worth of all ancestors of `from`, `sign` times what losing them costs `descendant`. Worth is R*C,
    /// and R(c) * min(1, R(d)/R(c)) is the smaller of the two.
    fn add_to_ancestors(&mut self, from: usize, descendant: usize, sign: f64) {
        let lost = self.costs.recompute.of(self.chunks[descendant].tokens);
        let mut ancestor = self.parents[from];
        while let Some(at) = ancestor.filter(|&at| !self.gone[at]) {
            self.worth[at] += sign * self.chunks[at].weight.min(self.chunks[descendant].weight) * lost;
            ancestor = self.parents[at];
        }
    }
}

/// Chains of hashes have no loops, but a damaged index could have: then one of the loop's chunks loses its parent.
fn cut_loops(parents: &mut [Option<usize>]) {
    for chunk in 0..parents.len() {
        let mut ancestor = parents[chunk];
        let mut depth = 0;
        while let Some(at) = ancestor {
            depth += 1;
            if depth > parents.len() {
                parents[chunk] = None;
                break;
            }
            ancestor = parents[at];
        }
    }
}

/// A score in a queue.
#[derive(Debug, Clone, Copy)]
struct Score(f64);

impl PartialEq for Score {
    fn eq(&self, other: &Score) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const HOUR_MS: i64 = 3_600_000;
    const COSTS: Costs = Costs {
        prefill: Latency {
            fixed_ms: 10.0,
            token_ms: 1.0,
        },
        recompute: Latency {
            fixed_ms: 2.0,
            token_ms: 0.25,
        },
    };

    fn chunk(parent: u32, node: u32, weight: f64) -> Candidate<u32> {
        Candidate {
            parent,
            node,
            tokens: 100,
            bytes: 1_000,
            weight,
            pinned: false,
        }
    }

    #[test]
    fn a_use_weighs_half_after_a_half_life() {
        let record = UseRecord::first(0);
        assert_eq!(record.weight_at(HOUR_MS, HOUR), 0.5);
        assert_eq!(record.weight_at(3 * HOUR_MS, HOUR), 0.125);
        // Uses at 0, 1 and 3 hours, seen at 4: 1/16 + 1/8 + 1/2.
        let record = record.used(HOUR_MS, HOUR).used(3 * HOUR_MS, HOUR);
        assert_eq!(record.weight_at(4 * HOUR_MS, HOUR), 0.6875);
        assert_eq!(record.weight_at(i64::MAX, Duration::ZERO), 0.0);
    }

    #[test]
    fn a_clock_that_jumps_back_neither_ages_nor_renews() {
        let record = UseRecord {
            weight: 2.0,
            at_ms: 10 * HOUR_MS,
        };
        assert_eq!(record.weight_at(HOUR_MS, HOUR), 2.0);
        let used = record.used(HOUR_MS, HOUR);
        assert_eq!((used.weight, used.at_ms), (3.0, HOUR_MS));
        assert_eq!(used.weight_at(2 * HOUR_MS, HOUR), 1.5);
        assert_eq!(record.weight_at(i64::MIN, HOUR), 2.0);
    }

    #[test]
    fn memory_cost_is_what_a_load_does_not_hide() {
        let reload = Reload {
            flash_bytes_per_ms: 1_000.0,
            start_ms: 3.0,
            hidden_ms: 5.0,
        };
        assert_eq!(reload.cost(6_000, true), 4.0);
        assert_eq!(reload.cost(1_000, true), 0.0);
        assert_eq!(reload.cost(6_000, false), 0.0);
    }

    #[test]
    fn flash_cost_counts_each_descendant_by_how_much_it_is_used() {
        // 1 -> 2 -> 3, and 1 -> 4. Prefill of 100 tokens is 110 ms, recompute 27 ms.
        let chunks = [
            chunk(0, 1, 2.0),
            chunk(1, 2, 1.0),
            chunk(2, 3, 4.0),
            chunk(1, 4, 0.5),
        ];
        let ranking = Ranking::new(&chunks, COSTS);
        // 110 + (1/2 + 1 + 1/4) * 27
        assert_eq!(ranking.cost(0), 157.25);
        assert_eq!(ranking.cost(1), 137.0);
        assert_eq!(ranking.cost(2), 110.0);
        assert_eq!(ranking.cost(3), 110.0);
        // 2 * 157.25 / 1000
        assert_eq!(ranking.score(0), 0.3145);
    }

    #[test]
    fn the_smallest_worth_per_byte_goes_first_and_pinned_chunks_stay() {
        let mut chunks = [
            chunk(0, 1, 1.0),
            chunk(0, 2, 1.0),
            chunk(0, 3, 0.1),
            chunk(0, 4, 0.1),
        ];
        chunks[1].bytes = 4_000;
        chunks[3].pinned = true;
        let mut ranking = Ranking::new(&chunks, COSTS);
        assert_eq!(ranking.evict(1_001), [2, 1]);
        assert_eq!(Ranking::new(&chunks, COSTS).evict(u64::MAX), [2, 1, 0]);
        assert!(Ranking::new(&chunks, COSTS).evict(0).is_empty());
    }

    #[test]
    fn a_chain_is_evicted_from_its_end() {
        let chunks = [chunk(0, 1, 1.0), chunk(1, 2, 1.0), chunk(2, 3, 1.0)];
        assert_eq!(Ranking::new(&chunks, COSTS).evict(u64::MAX), [2, 1, 0]);
    }

    #[test]
    fn a_loop_in_a_damaged_index_ends() {
        let chunks = [
            chunk(2, 1, 1.0),
            chunk(1, 2, 1.0),
            chunk(3, 3, 1.0),
            chunk(1, 4, 0.1),
        ];
        assert_eq!(Ranking::new(&chunks, COSTS).evict(u64::MAX).len(), 4);
    }

    proptest! {
        /// Evicting one after the other is the same as ranking all that is left anew each time.
        #[test]
        fn eviction_follows_the_formula_at_every_step(
            plan in prop::collection::vec((any::<prop::sample::Index>(), 1_u32..9, 1_usize..257, 1_u64..50, any::<bool>()), 1..12),
        ) {
            let chunks: Vec<Candidate<u32>> = plan.iter().enumerate().map(|(at, (parent, weight, tokens, bytes, pinned))| {
                Candidate {
                    parent: parent.index(at + 1) as u32,
                    node: at as u32 + 1,
                    tokens: *tokens,
                    bytes: *bytes,
                    weight: f64::from(*weight),
                    pinned: *pinned,
                }
            }).collect();
            let order = Ranking::new(&chunks, COSTS).evict(u64::MAX);
            let mut left = chunks.clone();
            for evicted in order {
                let ranking = Ranking::new(&left, COSTS);
                let best = (0..left.len()).filter(|&at| !left[at].pinned)
                    .map(|at| ranking.score(at)).fold(f64::INFINITY, f64::min);
                let at = left.iter().position(|one| one.node == chunks[evicted].node).unwrap();
                prop_assert!(ranking.score(at) <= best * (1.0 + 1e-9));
                left.remove(at);
            }
            prop_assert!(left.iter().all(|one| one.pinned));
        }
    }
}
