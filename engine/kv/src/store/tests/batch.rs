//! Chunks announced, and written many at a time.

use super::*;

fn announced(store: &ChunkStore, tokens: &[u32], name: &str) -> Announced {
    let someone = owner(name);
    store
        .announce(&chunk(ChainHash::START, tokens, &someone))
        .unwrap()
}

#[test]
fn an_announced_chunk_is_found_before_it_is_written_and_loads_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let text = noise(1, 200);
    let first = announced(&store, &text, "a");
    let id = first.id();
    assert_eq!(first, Announced::New(id));
    assert_eq!(announced(&store, &text, "b"), Announced::Pending(id));
    assert_eq!(store.longest_prefix(SPACE, ChainHash::START, &text).tokens, 200);
    assert_eq!(store.with_content(SPACE, &text), [id]);
    assert_eq!(store.runs(SPACE, &text[50..120], None)[0].chunk, id);
    assert!(!store.facts(id).unwrap().is_written);
    assert!(matches!(store.load(id), Err(StoreError::NoSuchChunk(_))));
    assert_eq!(store.stats().unwrap().chunks, 0);

    let mut batch = store.batch();
    assert!(batch.add(id, vec![Shard::whole("all", b"kv")]).unwrap());
    assert_eq!(batch.commit().unwrap().written, [id]);
    assert!(store.facts(id).unwrap().is_written);
    assert_eq!(store.load(id).unwrap().read_all().unwrap(), [b"kv"]);
    assert_eq!(store.record(id).unwrap().owners, [owner("a"), owner("b")]);
    assert_eq!(announced(&store, &text, "c"), Announced::Stored(id));
    store.share(id, &owner("c")).unwrap();
    assert_eq!(store.record(id).unwrap().owners.len(), 3);
}

#[test]
fn a_batch_that_is_given_up_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let ids = [1, 2].map(|seed| announced(&store, &noise(seed, 64), "a").id());
    let mut batch = store.batch();
    for id in ids {
        assert!(batch.add(id, vec![Shard::whole("all", &[1; 1_000])]).unwrap());
    }
    drop(batch);
    assert!(chunk_files(folder.path()).is_empty());
    assert!(store.with_content(SPACE, &noise(1, 64)).is_empty());
    // What is withdrawn is neither found nor written.
    let id = announced(&store, &noise(1, 64), "a").id();
    store.withdraw(&[id]);
    assert!(store.facts(id).is_none());
    let mut batch = store.batch();
    assert!(!batch.add(id, vec![Shard::whole("all", b"kv")]).unwrap());
    assert_eq!(batch.commit().unwrap(), Committed::default());
    assert_eq!(store.stats().unwrap().chunks, 0);
}

#[test]
fn one_chunk_that_cannot_be_written_does_not_keep_the_others_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let (bad, good) = (
        announced(&store, &noise(1, 64), "a").id(),
        announced(&store, &noise(2, 64), "a").id(),
    );
    let mut batch = store.batch();
    let short = Shard {
        bytes: 9,
        ..Shard::whole("all", b"kv")
    };
    assert!(matches!(batch.add(bad, vec![short]), Err(StoreError::Invalid(_))));
    assert!(batch.add(good, vec![Shard::whole("all", b"kv")]).unwrap());
    assert_eq!(batch.commit().unwrap().written, [good]);
    assert!(store.facts(bad).is_none());
    assert_eq!(chunk_files(folder.path()).len(), 1);
}

#[test]
fn what_is_erased_while_it_is_written_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let gone = announced(&store, &noise(1, 64), "private").id();
    let shared = announced(&store, &noise(2, 64), "private").id();
    announced(&store, &noise(2, 64), "other");
    let mut batch = store.batch();
    for id in [gone, shared] {
        assert!(batch.add(id, vec![Shard::whole("all", &[1; 1_000])]).unwrap());
    }
    store.erase_owner(&owner("private")).unwrap();
    assert_eq!(batch.commit().unwrap().written, [shared]);
    assert!(store.facts(gone).is_none());
    assert_eq!(store.record(shared).unwrap().owners, [owner("other")]);
    assert_eq!(chunk_files(folder.path()).len(), 1);
    drop(store);
    assert!(open_with(&folder, with_files()).1.is_clean());
}

#[test]
fn small_chunks_stand_in_the_index_and_have_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        small_bytes: 1_000,
        budget_bytes: 10_000,
        ..StoreOptions::default()
    };
    let store = open_with(&folder, options.clone()).0;
    let small = put(&store, &noise(1, 40), "a");
    let someone = owner("a");
    let tokens = noise(2, 40);
    let new = chunk(ChainHash::START, &tokens, &someone);
    let shards = vec![Shard::whole("one", &[1; 600]), Shard::whole("two", &[2; 500])];
    let large = store.put(&new, shards).unwrap().id;
    assert_eq!(chunk_files(folder.path()), [store.0.path(large)]);
    drop(store);

    let (store, recovery) = open_with(&folder, options);
    assert!(recovery.is_clean(), "{recovery:?}");
    assert_eq!(store.verify_all().unwrap().sound, 2);
    let kv = [noise(1, 1)[0] as u8; 1_000];
    assert_eq!(store.load(small).unwrap().read_all().unwrap(), [kv]);
    // Their bytes count, and damage is found, as for all others.
    assert!(store.stats().unwrap().bytes > 2_100);
    store
        .0
        .state()
        .index
        .execute("UPDATE small SET tensors = zeroblob(1000)", [])
        .unwrap();
    let error = store
        .load(small)
        .and_then(|mut chunk| chunk.read_all())
        .unwrap_err();
    assert!(matches!(error, StoreError::ChunkDamaged { .. }), "{error}");
    assert!(store.facts(small).is_none());
    assert_eq!(store.erase_owner(&owner("a")).unwrap().chunks, 1);
    assert!(chunk_files(folder.path()).is_empty());
}
