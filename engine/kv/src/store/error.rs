//! What can go wrong with the store, in words that say what, where and what to do.

use super::record::ChunkId;
use std::io;
use std::path::{Path, PathBuf};

/// Why the store could not do what was asked. Whatever it is, nothing is lost but time: the tokens of a chunk that
/// cannot be had are computed again.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process, or another store in this one, has the folder.
    #[error("the chunk store in {} is in use by another running program: close that one, or choose another folder", folder.display())]
    InUse {
        /// The store's folder.
        folder: PathBuf,
    },
    /// A file or a folder could not be read or written. Nothing was left behind.
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    File {
        /// What was tried, as in "write".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The index refused an operation. What the operation had changed was taken back.
    #[error(
        "the index of the chunk store failed while {action}: {source}{}",
        database_advice(source)
    )]
    Index {
        /// What was being done, as in "adding a chunk".
        action: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The index holds what this program never writes. It is checked and made anew when the store is opened next.
    #[error("the index of the chunk store is damaged ({what}): it is rebuilt when the store is opened again")]
    IndexDamaged {
        /// What was found.
        what: String,
    },
    /// A chunk's file is not what was written. The chunk has been dropped: compute its tokens again.
    #[error("chunk {chunk} was dropped: {} {reason}", path.display())]
    ChunkDamaged {
        /// The chunk.
        chunk: ChunkId,
        /// Its file.
        path: PathBuf,
        /// What is wrong with the file.
        reason: String,
    },
    /// There is no such chunk: it was erased or evicted.
    #[error("chunk {0} is no longer stored")]
    NoSuchChunk(ChunkId),
    /// What is no number of a chunk and no name of an owner.
    #[error("{0}")]
    NoName(String),
    /// A chunk outside of what the store can hold.
    #[error("a chunk cannot be stored like this: {0}")]
    Invalid(String),
    /// The chunk does not fit the budget, however much else were evicted.
    #[error(
        "a chunk of {needed_bytes} bytes does not fit: of the budget of {budget_bytes} bytes, {kept_bytes} are pinned \
         or being written; unpin something or raise the budget"
    )]
    NoRoom {
        /// Bytes of the chunk's file.
        needed_bytes: u64,
        /// The store's budget.
        budget_bytes: u64,
        /// Bytes that may not be evicted.
        kept_bytes: u64,
    },
}

impl StoreError {
    /// For `map_err`: an error of the system about a path.
    pub(super) fn file<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> StoreError + 'a {
        move |source| StoreError::File {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// What to do about a full disk, at the end of an error.
const FREE_SPACE: &str = "; free space on the disk or lower the store's budget";
/// What to do about a folder that may only be read.
const NEEDS_WRITING: &str = "; the store needs a folder it may write";

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => FREE_SPACE,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => NEEDS_WRITING,
        _ => "",
    }
}

fn database_advice(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => FREE_SPACE,
        Some(ErrorCode::SystemIoFailure) => "; see whether the disk is full or failing",
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => NEEDS_WRITING,
        _ => "",
    }
}

/// Gives an error of SQLite the words for what was being done.
pub(super) trait During<T> {
    /// `action` completes "while ...".
    fn during(self, action: &'static str) -> Result<T, StoreError>;
}

impl<T> During<T> for rusqlite::Result<T> {
    fn during(self, action: &'static str) -> Result<T, StoreError> {
        use rusqlite::Error;
        self.map_err(|source| match &source {
            Error::InvalidColumnType(..)
            | Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..) => StoreError::IndexDamaged {
                what: format!("{source} while {action}"),
            },
            _ if is_damage(&source) => StoreError::IndexDamaged {
                what: format!("{source} while {action}"),
            },
            _ => StoreError::Index { action, source },
        })
    }
}

/// Whether SQLite says that the file is not a sound database.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
    )
}

/// Whether SQLite says that somebody else holds the file.
pub(super) fn is_lock(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
    )
}
