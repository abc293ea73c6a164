//! How the prompt of an answer was read, kept from the moment it was read for a person to look at: where each stretch of it
//! came from, the chunks behind it, where it began to differ from what was known and why, the calls, and the time it took.
//!
//! Only the latest prompts of this run are kept, in memory. Of an older answer its prompt is laid out as it would be now,
//! and the result says so.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reprise_engine::explain::{Explanation, Origin, Purpose, Span};
use reprise_engine::store::{ChunkId, ListOrder, Owner};
use reprise_engine::{Answer, Engine, EngineError, Segment, SegmentKind, Spent, Steps, TokenId};
use reprise_model::tokenizer::Tokenizer;
use serde::Serialize;

use crate::assistant::LaidOut;
use crate::cache::{Cache, CacheError, KeptChunk, name_of};
use crate::chats::{ChatStore, TurnId};
use crate::converse::CHAT_OWNER;
use crate::index::{DOCUMENT_OWNER, DocumentId};

/// Prompts that are remembered: a long one takes some 50 kB.
const MOST_READINGS: usize = 100;
/// Tokens of text shown where a prompt begins to differ.
const SHOWN_TOKENS: usize = 12;

/// How a prompt was read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The prompt.
    pub laid_out: LaidOut,
    /// Where its tokens came from.
    pub explanation: Explanation,
    /// What went on until the first token; none of a prompt that was not read, only explained.
    pub times: Option<Times>,
}

/// The readings of the latest answers.
#[derive(Debug, Default)]
pub struct Readings(Mutex<VecDeque<(TurnId, Arc<Reading>)>>);

impl Readings {
    /// Keeps how the prompt of an answer was read; nothing of one that never was.
    pub(crate) fn note(&self, turn: TurnId, laid_out: LaidOut, answer: &Answer) {
        let Some(explanation) = answer.explanation.clone() else {
            return;
        };
        let reading = Reading {
            laid_out,
            explanation,
            times: Some(Times::of(answer)),
        };
        let mut readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readings.retain(|(noted, _)| *noted != turn);
        readings.push_back((turn, Arc::new(reading)));
        if readings.len() > MOST_READINGS {
            readings.pop_front();
        }
    }

    /// How the prompt of an answer was read, and the prompts that were read before it; none of an older answer.
    pub fn of(&self, turn: TurnId) -> Option<(Arc<Reading>, Vec<Arc<Reading>>)> {
        let readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = readings.iter().position(|(noted, _)| *noted == turn)?;
        let before = readings.iter().take(at).map(|(_, reading)| Arc::clone(reading));
        Some((Arc::clone(&readings[at].1), before.collect()))
    }

    /// All of them, the oldest first.
    pub fn all(&self) -> Vec<Arc<Reading>> {
        let readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readings.iter().map(|(_, reading)| Arc::clone(reading)).collect()
    }
}

/// A prompt and how it was read, for a person to see.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Whether this is how the prompt would be read now, because how it was read is not known any more.
    pub is_now: bool,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those at its beginning that were known as they stand.
    pub prefix_tokens: usize,
    /// Those that came from elsewhere.
    pub moved_tokens: usize,
    /// Those of them that were computed again.
    pub recomputed_tokens: usize,
    /// All of the prompt, in order.
    pub stretches: Vec<Stretch>,
    /// The chunks behind it, in the order in which they are needed.
    pub chunks: Vec<UsedChunk>,
    /// Where it began to differ from what was known.
    pub divergence: Divergence,
    /// The graph calls chosen, in order.
    pub calls: Vec<Call>,
    /// What went on until the first token.
    pub times: Option<Times>,
}

/// A stretch of a prompt of one origin, within one segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Stretch {
    /// The position of its first token.
    pub from: usize,
    /// The position behind its last one.
    pub to: usize,
    /// How it was obtained.
    pub how: How,
    /// Its text, with what the model's template writes.
    pub text: String,
    /// What it is.
    pub part: PromptPart,
    /// What a person knows its owner by.
    pub owner: Option<String>,
    /// The stored chunk it comes from.
    pub chunk: Option<String>,
}

/// How tokens were obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// They were in the pool, from a prompt of this run that began alike.
    Pool,
    /// They were stored, from a prompt that began alike.
    Stored,
    /// They were stored or known from another place, and moved here.
    Moved,
    /// That, and they were computed again here.
    Again,
    /// They were computed.
    New,
}

/// What a part of a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum PromptPart {
    /// Instructions before everything else.
    System,
    /// A skill.
    Skill,
    /// A passage of a document.
    Passage,
    /// What was said, and what the template writes between.
    Turn,
    /// What is asked.
    Question,
}

/// A chunk behind a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct UsedChunk {
    /// Its number.
    pub id: String,
    /// Tokens of the prompt that come from it.
    pub used_tokens: usize,
    /// What people know its owners by.
    pub owners: Vec<String>,
    /// What is known of it; none when it is not stored any more.
    pub kept: Option<KeptChunk>,
}

/// Where a prompt began to differ from what was known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Divergence {
    /// The first token that was not known as it stands.
    pub at: usize,
    /// How the prompt goes on there.
    pub text: String,
    /// Why.
    pub reason: Reason,
}

/// Why a prompt is not known from some token on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Reason {
    /// All of it was known; the last token is always computed.
    Whole,
    /// Nothing that is kept begins like it.
    Nothing,
    /// What was read before ends here.
    Ended,
    /// What was read before went on differently.
    Differs {
        /// How.
        earlier: String,
    },
    /// It was read before, and what was computed had been let go.
    LetGo,
}

/// A graph call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// What it is for.
    pub purpose: CallPurpose,
    /// Tokens it computes.
    pub tokens: usize,
}

/// What a graph call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum CallPurpose {
    /// Tokens one after the other.
    Read,
    /// New tokens between known ones.
    FillIn,
    /// What the question attends to.
    Probe,
    /// New tokens and chosen known ones.
    Recompute,
}

/// What went on until the first token, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Times {
    /// Waiting for a lane.
    pub waiting_ms: f64,
    /// From there to the first token.
    pub reading_ms: f64,
    /// Looking for what is stored.
    pub matching: Step,
    /// Reading chunks from disk.
    pub loading: Step,
    /// Turning keys to where they are needed.
    pub turning: Step,
    /// Computing.
    pub computing: Step,
    /// Storing what earlier requests left.
    pub storing: Step,
}

/// How long one kind of work took, and how much of it ran behind computing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// All of it.
    pub taken_ms: f64,
    /// What nobody waited for.
    pub hidden_ms: f64,
}

impl Times {
    fn of(answer: &Answer) -> Times {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let step = |spent: Spent| Step {
            taken_ms: milliseconds(spent.taken),
            hidden_ms: milliseconds(spent.hidden),
        };
        let Steps {
            matching,
            loading,
            turning,
            computing,
            storing,
        } = answer.steps;
        Times {
            waiting_ms: milliseconds(answer.waiting_time),
            reading_ms: milliseconds(answer.time_to_first_token.saturating_sub(answer.waiting_time)),
            matching: step(matching),
            loading: step(loading),
            turning: step(turning),
            computing: Step {
                taken_ms: milliseconds(computing),
                hidden_ms: 0.0,
            },
            storing: step(storing),
        }
    }
}

/// Shows how a prompt was read; `before` are prompts that were read earlier, and `is_now` tells that it was not read but
/// explained.
///
/// # Errors
/// When the engine has ended, or the store cannot be read.
pub fn inspect(
    engine: &Engine,
    chats: &ChatStore,
    reading: &Reading,
    before: &[Arc<Reading>],
    is_now: bool,
) -> Result<Inspection, CacheError> {
    let Reading {
        laid_out: LaidOut { tokens, segments },
        explanation,
        times,
    } = reading;
    let tokenizer = engine.tokenizer();
    let cache = Cache::of(engine)?;
    let earlier: Vec<&[TokenId]> = before
        .iter()
        .map(|reading| reading.laid_out.tokens.as_slice())
        .collect();
    let last_stored = explanation.spans.iter().rev().find_map(|span| match span.origin {
        Origin::Stored { chunk } if span.tokens.end == explanation.prefix_tokens => Some(chunk),
        _ => None,
    });
    // What of the last chunk the prompt does not have: the chunk went on differently.
    let rest_of_chunk = cache.as_ref().zip(last_stored).and_then(|(cache, chunk)| {
        let record = cache.store().record(chunk).ok()?;
        let used = record
            .tokens
            .iter()
            .zip(tokens.get(record.base as usize..)?)
            .take_while(|(stored, token)| stored == token)
            .count();
        Some(record.tokens[used..].to_vec())
    });
    let reason = reason_of(
        tokens,
        explanation.prefix_tokens,
        &earlier,
        rest_of_chunk.as_deref().unwrap_or_default(),
    );
    let text_of = |tokens: &[TokenId]| beginning(tokenizer, tokens);
    Ok(Inspection {
        is_now,
        prompt_tokens: tokens.len(),
        prefix_tokens: explanation.prefix_tokens,
        moved_tokens: explanation.moved_tokens,
        recomputed_tokens: explanation.recomputed_tokens,
        stretches: stretches_of(tokenizer, tokens, segments, explanation, chats),
        chunks: match &cache {
            Some(cache) => chunks_of(cache, chats, &explanation.spans)?,
            None => Vec::new(),
        },
        divergence: Divergence {
            at: explanation.prefix_tokens,
            text: text_of(&tokens[explanation.prefix_tokens..]),
            reason: match reason {
                Why::Whole => Reason::Whole,
                Why::Nothing => Reason::Nothing,
                Why::Ended => Reason::Ended,
                Why::LetGo => Reason::LetGo,
                Why::Differs(earlier) => Reason::Differs {
                    earlier: text_of(earlier),
                },
            },
        },
        calls: explanation
            .calls
            .iter()
            .map(|call| Call {
                purpose: match call.purpose {
                    Purpose::Read => CallPurpose::Read,
                    Purpose::FillIn => CallPurpose::FillIn,
                    Purpose::Probe => CallPurpose::Probe,
                    Purpose::Recompute => CallPurpose::Recompute,
                },
                tokens: call.rows,
            })
            .collect(),
        times: *times,
    })
}

/// How a prompt would be read now.
///
/// # Errors
/// As [`reprise_engine::worker::Worker::explain`].
pub fn explain(engine: &Engine, laid_out: LaidOut) -> Result<Reading, EngineError> {
    let LaidOut { tokens, segments } = laid_out.clone();
    let explanation = engine.with_worker(move |worker| worker.explain(&tokens, &segments))??;
    Ok(Reading {
        laid_out,
        explanation,
        times: None,
    })
}

/// Why a prompt is not known from a token on.
#[derive(Debug, PartialEq)]
enum Why<'a> {
    Whole,
    Nothing,
    Ended,
    LetGo,
    Differs(&'a [TokenId]),
}

/// `rest_of_chunk` is how the last chunk that was used goes on, where the prompt does not.
fn reason_of<'a>(
    prompt: &[TokenId],
    at: usize,
    earlier: &[&'a [TokenId]],
    rest_of_chunk: &'a [TokenId],
) -> Why<'a> {
    if at + 1 >= prompt.len() {
        return Why::Whole;
    }
    let common = |other: &[TokenId]| prompt.iter().zip(other).take_while(|(a, b)| a == b).count();
    // Of equals the newest.
    let nearest = earlier.iter().max_by_key(|other| common(other));
    match nearest {
        Some(other) if common(other) > at => Why::LetGo,
        Some(other) if common(other) == at && at > 0 && other.len() > at => Why::Differs(&other[at..]),
        _ if at == 0 => Why::Nothing,
        _ if !rest_of_chunk.is_empty() => Why::Differs(rest_of_chunk),
        _ => Why::Ended,
    }
}

/// Cuts a prompt where its origin or its segment changes.
fn stretches_of(
    tokenizer: &Tokenizer,
    tokens: &[TokenId],
    segments: &[Segment],
    explanation: &Explanation,
    chats: &ChatStore,
) -> Vec<Stretch> {
    let mut parts: Vec<(Range<usize>, Option<&Segment>)> = Vec::new();
    let mut end = 0;
    for segment in segments.iter().filter(|segment| segment.tokens > 0) {
        let tokens = end..end + segment.tokens;
        end = tokens.end;
        match parts.last_mut() {
            // What the template writes belongs to the turn around it.
            Some((last, Some(before)))
                if before.owner == segment.owner
                    && before.kind == SegmentKind::Turn
                    && segment.kind == SegmentKind::Turn =>
            {
                last.end = tokens.end;
            }
            _ => parts.push((tokens, Some(segment))),
        }
    }
    if end < tokens.len() {
        parts.push((end..tokens.len(), None));
    }
    let mut names: BTreeMap<&Owner, String> = BTreeMap::new();
    let mut stretches = Vec::new();
    let mut texts = Texts::new(tokenizer);
    let mut parts = parts.into_iter().peekable();
    let mut again = explanation.again.iter().peekable();
    for span in &explanation.spans {
        let mut from = span.tokens.start;
        while from < span.tokens.end {
            while parts.next_if(|(part, _)| part.end <= from).is_some() {}
            let part = parts.peek().map(|(range, segment)| (range.end, *segment));
            let (part_end, segment) = part.unwrap_or((tokens.len(), None));
            while again.next_if(|run| run.end <= from).is_some() {}
            let (is_again, run_end) = match again.peek() {
                Some(run) if run.contains(&from) => (true, run.end),
                Some(run) => (false, run.start),
                None => (false, tokens.len()),
            };
            let to = span.tokens.end.min(part_end).min(run_end);
            let owner = segment.and_then(|segment| segment.owner.as_ref());
            let (how, chunk) = match &span.origin {
                Origin::Pool => (How::Pool, None),
                Origin::Stored { chunk } => (How::Stored, Some(chunk)),
                Origin::Moved { chunk, .. } if is_again => (How::Again, Some(chunk)),
                Origin::Moved { chunk, .. } => (How::Moved, Some(chunk)),
                Origin::New => (How::New, None),
            };
            stretches.push(Stretch {
                from,
                to,
                how,
                text: texts.next(&tokens[from..to]),
                part: match segment.map_or(SegmentKind::Turn, |segment| segment.kind) {
                    SegmentKind::System => PromptPart::System,
                    SegmentKind::Skill => PromptPart::Skill,
                    SegmentKind::Passage => PromptPart::Passage,
                    SegmentKind::Turn => PromptPart::Turn,
                    SegmentKind::Question => PromptPart::Question,
                },
                owner: owner.filter(|owner| is_shown(segment, owner)).map(|owner| {
                    let name = names.entry(owner).or_insert_with(|| short_name_of(owner, chats));
                    name.clone()
                }),
                chunk: chunk.map(ChunkId::to_string),
            });
            from = to;
        }
    }
    stretches
}

/// Whether it says anything whose a stretch is: what the template writes before a document or skill is kept with that, and is
/// no part of it.
fn is_shown(segment: Option<&Segment>, owner: &Owner) -> bool {
    segment.is_none_or(|segment| segment.kind != SegmentKind::Turn) || owner.kind() == CHAT_OWNER
}

/// What a person knows an owner by, of a document its file's name.
fn short_name_of(owner: &Owner, chats: &ChatStore) -> String {
    let name = name_of(owner, chats);
    match DocumentId::of_owner(&name) {
        Some((file, _)) if owner.kind() == DOCUMENT_OWNER => file.to_owned(),
        _ => name,
    }
}

/// The texts of stretches, one after the other: a character whose tokens are in two of them stands in the second.
struct Texts<'a> {
    tokenizer: &'a Tokenizer,
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl<'a> Texts<'a> {
    fn new(tokenizer: &'a Tokenizer) -> Texts<'a> {
        Texts {
            tokenizer,
            begun: Vec::new(),
        }
    }

    fn next(&mut self, tokens: &[TokenId]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        for &token in tokens {
            match self.tokenizer.token_text(token) {
                // The marks between turns have no text, only a name.
                Some(name) if self.tokenizer.is_control(token) => bytes.extend_from_slice(name.as_bytes()),
                _ => bytes.extend_from_slice(self.tokenizer.piece(token)),
            }
        }
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            self.begun = bytes.split_off(error.valid_up_to());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// How a text begins.
fn beginning(tokenizer: &Tokenizer, tokens: &[TokenId]) -> String {
    Texts::new(tokenizer).next(&tokens[..tokens.len().min(SHOWN_TOKENS)])
}

/// The chunks behind a prompt.
fn chunks_of(cache: &Cache<'_>, chats: &ChatStore, spans: &[Span]) -> Result<Vec<UsedChunk>, CacheError> {
    let mut used: Vec<(ChunkId, usize)> = Vec::new();
    for span in spans {
        if let Origin::Stored { chunk } | Origin::Moved { chunk, .. } = span.origin {
            match used.iter_mut().find(|(id, _)| *id == chunk) {
                Some((_, tokens)) => *tokens += span.tokens.len(),
                None => used.push((chunk, span.tokens.len())),
            }
        }
    }
    if used.is_empty() {
        return Ok(Vec::new());
    }
    let list = cache.store().list(None, ListOrder::Score)?;
    let kept = |id: ChunkId| {
        let summary = list.iter().find(|summary| summary.id == id)?;
        Some((cache.store().record(id).ok()?, summary))
    };
    Ok(used
        .into_iter()
        .map(|(id, used_tokens)| {
            let kept = kept(id);
            UsedChunk {
                id: id.to_string(),
                used_tokens,
                owners: kept.as_ref().map_or_else(Vec::new, |(record, _)| {
                    record
                        .owners
                        .iter()
                        .map(|owner| short_name_of(owner, chats))
                        .collect()
                }),
                kept: kept.map(|(record, summary)| cache.shown(&record, summary)),
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_differs_for_a_reason() {
        let prompt = [1, 2, 3, 4, 5, 6];
        let before: [&[TokenId]; 2] = [&[1, 2, 9, 9], &[1, 2, 3]];
        assert_eq!(reason_of(&prompt, 5, &before, &[]), Why::Whole);
        assert_eq!(reason_of(&prompt, 0, &[], &[]), Why::Nothing);
        assert_eq!(reason_of(&prompt, 0, &before, &[]), Why::LetGo);
        assert_eq!(reason_of(&prompt, 2, &before[..1], &[]), Why::Differs(&[9, 9]));
        assert_eq!(
            reason_of(&prompt, 3, &before, &[]),
            Why::Ended,
            "the earlier prompt is all of the beginning"
        );
        assert_eq!(
            reason_of(&prompt, 4, &before, &[]),
            Why::Ended,
            "its answer is known as well"
        );
        assert_eq!(reason_of(&prompt, 4, &[], &[7]), Why::Differs(&[7]));
    }

    #[test]
    fn only_the_latest_readings_are_kept_and_those_before_one_are_told() {
        let readings = Readings::default();
        let answer = |tokens| Answer {
            text: String::new(),
            stop: reprise_engine::StopReason::EndOfTurn,
            prompt_tokens: tokens,
            reused_tokens: 0,
            moved_tokens: 0,
            recomputed_tokens: 0,
            answer_tokens: 1,
            waiting_time: Duration::ZERO,
            time_to_first_token: Duration::from_millis(5),
            decode_time: Duration::ZERO,
            steps: Steps::default(),
            explanation: Some(Explanation {
                spans: Vec::new(),
                prefix_tokens: 0,
                exact_tokens: 0,
                moved_tokens: 0,
                recomputed_tokens: 0,
                again: Vec::new(),
                calls: Vec::new(),
            }),
        };
        for turn in 0..MOST_READINGS as i64 + 2 {
            readings.note(TurnId(turn), LaidOut::default(), &answer(3));
        }
        assert!(readings.of(TurnId(1)).is_none() && readings.of(TurnId(2)).is_some());
        assert_eq!(readings.all().len(), MOST_READINGS);
        assert_eq!(readings.of(TurnId(5)).unwrap().1.len(), 3);
        readings.note(TurnId(5), LaidOut::default(), &answer(3));
        assert_eq!(readings.all().len(), MOST_READINGS, "an answer is read once");
    }
}
