//! What can go wrong with a document. Each message says what, where, and what to do.

use std::path::PathBuf;

/// What brings the models for text recognition. What is said of documents that lack them has these words in it.
pub(crate) const GET_OCR: &str = "reprise models fetch ocr";

/// Why a document cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The file cannot be opened or read.
    #[error("cannot read {}: {}", path.display(), system_words(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file was read, but there is no text to be had from it.
    #[error("{name}: {fault}")]
    Document {
        /// The document's name.
        name: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The keyword index failed.
    #[error("the keyword index failed: {0}; this is a fault in Reprise, not in the document")]
    Index(#[from] tantivy::TantivyError),
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing in it.
    #[error("the document is empty; there is nothing to ask about")]
    Empty,
    /// A file locked by a password.
    #[error("the file is encrypted and needs a password; give it, or save a copy without one and use that")]
    PasswordNeeded,
    /// A file locked by another password.
    #[error("the file is encrypted, and the password given is not the one that opens it; try again")]
    WrongPassword,
    /// A PDF of blank pages.
    #[error("no text can be read on its {pages} page(s): they are empty; use another file")]
    NoText {
        /// Pages it has.
        pages: usize,
    },
    /// A PDF the reader cannot follow.
    #[error(
        "this PDF is broken or cut short ({0}); open it in a PDF viewer and save or print it to a new PDF"
    )]
    BrokenPdf(String),
    /// A file that takes too long.
    #[error(
        "reading it took longer than {seconds} s and was given up; save what you need of it as a file of its own"
    )]
    TooSlow {
        /// The limit.
        seconds: u64,
    },
    /// HTML the reader cannot follow.
    #[error("this HTML cannot be read ({0}); save the page as text and use that")]
    BrokenHtml(String),
    /// A kind of file that is not read.
    #[error("this is {kind}, which cannot be read; known kinds: {known}", known = crate::extract::KNOWN_KINDS)]
    UnknownKind {
        /// What it looks like, with its article.
        kind: String,
    },
    /// Somebody asked to stop.
    #[error("reading was cancelled")]
    Cancelled,
    /// More text than is read.
    #[error(
        "it has more than {limit_mib} MiB of text or {limit_paragraphs} paragraphs, which is all that is read of one \
         document; split it"
    )]
    TooMuchText {
        /// The limit of text.
        limit_mib: usize,
        /// The limit of paragraphs.
        limit_paragraphs: usize,
    },
    /// An archive or a stream that unpacks to more than any document needs.
    #[error(
        "it unpacks to more than {limit_mib} MiB, as files made to do harm do; save what you need of it as a file of its \
         own"
    )]
    UnpacksTooLarge {
        /// The limit.
        limit_mib: u64,
    },
    /// A file that its reader cannot follow.
    #[error(
        "this is {kind}, but it is broken or cut short ({why}); open it in its own program and save it again"
    )]
    Broken {
        /// What it should be, with its article.
        kind: String,
        /// What is wrong with it.
        why: String,
    },
    /// An e-book that only its shop's program opens.
    #[error("this e-book is protected by its shop (DRM) and cannot be read; use a copy without protection")]
    Protected,
    /// A scan or a picture, and no models to recognise its text with.
    #[error(
        "this is {what}, and has no text by itself; to have its text recognised (OCR), get the models for that with: \
         {GET_OCR}"
    )]
    NeedsOcr {
        /// What it is, with its article.
        what: String,
    },
    /// A picture in which no text was found.
    #[error("no text was recognised in this picture; if it has some, use a larger or sharper one")]
    NothingRecognised,
    /// The recognition models do not work.
    #[error("the models for text recognition (OCR) cannot be used ({0}); get them again with: {GET_OCR}")]
    OcrModels(String),
    /// Larger than the limit.
    #[error("the file is larger than the {limit_mib} MiB that are read; split it")]
    TooLarge {
        /// The limit.
        limit_mib: u64,
    },
}

/// The system's words without its error number, and what to do where that is plain.
pub fn system_words(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return "no space left on the disk; free some space and try again".into();
    }
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_string(),
        None => text,
    }
}
