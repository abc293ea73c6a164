//! What of earlier prompts a lane begins with, and what it leaves to later ones.

use super::lane::Lane;
use super::{Component, Worker};
use crate::api::{EngineError, Request, Reuse, SegmentKind, TokenId};
use crate::reuse::cut::{Segment, cut};
use crate::reuse::explain::Explanation;
use crate::reuse::keeper::{Found, Leaving, Use, Wanted};
use crate::reuse::read::{Reading, Recompute};
use reprise_kernels::isa::Isa;
use reprise_kv::KvLanes;
use reprise_kv::pool::Sequence;
use reprise_kv::store::{Erased, Owner};
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

/// Does something, and adds the time it takes.
fn timed<T>(spent: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    *spent += begin.elapsed();
    done
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
        let recompute = match self.reuse {
            Reuse::Anywhere(recompute) => recompute,
            Reuse::Nothing | Reuse::Prefix => Recompute::default(),
        };
        let known = match self.reuse {
            Reuse::Nothing => 0,
            _ => self.shared_with(prompt).min(prompt.len() - 1),
        };
        let question = question_of(segments, prompt.len());
        let wanted = wanted(self.reuse, prompt, segments, known);
        let found = self.keeper.as_ref().zip(wanted);
        let found = found.map_or_else(Found::default, |(keeper, wanted)| keeper.find(&wanted));
        let prefix = known.max(found.prefix_tokens());
        let pieces = found.pieces.iter().filter(|part| part.at >= prefix);
        let ranges = pieces.map(Use::tokens).collect();
        let reading = Reading::new(prompt.to_vec(), prefix, ranges, question, recompute);
        Ok(Explanation::new(
            prompt.len(),
            known,
            &found,
            &reading,
            self.call_tokens,
        ))
    }

    /// Brings what is stored of a new lane's prompt into its sequence: what begins alike is committed, and pieces from
    /// elsewhere are placed, for [`Worker::read_on`] to go on with.
    pub(super) fn bring(&mut self, slot: usize) {
        let known = self.sequences[slot].len();
        let brought = self.bring_stored(slot, known).unwrap_or_default();
        let Some(lane) = self.lanes[slot].as_mut() else {
            return;
        };
        let prompt_tokens = lane.request.prompt.len();
        let plain;
        let reading = match &lane.reading {
            Some(reading) => reading,
            None => {
                let prefix = known.max(brought.prefix_tokens());
                let (prompt, recompute) = (lane.request.prompt.clone(), Recompute::default());
                plain = Reading::new(prompt, prefix, Vec::new(), prompt_tokens, recompute);
                &plain
            }
        };
        let explanation = Explanation::new(prompt_tokens, known, &brought, reading, self.call_tokens);
        lane.explanation = Some(explanation);
    }

    /// See [`Worker::bring`]; gives what was brought.
    fn bring_stored(&mut self, slot: usize, known: usize) -> Option<Found> {
        let (keeper, lane) = (self.keeper.as_ref()?, self.lanes[slot].as_mut()?);
        let sequence = &mut self.sequences[slot];
        let Request { prompt, options, .. } = &lane.request;
        let wanted = wanted(self.reuse, prompt, &options.segments, known)?;
        let question = wanted.question;
        let steps = &mut lane.steps;
        let found = timed(&mut steps.matching.taken, || keeper.find(&wanted));
        let (isa, mut brought) = (Isa::best(), Found::default());
        let is_prepared = |sequence: &mut Sequence, lane: &mut Lane, end| {
            sequence.prepare(end, Some(&mut lane.reservation)).is_ok()
        };

        // Chunks of the beginning, as long as they can be had.
        let mut exact_tokens = lane.exact_tokens;
        for part in &found.prefix {
            let mut part = part.clone();
            let skipped = sequence.len() - part.at;
            (part.at, part.of.start) = (part.at + skipped, part.of.start + skipped);
            let end = part.tokens().end;
            if !is_prepared(sequence, lane, end) {
                break;
            }
            let loaded = timed(&mut lane.steps.loading.taken, || keeper.load(&part));
            let Some(chunk) = loaded else { break };
            timed(&mut lane.steps.turning.taken, || {
                chunk.place(isa, &self.layouts, sequence);
            });
            if exact_tokens == sequence.len() {
                exact_tokens = end.min(found.exact_tokens).max(exact_tokens);
            }
            sequence.commit(end);
            brought.prefix.push(part);
        }
        sequence.cancel();
        let prefix = sequence.len();
        lane.exact_tokens = exact_tokens;
        lane.tokens.extend_from_slice(&lane.request.prompt[known..prefix]);
        lane.reused_tokens = prefix;

        // Pieces, as long as all of the prompt has room.
        let pieces: Vec<_> = found.pieces.iter().filter(|part| part.at >= prefix).collect();
        let end = lane.request.prompt.len();
        if let Reuse::Anywhere(recompute) = self.reuse
            && !pieces.is_empty()
            && is_prepared(sequence, lane, end)
        {
            for part in pieces {
                let loaded = timed(&mut lane.steps.loading.taken, || keeper.load(part));
                if let Some(chunk) = loaded {
                    timed(&mut lane.steps.turning.taken, || {
                        chunk.place(isa, &self.layouts, sequence);
                    });
                    brought.pieces.push(part.clone());
                }
            }
            let ranges: Vec<Range<usize>> = brought.pieces.iter().map(Use::tokens).collect();
            let reading = Reading::new(lane.request.prompt.clone(), prefix, ranges, question, recompute);
            lane.moved_tokens = reading.reused();
            lane.recomputed_tokens = reading.recomputed();
            lane.reused_tokens += lane.moved_tokens;
            if lane.moved_tokens > 0 {
                lane.reading = Some(reading);
            } else {
                sequence.cancel();
            }
        }
        let used = brought.prefix.iter().chain(&brought.pieces);
        keeper.used(&used.map(|part| part.chunk).collect::<Vec<_>>());
        let id = lane.id;
        if prefix > known {
            self.scheduler.prefilled(id, prefix - known);
        }
        Some(brought)
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
        let mut kv = KvLanes {
            layouts: &self.layouts,
            sequences: &mut self.sequences,
        };
        let (before, begin) = (reading.progress().0, Instant::now());
        let is_done = reading.step(&mut *self.backend, &mut kv, slot, most_tokens)?;
        let computed = reading.progress().0 - before;
        lane.steps.computing += begin.elapsed();
        if computed > 0 {
            self.prefill_rate = Some(computed as f64 / begin.elapsed().as_secs_f64());
        }
        if is_done {
            self.sequences[slot].commit(lane.request.prompt.len());
            let done = lane.tokens.len();
            lane.tokens.extend_from_slice(&lane.request.prompt[done..]);
            lane.reading = None;
        }
        Ok(is_done)
    }

    /// Hands what an ended request computed to the keeper.
    pub(super) fn keep_chunks(
        &self,
        request: &Request,
        tokens: &[TokenId],
        sequence: &Sequence,
        exact_tokens: usize,
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
            ratio: match self.reuse {
                Reuse::Anywhere(recompute) => recompute.ratio as f32,
                Reuse::Nothing | Reuse::Prefix => 1.0,
            },
        });
    }
}
