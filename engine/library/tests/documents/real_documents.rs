//! Real documents of many kinds, kept outside the repository in `REPRISE_TEST_DATA` (default `../shared/data` beside it): what each
//! gives, as `docs/documents.md` tells it.

use std::path::PathBuf;
use std::sync::Arc;

use reprise_library::models::Shelf;
use reprise_library::{
    Document, Fault, Format, LibraryError, Ocr, PASSAGE_CHARACTERS, PASSAGE_TOKENS, ReadOptions, select,
    split,
};

/// What a document gives.
enum Gives {
    /// Text of this kind with these words in it.
    Text(Format, &'static [&'static str]),
    /// The same, recognised in pictures; without the models for that, the word that it needs them.
    Recognised(Format, &'static [&'static str]),
    /// A refusal with these words in it.
    Refusal(&'static str),
}

use Format::{Epub, Html, Markdown, Pdf, Picture, Sheets, Slides, Word};
use Gives::{Recognised, Refusal, Text};

const DOCUMENTS: &[(&str, Gives)] = &[
    ("broken_helloworld_bad.pdf", Text(Pdf, &["Hello, world!"])),
    (
        "broken_zen_of_python.pdf",
        Text(Pdf, &["Beautiful is better than ugly", "Namespaces"]),
    ),
    ("cjk_vertical_japanese.pdf", Recognised(Pdf, &["日本語"])),
    ("empty_page.pdf", Refusal("no text")),
    (
        "enc_aes256_crazyones_pw-password.pdf",
        Refusal("needs a password"),
    ),
    ("enc_r3_emptypw.pdf", Text(Pdf, &["pdf encryption test"])),
    (
        "epub_test.epub",
        Text(Epub, &["This is a blockquote for testing."]),
    ),
    ("form_libreoffice.pdf", Text(Pdf, &["Example for a Form"])),
    ("html_blog.html", Text(Html, &["What's New in AutoGen?"])),
    ("image_test_llm.jpg", Recognised(Picture, &["5bda1dd6", "below:"])),
    ("markdown_docling_readme.md", Text(Markdown, &["Docling"])),
    (
        "rtl_arabic_cid.pdf",
        Text(Pdf, &["\u{627}\u{644}\u{639}\u{631}\u{628}\u{64a}\u{629}"]),
    ),
    (
        SCAN,
        Recognised(
            Pdf,
            &[
                "COMPREHENSIVE MEDICAL REPORT",
                "persistent headaches",
                "Oxygen Saturation",
            ],
        ),
    ),
    (
        "sheet_test.xlsx",
        Text(Sheets, &["Alpha | Beta | Gamma | Delta", "13 | 14 | 15"]),
    ),
    (
        "slides_test.pptx",
        Text(Slides, &["Qingyun Wu", "2cdda5c8-e50e-4db4-b5f0-9722a649f455"]),
    ),
    (
        "twocolumn_tracemonkey.pdf",
        Text(
            Pdf,
            &["Trace-based Just-in-Time Type Specialization", "blacklist"],
        ),
    ),
    (
        "typical_invoice_multipage_tables.pdf",
        Text(Pdf, &["Gabriel Diaz", "SF-1008"]),
    ),
    (
        "typical_long_techreport_geobase.pdf",
        Text(Pdf, &["National Hydro Network"]),
    ),
    ("typical_paper_autogen.pdf", Text(Pdf, &["Large language models"])),
    (
        "typical_short_crazyones.pdf",
        Text(Pdf, &["The misfits", "The Crazy Ones"]),
    ),
    (
        "word_numbered_headings.docx",
        Text(Word, &["Appendix A: Glossary", "REFERENCES"]),
    ),
    ("word_test.docx", Text(Word, &["Qingyun Wu", "Abstract"])),
];

/// Its three pages take too long for a quick test.
const SCAN: &str = "scanned_no_text_medical_report.pdf";

fn documents() -> Option<PathBuf> {
    let data = std::env::var_os("REPRISE_TEST_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let folder = data.join("documents");
    if !folder.is_dir() {
        eprintln!(
            "skipped: no test documents at {} (set REPRISE_TEST_DATA)",
            folder.display()
        );
        return None;
    }
    Some(folder)
}

/// Checks a text and its passages against what is expected of it.
fn check(name: &str, document: &Document, format: Format, words: &[&str]) {
    assert_eq!(document.format, format, "{name}");
    let text = document.text().replace('\n', " ");
    for word in words {
        assert!(text.contains(word), "{name} has no {word:?} in: {:.3000}", text);
    }
    let count = |text: &str| text.len().div_ceil(4);
    let passages = split(document, PASSAGE_TOKENS, &count);
    assert!(!passages.is_empty(), "{name}");
    for passage in passages {
        assert_eq!(&document.text()[passage.range.clone()], passage.text, "{name}");
        assert!(passage.text.chars().count() <= PASSAGE_CHARACTERS, "{name}");
        assert!(passage.tokens <= 256, "{name}: {}", passage.rendered());
        assert!(!passage.is_ocr || document.has_ocr(), "{name}");
    }
}

#[test]
fn every_document_gives_its_text_or_the_right_refusal() {
    let Some(folder) = documents() else { return };
    let ocr = Ocr::on(&Shelf::of_machine().unwrap()).map(Arc::new);
    if ocr.is_none() {
        eprintln!(
            "the models for text recognition are not here; what is said then is tested (reprise models fetch ocr)"
        );
    }
    let options = ReadOptions::default().with_ocr(ocr.clone());
    for (name, gives) in DOCUMENTS.iter().filter(|(name, _)| *name != SCAN) {
        let read = Document::open_with(&folder.join(name), &options);
        match gives {
            Recognised(..) if ocr.is_none() => {
                let refused = read.unwrap_err().to_string();
                assert!(refused.contains("reprise models fetch ocr"), "{refused}");
            }
            Text(format, words) => {
                let document = read.unwrap_or_else(|error| panic!("{error}"));
                assert!(!document.has_ocr(), "{name}");
                check(name, &document, *format, words);
            }
            Recognised(format, words) => {
                let document = read.unwrap_or_else(|error| panic!("{error}"));
                assert!(document.has_ocr(), "{name}");
                check(name, &document, *format, words);
            }
            Refusal(words) => {
                let refused = read.map(|document| document.text().to_string()).unwrap_err();
                assert!(refused.to_string().contains(words), "{refused}");
            }
        }
    }
    for entry in folder.read_dir().unwrap() {
        let name = entry.unwrap().file_name();
        assert!(
            DOCUMENTS.iter().any(|(known, _)| name.to_str() == Some(known)),
            "{} is not in the table",
            name.display()
        );
    }
}

#[test]
fn a_scan_is_recognised_as_one_without_its_models() {
    let Some(folder) = documents() else { return };
    let refused = Document::open(&folder.join(SCAN)).unwrap_err().to_string();
    assert!(
        refused.contains("a scan: 3 of its 3 page(s) are pictures"),
        "{refused}"
    );
}

#[test]
#[ignore = "half a minute without optimisation"]
fn a_scan_gives_the_text_of_its_pages() {
    let Some(folder) = documents() else { return };
    let ocr = Ocr::on(&Shelf::of_machine().unwrap()).map(Arc::new);
    assert!(ocr.is_some(), "reprise models fetch ocr");
    let read = Document::open_with(&folder.join(SCAN), &ReadOptions::default().with_ocr(ocr));
    for (name, gives) in DOCUMENTS.iter().filter(|(name, _)| *name == SCAN) {
        let Recognised(format, words) = gives else {
            panic!()
        };
        check(name, read.as_ref().unwrap(), *format, words);
    }
}

#[test]
fn an_encrypted_pdf_opens_with_its_password() {
    let Some(folder) = documents() else { return };
    let open = |password: &str| {
        let options = ReadOptions::default().with_password(password);
        Document::open_with(&folder.join("enc_aes256_crazyones_pw-password.pdf"), &options)
    };
    assert!(open("password").unwrap().text().contains("The Crazy Ones"));
    assert!(matches!(
        open("another"),
        Err(LibraryError::Document {
            fault: Fault::WrongPassword,
            ..
        })
    ));
}

#[test]
fn a_question_finds_its_page_in_a_long_paper() {
    let Some(folder) = documents() else { return };
    let document = Document::open(&folder.join("twocolumn_tracemonkey.pdf")).unwrap();
    let count = |text: &str| text.len().div_ceil(4);
    let passages = split(&document, PASSAGE_TOKENS, &count);
    let selection = select("When is a loop blacklisted?", &passages, 1500, &count).unwrap();
    assert!(selection.tokens() <= 1500 && !selection.is_everything());
    assert!(
        selection
            .used()
            .iter()
            .any(|passage| passage.text.to_lowercase().contains("blacklist"))
    );
}
