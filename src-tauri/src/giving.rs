//! What a question is given before it is asked: the skills that the person chose, and passages of the documents it is about.

use std::sync::Arc;

use reprise_library::chats::{Given, Origin, TurnId};
use reprise_library::converse::seen_given;
use reprise_library::skills::{SkillShelf, skill_parts};
use reprise_model::template::ToolCalls;

use crate::app::App;
use crate::host::Loaded;
use crate::types::{Asked, Failure};

/// Bytes of a token, while no model is there to count: few, so that what is chosen fits.
const BYTES_OF_TOKEN: usize = 3;
/// The window while no model is there to tell.
const USUAL_WINDOW: usize = 8_192;

impl App {
    /// What a question is given that follows this turn.
    ///
    /// # Errors
    /// When a skill or a document cannot be used, with the reason.
    pub fn given(
        &self,
        question: &str,
        parent: Option<TurnId>,
        asked: &Asked,
    ) -> Result<Vec<Given>, Failure> {
        let loaded = self.host.loaded();
        let mut given = skills(&asked.skills, loaded.as_ref())?;
        if !asked.all_documents && asked.documents.is_empty() {
            return Ok(given);
        }
        let (turns, before) = match parent {
            Some(parent) => (self.store.path_to(parent)?, self.store.given_up_to(parent)?),
            None => Default::default(),
        };
        let settings = self.host.settings();
        let seen = loaded.as_ref().map_or_else(Vec::new, |loaded| {
            let (writer, counts) = (&loaded.writer, &loaded.counts);
            seen_given(writer, counts, &turns, &before, &settings.instructions())
        });
        let window = match &loaded {
            Some(loaded) => loaded.writer.info().context_tokens,
            None => settings.context_tokens.unwrap_or(USUAL_WINDOW),
        };
        let count = |text: &str| match &loaded {
            Some(loaded) => loaded.writer.count(text),
            None => text.len().div_ceil(BYTES_OF_TOKEN),
        };
        let found = self.documents.given(
            question,
            &asked.documents,
            asked.all_documents,
            &seen,
            window,
            &count,
        )?;
        given.extend(found);
        Ok(given)
    }

    /// What a question that is still being typed would be given. Documents that are not read yet count nothing so far; what
    /// is wrong with the rest is said when the question is asked.
    pub fn given_so_far(&self, draft: &str, parent: Option<TurnId>, asked: &Asked) -> Vec<Given> {
        let mut asked = asked.clone();
        if !self.documents.are_read(&asked.documents) {
            asked.documents.clear();
        }
        self.given(draft, parent, &asked).unwrap_or_else(|failure| {
            tracing::debug!(failure.message, "what a draft would be given is not known");
            Vec::new()
        })
    }
}

/// What the model reads of these skills.
fn skills(names: &[String], loaded: Option<&Arc<Loaded>>) -> Result<Vec<Given>, Failure> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let can_ask = loaded.is_some_and(|loaded| loaded.writer.tool_calls() == ToolCalls::Hermes);
    let shelf = SkillShelf::of_person()?;
    let mut given = Vec::new();
    for name in names {
        let skill = shelf.usable(name)?;
        given.extend(skill_parts(skill, can_ask).into_iter().map(|part| Given {
            label: skill.name.clone(),
            text: part.text,
            source: Origin::Skill {
                name: skill.name.clone(),
            },
        }));
    }
    Ok(given)
}
