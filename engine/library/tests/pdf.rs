//! PDFs written for these tests: what is read, and what is said about those that cannot be.

use lopdf::content::{Content, Operation};
use lopdf::encryption::{EncryptionState, EncryptionVersion, Permissions};
use lopdf::{Document as Pdf, Object, Stream, StringFormat, dictionary};
use reprise_library::{Document, Fault, Format, LibraryError, PASSAGE_TOKENS, select, split};

/// A PDF with one line of text a page; an empty line makes a blank page.
fn pdf(lines: &[&str]) -> Pdf {
    let mut pdf = Pdf::with_version("1.5");
    let pages_id = pdf.new_object_id();
    let font = dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica" };
    let font_id = pdf.add_object(font);
    let resources_id = pdf.add_object(dictionary! { "Font" => dictionary! { "F1" => font_id } });
    let mut kids: Vec<Object> = Vec::new();
    for line in lines {
        let mut operations = Vec::new();
        if !line.is_empty() {
            operations = vec![
                Operation::new("BT", vec![]),
                Operation::new("Tf", vec!["F1".into(), 12.into()]),
                Operation::new("Td", vec![72.into(), 700.into()]),
                Operation::new("Tj", vec![Object::string_literal(*line)]),
                Operation::new("ET", vec![]),
            ];
        }
        let content = Content { operations }.encode().unwrap();
        let content_id = pdf.add_object(Stream::new(dictionary! {}, content));
        let page = dictionary! {
            "Type" => "Page", "Parent" => pages_id, "Contents" => content_id, "Resources" => resources_id,
            "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
        };
        kids.push(pdf.add_object(page).into());
    }
    let pages = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => lines.len() as i64 };
    pdf.objects.insert(pages_id, pages.into());
    let catalog_id = pdf.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages_id });
    pdf.trailer.set("Root", catalog_id);
    pdf
}

fn bytes(mut pdf: Pdf) -> Vec<u8> {
    let mut bytes = Vec::new();
    pdf.save_to(&mut bytes).unwrap();
    bytes
}

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
    bytes(pdf)
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
        &bytes(pdf(&["The boiler is red.", "", "Apples grow here."])),
    )
    .unwrap();
    assert_eq!(document.format, Format::Pdf);
    assert_eq!(document.notes, ["no text on page 2: scanned or empty"]);
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
    let open = Document::from_bytes("open.pdf", &encrypted(&["No secret."], "")).unwrap();
    assert_eq!(open.text(), "No secret.");
}

#[test]
fn a_pdf_without_text_is_said_to_be_scanned_or_empty() {
    assert_eq!(
        fault("blank.pdf", &bytes(pdf(&["", ""]))),
        Fault::NoText { pages: 2 }
    );
    assert!(matches!(
        fault("no-pages.pdf", &bytes(pdf(&[]))),
        Fault::BrokenPdf(_)
    ));
}

#[test]
fn a_pdf_cut_short_anywhere_is_an_error_or_still_readable_but_never_a_panic() {
    let whole = bytes(pdf(&["The boiler is red.", "Apples grow here."]));
    for end in (0..whole.len()).step_by(37) {
        match Document::from_bytes("cut.pdf", &whole[..end]) {
            Ok(document) => assert!(!document.blocks().is_empty()),
            Err(error) => assert!(error.to_string().starts_with("cut.pdf: "), "{error}"),
        }
    }
    assert!(matches!(
        fault("cut.pdf", &whole[..whole.len() / 2]),
        Fault::BrokenPdf(_)
    ));
}
