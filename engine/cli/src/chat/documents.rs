//! Documents that a chat is about: each question is given what answers to it, once.

use std::path::PathBuf;

use reprise_library::asking::{How, chat_budget, findings, unseen};
use reprise_library::chats::Given;
use reprise_library::index::{DocumentId, Index};
use reprise_library::{PASSAGE_TOKENS, Passage, given, select, split};

use crate::ask;
use crate::failure::Outcome;
use crate::index::documents_at;
use crate::output::{counted, note};
use crate::password::PasswordArguments;
use crate::session::Session;

pub struct Documents {
    source: Source,
    count: usize,
    budget: usize,
}

enum Source {
    Files(Vec<Passage>),
    Indexed(Box<Index>, Vec<DocumentId>),
}

impl Documents {
    /// These files, or without any the indexed documents.
    pub fn open(files: &[PathBuf], password: &PasswordArguments, session: &Session) -> Outcome<Documents> {
        let budget = chat_budget(session.info().context_tokens);
        if files.is_empty() {
            let index = crate::index::open()?;
            let documents = documents_at(&index, None)?;
            if let Some(why) = index.meaning().why_not() {
                note(&format!("note: {why}"));
            }
            return Ok(Documents {
                count: documents.len(),
                source: Source::Indexed(Box::new(index), documents),
                budget,
            });
        }
        let documents = ask::open(files, password)?;
        let count = |text: &str| session.count(text);
        let split = |document| split(document, PASSAGE_TOKENS, &count);
        Ok(Documents {
            count: documents.len(),
            source: Source::Files(documents.iter().flat_map(split).collect()),
            budget,
        })
    }

    /// What a question is given beside what the model sees already, and what is said of it.
    pub fn for_question(
        &self,
        question: &str,
        seen: &[Given],
        session: &Session,
    ) -> Outcome<(Vec<Given>, String)> {
        let count = |text: &str| session.count(text);
        let (found, is_whole) = match &self.source {
            Source::Files(passages) => {
                let selection = select(question, passages, self.budget, &count)?;
                // Without a word in common the documents' beginning would be given, again and again.
                let used = match selection.matched() || seen.is_empty() {
                    true => selection.used(),
                    false => &[],
                };
                (used.iter().map(given).collect(), selection.is_everything())
            }
            Source::Indexed(index, documents) => {
                let found = findings(index, question, documents, self.budget, &count)?;
                let is_whole = matches!(found.how, How::Whole { .. });
                (found.given, is_whole)
            }
        };
        let new = unseen(found, &seen.iter().collect::<Vec<_>>());
        let tokens: usize = new.iter().map(|one| count(&one.text)).sum();
        let tokens = counted(tokens, "token");
        let told = match (new.is_empty(), is_whole) {
            (true, _) => "[no passage besides those that it has]".to_owned(),
            (false, true) => format!("[given {} whole, {tokens}]", counted(self.count, "document")),
            (false, false) => {
                let labels: Vec<&str> = new.iter().map(|one| one.label.as_str()).collect();
                format!(
                    "[given {}, {tokens}: {}]",
                    counted(new.len(), "passage"),
                    labels.join("; ")
                )
            }
        };
        Ok((new, told))
    }
}
