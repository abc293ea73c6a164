//! Documents: text out of files, passages out of text, and the prompt that asks a question about them.
//!
//! It reads PDF, Office files, e-books, web pages, mails, tables, source code and plain text, and recognises the text of scans and
//! pictures where the models for that are there; every file is hostile until checked. It cuts documents into passages that know
//! their place, finds those that answer to a question by words and by meaning, and lays out prompts that fit a budget of tokens.
//! It keeps chats, the index of documents and skills.
//!
//! ```
//! use reprise_library::{Document, given, question_about, select, split};
//!
//! let text = "# Boiler\n\nBleed the radiators each autumn.\n\n# Garden\n\nPrune the apple tree in February.\n";
//! let document = Document::from_bytes("house.md", text.as_bytes())?;
//! let count = |text: &str| text.split_whitespace().count(); // a real caller asks the model's tokenizer
//! let passages = split(&document, 8, &count); // a real caller takes PASSAGE_TOKENS
//! let selection = select("When do I prune the apple tree?", &passages, 12, &count)?;
//! assert_eq!(selection.used()[0].place.to_string(), "lines 5-7");
//! let given: Vec<_> = selection.used().iter().map(given).collect();
//! let message = question_about(&given, "When do I prune the apple tree?", false);
//! assert_eq!(message.last().map(|part| part.text.as_str()), Some("Question: When do I prune the apple tree?"));
//! # Ok::<(), reprise_library::LibraryError>(())
//! ```

pub mod ahead;
pub mod asking;
pub mod assistant;
pub mod cache;
mod calls_kept;
pub mod chats;
pub mod citations;
pub mod converse;
mod document;
mod error;
mod extract;
pub mod files;
pub mod folders;
pub mod index;
pub mod inspection;
pub mod models;
mod ocr;
mod passage;
mod place;
mod prompt;
pub mod recall;
pub mod running;
mod select;
pub mod skills;
mod sqlite;
mod terms;

pub use document::{Block, Document, Format, ReadOptions};
pub use error::{Fault, LibraryError, system_words};
pub use ocr::Ocr;
pub use passage::{PASSAGE_CHARACTERS, PASSAGE_TOKENS, Passage, split};
pub use place::Place;
pub use prompt::{SYSTEM, given, names_passages, question_about};
pub use select::{Selection, rank, select};

/// Counts the tokens of a text; a caller with a model passes its tokenizer.
pub type TokenCounter<'a> = &'a dyn Fn(&str) -> usize;
