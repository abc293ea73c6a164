//! The layout of a question about documents: what stays the same comes first, the question last.

use crate::assistant::Part;
use crate::passage::Passage;
use crate::select::Selection;
use reprise_engine::{Owner, SegmentKind};

/// What the model is told before a question about documents. Short, because small models lose the thread of long ones.
pub const SYSTEM: &str = "You answer questions about documents. Use only the passages given by the user. \
If they do not give the answer, say that it is not in the document.";

/// A prompt for the model's chat template, behind [`SYSTEM`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The parts of the user's message: one a passage, then the question. Each is to be tokenised on its own, so that a
    /// passage is the same tokens in every prompt.
    pub user: Vec<Part>,
}

/// A passage as a part of a message, kept for its document.
pub fn part(passage: &Passage) -> Part {
    // A name too long for an owner belongs to nobody, and is not kept.
    Part {
        text: passage.rendered(),
        kind: SegmentKind::Passage,
        owner: Owner::new("document", &*passage.document).ok(),
    }
}

/// Lays out the chosen passages and the question.
pub fn assemble(question: &str, selection: &Selection) -> Prompt {
    let mut user: Vec<Part> = selection.used().iter().map(part).collect();
    user.push(format!("Question: {}", question.trim()).into());
    Prompt { user }
}
