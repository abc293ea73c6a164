//! The store's behaviour, with files in a folder of their own and a clock that the test sets.

use super::matching;
use super::rows::{self, Written};
use super::*;
use proptest::prelude::*;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const SPACE: Namespace = Namespace([7; 32]);
const DAY_MS: i64 = 24 * 3_600_000;

fn owner(name: &str) -> Owner {
    Owner::new("chat", name).unwrap()
}

fn open(folder: &TempDir) -> ChunkStore {
    open_with(folder, StoreOptions::default()).0
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
    }
}

/// Stores tokens at the start of a text, with a kilobyte of KV.
fn put(store: &ChunkStore, tokens: &[u32], name: &str) -> ChunkId {
    put_below(store, ChainHash::START, tokens, name)
}

fn put_below(store: &ChunkStore, parent: ChainHash, tokens: &[u32], name: &str) -> ChunkId {
    let kv = [tokens[0] as u8; 1_000];
    store
        .put(&chunk(parent, tokens, &owner(name)), vec![Shard::whole("all", &kv)])
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
    let mut files: Vec<_> = fs::read_dir(folder.join("chunks")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn what_was_put_is_loaded_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = noise(1, 256);
    let parent = ChainHash::START.then(&[1]);
    let (first, second) = (vec![1_u8; 70_000], vec![2_u8; 3]);
    let new = NewChunk {
        base: 256,
        ratio: 0.25,
        ..chunk(parent, &tokens, &owner("a"))
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
    let (store, recovery) = open_with(&folder, StoreOptions::default());
    assert!(recovery.is_clean());
    let mut reader = store.load(id).unwrap();
    assert_eq!(reader.read_all().unwrap(), [first, second]);
    let record = reader.record();
    assert_eq!((record.base, record.ratio, record.pinned), (256, 0.25, false));
    assert_eq!((record.parent, record.chain), (parent, parent.then(&tokens)));
    assert_eq!((&record.tokens, record.content), (&tokens, content_hash(&tokens)));
    assert_eq!(record.owners, [owner("a")]);
    assert_eq!(record.shards[0].name, "layers.0-7");
    assert!(matches!(reader.read(2, &mut Vec::new()), Err(StoreError::Invalid(_))));
    assert_eq!(store.verify_all().unwrap().sound, 1);
}

#[test]
fn the_same_chain_is_stored_once_and_gets_both_owners() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let first = put(&store, &[1, 2, 3], "a");
    let again = store
        .put(&chunk(ChainHash::START, &[1, 2, 3], &owner("b")), vec![Shard::whole("all", b"x")])
        .unwrap();
    assert_eq!((again.id, again.written), (first, false));
    assert_eq!(store.record(first).unwrap().owners, [owner("a"), owner("b")]);
    assert_eq!(chunk_files(folder.path()).len(), 1);
    // The same tokens behind another context are another chunk.
    assert_ne!(put_below(&store, ChainHash::START.then(&[9]), &[1, 2, 3], "a"), first);
}

#[test]
fn many_threads_that_put_the_same_chunks_store_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let store = &store;
            scope.spawn(move || (0..8).for_each(|at| drop(put(store, &noise(at, 40), name))));
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
        (NewChunk { tokens: &long, ..good }, one(), "257 tokens"),
        (NewChunk { ratio: f32::NAN, ..good }, one(), "ratio is NaN"),
        (NewChunk { ratio: 1.5, ..good }, one(), "ratio is 1.5"),
        (good, vec![], "0 shards"),
        (good, vec![Shard::whole("a", b""), Shard::whole("a", b"")], "two of its shards"),
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

#[test]
fn a_prompt_matches_the_longest_chain_and_may_end_inside_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let text = noise(1, 700);
    let after = |end: usize| text[..end].chunks(256).fold(ChainHash::START, |chain, part| chain.then(part));
    let first = put(&store, &text[..256], "a");
    let second = put_below(&store, after(256), &text[256..512], "a");
    put_below(&store, after(256), &noise(2, 256), "a");
    let prompt = [&text[..400], &noise(3, 50)].concat();
    let found = store.longest_prefix(SPACE, ChainHash::START, &prompt).unwrap();
    assert_eq!(found.tokens, 400);
    let chunks: Vec<_> = found.chunks.iter().map(|chunk| (chunk.chunk, chunk.tokens)).collect();
    assert_eq!(chunks, [(first, 256), (second, 144)]);
    // From the middle on, and in another namespace.
    assert_eq!(store.longest_prefix(SPACE, after(256), &text[256..]).unwrap().tokens, 256);
    let other = store.longest_prefix(Namespace([8; 32]), ChainHash::START, &prompt).unwrap();
    assert_eq!(other, PrefixMatch::default());
}

#[test]
fn a_chunk_whose_parent_is_gone_is_found_by_content_and_again_below_a_new_parent() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let chain = ChainHash::START.then(&[1, 2]);
    let parent = put(&store, &[1, 2], "parent");
    let child = put_below(&store, chain, &[3, 4], "child");
    fs::write(store.0.path(parent), b"not a chunk").unwrap();
    let Err(StoreError::ChunkDamaged { chunk: dropped, .. }) = store.load(parent) else { panic!("it loads") };
    assert_eq!(dropped, parent);
    assert_eq!(store.longest_prefix(SPACE, ChainHash::START, &[1, 2, 3, 4]).unwrap().tokens, 0);
    assert_eq!(store.with_content(SPACE, &[3, 4]).unwrap(), [child]);
    put(&store, &[1, 2], "parent");
    assert_eq!(store.longest_prefix(SPACE, ChainHash::START, &[1, 2, 3, 4]).unwrap().tokens, 4);
}

/// An index without files.
fn bare_index(chunks: &[(ChainHash, Vec<u32>)]) -> (Connection, Vec<ChunkId>) {
    let memory = Path::new(":memory:");
    let (index, _) = schema::open(memory, memory, Duration::ZERO).unwrap();
    let someone = owner("a");
    let mut ids = Vec::new();
    for (parent, tokens) in chunks {
        let new = chunk(*parent, tokens, &someone);
        let id = ChunkId(ids.len() as i64 + 1);
        ids.push(rows::same_chain(&index, &new).unwrap().unwrap_or_else(|| {
            let written = Written {
                id,
                bytes: 1,
                shards: &[],
                now_ms: 0,
            };
            rows::insert(&index, &new, &written).unwrap();
            id
        }));
    }
    (index, ids)
}

/// The longest match by trying every chunk, with its chunks counted.
fn plain_prefix(chunks: &[(ChainHash, Vec<u32>)], from: ChainHash, prompt: &[u32]) -> (usize, usize) {
    let mut best = (0, 0);
    for (_, tokens) in chunks.iter().filter(|(parent, _)| *parent == from) {
        let common = tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        let (mut matched, mut depth) = (common, 1);
        if common == tokens.len() {
            let (more, deeper) = plain_prefix(chunks, from.then(tokens), &prompt[common..]);
            (matched, depth) = (common + more, 1 + deeper);
        }
        if common > 0 && (matched > best.0 || matched == best.0 && depth < best.1) {
            best = (matched, depth);
        }
    }
    best
}

proptest! {
    #[test]
    fn matching_agrees_with_trying_every_chunk(
        plan in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(0_u32..3, 1..6)), 1..24),
        prompts in prop::collection::vec(prop::collection::vec(0_u32..3, 0..20), 1..8),
    ) {
        // Each chunk hangs below the start or a chunk before it.
        let mut chains = vec![ChainHash::START];
        let mut chunks = Vec::new();
        for (parent, tokens) in plan {
            let parent = *parent.get(&chains);
            chains.push(parent.then(&tokens));
            chunks.push((parent, tokens));
        }
        let (index, ids) = bare_index(&chunks);
        for prompt in prompts {
            let found = matching::longest_prefix(&index, 1, ChainHash::START, &prompt).unwrap();
            prop_assert_eq!((found.tokens, found.chunks.len()), plain_prefix(&chunks, ChainHash::START, &prompt));
            let mut rest = &prompt[..];
            for matched in &found.chunks {
                let stored = rows::tokens(&index, matched.chunk).unwrap();
                prop_assert!(rest.starts_with(&stored[..matched.tokens]));
                rest = &rest[matched.tokens..];
            }
            let same: BTreeSet<_> = ids.iter().zip(&chunks)
                .filter(|(_, (_, tokens))| *tokens == prompt).map(|(id, _)| *id).collect();
            prop_assert_eq!(matching::with_content(&index, 1, &prompt).unwrap(), Vec::from_iter(same));
        }
    }

    #[test]
    fn every_run_of_every_chunk_is_found(
        cuts in prop::collection::vec((0_usize..200, 20_usize..120), 1..16),
        pieces in prop::collection::vec((0_usize..200, 1_usize..90), 1..6),
    ) {
        let text = noise(1, 320);
        let chunks: Vec<_> = cuts.iter().map(|&(at, length)| (ChainHash::START, text[at..at + length].to_vec())).collect();
        let prompt: Vec<u32> = pieces.iter().flat_map(|&(at, length)| text[at..at + length].to_vec()).collect();
        let (index, ids) = bare_index(&chunks);
        let mut wanted: BTreeSet<_> = BTreeSet::new();
        for (id, (_, tokens)) in ids.iter().zip(&chunks) {
            wanted.extend(common_runs(&prompt, tokens, MIN_RUN_TOKENS).into_iter()
                .map(|run| (*id, run.second.start, run.second.end, run.first.start)));
        }
        let found: BTreeSet<_> = matching::runs(&index, 1, &prompt, 64).unwrap().into_iter()
            .map(|run| (run.chunk, run.in_chunk.start, run.in_chunk.end, run.in_prompt.start)).collect();
        prop_assert_eq!(found, wanted);
    }
}

#[test]
fn equal_hashes_of_other_tokens_are_not_a_match() {
    let (index, _) = bare_index(&[(ChainHash::START, vec![1, 2, 3])]);
    index.execute("UPDATE chunk SET content = ?1", [content_hash(&[4, 5, 6]) as i64]).unwrap();
    assert!(matching::with_content(&index, 1, &[4, 5, 6]).unwrap().is_empty());
}

#[test]
fn damaged_files_are_dropped_alone() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("has 0 bytes", |file| file.clear()),
        ("were written", |file| drop(file.pop())),
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
        let error = store.load(bad).and_then(|mut chunk| chunk.read_all()).unwrap_err();
        assert!(matches!(&error, StoreError::ChunkDamaged { chunk, .. } if *chunk == bad), "{error}");
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
    let (store, recovery) = open_with(&folder, StoreOptions::default());
    assert_eq!(
        recovery,
        Recovery {
            index: IndexState::Found,
            files_without_rows: 1,
            rows_without_files: 1,
            unfinished_files: 1,
        }
    );
    assert_eq!(chunk_files(folder.path()), [store.0.path(kept), chunks.join("model.safetensors")]);
    let stats = store.stats().unwrap();
    assert_eq!((stats.chunks, stats.owners), (1, 1));
    // Numbers of chunks that are gone are not given again.
    assert!(put(&store, &[3], "a") > lost);
}

#[test]
fn an_unusable_index_is_replaced_by_an_empty_one_that_says_why() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("it was missing", |index| fs::remove_file(index).unwrap()),
        ("not a database", |index| fs::write(index, vec![b'x'; 20_000]).unwrap()),
        ("malformed", |index| {
            let mut bytes = fs::read(index).unwrap();
            let half = bytes.len() / 2;
            bytes.truncate(half);
            fs::write(index, bytes).unwrap();
        }),
        ("version 99", |index| {
            Connection::open(index).unwrap().pragma_update(None, "user_version", 99).unwrap();
        }),
        ("another program", |index| {
            Connection::open(index).unwrap().pragma_update(None, "application_id", 5).unwrap();
        }),
        ("no table gram", |index| {
            Connection::open(index).unwrap().execute_batch("DROP TABLE gram").unwrap();
        }),
    ];
    for (expected, damage) in damages {
        let folder = tempfile::tempdir().unwrap();
        put(&open(&folder), &[1, 2], "a");
        damage(&folder.path().join("index.sqlite"));
        let (store, recovery) = open_with(&folder, StoreOptions::default());
        let IndexState::Rebuilt { reason } = &recovery.index else { panic!("{expected}: {recovery:?}") };
        assert!(reason.contains(expected), "{expected}: {reason}");
        assert_eq!(recovery.files_without_rows, 1);
        assert!(chunk_files(folder.path()).is_empty());
        put(&store, &[1, 2], "a");
        drop(store);
        assert!(open_with(&folder, StoreOptions::default()).1.is_clean());
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
    for at in noise(9, 60) {
        let mut bytes = sound.clone();
        let at = at as usize * 7 % bytes.len();
        bytes[at] ^= 0x55;
        fs::write(&path, bytes).unwrap();
        let Ok((store, _)) = ChunkStore::open(folder.path(), StoreOptions::default()) else { continue };
        for tokens in (0..4).map(|at| noise(at, 60)) {
            let _ = store.longest_prefix(SPACE, ChainHash::START, &tokens);
            let _ = store.runs(SPACE, &tokens);
            for id in store.with_content(SPACE, &tokens).unwrap_or_default() {
                let _ = store.load(id).and_then(|mut chunk| chunk.read_all());
            }
        }
        let _ = (store.stats(), store.owners(), store.list(None, ListOrder::Score), store.verify_all());
        let _ = store.erase_owner(&owner("a"));
    }
}

#[test]
fn a_second_store_in_the_folder_is_refused_until_the_first_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let error = ChunkStore::open(folder.path(), StoreOptions::default()).unwrap_err();
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
        ..StoreOptions::default()
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
    store.0.state().index.execute_batch("DROP TABLE gram").unwrap();
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
        ..StoreOptions::default()
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
    assert_eq!(open_with(&folder, options).1.unfinished_files, 1);
}

/// Whether any file below the folder has these bytes.
fn found_on_disk(folder: &Path, wanted: &[u8]) -> bool {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read(&path).unwrap().windows(wanted.len()).any(|bytes| bytes == wanted) {
                return true;
            }
        }
    }
    false
}

/// All windows of so many bytes in all files of a folder.
fn windows_on_disk(folder: &Path) -> std::collections::HashSet<[u8; 12]> {
    let mut windows = std::collections::HashSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            windows.extend(windows_on_disk(&path));
        } else {
            windows.extend(fs::read(&path).unwrap().array_windows::<12>().copied());
        }
    }
    windows
}

#[test]
fn an_erased_owner_leaves_no_token_and_no_name_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let texts: Vec<Vec<u32>> = (0..120).map(|at| noise(at, 20 + at as usize * 97 % 237)).collect();
    for (at, text) in texts.iter().enumerate() {
        put(&store, text, if at % 3 == 0 { "the private one" } else { "another one" });
    }
    // The other owner's chunks come and go as well, so that the index's pages are merged and split.
    let shared = put(&store, &texts[0], "another one");
    assert!(found_on_disk(folder.path(), b"the private one"));
    let bytes = |text: &[u32]| text.iter().flat_map(|token| token.to_be_bytes()).collect::<Vec<u8>>();
    assert!(found_on_disk(folder.path(), &bytes(&texts[3])));

    let erased = store.erase_owner(&owner("the private one")).unwrap();
    assert_eq!((erased.chunks, erased.kept), (39, 1));
    assert_eq!(store.record(shared).unwrap().owners, [owner("another one")]);
    assert!(!found_on_disk(folder.path(), b"the private one"));
    let left = windows_on_disk(folder.path());
    for (at, text) in texts.iter().enumerate().filter(|(at, _)| at % 3 == 0 && *at > 0) {
        for three in text.windows(3) {
            let three: [u8; 12] = bytes(three).try_into().unwrap();
            assert!(!left.contains(&three), "tokens of text {at}");
        }
    }
    assert_eq!(store.verify_all().unwrap().sound, 81);
    assert_eq!(chunk_files(folder.path()).len(), 81);
    assert_eq!(store.erase_owner(&owner("the private one")).unwrap(), Erased::default());
}

#[test]
fn other_namespaces_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let kept = put(&store, &[1], "a");
    let someone = owner("b");
    let foreign = NewChunk {
        namespace: Namespace([9; 32]),
        ..chunk(ChainHash::START, &[1], &someone)
    };
    assert!(store.put(&foreign, vec![Shard::whole("all", b"kv")]).unwrap().written);
    assert_eq!(store.stats().unwrap().namespaces, 2);
    assert_eq!(store.forget_namespaces_except(&[SPACE]).unwrap().chunks, 1);
    let stats = store.stats().unwrap();
    assert_eq!((stats.chunks, stats.namespaces, stats.owners), (1, 1, 1));
    assert_eq!(store.with_content(SPACE, &[1]).unwrap(), [kept]);
}

/// A store of at most so many chunks of [`put`], and its clock.
fn small_store(folder: &TempDir, chunks: u64) -> (ChunkStore, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(100 * DAY_MS));
    let clock = Arc::clone(&now);
    let options = StoreOptions {
        budget_bytes: chunks * 1_300,
        clock: Clock::new(move || clock.load(Ordering::Relaxed)),
        ..StoreOptions::default()
    };
    (open_with(folder, options).0, now)
}

#[test]
fn the_budget_evicts_what_is_worth_least() {
    let folder = tempfile::tempdir().unwrap();
    let (store, now) = small_store(&folder, 3);
    let [old, used, fresh] = [1_u32, 2, 3].map(|token| {
        now.fetch_add(DAY_MS, Ordering::Relaxed);
        put(&store, &[token; 8], "a")
    });
    store.record_use(&[used, ChunkId(999)]).unwrap();
    assert_eq!(store.record(used).unwrap().uses.weight, 1.5);
    let list = store.list(Some(&owner("a")), ListOrder::Score).unwrap();
    assert_eq!(list.iter().map(|one| one.id).collect::<Vec<_>>(), [used, fresh, old]);
    assert_eq!(list[2].weight, 0.25);
    put(&store, &[4; 8], "a");
    assert!(matches!(store.record(old), Err(StoreError::NoSuchChunk(_))));
    store.set_pinned(fresh, true).unwrap();
    put(&store, &[5; 8], "a");
    store.record(fresh).unwrap();
    let stats = store.stats().unwrap();
    assert!(stats.bytes <= stats.budget_bytes);
    assert_eq!((stats.chunks, stats.pinned_chunks), (3, 1));
    assert_eq!(chunk_files(folder.path()).len(), 3);
}

#[test]
fn pinned_chunks_that_fill_the_budget_turn_others_down_and_nothing_is_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = small_store(&folder, 2);
    let pinned = put(&store, &[1; 8], "a");
    put(&store, &[2; 8], "a");
    store.set_pinned(pinned, true).unwrap();
    let kv = [0; 2_000];
    let error = store
        .put(&chunk(ChainHash::START, &[3], &owner("a")), vec![Shard::whole("all", &kv)])
        .unwrap_err();
    assert!(matches!(error, StoreError::NoRoom { .. }), "{error}");
    assert_eq!(store.stats().unwrap().chunks, 2);
    assert!(matches!(store.set_pinned(ChunkId(99), true), Err(StoreError::NoSuchChunk(_))));
}

#[test]
fn a_clock_that_jumps_back_keeps_weights_and_lets_them_decay_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, now) = small_store(&folder, 9);
    let id = put(&store, &[1; 8], "a");
    now.store(DAY_MS, Ordering::Relaxed);
    assert_eq!(store.list(None, ListOrder::Size).unwrap()[0].weight, 1.0);
    drop(store);
    // Opened under the new time, the use counts as one of now.
    let clock = Arc::clone(&now);
    let options = StoreOptions {
        clock: Clock::new(move || clock.load(Ordering::Relaxed)),
        ..StoreOptions::default()
    };
    let store = open_with(&folder, options).0;
    now.fetch_add(DAY_MS, Ordering::Relaxed);
    assert_eq!(store.list(None, ListOrder::Size).unwrap()[0].weight, 0.5);
    store.record_use(&[id]).unwrap();
    assert_eq!(store.record(id).unwrap().uses.weight, 1.5);
}
