//! What of a prompt is stored: its beginning, and pieces of it from elsewhere.

use super::super::cut::{Segment, cut};
use super::Shared;
use crate::api::TokenId;
use reprise_kv::store::{ChainHash, ChunkId, MIN_RUN_TOKENS};
use std::ops::Range;

/// Chunks with fewer tokens than this are not looked for by their content: computing them is as quick.
const LEAST_CONTENT_TOKENS: usize = 16;

/// Part of a stored chunk, and where in a prompt it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// The chunk.
    pub chunk: ChunkId,
    /// Which of its tokens.
    pub of: Range<usize>,
    /// The position of the first of them in the prompt.
    pub at: usize,
    /// Whether it begins the prompt, or goes on with its beginning.
    pub is_prefix: bool,
}

impl Use {
    /// Which tokens of the prompt.
    pub fn tokens(&self) -> Range<usize> {
        self.at..self.at + self.of.len()
    }

    /// What of it stands from a position of the prompt on.
    pub fn from(&self, position: usize) -> Use {
        let skipped = position.saturating_sub(self.at).min(self.of.len());
        Use {
            of: self.of.start + skipped..self.of.end,
            at: self.at + skipped,
            ..self.clone()
        }
    }
}

/// A prompt, and what is to be found of it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its tokens.
    pub prompt: &'a [TokenId],
    /// What it consists of.
    pub segments: &'a [Segment],
    /// Tokens at its beginning that are there already.
    pub known: usize,
    /// Where the question begins: pieces are looked for before it.
    pub question: usize,
    /// Whether pieces from other contexts are looked for as well.
    pub anywhere: bool,
}

/// What of a prompt is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Its beginning, computed under the same context: the chunks, in order.
    pub prefix: Vec<Use>,
    /// How many of its tokens are exact: chunks that were made from pieces of other contexts are not.
    pub exact_tokens: usize,
    /// What comes from elsewhere, in order, behind the beginning.
    pub pieces: Vec<Use>,
}

impl Found {
    /// Tokens of the beginning.
    pub fn prefix_tokens(&self) -> usize {
        self.prefix.last().map_or(0, |last| last.tokens().end)
    }

    /// Takes chunks out, and of the beginning what comes behind them.
    pub fn leave_out(&mut self, chunks: &[ChunkId]) {
        if let Some(first) = self.prefix.iter().position(|part| chunks.contains(&part.chunk)) {
            self.prefix.truncate(first);
            self.exact_tokens = self.exact_tokens.min(self.prefix_tokens());
        }
        self.pieces.retain(|part| !chunks.contains(&part.chunk));
    }
}

impl Shared {
    pub(super) fn find(&self, wanted: &Wanted<'_>) -> Found {
        let Wanted {
            prompt,
            known,
            question,
            ..
        } = *wanted;
        let usable = &prompt[..prompt.len().saturating_sub(1)];
        let stored = self
            .store
            .longest_prefix(self.namespace, ChainHash::START, usable);
        let mut found = Found::default();
        let mut at = 0;
        for chunk in &stored.chunks {
            // What was made from moved pieces is another's answer: who takes only what begins alike gets none of it.
            if !wanted.anywhere && chunk.ratio < 1.0 {
                break;
            }
            found.prefix.push(Use {
                chunk: chunk.chunk,
                of: 0..chunk.tokens,
                at,
                is_prefix: true,
            });
            if found.exact_tokens == at && chunk.ratio >= 1.0 {
                found.exact_tokens = at + chunk.tokens;
            }
            at += chunk.tokens;
        }
        found.prefix.retain(|part| part.tokens().end > known);
        if !wanted.anywhere {
            return found;
        }
        let cuts = cut(wanted.segments);
        let end = question.min(usable.len());
        let mut from = at.max(known);
        for cut in cuts.iter().filter(|cut| cut.tokens.len() >= LEAST_CONTENT_TOKENS) {
            if cut.tokens.start < from || cut.tokens.end > end {
                continue;
            }
            let tokens = &prompt[cut.tokens.clone()];
            if let Some(chunk) = self.store.exact_with_content(self.namespace, tokens) {
                self.add_runs(prompt, from..cut.tokens.start, &mut found.pieces);
                found.pieces.push(Use {
                    chunk,
                    of: 0..tokens.len(),
                    at: cut.tokens.start,
                    is_prefix: false,
                });
                from = cut.tokens.end;
            }
        }
        self.add_runs(prompt, from..end, &mut found.pieces);
        found
    }

    /// Adds runs of tokens that stored chunks have in common with a range of the prompt: from the left, always the
    /// longest one that begins there.
    fn add_runs(&self, prompt: &[TokenId], range: Range<usize>, pieces: &mut Vec<Use>) {
        if range.len() < MIN_RUN_TOKENS {
            return;
        }
        let mut from = 0;
        for run in self.store.runs(self.namespace, &prompt[range.clone()], None) {
            let skipped = from.max(run.in_prompt.start) - run.in_prompt.start;
            if run.in_prompt.len() < skipped + MIN_RUN_TOKENS {
                continue;
            }
            pieces.push(Use {
                chunk: run.chunk,
                of: run.in_chunk.start + skipped..run.in_chunk.end,
                at: range.start + run.in_prompt.start + skipped,
                is_prefix: false,
            });
            from = run.in_prompt.end;
        }
    }
}
