//! Text out of files: tells the kind of a file and hands it to the reader for that kind.

pub(crate) mod draft;
mod html;
mod pdf;
mod text;

use crate::document::{Document, Format, ReadOptions};
use crate::error::Fault;

/// The kinds that are read, as error messages name them.
pub(crate) const KNOWN_KINDS: &str = "PDF, HTML, Markdown, plain text";

/// How far into a file its PDF header may stand.
const PDF_HEADER_WITHIN_BYTES: usize = 1024;

/// Files that start with these bytes are not text, whatever their name says.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "a zip archive"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"GGUF", "a model file (use it with -m)"),
    (b"{\\rtf", "a rich text document"),
    (b"\x7fELF", "a program"),
];

/// Office and e-book files are zip archives; the extension tells which.
const ARCHIVES: &[(&str, &str)] = &[
    ("docx", "a Word document (save it as PDF)"),
    ("xlsx", "a spreadsheet (save it as CSV)"),
    ("pptx", "a slide deck (save it as PDF)"),
    ("odt", "an OpenDocument text (save it as PDF)"),
    ("ods", "an OpenDocument spreadsheet (save it as CSV)"),
    ("odp", "an OpenDocument slide deck (save it as PDF)"),
    ("epub", "an e-book (save it as PDF)"),
];

pub(crate) fn extract(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Document, Fault> {
    if bytes.is_empty() {
        return Err(Fault::Empty);
    }
    let extension = name
        .rsplit_once('.')
        .map(|(_, end)| end.to_ascii_lowercase())
        .unwrap_or_default();
    let head = &bytes[..bytes.len().min(PDF_HEADER_WITHIN_BYTES)];
    let (format, draft) = if head.windows(5).any(|window| window == b"%PDF-") {
        (Format::Pdf, pdf::read(bytes, options)?)
    } else {
        if let Some((_, kind)) = SIGNATURES
            .iter()
            .find(|(signature, _)| bytes.starts_with(signature))
        {
            let archive = ARCHIVES
                .iter()
                .find(|(end, _)| *end == extension)
                .map(|(_, kind)| kind);
            return Err(Fault::UnknownKind {
                kind: archive.unwrap_or(kind).to_string(),
            });
        }
        if extension == "pdf" {
            return Err(Fault::BrokenPdf("it does not start like a PDF".into()));
        }
        let decoded = text::decode(bytes).ok_or_else(|| Fault::UnknownKind {
            kind: "a binary file".into(),
        })?;
        let text = decoded.text;
        let (format, mut draft) =
            if matches!(extension.as_str(), "html" | "htm" | "xhtml") || html::looks_like(&text) {
                (Format::Html, html::read(&text)?)
            } else if matches!(extension.as_str(), "md" | "markdown") {
                (Format::Markdown, text::read(text, text::Style::Markdown)?)
            } else {
                (Format::Text, text::read(text, text::Style::Plain)?)
            };
        if let Some(note) = decoded.note {
            draft.note(note);
        }
        (format, draft)
    };
    draft.finish(name, format)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract(name: &str, bytes: &[u8]) -> Result<Document, Fault> {
        super::extract(name, bytes, &ReadOptions::default())
    }

    #[test]
    fn content_decides_the_kind_before_the_extension_does() {
        let html = extract("page.txt", b"<!DOCTYPE html><p>Hello</p>").unwrap();
        assert_eq!(html.format, Format::Html);
        assert_eq!(
            extract("notes.txt", b"# not a heading here").unwrap().format,
            Format::Text
        );
        assert_eq!(
            extract("notes.md", b"# a heading").unwrap().format,
            Format::Markdown
        );
    }

    #[test]
    fn files_that_are_not_text_are_named_with_the_kinds_that_are() {
        for (name, bytes, expected) in [
            ("letter.docx", &b"PK\x03\x04rest"[..], "a Word document"),
            ("backup.zip", b"PK\x03\x04rest", "a zip archive"),
            ("photo.txt", b"\x89PNG\r\n", "a PNG picture"),
            ("data.bin", b"abc\0def\0ghi\0", "a binary file"),
        ] {
            let message = extract(name, bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(
                message.contains("known kinds: PDF, HTML, Markdown, plain text"),
                "{message}"
            );
        }
        assert!(matches!(extract("a.pdf", b"hello"), Err(Fault::BrokenPdf(_))));
    }

    #[test]
    fn a_document_of_nothing_is_said_to_be_empty() {
        for (name, bytes) in [
            ("a.txt", &b""[..]),
            ("b.md", b" \n\n\t\n"),
            ("c.html", b"<html><script>x()</script></html>"),
        ] {
            assert_eq!(extract(name, bytes).unwrap_err(), Fault::Empty, "{name}");
        }
    }
}
