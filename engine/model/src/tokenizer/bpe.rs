//! Byte-level byte pair encoding: a word begins as its bytes, and the pair with the lowest merge rank (the leftmost of
//! equals) is joined until no known pair is left. A priority queue keeps this at n log n for a word of n bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;

use super::pretok::PreTokenizer;
use super::vocab::{Vocab, char_of};
use super::{TokenId, TokenizerError};
use crate::gguf::Gguf;

/// A token id, or (from the vocabulary's size on) a text that only occurs inside merges.
type Symbol = u32;

const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) struct Bpe {
    pre: PreTokenizer,
    /// Pair of symbols to merge rank and result.
    merges: HashMap<(Symbol, Symbol), (u32, Symbol)>,
    bytes: Vec<Symbol>,
    /// Texts that are no token: each as the tokens of its bytes.
    extras: Vec<Vec<TokenId>>,
    first_extra: Symbol,
}

/// Working memory that lives for one call of encode.
#[derive(Default)]
pub(super) struct Scratch {
    nodes: Vec<Node>,
    queue: BinaryHeap<Reverse<Candidate>>,
    spelled: String,
}

struct Node {
    symbol: Symbol,
    /// False once the node was merged into the one before it.
    alive: bool,
    previous: usize,
    next: usize,
}

/// Ordered by rank, then by position.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: usize,
    right: usize,
    pair: (Symbol, Symbol),
    result: Symbol,
}

impl Bpe {
    pub(super) fn from_gguf(gguf: &Gguf, vocab: &Vocab, pre: PreTokenizer) -> Result<Bpe, TokenizerError> {
        let listed = gguf.str_array("tokenizer.ggml.merges")?;
        let first_extra = vocab.len() as Symbol;
        let mut extra_ids: HashMap<String, Symbol> = HashMap::new();
        let mut extra_texts: Vec<String> = Vec::new();
        let mut symbol_of = |text: &str| {
            vocab.plain_id(text).unwrap_or_else(|| {
                *extra_ids.entry(text.to_owned()).or_insert_with(|| {
                    extra_texts.push(text.to_owned());
                    first_extra.saturating_add(extra_texts.len() as Symbol - 1)
                })
            })
        };
        let bytes: Vec<Symbol> = (0..=255)
            .map(|byte| symbol_of(char_of(byte).encode_utf8(&mut [0; 4])))
            .collect();
        let mut merges = HashMap::with_capacity(listed.len());
        let mut joined = String::new();
        for (rank, merge) in listed.iter().enumerate() {
            // The first character may itself be a space.
            let skip = merge.chars().next().map_or(0, char::len_utf8);
            let Some(space) = merge.get(skip..).and_then(|rest| rest.find(' ')) else {
                continue;
            };
            let (left, right) = merge.split_at(skip + space);
            let right = right.strip_prefix(' ').unwrap_or_default();
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            let pair = (symbol_of(left), symbol_of(right));
            let result = symbol_of(&joined);
            // A merge listed twice keeps its first rank.
            merges.entry(pair).or_insert((rank as u32, result));
        }
        let extras = extra_texts.iter().map(|text| byte_tokens(vocab, text)).collect();
        Ok(Bpe {
            pre,
            merges,
            bytes,
            extras,
            first_extra,
        })
    }

    /// Appends the tokens of `text`, in which nothing is special.
    pub(super) fn encode(&self, vocab: &Vocab, text: &str, scratch: &mut Scratch, out: &mut Vec<TokenId>) {
        self.pre
            .split(text, |word| self.encode_word(vocab, word, scratch, out));
    }

    fn encode_word(&self, vocab: &Vocab, word: &str, scratch: &mut Scratch, out: &mut Vec<TokenId>) {
        if self.pre.takes_whole_words() {
            scratch.spelled.clear();
            scratch.spelled.extend(word.bytes().map(char_of));
            if let Some(id) = vocab.plain_id(&scratch.spelled) {
                out.push(id);
                return;
            }
        }
        let Scratch { nodes, queue, .. } = scratch;
        nodes.clear();
        queue.clear();
        nodes.extend(word.bytes().enumerate().map(|(at, byte)| Node {
            symbol: self.bytes.get(usize::from(byte)).copied().unwrap_or(Symbol::MAX),
            alive: true,
            previous: at.wrapping_sub(1),
            next: at + 1,
        }));
        if let Some(last) = nodes.last_mut() {
            last.next = NONE;
        }
        for right in 1..nodes.len() {
            self.consider(nodes, queue, right - 1, right);
        }
        while let Some(Reverse(candidate)) = queue.pop() {
            let Candidate {
                left,
                right,
                pair,
                result,
                ..
            } = candidate;
            let (Some(left_node), Some(right_node)) = (nodes.get(left), nodes.get(right)) else {
                continue;
            };
            let is_current =
                left_node.alive && right_node.alive && (left_node.symbol, right_node.symbol) == pair;
            // A node whose symbol is unchanged has not grown, so the pair still stands side by side.
            if !is_current || left_node.next != right {
                continue;
            }
            let (previous, next) = (left_node.previous, right_node.next);
            if let Some(node) = nodes.get_mut(left) {
                node.symbol = result;
                node.next = next;
            }
            if let Some(node) = nodes.get_mut(right) {
                node.alive = false;
            }
            if let Some(node) = nodes.get_mut(next) {
                node.previous = left;
            }
            self.consider(nodes, queue, previous, left);
            self.consider(nodes, queue, left, next);
        }
        for node in nodes.iter().filter(|node| node.alive) {
            match node.symbol.checked_sub(self.first_extra) {
                None => out.push(node.symbol),
                Some(extra) => out.extend(self.extras.get(extra as usize).into_iter().flatten()),
            }
        }
    }

    /// Queues the pair when it is a known merge.
    fn consider(
        &self,
        nodes: &[Node],
        queue: &mut BinaryHeap<Reverse<Candidate>>,
        left: usize,
        right: usize,
    ) {
        let (Some(left_node), Some(right_node)) = (nodes.get(left), nodes.get(right)) else {
            return;
        };
        let pair = (left_node.symbol, right_node.symbol);
        if let Some(&(rank, result)) = self.merges.get(&pair) {
            queue.push(Reverse(Candidate {
                rank,
                left,
                right,
                pair,
                result,
            }));
        }
    }
}

/// A text that is no token, spelled with the tokens of its characters. Some vocabularies lack rare bytes (SmolLM2 has no
/// token for U+0004): those are left out, as there is nothing that could stand for them.
fn byte_tokens(vocab: &Vocab, text: &str) -> Vec<TokenId> {
    text.chars()
        .filter_map(|c| vocab.plain_id(c.encode_utf8(&mut [0; 4])))
        .collect()
}
