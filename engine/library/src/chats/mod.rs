//! Chats on disk: what was said, in every branch, with drafts, folders and settings, in one SQLite file.
//!
//! The file is the truth about the chats; everything computed from them can be lost. It keeps three promises: what a
//! person typed is on the disk when a call returns; a piece of an answer survives the end of the process at any moment
//! after its call returned; and nothing is thrown away without a notice, neither by damage nor by a new version. It
//! knows no model and no prompt. One process at a time uses a file, from as many threads as it likes.
//!
//! ```
//! use reprise_library::chats::{ChatStore, TurnState};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let (store, notices) = ChatStore::open(folder.path().join("chats.sqlite"))?;
//! assert!(notices.is_empty());
//! let chat = store.create_chat()?.id;
//! let question = store.add_user_turn(chat, None, "When do I prune the apple tree?")?;
//! let answer = store.begin_answer(question.id, "Qwen3 4B")?;
//! store.append_piece(answer.id, "In ")?;
//! store.append_piece(answer.id, "February.")?;
//! store.finish_answer(answer.id, TurnState::Done, None, None)?;
//! assert_eq!(store.chat(chat)?.turns[1].text, "In February.");
//! assert_eq!(store.search("apple TREE", 10)?.len(), 2); // the title and the question
//! # Ok::<(), reprise_library::chats::StoreError>(())
//! ```

mod damage;
mod erase;
mod error;
mod export;
mod folders;
mod given;
mod import;
mod index;
mod list;
mod naming;
mod open;
mod paths;
mod salvage;
mod schema;
mod search;
mod settings;
mod snippet;
mod steps;
#[cfg(test)]
mod tests;
mod title;
mod turns;
mod types;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use error::StoreError;
pub use types::{
    AnswerStats, Branch, Chat, ChatId, ChatList, ChatSummary, ExportFormat, Folder, FolderId, Given, Origin,
    Role, SearchHit, SnippetPart, Turn, TurnId, TurnState,
};

use error::Trouble;

/// The time in milliseconds since 1970 (UTC).
type Clock = Box<dyn Fn() -> i64 + Send + Sync>;

/// The chats of one file. Share it between threads in an [`std::sync::Arc`].
pub struct ChatStore {
    path: PathBuf,
    clock: Clock,
    /// All writing goes through one connection: the store never waits for itself.
    writer: Mutex<Writer>,
    /// Reading has its own, so that a search does not hold up an answer.
    reader: Mutex<Connection>,
}

impl std::fmt::Debug for ChatStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ChatStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// What a change must survive once it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// Loss of power: a person's words.
    Power,
    /// The end of the process: pieces of an answer, of which there are many a second.
    Process,
}

struct Writer {
    connection: Connection,
    durability: Durability,
}

impl Writer {
    fn new(connection: Connection) -> rusqlite::Result<Self> {
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(Self {
            connection,
            durability: Durability::Power,
        })
    }

    /// The connection, set so that what it commits is durable in this way.
    fn with(&mut self, durability: Durability) -> rusqlite::Result<&mut Connection> {
        if self.durability != durability {
            let synchronous = match durability {
                Durability::Power => "FULL",
                Durability::Process => "NORMAL",
            };
            self.connection.pragma_update(None, "synchronous", synchronous)?;
            self.durability = durability;
        }
        Ok(&mut self.connection)
    }
}

impl ChatStore {
    /// The file the chats are in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// Does all of a change or nothing of it. The job may be tried twice (see [`index`]).
    fn write<T>(&self, job: impl Fn(&Transaction<'_>) -> Result<T, Trouble>) -> Result<T, StoreError> {
        let mut writer = self.lock_writer();
        let attempt = |writer: &mut Writer| -> Result<T, Trouble> {
            let connection = writer.with(Durability::Power)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = job(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        let outcome = match attempt(&mut writer) {
            Err(trouble) if trouble.is_in_the_index() => index::rebuild(&mut writer.connection)
                .map_err(Trouble::from)
                .and_then(|()| attempt(&mut writer)),
            outcome => outcome,
        };
        outcome.map_err(|trouble| self.explain(trouble))
    }

    /// Reads from one state of the file, whatever is written meanwhile. The job may be tried twice (see [`index`]).
    fn read<T>(&self, job: impl Fn(&Connection) -> Result<T, Trouble>) -> Result<T, StoreError> {
        let attempt = || -> Result<T, Trouble> {
            let reader = self.lock_reader();
            let transaction = reader.unchecked_transaction()?;
            job(&transaction)
        };
        let outcome = match attempt() {
            Err(trouble) if trouble.is_in_the_index() => {
                let rebuilt = index::rebuild(&mut self.lock_writer().connection);
                rebuilt.map_err(Trouble::from).and_then(|()| attempt())
            }
            outcome => outcome,
        };
        outcome.map_err(|trouble| self.explain(trouble))
    }

    /// The error as the caller gets it. Damage is noted, so that the next start looks closer.
    fn explain(&self, trouble: Trouble) -> StoreError {
        let error = trouble.at(&self.path);
        if matches!(error, StoreError::Damaged { .. }) {
            damage::suspect(&self.path);
        }
        error
    }

    // A thread that panicked left no half change behind: its transaction was rolled back. So a poisoned lock is sound.

    fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Text as it can be kept: SQLite's text functions and its index end at a zero character, so those are replaced.
fn storable(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}").into()
    } else {
        text.into()
    }
}
