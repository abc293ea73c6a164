//! What of earlier prompts a lane begins with, and what it leaves to later ones.

use super::lane::Lane;
use super::{Component, Worker};
use crate::api::{EngineError, Request, Reuse, SegmentKind, TokenId, Workings};
use crate::backend::BackendError;
use crate::reuse::cut::{Segment, cut};
use crate::reuse::explain::{Explanation, PlannedCall, Purpose};
use crate::reuse::keeper::{Fetch, Found, Leaving, Use, Wanted};
use crate::reuse::read::Reading;
use reprise_kv::pool::Sequence;
use reprise_kv::store::{ChunkId, Erased, Owner};
use reprise_kv::{Arrivals, KvLanes};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Where the question begins; the end of the prompt where there is none.
fn question_of(segments: &[Segment], prompt_tokens: usize) -> usize {
    let mut start = 0;
    for segment in segments {
        if segment.kind == SegmentKind::Question {
            return start;
        }
        start += segment.tokens;
    }
    prompt_tokens
}

/// What is looked for of a prompt, where anything is.
fn wanted<'a>(
    reuse: Reuse,
    prompt: &'a [TokenId],
    segments: &'a [Segment],
    known: usize,
) -> Option<Wanted<'a>> {
    (reuse != Reuse::Nothing).then(|| Wanted {
        prompt,
        segments,
        known,
        question: question_of(segments, prompt.len()),
        anywhere: matches!(reuse, Reuse::Anywhere(_)),
    })
}

/// How a prompt is read for whose `pieces` chunks from elsewhere are there; none when nothing is to be moved.
fn reading_of(
    reuse: Reuse,
    prompt: &[TokenId],
    segments: &[Segment],
    prefix: usize,
    pieces: Vec<Range<usize>>,
) -> Option<Reading> {
    let Reuse::Anywhere(recompute) = reuse else {
        return None;
    };
    let question = question_of(segments, prompt.len());
    let reading = Reading::new(prompt.to_vec(), prefix, pieces, question, recompute);
    (reading.reused() > 0).then_some(reading)
}

/// Whether segments are those of a prompt of so many tokens; none are.
pub(super) fn check_segments(segments: &[Segment], prompt_tokens: usize) -> Result<(), EngineError> {
    let segment_tokens = segments.iter().map(|segment| segment.tokens).sum();
    if segments.is_empty() || segment_tokens == prompt_tokens {
        return Ok(());
    }
    Err(EngineError::Segments {
        segments: segment_tokens,
        prompt: prompt_tokens,
    })
}

/// Stored chunks on their way into a lane's sequence.
pub(super) struct Arriving {
    fetch: Fetch,
    /// Where the prompt's beginning ends that needs no computing.
    pub prefix: usize,
    /// How many of its tokens are exact when it is there.
    exact_tokens: usize,
    /// For how long the calls so far were held up.
    noted: Duration,
}

/// What a lane's call waits for.
pub(super) fn arrivals(arriving: &mut Option<Arriving>) -> Option<&mut dyn Arrivals> {
    match arriving {
        Some(arriving) => Some(&mut arriving.fetch),
        None => None,
    }
}

impl Lane {
    /// Notes how long a call that began then computed, and what has arrived in the lane's sequence.
    pub(super) fn computed(&mut self, begin: Instant, sequence: &mut Sequence) {
        let mut taken = begin.elapsed();
        if let Some(arriving) = &mut self.arriving {
            let held_up = arriving.fetch.held_up();
            taken = taken.saturating_sub(held_up - arriving.noted);
            arriving.noted = held_up;
        }
        self.steps.computing += taken;
        if let Some(arriving) = self.arriving.take_if(|arriving| arriving.fetch.is_done()) {
            arriving.fetch.add_to(&mut self.steps);
            self.exact_tokens = arriving.exact_tokens;
            let known = self.tokens.len();
            if arriving.prefix > known {
                sequence.commit(arriving.prefix);
                self.tokens
                    .extend_from_slice(&self.request.prompt[known..arriving.prefix]);
            }
        }
    }
}

impl Worker {
    /// Changes what of earlier prompts is used again, from the next request on.
    pub fn set_reuse(&mut self, reuse: Reuse) {
        self.reuse = reuse;
    }

    /// What is kept beyond the pool, where something is.
    pub fn keeper(&self) -> Option<&crate::reuse::keeper::Keeper> {
        self.keeper.as_ref()
    }

    /// Erases everything that is kept for an owner. Requests that run are not touched: end them before.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn erase(&mut self, owner: &Owner) -> Result<Erased, EngineError> {
        self.kept.erase(owner);
        match &self.keeper {
            Some(keeper) => Ok(keeper.erase(owner)?),
            None => Ok(Erased::default()),
        }
    }

    /// How a prompt would be read now, without reading it.
    ///
    /// # Errors
    /// When the prompt is empty or the segments are not its own.
    pub fn explain(&mut self, prompt: &[TokenId], segments: &[Segment]) -> Result<Explanation, EngineError> {
        if prompt.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        check_segments(segments, prompt.len())?;
        let known = match self.reuse {
            Reuse::Nothing => 0,
            _ => self.shared_with(prompt).min(prompt.len() - 1),
        };
        let wanted = wanted(self.reuse, prompt, segments, known);
        let found = self.keeper.as_ref().zip(wanted);
        let found = found.map_or_else(Found::default, |(keeper, wanted)| keeper.find(&wanted));
        let prefix = known.max(found.prefix_tokens());
        let pieces = found.pieces.iter().filter(|part| part.at >= prefix);
        let reading = reading_of(
            self.reuse,
            prompt,
            segments,
            prefix,
            pieces.map(Use::tokens).collect(),
        );
        let calls = match &reading {
            Some(reading) => reading.calls(self.most_call_tokens(), &self.costs),
            None => self.calls_of(prompt.len() - prefix),
        };
        Ok(Explanation::new(
            prompt.len(),
            known,
            &found,
            reading.as_ref(),
            calls,
        ))
    }

    /// The calls that read so many tokens one after the other.
    fn calls_of(&self, mut tokens: usize) -> Vec<PlannedCall> {
        let mut calls = Vec::new();
        while tokens > 0 {
            let rows = self.call_rows(tokens);
            calls.push(PlannedCall {
                purpose: Purpose::Read,
                rows,
            });
            tokens -= rows;
        }
        calls
    }

    /// Sends for what is stored of a lane's prompt: chunks of its beginning, and pieces from elsewhere. They arrive while
    /// the first calls compute.
    pub(super) fn bring(&mut self, slot: usize) {
        let known = self.sequences[slot].len();
        let brought = self.send_for(slot, known).unwrap_or_default();
        let Some(lane) = self.lanes[slot].as_mut() else {
            return;
        };
        let (prompt_tokens, reading) = (lane.request.prompt.len(), lane.reading.as_ref());
        // The calls are added as they are made.
        let explanation = Explanation::new(prompt_tokens, known, &brought, reading, Vec::new());
        lane.explanation = Some(explanation);
        if !self.workings.overlaps {
            self.wait_for_chunks(slot);
        }
    }

    /// See [`Worker::bring`]; gives what was sent for.
    fn send_for(&mut self, slot: usize, known: usize) -> Option<Found> {
        let (keeper, lane) = (self.keeper.as_ref()?, self.lanes[slot].as_mut()?);
        let sequence = &mut self.sequences[slot];
        let Request { prompt, options, .. } = &lane.request;
        let wanted = wanted(self.reuse, prompt, &options.segments, known)?;
        let begin = Instant::now();
        let mut found = keeper.find(&wanted);
        lane.steps.matching.taken += begin.elapsed();
        found.leave_out(&lane.lost);

        // As much as there is room for: of the beginning each chunk that fits, of the rest all or nothing.
        let (mut sent, mut prefix) = (Found::default(), known);
        for part in &found.prefix {
            let end = part.tokens().end;
            if sequence.prepare(end, Some(&mut lane.reservation)).is_err() {
                break;
            }
            sent.prefix.push(part.from(prefix));
            prefix = end;
        }
        let pieces = found.pieces.into_iter().filter(|part| part.at >= prefix);
        let pieces: Vec<Use> = pieces.collect();
        lane.reading = None;
        if !pieces.is_empty()
            && sequence
                .prepare(prompt.len(), Some(&mut lane.reservation))
                .is_ok()
        {
            let ranges = pieces.iter().map(Use::tokens).collect();
            lane.reading = reading_of(self.reuse, prompt, &options.segments, prefix, ranges);
        }
        if let Some(reading) = &mut lane.reading {
            reading.set_merging(self.workings.merges);
            sent.pieces = pieces;
        }
        let (moved, recomputed) = match &lane.reading {
            Some(reading) => (reading.reused(), reading.recomputed()),
            None => (0, 0),
        };
        (lane.moved_tokens, lane.recomputed_tokens) = (moved, recomputed);
        lane.reused_tokens = prefix + moved;
        let parts: Vec<Use> = sent.prefix.iter().chain(&sent.pieces).cloned().collect();
        if parts.is_empty() {
            return Some(sent);
        }
        let used: Vec<ChunkId> = parts.iter().map(|part| part.chunk).collect();
        keeper.used(&used);
        let exact_tokens = match lane.exact_tokens == known {
            true => found.exact_tokens.min(prefix).max(known),
            false => lane.exact_tokens,
        };
        lane.arriving = Some(Arriving {
            fetch: keeper.fetch(parts, slot),
            prefix,
            exact_tokens,
            noted: Duration::ZERO,
        });
        let id = lane.id;
        self.scheduler.prefilled(id, prefix - known);
        Some(sent)
    }

    /// Waits until everything sent for is there, so that nothing of it is hidden behind computing.
    fn wait_for_chunks(&mut self, slot: usize) {
        let Some(arriving) = self.lanes[slot].as_mut().and_then(|lane| lane.arriving.as_mut()) else {
            return;
        };
        let last = self.layouts.len() - 1;
        let arrived = arriving.fetch.arrive(last, &self.layouts, &mut self.sequences);
        arriving.noted = arriving.fetch.held_up();
        if let Err(lost) = arrived {
            self.fail_reading(slot, EngineError::Backend(lost.into()));
        }
    }

    /// Changes how prompts that are partly known are read, from the next request on. For measuring.
    pub fn set_workings(&mut self, workings: Workings) {
        self.workings = workings;
    }

    /// Ends a lane whose prompt cannot be read; but one that waited for a chunk that cannot be had goes on without it, in
    /// the pages it has.
    pub(super) fn fail_reading(&mut self, slot: usize, error: EngineError) {
        let lane = self.lanes[slot].as_mut();
        if let (EngineError::Backend(BackendError::Lost(lost)), Some(lane)) = (&error, lane)
            && let Some(arriving) = lane.arriving.take()
        {
            tracing::warn!(%lost, "a stored chunk cannot be used; its tokens are computed");
            arriving.fetch.add_to(&mut lane.steps);
            lane.lost.extend(arriving.fetch.lost());
            lane.reading = None;
            let (id, done) = (lane.id, lane.tokens.len());
            self.scheduler.set_prefilled(id, done);
            self.bring(slot);
        } else {
            self.fail(slot, error);
        }
    }

    /// Makes one call on a prompt of which some comes from elsewhere; true when all of it is there.
    pub(super) fn read_on(&mut self, slot: usize, most_tokens: usize) -> Result<bool, EngineError> {
        let Some(lane) = self.lanes[slot].as_mut() else {
            return Ok(false);
        };
        self.leases
            .acquire(&mut *self.backend, Component::Head, lane.id)?;
        let Some(reading) = lane.reading.as_mut() else {
            return Ok(false);
        };
        let mut kv = KvLanes::new(&self.layouts, &mut self.sequences);
        kv.arrivals = arrivals(&mut lane.arriving);
        let (before, begin) = (reading.progress().0, Instant::now());
        let is_done = reading.step(&mut *self.backend, &mut kv, slot, most_tokens, &self.costs);
        let computed = reading.progress().0 - before;
        if let Some(explanation) = &mut lane.explanation {
            explanation.calls.extend(reading.take_made());
        }
        lane.computed(begin, &mut self.sequences[slot]);
        let is_done = is_done?;
        if computed > 0 {
            self.prefill_rate = Some(computed as f64 / begin.elapsed().as_secs_f64());
        }
        if is_done {
            self.sequences[slot].commit(lane.request.prompt.len());
            let done = lane.tokens.len();
            lane.tokens.extend_from_slice(&lane.request.prompt[done..]);
            if let Some(reading) = lane.reading.take() {
                lane.recomputed_tokens = reading.again().len();
                if let Some(explanation) = &mut lane.explanation {
                    explanation.note_again(reading.again());
                }
            }
        }
        Ok(is_done)
    }

    /// Hands what an ended request computed to the keeper; a share of what it had from elsewhere was computed again.
    pub(super) fn keep_chunks(
        &self,
        request: &Request,
        tokens: &[TokenId],
        sequence: &Sequence,
        exact_tokens: usize,
        recomputed_share: f32,
    ) {
        let (Some(keeper), Some(last)) = (&self.keeper, request.options.segments.last()) else {
            return;
        };
        if self.reuse == Reuse::Nothing {
            return;
        }
        let mut segments = request.options.segments.clone();
        segments.push(Segment {
            kind: SegmentKind::Turn,
            owner: last.owner.clone(),
            tokens: tokens.len().saturating_sub(request.prompt.len()),
        });
        keeper.keep(Leaving {
            tokens: tokens.to_vec(),
            cuts: cut(&segments),
            sequence: sequence.fork(sequence.len()),
            exact_tokens,
            ratio: recomputed_share,
        });
    }
}
