//! The layout of a question about documents: what stays the same comes first, the question last.

use crate::passage::Passage;
use crate::select::Selection;

/// What the model is told before a question about documents. Short, because small models lose the thread of long ones.
pub const SYSTEM: &str = "You answer questions about documents. Use only the passages given by the user. \
If they do not give the answer, say that it is not in the document.";

/// A prompt for the model's chat template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The system message.
    pub system: &'static str,
    /// The parts of the user's message: one a passage, then the question. Each is to be tokenised on its own, so that a
    /// passage is the same tokens in every prompt.
    pub user: Vec<String>,
}

/// Lays out the chosen passages and the question.
pub fn assemble(question: &str, selection: &Selection) -> Prompt {
    let mut user: Vec<String> = selection.used().iter().map(Passage::rendered).collect();
    user.push(format!("Question: {}", question.trim()));
    Prompt { system: SYSTEM, user }
}
