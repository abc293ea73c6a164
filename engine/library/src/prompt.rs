//! The layout of a question about documents: what stays the same comes first, the question last.

use reprise_engine::ModelInfo;

use crate::assistant::Part;
use crate::chats::{Given, Origin};
use crate::index::DocumentId;
use crate::passage::Passage;

/// What the model is told before a question about documents. Short, because small models lose the thread of long ones.
pub const SYSTEM: &str = "You answer questions about documents. Use only the passages given by the user. \
If they do not give the answer, say that it is not in the document.";

/// A passage as something a question is given. It is kept under its file, indexed or not, whatever link led there.
pub fn given(passage: &Passage) -> Given {
    let file = passage.path.file_name().map(|name| name.to_string_lossy());
    Given {
        label: passage.label(),
        text: passage.rendered(),
        source: Origin::Passage {
            path: passage.path.to_string_lossy().into_owned(),
            owner: DocumentId::of(&passage.path)
                .owner(file.as_deref().unwrap_or(&passage.document))
                .map_or_else(String::new, |owner| owner.name().to_owned()),
            place: passage.place.to_string(),
            start: passage.range.start as u64,
            end: passage.range.end as u64,
            is_ocr: passage.is_ocr,
        },
    }
}

/// Models with so many weights name passages when they are asked to. Of the models tried here 1.5 billion do; 0.5 billion name
/// the wrong one, and 0.135 billion answer worse.
const NAMING_PARAMETERS: u64 = 1_000_000_000;

/// Whether a model is asked to name the passages that its answer stands on.
pub fn names_passages(model: &ModelInfo) -> bool {
    model.parameters >= NAMING_PARAMETERS
}

/// A question as it stands behind passages: small models answer it better when it is told from them.
pub fn asked(question: &str, names_passages: bool) -> String {
    let naming = match names_passages {
        true => {
            "\nEnd each sentence of the answer with the label of the passage that says so, in square brackets."
        }
        false => "",
    };
    format!("Question: {}{naming}", question.trim())
}

/// The user's message of a question that was given these: one part each, then the question, which asks a model for the
/// names of passages where it [can tell them](names_passages).
pub fn question_about(given: &[Given], question: &str, names_passages: bool) -> Vec<Part> {
    let mut user: Vec<Part> = given.iter().map(Given::part).collect();
    user.push(asked(question, names_passages).into());
    user
}
