//! SentencePiece-style encoding: a text begins as its characters, with spaces written as U+2581, and the pair whose joined
//! text is the token of the highest score (the leftmost of equals) is joined until none is left. What is no token is
//! spelled in byte tokens.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocab::Vocab;
use super::{TokenId, TokenizerError};
use crate::gguf::Gguf;

const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) struct Spm {
    scores: Vec<f32>,
    /// The token of each byte; `None` where the vocabulary has neither that nor an unknown token.
    bytes: Vec<Option<TokenId>>,
    longest_bytes: usize,
}

struct Node {
    start: usize,
    /// Bytes; zero once the node was merged into the one before it.
    len: usize,
    previous: usize,
    next: usize,
}

struct Candidate {
    score: f32,
    left: usize,
    right: usize,
    len: usize,
}

impl Candidate {
    fn key(&self) -> (Score, Reverse<usize>) {
        (Score(self.score), Reverse(self.left))
    }
}

#[derive(PartialEq)]
struct Score(f32);

impl Eq for Score {}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Spm {
    pub(super) fn from_gguf(
        gguf: &Gguf,
        vocab: &Vocab,
        unknown: Option<TokenId>,
    ) -> Result<Spm, TokenizerError> {
        let scores = match gguf.optional::<Vec<i32>>("tokenizer.ggml.scores") {
            Ok(Some(whole)) => whole.iter().map(|&score| score as f32).collect(),
            _ => gguf.f32_array("tokenizer.ggml.scores")?,
        };
        if scores.len() < vocab.len() {
            let problem = format!(
                "it lists {} tokens and the scores of {}",
                vocab.len(),
                scores.len()
            );
            return Err(TokenizerError::Vocabulary(problem));
        }
        let bytes = (0..=255u8)
            .map(|byte| {
                let name = format!("<0x{byte:02X}>");
                let single = || byte.is_ascii().then(|| char::from(byte).to_string());
                vocab.id(&name).or_else(|| vocab.plain_id(&single()?)).or(unknown)
            })
            .collect();
        let longest_bytes = vocab.texts().map(str::len).max().unwrap_or(0);
        Ok(Spm {
            scores,
            bytes,
            longest_bytes,
        })
    }

    /// Appends the tokens of `text`, in which nothing is special.
    pub(super) fn encode(&self, vocab: &Vocab, text: &str, add_space: bool, out: &mut Vec<TokenId>) {
        let mut escaped = String::with_capacity(text.len() + text.len() / 4);
        escaped.extend(add_space.then_some('\u{2581}'));
        escaped.extend(text.chars().map(|c| if c == ' ' { '\u{2581}' } else { c }));

        let mut nodes: Vec<Node> = Vec::new();
        for (start, c) in escaped.char_indices() {
            let at = nodes.len();
            nodes.push(Node {
                start,
                len: c.len_utf8(),
                previous: at.wrapping_sub(1),
                next: at + 1,
            });
        }
        if let Some(last) = nodes.last_mut() {
            last.next = NONE;
        }
        let mut queue = BinaryHeap::new();
        for right in 1..nodes.len() {
            self.consider(vocab, &escaped, &nodes, &mut queue, right - 1, right);
        }
        while let Some(Candidate { left, right, len, .. }) = queue.pop() {
            let (Some(left_node), Some(right_node)) = (nodes.get(left), nodes.get(right)) else {
                continue;
            };
            if left_node.len == 0 || right_node.len == 0 || left_node.len + right_node.len != len {
                continue;
            }
            let (previous, next) = (left_node.previous, right_node.next);
            if let Some(node) = nodes.get_mut(left) {
                node.len = len;
                node.next = next;
            }
            if let Some(node) = nodes.get_mut(right) {
                node.len = 0;
            }
            if let Some(node) = nodes.get_mut(next) {
                node.previous = left;
            }
            self.consider(vocab, &escaped, &nodes, &mut queue, previous, left);
            self.consider(vocab, &escaped, &nodes, &mut queue, left, next);
        }
        for node in nodes.iter().filter(|node| node.len > 0) {
            let text = escaped.get(node.start..node.start + node.len).unwrap_or_default();
            match vocab.plain_id(text) {
                Some(id) => out.push(id),
                None => {
                    out.extend(
                        text.bytes()
                            .filter_map(|byte| self.bytes.get(usize::from(byte)).copied().flatten()),
                    );
                }
            }
        }
    }

    /// Queues the pair when its joined text is a token.
    fn consider(
        &self,
        vocab: &Vocab,
        text: &str,
        nodes: &[Node],
        queue: &mut BinaryHeap<Candidate>,
        left: usize,
        right: usize,
    ) {
        let (Some(left_node), Some(right_node)) = (nodes.get(left), nodes.get(right)) else {
            return;
        };
        let len = left_node.len + right_node.len;
        if len > self.longest_bytes {
            return;
        }
        let joined = text
            .get(left_node.start..left_node.start + len)
            .unwrap_or_default();
        if let Some(id) = vocab.plain_id(joined) {
            let score = self.scores.get(id as usize).copied().unwrap_or(0.0);
            queue.push(Candidate {
                score,
                left,
                right,
                len,
            });
        }
    }
}
