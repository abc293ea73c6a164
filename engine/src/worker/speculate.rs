//! Guessing the next tokens of a lane that is alone, so that one call verifies several.
//!
//! A guess changes no answer: the model's own logits decide at each position, and a wrong guess is computed for nothing.
//! It pays while the memory's bandwidth bounds decoding, since the weights are read once for all rows of a call.

use crate::api::{EngineError, KvChoice, LoadOptions, Speculation, TokenId};
use crate::backend::{Backend, GraphCall, GraphKind, Outputs, Stretch};
use crate::load::Loaded;
use crate::sampling::most_likely;
use crate::worker::kept::common;
use reprise_kv::pool::Sequence;
use reprise_kv::{KvLanes, LayerLayout};
use reprise_model::tokenizer::Tokenizer;
use std::path::Path;
use std::time::Duration;

/// Most tokens guessed at once: with the one that is known they fill the decode graph.
pub(super) const MOST_GUESSED: usize = 3;

/// What guesses the tokens that follow. A model's own prediction head would be one more of these.
pub(super) trait Drafter: Send {
    /// Guesses what follows `tokens` (prompt, answer, and the token about to be taken in) into `guess`; returns how
    /// many were guessed.
    fn guess(&mut self, tokens: &[TokenId], guess: &mut [TokenId; MOST_GUESSED]) -> usize;

    /// Bytes held.
    fn bytes(&self) -> usize {
        0
    }
}

/// Looks the last tokens up in the prompt and the answer so far, and guesses what followed them there.
#[derive(Debug, Default)]
pub(super) struct PromptLookup;

impl PromptLookup {
    /// Tokens looked up: the longest first, since longer matches are right more often.
    const NGRAMS: [usize; 2] = [3, 2];
    /// How far back is searched: further costs more than it finds.
    const REACH: usize = 8_192;
}

impl Drafter for PromptLookup {
    fn guess(&mut self, tokens: &[TokenId], guess: &mut [TokenId; MOST_GUESSED]) -> usize {
        for len in PromptLookup::NGRAMS {
            let Some(begin) = tokens.len().checked_sub(len) else {
                continue;
            };
            let (before, pattern) = (&tokens[..tokens.len() - 1], &tokens[begin..]);
            let reach = before.len().saturating_sub(PromptLookup::REACH);
            let found = before[reach..].windows(len).rposition(|window| window == pattern);
            if let Some(at) = found {
                let follows = &tokens[reach + at + len..];
                let count = follows.len().min(MOST_GUESSED);
                guess[..count].copy_from_slice(&follows[..count]);
                return count;
            }
        }
        0
    }
}

/// A smaller model of the same vocabulary, which guesses greedily. It keeps its own KV of what it has seen.
pub(super) struct DraftModel {
    backend: Box<dyn Backend>,
    layouts: Vec<LayerLayout>,
    sequences: [Sequence; 1],
    /// The tokens in its KV.
    tokens: Vec<TokenId>,
    bytes: usize,
}

impl DraftModel {
    /// Loads the draft model for a model with this tokenizer.
    pub fn load(
        path: &Path,
        tokenizer: &Tokenizer,
        options: &LoadOptions,
    ) -> Result<DraftModel, EngineError> {
        let unfit = |reason: String| EngineError::Draft {
            path: path.to_owned(),
            reason,
        };
        let options = LoadOptions {
            kv: KvChoice::Profile,
            speculation: Speculation::Off,
            ..options.clone()
        };
        let loaded = Loaded::load(path, &options)?;
        let (own, other) = (loaded.tokenizer.vocab_size(), tokenizer.vocab_size());
        if own != other {
            return Err(unfit(format!(
                "its vocabulary has {own} tokens, the model's {other}"
            )));
        }
        if let Some(id) = (0..own as TokenId).find(|&id| loaded.tokenizer.piece(id) != tokenizer.piece(id)) {
            return Err(unfit(format!("token {id} is another text in it")));
        }
        let bytes = loaded.backend.bytes();
        Ok(DraftModel {
            sequences: [loaded.pool.sequence()],
            backend: loaded.backend,
            layouts: loaded.layouts,
            tokens: Vec::new(),
            bytes,
        })
    }

    /// Takes tokens in; the last one's logits are there afterwards. False when that cannot be done.
    fn read(&mut self, tokens: &[TokenId]) -> bool {
        let kind = if tokens.len() == 1 {
            GraphKind::Decode
        } else {
            GraphKind::Prefill
        };
        for part in tokens.chunks(self.backend.capacity(kind)) {
            let start = self.tokens.len();
            let end = start + part.len();
            if self.sequences[0].prepare(end, None).is_err() {
                return false;
            }
            let stretches = [Stretch::new(0, start, part)];
            let call = GraphCall {
                kind,
                stretches: &stretches,
                outputs: Outputs::Last,
            };
            let mut kv = KvLanes::new(&self.layouts, &mut self.sequences);
            if self.backend.run(&call, &mut kv).is_err() {
                self.sequences[0].cancel();
                return false;
            }
            self.sequences[0].commit(end);
            self.tokens.extend_from_slice(part);
        }
        true
    }
}

impl Drafter for DraftModel {
    fn guess(&mut self, tokens: &[TokenId], guess: &mut [TokenId; MOST_GUESSED]) -> usize {
        let shared = common(&self.tokens, tokens).min(tokens.len().saturating_sub(1));
        self.tokens.truncate(shared);
        self.sequences[0].truncate(shared);
        // A draft that cannot be computed is no draft; the model itself goes on without.
        if !self.read(&tokens[shared..]) {
            return 0;
        }
        for (count, guess) in guess.iter_mut().enumerate() {
            *guess = most_likely(self.backend.logits());
            if count + 1 < MOST_GUESSED && !self.read(&[*guess]) {
                return count + 1;
            }
        }
        MOST_GUESSED
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Whether guessing pays here: what calls of each size take, and how many guesses were right, as lately measured.
#[derive(Debug)]
pub(super) struct Payoff {
    /// Seconds a call of one row takes, and of several.
    one: Option<f64>,
    several: Option<f64>,
    /// Tokens gained by a call with guesses, the certain one included.
    gain: f64,
    /// Steps until guessing is tried again after it did not pay.
    pause: usize,
    is_forced: bool,
}

impl Payoff {
    const WEIGHT: f64 = 0.1;
    /// Steps without guessing after it turned out slower.
    const PAUSE: usize = 64;

    pub fn new() -> Payoff {
        Payoff {
            one: None,
            several: None,
            gain: 2.0,
            pause: 0,
            is_forced: false,
        }
    }

    /// One that guesses whatever it costs.
    pub fn always() -> Payoff {
        Payoff {
            is_forced: true,
            ..Payoff::new()
        }
    }

    /// Whether to guess at this step.
    pub fn is_worth_it(&mut self) -> bool {
        if self.is_forced {
            return true;
        }
        let (Some(one), Some(several)) = (self.one, self.several) else {
            // A plain step is measured first, then one with guesses.
            return self.one.is_some();
        };
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        if self.gain * one > several {
            return true;
        }
        // Try again later: the text may have become more regular.
        self.pause = Payoff::PAUSE;
        self.gain = 1.5;
        self.several = Some(several.min(one * 1.4));
        false
    }

    /// A call of one row took this long.
    pub fn took_one(&mut self, time: Duration) {
        Payoff::mix(&mut self.one, time);
    }

    /// A call with guesses took this long and gained so many tokens.
    pub fn took_several(&mut self, time: Duration, gained: usize) {
        Payoff::mix(&mut self.several, time);
        self.gain += (gained as f64 - self.gain) * Payoff::WEIGHT;
    }

    fn mix(average: &mut Option<f64>, time: Duration) {
        let seconds = time.as_secs_f64();
        let old = average.unwrap_or(seconds);
        *average = Some(old + (seconds - old) * Payoff::WEIGHT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_the_last_tokens_before_is_guessed() {
        let mut guess = [0; MOST_GUESSED];
        let mut guess_of = |tokens: &[TokenId]| -> Vec<TokenId> {
            let count = PromptLookup.guess(tokens, &mut guess);
            guess[..count].to_vec()
        };
        assert_eq!(guess_of(&[5, 6, 7, 8, 9, 10, 5, 6, 7]), [8, 9, 10]);
        assert_eq!(
            guess_of(&[1, 6, 7, 8, 2, 6, 7]),
            [8, 2, 6],
            "two tokens when three are not found"
        );
        assert!(guess_of(&[1, 2, 3]).is_empty());
        assert!(guess_of(&[]).is_empty());
        // The latest occurrence counts, and a run of one token continues.
        assert_eq!(guess_of(&[1, 2, 3, 1, 2, 4, 9, 1, 2]), [4, 9, 1]);
        assert_eq!(guess_of(&[4, 4, 4, 4]), [4]);
    }

    #[test]
    fn guessing_goes_on_only_while_it_is_faster() {
        let mut payoff = Payoff::new();
        assert!(!payoff.is_worth_it(), "nothing is known yet");
        payoff.took_one(Duration::from_millis(10));
        assert!(payoff.is_worth_it());
        for _ in 0..50 {
            payoff.took_several(Duration::from_millis(15), 1);
        }
        assert!(!payoff.is_worth_it(), "1.0 tokens in 15 ms against 10 ms for one");
        let tried = (0..200).filter(|_| payoff.is_worth_it()).count();
        assert!(tried > 0, "it is tried again later");
        for _ in 0..50 {
            payoff.took_several(Duration::from_millis(15), 3);
        }
        assert!(payoff.is_worth_it());
    }
}
