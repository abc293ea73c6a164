//! Opening: new, old, newer, unwritable and busy files, and answers that were cut short.

use reprise_library::chats::{ChatId, ChatStore, FolderId, StoreError, TurnId, TurnState};
use rusqlite::Connection;
use serde_json::json;

use crate::Bench;

const V1: &str = include_str!("v1.sql");

#[test]
fn folders_on_the_way_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a").join("b").join("chats.sqlite");
    let (store, notices) = ChatStore::open(&path).unwrap();
    assert!(notices.is_empty());
    assert_eq!(store.path(), path);
    store.begin_chat("hello").unwrap();
    drop(store);
    let (store, notices) = ChatStore::open(&path).unwrap();
    assert!(notices.is_empty());
    assert_eq!(store.list().unwrap().chats.len(), 1);
}

#[cfg(unix)]
#[test]
fn nobody_else_on_the_computer_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    bench.store().begin_chat("hello").unwrap();
    for name in bench.files() {
        let mode = std::fs::metadata(bench.folder.path().join(&name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
}

#[test]
fn the_first_released_format_is_the_one_in_the_fixture() {
    let shipped = include_str!("../../src/chats/schema_v1.sql");
    assert!(
        V1.starts_with(shipped),
        "a released step must not change: add another one"
    );
}

#[test]
fn a_file_of_version_1_has_everything_it_had() {
    let mut bench = Bench::closed();
    Connection::open(bench.path()).unwrap().execute_batch(V1).unwrap();

    let notices = bench.open();

    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(
        notices[0].starts_with("Your chats were brought to a new format"),
        "{notices:?}"
    );
    assert!(notices[1].starts_with("1 answer was cut short"), "{notices:?}");
    let store = bench.store();
    let list = store.list().unwrap();
    assert_eq!(list.chats.len(), 1);
    let summary = &list.chats[0];
    assert_eq!(
        (summary.id, summary.folder, summary.pinned),
        (ChatId(3), Some(FolderId(2)), true)
    );
    assert_eq!(
        (summary.title.as_deref(), summary.draft.as_str()),
        (Some("Apple trees"), "And pears?")
    );
    assert_eq!(
        (summary.created_ms, summary.updated_ms),
        (1_700_000_000_000, 1_700_000_500_000)
    );
    assert_eq!(list.folders[0].name, "Garden");
    let turns = store.chat(ChatId(3)).unwrap().turns;
    assert_eq!(turns[1].text, "In late winter");
    assert_eq!(turns[1].state, TurnState::Interrupted);
    let other = store.turn(TurnId(11)).unwrap();
    assert_eq!(other.stats.unwrap().first_token_ms, 210);
    assert_eq!(other.branch.siblings, [TurnId(11), TurnId(13)]);
    assert_eq!(store.setting("settings").unwrap(), Some(json!({"theme": "dark"})));
    assert_eq!(store.new_chat_draft().unwrap(), "Something new");
    assert_eq!(store.search("february", 9).unwrap().len(), 1);
    assert_eq!(
        store.search("late winter", 9).unwrap().len(),
        1,
        "what was folded in is searchable"
    );
    assert!(store.search("secret", 9).unwrap().is_empty());
    assert_eq!(
        store.restore_chat(ChatId(5)).unwrap().title.as_deref(),
        Some("Old plans")
    );
    assert_eq!(store.create_chat().unwrap().id, ChatId(6), "ids go on");
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let mut bench = Bench::new();
    bench.store().begin_chat("from the future").unwrap();
    bench.close();
    Connection::open(bench.path())
        .unwrap()
        .pragma_update(None, "user_version", 77)
        .unwrap();
    let before = std::fs::read(bench.path()).unwrap();
    let error = ChatStore::open(bench.path()).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 77, .. }));
    assert!(error.to_string().contains("update Reprise"), "{error}");
    assert_eq!(std::fs::read(bench.path()).unwrap(), before);
    let is_expected =
        |name: &String| ["chats.sqlite", "chats.sqlite-shm", "chats.sqlite-wal"].contains(&name.as_str());
    assert!(bench.files().iter().all(is_expected), "{:?}", bench.files());
}

#[test]
fn answers_that_were_being_written_end_as_interrupted() {
    let mut bench = Bench::new();
    for text in ["one", "two", "put away"] {
        let question = bench.store().begin_chat(text).unwrap();
        let answer = bench.store().begin_answer(question.id, "a model").unwrap();
        bench.store().append_piece(answer.id, "so ").unwrap();
        bench.store().append_piece(answer.id, "far").unwrap();
        if text == "put away" {
            bench.store().delete_chat(question.chat).unwrap();
        }
    }
    let notices = bench.open();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].starts_with("2 answers were cut short"), "{notices:?}");
    for chat in bench.store().list().unwrap().chats {
        let turn = bench.store().chat(chat.id).unwrap().turns.pop().unwrap();
        assert_eq!(
            (turn.text.as_str(), turn.state),
            ("so far", TurnState::Interrupted)
        );
        bench.store().continue_answer(turn.id).unwrap();
        bench.store().append_piece(turn.id, ", and on").unwrap();
        let turn = bench
            .store()
            .finish_answer(turn.id, TurnState::Done, None, None)
            .unwrap();
        assert_eq!(turn.text, "so far, and on");
    }
    assert_eq!(bench.open(), Vec::<String>::new());
}

#[test]
fn a_path_that_cannot_be_a_file_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = ChatStore::open(file.join("chats.sqlite")).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    let error = ChatStore::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("cannot open"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_explained() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(folder.path().join("probe"), "x").is_ok() {
        println!("skipped: this user (root?) may write into a read-only folder");
        return;
    }
    let error = ChatStore::open(folder.path().join("chats.sqlite")).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("give yourself the right"), "{error}");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_file_that_another_program_holds_is_explained() {
    let bench = Bench::new();
    let other = Connection::open(bench.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = bench.store().begin_chat("hello").unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    assert!(bench.store().list().unwrap().chats.is_empty(), "reading goes on");
    other.execute_batch("COMMIT").unwrap();
    bench.store().begin_chat("hello").unwrap();
}
