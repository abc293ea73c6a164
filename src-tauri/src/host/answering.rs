//! One answer, on a thread of its own: it waits for a lane in the engine, writes what comes to the store, tells the page,
//! and ends the answer, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use reprise_engine::EngineError;
use reprise_library::assistant::AssistantError;
use reprise_library::chats::{ChatId, Turn, TurnId, TurnState};
use reprise_library::converse::{AnswerRequest, ConverseError, Progress, Tools};
use reprise_library::skills::{StepLimits, Toolbox};

use super::questions::{AskInWindow, Kit};
use super::{Handle, Job, Model, Shared, Work, lock};
use crate::types::{AppEvent, Failure, Phase};

/// An answer that is to be made and ended.
#[derive(Clone)]
pub(super) struct Answering {
    shared: Arc<Shared>,
    later: Sender<Job>,
    chat: ChatId,
    turn: TurnId,
}

impl Answering {
    pub(super) fn new(shared: &Arc<Shared>, later: &Sender<Job>, chat: ChatId, turn: TurnId) -> Answering {
        Answering {
            shared: Arc::clone(shared),
            later: later.clone(),
            chat,
            turn,
        }
    }

    /// Makes the answer and ends it.
    pub(super) fn run(self, model: &Model, handle: &Handle) {
        match self.make(model, handle) {
            Ok(None) if self.wait_again(handle) => {}
            // Put off for another model, and stopped by the person meanwhile.
            Ok(None) => self.end(
                self.shared
                    .store
                    .finish_answer(self.turn, TurnState::Stopped, None, None)
                    .map_err(Failure::from),
            ),
            Ok(Some(turn)) => self.end(Ok(turn)),
            Err(failure) => self.fail(failure),
        }
    }

    /// Ends the answer with a failure.
    pub(super) fn fail(&self, failure: Failure) {
        self.end(Err(failure));
    }

    /// Makes the answer; none when it was put off before it had a word.
    fn make(&self, model: &Model, handle: &Handle) -> Result<Option<Turn>, Failure> {
        let Answering {
            shared, chat, turn, ..
        } = self;
        let mut instructions = lock(&shared.settings).instructions();
        // For the panel; a chat that was deleted meanwhile has no need of it.
        instructions.options.owner = shared
            .store
            .summary(*chat)
            .ok()
            .and_then(|summary| summary.title)
            .unwrap_or_default();
        let request = AnswerRequest {
            store: &shared.store,
            counts: &model.loaded.counts,
            turn: *turn,
            instructions: &instructions,
            cancel: &handle.cancel,
            readings: &model.loaded.readings,
            is_put_off: &handle.is_put_off,
        };
        let mut is_writing = false;
        let mut on_progress = |progress: Progress<'_>| self.tell(progress, &mut is_writing);
        let mut kit = Kit::for_answer(shared, model, *chat, *turn, &handle.cancel)?;
        let mut consent = AskInWindow { shared, chat: *chat };
        let mut toolbox = kit.as_mut().map(|kit| Toolbox {
            shelf: &kit.shelf,
            offers_skills: kit.offers_skills,
            chosen: kit.chosen.clone(),
            runner: &kit.runner,
            servers: kit.servers.as_mut().and_then(|servers| servers.as_mut()),
        });
        let tools = toolbox.as_mut().map(|toolbox| Tools {
            toolbox,
            consent: &mut consent,
            limits: StepLimits::default(),
        });
        let answer = || request.answer_with(&model.assistant, tools, &mut on_progress);
        match catch_unwind(AssertUnwindSafe(answer)) {
            Ok(outcome) => {
                if let Err(ConverseError::Assistant(AssistantError::Engine(EngineError::Stopped))) = outcome {
                    let _ = self.later.send(Job::Broken(model.number));
                }
                Ok(outcome?)
            }
            Err(_) => {
                // The engine is another thread's and whole; it shall not go on for nobody.
                handle.cancel.cancel();
                Err(Failure::new(
                    "answering failed by a fault in Reprise; your chats are safe; try again",
                ))
            }
        }
    }

    fn tell(&self, progress: Progress<'_>, is_writing: &mut bool) {
        let shared = &self.shared;
        match progress {
            Progress::Reading {
                done_tokens,
                total_tokens,
                reused_tokens,
                left,
            } => shared.set_phase(
                self.turn,
                Phase::Reading {
                    done_tokens,
                    total_tokens,
                    reused_tokens,
                    seconds_left: left.map(|left| left.as_secs_f64()),
                },
            ),
            Progress::Text { from, text } => {
                if !*is_writing {
                    *is_writing = true;
                    shared.set_phase(self.turn, Phase::Writing);
                }
                shared.pictures.stir();
                shared.events.tell(AppEvent::Text {
                    chat: self.chat,
                    turn: self.turn,
                    from,
                    text: text.to_owned(),
                });
            }
            Progress::Step(step) => shared.events.tell(AppEvent::Step {
                chat: self.chat,
                turn: self.turn,
                step,
            }),
        }
    }

    /// Puts the answer back among those that wait for the model to come; false when the person stopped it.
    fn wait_again(&self, handle: &Handle) -> bool {
        let mut desk = lock(&self.shared.desk);
        // Under the lock, under which a person stops it.
        if handle.is_stopped.load(Ordering::Relaxed) || self.shared.is_leaving() {
            return false;
        }
        let Some(request) = desk.find(self.turn) else {
            return false;
        };
        request.work = Work::Waits;
        request.phase = Phase::Loading;
        self.shared.tell_phase(self.chat, self.turn, Phase::Loading);
        // Behind the loading that is under way.
        let _ = self.later.send(Job::Answer(self.turn));
        true
    }

    /// The answer as it stands in the store after a failure, ended there if it was not yet.
    fn end_failed(&self, failure: &Failure) -> Result<Turn, Failure> {
        let store = &self.shared.store;
        let stored = store.turn(self.turn).map_err(|_| failure.clone())?;
        if stored.state != TurnState::Writing {
            return Ok(stored);
        }
        let ended = store.finish_answer(self.turn, TurnState::Failed, None, Some(&failure.message));
        // A store that cannot be written cannot keep the failure; the page shows it, and Stop tries once more.
        Ok(ended.unwrap_or(Turn {
            state: TurnState::Failed,
            error: Some(failure.message.clone()),
            ..stored
        }))
    }

    /// Takes the answer off the list, and tells.
    fn end(&self, ended: Result<Turn, Failure>) {
        let Answering { shared, chat, .. } = self;
        // Whatever went wrong, the store gets the chance to say that the answer has ended.
        let ended = ended.or_else(|failure| self.end_failed(&failure));
        {
            let mut desk = lock(&shared.desk);
            desk.requests.retain(|request| request.turn != self.turn);
            let may_name =
                matches!(&ended, Ok(turn) if !turn.text.is_empty() && turn.state != TurnState::Failed);
            if may_name && !desk.unnamed.contains(chat) {
                desk.unnamed.push(*chat);
            }
        }
        match ended {
            Ok(turn) => {
                shared.events.tell(AppEvent::Ended { turn });
                shared.tell_chat(*chat);
            }
            Err(Failure { message }) => shared.events.tell(AppEvent::Notice { message }),
        }
        shared.pictures.stir();
        let _ = self.later.send(Job::Title);
    }
}
