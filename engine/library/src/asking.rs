//! What a question about indexed documents is given: the documents whole where they fit, else the passages found for it. One
//! place for every caller, so that the same question has the same prompt in the terminal and in the window.

use std::path::Path;

use crate::TokenCounter;
use crate::chats::Given;
use crate::index::{Chosen, DocumentId, Index, IndexError, Meaning, State, in_reading_order};
use crate::prompt::given;

/// Most passages a question is given where the documents do not fit whole.
pub const MOST_PASSAGES: usize = 6;

/// What a question of a chat is given takes at most one part in so many of the window, so that a chat has room for several,
const CHAT_SHARE: usize = 3;
/// and no more than this: small models lose the thread, and reading takes its time.
pub const MOST_TOKENS: usize = 3_000;

/// Tokens that a question of a chat may be given, for a model with this window.
pub fn chat_budget(context_tokens: usize) -> usize {
    (context_tokens / CHAT_SHARE).min(MOST_TOKENS)
}

/// What is not among the things that the model sees already.
pub fn unseen(found: Vec<Given>, seen: &[&Given]) -> Vec<Given> {
    found
        .into_iter()
        .filter(|one| !seen.iter().any(|other| other.text == one.text))
        .collect()
}

/// What a question is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The passages, in the order of files and of their text.
    pub given: Vec<Given>,
    /// Tokens of them.
    pub tokens: usize,
    /// How they were chosen; a person is told.
    pub how: How,
}

/// How what a question is given was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The documents are there whole: so many.
    Whole {
        /// How many.
        documents: usize,
    },
    /// The passages that answer to it best.
    Passages {
        /// Whether they were looked for by meaning too.
        meaning: Meaning,
    },
}

/// The indexed documents with text, those at or below `within` where a path is given.
///
/// # Errors
/// When the index cannot be read.
pub fn documents_within(index: &Index, within: Option<&Path>) -> Result<Vec<DocumentId>, IndexError> {
    let documents = index.documents(Some(State::Ready))?.into_iter();
    Ok(documents
        .filter(|document| within.is_none_or(|path| document.path.starts_with(path)))
        .map(|document| document.id)
        .collect())
}

/// Chooses what a question is given out of these documents, within a budget of tokens; nothing where nothing in them answers
/// to it, or the best passage does not fit.
///
/// # Errors
/// When the index cannot be read.
pub fn findings(
    index: &Index,
    question: &str,
    documents: &[DocumentId],
    budget_tokens: usize,
    count: TokenCounter<'_>,
) -> Result<Findings, IndexError> {
    match index.choose(question, documents, budget_tokens, MOST_PASSAGES, count)? {
        Chosen::Whole { passages, tokens } => Ok(Findings {
            given: passages.iter().map(|stored| given(&stored.passage)).collect(),
            tokens,
            how: How::Whole {
                documents: documents.len(),
            },
        }),
        Chosen::Passages {
            hits,
            tokens,
            meaning,
        } => Ok(Findings {
            // One order for every question: what two of them share stands in the same order in both prompts.
            given: in_reading_order(hits, |_| false)
                .iter()
                .map(|hit| given(&hit.stored.passage))
                .collect(),
            tokens,
            how: How::Passages { meaning },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Run;
    use reprise_engine::CancelToken;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn documents_are_given_whole_where_they_fit_and_else_their_best_passages_in_the_order_of_files() {
        let (home, papers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let filler = "Nothing of interest is said in this long paragraph. ".repeat(15);
        for (name, text) in [
            ("a.md", "The apple tree was planted in 1904 by Ada."),
            ("b.md", "The pear tree was planted by Rex in 1921."),
        ] {
            std::fs::write(
                papers.path().join(name),
                format!("{filler}\n\n{text}\n\n{filler}"),
            )
            .unwrap();
        }
        let (index, _) = Index::open(home.path(), None).unwrap();
        index.add(papers.path()).unwrap();
        index
            .update(&mut Run {
                cancel: CancelToken::default(),
                is_busy: &|| false,
                threads: 1,
                progress: &mut |_| (),
            })
            .unwrap();
        let all = documents_within(&index, None).unwrap();
        assert_eq!(all.len(), 2);
        let one =
            documents_within(&index, Some(&papers.path().canonicalize().unwrap().join("b.md"))).unwrap();
        assert_eq!(one.len(), 1);
        let ask = |documents: &[DocumentId], budget| {
            findings(
                &index,
                "Who planted the pear tree and the apple tree?",
                documents,
                budget,
                &words,
            )
            .unwrap()
        };
        let whole = ask(&all, 2_000);
        assert_eq!(whole.how, How::Whole { documents: 2 });
        assert!(whole.given.len() >= 4 && whole.tokens <= 2_000);
        let some = ask(&all, 500);
        assert!(matches!(some.how, How::Passages { .. }));
        assert!(some.tokens <= 500 && !some.given.is_empty());
        let paths: Vec<_> = some.given.iter().map(|given| given.label.clone()).collect();
        assert!(paths.is_sorted(), "{paths:?}");
        assert!(some.given.iter().any(|given| given.text.contains("Rex")));
        assert!(
            ask(&one, 500)
                .given
                .iter()
                .all(|given| given.label.starts_with("b.md"))
        );
        assert!(ask(&all, 3).given.is_empty());
    }
}
