//! Text of scans and pictures. The models for it are optional: without them these tests say that they skip.

use crate::made;
use std::io::Cursor;
use std::sync::Arc;

use image::{GrayImage, ImageFormat};
use reprise_library::models::Shelf;
use reprise_library::{Document, Fault, LibraryError, Ocr, PASSAGE_TOKENS, ReadOptions, split};

fn ocr() -> Option<ReadOptions> {
    let ocr = Ocr::on(&Shelf::of_machine().unwrap());
    if ocr.is_none() {
        eprintln!("skipped: the models for text recognition are not here (reprise models fetch ocr)");
    }
    ocr.map(|ocr| ReadOptions::default().with_ocr(Some(Arc::new(ocr))))
}

#[test]
fn without_models_a_scan_says_what_it_is_and_how_to_get_them() {
    let scan = made::saved(made::scan(100, 100, vec![200; 10_000]));
    let mut png = Cursor::new(Vec::new());
    GrayImage::new(50, 50)
        .write_to(&mut png, ImageFormat::Png)
        .unwrap();
    for (name, bytes, what) in [
        ("scan.pdf", &scan, "a scan: 1 of its 1 page(s) are pictures"),
        ("photo.png", png.get_ref(), "a picture"),
    ] {
        match Document::from_bytes(name, bytes) {
            Err(LibraryError::Document { fault, .. }) => {
                assert_eq!(fault, Fault::NeedsOcr { what: what.into() });
                assert!(fault.to_string().contains("reprise models fetch ocr"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_picture_and_a_scan_are_read_and_say_that_they_were_recognised() {
    let Some(options) = ocr() else { return };
    let drawn = made::drawn("The boiler was repaired in 1999.");
    let mut png = Cursor::new(Vec::new());
    drawn.write_to(&mut png, ImageFormat::Png).unwrap();
    let scan = made::saved(made::scan(drawn.width(), drawn.height(), drawn.into_raw()));
    for (name, bytes, place) in [
        ("photo.png", png.get_ref(), "line 1"),
        ("scan.pdf", &scan, "page 1"),
    ] {
        let document = Document::from_bytes_with(name, bytes, &options).unwrap();
        assert_eq!(document.text(), "The boiler was repaired in 1999.");
        assert!(document.has_ocr());
        assert!(document.notes[0].contains("recognised"), "{:?}", document.notes);
        let passages = split(&document, PASSAGE_TOKENS, &|text: &str| text.len() / 4);
        assert!(passages[0].is_ocr);
        assert_eq!(passages[0].place.to_string(), place);
    }
    let blank = Document::from_bytes_with(
        "blank.pdf",
        &made::saved(made::scan(300, 300, vec![255; 90_000])),
        &options,
    );
    assert!(blank.unwrap_err().to_string().contains("no text"));
    options.cancel.cancel();
    let stopped = Document::from_bytes_with("photo.png", png.get_ref(), &options).unwrap_err();
    assert!(stopped.to_string().contains("cancelled"));
}
