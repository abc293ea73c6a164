//! Text out of files: tells the kind of a file by its content and hands it to the reader for that kind.

mod archive;
pub(crate) mod draft;
mod epub;
mod guard;
mod html;
mod mail;
mod ole;
mod pdf;
pub(crate) mod picture;
mod sheets;
mod slides;
mod table;
mod text;
mod word;
mod xml;

use std::sync::Arc;

use crate::document::{Document, Format, ReadOptions};
use crate::error::Fault;
use archive::Archive;
use draft::Draft;
use guard::{LIMIT, Watch, guarded};

/// The kinds that are read, as error messages name them.
pub(crate) const KNOWN_KINDS: &str = "PDF, HTML, Markdown, plain text, source code, CSV, Word (docx), PowerPoint (pptx), \
    Excel (xlsx), e-books (EPUB), mail (eml), pictures";

/// How far into a file its PDF header may stand.
const PDF_HEADER_WITHIN_BYTES: usize = 1024;

const ZIP: &[u8] = b"PK\x03\x04";

/// Files that start with these bytes are not text, whatever their name says.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"GGUF", "a model file (use it with -m)"),
    (b"{\\rtf", "a rich text document (save it as docx or PDF)"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "a database"),
];

/// What begins like a box of ISO media: photos of some phones, and films.
const MEDIA_BOX: &[u8] = b"ftyp";

/// Extensions of files that are source code or are read like it.
const CODE: &[&str] = &[
    "bash", "bat", "c", "cc", "cfg", "clj", "cpp", "cs", "css", "cxx", "dart", "diff", "ex", "exs", "f90",
    "fs", "go", "gradle", "h", "hpp", "hs", "ini", "java", "jl", "js", "json", "jsx", "kt", "lua", "m", "ml",
    "nix", "patch", "php", "pl", "proto", "ps1", "py", "r", "rb", "rs", "scala", "scss", "sh", "sql",
    "svelte", "swift", "tf", "toml", "ts", "tsx", "vue", "xml", "yaml", "yml", "zig", "zsh",
];

pub(crate) fn extract(name: &str, bytes: Vec<u8>, options: &ReadOptions) -> Result<Document, Fault> {
    options.check()?;
    if bytes.is_empty() {
        return Err(Fault::Empty);
    }
    let extension = name
        .rsplit_once('.')
        .map(|(_, end)| end.to_ascii_lowercase())
        .unwrap_or_default();
    let bytes = Arc::new(bytes);
    let (format, draft) = read(&extension, bytes, options)?;
    draft.finish(name, format)
}

fn read(extension: &str, bytes: Arc<Vec<u8>>, options: &ReadOptions) -> Result<(Format, Draft), Fault> {
    let watch = Watch::new(options, LIMIT);
    let head = &bytes[..bytes.len().min(PDF_HEADER_WITHIN_BYTES)];
    if bytes.starts_with(ole::SIGNATURE) {
        let opened = guarded("an Office file", bytes, watch.clone(), |bytes, watch| {
            ole::decrypted(bytes, watch)
        })?;
        return read_archive(extension, Arc::new(opened), watch);
    }
    if bytes.starts_with(ZIP) {
        return read_archive(extension, bytes, watch);
    }
    if head.windows(5).any(|window| window == b"%PDF-") {
        return Ok((Format::Pdf, pdf::read(&bytes, options)?));
    }
    if picture::looks_like(&bytes) {
        return Ok((Format::Picture, picture::read(&bytes, options)?));
    }
    let signature = SIGNATURES
        .iter()
        .find(|(signature, _)| bytes.starts_with(signature));
    if let Some((_, kind)) = signature {
        return Err(unknown(kind));
    }
    if bytes.get(4..8) == Some(MEDIA_BOX) {
        return Err(unknown("a film, or a photo in a newer format (save it as JPEG)"));
    }
    if extension == "pdf" {
        return Err(Fault::BrokenPdf("it does not start like a PDF".into()));
    }
    let extension = extension.to_string();
    guarded("a text file", bytes, watch, move |bytes, watch| {
        read_text(&extension, bytes, watch)
    })
}

/// Text of all kinds: what it is, its beginning says, and its extension where that leaves it open.
fn read_text(extension: &str, bytes: &[u8], watch: &Watch) -> Result<(Format, Draft), Fault> {
    let decoded = text::decode(bytes).ok_or_else(|| unknown("a binary file"))?;
    let text = decoded.text;
    let (format, mut draft) = if matches!(extension, "html" | "htm" | "xhtml") || html::looks_like(&text) {
        (Format::Html, html::read(&text)?)
    } else if extension == "eml" || mail::looks_like(&text) {
        return Ok((Format::Mail, mail::read(bytes, watch)?));
    } else if matches!(extension, "csv" | "tsv") {
        (Format::Csv, table::read_csv(&text, watch)?)
    } else if matches!(extension, "md" | "markdown") {
        (Format::Markdown, text::read(text, text::Style::Markdown)?)
    } else if CODE.contains(&extension) {
        (Format::Code, text::read(text, text::Style::Plain)?)
    } else {
        (Format::Text, text::read(text, text::Style::Plain)?)
    };
    if let Some(note) = decoded.note {
        draft.note(note);
    }
    Ok((format, draft))
}

/// Office files and e-books: what is inside the archive tells which.
fn read_archive(extension: &str, bytes: Arc<Vec<u8>>, watch: Watch) -> Result<(Format, Draft), Fault> {
    let kind = match extension {
        "docx" => word::KIND,
        "pptx" => slides::KIND,
        "xlsx" | "xlsm" | "xlsb" => sheets::KIND,
        "epub" => epub::KIND,
        _ => "a zip archive",
    };
    guarded(kind, bytes, watch, move |bytes, watch| {
        let mut archive = Archive::open(bytes, kind)?;
        if archive.has("word/document.xml") {
            Ok((Format::Word, word::read(archive, watch)?))
        } else if archive.has("ppt/presentation.xml") {
            Ok((Format::Slides, slides::read(archive, watch)?))
        } else if archive.has("xl/workbook.xml") {
            Ok((Format::Sheets, sheets::read(bytes, false, watch)?))
        } else if archive.has("xl/workbook.bin") {
            Ok((Format::Sheets, sheets::read(bytes, true, watch)?))
        } else if archive.has("META-INF/container.xml") {
            Ok((Format::Epub, epub::read(archive, watch)?))
        } else {
            let told = archive.text("mimetype")?.unwrap_or_default();
            Err(
                match told.trim().strip_prefix("application/vnd.oasis.opendocument.") {
                    Some("text") => unknown("an OpenDocument text (save it as docx or PDF)"),
                    Some("spreadsheet") => unknown("an OpenDocument spreadsheet (save it as xlsx)"),
                    Some(_) => unknown("an OpenDocument file (save it as PDF)"),
                    None if kind == "a zip archive" => unknown(kind),
                    None => archive.broken("what it should be made of is not in it"),
                },
            )
        }
    })
}

fn unknown(kind: &str) -> Fault {
    Fault::UnknownKind { kind: kind.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract(name: &str, bytes: &[u8]) -> Result<Document, Fault> {
        super::extract(name, bytes.to_vec(), &ReadOptions::default())
    }

    #[test]
    fn content_decides_the_kind_before_the_extension_does() {
        for (name, bytes, format) in [
            ("page.txt", &b"<!DOCTYPE html><p>Hello</p>"[..], Format::Html),
            ("notes.txt", b"# not a heading here", Format::Text),
            ("notes.md", b"# a heading", Format::Markdown),
            ("main.rs", b"fn main() {}", Format::Code),
            ("list.csv", b"a,b\n1,2", Format::Csv),
            ("list.txt", b"a,b\n1,2", Format::Text),
            (
                "saved.txt",
                b"From: a@example.org\nTo: b@example.org\nDate: Mon, 1 Jan 2024 10:00:00 +0000\nSubject: Hi\n\nHello",
                Format::Mail,
            ),
        ] {
            assert_eq!(extract(name, bytes).unwrap().format, format, "{name}");
        }
    }

    #[test]
    fn files_that_are_not_text_are_named_with_the_kinds_that_are() {
        for (name, bytes, expected) in [
            (
                "backup.zip",
                &archive::tests::packed(&[("a.txt", b"x")])[..],
                "a zip archive",
            ),
            ("data.bin", b"abc\0def\0ghi\0", "a binary file"),
            ("photo.heic", b"\0\0\0\x18ftypheic", "save it as JPEG"),
            ("letter.rtf", b"{\\rtf1 x}", "a rich text document"),
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
