//! The store's behaviour, with files in a folder of their own and a clock that the test sets.

mod batch;
mod erasing;
mod faults;
mod keeping;
mod many;
mod matching;

use super::*;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SPACE: Namespace = Namespace([7; 32]);

fn owner(name: &str) -> Owner {
    Owner::new("chat", name).unwrap()
}

/// Options under which every chunk has a file, however small.
fn with_files() -> StoreOptions {
    StoreOptions {
        small_bytes: 0,
        ..StoreOptions::default()
    }
}

fn open(folder: &TempDir) -> ChunkStore {
    open_with(folder, with_files()).0
}

fn open_with(folder: &TempDir, options: StoreOptions) -> (ChunkStore, Recovery) {
    ChunkStore::open(folder.path(), options).unwrap()
}

fn chunk<'a>(parent: ChainHash, tokens: &'a [u32], owner: &'a Owner) -> NewChunk<'a> {
    NewChunk {
        namespace: SPACE,
        parent,
        base: 0,
        tokens,
        owner,
        ratio: 1.0,
        embedding: None,
    }
}

/// Stores tokens at the start of a text, with a kilobyte of KV.
fn put(store: &ChunkStore, tokens: &[u32], name: &str) -> ChunkId {
    put_below(store, ChainHash::START, tokens, name)
}

fn put_below(store: &ChunkStore, parent: ChainHash, tokens: &[u32], name: &str) -> ChunkId {
    let kv = [tokens[0] as u8; 1_000];
    store
        .put(
            &chunk(parent, tokens, &owner(name)),
            vec![Shard::whole("all", &kv)],
        )
        .unwrap()
        .id
}

/// Numbers without a pattern, the same each time.
fn noise(seed: u32, count: usize) -> Vec<u32> {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as u32 % 150_000
        })
        .collect()
}

fn chunk_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder.join("chunks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn what_was_put_is_loaded_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = noise(1, 256);
    let parent = ChainHash::START.then(&[1]);
    let (first, second) = (vec![1_u8; 70_000], vec![2_u8; 3]);
    let someone = owner("a");
    let new = NewChunk {
        base: 256,
        ratio: 0.25,
        ..chunk(parent, &tokens, &someone)
    };
    let id = {
        let store = open(&folder);
        let shards = vec![
            Shard {
                name: "layers.0-7",
                bytes: 70_000,
                parts: Box::new(first.chunks(999)),
            },
            Shard::whole("layers.8-15", &second),
        ];
        store.put(&new, shards).unwrap().id
    };
    let (store, recovery) = open_with(&folder, with_files());
    assert!(recovery.is_clean());
    let mut reader = store.load(id).unwrap();
    assert_eq!(reader.read_all().unwrap(), [first, second]);
    let record = store.record(id).unwrap();
    assert_eq!((reader.record().id, reader.record().base), (id, 256));
    assert_eq!((record.base, record.ratio, record.pinned), (256, 0.25, false));
    assert_eq!((record.parent, record.chain), (parent, parent.then(&tokens)));
    assert_eq!((&record.tokens, record.content), (&tokens, content_hash(&tokens)));
    assert_eq!(record.owners, [owner("a")]);
    assert_eq!(record.shards[0].name, "layers.0-7");
    assert_eq!(record.shards, reader.record().shards);
    assert_eq!(record.tokens, reader.record().tokens);
    assert!(matches!(
        reader.read(2, &mut Vec::new()),
        Err(StoreError::Invalid(_))
    ));
    assert_eq!(store.verify_all().unwrap().sound, 1);
}

#[test]
fn the_same_chain_is_stored_once_and_gets_both_owners() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let first = put(&store, &[1, 2, 3], "a");
    let again = store
        .put(
            &chunk(ChainHash::START, &[1, 2, 3], &owner("b")),
            vec![Shard::whole("all", b"x")],
        )
        .unwrap();
    assert_eq!((again.id, again.written), (first, false));
    assert_eq!(store.record(first).unwrap().owners, [owner("a"), owner("b")]);
    assert_eq!(chunk_files(folder.path()).len(), 1);
    // The same tokens behind another context are another chunk.
    assert_ne!(
        put_below(&store, ChainHash::START.then(&[9]), &[1, 2, 3], "a"),
        first
    );
}

#[test]
fn many_threads_that_put_the_same_chunks_store_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let store = &store;
            scope.spawn(move || {
                (0..8).for_each(|at| {
                    put(store, &noise(at, 40), name);
                })
            });
        }
    });
    let stats = store.stats().unwrap();
    assert_eq!((stats.chunks, stats.owners), (8, 4));
    assert_eq!(chunk_files(folder.path()).len(), 8);
    assert!(store.owners().unwrap().iter().all(|owner| owner.chunks == 8));
}

#[test]
fn a_chunk_outside_of_the_format_is_turned_down_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let someone = owner("a");
    let long = noise(1, 257);
    let good = chunk(ChainHash::START, &[1], &someone);
    let one = || vec![Shard::whole("all", b"x")];
    let short = || {
        vec![Shard {
            name: "all",
            bytes: 5,
            parts: Box::new(std::iter::once(&b"four"[..])),
        }]
    };
    for (new, shards, reason) in [
        (NewChunk { tokens: &[], ..good }, one(), "0 tokens"),
        (
            NewChunk {
                tokens: &long,
                ..good
            },
            one(),
            "257 tokens",
        ),
        (
            NewChunk {
                ratio: f32::NAN,
                ..good
            },
            one(),
            "ratio is NaN",
        ),
        (NewChunk { ratio: 1.5, ..good }, one(), "ratio is 1.5"),
        (good, vec![], "0 shards"),
        (
            good,
            vec![Shard::whole("a", b""), Shard::whole("a", b"")],
            "two of its shards",
        ),
        (good, vec![Shard::whole("a\"b", b"")], "shard name"),
        (good, vec![Shard::whole("__metadata__", b"")], "shard name"),
        (good, short(), "was to have 5 bytes, its parts have 4"),
        (
            good,
            vec![Shard {
                bytes: u64::MAX,
                ..Shard::whole("a", b"")
            }],
            "2^48",
        ),
    ] {
        let error = store.put(&new, shards).unwrap_err();
        assert!(error.to_string().contains(reason), "{error} for {reason}");
    }
    assert!(Owner::new("chat:x", "1").is_err() && Owner::new("chat", "").is_err());
    assert!(chunk_files(folder.path()).is_empty());
    assert_eq!(store.stats().unwrap().chunks, 0);
}
