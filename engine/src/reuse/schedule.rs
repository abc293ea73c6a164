//! Which calls of which static graphs compute a prompt that is partly known (DESIGN section 6): the list of calls with
//! the least latency in all, found by dynamic programming over the tokens.
//!
//! A prefill call computes every one of its consecutive tokens. A recompute call computes all new tokens among its own,
//! and of those whose keys and values come from elsewhere a share r at least; it keeps K = floor(r L_S) rows past the
//! selection, so u reused and m new tokens fit when `u + m <= L_S` and `m + r u <= K`. With T(i) the least latency to
//! finish the first i tokens:
//!
//! ```text
//! T(0) = 0
//! T(i) = T(i - 1)                                       where token i belongs to the exact prefix
//! T(i) = min over graphs g and lengths l of T(i - l) + latency of g for the tokens (i - l, i]
//! ```
//!
//! No call holds a prefix token. Where a call of a graph always takes as long, the longest l is the best one, since T
//! never falls; [`plan_fixed`] does with two lengths a token then. [`plan`] tries every length.

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::Range;

/// What is known of a token of a prompt before anything is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Its keys and values are exact: nothing to do.
    Prefix,
    /// Its keys and values come from another context or position: a share of such tokens is computed again.
    NonPrefix,
    /// It has none.
    New,
}

/// The share of reused tokens that is computed again, as a fraction, so that counts are exact: 0.15 is 3/20.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    numerator: u32,
    denominator: NonZeroU32,
}

impl Ratio {
    /// A fraction between 0 and 1, else none.
    pub const fn new(numerator: u32, denominator: u32) -> Option<Ratio> {
        match NonZeroU32::new(denominator) {
            Some(denominator) if numerator <= denominator.get() => Some(Ratio {
                numerator,
                denominator,
            }),
            _ => None,
        }
    }

    /// The nearest thousandth of a number between 0 and 1, else none.
    pub fn nearest(ratio: f64) -> Option<Ratio> {
        if (0.0..=1.0).contains(&ratio) {
            Ratio::new((ratio * 1_000.0).round() as u32, 1_000)
        } else {
            None
        }
    }

    /// `floor(r * tokens)`.
    fn floor_of(self, tokens: u32) -> u32 {
        // Not more than `tokens`, as a ratio is at most one; and so below.
        (u64::from(self.numerator) * u64::from(tokens) / u64::from(self.denominator.get())) as u32
    }

    /// `ceil(r * tokens)`.
    fn ceil_of(self, tokens: u32) -> u32 {
        (u64::from(self.numerator) * u64::from(tokens)).div_ceil(u64::from(self.denominator.get())) as u32
    }
}

/// The published recompute graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecomputeGraph {
    tokens: u32,
    ratio: Ratio,
    kept: u32,
}

impl RecomputeGraph {
    /// A graph for `tokens` (L_S) tokens that computes at least `ratio` (r) of the reused ones.
    pub fn new(tokens: u32, ratio: Ratio) -> RecomputeGraph {
        RecomputeGraph {
            tokens,
            ratio,
            kept: ratio.floor_of(tokens),
        }
    }

    /// The same on a backend whose calls compute as many rows as are due: a call is full when its tokens are.
    pub fn with_any_rows(tokens: u32, ratio: Ratio) -> RecomputeGraph {
        RecomputeGraph {
            tokens,
            ratio,
            kept: tokens,
        }
    }

    /// L_S: most tokens of a call.
    pub fn tokens(self) -> u32 {
        self.tokens
    }

    /// K: rows of a call that are computed to the end, `floor(r * L_S)`.
    pub fn kept_rows(self) -> u32 {
        self.kept
    }

    /// Rows that a call with so many reused and new tokens computes to the end, at least; none when it does not hold
    /// them. What fits, fits with fewer tokens too.
    pub fn rows_for(self, reused: usize, new: usize) -> Option<usize> {
        let (reused, new) = (u32::try_from(reused).ok()?, u32::try_from(new).ok()?);
        if reused > self.tokens || new > self.tokens - reused || new > self.kept {
            return None;
        }
        // m + r u <= K and m + ceil(r u) <= K are the same, since the others are whole numbers.
        let due = self.ratio.ceil_of(reused);
        (due <= self.kept - new).then_some((new + due) as usize)
    }
}

/// The graphs a backend has published for reading prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graphs {
    /// L_P: most tokens of a prefill call.
    pub prefill_tokens: NonZeroUsize,
    /// The recompute graph, where the backend has one: without it everything is prefilled.
    pub recompute: Option<RecomputeGraph>,
}

impl Graphs {
    /// A call of these tokens, of which so many are reused and new, where the graph exists and holds them.
    fn call(&self, kind: CallKind, tokens: Range<usize>, reused: usize, new: usize) -> Option<Call> {
        let rows = match kind {
            CallKind::Prefill => (reused + new <= self.prefill_tokens.get()).then_some(reused + new),
            CallKind::Recompute => self.recompute?.rows_for(reused, new),
        }?;
        Some(Call {
            kind,
            tokens,
            reused,
            new,
            rows,
        })
    }
}

/// Which graph a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// Every token is computed.
    Prefill,
    /// New tokens and a part of the reused ones are computed.
    Recompute,
}

/// One call of a graph over consecutive tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Which graph.
    pub kind: CallKind,
    /// Which tokens, counted from 0. The tokens before them are the context.
    pub tokens: Range<usize>,
    /// How many of them have keys and values from elsewhere (u).
    pub reused: usize,
    /// How many of them have none (m).
    pub new: usize,
    /// Rows that are computed to the end: all tokens of a prefill call; in a recompute call the new ones and the share
    /// of the reused ones that is due. A graph of fixed shape can compute K of them at no further cost.
    pub rows: usize,
}

/// A list of calls, and how long they take in all, in the unit of the latencies it was made with.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// In the order of their tokens; every token outside the prefix is in exactly one.
    pub calls: Vec<Call>,
    /// The sum of their latencies.
    pub latency: f64,
}

/// The best way to finish the tokens up to one of them.
#[derive(Clone, Copy)]
struct Best {
    latency: f64,
    /// The last call's graph and length; a length of 0 where no call ends here: at the start and in the prefix.
    kind: CallKind,
    len: usize,
}

const NOTHING: Best = Best {
    latency: 0.0,
    kind: CallKind::Prefill,
    len: 0,
};

/// The calls with the least latency when every call of a graph takes the same time, whatever it holds: static graphs.
/// Latencies are of any one unit; what is not a number from 0 on counts as infinite. Takes time in proportion to the
/// tokens. Of equally fast lists it
/// gives the one whose last call is prefill, which is exact, and so on backwards.
pub fn plan_fixed(kinds: &[TokenKind], graphs: &Graphs, prefill: f64, recompute: f64) -> Schedule {
    let (prefill, recompute) = (sound(prefill), sound(recompute));
    let mut best = Vec::with_capacity(kinds.len() + 1);
    best.push(NOTHING);
    // The tokens of the longest calls that end with the current one: `prefill_from..`, `window.from..`.
    let mut prefill_from = 0;
    let mut window = Window::default();
    for (i, &kind) in kinds.iter().enumerate() {
        let end = i + 1;
        if kind == TokenKind::Prefix {
            prefill_from = end;
            window = Window {
                from: end,
                ..Window::default()
            };
            best.push(Best {
                latency: best[i].latency,
                ..NOTHING
            });
            continue;
        }
        prefill_from = prefill_from.max(end.saturating_sub(graphs.prefill_tokens.get()));
        let mut choice = Best {
            latency: best[prefill_from].latency + prefill,
            kind: CallKind::Prefill,
            len: end - prefill_from,
        };
        if let Some(graph) = graphs.recompute {
            window.add(kind);
            // Nothing at all always fits.
            while graph.rows_for(window.reused, window.new).is_none() {
                window.drop_first(kinds);
            }
            let len = end - window.from;
            // Where not even this token fits there is no such call.
            let latency = best
                .get(window.from)
                .map_or(f64::INFINITY, |best| best.latency + recompute);
            if latency < choice.latency {
                choice = Best {
                    latency,
                    kind: CallKind::Recompute,
                    len,
                };
            }
        }
        best.push(choice);
    }
    trace(kinds, graphs, &best)
}

/// A stretch of tokens without a prefix token, by its first token and its counts.
#[derive(Clone, Copy, Default)]
struct Window {
    from: usize,
    reused: usize,
    new: usize,
}

impl Window {
    fn add(&mut self, kind: TokenKind) {
        match kind {
            TokenKind::NonPrefix => self.reused += 1,
            TokenKind::New => self.new += 1,
            TokenKind::Prefix => (),
        }
    }

    fn drop_first(&mut self, kinds: &[TokenKind]) {
        match kinds.get(self.from) {
            Some(TokenKind::NonPrefix) => self.reused -= 1,
            Some(TokenKind::New) => self.new -= 1,
            Some(TokenKind::Prefix) | None => (),
        }
        self.from += 1;
    }
}

/// The calls with the least latency in all, where a call's latency depends on what it holds and where it stands:
/// `latency` is asked for every call that is possible, at most `tokens * (L_P + L_S)` times. Latencies are of any one
/// unit; what is not a number from 0 on counts as infinite. Of equally fast lists it gives the one whose last call
/// is prefill, and the longest such, and so on backwards; it agrees with [`plan_fixed`] where that applies.
pub fn plan(kinds: &[TokenKind], graphs: &Graphs, latency: impl Fn(&Call) -> f64) -> Schedule {
    let mut best = Vec::with_capacity(kinds.len() + 1);
    best.push(NOTHING);
    for (i, &kind) in kinds.iter().enumerate() {
        if kind == TokenKind::Prefix {
            best.push(Best {
                latency: best[i].latency,
                ..NOTHING
            });
            continue;
        }
        let end = i + 1;
        let mut choice = Best {
            latency: f64::INFINITY,
            kind: CallKind::Prefill,
            len: 1,
        };
        // Prefill first: recompute calls have to be faster. Of one graph's calls the longest comes last and wins.
        for kind in [CallKind::Prefill, CallKind::Recompute] {
            let mut window = Window::default();
            for from in (0..end).rev() {
                if kinds[from] == TokenKind::Prefix {
                    break;
                }
                window.add(kinds[from]);
                let Some(call) = graphs.call(kind, from..end, window.reused, window.new) else {
                    break;
                };
                let latency = best[from].latency + sound(latency(&call));
                if latency < choice.latency || latency == choice.latency && kind == choice.kind {
                    let len = end - from;
                    choice = Best { latency, kind, len };
                }
            }
        }
        best.push(choice);
    }
    trace(kinds, graphs, &best)
}

/// The calls that `best` stands for, found from the end.
fn trace(kinds: &[TokenKind], graphs: &Graphs, best: &[Best]) -> Schedule {
    let mut calls = Vec::new();
    let mut end = kinds.len();
    while end > 0 {
        let Best { kind, len, .. } = best[end];
        if len == 0 {
            end -= 1;
            continue;
        }
        let tokens = end - len..end;
        end = tokens.start;
        let new = kinds[tokens.clone()]
            .iter()
            .filter(|kind| **kind == TokenKind::New)
            .count();
        calls.extend(graphs.call(kind, tokens, len - new, new));
    }
    calls.reverse();
    Schedule {
        calls,
        latency: best.last().map_or(0.0, |best| best.latency),
    }
}

/// A latency that can be added and compared.
fn sound(latency: f64) -> f64 {
    if latency >= 0.0 { latency } else { f64::INFINITY }
}

#[cfg(test)]
mod tests;
