//! PDFs written for these tests: what is read, and what is said about those that cannot be.

use crate::made::{pdf, saved};
use lopdf::encryption::{EncryptionState, EncryptionVersion, Permissions};
use lopdf::{Object, StringFormat};
use reprise_library::{Document, Fault, Format, LibraryError, PASSAGE_TOKENS, ReadOptions, select, split};

fn encrypted(lines: &[&str], password: &str) -> Vec<u8> {
    let mut pdf = pdf(lines);
    let id = Object::String(b"0123456789abcdef".to_vec(), StringFormat::Hexadecimal);
    pdf.trailer.set("ID", vec![id.clone(), id]);
    let version = EncryptionVersion::V2 {
        document: &pdf,
        owner_password: "owner",
        user_password: password,
        key_length: 128,
        permissions: Permissions::all(),
    };
    let state = EncryptionState::try_from(version).unwrap();
    pdf.encrypt(&state).unwrap();
    saved(pdf)
}

fn fault(name: &str, bytes: &[u8]) -> Fault {
    match Document::from_bytes(name, bytes) {
        Err(LibraryError::Document { fault, .. }) => fault,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn each_page_is_read_and_cited() {
    let document = Document::from_bytes(
        "a.pdf",
        &saved(pdf(&["The boiler is red.", "", "Apples grow here."])),
    )
    .unwrap();
    assert_eq!(document.format, Format::Pdf);
    assert_eq!(document.notes, ["no text on page 2"]);
    let count = |text: &str| text.split_whitespace().count();
    let passages = split(&document, PASSAGE_TOKENS.min(4), &count);
    let selection = select("What colour is the boiler?", &passages, 8, &count).unwrap();
    assert_eq!(
        selection.used()[0].rendered(),
        "[a.pdf, page 1]\nThe boiler is red.\n\n"
    );
}

#[test]
fn a_password_is_asked_for_in_words_and_an_empty_one_opens() {
    assert_eq!(
        fault("locked.pdf", &encrypted(&["Secret."], "sesame")),
        Fault::PasswordNeeded
    );
    let with = |password: &str| {
        let options = ReadOptions::default().with_password(password);
        Document::from_bytes_with("locked.pdf", &encrypted(&["Secret."], "sesame"), &options)
    };
    assert_eq!(with("sesame").unwrap().text(), "Secret.");
    let wrong = with("wrong").unwrap_err().to_string();
    assert!(wrong.contains("not the one that opens it"), "{wrong}");
    let open = Document::from_bytes("open.pdf", &encrypted(&["No secret."], "")).unwrap();
    assert_eq!(open.text(), "No secret.");
}

#[test]
fn a_pdf_without_text_is_said_to_be_empty() {
    assert_eq!(
        fault("blank.pdf", &saved(pdf(&["", ""]))),
        Fault::NoText { pages: 2 }
    );
    assert!(matches!(
        fault("no-pages.pdf", &saved(pdf(&[]))),
        Fault::BrokenPdf(_)
    ));
}

#[test]
fn a_pdf_cut_short_anywhere_is_an_error_or_still_readable_but_never_a_panic() {
    let whole = saved(pdf(&["The boiler is red.", "Apples grow here."]));
    for end in (0..whole.len()).step_by(37) {
        match Document::from_bytes("cut.pdf", &whole[..end]) {
            Ok(document) => assert!(!document.blocks().is_empty()),
            Err(error) => assert!(error.to_string().starts_with("cut.pdf: "), "{error}"),
        }
    }
}
