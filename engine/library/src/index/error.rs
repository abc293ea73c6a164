//! What can go wrong with the document index. Each message says what, where, and what to do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use tantivy::TantivyError;
use tantivy::directory::error::OpenWriteError;

use crate::error::system_words;
use crate::sqlite::is_without_room;

/// Why the document index could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The file of passages is damaged.
    #[error(
        "the document index in {} is damaged; your files themselves are as they were. Close every Reprise, then start \
         it again or say: reprise index update. It reads them again",
        folder.display()
    )]
    Damaged {
        /// The index's folder.
        folder: PathBuf,
    },
    /// A later version of the program wrote it.
    #[error(
        "the document index in {} was written by a newer Reprise (format {found}, this one knows {known}); update \
         Reprise, or delete this folder and add your files again",
        folder.display()
    )]
    Newer {
        /// The index's folder.
        folder: PathBuf,
        /// The format it has.
        found: i64,
        /// The newest format this program knows.
        known: i64,
    },
    /// No space is left.
    #[error(
        "the disk with {} is full, so that not all of the last change was kept; free some space and try again",
        folder.display()
    )]
    DiskFull {
        /// The index's folder.
        folder: PathBuf,
    },
    /// It may not be written.
    #[error("{} cannot be written; give yourself the right to write this folder and the files in it", folder.display())]
    ReadOnly {
        /// The index's folder.
        folder: PathBuf,
    },
    /// Another program is writing it.
    #[error(
        "the document index in {} is being written by another Reprise; wait until it is done there, or close it",
        folder.display()
    )]
    InUse {
        /// The index's folder.
        folder: PathBuf,
    },
    /// A file or folder cannot be used.
    #[error("cannot {doing} {}: {}", path.display(), system_words(source))]
    Files {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It would not make sense; the sentence says why.
    #[error("{0}")]
    Refused(String),
    /// The keyword index failed.
    #[error("the keyword index in {} failed ({source}); it is made anew when Reprise starts again", folder.display())]
    Keywords {
        /// The index's folder.
        folder: PathBuf,
        /// What it said.
        source: TantivyError,
    },
    /// Vectors cannot be made.
    #[error(transparent)]
    Encoder(#[from] reprise_engine::encoder::EncoderError),
    /// Anything else that the database says.
    #[error("the document index in {} cannot be used ({source}); if starting again does not help, report this", folder.display())]
    Database {
        /// The index's folder.
        folder: PathBuf,
        /// What the database said.
        source: rusqlite::Error,
    },
}

impl IndexError {
    pub(super) fn database(folder: &Path, source: rusqlite::Error) -> IndexError {
        let folder = folder.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => IndexError::Damaged { folder },
            Some(ErrorCode::DiskFull) => IndexError::DiskFull { folder },
            _ if is_without_room(&source) => IndexError::DiskFull { folder },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                IndexError::ReadOnly { folder }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => IndexError::InUse { folder },
            _ => IndexError::Database { folder, source },
        }
    }

    pub(super) fn keywords(folder: &Path, source: TantivyError) -> IndexError {
        let folder = folder.to_owned();
        match source {
            TantivyError::LockFailure(..) => IndexError::InUse { folder },
            source if is_full(&source) => IndexError::DiskFull { folder },
            source => IndexError::Keywords { folder, source },
        }
    }

    pub(super) fn files(doing: &'static str, path: &Path, source: std::io::Error) -> IndexError {
        let folder = || {
            let is_folder = |path: &&Path| path.is_dir();
            path.ancestors().find(is_folder).unwrap_or(path).to_owned()
        };
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => IndexError::DiskFull { folder: folder() },
            _ => IndexError::Files {
                doing,
                path: folder(),
                source,
            },
        }
    }
}

/// Whether there was no room for a file of the keyword index.
fn is_full(error: &TantivyError) -> bool {
    let cause = match error {
        TantivyError::IoError(cause)
        | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: cause, .. }) => cause,
        _ => return false,
    };
    matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
