//! What the index tells of: sources, documents, passages, and how far it is.

use std::fmt;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use reprise_engine::Owner;
use serde::{Deserialize, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use crate::Passage;

/// The kind of owner that documents' chunks have.
pub const DOCUMENT_OWNER: &str = "document";
/// Characters of a file's name in an owner's.
const OWNER_NAME_CHARACTERS: usize = 60;

/// A file or folder that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct SourceId(pub i64);

/// A file. The number is made of its path, so that it is the same in every index. It is written as 16 digits, because a
/// page in the window has no numbers that large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentId(pub i64);

/// A passage. The number is made of its document and its content: it stays when something else in the file changes.
/// It is written like a document's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PassageId(pub i64);

/// Numbers as 16 hexadecimal digits.
macro_rules! written_in_digits {
    ($($id:ident),*) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{:016x}", self.0)
            }
        }

        impl FromStr for $id {
            type Err = ParseIntError;

            fn from_str(digits: &str) -> Result<$id, ParseIntError> {
                i64::from_str_radix(digits, 16).map($id)
            }
        }

        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    )*};
}

written_in_digits!(DocumentId, PassageId);

impl DocumentId {
    /// Of the file at this path.
    pub fn of(path: &Path) -> DocumentId {
        DocumentId((xxh3_64(path.as_os_str().as_encoded_bytes()) >> 1) as i64)
    }

    /// Who owns what is kept of a document's text: the file's name, so that a person knows it, and its number, because
    /// names repeat.
    pub fn owner(self, name: &str) -> Option<Owner> {
        Owner::new(DOCUMENT_OWNER, format!("{}#{self}", owner_name(name))).ok()
    }

    /// The file's name and number in the name of such an owner.
    pub fn of_owner(name: &str) -> Option<(&str, DocumentId)> {
        let (name, number) = name.rsplit_once('#')?;
        Some((name, number.parse().ok()?))
    }

    /// Whether an owner of this name is a file of that name, whatever its number.
    pub fn is_owner_called(owner: &str, file: &str) -> bool {
        DocumentId::of_owner(owner).is_some_and(|(name, _)| name == owner_name(file))
    }
}

/// A file's name as owners have it: long ones are cut.
fn owner_name(file: &str) -> String {
    file.chars().take(OWNER_NAME_CHARACTERS).collect()
}

/// A file or folder that was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Its number.
    pub id: SourceId,
    /// Where it is.
    pub path: PathBuf,
    /// Whether everything in it counts.
    pub is_folder: bool,
    /// Documents found in it.
    pub documents: usize,
    /// Whether it was there when last looked at: a drive may be unplugged.
    pub is_there: bool,
}

/// How far a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(rename = "DocumentState"))]
pub enum State {
    /// To be read, or read again.
    Waiting,
    /// Its passages can be found.
    Ready,
    /// There is no text to be had from it; the trouble says why.
    Failed,
    /// A file of a kind that is not read, found in a folder.
    Skipped,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Ready => "ready",
            State::Failed => "failed",
            State::Skipped => "skipped",
        }
    }

    pub(super) fn from_word(word: &str) -> State {
        match word {
            "ready" => State::Ready,
            "failed" => State::Failed,
            "skipped" => State::Skipped,
            _ => State::Waiting,
        }
    }
}

/// A file of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexedDocument {
    /// Its number.
    pub id: DocumentId,
    /// What it came with.
    pub source: SourceId,
    /// Where it is.
    pub path: PathBuf,
    /// Its name without folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// How far it is.
    pub state: State,
    /// Why there is no text, and what to do.
    pub trouble: Option<String>,
    /// Whether [`super::Index::unlock`] would help.
    pub needs_password: bool,
    /// What a person should know about how it was read.
    pub notes: Vec<String>,
    /// Passages it has.
    pub passages: usize,
}

/// A passage of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPassage {
    /// Its number.
    pub id: PassageId,
    /// Its document.
    pub document: DocumentId,
    /// Which passage of the document it is, counted from 0.
    pub number: usize,
    /// The passage itself. Its tokens are an estimate; who has a model counts anew.
    pub passage: Passage,
}

/// Whether passages are found by what they mean, beside by their words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Meaning {
    /// Yes.
    Ready,
    /// The model for it is not here: by words only. The text says how to get it.
    Missing {
        /// What to do.
        what_to_do: String,
    },
    /// The model for it cannot be used: by words only.
    Broken {
        /// Why, and what to do.
        why: String,
    },
}

impl Meaning {
    /// Why passages are found by words only, and what to do; none where meaning is looked at.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Meaning::Ready => None,
            Meaning::Missing { what_to_do: why } | Meaning::Broken { why } => Some(why),
        }
    }
}

/// How far the index is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// What was added.
    pub sources: Vec<Source>,
    /// Documents to be read.
    pub waiting: usize,
    /// Documents whose passages can be found.
    pub ready: usize,
    /// Documents without text.
    pub failed: usize,
    /// Files in folders of kinds that are not read.
    pub skipped: usize,
    /// Passages.
    pub passages: usize,
    /// Passages without a vector yet: found by their words only.
    pub without_vector: usize,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether passages are found by what they mean.
    pub meaning: Meaning,
}

/// What a removal took away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// Documents that are gone from the index.
    pub documents: usize,
    /// Owners whose chunks of keys and values are to be erased as well.
    pub owners: Vec<Owner>,
}
