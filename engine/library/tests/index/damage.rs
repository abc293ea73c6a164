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

#[test]
fn a_damaged_database_is_told_with_what_to_do() {
    for cut in [false, true] {
        let place = Place::new();
        for n in 0..40 {
            place.write(
                &format!("{n}.txt"),
                format!("about apples {n} {}", "and more ".repeat(200)),
            );
        }
        drop(place.filled());
        let file = place.index_folder().join("passages.sqlite");
        let mut bytes = fs::read(&file).unwrap();
        if cut {
            bytes[..100].fill(0x55);
        } else {
            let end = bytes.len();
            bytes[4096..end].fill(0x55);
        }
        fs::write(&file, bytes).unwrap();
        let outcome = Index::open(&place.index_folder(), None).and_then(|(index, _)| {
            index.status()?;
            index.search("apples", 5)
        });
        let error = outcome.unwrap_err();
        assert!(matches!(error, IndexError::Damaged { .. }), "{error}");
        let words = error.to_string();
        assert!(
            words.contains("delete this folder") && words.contains("as they were"),
            "{words}"
        );
    }
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
