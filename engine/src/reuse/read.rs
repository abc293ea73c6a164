//! Reading a prompt of which some is known: which tokens are computed, in which order, in steps of one graph call.
//!
//! Known tokens come in two kinds (DESIGN section 1). Those of the exact prefix need nothing. Pieces from elsewhere, whose
//! keys were turned to where they stand now, were computed under another context: a share of their tokens is computed
//! again, at their true positions, each seeing everything before it ([`Strategy`] says which). New tokens and the last
//! one are always computed. All that is computed at first stands in positions that are prepared and not committed, so
//! that a request that leaves in the middle leaves nothing half-right behind.

use super::explain::{PlannedCall, Purpose};
use crate::api::TokenId;
use crate::backend::{Backend, BackendError, Deviation, GraphCall, GraphKind, Outputs, Selection, Stretch};
use reprise_kv::KvLanes;
use std::ops::Range;

/// Tokens at the beginning of each piece that are always computed again: whatever stood before them is gone, and much
/// attention goes to them (DESIGN section 6).
const HEAD_TOKENS: usize = 4;
/// A question's last tokens that are asked what they attend to.
const PROBE_TOKENS: usize = 64;

/// Which tokens of pieces are computed again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Strategy {
    /// None: the pieces are taken as they are.
    Nothing,
    /// The first ones of each piece, up to its share.
    Heads,
    /// The first four of each piece, and those that get most attention from the question.
    HeadsAndQuery,
    /// Those whose keys or values deviate most from fresh ones at the check layer.
    Deviation(Deviation),
}

/// How much is computed again, and what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recompute {
    /// Which tokens.
    pub strategy: Strategy,
    /// The share of the pieces' tokens (r), from 0 to 1. With 1 everything is computed, as if nothing were known.
    pub ratio: f64,
}

impl Default for Recompute {
    /// What DESIGN section 6 measured to be best.
    fn default() -> Recompute {
        Recompute {
            strategy: Strategy::HeadsAndQuery,
            ratio: 0.15,
        }
    }
}

/// The layer whose keys and values are compared by [`Strategy::Deviation`].
const CHECK_LAYER: usize = 1;

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The question is asked what it attends to, over all of the prompt: new tokens before it, those of `todo`, take part,
    /// and are computed before where they are too many.
    Probe,
    /// Tokens at `todo`, ascending; the prompt's last one ends it.
    Compute,
    /// Consecutive tokens, of which those that deviate are computed.
    Deviation { from: usize },
}

/// A prompt being read. See the module.
#[derive(Debug)]
pub struct Reading {
    prompt: Vec<TokenId>,
    prefix: usize,
    /// Tokens from elsewhere, in order, in the chunks they come in.
    pieces: Vec<Range<usize>>,
    /// Where the question begins.
    question: usize,
    recompute: Recompute,
    stage: Stage,
    /// Positions to compute, ascending, and how many of them are done.
    todo: Vec<usize>,
    done: usize,
    computed: usize,
}

impl Reading {
    /// Of a prompt whose first `prefix` tokens are committed, and for whose `pieces` keys and values are placed;
    /// `question` is where the tokens begin that are asked for, and the end of the prompt where there is none.
    ///
    /// # Panics
    /// When the prompt is empty, or the pieces are not in order, within the prompt and behind the prefix.
    pub fn new(
        prompt: Vec<TokenId>,
        prefix: usize,
        pieces: Vec<Range<usize>>,
        question: usize,
        recompute: Recompute,
    ) -> Reading {
        let last = prompt.len() - 1;
        assert!(
            prefix <= last
                && pieces
                    .iter()
                    .all(|piece| prefix <= piece.start && piece.end <= last + 1)
        );
        assert!(pieces.is_sorted_by(|a, b| a.end <= b.start));
        let mut reading = Reading {
            question: question.clamp(prefix, last),
            prompt,
            prefix,
            pieces,
            recompute,
            stage: Stage::Compute,
            todo: Vec::new(),
            done: 0,
            computed: 0,
        };
        let reused = reading.reused();
        if recompute.strategy != Strategy::Nothing && reading.share(reused) >= reused {
            reading.pieces.clear();
        }
        let is_asked = question < reading.prompt.len();
        match recompute.strategy {
            _ if reading.pieces.is_empty() => reading.todo = (prefix..=last).collect(),
            Strategy::Deviation(_) => reading.stage = Stage::Deviation { from: prefix },
            Strategy::HeadsAndQuery if is_asked => {
                reading.stage = Stage::Probe;
                reading.todo = reading.new_tokens(prefix..reading.asked()).collect();
            }
            Strategy::HeadsAndQuery | Strategy::Heads => {
                let pieces = &reading.pieces;
                let heads = pieces.iter().flat_map(|piece| {
                    let count = reading.share(piece.len()).max(HEAD_TOKENS).min(piece.len());
                    piece.start..piece.start + count
                });
                reading.set_todo(heads.collect());
            }
            Strategy::Nothing => reading.set_todo(Vec::new()),
        }
        reading
    }

    /// Tokens that come from elsewhere.
    pub fn reused(&self) -> usize {
        self.pieces.iter().map(ExactSizeIterator::len).sum()
    }

    /// Of those the ones that are computed again.
    pub fn recomputed(&self) -> usize {
        match self.recompute.strategy {
            Strategy::Nothing => 0,
            _ => self.share(self.reused()),
        }
    }

    /// Tokens computed so far, and about how many are to come.
    pub fn progress(&self) -> (usize, usize) {
        let last = self.prompt.len();
        let later = match self.stage {
            Stage::Compute => 0,
            Stage::Probe => self.share(self.reused()) + last - self.asked(),
            Stage::Deviation { from } => self.share(last - from),
        };
        (self.computed, self.todo.len() - self.done + later)
    }

    /// The calls that are to come, of at most `most` tokens each.
    pub fn calls(&self, most: usize) -> Vec<PlannedCall> {
        let last = self.prompt.len();
        let mut calls = Vec::new();
        let mut add = |purpose, mut rows: usize| {
            while rows > 0 {
                let now = rows.min(most.max(1));
                calls.push(PlannedCall { purpose, rows: now });
                rows -= now;
            }
        };
        let left = self.todo.len() - self.done;
        let asked = last - self.asked();
        match self.stage {
            Stage::Compute if self.pieces.is_empty() => add(Purpose::Read, left),
            Stage::Compute => add(Purpose::Recompute, left),
            Stage::Probe => {
                add(Purpose::FillIn, left);
                add(Purpose::Probe, asked);
                let heads: usize = self.pieces.iter().map(|piece| piece.len().min(HEAD_TOKENS)).sum();
                add(Purpose::Recompute, self.share(self.reused()).max(heads) + asked);
            }
            Stage::Deviation { from } => {
                let new = self.new_tokens(from..last).count();
                add(Purpose::Recompute, new + self.share(last - from - new));
            }
        }
        calls
    }

    fn share(&self, tokens: usize) -> usize {
        (self.recompute.ratio * tokens as f64).ceil() as usize
    }

    /// Where the tokens begin that are asked what they attend to: the question, or the end of a long one.
    fn asked(&self) -> usize {
        self.question.max(self.prompt.len().saturating_sub(PROBE_TOKENS))
    }

    /// Tokens of a range that no piece holds.
    fn new_tokens(&self, range: Range<usize>) -> impl Iterator<Item = usize> + use<'_> {
        let mut pieces = self.pieces.iter().peekable();
        range.filter(move |&token| {
            while pieces.next_if(|piece| piece.end <= token).is_some() {}
            pieces.peek().is_none_or(|piece| token < piece.start)
        })
    }

    /// Computes `again` and all new tokens.
    fn set_todo(&mut self, again: Vec<usize>) {
        let last = self.prompt.len() - 1;
        let mut todo: Vec<usize> = self.new_tokens(self.prefix..last + 1).collect();
        todo.extend(again);
        todo.push(last);
        todo.sort_unstable();
        todo.dedup();
        (self.todo, self.done, self.stage) = (todo, 0, Stage::Compute);
    }

    /// Makes one graph call of at most `most` tokens over sequence `slot`, whose positions are prepared up to the
    /// prompt's end; true when it was the last: the last token's logits are there then, and nothing is committed yet.
    /// The head has to be attached.
    ///
    /// # Errors
    /// As the backend's.
    pub fn step(
        &mut self,
        backend: &mut dyn Backend,
        kv: &mut KvLanes<'_>,
        slot: usize,
        most: usize,
    ) -> Result<bool, BackendError> {
        match self.stage {
            Stage::Probe => {
                let asking = self.prompt.len() - self.asked();
                if self.todo.len() - self.done + asking <= backend.capacity(GraphKind::Probe) {
                    self.probe(backend, kv, slot)?;
                } else {
                    self.compute(backend, kv, slot, most)?;
                }
                Ok(false)
            }
            Stage::Compute => self.compute(backend, kv, slot, most),
            Stage::Deviation { from } => self.deviation(backend, kv, slot, from),
        }
    }

    fn compute(
        &mut self,
        backend: &mut dyn Backend,
        kv: &mut KvLanes<'_>,
        slot: usize,
        most: usize,
    ) -> Result<bool, BackendError> {
        let left = self.todo.len() - self.done;
        // The last call may be a little longer: a short one more would take its fixed time anew.
        let most = if left <= most + most / 4 { left } else { most };
        let count = most
            .min(backend.capacity(GraphKind::Prefill))
            .clamp(1, left.max(1));
        let positions = &self.todo[self.done..(self.done + count).min(self.todo.len())];
        let is_last = positions.last() == Some(&(self.prompt.len() - 1));
        let tokens: Vec<TokenId> = positions.iter().map(|&position| self.prompt[position]).collect();
        backend.run(
            &GraphCall {
                kind: GraphKind::Prefill,
                stretches: &[Stretch::at(slot, positions, &tokens)],
                outputs: if is_last { Outputs::Last } else { Outputs::None },
            },
            kv,
        )?;
        self.computed += positions.len();
        self.done += positions.len();
        Ok(is_last)
    }

    /// Asks the question what it attends to, and chooses what is computed.
    fn probe(
        &mut self,
        backend: &mut dyn Backend,
        kv: &mut KvLanes<'_>,
        slot: usize,
    ) -> Result<(), BackendError> {
        let (asked, end) = (self.asked(), self.prompt.len());
        let missing = &self.todo[self.done..];
        let places: Vec<usize> = missing.iter().copied().chain(asked..end).collect();
        let tokens: Vec<TokenId> = places.iter().map(|&place| self.prompt[place]).collect();
        let received = backend.probe(&Stretch::at(slot, &places, &tokens), end - asked, kv)?;
        let mut chosen: Vec<usize> = self
            .pieces
            .iter()
            .flat_map(|piece| piece.clone().take(HEAD_TOKENS))
            .collect();
        let mut rest: Vec<usize> = self
            .pieces
            .iter()
            .flat_map(|piece| piece.clone().skip(HEAD_TOKENS))
            .collect();
        let more = self.share(self.reused()).saturating_sub(chosen.len());
        // Of equals the first.
        rest.sort_by(|&a, &b| received[b].total_cmp(&received[a]).then(a.cmp(&b)));
        chosen.extend(rest.into_iter().take(more));
        chosen.extend(places);
        chosen.sort_unstable();
        chosen.dedup();
        (self.todo, self.done, self.stage) = (chosen, 0, Stage::Compute);
        Ok(())
    }

    fn deviation(
        &mut self,
        backend: &mut dyn Backend,
        kv: &mut KvLanes<'_>,
        slot: usize,
        from: usize,
    ) -> Result<bool, BackendError> {
        let Strategy::Deviation(of) = self.recompute.strategy else {
            unreachable!("the stage of this strategy");
        };
        let end = self
            .prompt
            .len()
            .min(from + backend.capacity(GraphKind::Recompute));
        let is_last = end == self.prompt.len();
        let mut forced: Vec<usize> = self.new_tokens(from..end).collect();
        if is_last && forced.last() != Some(&(end - 1)) {
            forced.push(end - 1);
        }
        let fresh = forced.len();
        let rows = fresh + self.share(end - from - fresh);
        let forced: Vec<usize> = forced.iter().map(|token| token - from).collect();
        let selection = Selection {
            check: CHECK_LAYER,
            of,
            rows,
            forced: &forced,
        };
        let outputs = if is_last { Outputs::Last } else { Outputs::None };
        let stretch = Stretch::new(slot, from, &self.prompt[from..end]);
        let chosen = backend.recompute(&stretch, &selection, outputs, kv)?;
        self.computed += chosen.len();
        self.stage = Stage::Deviation { from: end };
        Ok(is_last)
    }
}
