//! What only the inside can show: steps between formats that do not exist yet, a disk that is full, plans of queries.

use std::path::Path;

use rusqlite::Connection;

use super::error::StoreError;
use super::{ChatStore, paths, schema};

const V1: &str = schema::MIGRATIONS[0];
const V2: &str = "ALTER TABLE chats ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'";

fn open(path: &Path, migrations: &[&str]) -> Result<(ChatStore, Vec<String>), StoreError> {
    ChatStore::open_with_migrations(path, Box::new(|| 1_800_000_000_000), migrations)
}

/// The databases in a folder, without the files that SQLite has beside each.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm"))
        .collect();
    names.sort();
    names
}

#[test]
fn an_old_file_is_copied_before_it_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chats.sqlite");
    let (store, _) = open(&path, &[V1]).unwrap();
    let turn = store.begin_chat("from before").unwrap();
    drop(store);

    let (store, notices) = open(&path, &[V1, V2]).unwrap();

    let backup = folder.path().join("chats.v1.backup.sqlite");
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains(backup.to_str().unwrap()), "{notices:?}");
    assert_eq!(store.chat(turn.chat).unwrap().turns, std::slice::from_ref(&turn));
    assert_eq!(schema::version(&store.lock_reader()).unwrap(), 2);
    drop(store);
    let (store, notices) = open(&path, &[V1, V2]).unwrap();
    assert!(notices.is_empty(), "{notices:?}");
    drop(store);
    assert_eq!(names(folder.path()), ["chats.sqlite", "chats.v1.backup.sqlite"]);

    // The copy is a whole store of the old version, and the older program refuses the new one.
    assert!(matches!(
        open(&path, &[V1]),
        Err(StoreError::Newer {
            found: 2,
            known: 1,
            ..
        })
    ));
    let (old, notices) = open(&backup, &[V1]).unwrap();
    assert!(notices.is_empty());
    assert_eq!(old.chat(turn.chat).unwrap().turns, [turn]);
}

#[test]
fn a_file_of_many_versions_ago_takes_all_steps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chats.sqlite");
    // Before version 1 there was, say, a table that nothing needs.
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE ancient (a); INSERT INTO ancient VALUES (1)")
        .unwrap();
    let (store, notices) = open(&path, &[V1, V2, "DROP TABLE ancient"]).unwrap();
    assert!(notices[0].contains("chats.v0.backup.sqlite"), "{notices:?}");
    store.begin_chat("hello").unwrap();
    assert_eq!(schema::version(&store.lock_reader()).unwrap(), 3);
    let backup = Connection::open(folder.path().join("chats.v0.backup.sqlite")).unwrap();
    assert_eq!(
        backup
            .query_row("SELECT a FROM ancient", [], |row| row.get::<_, i64>(0))
            .unwrap(),
        1
    );
}

#[test]
fn a_step_that_fails_changes_nothing_and_says_where_the_copy_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chats.sqlite");
    let (store, _) = open(&path, &[V1]).unwrap();
    let turn = store.begin_chat("from before").unwrap();
    drop(store);
    let dangling =
        "INSERT INTO turns (chat, role, state, created_ms, text) VALUES (77, 'user', 'done', 0, 'x')";
    for bad in ["CREATE TABLE half (a); SELECT nonsense", dangling] {
        let error = open(&path, &[V1, bad]).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Migration {
                    from: 1,
                    to: 2,
                    backup: Some(_),
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(error.to_string().contains("the file is as it was"), "{error}");
        let (store, notices) = open(&path, &[V1]).unwrap();
        assert!(notices.is_empty());
        assert_eq!(store.chat(turn.chat).unwrap().turns, std::slice::from_ref(&turn));
        assert!(store.lock_reader().prepare("SELECT * FROM half").is_err());
    }
    let expected = [
        "chats.sqlite",
        "chats.v1.backup-2.sqlite",
        "chats.v1.backup.sqlite",
    ];
    assert_eq!(names(folder.path()), expected, "no copy replaces another");
}

#[test]
fn a_full_disk_is_explained_and_costs_only_the_last_change() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(&folder.path().join("chats.sqlite"), schema::MIGRATIONS).unwrap();
    let question = store.begin_chat("hello").unwrap();
    let answer = store.begin_answer(question.id, "a model").unwrap();
    let limit = |pages: i64| {
        let writer = store.lock_writer();
        writer
            .connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
            .unwrap();
    };
    limit(1); // Not less than what the file has: no further page.
    let error = store
        .add_user_turn(question.chat, None, &"long ".repeat(100_000))
        .unwrap_err();
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert!(matches!(
        store.append_piece(answer.id, &"x".repeat(100_000)),
        Err(StoreError::DiskFull { .. })
    ));
    limit(1 << 30);
    store.append_piece(answer.id, "world").unwrap();
    assert_eq!(store.chat(question.chat).unwrap().turns[1].text, "world");
}

#[test]
fn a_chat_is_read_without_looking_through_other_chats() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(&folder.path().join("chats.sqlite"), schema::MIGRATIONS).unwrap();
    let reader = store.lock_reader();
    let plan: Vec<String> = reader
        .prepare(&format!("EXPLAIN QUERY PLAN {}", paths::PATH))
        .unwrap()
        .query_map([1], |row| row.get(3))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    for step in &plan {
        assert!(
            !step.starts_with("SCAN") || step.contains("path") || step.contains("CONSTANT"),
            "{plan:#?}"
        );
    }
    assert!(
        plan.iter()
            .any(|step| step.contains("turns_by_chat (chat=? AND parent=?)")),
        "{plan:#?}"
    );
}
