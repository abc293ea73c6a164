//! One small file of each kind: its text, its places, its headings, and passages that stand where they say.

use crate::made;
use reprise_library::{Document, Format, PASSAGE_CHARACTERS, PASSAGE_TOKENS, Place, ReadOptions, split};

fn read(name: &str, bytes: &[u8]) -> Document {
    Document::from_bytes(name, bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn blocks(document: &Document) -> Vec<(String, String, String)> {
    document
        .blocks()
        .iter()
        .map(|block| {
            (
                block.place.to_string(),
                block.headings.join(" > "),
                document.text_of(block).to_string(),
            )
        })
        .collect()
}

fn check(document: &Document, expected: &[(&str, &str, &str)]) {
    let seen = blocks(document);
    let seen: Vec<_> = seen
        .iter()
        .map(|(place, path, text)| (place.as_str(), path.as_str(), text.as_str()))
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_word_document_keeps_headings_tables_and_what_was_not_deleted() {
    let document = read("letter.docx", &made::letter());
    assert_eq!(document.format, Format::Word);
    check(
        &document,
        &[
            ("paragraph 1", "House", "House"),
            ("paragraph 2", "House", "It is old."),
            ("paragraph 3", "House > Cellar", "Cellar"),
            ("paragraph 4", "House > Cellar", "Boiler | 1999"),
            ("paragraph 5", "House > Cellar", "In a box"),
            ("paragraph 6", "House > Cellar", "Kept & whole"),
        ],
    );
}

#[test]
fn an_encrypted_word_document_opens_with_its_password_only() {
    let locked = include_bytes!("files/locked.docx");
    let with = |options: &ReadOptions| Document::from_bytes_with("locked.docx", locked, options);
    let refused = |options: &ReadOptions| with(options).unwrap_err().to_string();
    let none = ReadOptions::default();
    assert!(refused(&none).contains("needs a password"), "{}", refused(&none));
    let wrong = ReadOptions::default().with_password("mat");
    assert!(
        refused(&wrong).contains("not the one that opens it"),
        "{}",
        refused(&wrong)
    );
    let right = ReadOptions::default().with_password("sesame");
    assert_eq!(with(&right).unwrap().text(), "The key lies under the mat.");
}

#[test]
fn slides_come_in_the_order_they_are_shown_with_title_and_notes() {
    let document = read("talk.pptx", &made::pptx());
    assert_eq!(document.format, Format::Slides);
    check(
        &document,
        &[
            ("slide 1", "First", "First"),
            ("slide 1", "First", "Welcome."),
            ("slide 1", "First", "Notes: Smile here."),
            ("slide 2", "Second", "Second"),
            ("slide 2", "Second", "Thanks."),
        ],
    );
}

#[test]
fn a_workbook_keeps_sheet_rows_and_columns() {
    let document = read("prices.xlsx", &made::prices());
    assert_eq!(document.format, Format::Sheets);
    check(
        &document,
        &[
            (
                "Prices, rows 1-2",
                "Prices > Item | Price",
                "Item | Price\nNail | 0.3",
            ),
            ("Prices, row 9", "Prices > Item | Price", "Hammer | 12"),
        ],
    );
}

#[test]
fn an_e_book_is_read_in_its_order() {
    let document = read("book.epub", &made::epub());
    assert_eq!(document.format, Format::Epub);
    check(
        &document,
        &[
            ("chapter 1", "One", "# One"),
            ("chapter 1", "One", "It was a dark night."),
            ("chapter 2", "Two", "# Two"),
            ("chapter 2", "Two", "The end."),
        ],
    );
}

#[test]
fn a_mail_tells_who_when_and_what() {
    let document = read("letter.eml", &made::mail());
    assert_eq!(document.format, Format::Mail);
    let expected = "Grüße\n\nFrom: Ada <ada@example.org>\nTo: Grace <grace@example.org>\nDate: 2024-01-02T10:00:00Z\n\n\
        Dear Grace,\n\nthe engine works.";
    assert_eq!(document.text(), expected);
    assert_eq!(
        document.notes,
        ["attachments are not read: plan.pdf; save them and add them as files"]
    );
}

#[test]
fn code_is_kept_as_it_is_with_its_lines() {
    let code = "use std::io;\n\nfn main() {\n    one();\n\n    two();\n}\n";
    let document = read("main.rs", code.as_bytes());
    assert_eq!(document.format, Format::Code);
    assert_eq!(document.text(), code);
    assert_eq!(document.blocks()[1].place, Place::Lines { first: 3, last: 4 });
}

#[test]
fn functions_begin_passages_of_their_own() {
    let function = |name: &str| {
        let lines: String = (0..12)
            .map(|n| format!("    let value_{n} = compute({n});\n"))
            .collect();
        format!("fn {name}() {{\n{lines}}}\n\n")
    };
    let code = [function("first"), function("second"), function("third")].concat();
    let count = |text: &str| text.len().div_ceil(4);
    let starts: Vec<String> = split(&read("a.rs", code.as_bytes()), PASSAGE_TOKENS, &count)
        .iter()
        .map(|passage| passage.text.chars().take(9).collect())
        .collect();
    assert!(starts.iter().all(|start| start.starts_with("fn ")), "{starts:?}");
}

#[test]
fn every_passage_is_a_stretch_of_its_documents_text() {
    let long = "A sentence of some length that goes on. ".repeat(200);
    let files = [
        ("a.docx", made::docx(&made::paragraph("", &long))),
        ("b.docx", made::letter()),
        ("c.pptx", made::pptx()),
        ("d.xlsx", made::prices()),
        ("e.epub", made::epub()),
        ("f.eml", made::mail()),
        ("g.pdf", made::saved(made::pdf(&["One page.", "Another one."]))),
        (
            "h.html",
            format!("<html><h1>T</h1><p>{long}</p><p>b</p>").into_bytes(),
        ),
        (
            "i.md",
            format!("# T\r\n\r\n\r\n{long}\r\n## U\r\nb\r\n").into_bytes(),
        ),
        ("j.txt", long.clone().into_bytes()),
        ("k.csv", "a;b\n1;2\n".repeat(300).into_bytes()),
        (
            "l.json",
            format!("{{\"a\":\"{}\"}}", "x".repeat(9_000)).into_bytes(),
        ),
    ];
    let count = |text: &str| text.len().div_ceil(4);
    for (name, bytes) in files {
        let document = read(name, &bytes);
        let passages = split(&document, PASSAGE_TOKENS, &count);
        let mut end = 0;
        for passage in &passages {
            assert_eq!(&document.text()[passage.range.clone()], passage.text, "{name}");
            assert!(passage.range.start >= end, "{name}: passages overlap");
            let between = &document.text()[end..passage.range.start];
            assert!(between.trim().is_empty(), "{name}: {between:?} is in no passage");
            end = passage.range.end;
            assert!(passage.text.chars().count() <= PASSAGE_CHARACTERS, "{name}");
            assert!(passage.tokens <= 256, "{name}: {}", passage.tokens);
        }
        assert!(document.text()[end..].trim().is_empty(), "{name}");
    }
}
