//! What is erased leaves no trace.

use super::*;
use std::collections::HashSet;

/// Whether any file below the folder has these bytes.
fn found_on_disk(folder: &Path, wanted: &[u8]) -> bool {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read(&path)
                .unwrap()
                .windows(wanted.len())
                .any(|bytes| bytes == wanted)
            {
                return true;
            }
        }
    }
    false
}

/// All windows of so many bytes in all files of a folder.
fn windows_on_disk(folder: &Path) -> HashSet<[u8; 12]> {
    let mut windows = HashSet::new();
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
    let texts: Vec<Vec<u32>> = (0..120)
        .map(|at| noise(at, 20 + at as usize * 97 % 237))
        .collect();
    for (at, text) in texts.iter().enumerate() {
        put(
            &store,
            text,
            if at % 3 == 0 {
                "the private one"
            } else {
                "another one"
            },
        );
    }
    // The other owner's chunks come and go as well, so that the index's pages are merged and split.
    let shared = put(&store, &texts[0], "another one");
    assert!(found_on_disk(folder.path(), b"the private one"));
    let bytes = |text: &[u32]| {
        text.iter()
            .flat_map(|token| token.to_be_bytes())
            .collect::<Vec<u8>>()
    };
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
    assert_eq!(
        store.erase_owner(&owner("the private one")).unwrap(),
        Erased::default()
    );
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
    assert!(
        store
            .put(&foreign, vec![Shard::whole("all", b"kv")])
            .unwrap()
            .written
    );
    assert_eq!(store.stats().unwrap().namespaces, 2);
    assert_eq!(store.forget_namespaces_except(&[SPACE]).unwrap().chunks, 1);
    let stats = store.stats().unwrap();
    assert_eq!((stats.chunks, stats.namespaces, stats.owners), (1, 1, 1));
    assert_eq!(store.with_content(SPACE, &[1]), [kept]);
}
