//! Erasing leaves no bytes.

use std::path::Path;

use reprise_library::chats::{ChatId, StoreError, TurnState};
use rusqlite::Connection;

use crate::Bench;

const DAY_MS: i64 = 86_400_000;
const MARKER: &str = "Wohltemperierte-Geheimnisse";
/// Three characters that are nowhere else: one entry of the index.
const RUN: &str = "🜁🜂🜃";

/// The files of a folder that contain any of these texts.
fn files_with(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        for text in texts {
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                names.push(format!("{}: {text}", entry.file_name().to_string_lossy()));
            }
        }
    }
    names
}

fn chat_with_marker(bench: &Bench, number: usize) -> ChatId {
    let text = format!("{MARKER} {number} {RUN} {}", "x".repeat(number % 7 * 50));
    let chat = bench.store().create_chat().unwrap().id;
    let (question, answer) = bench.exchange(chat, None, &text, &text.repeat(number % 5 + 1));
    bench
        .store()
        .rename_chat(chat, &format!("{MARKER} {number}"))
        .unwrap();
    let failed = bench.store().begin_answer(question.id, MARKER).unwrap();
    bench
        .store()
        .finish_answer(failed.id, TurnState::Failed, None, Some(&text))
        .unwrap();
    bench.store().select_branch(answer.id).unwrap();
    let more = bench.store().add_user_turn(chat, Some(answer.id), &text).unwrap();
    let writing = bench.store().begin_answer(more.id, "a model").unwrap();
    bench.store().append_piece(writing.id, &text).unwrap();
    bench.store().set_draft(Some(chat), &text).unwrap();
    chat
}

#[test]
fn erased_chats_leave_no_bytes_in_any_file() {
    let mut bench = Bench::new();
    let mut erased = Vec::new();
    let mut kept = Vec::new();
    for number in 0..60 {
        erased.push(chat_with_marker(&bench, number));
        let chat = bench.store().create_chat().unwrap().id;
        bench.exchange(
            chat,
            None,
            &format!("stays {number}"),
            &"kept text ".repeat(number),
        );
        kept.push(chat);
    }
    let texts = [MARKER, RUN];
    assert!(
        !files_with(bench.folder.path(), &texts).is_empty(),
        "the test looks for something that is there"
    );
    for chat in &erased {
        bench.store().delete_chat(*chat).unwrap();
    }
    assert!(bench.store().search(MARKER, 9).unwrap().is_empty());

    assert_eq!(bench.store().erase_deleted(None).unwrap(), erased);

    assert_eq!(files_with(bench.folder.path(), &texts), Vec::<String>::new());
    bench.close();
    assert_eq!(files_with(bench.folder.path(), &texts), Vec::<String>::new());
    bench.open();
    assert_eq!(bench.store().list().unwrap().chats.len(), kept.len());
    assert_eq!(bench.store().search("kept text", 100).unwrap().len(), 59);
    assert!(matches!(
        bench.store().restore_chat(erased[0]),
        Err(StoreError::Missing { .. })
    ));
    assert!(bench.store().create_chat().unwrap().id > *kept.last().unwrap());
}

#[test]
fn only_chats_deleted_long_enough_ago_are_erased() {
    let bench = Bench::new();
    let [old, recent, alive] =
        ["old", "recent", "alive"].map(|text| bench.store().begin_chat(text).unwrap().chat);
    bench.store().delete_chat(old).unwrap();
    bench.pass_ms(DAY_MS);
    bench.store().delete_chat(recent).unwrap();
    assert_eq!(bench.store().erase_deleted(Some(DAY_MS)).unwrap(), [old]);
    assert_eq!(bench.store().erase_deleted(Some(DAY_MS)).unwrap(), []);
    bench.store().restore_chat(recent).unwrap();
    bench.store().chat(alive).unwrap();
}

#[test]
fn a_chat_deleted_in_the_future_waits_from_now() {
    let bench = Bench::new();
    let chat = bench.store().begin_chat("a").unwrap().chat;
    bench.store().delete_chat(chat).unwrap();
    bench.pass_ms(-1_000 * DAY_MS);
    assert_eq!(bench.store().erase_deleted(Some(DAY_MS)).unwrap(), []);
    bench.pass_ms(DAY_MS);
    assert_eq!(bench.store().erase_deleted(Some(DAY_MS)).unwrap(), [chat]);
}

#[test]
fn an_answer_to_an_erased_chat_is_told_so() {
    let bench = Bench::new();
    let question = bench.store().begin_chat("a").unwrap();
    let answer = bench.store().begin_answer(question.id, "a model").unwrap();
    bench.store().delete_chat(question.chat).unwrap();
    bench.store().erase_deleted(None).unwrap();
    let missing = |error: Option<StoreError>| matches!(error, Some(StoreError::Missing { .. }));
    assert!(missing(bench.store().append_piece(answer.id, "x").err()));
    assert!(missing(
        bench
            .store()
            .finish_answer(answer.id, TurnState::Done, None, None)
            .err()
    ));
}

#[test]
fn bytes_that_could_not_be_removed_are_removed_the_next_time() {
    let bench = Bench::new();
    let chat = chat_with_marker(&bench, 1);
    bench.store().delete_chat(chat).unwrap();
    let other = Connection::open(bench.path()).unwrap();
    other.execute_batch("BEGIN; SELECT count(*) FROM turns;").unwrap();
    match bench.store().erase_deleted(None) {
        Err(error @ StoreError::TracesLeft { .. }) => {
            assert!(error.to_string().contains("in use by another program"), "{error}");
            let StoreError::TracesLeft { chats, .. } = error else {
                unreachable!()
            };
            assert_eq!(chats, [chat]);
        }
        other => panic!("{other:?}"),
    }
    other.execute_batch("COMMIT").unwrap();
    drop(other);
    assert_eq!(bench.store().erase_deleted(None).unwrap(), []);
    assert_eq!(
        files_with(bench.folder.path(), &[MARKER, RUN]),
        Vec::<String>::new()
    );
}
