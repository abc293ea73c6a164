//! How a prompt's tokens would be obtained, told before it is read.

use super::keeper::Found;
use super::read::Reading;
use reprise_kv::store::ChunkId;
use std::ops::Range;

/// Where the keys and values of a stretch of a prompt come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The pool has them, from a request of this run.
    Pool,
    /// A stored chunk has them, computed under the same context: they are taken as they are.
    Stored {
        /// The chunk.
        chunk: ChunkId,
    },
    /// A stored chunk has them, computed elsewhere: they are moved here, and a share is computed again.
    Moved {
        /// The chunk.
        chunk: ChunkId,
        /// Which of its tokens.
        of: Range<usize>,
    },
    /// They are computed.
    New,
}

/// A stretch of a prompt with one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Which tokens of the prompt.
    pub tokens: Range<usize>,
    /// Where they come from.
    pub origin: Origin,
}

/// A graph call to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCall {
    /// What it is for.
    pub purpose: Purpose,
    /// Tokens it computes.
    pub rows: usize,
}

/// What a graph call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It computes tokens one after the other.
    Read,
    /// It computes new tokens between those that are known, so that the question can be asked over all of them.
    FillIn,
    /// It asks which known tokens the question attends to, in two thirds of the layers.
    Probe,
    /// It computes new tokens and chosen known ones, at their places.
    Recompute,
}

/// How a prompt would be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// All of its tokens, in order.
    pub spans: Vec<Span>,
    /// How many tokens at its beginning are known as they stand: what follows differs from everything that was read, or is
    /// the last token, which is always computed.
    pub prefix_tokens: usize,
    /// How many of those that are stored are exact: what was made of moved text comes behind them.
    pub exact_tokens: usize,
    /// Tokens that are moved.
    pub moved_tokens: usize,
    /// Those of them that are computed again.
    pub recomputed_tokens: usize,
    /// Which they were, in order; none before it is read, since the question chooses them.
    pub again: Vec<Range<usize>>,
    /// The calls, in order: those to come before it is read, and those that were made once it is.
    pub calls: Vec<PlannedCall>,
}

impl Explanation {
    /// For a prompt of which the pool has `pool_tokens` at the beginning; `reading` is how it is read where some of it is
    /// moved.
    pub(crate) fn new(
        prompt_tokens: usize,
        pool_tokens: usize,
        found: &Found,
        reading: Option<&Reading>,
        calls: Vec<PlannedCall>,
    ) -> Explanation {
        let mut spans = Vec::new();
        let mut add = |tokens: Range<usize>, origin: Origin| {
            if !tokens.is_empty() {
                spans.push(Span { tokens, origin });
            }
        };
        add(0..pool_tokens, Origin::Pool);
        let mut end = pool_tokens;
        for part in &found.prefix {
            let tokens = part.tokens();
            add(end..tokens.end, Origin::Stored { chunk: part.chunk });
            end = end.max(tokens.end);
        }
        let prefix_tokens = end;
        for part in found
            .pieces
            .iter()
            .filter(|part| reading.is_some() && part.at >= prefix_tokens)
        {
            add(end..part.at, Origin::New);
            let (chunk, of) = (part.chunk, part.of.clone());
            add(part.tokens(), Origin::Moved { chunk, of });
            end = part.tokens().end;
        }
        add(end..prompt_tokens, Origin::New);
        Explanation {
            spans,
            prefix_tokens,
            exact_tokens: found.exact_tokens.min(prefix_tokens),
            moved_tokens: reading.map_or(0, Reading::reused),
            recomputed_tokens: reading.map_or(0, Reading::recomputed),
            again: Vec::new(),
            calls,
        }
    }

    /// Notes which tokens were computed again; they are in order.
    pub(crate) fn note_again(&mut self, tokens: &[usize]) {
        self.recomputed_tokens = tokens.len();
        self.again = tokens
            .chunk_by(|a, b| a + 1 == *b)
            .map(|run| run[0]..run[0] + run.len())
            .collect();
    }
}
