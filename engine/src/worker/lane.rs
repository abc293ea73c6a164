//! One active request: its prompt, what it has answered, and how its answer ends.

use super::reuse::Arriving;
use crate::api::{Answer, Event, GenerateOptions, Request, Steps, StopReason, TokenId};
use crate::lanes::scheduler::RequestId;
use crate::reuse::explain::Explanation;
use crate::reuse::keeper::ReadingGuard;
use crate::reuse::read::Reading;
use crate::sampling::Sampler;
use crate::stop::StopWatch;
use reprise_kv::pool::Reservation;
use reprise_kv::store::ChunkId;
use reprise_model::tokenizer::{Detokenizer, Tokenizer};
use std::time::{Duration, Instant};

/// See [`is_repeating`].
const LEAST_REPEATED_TOKENS: usize = 96;

/// A request that has come in and is not active yet.
pub(super) struct Pending {
    pub id: RequestId,
    pub request: Request,
    pub sampler: Sampler,
    pub begin: Instant,
}

/// An active request. Its keys and values are in the worker's sequence of the same slot.
pub(super) struct Lane {
    pub id: RequestId,
    pub request: Request,
    /// Pages promised to it.
    pub reservation: Reservation,
    /// The tokens whose keys and values are in memory, by position: prompt, then answer.
    pub tokens: Vec<TokenId>,
    /// The answer's newest token, which the next step takes in.
    pub next: Option<TokenId>,
    /// Reading a prompt of which some comes from elsewhere: what it computes is not among `tokens` before it is done.
    pub reading: Option<Reading>,
    /// Stored chunks that are on their way into its sequence.
    pub arriving: Option<Arriving>,
    /// Those that could not be had: they are not asked for again.
    pub lost: Vec<ChunkId>,
    /// Keeps the disk free while the prompt is being read.
    pub reading_guard: Option<ReadingGuard>,
    /// How many of `tokens` were computed with nothing but exact tokens before them.
    pub exact_tokens: usize,
    pub reused_tokens: usize,
    /// Of the reused ones those from elsewhere, and those that are computed again.
    pub moved_tokens: usize,
    pub recomputed_tokens: usize,
    /// What goes on until the first token.
    pub steps: Steps,
    /// How its prompt is read.
    pub explanation: Option<Explanation>,
    /// When the first token was drawn.
    decode_begin: Option<Instant>,
    sampler: Sampler,
    detokenizer: Detokenizer,
    watch: StopWatch,
    text: String,
    shown: usize,
    answer_tokens: usize,
    /// When it came in.
    begin: Instant,
    /// When it became a lane.
    reading_begin: Instant,
    first_token: Option<Duration>,
}

impl Lane {
    pub fn new(
        pending: Pending,
        tokenizer: &Tokenizer,
        reservation: Reservation,
        reused_tokens: usize,
        window: usize,
    ) -> Lane {
        let Pending {
            id,
            request,
            sampler,
            begin,
        } = pending;
        let most = (request.prompt.len() + request.options.max_tokens).min(window);
        let mut tokens = Vec::with_capacity(most);
        tokens.extend_from_slice(&request.prompt[..reused_tokens]);
        Lane {
            id,
            reservation,
            tokens,
            next: None,
            reading: None,
            arriving: None,
            lost: Vec::new(),
            reading_guard: None,
            exact_tokens: 0,
            reused_tokens,
            moved_tokens: 0,
            recomputed_tokens: 0,
            steps: Steps::default(),
            explanation: None,
            decode_begin: None,
            sampler,
            detokenizer: tokenizer.detokenizer(),
            watch: StopWatch::new(&request.options.stop),
            text: String::new(),
            shown: 0,
            answer_tokens: 0,
            begin,
            reading_begin: Instant::now(),
            first_token: None,
            request,
        }
    }

    fn options(&self) -> &GenerateOptions {
        &self.request.options
    }

    /// Tokens of the answer so far.
    pub fn answer_tokens(&self) -> usize {
        self.answer_tokens
    }

    /// Tokens a second since the first.
    pub fn tokens_per_second(&self) -> f64 {
        let seconds = self
            .decode_begin
            .map_or(0.0, |begin| begin.elapsed().as_secs_f64());
        if seconds > 0.0 {
            self.answer_tokens.saturating_sub(1) as f64 / seconds
        } else {
            0.0
        }
    }

    /// Tokens of the prompt that need no more reading; of those some may be on their way.
    pub fn read_tokens(&self) -> usize {
        let arriving = self.arriving.as_ref().map_or(0, |arriving| arriving.prefix);
        self.tokens.len().max(arriving)
    }

    /// Tells how far reading the prompt has come.
    pub fn report_prefill(&mut self) {
        let total_tokens = self.request.prompt.len();
        // What is computed again counts as not reused, so that the rest is what there is to do.
        let reused_tokens = self.reused_tokens - self.recomputed_tokens;
        let done_tokens = self.reading.as_ref().map_or(self.read_tokens(), |reading| {
            let (done, left) = reading.progress();
            reused_tokens + (total_tokens - reused_tokens) * done / (done + left).max(1)
        });
        (self.request.on_event)(Event::Prefill {
            done_tokens,
            total_tokens,
            reused_tokens,
            reading_time: self.reading_begin.elapsed(),
        });
    }

    /// Draws the next token from the logits of the last one taken in. Returns why the answer ends, if it does.
    pub fn advance(&mut self, logits: &[f32], tokenizer: &Tokenizer, window: usize) -> Option<StopReason> {
        self.next = None;
        if self.answer_tokens >= self.options().max_tokens {
            return Some(StopReason::MaxTokens);
        }
        let dictated = self
            .options()
            .script
            .as_ref()
            .and_then(|script| script.next(self.answer_tokens, logits));
        let token = match dictated {
            None => self.sampler.sample(logits, &self.tokens),
            Some(Some(token)) => token,
            Some(None) => return Some(StopReason::EndOfTurn),
        };
        let first = self.begin.elapsed();
        self.first_token.get_or_insert(first);
        self.decode_begin.get_or_insert_with(Instant::now);
        if tokenizer.is_end_of_generation(token) {
            return Some(StopReason::EndOfTurn);
        }
        self.answer_tokens += 1;
        let piece = self.detokenizer.push(tokenizer, token);
        let found = self.watch.push(piece, &mut self.text).map(str::to_owned);
        self.show();
        if let Some(stop) = found {
            return Some(StopReason::StopString(stop));
        }
        self.next = Some(token);
        if self.answer_tokens >= self.options().max_tokens {
            return Some(StopReason::MaxTokens);
        }
        let prompt_tokens = self.request.prompt.len();
        if self.options().stop_when_repeating && is_repeating(&self.tokens[prompt_tokens..], token) {
            return Some(StopReason::Repeating);
        }
        (self.tokens.len() + 1 >= window).then_some(StopReason::WindowFull)
    }

    fn show(&mut self) {
        if self.shown < self.text.len() {
            (self.request.on_event)(Event::Text(&self.text[self.shown..]));
            self.shown = self.text.len();
        }
    }

    /// Closes the answer.
    pub fn finish(&mut self, stop: StopReason) -> Answer {
        if !matches!(stop, StopReason::StopString(_)) {
            let rest = self.detokenizer.finish();
            if self.watch.push(rest, &mut self.text).is_none() {
                self.watch.finish(&mut self.text);
            }
            self.show();
        }
        let elapsed = self.begin.elapsed();
        let first = self.first_token.unwrap_or(elapsed);
        Answer {
            text: std::mem::take(&mut self.text),
            stop,
            prompt_tokens: self.request.prompt.len(),
            reused_tokens: self.reused_tokens,
            moved_tokens: self.moved_tokens,
            recomputed_tokens: self.recomputed_tokens,
            answer_tokens: self.answer_tokens,
            waiting_time: self.reading_begin - self.begin,
            time_to_first_token: first,
            decode_time: elapsed - first,
            steps: self.steps,
            explanation: self.explanation.take(),
        }
    }
}

/// Whether an answer and its next token end in at least four copies of the same tokens, and at least
/// [`LEAST_REPEATED_TOKENS`] of them: more than lists, tables or verses do.
fn is_repeating(answer: &[TokenId], next: TokenId) -> bool {
    let len = answer.len() + 1;
    let at = |i: usize| answer.get(i).copied().unwrap_or(next);
    (1..=len / 4).any(|period| {
        let repeated = (3 * period).max(LEAST_REPEATED_TOKENS);
        let Some(start) = len.checked_sub(repeated + period) else {
            return false;
        };
        // From the end, where most answers differ at once.
        (start + period..len).rev().all(|i| at(i) == at(i - period))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(tokens: &[TokenId]) -> bool {
        tokens
            .split_last()
            .is_some_and(|(last, rest)| is_repeating(rest, *last))
    }

    #[test]
    fn only_long_exact_loops_count_as_repeating() {
        let unique: Vec<TokenId> = (0..400).collect();
        assert!(!repeats(&unique));
        let looped = |period: usize, copies: usize| {
            let mut tokens: Vec<TokenId> = (1_000..1_050).collect();
            tokens.extend((0..copies).flat_map(|_| 0..period as TokenId));
            tokens
        };
        assert!(repeats(&looped(40, 4)));
        assert!(!repeats(&looped(40, 3)));
        assert!(repeats(&looped(1, 97)));
        assert!(!repeats(&looped(1, 60)));
        assert!(!repeats(&[]));
        let mut broken = looped(40, 4);
        broken[100] = 7_777;
        assert!(!repeats(&broken));
    }
}
