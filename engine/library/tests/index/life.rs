//! What becomes of documents: added, changed, renamed, refused, removed.

use std::fs;

use proptest::prelude::*;
use reprise_library::index::{Chosen, DocumentId, IndexError, Meaning, State, in_reading_order};

use crate::{Place, bytes_of, found, holds, update};

fn paragraphs(count: usize) -> String {
    (0..count)
        .map(|n| {
            format!(
                "Paragraph {n} tells of thing{n}. {}\n\n",
                format!("filler{n} words stand here. ").repeat(30)
            )
        })
        .collect()
}

#[test]
fn what_is_added_is_found_and_without_a_model_by_words_only() {
    let place = Place::new();
    place.write("garden.md", "# Garden\n\nPrune the apple tree in February.\n");
    place.write("deep/boiler.txt", "Bleed the radiators each autumn.\n");
    let index = place.filled();
    assert_eq!(found(&index, "When do I prune apple trees?"), ["garden.md"]);
    assert_eq!(found(&index, "radiator"), ["boiler.txt"]);
    assert_eq!(found(&index, "garden"), ["garden.md"], "headings count");
    assert_eq!(found(&index, "zebra"), Vec::<String>::new());
    let status = index.status().unwrap();
    assert_eq!(
        (
            status.ready,
            status.waiting,
            status.passages,
            status.sources[0].documents
        ),
        (2, 0, 2, 2)
    );
    assert!(
        matches!(&status.meaning, Meaning::Missing { what_to_do } if what_to_do.contains("reprise models fetch"))
    );
    // Adding again and looking again change nothing.
    index.add(&place.documents()).unwrap();
    let again = update(&index);
    assert_eq!(
        (again.read, again.unchanged, index.sources().unwrap().len()),
        (0, 0, 1)
    );
}

#[test]
fn a_file_in_chinese_or_japanese_is_found() {
    let place = Place::new();
    place.write("tokyo.txt", "東京都の人口は多いです。");
    place.write("beijing.txt", "北京是中国的首都。");
    let index = place.filled();
    assert_eq!(found(&index, "東京の人口は?"), ["tokyo.txt"]);
    assert_eq!(found(&index, "中国首都在哪里?"), ["beijing.txt"]);
}

#[test]
fn passages_keep_their_numbers_when_something_else_in_the_file_changes() {
    let place = Place::new();
    let path = place.write("long.txt", paragraphs(12));
    let index = place.filled();
    let before = index.passages(DocumentId::of(&path)).unwrap();
    assert!(before.len() > 4);
    fs::write(
        &path,
        format!(
            "A new beginning.\n\n{}",
            paragraphs(12).replace("thing5", "something else")
        ),
    )
    .unwrap();
    assert_eq!(update(&index).read, 1);
    let after = index.passages(DocumentId::of(&path)).unwrap();
    let kept = after.iter().filter(|new| {
        before
            .iter()
            .any(|old| old.id == new.id && old.passage.text == new.passage.text)
    });
    assert!(kept.count() >= before.len() - 2, "most passages are the same");
    let lost = before
        .iter()
        .filter(|old| after.iter().all(|new| new.id != old.id))
        .count();
    assert!((1..=2).contains(&lost), "{lost} are others now");
    assert_eq!(found(&index, "thing5"), Vec::<String>::new());
    assert_eq!(found(&index, "beginning"), ["long.txt"]);
}

#[test]
fn a_touched_file_is_not_read_again_and_one_that_is_gone_is_forgotten() {
    let place = Place::new();
    let a = place.write("a.txt", "about apples");
    let b = place.write("b.txt", "about pears");
    let index = place.filled();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    fs::File::options()
        .write(true)
        .open(&a)
        .unwrap()
        .set_modified(later)
        .unwrap();
    fs::remove_file(&b).unwrap();
    let updated = update(&index);
    assert_eq!(
        (updated.read, updated.unchanged, updated.gone.documents),
        (0, 1, 1)
    );
    assert_eq!(updated.gone.owners, [DocumentId::of(&b).owner("b.txt").unwrap()]);
    assert_eq!(found(&index, "pears apples"), ["a.txt"]);
}

#[test]
fn files_without_text_have_their_reasons_and_other_kinds_are_left_out() {
    let place = Place::new();
    place.write("empty.txt", "");
    place.write("picture.bin", b"\x00\x01\x02\x00\x01\x02".repeat(40));
    let named = place.write("named.bin", b"\x00\x01\x02\x00\x01\x02".repeat(41));
    place.write("good.txt", "some good text");
    let index = place.open();
    index.add(&named).unwrap();
    index.add(&place.documents()).unwrap();
    let updated = update(&index);
    assert_eq!((updated.read, updated.failed, updated.skipped), (1, 2, 1));
    let failed = index.documents(Some(State::Failed)).unwrap();
    let trouble = |name: &str| {
        failed
            .iter()
            .find(|one| one.name == name)
            .unwrap()
            .trouble
            .clone()
            .unwrap()
    };
    assert!(trouble("empty.txt").contains("empty"));
    assert!(!trouble("named.bin").is_empty(), "who names a file is told");
}

#[test]
fn removal_leaves_nothing_on_disk_and_names_the_owners() {
    let place = Place::new();
    let secret = place.write(
        "secret/diary.txt",
        "The xylophonistic secret is kept under the zinnia bed.\n",
    );
    place.write("open/notes.txt", "Notes about the garden.\n");
    let index = place.open();
    let source = index.add(&place.documents().join("secret")).unwrap();
    index.add(&place.documents().join("open")).unwrap();
    update(&index);
    assert!(holds(&bytes_of(&place.index_folder()), "xylophonistic"));
    let removed = index.remove(source.id).unwrap();
    assert_eq!(removed.documents, 1);
    let owner = removed.owners[0].to_string();
    assert!(owner.starts_with("document:diary.txt#"), "{owner}");
    assert_eq!(
        removed.owners,
        [DocumentId::of(&secret).owner("diary.txt").unwrap()]
    );
    let left = bytes_of(&place.index_folder());
    for trace in ["xylophonist", "zinnia", "diary.txt"] {
        assert!(!holds(&left, trace), "{trace} is still there");
    }
    assert_eq!(found(&index, "secret garden"), ["notes.txt"]);
    assert!(matches!(index.remove(source.id), Err(IndexError::Refused(_))));
}

#[test]
fn a_file_that_two_sources_have_stays_with_the_other() {
    let place = Place::new();
    let path = place.write("both.txt", "common words");
    let index = place.open();
    let file = index.add(&path).unwrap();
    update(&index);
    index.add(&place.documents()).unwrap();
    update(&index);
    assert_eq!(index.remove(file.id).unwrap().documents, 0);
    assert_eq!(found(&index, "common"), ["both.txt"]);
}

#[test]
fn a_source_that_is_not_there_keeps_what_was_read_of_it() {
    let place = Place::new();
    place.write("a.txt", "about apples");
    let index = place.filled();
    fs::rename(place.documents(), place.documents().with_extension("away")).unwrap();
    let updated = update(&index);
    assert!(
        updated.troubles[0].contains("is not there"),
        "{:?}",
        updated.troubles
    );
    assert_eq!(found(&index, "apples"), ["a.txt"]);
    assert!(!index.sources().unwrap()[0].is_there);
}

#[test]
fn the_same_text_in_two_files_is_found_once() {
    let place = Place::new();
    place.write("a.txt", "the very same licence text");
    place.write("b.txt", "the very same licence text");
    let index = place.filled();
    assert_eq!(found(&index, "licence"), ["a.txt"]);
    let b = DocumentId::of(&place.documents().join("b.txt"));
    let within = index.search_in("licence", &[b], 5).unwrap();
    assert_eq!(
        within.hits[0].stored.document, b,
        "unless the other is asked about"
    );
}

#[test]
fn documents_that_fit_are_taken_whole_and_else_what_was_found() {
    let place = Place::new();
    let path = place.write("long.txt", paragraphs(12));
    let index = place.filled();
    let document = DocumentId::of(&path);
    let words = |text: &str| text.split_whitespace().count();
    let whole = index.choose("thing3", &[document], 100_000, 6, &words).unwrap();
    let Chosen::Whole { passages, tokens } = whole else {
        panic!("it fits")
    };
    assert_eq!(passages.len(), index.passages(document).unwrap().len());
    assert_eq!(
        tokens,
        passages
            .iter()
            .map(|stored| words(&stored.passage.rendered()))
            .sum::<usize>()
    );
    let Chosen::Passages { hits, tokens, .. } = index
        .choose("thing3 thing9", &[document], 300, 6, &words)
        .unwrap()
    else {
        panic!("it does not fit")
    };
    assert!(tokens <= 300 && !hits.is_empty());
    let last = hits.iter().map(|hit| hit.stored.number).max().unwrap();
    let ordered = in_reading_order(hits.clone(), |stored| stored.number == last);
    assert_eq!(ordered[0].stored.number, last, "what is known comes first");
    assert!(
        ordered[1..].is_sorted_by_key(|hit| hit.stored.number),
        "the rest in the order of the file"
    );
    let around = index.with_neighbours(&hits[0].stored, 1, 1).unwrap();
    assert!(around.iter().any(|stored| stored.id == hits[0].stored.id) && (2..=3).contains(&around.len()));
}

#[test]
fn only_one_may_write_and_all_may_search() {
    let place = Place::new();
    place.write("a.txt", "about apples");
    let first = place.filled();
    let second = place.open();
    let mut seen = None;
    place.write("b.txt", "about pears");
    crate::update_with(&first, &Default::default(), &mut |_| {
        seen.get_or_insert_with(|| {
            let run = &mut reprise_library::index::Run {
                cancel: Default::default(),
                is_busy: &|| false,
                progress: &mut |_| {},
                threads: 1,
            };
            (
                second.update(run).unwrap_err().to_string(),
                found(&second, "apples"),
            )
        });
    });
    let (error, apples) = seen.unwrap();
    assert!(error.contains("being written by another Reprise"), "{error}");
    assert_eq!(apples, ["a.txt"]);
    assert_eq!(
        found(&second, "pears"),
        ["b.txt"],
        "what the other wrote is found at once"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn after_any_changes_the_index_has_what_is_on_disk(
        steps in prop::collection::vec((0usize..5, prop::option::of(0usize..6)), 1..12)
    ) {
        let place = Place::new();
        let index = place.open();
        index.add(&place.documents()).unwrap();
        let mut expected = std::collections::BTreeMap::new();
        for chunk in steps.chunks(3) {
            for &(file, word) in chunk {
                let name = format!("f{file}.txt");
                match word {
                    // Lengths differ, so that a change shows even within the clock's smallest step.
                    Some(word) => {
                        place.write(&name, format!("word{word} {}", "x".repeat(word)));
                        expected.insert(name, word);
                    }
                    None => {
                        let _ = fs::remove_file(place.documents().join(&name));
                        expected.remove(&name);
                    }
                }
            }
            update(&index);
            for word in 0..6 {
                let mut names: Vec<String> = Vec::new();
                for document in index.documents(None).unwrap() {
                    let hits = index.search_in(&format!("word{word}"), &[document.id], 5).unwrap().hits;
                    names.extend(hits.iter().map(|hit| hit.stored.passage.document.clone()));
                }
                let wanted: Vec<String> =
                    expected.iter().filter(|(_, has)| **has == word).map(|(name, _)| name.clone()).collect();
                prop_assert_eq!(names, wanted);
            }
        }
    }
}

/// With the model for meanings, where it is.
#[test]
fn what_means_the_same_is_found_without_a_common_word() {
    let Some(encoder) = crate::encoder() else { return };
    let place = Place::new();
    place.write(
        "car.txt",
        "Fill the tank of the automobile with petrol before the journey.",
    );
    place.write("cake.txt", "Beat the eggs with sugar and bake at medium heat.");
    place.write(
        "tax.txt",
        "The return is due at the revenue office by the end of July.",
    );
    let (index, _) = reprise_library::index::Index::open(&place.index_folder(), Some(&encoder)).unwrap();
    let source = index.add(&place.documents()).unwrap();
    assert_eq!(update(&index).embedded, 3);
    assert_eq!(index.meaning(), Meaning::Ready);
    for (question, file) in [
        ("refuelling my vehicle", "car.txt"),
        ("dessert recipe", "cake.txt"),
        ("paying the government", "tax.txt"),
    ] {
        let hit = &index.search(question, 3).unwrap().hits[0];
        assert_eq!(hit.stored.passage.document, file, "{question}");
        assert_eq!((hit.words_rank, hit.meaning_rank), (None, Some(1)));
    }
    // An edit embeds what changed; removal takes the vectors too.
    place.write(
        "car.txt",
        "Nothing about that any more, only about sailing boats and the wind.",
    );
    assert_eq!(update(&index).embedded, 1);
    assert_eq!(index.status().unwrap().without_vector, 0);
    index.remove(source.id).unwrap();
    assert!(index.search("refuelling my vehicle", 3).unwrap().hits.is_empty());
    let connection = rusqlite::Connection::open(place.index_folder().join("passages.sqlite")).unwrap();
    let vectors: i64 = connection
        .query_row("SELECT count(*) FROM vectors", [], |row| row.get(0))
        .unwrap();
    assert_eq!(vectors, 0);
}

#[test]
fn changes_on_disk_are_told() {
    let place = Place::new();
    let index = place.filled();
    let (sender, receiver) = std::sync::mpsc::channel();
    let watch = index
        .watch(move || {
            // The test has ended when nobody listens.
            let _ = sender.send(());
        })
        .unwrap();
    assert!(watch.troubles.is_empty(), "{:?}", watch.troubles);
    place.write("new.txt", "about plums");
    // However long it takes: what happens is what counts.
    receiver.recv().unwrap();
    update(&index);
    assert_eq!(found(&index, "plums"), ["new.txt"]);
    drop(watch);
    assert!(receiver.recv().is_err(), "it ends");
}
