//! What can go wrong with the chats on disk. Each message says what, where, and what to do.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::index;
use super::types::ChatId;
use crate::sqlite::is_without_room;

/// Why the chat store could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It is not there, or not any more.
    #[error("there is no {what} with the number {id}; it may have been deleted")]
    Missing {
        /// What was looked for: a chat, a turn, a folder.
        what: &'static str,
        /// Its id.
        id: i64,
    },
    /// It would not make sense; the sentence says why.
    #[error("{0}")]
    Refused(String),
    /// A text that was to be imported is not a chat.
    #[error("this cannot be imported: {0}")]
    Import(String),
    /// The file was written by a later version of the program.
    #[error(
        "the chats in {} were written by a newer Reprise (format {found}, this one knows {known}); update Reprise, \
         or move the file away to start without these chats",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format it has.
        found: i64,
        /// The newest format this program knows.
        known: i64,
    },
    /// The chats could not be brought to this version's format; nothing was changed.
    #[error(
        "the chats in {} could not be brought from format {from} to {to} ({reason}); the file is as it was{}; \
         use the version of Reprise you had before and report this",
        path.display(),
        backup.as_ref().map(|backup| format!(" and a copy is in {}", backup.display())).unwrap_or_default()
    )]
    Migration {
        /// The file.
        path: PathBuf,
        /// The format it has.
        from: i64,
        /// The format it should have got.
        to: i64,
        /// A copy made before.
        backup: Option<PathBuf>,
        /// What failed.
        reason: String,
    },
    /// The file is damaged.
    #[error(
        "the chats in {} are damaged; quit Reprise and start it again: it then saves what can be saved and keeps the \
         damaged file",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// No space is left.
    #[error("the disk with {} is full and the last change was not kept; free some space and try again", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error(
        "{} cannot be written; give yourself the right to write this file and its folder, or choose another folder \
         for Reprise's data",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another program uses the file.
    #[error("{} is in use by another program; close it (it may be a second Reprise) and try again", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder operation failed.
    #[error("cannot {doing} {}: {source}; check that the folder is there and may be written", path.display())]
    Files {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Deleted chats are erased, but their bytes could not be removed from the file yet.
    #[error(
        "deleted chats are gone, but traces of them may still be in the file: {reason} (this is tried again)"
    )]
    TracesLeft {
        /// The chats that are gone.
        chats: Vec<ChatId>,
        /// Why traces may be left.
        reason: Box<StoreError>,
    },
    /// Anything else that the database says.
    #[error("the chats in {} cannot be used ({source}); if quitting and starting again does not help, report this", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What the database said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// A refusal in words.
    pub(super) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }

    /// What the database said about this file, in words.
    pub(super) fn database(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { path },
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            _ if is_without_room(&source) => Self::DiskFull { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::ReadOnly { path }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            _ => Self::Database { path, source },
        }
    }

    /// A file operation that failed.
    pub(super) fn files(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.to_path_buf();
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull { path },
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ => Self::Files { doing, path, source },
        }
    }
}

/// An error inside the store, before it is known to which file it belongs.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The database's own error.
    Sql(rusqlite::Error),
    /// One that already has its words.
    Said(StoreError),
}

impl Trouble {
    /// Whether only the search index is damaged, which can be made anew.
    pub(super) fn is_in_the_index(&self) -> bool {
        matches!(self, Self::Sql(error) if index::is_at_fault(error))
    }

    /// The error as the caller gets it.
    pub(super) fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Sql(source) => StoreError::database(path, source),
            Self::Said(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Said(error)
    }
}
