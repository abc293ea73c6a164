//! Damaged files, a damaged index, and a second store.

use super::*;
use rusqlite::Connection;
use std::time::Duration;

#[test]
fn damaged_files_are_dropped_alone() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("has 0 bytes", |file| file.clear()),
        ("were written", |file| {
            file.pop();
        }),
        ("were written", |file| file.push(0)),
        ("other bytes in shard", |file| *file.last_mut().unwrap() ^= 1),
        ("the header of another file", |file| file[0] ^= 0x80),
        ("the header of another file", |file| file[40] ^= 1),
    ];
    for (reason, damage) in damages {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let (bad, good) = (put(&store, &[1, 2], "a"), put(&store, &[3, 4], "a"));
        let path = store.0.path(bad);
        let mut file = fs::read(&path).unwrap();
        damage(&mut file);
        fs::write(&path, file).unwrap();
        let error = store
            .load(bad)
            .and_then(|mut chunk| chunk.read_all())
            .unwrap_err();
        assert!(
            matches!(&error, StoreError::ChunkDamaged { chunk, .. } if *chunk == bad),
            "{error}"
        );
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!path.exists());
        assert!(matches!(store.load(bad), Err(StoreError::NoSuchChunk(_))));
        assert_eq!(store.verify_all().unwrap().sound, 1);
        assert_eq!(store.load(good).unwrap().read_all().unwrap(), [[3; 1_000]]);
    }
}

#[test]
fn a_file_that_is_another_chunks_is_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let (one, two) = (put(&store, &[1, 2], "a"), put(&store, &[3, 4], "a"));
    fs::copy(store.0.path(one), store.0.path(two)).unwrap();
    let verified = store.verify_all().unwrap();
    assert_eq!((verified.sound, verified.dropped.len()), (1, 1));
    fs::remove_file(store.0.path(one)).unwrap();
    assert!(store.load(one).unwrap_err().to_string().contains("is missing"));
}

#[test]
fn opening_puts_files_and_rows_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = folder.path().join("chunks");
    let (kept, lost) = {
        let store = open(&folder);
        (put(&store, &[1], "a"), put(&store, &[2], "b"))
    };
    fs::remove_file(chunks.join(format!("{lost}.safetensors"))).unwrap();
    fs::write(chunks.join("00000000000000aa.safetensors"), b"x").unwrap();
    fs::write(chunks.join("0000000000000007.part"), b"x").unwrap();
    fs::write(chunks.join("model.safetensors"), b"somebody's own").unwrap();
    let (store, recovery) = open_with(&folder, with_files());
    assert_eq!(
        recovery,
        Recovery {
            index: IndexState::Found,
            files_without_rows: 1,
            rows_without_files: 1,
            unfinished_files: 1,
        }
    );
    assert_eq!(
        chunk_files(folder.path()),
        [store.0.path(kept), chunks.join("model.safetensors")]
    );
    let stats = store.stats().unwrap();
    assert_eq!((stats.chunks, stats.owners), (1, 1));
    // Numbers of chunks that are gone are not given again.
    assert!(put(&store, &[3], "a") > lost);
}

#[test]
fn an_unusable_index_is_replaced_by_an_empty_one_that_says_why() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 7] = [
        ("bytes of token ids", |index| {
            Connection::open(index)
                .unwrap()
                .execute_batch("UPDATE text SET tokens = x'010203'")
                .unwrap();
        }),
        ("it was missing", |index| fs::remove_file(index).unwrap()),
        ("not a database", |index| {
            fs::write(index, vec![b'x'; 20_000]).unwrap()
        }),
        ("", |index| {
            let mut bytes = fs::read(index).unwrap();
            let half = bytes.len() / 2;
            bytes.truncate(half);
            fs::write(index, bytes).unwrap();
        }),
        ("version 99", |index| {
            Connection::open(index)
                .unwrap()
                .pragma_update(None, "user_version", 99)
                .unwrap();
        }),
        ("another program", |index| {
            Connection::open(index)
                .unwrap()
                .pragma_update(None, "application_id", 5)
                .unwrap();
        }),
        ("no table shard", |index| {
            Connection::open(index)
                .unwrap()
                .execute_batch("DROP TABLE shard")
                .unwrap();
        }),
    ];
    for (expected, damage) in damages {
        let folder = tempfile::tempdir().unwrap();
        put(&open(&folder), &[1, 2], "a");
        damage(&folder.path().join("index.sqlite"));
        let (store, recovery) = open_with(&folder, with_files());
        let IndexState::Rebuilt { reason } = &recovery.index else {
            panic!("{expected}: {recovery:?}")
        };
        assert!(reason.contains(expected), "{expected}: {reason}");
        assert_eq!(recovery.files_without_rows, 1);
        assert!(chunk_files(folder.path()).is_empty());
        put(&store, &[1, 2], "a");
        drop(store);
        assert!(open_with(&folder, with_files()).1.is_clean());
    }
}

#[test]
fn any_flipped_byte_of_the_index_gives_an_error_or_less_but_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = open(&folder);
        for at in 0..4 {
            put(&store, &noise(at, 60), "a");
        }
    }
    let path = folder.path().join("index.sqlite");
    let sound = fs::read(&path).unwrap();
    let files: Vec<_> = chunk_files(folder.path())
        .into_iter()
        .map(|path| (fs::read(&path).unwrap(), path))
        .collect();
    for at in noise(9, 60) {
        let mut bytes = sound.clone();
        let at = at as usize * 7 % bytes.len();
        bytes[at] ^= 0x55;
        fs::write(&path, bytes).unwrap();
        for (bytes, path) in &files {
            fs::write(path, bytes).unwrap();
        }
        let Ok((store, _)) = ChunkStore::open(folder.path(), with_files()) else {
            continue;
        };
        for tokens in (0..4).map(|at| noise(at, 60)) {
            let _ = store.longest_prefix(SPACE, ChainHash::START, &tokens);
            let _ = store.runs(SPACE, &tokens, None);
            for id in store.with_content(SPACE, &tokens) {
                let _ = store.load(id).and_then(|mut chunk| chunk.read_all());
            }
        }
        let _ = (
            store.stats(),
            store.owners(),
            store.list(None, ListOrder::Score),
            store.verify_all(),
        );
        let _ = store.erase_owner(&owner("a"));
    }
}

#[test]
fn a_second_store_in_the_folder_is_refused_until_the_first_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let error = ChunkStore::open(folder.path(), with_files()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("close that one"));
    drop(store);
    open(&folder);
}

#[test]
fn an_index_that_another_program_locks_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    put(&open(&folder), &[1], "a");
    let other = Connection::open(folder.path().join("index.sqlite")).unwrap();
    other
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM owner;")
        .unwrap();
    let options = StoreOptions {
        busy_timeout: Duration::ZERO,
        ..with_files()
    };
    let error = ChunkStore::open(folder.path(), options).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    drop(other);
    assert_eq!(open(&folder).stats().unwrap().chunks, 1);
}

#[test]
fn a_row_that_cannot_be_committed_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    store.0.state().index.execute_batch("DROP TABLE shard").unwrap();
    let error = store
        .put(
            &chunk(ChainHash::START, &noise(1, 64), &owner("a")),
            vec![Shard::whole("all", b"kv")],
        )
        .unwrap_err();
    assert!(matches!(error, StoreError::Index { .. }), "{error}");
    assert!(chunk_files(folder.path()).is_empty());
    assert_eq!(store.stats().unwrap().chunks, 0);
}

#[test]
fn a_panic_while_writing_gives_the_budget_back() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        budget_bytes: 1_500,
        ..with_files()
    };
    let store = open_with(&folder, options.clone()).0;
    let panicking = vec![Shard {
        name: "all",
        bytes: 1_000,
        parts: Box::new(std::iter::once_with(|| panic!("the caller's iterator"))),
    }];
    let someone = owner("a");
    let new = chunk(ChainHash::START, &[1], &someone);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(store.put(&new, panicking)))).unwrap_err();
    put(&store, &[1], "a");
    drop(store);
    assert!(open_with(&folder, options).1.is_clean());
}
