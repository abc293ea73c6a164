//! Reading texts ahead while the engine has nothing else to do: their chunks are there when somebody asks about them.
//!
//! A text is read as a request like any other, which leaves at once when a real one comes: within one graph call. What
//! was computed by then is kept, and the text goes on from there the next time. Nothing is read ahead while the machine
//! runs on battery, or memory is short.

use super::Worker;
use crate::api::{CancelToken, GenerateOptions, Request, Reuse, SamplingOptions, Segment, TokenId};
use crate::guard::Pressure;
use crate::lanes::scheduler::RequestId;
use crate::power::Power;
use crate::reuse::keeper::Wanted;
use std::collections::VecDeque;

/// Whose requests these are, for the panel.
const OWNER: &str = "reading ahead";

/// A text to be read ahead: a prompt that ends with it, and what that consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AheadText {
    /// The prompt, up to the text's end.
    pub tokens: Vec<TokenId>,
    /// Its segments.
    pub segments: Vec<Segment>,
}

/// What is to be read ahead.
#[derive(Default)]
pub(super) struct Warming {
    texts: VecDeque<AheadText>,
    running: Option<(RequestId, CancelToken)>,
    power: Power,
}

impl Worker {
    /// Has texts read ahead, the most likely ones first, behind those that wait already.
    pub fn read_ahead(&mut self, texts: impl IntoIterator<Item = AheadText>) {
        self.warming.texts.extend(texts);
    }

    /// Lets go of all texts that wait to be read ahead.
    pub fn stop_reading_ahead(&mut self) {
        self.warming.texts.clear();
        self.leave_warming();
    }

    /// How many texts wait to be read ahead, or are being read.
    pub fn texts_ahead(&self) -> usize {
        self.warming.texts.len()
    }

    /// Why nothing is read ahead although texts wait; none where nothing keeps it.
    pub fn ahead_waits_for(&mut self) -> Option<&'static str> {
        if self.keeper.is_none() || self.reuse == Reuse::Nothing {
            Some("nothing that was read is kept")
        } else if self.guard.pressure(0) != Pressure::None {
            Some("memory is short")
        } else if self.warming.power.is_on_battery() {
            Some("the machine runs on battery")
        } else {
            None
        }
    }

    /// Whether a text can be read ahead now.
    pub(super) fn may_read_ahead(&mut self) -> bool {
        !self.warming.texts.is_empty() && self.ahead_waits_for().is_none()
    }

    /// Hands in the next text that is not known yet.
    pub(super) fn read_next_ahead(&mut self) {
        while let Some(text) = self.warming.texts.front() {
            if text.tokens.is_empty() || self.is_known(text) {
                self.warming.texts.pop_front();
                continue;
            }
            let cancel = CancelToken::default();
            let request = Request {
                prompt: text.tokens.clone(),
                options: GenerateOptions {
                    sampling: SamplingOptions::greedy(),
                    max_tokens: 1,
                    owner: OWNER.to_owned(),
                    segments: text.segments.clone(),
                    ..GenerateOptions::default()
                },
                cancel: cancel.clone(),
                on_event: Box::new(|_| ()),
                on_end: Box::new(|result| {
                    if let Err(error) = result {
                        tracing::warn!(%error, "a text cannot be read ahead");
                    }
                }),
            };
            let id = self.take_in(request);
            if self.scheduler.phase(id).is_some() {
                self.warming.running = Some((id, cancel));
                return;
            }
            // It was refused.
            self.warming.texts.pop_front();
        }
    }

    /// Has the text that is being read ahead leave, since somebody asks.
    pub(super) fn leave_warming(&mut self) {
        if let Some((_, cancel)) = &self.warming.running {
            cancel.cancel();
        }
    }

    /// Notes that a request has ended. A text that was read to its end, or cannot be read, is done with.
    pub(super) fn warmed(&mut self, id: RequestId) {
        if let Some((_, cancel)) = self.warming.running.take_if(|(running, _)| *running == id)
            && !cancel.is_cancelled()
        {
            self.warming.texts.pop_front();
        }
    }

    /// Whether everything of a text is stored but its last token, which never is looked for.
    fn is_known(&self, text: &AheadText) -> bool {
        let wanted = Wanted {
            prompt: &text.tokens,
            segments: &text.segments,
            known: 0,
            question: text.tokens.len(),
            anywhere: false,
        };
        let found = self.keeper.as_ref().map(|keeper| keeper.find(&wanted));
        found.is_some_and(|found| found.prefix_tokens() + 1 >= text.tokens.len())
    }
}
