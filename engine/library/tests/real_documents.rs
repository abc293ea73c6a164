//! Real documents of many kinds, kept outside the repository in `REPRISE_TEST_DATA` (default `../shared/data` beside it).

use std::path::PathBuf;

use reprise_library::{Document, Fault, LibraryError, PASSAGE_TOKENS, select, split};

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

#[test]
fn every_document_is_read_or_refused_in_words() {
    let Some(folder) = documents() else { return };
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match Document::open(&path) {
            Ok(document) => {
                let characters = document.text().chars().count();
                eprintln!(
                    "{name}: {} blocks, {characters} characters {:?}",
                    document.blocks().len(),
                    document.notes
                );
                assert!(characters > 0);
            }
            Err(error) => eprintln!("{error}"),
        }
    }
}

#[test]
fn locked_scanned_and_empty_pdfs_are_told_apart() {
    let Some(folder) = documents() else { return };
    let fault = |name: &str| match Document::open(&folder.join(name)) {
        Err(LibraryError::Document { fault, .. }) => fault,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(
        fault("enc_aes256_crazyones_pw-password.pdf"),
        Fault::PasswordNeeded
    );
    assert!(matches!(
        fault("scanned_no_text_medical_report.pdf"),
        Fault::NoText { .. }
    ));
    assert_eq!(fault("empty_page.pdf"), Fault::NoText { pages: 1 });
    assert!(Document::open(&folder.join("enc_r3_emptypw.pdf")).is_ok());
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
