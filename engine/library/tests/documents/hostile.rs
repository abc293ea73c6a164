//! Files made to do harm, and good files that were damaged: each is read or refused in words, and none ends the program.

use crate::made;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use reprise_library::{Document, Fault, LibraryError, ReadOptions, split};

/// A file of each kind.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a.docx", made::letter()),
        ("a.pptx", made::pptx()),
        ("a.xlsx", made::prices()),
        ("a.epub", made::epub()),
        ("a.eml", made::mail()),
        ("a.pdf", made::saved(made::pdf(&["One page.", "Another one."]))),
        (
            "a.html",
            b"<html><body><h1>T</h1><table><tr><td>a<td>b</table><p>&amp;&#x41;".to_vec(),
        ),
        ("a.csv", b"a;b\n\"x;y\";2\n".to_vec()),
        ("a.md", b"# T\n\ntext\n\n```\ncode\n```\n".to_vec()),
    ]
}

/// Reads a file; what comes out must hold together.
fn read(name: &str, bytes: &[u8]) -> Result<Document, Fault> {
    match Document::from_bytes(name, bytes) {
        Ok(document) => {
            for block in document.blocks() {
                assert!(
                    document
                        .text()
                        .get(block.range.clone())
                        .is_some_and(|text| !text.trim().is_empty())
                );
            }
            for passage in split(&document, 50, &|text: &str| text.len() / 4) {
                assert_eq!(document.text().get(passage.range), Some(passage.text.as_str()));
            }
            Ok(document)
        }
        Err(LibraryError::Document { fault, .. }) => Err(fault),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_file_cut_short_anywhere_is_read_or_refused() {
    for (name, bytes) in files() {
        for end in (1..bytes.len()).step_by((bytes.len() / 25).max(1)) {
            let _ = read(name, &bytes[..end]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn damaged_bytes_are_read_or_refused(
        which in 0..9_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let (name, mut bytes) = files().swap_remove(which);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = read(name, &bytes);
    }

    #[test]
    fn any_bytes_under_any_name_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 1..300),
        end in prop::sample::select(vec!["pdf", "docx", "xlsx", "eml", "html", "csv", "png", "txt", "rs"]),
        start in prop::sample::select(vec![
            &b""[..], b"%PDF-1.4\n", b"PK\x03\x04", b"\x89PNG\r\n\x1a\n", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"<html>",
        ]),
    ) {
        let _ = read(&format!("a.{end}"), &[start, &bytes].concat());
    }
}

#[test]
fn a_kind_is_told_by_what_is_in_a_file_whatever_its_name_says() {
    for (name, bytes) in files() {
        let own = read(name, &bytes).unwrap();
        // What is text by its bytes may be told by its name alone, and says so under that of a PDF.
        let (is_marked, is_plain) = (
            matches!(name, "a.docx" | "a.pptx" | "a.xlsx" | "a.epub" | "a.pdf"),
            matches!(name, "a.csv" | "a.md"),
        );
        for other in ["b.txt", "b.pdf", "b.docx", "b.epub", "b.jpg", "b"] {
            if is_plain {
                continue;
            }
            match read(other, &bytes) {
                Ok(document) => {
                    assert_eq!(document.format, own.format, "{name} as {other}");
                    assert_eq!(document.text(), own.text(), "{name} as {other}");
                }
                Err(fault) => {
                    assert!(!is_marked && other == "b.pdf", "{name} as {other}: {fault}");
                    assert!(fault.to_string().contains("does not start like a PDF"), "{fault}");
                }
            }
        }
    }
    let zip = made::archive(&[("notes.txt", "hello")]);
    for name in ["a.docx", "a.pptx", "a.xlsx", "a.epub"] {
        let refused = read(name, &zip).unwrap_err();
        assert!(matches!(refused, Fault::Broken { .. }), "{name}: {refused}");
    }
    let refused = read("a.txt", b"\x7fELF\x02\x01\x01\0").unwrap_err().to_string();
    assert!(refused.contains("a program"), "{refused}");
}

#[test]
fn a_zip_bomb_is_refused() {
    let zeros = " ".repeat((128 << 20) + 2);
    for (name, entry) in [
        ("a.docx", "word/document.xml"),
        ("a.pptx", "ppt/presentation.xml"),
    ] {
        let bomb = made::archive(&[(entry, &zeros)]);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(
            read(name, &bomb).unwrap_err(),
            Fault::UnpacksTooLarge { limit_mib: 128 }
        );
    }
    let bomb = made::archive(&[("xl/workbook.xml", ""), ("xl/media/a.bin", &zeros)]);
    assert_eq!(
        read("a.xlsx", &bomb).unwrap_err(),
        Fault::UnpacksTooLarge { limit_mib: 128 }
    );
}

#[test]
fn entities_do_not_unfold() {
    let mut declarations = "<!ENTITY e0 \"ha\">".to_string();
    for n in 1..30 {
        declarations += &format!("<!ENTITY e{n} \"&e{};&e{};\">", n - 1, n - 1);
    }
    let body = format!(
        "<!DOCTYPE w [{declarations}]><w:document><w:body><w:p><w:r><w:t>so: &e29;</w:t></w:r></w:p></w:body></w:document>"
    );
    let bomb = made::archive(&[("word/document.xml", &body)]);
    assert_eq!(read("a.docx", &bomb).unwrap().text(), "so:");
    let page = format!("<!DOCTYPE html [{declarations}]><html><p>so: &e29;</p></html>");
    assert!(read("a.html", page.as_bytes()).unwrap().text().len() < 4_000);
}

#[test]
fn nesting_ten_thousand_deep_is_read_or_refused_in_time() {
    const DEEP: usize = 10_000;
    let nested =
        |open: &str, close: &str, inside: &str| [&open.repeat(DEEP), inside, &close.repeat(DEEP)].concat();
    let refused = read("a.docx", &made::docx(&nested("<w:tbl>", "</w:tbl>", "x"))).unwrap_err();
    assert!(refused.to_string().contains("nested"), "{refused}");
    let parts: String = (0..DEEP)
        .map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n"))
        .collect();
    for (name, text) in [
        ("a.html", nested("<div>", "</div>", "x")),
        ("b.html", nested("<table><tr><td>", "</td></tr></table>", "x")),
        ("c.html", nested("<blockquote><ul><li>", "", "x")),
        (
            "a.pdf",
            format!("%PDF-1.4\n1 0 obj {} endobj", nested("[", "]", "1")),
        ),
        (
            "b.pdf",
            format!("%PDF-1.4\n1 0 obj {} endobj", nested("<</A ", ">>", "1")),
        ),
        ("a.eml", format!("From: a@b\r\nSubject: deep\r\n{parts}")),
        ("a.md", nested("> ", "", "x")),
    ] {
        let begun = Instant::now();
        let _ = read(name, text.as_bytes());
        let took = begun.elapsed();
        eprintln!("{name}: {took:?}");
        assert!(took < Duration::from_secs(60), "{name}: {took:?}");
    }
}

#[test]
fn a_sheet_of_billions_of_cells_takes_no_memory() {
    let cell = |at: &str| format!("<c r=\"{at}\" t=\"inlineStr\"><is><t>x</t></is></c>");
    let rows = format!(
        "<row r=\"1\">{}</row><row r=\"1048576\">{}</row>",
        cell("A1"),
        cell("XFD1048576")
    );
    let document = read("a.xlsx", &made::xlsx(&rows)).unwrap();
    assert!(document.text().len() < 1_000);
    assert_eq!(document.blocks()[1].place.to_string(), "Prices, row 1048576");
}

#[test]
fn pages_of_any_size_are_read() {
    for side in ["1000000000", "0", "-5", "0.0001"] {
        let mut pdf = made::pdf(&["One page."]);
        let size = format!("[0 0 {side} {side}]");
        resize(&mut pdf, &size);
        let begun = Instant::now();
        assert_eq!(
            read("a.pdf", &made::saved(pdf)).unwrap().text(),
            "One page.",
            "{size}"
        );
        assert!(begun.elapsed() < Duration::from_secs(10), "{size}");
    }
}

/// Gives all pages this size.
fn resize(pdf: &mut lopdf::Document, size: &str) {
    let numbers = size.trim_matches(['[', ']']).split(' ');
    let size: Vec<lopdf::Object> = numbers
        .map(|number| number.parse::<f32>().unwrap().into())
        .collect();
    for id in pdf.get_pages().into_values().collect::<Vec<_>>() {
        let page = pdf.get_dictionary_mut(id).unwrap();
        page.set("MediaBox", size.clone());
    }
}

#[test]
fn a_scan_that_claims_billions_of_dots_is_refused_before_it_is_drawn() {
    let mut pdf = made::scan(100, 100, vec![200; 10_000]);
    for object in pdf.objects.values_mut() {
        if let lopdf::Object::Stream(stream) = object
            && stream.dict.has(b"ColorSpace")
        {
            stream.dict.set("Width", 60_000);
            stream.dict.set("Height", 60_000);
        }
    }
    let begun = Instant::now();
    let refused = read("a.pdf", &made::saved(pdf)).unwrap_err().to_string();
    assert!(refused.contains("pictures too large to be read"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_page_tree_that_goes_in_circles_ends() {
    let circle = "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n\
        2 0 obj <</Type/Pages/Count 1000000000/Kids[2 0 R 2 0 R]>> endobj\n\
        trailer <</Root 1 0 R>>\nstartxref\n0\n%%EOF";
    let begun = Instant::now();
    let refused = read("a.pdf", circle.as_bytes()).unwrap_err();
    assert!(matches!(refused, Fault::BrokenPdf(_)), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_line_without_end_is_cut_in_time() {
    let begun = Instant::now();
    for (name, text) in [
        ("a.txt", "x".repeat(2 << 20)),
        ("a.json", "{\"a\":[1],".repeat(200_000)),
        ("a.csv", "a,".repeat(500_000)),
    ] {
        read(name, text.as_bytes()).unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn an_encrypted_archive_asks_for_its_password() {
    let mut bytes = made::letter();
    // The flag stands at the sixth byte of each entry's header, and at the eighth in the list of entries.
    for (mark, flag) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let at: Vec<usize> = (0..bytes.len() - 4)
            .filter(|&at| bytes[at..].starts_with(mark))
            .collect();
        for at in at {
            bytes[at + flag] |= 1;
        }
    }
    assert_eq!(read("a.docx", &bytes).unwrap_err(), Fault::PasswordNeeded);
}

#[test]
fn an_encrypted_office_file_asks_for_its_password() {
    let mut container = cfb::CompoundFile::create(std::io::Cursor::new(Vec::new())).unwrap();
    for name in ["/EncryptedPackage", "/EncryptionInfo"] {
        container.create_stream(name).unwrap();
    }
    container.flush().unwrap();
    let bytes = container.into_inner().into_inner();
    assert_eq!(read("a.docx", &bytes).unwrap_err(), Fault::PasswordNeeded);
    let options = ReadOptions::default().with_password("sesame");
    let refused = Document::from_bytes_with("a.docx", &bytes, &options).unwrap_err();
    assert!(refused.to_string().contains("broken or cut short"), "{refused}");
}

#[test]
fn old_office_files_are_named() {
    for (stream, told) in [
        ("/WordDocument", "an old Word document (save it as docx)"),
        ("/__properties_version1.0", "an Outlook message (save it as eml)"),
    ] {
        let mut container = cfb::CompoundFile::create(std::io::Cursor::new(Vec::new())).unwrap();
        container.create_stream(stream).unwrap();
        container.flush().unwrap();
        let refused = read("a.doc", &container.into_inner().into_inner()).unwrap_err();
        assert!(refused.to_string().contains(told), "{refused}");
    }
}

#[test]
fn an_e_book_that_only_its_shop_opens_says_so() {
    let locked = "<encryption><EncryptedData><CipherData><CipherReference URI=\"a.xhtml\"/></CipherData></EncryptedData></encryption>";
    let book = made::archive(&[
        (
            "META-INF/container.xml",
            "<container><rootfile full-path=\"b.opf\"/></container>",
        ),
        ("META-INF/encryption.xml", locked),
        (
            "b.opf",
            "<package><item id=\"a\" href=\"a.xhtml\"/><itemref idref=\"a\"/></package>",
        ),
        ("a.xhtml", "\0\u{1}\u{2}"),
    ]);
    assert_eq!(read("a.epub", &book).unwrap_err(), Fault::Protected);
}

#[test]
fn a_cancel_stops_the_reading_before_it_begins_and_while_it_runs() {
    let paragraphs = made::paragraph("", "It goes on.").repeat(150_000);
    let long: [(&str, Vec<u8>); 3] = [
        ("a.docx", made::docx(&paragraphs)),
        (
            "a.html",
            format!("<html>{}", "<p>It goes on.</p>".repeat(150_000)).into_bytes(),
        ),
        ("a.pdf", made::saved(made::pdf(&["It goes on."; 400]))),
    ];
    for (name, bytes) in long {
        for wait in [None, Some(Duration::from_millis(20))] {
            let options = ReadOptions::default();
            let cancel = options.cancel.clone();
            let begun = Instant::now();
            let stopper = std::thread::spawn(move || {
                std::thread::sleep(wait.unwrap_or_default());
                cancel.cancel();
                Instant::now()
            });
            let stopped = if wait.is_none() {
                stopper.join().unwrap();
                Document::from_bytes_with(name, &bytes, &options)
            } else {
                let outcome = Document::from_bytes_with(name, &bytes, &options);
                let late = stopper.join().unwrap().elapsed();
                assert!(late < Duration::from_secs(2), "{name}: {late:?} after the cancel");
                outcome
            };
            let is_cancelled = matches!(
                stopped,
                Err(LibraryError::Document {
                    fault: Fault::Cancelled,
                    ..
                })
            );
            assert!(is_cancelled, "{name}: not stopped in {:?}", begun.elapsed());
        }
    }
}
