//! A trial of KV formats: the test texts run once in half precision and once in each candidate, side by side, and the
//! predictions are compared token by token.

use super::quality::Quality;
use super::texts::{TEST, WINDOW_TOKENS};
use super::{MOST_KL, MOST_RISE};
use crate::api::{EngineError, TokenId};
use crate::backend::{Backend, GraphCall, GraphKind, Outputs, Stretch};
use reprise_kv::pool::Sequence;
use reprise_kv::{KvFormat, KvLanes, KvProfile, LayerLayout, LayerShape, PAGE_TOKENS};
use reprise_model::tokenizer::Tokenizer;

/// Tokens of a call: each has logits over the whole vocabulary, and a call is what someone else may have to wait for.
const CALL_TOKENS: usize = 32;
/// A candidate further off than this after [`LEAST_TOKENS`] tokens is out of the question.
const HOPELESS_KL: f64 = 0.25;
const LEAST_TOKENS: usize = 512;

/// A run of the texts under one profile.
struct Run {
    profile: KvProfile,
    layouts: Vec<LayerLayout>,
    sequences: [Sequence; 1],
}

impl Run {
    fn new(shapes: &[LayerShape], profile: KvProfile) -> Result<Run, EngineError> {
        let layouts = profile.layouts(shapes)?;
        let pool = LayerLayout::pool(&layouts, WINDOW_TOKENS.div_ceil(PAGE_TOKENS))?;
        Ok(Run {
            profile,
            layouts,
            sequences: [pool.sequence()],
        })
    }

    fn call(
        &mut self,
        backend: &mut dyn Backend,
        tokens: &[TokenId],
        start: usize,
    ) -> Result<(), EngineError> {
        backend.set_profile(&self.profile)?;
        let end = start + tokens.len();
        self.sequences[0].truncate(start);
        self.sequences[0].prepare(end, None)?;
        let stretches = [Stretch::new(0, start, tokens)];
        let call = GraphCall {
            kind: GraphKind::Prefill,
            stretches: &stretches,
            outputs: Outputs::All,
        };
        backend.run(&call, &mut KvLanes::new(&self.layouts, &mut self.sequences))?;
        self.sequences[0].commit(end);
        Ok(())
    }
}

/// What a candidate came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What it was called.
    pub name: String,
    /// How it stores keys and values.
    pub profile: KvProfile,
    /// Bytes of keys and values of a token.
    pub token_bytes: usize,
    /// By text: prose, code, chat.
    pub texts: Vec<(&'static str, Quality)>,
    /// Whether it was given up before the end, being far off.
    pub is_hopeless: bool,
}

impl Verdict {
    /// Over all texts.
    pub fn total(&self) -> Quality {
        let mut total = Quality::default();
        for (_, quality) in &self.texts {
            total.merge(quality);
        }
        total
    }

    /// Whether it serves: the divergence is below [`MOST_KL`], the rise of the perplexity and its standard error
    /// together below [`MOST_RISE`].
    pub fn is_within_bounds(&self) -> bool {
        let total = self.total();
        !self.is_hopeless
            && total.mean_kl() < MOST_KL
            && total.perplexity_rise() + total.rise_error() < MOST_RISE
    }
}

/// See the module.
pub struct Trial {
    texts: Vec<Vec<TokenId>>,
    reference: Run,
    /// The reference's logits of the call in progress.
    logits: Vec<f32>,
    candidates: Vec<(Run, Verdict)>,
    text: usize,
    start: usize,
    /// The next candidate to run the call; the reference runs before the first.
    next: Option<usize>,
}

impl Trial {
    /// A trial of `candidates` on a model with layers of these shapes. With `may_give_up`, candidates that are far off
    /// do not run to the end.
    ///
    /// # Errors
    /// When a candidate does not fit the model or memory cannot be had.
    pub fn new(
        shapes: &[LayerShape],
        tokenizer: &Tokenizer,
        candidates: &[(String, KvProfile)],
    ) -> Result<Trial, EngineError> {
        let candidates = candidates.iter().map(|(name, profile)| {
            let run = Run::new(shapes, profile.clone())?;
            let verdict = Verdict {
                name: name.clone(),
                profile: profile.clone(),
                token_bytes: LayerLayout::token_bytes_of(&run.layouts),
                texts: TEST.iter().map(|text| (text.kind, Quality::default())).collect(),
                is_hopeless: false,
            };
            Ok((run, verdict))
        });
        Ok(Trial {
            texts: TEST.iter().map(|text| text.tokens(tokenizer)).collect(),
            reference: Run::new(shapes, KvProfile::uniform(shapes, KvFormat::F16, KvFormat::F16))?,
            logits: Vec::new(),
            candidates: candidates.collect::<Result<_, EngineError>>()?,
            text: 0,
            start: 0,
            next: None,
        })
    }

    /// Share of the work that is done.
    pub fn progress(&self) -> f64 {
        let all: usize = self.texts.iter().map(Vec::len).sum();
        let done: usize = self.texts.iter().take(self.text).map(Vec::len).sum::<usize>() + self.start;
        done as f64 / all.max(1) as f64
    }

    /// Makes one graph call; true when the trial is over. Leaves the backend with some candidate's profile. With
    /// `may_give_up`, a candidate that is far off does not run to the end.
    ///
    /// # Errors
    /// When the call fails.
    pub fn step(&mut self, backend: &mut dyn Backend, may_give_up: bool) -> Result<bool, EngineError> {
        let Some(text) = self.texts.get(self.text) else {
            return Ok(true);
        };
        let end = (self.start + CALL_TOKENS).min(text.len());
        let tokens = &text[self.start..end];
        let index = match self.next {
            None => {
                self.reference.call(backend, tokens, self.start)?;
                self.logits.clear();
                self.logits.extend_from_slice(backend.logits());
                0
            }
            Some(index) => {
                let (run, verdict) = &mut self.candidates[index];
                run.call(backend, tokens, self.start)?;
                let vocabulary = self.logits.len() / tokens.len();
                let quality = &mut verdict.texts[self.text].1;
                let rows = backend
                    .logits()
                    .chunks_exact(vocabulary)
                    .zip(self.logits.chunks_exact(vocabulary));
                for (i, (own, reference)) in rows.enumerate() {
                    quality.add(own, reference, text.get(self.start + i + 1).copied());
                }
                let total = verdict.total();
                verdict.is_hopeless =
                    may_give_up && total.tokens >= LEAST_TOKENS && total.mean_kl() > HOPELESS_KL;
                index + 1
            }
        };
        let waiting = self.candidates.iter().enumerate().skip(index);
        self.next = waiting
            .map(|(i, (_, verdict))| (i, verdict))
            .find(|(_, v)| !v.is_hopeless)
            .map(|(i, _)| i);
        if self.next.is_none() {
            self.start = end;
            if self.start == text.len() {
                self.text += 1;
                self.start = 0;
            }
        }
        Ok(self.text == self.texts.len())
    }

    /// What the candidates came to, in their order.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.candidates.iter().map(|(_, verdict)| verdict)
    }
}
