//! What is worth reading before anybody asks about it: the skills that are switched on, then the passages of indexed
//! documents, those first that chats used last. An idle engine reads them one by one
//! ([`Worker::read_ahead`](reprise_engine::worker::Worker::read_ahead)) and keeps what it computed, so that the first question
//! about a document is answered as soon as the second one.

use std::collections::HashMap;

use reprise_engine::worker::AheadText;
use reprise_model::template::Role;

use crate::assistant::{AssistantError, Message, Part, Writer};
use crate::chats::{ChatStore, StoreError};
use crate::converse::Instructions;
use crate::index::{Index, IndexError, State};
use crate::prompt::given;
use crate::skills::SkillShelf;

/// Things that questions were given last, among which the latest documents are looked for.
const LOOKED_AT: usize = 500;

/// Why it is not known what to read ahead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AheadError {
    /// The chats cannot be read.
    #[error(transparent)]
    Chats(#[from] StoreError),
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The model's template refuses a text.
    #[error(transparent)]
    Assistant(#[from] AssistantError),
}

/// At most so many texts, the most likely ones first, each as it would stand behind the system prompt of a chat.
///
/// # Errors
/// See [`AheadError`].
pub fn likely_texts(
    writer: &Writer,
    instructions: &Instructions,
    chats: &ChatStore,
    index: Option<&Index>,
    skills: Option<&SkillShelf>,
    most: usize,
) -> Result<Vec<AheadText>, AheadError> {
    let mut parts: Vec<Part> = skills
        .into_iter()
        .flat_map(SkillShelf::enabled)
        .map(|skill| skill.part())
        .take(most)
        .collect();
    if let Some(index) = index {
        let latest = chats.owners_given_last(LOOKED_AT)?;
        let rank: HashMap<&str, usize> = latest.iter().map(String::as_str).zip(0..).collect();
        let mut documents = index.documents(Some(State::Ready))?;
        documents.sort_by_key(|document| {
            let owner = document.id.owner(&document.name);
            let rank = owner.and_then(|owner| rank.get(owner.name()).copied());
            rank.unwrap_or(usize::MAX)
        });
        for document in documents {
            if parts.len() >= most {
                break;
            }
            let passages = index.passages(document.id)?;
            parts.extend(
                passages
                    .iter()
                    .map(|stored| given(&stored.passage).part())
                    .take(most - parts.len()),
            );
        }
    }
    let system = instructions.system.trim();
    let text = |part: Part| {
        let mut messages = Vec::new();
        if !system.is_empty() {
            messages.push(Message::new(Role::System, system));
        }
        messages.push(Message {
            role: Role::User,
            parts: vec![part],
        });
        Ok(writer.lay_out_ahead(&messages)?)
    };
    parts.into_iter().map(text).collect()
}
