//! The store under a system that fails: killed while it writes, and out of room. The failing process is this test
//! binary itself, started again to run one of the tests marked as ignored.

#![cfg(target_os = "linux")]

use reprise_kv::store::{
    ChainHash, ChunkId, ChunkStore, Namespace, NewChunk, Owner, Shard, StoreError, StoreOptions,
};
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tells the started process where its store is.
const FOLDER: &str = "REPRISE_TEST_STORE";
const SPACE: Namespace = Namespace([3; 32]);

fn put(store: &ChunkStore, token: u32, kv: &[u8]) -> Result<ChunkId, StoreError> {
    let owner = Owner::new("chat", format!("{}", token % 3))?;
    let tokens = [token; 40];
    let chunk = NewChunk {
        namespace: SPACE,
        parent: ChainHash::START,
        base: 0,
        tokens: &tokens,
        owner: &owner,
        ratio: 1.0,
        embedding: None,
    };
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

/// Puts chunks of various sizes, erases some, and says which are stored, until it is killed.
#[test]
#[ignore = "run by a_killed_writer_leaves_whole_chunks_only"]
fn writes_until_killed() {
    let Some(folder) = given_folder() else { return };
    let (store, _) = ChunkStore::open(&folder, StoreOptions::default()).unwrap();
    let first = store.stats().unwrap().chunks as u32 * 1_000;
    for token in first.. {
        let kv = vec![token as u8; (token as usize * 7_919) % 300_000];
        println!("\nstored {}", put(&store, token, &kv).unwrap());
    }
}

#[test]
fn a_killed_writer_leaves_whole_chunks_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut stored = HashSet::new();
    for round in 0..8 {
        let mut writer = start("writes_until_killed", folder.path());
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut told = lines
            .map_while(Result::ok)
            .filter(|line| line.starts_with("stored "));
        // However far it is with the next one.
        stored.extend(told.by_ref().take(1 + round * 2));
        writer.kill().unwrap();
        writer.wait().unwrap();
        stored.extend(told);

        let (store, _) = ChunkStore::open(folder.path(), StoreOptions::default()).unwrap();
        let verified = store.verify_all().unwrap();
        assert!(verified.dropped.is_empty(), "{:?}", verified.dropped);
        assert!(verified.sound >= stored.len());
        let files: HashSet<String> = std::fs::read_dir(folder.path().join("chunks"))
            .unwrap()
            .map(|entry| {
                entry
                    .unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        assert_eq!(files.len(), verified.sound);
        for line in &stored {
            assert!(
                files.contains(line.trim_start_matches("stored ")),
                "{line} is gone"
            );
        }
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
        assert_eq!(std::fs::read_dir(folder.join("chunks")).unwrap().count(), 1);
    }
    put(&store, 2, &[2; 1_000]).unwrap();
    println!("\nas it should be");
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
    let (store, recovery) = ChunkStore::open(folder.path(), StoreOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{recovery:?}");
    assert_eq!(store.verify_all().unwrap().sound, 2);
}
