//! The layout of a question about documents: what stays the same comes first, the question last.

use crate::assistant::Part;
use crate::chats::{Given, Origin};
use crate::passage::Passage;

/// What the model is told before a question about documents. Short, because small models lose the thread of long ones.
pub const SYSTEM: &str = "You answer questions about documents. Use only the passages given by the user. \
If they do not give the answer, say that it is not in the document.";

/// A passage of a document that is not indexed, as something a question is given; it is kept under the document's name.
pub fn given(passage: &Passage) -> Given {
    Given {
        label: passage.label(),
        text: passage.rendered(),
        source: Origin::Passage {
            path: passage.document.clone(),
            owner: passage.document.clone(),
            place: passage.place.to_string(),
            start: passage.range.start as u64,
            end: passage.range.end as u64,
            is_ocr: passage.is_ocr,
        },
    }
}

/// The user's message of a question that was given these: one part each, then the question.
pub fn question_about(given: &[Given], question: &str) -> Vec<Part> {
    let mut user: Vec<Part> = given.iter().map(Given::part).collect();
    user.push(format!("Question: {}", question.trim()).into());
    user
}
