//! Finding what the model could read while nobody asks: the person's skills and indexed documents.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use reprise_engine::worker::AheadText;
use reprise_library::ahead::likely_texts;
use reprise_library::assistant::Writer;
use reprise_library::index::Index;
use reprise_library::skills::SkillShelf;

use super::{Job, ModelNumber, Shared, lock};
use crate::types::Failure;

/// Most texts that wait to be read ahead: some minutes of work for a small model.
const MOST_TEXTS: usize = 1_000;

/// What is needed to look, without holding the model: it may be unloaded meanwhile.
pub(super) struct Looking {
    pub(super) model: ModelNumber,
    pub(super) writer: Arc<Writer>,
    pub(super) index: PathBuf,
    pub(super) shared: Arc<Shared>,
    pub(super) later: Sender<Job>,
}

impl Looking {
    /// Looks, and hands what was found to the model if it is still the same.
    pub(super) fn look(self) {
        let texts = match self.texts() {
            Ok(texts) if texts.is_empty() => return,
            Ok(texts) => texts,
            Err(Failure { message }) => {
                tracing::warn!(message, "nothing is read ahead");
                return;
            }
        };
        let number = self.model;
        let _ = self.later.send(Job::WithModel(Box::new(move |model| {
            // An engine that has ended reads nothing.
            let _ = model.filter(|model| model.number == number).map(|model| {
                model
                    .assistant
                    .engine()
                    .with_worker(move |worker| worker.read_ahead(texts))
            });
        })));
    }

    fn texts(&self) -> Result<Vec<AheadText>, Failure> {
        // Nothing is made only to find that nothing is there.
        let index = match self.index.is_dir() {
            // Nothing is searched: the model for meanings need not be in memory.
            true => Some(Index::open(&self.index, None)?.0),
            false => None,
        };
        let skills = SkillShelf::of_person()?;
        let instructions = lock(&self.shared.settings).instructions();
        let store = &self.shared.store;
        Ok(likely_texts(
            &self.writer,
            &instructions,
            store,
            index.as_ref(),
            Some(&skills),
            MOST_TEXTS,
        )?)
    }
}
