//! Runs of tokens that two texts share, found in linear time by a suffix automaton over token ids.
//!
//! The automaton of a text is the smallest one that accepts exactly the text's stretches: at most two states and three
//! edges a token. Reading another text through it gives, at each token, the longest stretch ending there that the first
//! text has too.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// A run that no shorter one is worth looking up for, in tokens: what re-rotating and recomputing its edges costs is
/// then small beside what it saves.
pub const MIN_RUN_TOKENS: usize = 32;

/// A stretch that two texts share: the ranges are equally long and hold the same tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonRun {
    /// Where it stands in the first text; the first place, when there are several.
    pub first: Range<usize>,
    /// Where it stands in the second text.
    pub second: Range<usize>,
}

/// The longest run of tokens that both texts have, or nothing when they share no token. Of equally long ones, the one
/// that ends first in `b`.
pub fn longest_common_run(a: &[u32], b: &[u32]) -> Option<CommonRun> {
    let mut longest: Option<CommonRun> = None;
    SuffixAutomaton::new(a).each_maximal_run(b, 1, |run| {
        if longest
            .as_ref()
            .is_none_or(|best| best.second.len() < run.second.len())
        {
            longest = Some(run);
        }
    });
    longest
}

/// Every run of at least `min_tokens` tokens of `b` that `a` has too and that cannot be made longer in `b`, in either
/// direction, without ceasing to be one of `a`'s. In order of their place in `b`; neighbours may overlap.
pub fn common_runs(a: &[u32], b: &[u32], min_tokens: usize) -> Vec<CommonRun> {
    SuffixAutomaton::new(a).runs(b, min_tokens)
}

/// The stretches of one text, ready to be looked up by any number of others.
#[derive(Debug)]
pub struct SuffixAutomaton {
    states: Vec<State>,
    edges: Vec<Edge>,
    /// Edge by the state it leaves and its token.
    by_token: HashMap<u64, u32, BuildHasherDefault<MixHasher>>,
}

/// A class of stretches that end at the same places.
#[derive(Debug, Clone, Copy)]
struct State {
    /// Tokens of the longest stretch in the class.
    length: u32,
    /// The class of the longest suffix that ends at more places.
    link: u32,
    /// Where the class ends first: the index behind its last token.
    first_end: u32,
    /// The head of the list of edges that leave it.
    edges: u32,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    token: u32,
    to: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

impl SuffixAutomaton {
    /// The automaton of a text, in time and memory proportional to its length: about 100 bytes a token. Tokens behind
    /// the first billion are left out.
    pub fn new(text: &[u32]) -> SuffixAutomaton {
        // States are numbered in 32 bits, and there are at most two a token.
        let text = &text[..text.len().min(1 << 30)];
        let mut automaton = SuffixAutomaton {
            states: Vec::with_capacity(2 * text.len() + 1),
            edges: Vec::with_capacity(3 * text.len()),
            by_token: HashMap::with_capacity_and_hasher(3 * text.len(), BuildHasherDefault::default()),
        };
        automaton.add_state(0, NONE, 0);
        let mut last = ROOT;
        for &token in text {
            last = automaton.append(last, token);
        }
        automaton
    }

    /// Every maximal run of at least `min_tokens` tokens of `text`: see [`common_runs`].
    pub fn runs(&self, text: &[u32], min_tokens: usize) -> Vec<CommonRun> {
        let mut runs = Vec::new();
        self.each_maximal_run(text, min_tokens, |run| runs.push(run));
        runs
    }

    fn each_maximal_run(&self, text: &[u32], min_tokens: usize, mut found: impl FnMut(CommonRun)) {
        let (mut state, mut length) = (ROOT, 0);
        let mut report = |state: u32, length: usize, end: usize| {
            if length >= min_tokens.max(1) {
                let first_end = self.states[state as usize].first_end as usize;
                found(CommonRun {
                    first: first_end - length..first_end,
                    second: end - length..end,
                });
            }
        };
        for (index, &token) in text.iter().enumerate() {
            let mut to = self.step(state, token);
            if to.is_none() {
                // The run that ended before this token is complete: it cannot grow to the right, and grew to the left
                // as far as it could.
                report(state, length, index);
            }
            while to.is_none() && state != ROOT {
                state = self.states[state as usize].link;
                length = self.states[state as usize].length as usize;
                to = self.step(state, token);
            }
            if let Some(to) = to {
                state = to;
                length += 1;
            }
        }
        report(state, length, text.len());
    }

    fn append(&mut self, last: u32, token: u32) -> u32 {
        let end = self.states[last as usize].length + 1;
        let new = self.add_state(end, ROOT, end);
        let mut from = last;
        while from != NONE && self.edge(from, token).is_none() {
            self.add_edge(from, token, new);
            from = self.states[from as usize].link;
        }
        let Some(edge) = (from != NONE).then(|| self.edge(from, token)).flatten() else {
            return new;
        };
        let target = self.edges[edge].to;
        let length = self.states[from as usize].length + 1;
        let State {
            link,
            first_end,
            length: target_length,
            ..
        } = self.states[target as usize];
        if target_length == length {
            self.states[new as usize].link = target;
            return new;
        }
        // The short stretches of the target now end in one more place than its long ones: they get a state of their own.
        let split = self.add_state(length, link, first_end);
        let mut copied = self.states[target as usize].edges;
        while copied != NONE {
            let Edge { token, to, next } = self.edges[copied as usize];
            self.add_edge(split, token, to);
            copied = next;
        }
        while from != NONE
            && let Some(edge) = self.edge(from, token)
            && self.edges[edge].to == target
        {
            self.edges[edge].to = split;
            from = self.states[from as usize].link;
        }
        self.states[target as usize].link = split;
        self.states[new as usize].link = split;
        new
    }

    fn add_state(&mut self, length: u32, link: u32, first_end: u32) -> u32 {
        self.states.push(State {
            length,
            link,
            first_end,
            edges: NONE,
        });
        self.states.len() as u32 - 1
    }

    fn add_edge(&mut self, from: u32, token: u32, to: u32) {
        let edge = self.edges.len() as u32;
        let head = &mut self.states[from as usize].edges;
        self.edges.push(Edge {
            token,
            to,
            next: *head,
        });
        *head = edge;
        self.by_token.insert(key(from, token), edge);
    }

    fn edge(&self, from: u32, token: u32) -> Option<usize> {
        self.by_token.get(&key(from, token)).map(|&edge| edge as usize)
    }

    fn step(&self, from: u32, token: u32) -> Option<u32> {
        self.edge(from, token).map(|edge| self.edges[edge].to)
    }
}

fn key(state: u32, token: u32) -> u64 {
    u64::from(state) << 32 | u64::from(token)
}

/// Spreads a state and a token over 64 bits: two multiplications, where the standard hasher would cost more than all
/// the rest of a step.
#[derive(Debug, Default)]
struct MixHasher(u64);

impl Hasher for MixHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0.rotate_left(8) ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (value ^ value >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn occurs(a: &[u32], stretch: &[u32]) -> Option<usize> {
        (0..=a.len().checked_sub(stretch.len())?).find(|&at| a[at..].starts_with(stretch))
    }

    /// The definition, word for word.
    fn plain_runs(a: &[u32], b: &[u32], min: usize) -> Vec<CommonRun> {
        let mut runs = Vec::new();
        for start in 0..b.len() {
            for end in start + min.max(1)..=b.len() {
                let Some(at) = occurs(a, &b[start..end]) else {
                    break;
                };
                let grows_left = start > 0 && occurs(a, &b[start - 1..end]).is_some();
                let grows_right = end < b.len() && occurs(a, &b[start..end + 1]).is_some();
                if !grows_left && !grows_right {
                    runs.push(CommonRun {
                        first: at..at + end - start,
                        second: start..end,
                    });
                }
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn runs_are_those_of_the_definition(
            a in prop::collection::vec(0_u32..3, 0..40),
            b in prop::collection::vec(0_u32..4, 0..40),
            min in 1_usize..6,
        ) {
            prop_assert_eq!(common_runs(&a, &b, min), plain_runs(&a, &b, min));
            let longest = plain_runs(&a, &b, 1).into_iter().map(|run| run.second.len()).max();
            prop_assert_eq!(longest_common_run(&a, &b).map(|run| run.second.len()), longest);
        }
    }

    #[test]
    fn a_moved_passage_is_found_whole() {
        let passage: Vec<u32> = (1_000..1_050).collect();
        let a: Vec<u32> = (0..70).chain(passage.clone()).chain(70..90).collect();
        let b: Vec<u32> = (500..507).chain(passage).chain(600..700).collect();
        assert_eq!(
            common_runs(&a, &b, MIN_RUN_TOKENS),
            [CommonRun {
                first: 70..120,
                second: 7..57
            }]
        );
    }

    #[test]
    fn one_token_repeated_is_no_special_case() {
        let run = longest_common_run(&[7; 300], &[7; 200]).unwrap();
        assert_eq!((run.first, run.second), (0..200, 0..200));
    }

    #[test]
    fn a_long_text_has_at_most_two_states_and_three_edges_a_token() {
        let text: Vec<u32> = (0..10_000_u32)
            .map(|index| index.wrapping_mul(2_654_435_761) % 50)
            .collect();
        let automaton = SuffixAutomaton::new(&text);
        assert!(automaton.states.len() <= 2 * text.len());
        assert!(automaton.edges.len() <= 3 * text.len());
    }
}
