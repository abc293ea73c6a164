//! Scans and pictures in the index, before and after the models for text recognition are there.

use std::io::Cursor;
use std::sync::Arc;

use image::{GrayImage, ImageFormat};
use reprise_library::Ocr;
use reprise_library::index::State;
use reprise_library::models::Shelf;

use super::{Place, found, made, update};

#[test]
fn scans_wait_for_their_models_and_pictures_in_a_folder_are_no_documents() {
    let place = Place::new();
    let line = made::drawn("The boiler was repaired in 1999.");
    let (width, height) = line.dimensions();
    place.write(
        "scan.pdf",
        made::saved(made::scan(width, height, line.into_raw())),
    );
    let mut holiday = Cursor::new(Vec::new());
    GrayImage::new(64, 64)
        .write_to(&mut holiday, ImageFormat::Png)
        .unwrap();
    place.write("holiday.png", holiday.get_ref());
    place.write("notes.txt", "about apples");
    let index = place.open();
    index.add(&place.documents()).unwrap();
    let updated = update(&index);
    assert_eq!((updated.read, updated.failed, updated.skipped), (1, 1, 1));
    let failed = index.documents(Some(State::Failed)).unwrap();
    let trouble = failed[0].trouble.as_deref().unwrap();
    assert!(trouble.contains("reprise models fetch ocr"), "{trouble}");
    assert_eq!(update(&index).failed, 0, "it is not tried again without them");

    let Some(ocr) = Ocr::on(&Shelf::of_machine().unwrap()) else {
        eprintln!(
            "the rest is not run: the models for text recognition are not here (reprise models fetch ocr)"
        );
        return;
    };
    let index = index.with_ocr(Some(Arc::new(ocr)));
    let updated = update(&index);
    assert_eq!((updated.read, updated.failed, updated.skipped), (1, 0, 1));
    assert_eq!(found(&index, "Was the boiler repaired?"), ["scan.pdf"]);
    let hits = index.search("boiler", 1).unwrap().hits;
    assert!(hits[0].stored.passage.is_ocr);
    let updated = update(&index);
    assert_eq!((updated.read, updated.skipped), (0, 0), "once is enough");
}
