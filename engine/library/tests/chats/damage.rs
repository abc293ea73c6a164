//! Damaged files: never lost, never fatal, and what can be read is saved.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use reprise_library::chats::{ChatId, StoreError};
use rusqlite::Connection;

use crate::Bench;

const CHATS: usize = 40;

/// A closed store with many chats of two questions and answers each.
fn filled() -> Bench {
    let mut bench = Bench::new();
    bench
        .store()
        .set_setting("theme", &serde_json::json!("dark"))
        .unwrap();
    bench.store().add_folder("Garden").unwrap();
    for number in 0..CHATS {
        let chat = bench.store().create_chat().unwrap().id;
        let (_, answer) = bench.exchange(
            chat,
            None,
            &format!("question {number}"),
            &"long answer ".repeat(40),
        );
        bench.exchange(chat, Some(answer.id), "and then?", &"longer answer ".repeat(80));
    }
    bench.close();
    bench
}

/// Everything that is listed can be opened, added to and found: the store is whole.
fn assert_usable(bench: &Bench) {
    let store = bench.store();
    for summary in store.list().unwrap().chats {
        let turns = store.chat(summary.id).unwrap().turns;
        for (turn, parent) in turns
            .iter()
            .zip(std::iter::once(None).chain(turns.iter().map(Some)))
        {
            assert_eq!(turn.parent, parent.map(|parent| parent.id));
            assert_ne!(Some(turn.role), parent.map(|parent| parent.role));
        }
        store
            .export(summary.id, reprise_library::chats::ExportFormat::Json)
            .unwrap();
    }
    let turn = store.begin_chat("after the damage").unwrap();
    bench.answer(turn.id, "all is well");
    assert!(!store.search("after the damage", 9).unwrap().is_empty());
    store.delete_chat(turn.chat).unwrap();
    store.erase_deleted(None).unwrap();
}

fn counts(bench: &Bench) -> (usize, usize) {
    let chats = bench.store().list().unwrap().chats;
    let turns = chats
        .iter()
        .map(|chat| bench.store().chat(chat.id).unwrap().turns.len())
        .sum();
    (chats.len(), turns)
}

#[test]
fn a_file_that_is_no_database_is_moved_aside_whole() {
    let mut bench = Bench::closed();
    let garbage: Vec<u8> = (0..50_000_u32).map(|n| (n * 7_919 % 251) as u8).collect();
    std::fs::write(bench.path(), &garbage).unwrap();

    let notices = bench.open();

    let aside = bench.folder.path().join("chats.damaged-1.sqlite");
    assert_eq!(std::fs::read(&aside).unwrap(), garbage);
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains(aside.to_str().unwrap()), "{notices:?}");
    assert!(notices[0].contains("Nothing could be saved"), "{notices:?}");
    assert_usable(&bench);
    assert_eq!(bench.open(), Vec::<String>::new());

    bench.close();
    std::fs::write(bench.path(), "no database either, and this time a text").unwrap();
    bench.open();
    assert_eq!(std::fs::read(&aside).unwrap(), garbage, "the first one stays");
    assert!(bench.files().contains(&"chats.damaged-2.sqlite".to_string()));
}

#[test]
fn an_empty_file_is_a_new_store() {
    let mut bench = Bench::closed();
    std::fs::write(bench.path(), "").unwrap();
    assert_eq!(bench.open(), Vec::<String>::new());
    assert_usable(&bench);
}

#[test]
fn a_truncated_file_is_kept_and_what_is_left_is_saved() {
    let mut bench = filled();
    let whole = std::fs::read(bench.path()).unwrap();
    for part in [99, 80, 50, 20, 1] {
        let bytes = &whole[..whole.len() * part / 100];
        std::fs::write(bench.path(), bytes).unwrap();
        let notices = bench.open();
        assert_eq!(notices.len(), 1, "{part} %");
        let aside = bench
            .files()
            .into_iter()
            .filter(|name| name.contains("damaged"))
            .count();
        assert!(aside > 0);
        let (chats, turns) = counts(&bench);
        println!(
            "{part} % of the file: {chats} chats, {turns} turns; {}",
            notices[0]
        );
        if part >= 80 {
            assert!(chats > 0 && turns > 0);
        }
        assert_usable(&bench);
        bench.close();
    }
}

#[test]
fn a_broken_page_costs_only_what_was_on_it() {
    let mut bench = filled();
    let whole = std::fs::read(bench.path()).unwrap();
    let pages = whole.len() / 4_096;
    let mut damaged = 0;
    for page in (0..pages).step_by(3) {
        std::fs::write(bench.path(), &whole).unwrap();
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(bench.path())
            .unwrap();
        file.seek(SeekFrom::Start(page as u64 * 4_096)).unwrap();
        file.write_all(&[0xA5; 4_096]).unwrap();
        drop(file);

        let notices = bench.open();

        // A page of text alone can be overwritten without the database's knowing.
        if notices.is_empty() {
            bench.close();
            continue;
        }
        damaged += 1;
        assert!(notices[0].contains("was damaged"), "{notices:?}");
        let (chats, turns) = counts(&bench);
        // Without the table of contents the rest is there, but not to be found by SQLite itself.
        let is_contents = page == 0 || has(&whole[page * 4_096..][..4_096], "CREATE ");
        if !is_contents {
            println!("page {page}: {chats} chats, {turns} turns");
            assert!(
                chats >= CHATS - 4 && turns >= CHATS * 4 - 40,
                "page {page}: {chats} chats, {turns} turns"
            );
        }
        assert_usable(&bench);
        bench.close();
    }
    assert!(damaged > 0);
}

#[test]
fn ids_of_lost_chats_are_not_used_again() {
    let mut bench = filled();
    break_a_page_of_text(&bench);
    bench.open();
    assert!(bench.store().create_chat().unwrap().id > ChatId(CHATS as i64));
    assert_eq!(
        bench.store().setting("theme").unwrap(),
        Some(serde_json::json!("dark"))
    );
    assert_eq!(bench.store().list().unwrap().folders.len(), 1);
}

#[test]
fn a_recovery_that_was_cut_off_is_completed() {
    let mut bench = filled();
    // As if the program had ended between moving the damaged file and giving the new one its name.
    std::fs::rename(bench.path(), bench.folder.path().join("chats.recovered.sqlite")).unwrap();
    assert_eq!(bench.open(), Vec::<String>::new());
    assert_eq!(counts(&bench).0, CHATS);
}

#[test]
fn changes_in_the_log_beside_a_damaged_file_are_saved_too() {
    let mut bench = filled();
    bench.open();
    bench.store().begin_chat("only in the log").unwrap();
    // What is on the disk when the power fails.
    let copy = tempfile::tempdir().unwrap();
    for name in ["chats.sqlite", "chats.sqlite-wal"] {
        std::fs::copy(bench.folder.path().join(name), copy.path().join(name)).unwrap();
    }
    bench.close();
    for name in ["chats.sqlite", "chats.sqlite-wal"] {
        std::fs::copy(copy.path().join(name), bench.folder.path().join(name)).unwrap();
    }
    break_a_page_of_text(&bench);
    bench.open();
    assert!(!bench.store().search("only in the log", 9).unwrap().is_empty());
    assert!(
        bench.files().contains(&"chats.damaged-1.sqlite-wal".to_string()),
        "{:?}",
        bench.files()
    );
}

#[test]
fn a_broken_search_index_is_made_anew_and_nothing_fails() {
    let mut bench = filled();
    for fault in [
        "UPDATE text_index_data SET block = x'00'",
        "UPDATE text_index_data SET block = randomblob(length(block)) WHERE id > 10",
        "DELETE FROM text_index_data WHERE id > 10",
        "DELETE FROM text_index_data",
        "DELETE FROM text_index_docsize",
    ] {
        Connection::open(bench.path())
            .unwrap()
            .execute_batch(fault)
            .unwrap();
        assert_eq!(bench.open(), Vec::<String>::new(), "{fault}");
        let hits = bench.store().search("question 20", 9).unwrap();
        assert_eq!(hits.last().unwrap().title, "question 20", "{fault}");
        bench.close();

        Connection::open(bench.path())
            .unwrap()
            .execute_batch(fault)
            .unwrap();
        bench.open();
        let turn = bench.store().begin_chat("passing words").unwrap();
        bench.answer(turn.id, "said in passing");
        bench.store().delete_chat(turn.chat).unwrap();
        bench.store().erase_deleted(None).unwrap();
        assert_usable(&bench);
        bench.close();
    }
}

#[test]
fn damage_that_happens_in_use_is_repaired_at_the_next_start() {
    let mut bench = filled();
    bench.open();
    break_a_page_of_text(&bench);
    let chats = bench.store().list().unwrap().chats;
    let error = chats
        .iter()
        .find_map(|chat| bench.store().chat(chat.id).err())
        .unwrap();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("start it again"), "{error}");

    let notices = bench.open();

    assert!(notices[0].contains("was damaged"), "{notices:?}");
    assert!(counts(&bench).0 >= CHATS - 1);
    assert_usable(&bench);
    assert_eq!(bench.open(), Vec::<String>::new());
}

#[test]
fn a_file_that_failed_in_use_is_looked_at_in_every_way() {
    let mut bench = filled();
    // Two facts that do not agree, which no single table shows.
    Connection::open(bench.path())
        .unwrap()
        .execute_batch("DELETE FROM text_index_data WHERE id > 10")
        .unwrap();
    assert_eq!(bench.open(), Vec::<String>::new());
    bench.close();
    std::fs::write(bench.folder.path().join("chats.sqlite-suspect"), "").unwrap();
    assert!(bench.open()[0].contains("Saved from it: 40 chat(s)"));
    assert_eq!(bench.open(), Vec::<String>::new());
}

/// Overwrites a page with turns in it.
fn break_a_page_of_text(bench: &Bench) {
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(bench.path())
        .unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    let page = bytes
        .chunks(4_096)
        .position(|page| page[0] == 0x0D && has(page, "question 20") && has(page, "long answer"))
        .expect("the text of a turn on a leaf page");
    file.seek(SeekFrom::Start(page as u64 * 4_096)).unwrap();
    file.write_all(&[0xA5; 4_096]).unwrap();
}

fn has(page: &[u8], text: &str) -> bool {
    page.windows(text.len()).any(|window| window == text.as_bytes())
}
