//! Names for chats that have no better one than their question, made when no answer is asked for. A question ends one in
//! the works; it is made again later.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use reprise_engine::{CancelToken, EngineError};
use reprise_library::assistant::AssistantError;
use reprise_library::chats::{ChatId, StoreError};

use super::{Job, Model, Shared, lock};
use crate::types::AppEvent;

/// A title that is to be made.
#[derive(Clone)]
pub(super) struct Titling {
    shared: Arc<Shared>,
    later: Sender<Job>,
    chat: ChatId,
    cancel: CancelToken,
}

impl Titling {
    /// The next title, when there is one to be made and nobody waits for an answer.
    pub(super) fn begin(shared: &Arc<Shared>, later: &Sender<Job>) -> Option<Titling> {
        let mut desk = lock(&shared.desk);
        if !desk.requests.is_empty() || desk.title.is_some() || shared.is_leaving() {
            return None; // asked again when the last answer, or the title, has ended
        }
        let chat = *desk.unnamed.first()?;
        let cancel = CancelToken::default();
        desk.title = Some(cancel.clone());
        Some(Titling {
            shared: Arc::clone(shared),
            later: later.clone(),
            chat,
            cancel,
        })
    }

    /// Makes the title.
    pub(super) fn run(self, model: &Model) {
        if let Err(error) = self.name(model) {
            tracing::warn!(%error, "a title could not be stored");
        }
        self.end();
    }

    /// Ends without a title.
    pub(super) fn give_up(&self) {
        self.end();
    }

    fn name(&self, model: &Model) -> Result<(), StoreError> {
        let Titling {
            shared, chat, cancel, ..
        } = self;
        let Some(question) = shared.store.unnamed_question(*chat)? else {
            return Ok(());
        };
        let title = catch_unwind(AssertUnwindSafe(|| model.assistant.title(&question, cancel)));
        let summary = match title {
            Ok(Ok(_)) if cancel.is_cancelled() => return Ok(()), // it stays on the list
            Ok(Ok(Some(title))) => shared.store.set_generated_title(*chat, &title)?,
            Ok(Ok(None)) => shared.store.keep_question_title(*chat)?,
            Ok(Err(error)) => {
                tracing::warn!(%error, "no title could be made");
                if matches!(error, AssistantError::Engine(EngineError::Stopped)) {
                    let _ = self.later.send(Job::Broken(model.number));
                }
                return Ok(());
            }
            Err(_) => {
                cancel.cancel();
                tracing::error!("naming a chat failed by a fault");
                lock(&shared.desk).unnamed.retain(|unnamed| unnamed != chat);
                return Ok(());
            }
        };
        shared.events.tell(AppEvent::Chat { summary });
        Ok(())
    }

    /// Makes room for the next one.
    fn end(&self) {
        let mut desk = lock(&self.shared.desk);
        desk.title = None;
        if !self.cancel.is_cancelled() {
            desk.unnamed.retain(|chat| *chat != self.chat);
        }
        self.shared.pictures.stir();
        let _ = self.later.send(Job::Title);
    }
}
