//! A document: the text of a file, and the blocks in it (paragraphs, rows, code, headings) that know where they stand.
//!
//! A document's text is fixed once it is read: blocks and passages are byte ranges of it, so that whatever is found later can be
//! shown in its place.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reprise_engine::CancelToken;
use serde::{Deserialize, Serialize};

#[cfg(feature = "bindings")]
use ts_rs::TS;

use crate::error::{Fault, LibraryError};
use crate::extract;
use crate::ocr::Ocr;
use crate::place::Place;

/// Larger files are refused: a person would wait for minutes and no window holds them.
const LIMIT_BYTES: u64 = 256 << 20;

/// The kinds of file that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "bindings", derive(TS))]
#[non_exhaustive]
pub enum Format {
    /// Portable Document Format.
    Pdf,
    /// Markdown, kept as it is.
    Markdown,
    /// HTML, rendered to text.
    Html,
    /// Plain text.
    Text,
    /// Source code and configuration files, kept as they are.
    Code,
    /// A table of values separated by commas, semicolons or tabs.
    Csv,
    /// A Word document (docx).
    Word,
    /// A PowerPoint presentation (pptx).
    Slides,
    /// An Excel workbook (xlsx, xlsm, xlsb).
    Sheets,
    /// An e-book (EPUB).
    Epub,
    /// A mail (eml).
    Mail,
    /// A picture, whose text is recognised.
    Picture,
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Format::Pdf => "PDF",
            Format::Markdown => "Markdown",
            Format::Html => "HTML",
            Format::Text => "text",
            Format::Code => "code",
            Format::Csv => "CSV",
            Format::Word => "Word document",
            Format::Slides => "slides",
            Format::Sheets => "workbook",
            Format::Epub => "e-book",
            Format::Mail => "mail",
            Format::Picture => "picture",
        })
    }
}

/// A paragraph or another piece of text that belongs together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its bytes in [`Document::text`], without blank lines around it.
    pub range: Range<usize>,
    /// Where it stands.
    pub place: Place,
    /// The headings it stands under, the outermost first; of a row the last one is the table's first row. A heading
    /// stands under itself.
    pub headings: Vec<String>,
    /// Whether it is a heading.
    pub is_heading: bool,
    /// Whether it was recognised in a picture, and may have wrong letters.
    pub is_ocr: bool,
}

/// How to read a file.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Opens encrypted files.
    pub password: Option<String>,
    /// Gives up when someone asks.
    pub cancel: CancelToken,
    /// Recognises the text of scans and pictures, which are refused without it.
    pub ocr: Option<Arc<Ocr>>,
}

impl ReadOptions {
    /// The same with a password.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> ReadOptions {
        self.password = Some(password.into());
        self
    }

    /// The same with a token that stops the reading.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancelToken) -> ReadOptions {
        self.cancel = cancel;
        self
    }

    /// The same with models that recognise the text of scans and pictures; without any they are refused.
    #[must_use]
    pub fn with_ocr(mut self, ocr: Option<Arc<Ocr>>) -> ReadOptions {
        self.ocr = ocr;
        self
    }

    /// [`Fault::Cancelled`] when someone asked to stop.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.cancel.is_cancelled() {
            Err(Fault::Cancelled)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for ReadOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The password does not belong in a log.
        out.debug_struct("ReadOptions")
            .field("has_password", &self.password.is_some())
            .field("ocr", &self.ocr)
            .finish_non_exhaustive()
    }
}

/// The text of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The file's name, without its folder.
    pub name: String,
    /// The file's whole path; the name of what was no file.
    pub path: PathBuf,
    /// What kind of file it was.
    pub format: Format,
    /// What a person should know about how it was read, one sentence each.
    pub notes: Vec<String>,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

impl Document {
    /// Reads a file. What kind it is, its content decides; its extension only where the content leaves it open.
    ///
    /// # Errors
    /// When the file cannot be read, or there is no text to be had from it.
    pub fn open(path: &Path) -> Result<Document, LibraryError> {
        Document::open_with(path, &ReadOptions::default())
    }

    /// Reads a file that may need a password or take long.
    ///
    /// # Errors
    /// When the file cannot be read, or there is no text to be had from it.
    pub fn open_with(path: &Path, options: &ReadOptions) -> Result<Document, LibraryError> {
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
            let fault = Fault::TooLarge {
                limit_mib: LIMIT_BYTES >> 20,
            };
            return Err(LibraryError::Document { name, fault });
        }
        let document = Document::read(&name, bytes, options)?;
        let path = path
            .canonicalize()
            .or_else(|_| std::path::absolute(path))
            .map_err(read)?;
        Ok(Document { path, ..document })
    }

    /// Reads a document that is in memory already; the name's extension helps to tell its kind.
    ///
    /// # Errors
    /// When there is no text to be had from it.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Document, LibraryError> {
        Document::from_bytes_with(name, bytes, &ReadOptions::default())
    }

    /// Reads a document that is in memory already and may need a password or take long.
    ///
    /// # Errors
    /// When there is no text to be had from it.
    pub fn from_bytes_with(
        name: &str,
        bytes: &[u8],
        options: &ReadOptions,
    ) -> Result<Document, LibraryError> {
        Document::read(name, bytes.to_vec(), options)
    }

    fn read(name: &str, bytes: Vec<u8>, options: &ReadOptions) -> Result<Document, LibraryError> {
        extract::extract(name, bytes, options).map_err(|fault| LibraryError::Document {
            name: name.to_string(),
            fault,
        })
    }

    /// The whole text, never empty: what blocks and passages are ranges of. A text file's is the file's own, with its line
    /// ends made one character each.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The blocks in reading order; never none.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// A block's text.
    pub fn text_of(&self, block: &Block) -> &str {
        self.text.get(block.range.clone()).unwrap_or_default()
    }

    /// Whether any of it was recognised in pictures.
    pub fn has_ocr(&self) -> bool {
        self.blocks.iter().any(|block| block.is_ocr)
    }
}
