//! Many chunks. With 100,000 of them: `cargo run --release -p reprise-kv --example store_rates`.

use super::*;

#[test]
fn among_thousands_each_is_found_and_the_budget_holds() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        budget_bytes: 3_000 * 500,
        ..StoreOptions::default()
    };
    let texts: Vec<Vec<u32>> = (0..3_000).map(|seed| noise(seed, 48)).collect();
    let store = open_with(&folder, options.clone()).0;
    let someone = owner("a");
    let kv = [7; 500];
    let mut ids = Vec::new();
    for texts in texts.chunks(100) {
        let mut batch = store.batch();
        for text in texts {
            let id = store
                .announce(&chunk(ChainHash::START, text, &someone))
                .unwrap()
                .id();
            batch.add(id, vec![Shard::whole("all", &kv)]).unwrap();
            ids.push(id);
        }
        assert_eq!(batch.commit().unwrap().written.len(), 100);
    }
    drop(store);
    let (store, recovery) = open_with(&folder, options);
    assert!(recovery.is_clean());
    for (id, text) in ids.iter().zip(&texts) {
        let found = store.longest_prefix(SPACE, ChainHash::START, text);
        assert_eq!((found.chunks[0].chunk, found.tokens), (*id, 48));
        assert_eq!(store.with_content(SPACE, text), [*id]);
        let runs = store.runs(SPACE, &text[8..44], None);
        assert_eq!(
            (runs.len(), runs[0].chunk, runs[0].in_chunk.clone()),
            (1, *id, 8..44)
        );
    }
    // It is full: what comes now evicts what was used least.
    store.record_use(&ids[1_000..]);
    for seed in 5_000..5_100 {
        put(&store, &noise(seed, 48), "b");
    }
    let stats = store.stats().unwrap();
    assert!(stats.bytes <= stats.budget_bytes && store.written() == (stats.chunks, stats.bytes));
    assert!(ids[1_000..].iter().all(|id| store.facts(*id).is_some()));
}
