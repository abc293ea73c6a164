//! Reads one file: its bytes, whether they are the same as before, its text, its passages.

use std::path::PathBuf;
use std::sync::Arc;

use reprise_engine::CancelToken;
use xxhash_rust::xxh3::xxh3_128;

use crate::document::ReadOptions;
use crate::error::{Fault, LibraryError, system_words};
use crate::extract::picture;
use crate::index::rows::{self, estimated_tokens};
use crate::index::types::{DocumentId, State, StoredPassage};
use crate::{Document, Ocr, PASSAGE_TOKENS, split};

/// Larger files are not read.
const LIMIT_BYTES: u64 = 256 << 20;

/// A file to be read.
pub(super) struct Job {
    pub(super) id: DocumentId,
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) hash: Option<Vec<u8>>,
    pub(super) has_passages: bool,
    pub(super) password: Option<String>,
    /// Whether the person named this very file.
    pub(super) is_named: bool,
}

/// What came of it.
pub(super) enum Outcome {
    Stopped,
    Unchanged,
    Read {
        hash: [u8; 16],
        passages: Vec<StoredPassage>,
        notes: Vec<String>,
    },
    NoText {
        hash: Option<[u8; 16]>,
        state: State,
        trouble: String,
        needs_password: bool,
    },
}

/// Reads a file; scans and pictures where there are models for that.
pub(super) fn read(job: &Job, ocr: Option<&Arc<Ocr>>, cancel: &CancelToken) -> Outcome {
    let fails = |trouble: String| Outcome::NoText {
        hash: None,
        state: State::Failed,
        trouble,
        needs_password: false,
    };
    if job.bytes > LIMIT_BYTES {
        let fault = Fault::TooLarge {
            limit_mib: LIMIT_BYTES >> 20,
        };
        return fails(fault.to_string());
    }
    let bytes = match std::fs::read(&job.path) {
        Ok(bytes) => bytes,
        Err(error) => return fails(format!("it cannot be read: {}", system_words(&error))),
    };
    let hash = xxh3_128(&bytes).to_le_bytes();
    if job.has_passages && job.hash.as_deref() == Some(&hash) {
        return Outcome::Unchanged;
    }
    let mut options = ReadOptions::default()
        .with_cancel(cancel.clone())
        .with_ocr(ocr.cloned());
    if let Some(password) = &job.password {
        options = options.with_password(password.as_str());
    }
    match Document::from_bytes_with(&job.name, &bytes, &options) {
        Ok(mut document) => {
            document.path.clone_from(&job.path);
            let passages = split(&document, PASSAGE_TOKENS, &estimated_tokens);
            let passages = rows::numbered(job.id, passages);
            Outcome::Read {
                hash,
                passages,
                notes: document.notes,
            }
        }
        Err(_) if cancel.is_cancelled() => Outcome::Stopped,
        Err(LibraryError::Document { fault, .. }) => {
            // In a folder nobody asked for each picture and program to be read.
            let is_other = !job.is_named && is_no_document(&fault);
            Outcome::NoText {
                hash: Some(hash),
                state: if is_other { State::Skipped } else { State::Failed },
                needs_password: asks_for_password(&fault),
                trouble: fault.to_string(),
            }
        }
        Err(error) => fails(error.to_string()),
    }
}

/// Whether a file is of a kind that folders have beside documents.
fn is_no_document(fault: &Fault) -> bool {
    match fault {
        Fault::UnknownKind { .. } | Fault::NothingRecognised => true,
        Fault::NeedsOcr { what } => what == picture::KIND,
        _ => false,
    }
}

/// Whether a password would help.
fn asks_for_password(fault: &Fault) -> bool {
    matches!(fault, Fault::PasswordNeeded | Fault::WrongPassword)
}
