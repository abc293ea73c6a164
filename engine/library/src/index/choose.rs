//! What of the documents goes into a prompt: all of them when they fit, else the passages that were found, in an order that
//! lets the next question use again what was read.

use super::Index;
use super::error::IndexError;
use super::rows;
use super::search::Hit;
use super::types::{DocumentId, Meaning, StoredPassage};
use crate::TokenCounter;

/// A token has fewer characters than this, whichever model reads it.
const MOST_TOKEN_CHARACTERS: usize = 16;

/// What was chosen for a question; a person is told which it was.
#[derive(Debug, Clone, PartialEq)]
pub enum Chosen {
    /// The documents whole, in the order of files.
    Whole {
        /// All their passages.
        passages: Vec<StoredPassage>,
        /// Tokens of them.
        tokens: usize,
    },
    /// The best passages that fit, best first.
    Passages {
        /// They.
        hits: Vec<Hit>,
        /// Tokens of them.
        tokens: usize,
        /// Whether meaning was looked at.
        meaning: Meaning,
    },
}

impl Index {
    /// Chooses for a question out of these documents within a budget. `most` passages at most, unless the documents fit
    /// whole. The counter counts a rendered passage.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn choose(
        &self,
        question: &str,
        documents: &[DocumentId],
        budget_tokens: usize,
        most: usize,
        count: TokenCounter<'_>,
    ) -> Result<Chosen, IndexError> {
        if let Some((passages, tokens)) = self.whole(documents, budget_tokens, count)? {
            return Ok(Chosen::Whole { passages, tokens });
        }
        let found = self.search_in(question, documents, most)?;
        let (hits, tokens) = fitting(found.hits, budget_tokens, count);
        Ok(Chosen::Passages {
            hits,
            tokens,
            meaning: found.meaning,
        })
    }

    /// All passages of these documents, when they fit the budget.
    fn whole(
        &self,
        documents: &[DocumentId],
        budget_tokens: usize,
        count: TokenCounter<'_>,
    ) -> Result<Option<(Vec<StoredPassage>, usize)>, IndexError> {
        let mut characters = 0;
        let mut passages = Vec::new();
        for &document in documents {
            let of_it = self
                .database
                .read(|connection| rows::passages_between(connection, document, 0, usize::MAX))?;
            characters += of_it
                .iter()
                .map(|stored| stored.passage.text.chars().count())
                .sum::<usize>();
            // Far too long: nothing needs to be counted.
            if characters / MOST_TOKEN_CHARACTERS > budget_tokens {
                return Ok(None);
            }
            passages.extend(of_it);
        }
        passages.sort_by(|a, b| a.passage.path.cmp(&b.passage.path).then(a.number.cmp(&b.number)));
        let mut tokens = 0;
        for stored in &mut passages {
            stored.passage.tokens = count(&stored.passage.rendered());
            tokens += stored.passage.tokens;
            if tokens > budget_tokens {
                return Ok(None);
            }
        }
        Ok((!passages.is_empty()).then_some((passages, tokens)))
    }

    /// A passage with those before and after it in its document.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn with_neighbours(
        &self,
        stored: &StoredPassage,
        before: usize,
        after: usize,
    ) -> Result<Vec<StoredPassage>, IndexError> {
        let first = stored.number.saturating_sub(before);
        let last = stored.number.saturating_add(after);
        self.database
            .read(|connection| rows::passages_between(connection, stored.document, first, last))
    }
}

/// The best that fit, with their tokens counted. One that does not fit leaves its place to the next.
pub fn fitting(hits: Vec<Hit>, budget_tokens: usize, count: TokenCounter<'_>) -> (Vec<Hit>, usize) {
    let mut used = 0;
    let mut kept = Vec::new();
    for mut hit in hits {
        hit.stored.passage.tokens = count(&hit.stored.passage.rendered());
        if used + hit.stored.passage.tokens <= budget_tokens {
            used += hit.stored.passage.tokens;
            kept.push(hit);
        }
    }
    (kept, used)
}

/// An order in which passages can be read with the most use of what is known: those that are known first, and within both
/// halves in the order of files, which is the same for every question.
pub fn in_reading_order(mut hits: Vec<Hit>, is_known: impl Fn(&StoredPassage) -> bool) -> Vec<Hit> {
    hits.sort_by_cached_key(|hit| {
        (
            !is_known(&hit.stored),
            hit.stored.passage.path.clone(),
            hit.stored.number,
        )
    });
    hits
}

/// The text of passages that follow each other, as one.
pub fn joined(passages: &[StoredPassage]) -> String {
    passages
        .iter()
        .map(|stored| stored.passage.text.as_str())
        .collect::<Vec<_>>()
        .join("\n\n")
}
