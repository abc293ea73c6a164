//! A document: the text of a file as blocks (paragraphs, list runs, code fences, headings) that know where they stand.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Fault, LibraryError};
use crate::extract;

/// Larger files are refused: a person would wait for minutes and no window holds them.
const LIMIT_BYTES: u64 = 256 << 20;

/// The kinds of file that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Portable Document Format.
    Pdf,
    /// Markdown, kept as it is.
    Markdown,
    /// HTML, rendered to text.
    Html,
    /// Plain text.
    Text,
}

/// Where a stretch of text stands in its document; both ends are counted from 1 and included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Pages of a PDF.
    Pages {
        /// First page.
        first: usize,
        /// Last page.
        last: usize,
    },
    /// Lines of a text file.
    Lines {
        /// First line.
        first: usize,
        /// Last line.
        last: usize,
    },
    /// Paragraphs of a web page, which has neither pages nor lines a person sees.
    Paragraphs {
        /// First paragraph.
        first: usize,
        /// Last paragraph.
        last: usize,
    },
}

impl Place {
    /// The place from the start of this one to the end of a later one of the same kind.
    pub(crate) fn through(self, later: Place) -> Place {
        match (self, later) {
            (Place::Pages { first, .. }, Place::Pages { last, .. }) => Place::Pages { first, last },
            (Place::Lines { first, .. }, Place::Lines { last, .. }) => Place::Lines { first, last },
            (Place::Paragraphs { first, .. }, Place::Paragraphs { last, .. }) => {
                Place::Paragraphs { first, last }
            }
            _ => self,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, first, last) = match *self {
            Place::Pages { first, last } => ("page", first, last),
            Place::Lines { first, last } => ("line", first, last),
            Place::Paragraphs { first, last } => ("paragraph", first, last),
        };
        if first == last {
            write!(out, "{one} {first}")
        } else {
            write!(out, "{one}s {first}-{last}")
        }
    }
}

/// A paragraph or another piece of text that belongs together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The text, without blank lines around it.
    pub text: String,
    /// Where it stands.
    pub place: Place,
    /// The heading it stands under.
    pub heading: Option<String>,
    /// Whether it is that heading itself.
    pub is_heading: bool,
}

/// The text of one file.
#[derive(Debug, Clone)]
pub struct Document {
    /// The file's name, without its folder.
    pub name: String,
    /// What kind of file it was.
    pub format: Format,
    /// Its text in reading order; never empty.
    pub blocks: Vec<Block>,
    /// What a person should know about how it was read, one sentence each.
    pub notes: Vec<String>,
}

impl Document {
    /// Reads a file. What kind it is, its content decides; its extension only where the content leaves it open.
    pub fn open(path: &Path) -> Result<Document, LibraryError> {
        let read = |source| LibraryError::Read {
            path: path.to_path_buf(),
            source,
        };
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned();
        let file = File::open(path).map_err(read)?;
        let metadata = file.metadata().map_err(read)?;
        if metadata.is_dir() {
            return Err(read(std::io::Error::other(
                "this is a folder; name the files in it",
            )));
        }
        // Bounded while reading, so that a device or a growing file cannot fill the memory.
        let mut bytes = Vec::new();
        file.take(LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(read)?;
        if bytes.len() as u64 > LIMIT_BYTES {
            let size_mib = metadata.len().max(bytes.len() as u64) >> 20;
            let fault = Fault::TooLarge {
                size_mib,
                limit_mib: LIMIT_BYTES >> 20,
            };
            return Err(LibraryError::Document { name, fault });
        }
        Document::from_bytes(&name, &bytes)
    }

    /// Reads a document that is in memory already; the name's extension helps to tell its kind.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Document, LibraryError> {
        extract::extract(name, bytes).map_err(|fault| LibraryError::Document {
            name: name.to_string(),
            fault,
        })
    }
}
