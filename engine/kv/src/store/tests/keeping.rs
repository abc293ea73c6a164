//! Budgets, pins and uses under a clock that the test sets.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const DAY_MS: i64 = 24 * 3_600_000;

/// A store of at most so many chunks of [`put`], and its clock.
fn small_store(folder: &TempDir, chunks: u64) -> (ChunkStore, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(100 * DAY_MS));
    let clock = Arc::clone(&now);
    let options = StoreOptions {
        budget_bytes: chunks * 1_350,
        clock: Clock::new(move || clock.load(Ordering::Relaxed)),
        ..with_files()
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
    store.record_use(&[used, ChunkId(999)]);
    assert_eq!(store.record(used).unwrap().uses.weight, 1.5);
    let list = store.list(Some(&owner("a")), ListOrder::Score).unwrap();
    assert_eq!(
        list.iter().map(|one| one.id).collect::<Vec<_>>(),
        [used, fresh, old]
    );
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
        .put(
            &chunk(ChainHash::START, &[3], &owner("a")),
            vec![Shard::whole("all", &kv)],
        )
        .unwrap_err();
    assert!(matches!(error, StoreError::NoRoom { .. }), "{error}");
    assert_eq!(store.stats().unwrap().chunks, 2);
    assert!(matches!(
        store.set_pinned(ChunkId(99), true),
        Err(StoreError::NoSuchChunk(_))
    ));
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
        ..with_files()
    };
    let store = open_with(&folder, options).0;
    now.fetch_add(DAY_MS, Ordering::Relaxed);
    assert_eq!(store.list(None, ListOrder::Size).unwrap()[0].weight, 0.5);
    store.record_use(&[id]);
    assert_eq!(store.record(id).unwrap().uses.weight, 1.5);
    drop(store);
    assert_eq!(open(&folder).record(id).unwrap().uses.weight, 1.5);
}
