//! Damaged and foreign files in the index's folder.

use std::fs;

use reprise_library::index::{Index, IndexError};

use crate::{Place, found, update};

#[test]
fn a_keyword_index_that_is_damaged_or_gone_is_made_anew() {
    let spoil: [fn(&std::path::Path); 4] = [
        |keywords| fs::remove_dir_all(keywords).unwrap(),
        |keywords| fs::write(keywords.join("meta.json"), "{").unwrap(),
        |keywords| {
            for entry in fs::read_dir(keywords).unwrap().flatten() {
                if entry
                    .path()
                    .extension()
                    .is_some_and(|end| end == "term" || end == "idx")
                {
                    let mut bytes = fs::read(entry.path()).unwrap();
                    let middle = bytes.len() / 3;
                    bytes[middle] ^= 0xff;
                    fs::write(entry.path(), bytes).unwrap();
                }
            }
        },
        |keywords| {
            for entry in fs::read_dir(keywords).unwrap().flatten() {
                if entry.path().extension().is_some_and(|end| end == "fast") {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
        },
    ];
    for (number, spoil) in spoil.into_iter().enumerate() {
        let place = Place::new();
        place.write("a.txt", "about apples");
        place.write("b.txt", "about pears");
        drop(place.filled());
        spoil(&place.index_folder().join("keywords"));
        let (index, notices) = Index::open(&place.index_folder(), None).unwrap();
        assert_eq!(found(&index, "pears"), ["b.txt"], "case {number}");
        assert!(number == 0 || !notices.is_empty(), "case {number} is told");
        place.write("c.txt", "about plums");
        update(&index);
        assert_eq!(found(&index, "plums"), ["c.txt"], "case {number}");
    }
}

#[test]
fn a_keyword_index_of_something_else_is_noticed() {
    let (place, other) = (Place::new(), Place::new());
    place.write("a.txt", "about apples");
    for name in ["a.txt", "b.txt"] {
        other.write(name, "about pears");
    }
    drop((place.filled(), other.filled()));
    let keywords = place.index_folder().join("keywords");
    fs::remove_dir_all(&keywords).unwrap();
    fs::rename(other.index_folder().join("keywords"), &keywords).unwrap();
    let (index, notices) = Index::open(&place.index_folder(), None).unwrap();
    assert_eq!(notices.len(), 1);
    assert_eq!(found(&index, "apples"), ["a.txt"]);
}

/// Spoils the database.
fn spoil(place: &Place, part: impl Fn(usize) -> std::ops::Range<usize>) {
    let file = place.index_folder().join("passages.sqlite");
    let mut bytes = fs::read(&file).unwrap();
    let part = part(bytes.len());
    bytes[part].fill(0x55);
    fs::write(&file, bytes).unwrap();
}

#[test]
fn a_damaged_database_is_begun_anew_with_what_was_added() {
    // What shows when it is opened, and what shows only when it is used.
    let parts: [fn(usize) -> std::ops::Range<usize>; 3] =
        [|_| 0..100, |bytes| 4096..bytes, |bytes| bytes / 2..bytes];
    for (case, part) in parts.into_iter().enumerate() {
        let place = Place::new();
        for n in 0..40 {
            place.write(
                &format!("{n}.txt"),
                format!("about apples {n} {}", "and more ".repeat(200)),
            );
        }
        drop(place.filled());
        spoil(&place, part);
        let (mut index, mut notices) = Index::open(&place.index_folder(), None).unwrap();
        assert_eq!(notices.is_empty(), case == 2, "case {case}: {notices:?}");
        if notices.is_empty() {
            let error = index.search("apples", 40).unwrap_err();
            assert!(matches!(error, IndexError::Damaged { .. }), "{error}");
            assert!(index.is_damaged());
            // While one has it open, nobody takes it away.
            let words = Index::open(&place.index_folder(), None).unwrap_err().to_string();
            assert!(
                words.contains("as they were") && words.contains("reprise index update"),
                "{words}"
            );
            drop(index);
            (index, notices) = Index::open(&place.index_folder(), None).unwrap();
        }
        assert_eq!(notices.len(), 1, "case {case}: {notices:?}");
        assert!(notices[0].contains("read again"), "{notices:?}");
        let sources = index.sources().unwrap();
        assert!(sources.len() == 1 && sources[0].is_folder, "{sources:?}");
        assert_eq!(found(&index, "apples"), [""; 0]);
        update(&index);
        assert_eq!(index.status().unwrap().ready, 40);
        drop(index);
        let (index, notices) = Index::open(&place.index_folder(), None).unwrap();
        assert!(notices.is_empty(), "{notices:?}");
        assert!(!found(&index, "apples").is_empty());
    }
}

#[test]
fn a_database_that_is_gone_is_begun_anew_with_what_was_added() {
    let lose: [fn(&std::path::Path); 2] = [
        |file| fs::remove_file(file).unwrap(),
        |file| fs::write(file, "").unwrap(),
    ];
    for lose in lose {
        let place = Place::new();
        place.write("a.txt", "about apples");
        drop(place.filled());
        lose(&place.index_folder().join("passages.sqlite"));
        let (index, notices) = Index::open(&place.index_folder(), None).unwrap();
        assert!(notices[0].contains("read again"), "{notices:?}");
        update(&index);
        assert_eq!(found(&index, "apples"), ["a.txt"]);
    }
}

#[test]
fn what_was_taken_out_does_not_come_back_with_a_new_database() {
    let place = Place::new();
    place.write("a.txt", "about apples");
    let index = place.filled();
    let source = index.sources().unwrap()[0].id;
    index.remove(source).unwrap();
    drop(index);
    spoil(&place, |_| 0..100);
    let (index, notices) = Index::open(&place.index_folder(), None).unwrap();
    assert!(notices[0].contains("add your files again"), "{notices:?}");
    assert!(index.sources().unwrap().is_empty());
}

#[test]
fn an_index_of_a_newer_program_is_refused() {
    let place = Place::new();
    drop(place.filled());
    let connection = rusqlite::Connection::open(place.index_folder().join("passages.sqlite")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(matches!(
        Index::open(&place.index_folder(), None),
        Err(IndexError::Newer { found: 99, .. })
    ));
}

#[test]
fn the_index_does_not_index_itself() {
    let place = Place::new();
    let index = place.filled();
    assert!(matches!(
        index.add(&place.index_folder()),
        Err(IndexError::Refused(_))
    ));
}
