//! Reading a prompt of which some is known: which tokens are computed, in which order, in steps of one graph call.
//!
//! Known tokens come in two kinds (DESIGN section 1). Those of the exact prefix need nothing. Pieces from elsewhere, whose
//! keys were turned to where they stand now, were computed under another context: a share of their tokens is computed
//! again, at their true positions, each seeing everything before it ([`Strategy`] says which). New tokens and the last
//! one are always computed. All that is computed at first stands in positions that are prepared and not committed, so
//! that a request that leaves in the middle leaves nothing half-right behind.

use super::costs::CallCosts;
use super::explain::{PlannedCall, Purpose};
use super::schedule::{Call, CallKind, TokenKind, plan};
use crate::api::TokenId;
use crate::backend::{Backend, BackendError, Deviation, GraphCall, GraphKind, Outputs, Selection, Stretch};
use reprise_kv::KvLanes;
use std::collections::VecDeque;
use std::ops::Range;

/// Tokens at the beginning of each piece that are always computed again: whatever stood before them is gone, and much
/// attention goes to them (DESIGN section 6).
const HEAD_TOKENS: usize = 4;
/// What the question's attention to a token counts by where it stands in its piece, from 1: this power of its place. The
/// nearer to the beginning, the more of what a token saw is gone. `reprise bench workload` on 24 questions each at a ratio of 0.3:
/// KL on LoCoMo 0.102 and on HotpotQA 0.047; with half of the share for the pieces' first tokens and the power 0, 0.115 and 0.050.
const PLACE_POWER: f32 = -0.5;
/// A question's last tokens that are asked what they attend to.
const PROBE_TOKENS: usize = 64;

/// Which tokens of pieces are computed again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Strategy {
    /// None: the pieces are taken as they are.
    Nothing,
    /// The first ones of each piece, up to its share.
    Heads,
    /// The first four of each piece, and those that get most attention from the question, the earlier in their piece the more.
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
    /// Whether the share is smaller where the wait would otherwise be more than about half of that without the pieces: in
    /// short prompts, in which the question is a large part.
    pub is_bounded: bool,
}

/// How many tokens are computed again in the time in which a bounded reading may end: this many for each token that would
/// be read without the pieces.
const AGAIN_FOR_READ: f64 = 0.43;
/// So many fewer for each token that is new: it is computed in any case, and asks two thirds of the layers before, in a
/// small call. Both from the waits in docs/reuse.md, for a wait of two fifths of reading the whole prompt.
const LESS_FOR_NEW: f64 = 3.2;
/// The least share of a bounded reading.
const LEAST_RATIO: f64 = 0.15;

impl Recompute {
    /// The share for pieces of `reused` tokens of a prompt of which so many would be read without them.
    fn share_of(&self, reused: usize, read: usize) -> f64 {
        if !self.is_bounded || reused == 0 {
            return self.ratio;
        }
        let new = read.saturating_sub(reused);
        let most = (AGAIN_FOR_READ * read as f64 - LESS_FOR_NEW * new as f64) / reused as f64;
        most.max(LEAST_RATIO).min(self.ratio)
    }
}

impl Default for Recompute {
    /// The best of the curves in docs/reuse.md: the least distance to reading everything at less than half the time of
    /// reading what does not begin alike.
    fn default() -> Recompute {
        Recompute {
            strategy: Strategy::HeadsAndQuery,
            ratio: 0.35,
            is_bounded: true,
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
    /// The share of the pieces' tokens that is computed again.
    ratio: f64,
    stage: Stage,
    /// Positions to compute, ascending, and how many of them are done.
    todo: Vec<usize>,
    done: usize,
    computed: usize,
    /// Tokens of pieces that were computed again.
    again: Vec<usize>,
    /// The calls that are planned for what is to be computed, of at most so many tokens each.
    planned: VecDeque<Call>,
    planned_most: usize,
    /// The calls that were made.
    made: Vec<PlannedCall>,
    /// Whether tokens that do not follow one another share a call.
    merges: bool,
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
            ratio: recompute.ratio,
            recompute,
            stage: Stage::Compute,
            todo: Vec::new(),
            done: 0,
            computed: 0,
            again: Vec::new(),
            planned: VecDeque::new(),
            planned_most: 0,
            made: Vec::new(),
            merges: true,
        };
        let reused = reading.reused();
        reading.ratio = recompute.share_of(reused, reading.prompt.len() - prefix);
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
            // Without a question there is nothing but the heads.
            Strategy::HeadsAndQuery | Strategy::Heads => {
                let heads = |piece: &Range<usize>| piece.start..piece.start + reading.heads_of(piece);
                let heads = reading.pieces.iter().flat_map(heads).collect();
                reading.set_todo(heads);
            }
            Strategy::Nothing => reading.set_todo(Vec::new()),
        }
        reading
    }

    /// Whether tokens that do not follow one another share a call, which is the rule. For measuring.
    pub fn set_merging(&mut self, merges: bool) {
        self.merges = merges;
    }

    /// Tokens that come from elsewhere.
    pub fn reused(&self) -> usize {
        self.pieces.iter().map(ExactSizeIterator::len).sum()
    }

    /// The tokens from elsewhere that have been computed again, ascending.
    pub fn again(&self) -> &[usize] {
        &self.again
    }

    /// About how many of the tokens from elsewhere are computed again.
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
    pub fn calls(&self, most: usize, costs: &CallCosts) -> Vec<PlannedCall> {
        let call = |purpose, rows| PlannedCall { purpose, rows };
        let all_of = |purpose, rows| {
            let planned = schedule(&vec![TokenKind::New; rows], most, costs, None);
            planned
                .into_iter()
                .map(move |planned| call(purpose, planned.rows))
        };
        let left = self.todo.len() - self.done;
        match self.stage {
            Stage::Compute => all_of(Purpose::Recompute, left).collect(),
            Stage::Probe => {
                let asking = self.prompt.len() - self.asked();
                let heads: usize = self.pieces.iter().map(|piece| self.heads_of(piece)).sum();
                let chosen = self.share(self.reused()).max(heads);
                // Few new tokens are asked along with the question, and computed after it.
                let (before, along) = match left + asking <= costs.probe_tokens() {
                    true => (0, left),
                    false => (left, 0),
                };
                let mut calls: Vec<PlannedCall> = all_of(Purpose::FillIn, before).collect();
                calls.push(call(Purpose::Probe, along + asking));
                calls.extend(all_of(Purpose::Recompute, chosen + along + asking));
                calls
            }
            Stage::Deviation { from } => {
                let planned = schedule(&self.kinds(from), most, costs, Some(self.ratio));
                planned
                    .iter()
                    .map(|planned| call(purpose_of(planned.kind), planned.rows))
                    .collect()
            }
        }
    }

    /// The calls that were made since this was asked last.
    pub fn take_made(&mut self) -> Vec<PlannedCall> {
        std::mem::take(&mut self.made)
    }

    fn note(&mut self, purpose: Purpose, rows: usize) {
        self.made.push(PlannedCall { purpose, rows });
    }

    /// What is known of the tokens from one on.
    fn kinds(&self, from: usize) -> Vec<TokenKind> {
        let mut kinds = vec![TokenKind::NonPrefix; self.prompt.len() - from];
        for token in self.new_tokens(from..self.prompt.len()) {
            kinds[token - from] = TokenKind::New;
        }
        // It is computed in any case.
        if let Some(last) = kinds.last_mut() {
            *last = TokenKind::New;
        }
        kinds
    }

    /// The next call, of at most `most` tokens.
    fn next_call(&mut self, most: usize, costs: &CallCosts) -> Option<Call> {
        if self.planned_most != most || self.planned.is_empty() {
            self.planned_most = most;
            self.planned = match self.stage {
                Stage::Deviation { from } => schedule(&self.kinds(from), most, costs, Some(self.ratio)),
                Stage::Compute | Stage::Probe => schedule(
                    &vec![TokenKind::New; self.todo.len() - self.done],
                    most,
                    costs,
                    None,
                ),
            };
        }
        self.planned.pop_front()
    }

    /// The first tokens of a piece that are computed again whatever is asked.
    fn heads_of(&self, piece: &Range<usize>) -> usize {
        let share = match self.recompute.strategy {
            Strategy::HeadsAndQuery => HEAD_TOKENS,
            _ => self.share(piece.len()),
        };
        share.max(HEAD_TOKENS).min(piece.len())
    }

    fn share(&self, tokens: usize) -> usize {
        (self.ratio * tokens as f64).ceil() as usize
    }

    /// Where the tokens begin that are asked what they attend to: the question, or the end of a long one.
    fn asked(&self) -> usize {
        self.question.max(self.prompt.len().saturating_sub(PROBE_TOKENS))
    }

    /// Tokens of a range that no piece holds.
    fn new_tokens(&self, range: Range<usize>) -> impl Iterator<Item = usize> + use<'_> {
        let mut is_held = held_by(&self.pieces);
        range.filter(move |&token| !is_held(token))
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
        costs: &CallCosts,
    ) -> Result<bool, BackendError> {
        let asking = self.prompt.len() - self.asked();
        if self.stage == Stage::Probe && self.todo.len() - self.done + asking <= costs.probe_tokens() {
            self.probe(backend, kv, slot)?;
            return Ok(false);
        }
        let Some(call) = self.next_call(most, costs) else {
            return Ok(true);
        };
        match self.stage {
            Stage::Probe | Stage::Compute => {
                let mut places: Vec<usize> = self.todo[self.done..self.done + call.rows].to_vec();
                if !self.merges {
                    self.planned.clear();
                    places = places
                        .chunk_by(|a, b| a + 1 == *b)
                        .next()
                        .unwrap_or_default()
                        .to_vec();
                }
                let is_last = self.run(backend, kv, slot, &places)?;
                self.note(
                    match self.stage {
                        Stage::Probe => Purpose::FillIn,
                        _ => Purpose::Recompute,
                    },
                    places.len(),
                );
                self.done += places.len();
                Ok(is_last)
            }
            Stage::Deviation { from } => self.deviation(backend, kv, slot, from, &call),
        }
    }

    /// Computes tokens to the end; true when the prompt's last one is among them.
    fn run(
        &mut self,
        backend: &mut dyn Backend,
        kv: &mut KvLanes<'_>,
        slot: usize,
        places: &[usize],
    ) -> Result<bool, BackendError> {
        let is_last = places.last() == Some(&(self.prompt.len() - 1));
        let tokens: Vec<TokenId> = places.iter().map(|&place| self.prompt[place]).collect();
        backend.run(
            &GraphCall {
                kind: GraphKind::Prefill,
                stretches: &[Stretch::at(slot, places, &tokens)],
                outputs: if is_last { Outputs::Last } else { Outputs::None },
            },
            kv,
        )?;
        self.computed += places.len();
        self.note_again(places.iter().copied());
        Ok(is_last)
    }

    /// Notes which of the tokens that were computed came from elsewhere.
    fn note_again(&mut self, computed: impl Iterator<Item = usize>) {
        let mut is_held = held_by(&self.pieces);
        self.again.extend(computed.filter(|&token| is_held(token)));
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
        self.note(Purpose::Probe, places.len());
        let mut chosen: Vec<usize> = self
            .pieces
            .iter()
            .flat_map(|piece| piece.clone().take(self.heads_of(piece)))
            .collect();
        let rest = |piece: &Range<usize>| {
            let begin = piece.start;
            let behind = piece.clone().skip(self.heads_of(piece));
            behind.map(move |token| (token, ((token - begin + 1) as f32).powf(PLACE_POWER)))
        };
        let mut rest: Vec<(usize, f32)> = self
            .pieces
            .iter()
            .flat_map(rest)
            .map(|(token, weight)| (token, received[token] * weight))
            .collect();
        let more = self.share(self.reused()).saturating_sub(chosen.len());
        // Of equals the first.
        rest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        chosen.extend(rest.into_iter().take(more).map(|(token, _)| token));
        chosen.extend(places);
        chosen.sort_unstable();
        chosen.dedup();
        (self.todo, self.done, self.stage) = (chosen, 0, Stage::Compute);
        Ok(())
    }

    /// Makes a call whose tokens begin at `from`: of those known the ones that deviate most are computed to the end.
    fn deviation(
        &mut self,
        backend: &mut dyn Backend,
        kv: &mut KvLanes<'_>,
        slot: usize,
        from: usize,
        call: &Call,
    ) -> Result<bool, BackendError> {
        let Strategy::Deviation(of) = self.recompute.strategy else {
            unreachable!("the stage of this strategy");
        };
        let range = from..from + call.tokens.len();
        self.stage = Stage::Deviation { from: range.end };
        if call.kind == CallKind::Prefill {
            let places: Vec<usize> = range.collect();
            let is_last = self.run(backend, kv, slot, &places)?;
            self.note(purpose_of(call.kind), places.len());
            return Ok(is_last);
        }
        let mut forced: Vec<usize> = self
            .new_tokens(range.clone())
            .map(|token| token - range.start)
            .collect();
        let is_last = range.end == self.prompt.len();
        if is_last && forced.last() != Some(&(range.len() - 1)) {
            forced.push(range.len() - 1);
        }
        let selection = Selection {
            check: CHECK_LAYER,
            of,
            rows: call.rows,
            forced: &forced,
        };
        let outputs = if is_last { Outputs::Last } else { Outputs::None };
        let stretch = Stretch::new(slot, range.start, &self.prompt[range.clone()]);
        let chosen = backend.recompute(&stretch, &selection, outputs, kv)?;
        self.note(purpose_of(call.kind), chosen.len());
        self.computed += chosen.len();
        self.note_again(chosen.iter().map(|row| range.start + row));
        Ok(is_last)
    }
}

/// Tells of one token after the other, ascending, whether one of these pieces, in order, holds it.
fn held_by(pieces: &[Range<usize>]) -> impl FnMut(usize) -> bool + use<'_> {
    let mut pieces = pieces.iter().peekable();
    move |token| {
        while pieces.next_if(|piece| piece.end <= token).is_some() {}
        pieces.peek().is_some_and(|piece| piece.contains(&token))
    }
}

/// What a call over consecutive tokens is for.
fn purpose_of(kind: CallKind) -> Purpose {
    match kind {
        CallKind::Prefill => Purpose::Read,
        CallKind::Recompute => Purpose::Recompute,
    }
}

/// The calls with the least latency for tokens of these kinds; those from elsewhere are recomputed by a share, where there
/// is one.
fn schedule(kinds: &[TokenKind], most: usize, costs: &CallCosts, ratio: Option<f64>) -> VecDeque<Call> {
    let mut graphs = costs.graphs(most, ratio.unwrap_or(1.0));
    if ratio.is_none() {
        graphs.recompute = None;
    }
    plan(kinds, &graphs, |call| costs.latency(call, CHECK_LAYER))
        .calls
        .into()
}
