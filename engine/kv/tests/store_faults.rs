//! The store under a system that fails: killed while it writes, and out of room. The failing process is this test
//! binary itself, started again to run one of the tests marked as ignored.

#![cfg(target_os = "linux")]

use reprise_kv::store::{
    ChainHash, ChunkId, ChunkStore, ListOrder, Namespace, NewChunk, Owner, Shard, StoreError, StoreOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tells the started process where its store is.
const FOLDER: &str = "REPRISE_TEST_STORE";
const SPACE: Namespace = Namespace([3; 32]);

/// A chunk of these tokens that begins a prompt.
fn chunk<'a>(tokens: &'a [u32], owner: &'a Owner) -> NewChunk<'a> {
    NewChunk {
        namespace: SPACE,
        parent: ChainHash::START,
        base: 0,
        tokens,
        owner,
        ratio: 1.0,
        embedding: None,
    }
}

fn put(store: &ChunkStore, token: u32, kv: &[u8]) -> Result<ChunkId, StoreError> {
    let owner = Owner::new("chat", format!("{}", token % 3))?;
    let tokens = [token; 40];
    let chunk = chunk(&tokens, &owner);
    let shards = vec![Shard {
        name: "all",
        bytes: kv.len() as u64,
        parts: Box::new(kv.chunks(4_096)),
    }];
    Ok(store.put(&chunk, shards)?.id)
}

fn start(test: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn given_folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// What a chunk of this number holds: tokens that tell the number, and bytes that follow from it, some few enough to
/// stand in the index.
fn contents(number: u32) -> ([u32; 40], Vec<u8>) {
    let bytes = match number % 3 {
        0 => 50 + number as usize % 1_000,
        _ => 100_000 + number as usize * 7_919 % 200_000,
    };
    let byte = |at: usize| (at as u32).wrapping_mul(number | 1).to_le_bytes()[1];
    ([number; 40], (0..bytes).map(byte).collect())
}

/// Stores chunks in batches, erases one owner now and then, and says what is stored and erased, until it is killed.
#[test]
#[ignore = "run by a_killed_writer_leaves_whole_chunks_only"]
fn writes_until_killed() {
    let Some(folder) = given_folder() else { return };
    let (store, _) = ChunkStore::open(&folder, StoreOptions::default()).unwrap();
    let first = std::env::var("REPRISE_TEST_FIRST").map_or(0, |first| first.parse().unwrap());
    for begin in (first..).step_by(4) {
        let owner = Owner::new("chat", format!("{}", begin / 4 % 3)).unwrap();
        let mut batch = store.batch();
        for number in begin..begin + 4 {
            let (tokens, kv) = contents(number);
            let id = store.announce(&chunk(&tokens, &owner)).unwrap().id();
            let half = kv.len() / 2;
            let shards = vec![Shard::whole("one", &kv[..half]), Shard::whole("two", &kv[half..])];
            assert!(batch.add(id, shards).unwrap());
        }
        batch.commit().unwrap();
        for number in begin..begin + 4 {
            println!("\nstored {number}");
        }
        if begin / 4 % 5 == 4 {
            println!("\nerasing {}", begin / 4 % 3);
            store.erase_owner(&owner).unwrap();
            println!("\nerased");
        }
    }
}

#[test]
fn a_killed_writer_leaves_whole_chunks_only() {
    let folder = tempfile::tempdir().unwrap();
    // By number, with their owners; those that are being erased, and those that were.
    let mut stored: BTreeMap<u32, u32> = BTreeMap::new();
    let (mut going, mut gone) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..12 {
        let first = round * 100_000;
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args([
                "writes_until_killed",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(FOLDER, folder.path())
            .env("REPRISE_TEST_FIRST", first.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut hear = |line: String| {
            if let Some(number) = line.strip_prefix("stored ") {
                let number: u32 = number.parse().unwrap();
                stored.insert(number, number / 4 % 3);
                return true;
            }
            if let Some(owner) = line.strip_prefix("erasing ") {
                let owner: u32 = owner.parse().unwrap();
                going.extend(
                    stored
                        .extract_if(.., |_, one| *one == owner)
                        .map(|(number, _)| number),
                );
            } else if line == "erased" {
                gone.append(&mut going);
            }
            false
        };
        // However far it is with the next one; a little later each round, in other places of its work.
        let mut heard = 0;
        while heard <= round * 3
            && let Some(Ok(line)) = lines.next()
        {
            heard += u32::from(hear(line));
        }
        for _ in 0..round * 1_000 {
            std::hint::spin_loop();
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        lines.map_while(Result::ok).for_each(|line| {
            hear(line);
        });
        // An erasure that was cut short may have come about or not.
        going.clear();

        let (store, _) = ChunkStore::open(folder.path(), StoreOptions::default()).unwrap();
        let all = store.list(None, ListOrder::Size).unwrap();
        let mut found = BTreeSet::new();
        let mut with_file = 0;
        for chunk in &all {
            let mut reader = store.load(chunk.id).unwrap();
            let stored = store.record(chunk.id).unwrap().tokens;
            let number = stored[0];
            let (tokens, kv) = contents(number);
            assert_eq!(stored, tokens);
            assert_eq!(reader.read_all().unwrap().concat(), kv, "of chunk {number}");
            assert_eq!(store.with_content(SPACE, &tokens), [chunk.id]);
            with_file += usize::from(kv.len() > 96 << 10);
            found.insert(number);
        }
        let missing: Vec<_> = stored.keys().filter(|number| !found.contains(number)).collect();
        assert!(missing.is_empty(), "chunks {missing:?} are gone");
        // What was committed and not told may be there.
        assert!(found.is_disjoint(&gone), "erased chunks are there");
        let files = std::fs::read_dir(folder.path().join("chunks")).unwrap().count();
        assert_eq!((files, store.stats().unwrap().chunks), (with_file, all.len()));
        drop(store);
        let (_, recovery) = ChunkStore::open(folder.path(), StoreOptions::default()).unwrap();
        assert!(recovery.is_clean(), "{recovery:?}");
    }
}

/// Puts a chunk that is larger than the files this process may write.
#[test]
#[ignore = "run by a_full_disk_leaves_neither_file_nor_row"]
fn writes_more_than_it_may() {
    let Some(folder) = given_folder() else { return };
    // SAFETY: both calls only change this process, which does nothing else; the structure is theirs.
    unsafe {
        // The write itself shall fail, as on a full disk.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let mut limit = std::mem::zeroed::<libc::rlimit>();
        assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit), 0);
        limit.rlim_cur = 2 << 20;
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
    let (store, _) = ChunkStore::open(&folder, StoreOptions::default()).unwrap();
    put(&store, 1, &[1; 1_000]).unwrap();
    for _ in 0..2 {
        let error = put(&store, 2, &vec![2; 3 << 20]).unwrap_err();
        assert!(
            matches!(error, StoreError::File { action: "write", .. }),
            "{error}"
        );
        assert!(error.to_string().contains("free space"), "{error}");
        assert_eq!(store.stats().unwrap().chunks, 1);
        assert_eq!(std::fs::read_dir(folder.join("chunks")).unwrap().count(), 0);
    }
    put(&store, 2, &[2; 1_000]).unwrap();
    // One chunk of a batch that does not fit leaves the others alone.
    let someone = Owner::new("chat", "batch").unwrap();
    let mut batch = store.batch();
    for (token, bytes) in [(3, 200_000), (4, 3 << 20), (5, 200_000)] {
        let id = store.announce(&chunk(&[token; 40], &someone)).unwrap().id();
        let kv = vec![token as u8; bytes];
        assert_eq!(batch.add(id, vec![Shard::whole("all", &kv)]).is_ok(), token != 4);
    }
    assert_eq!(batch.commit().unwrap().written.len(), 2);
    assert!(store.with_content(SPACE, &[4; 40]).is_empty());
    // The index itself has no room at last: what was stored before stays, and nothing half-stored.
    let mut chunks = store.stats().unwrap().chunks;
    for token in 10.. {
        match put(&store, token, &vec![token as u8; 60_000]) {
            Ok(_) => chunks += 1,
            Err(error) => {
                assert!(matches!(error, StoreError::Index { .. }), "{error}");
                assert!(store.with_content(SPACE, &[token; 40]).is_empty());
                break;
            }
        }
    }
    assert_eq!(store.stats().unwrap().chunks, chunks);
    println!("\nas it should be {chunks}");
}

#[test]
fn a_full_disk_leaves_neither_file_nor_row() {
    let folder = tempfile::tempdir().unwrap();
    let writer = start("writes_more_than_it_may", folder.path());
    let output = writer.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("as it should be"),
        "{told}"
    );
    let chunks = told
        .lines()
        .find_map(|line| line.strip_prefix("as it should be "));
    let (store, recovery) = ChunkStore::open(folder.path(), StoreOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{recovery:?}");
    let verified = store.verify_all().unwrap();
    assert_eq!(
        (verified.sound, verified.dropped.len()),
        (chunks.unwrap().parse().unwrap(), 0)
    );
}
