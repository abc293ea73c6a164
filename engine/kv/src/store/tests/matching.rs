//! What is found of a prompt, held against trying every chunk.

use super::*;
use crate::store::matching::{longest_prefix, runs, with_content};
use crate::store::rows::{self, Written};
use proptest::prelude::*;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn a_prompt_matches_the_longest_chain_and_may_end_inside_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let text = noise(1, 700);
    let after = |end: usize| {
        text[..end]
            .chunks(256)
            .fold(ChainHash::START, |chain, part| chain.then(part))
    };
    let first = put(&store, &text[..256], "a");
    let second = put_below(&store, after(256), &text[256..512], "a");
    put_below(&store, after(256), &noise(2, 256), "a");
    let prompt = [&text[..400], &noise(3, 50)].concat();
    let found = store.longest_prefix(SPACE, ChainHash::START, &prompt).unwrap();
    assert_eq!(found.tokens, 400);
    let chunks: Vec<_> = found
        .chunks
        .iter()
        .map(|chunk| (chunk.chunk, chunk.tokens))
        .collect();
    assert_eq!(chunks, [(first, 256), (second, 144)]);
    // From the middle on, and in another namespace.
    assert_eq!(
        store
            .longest_prefix(SPACE, after(256), &text[256..])
            .unwrap()
            .tokens,
        256
    );
    let other = store
        .longest_prefix(Namespace([8; 32]), ChainHash::START, &prompt)
        .unwrap();
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
    let Err(StoreError::ChunkDamaged { chunk: dropped, .. }) = store.load(parent) else {
        panic!("it loads")
    };
    assert_eq!(dropped, parent);
    assert_eq!(
        store
            .longest_prefix(SPACE, ChainHash::START, &[1, 2, 3, 4])
            .unwrap()
            .tokens,
        0
    );
    assert_eq!(store.with_content(SPACE, &[3, 4]).unwrap(), [child]);
    put(&store, &[1, 2], "parent");
    assert_eq!(
        store
            .longest_prefix(SPACE, ChainHash::START, &[1, 2, 3, 4])
            .unwrap()
            .tokens,
        4
    );
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
            let found = longest_prefix(&index, 1, ChainHash::START, &prompt).unwrap();
            prop_assert_eq!((found.tokens, found.chunks.len()), plain_prefix(&chunks, ChainHash::START, &prompt));
            let mut rest = &prompt[..];
            for matched in &found.chunks {
                let stored = rows::tokens(&index, matched.chunk).unwrap();
                prop_assert!(rest.starts_with(&stored[..matched.tokens]));
                rest = &rest[matched.tokens..];
            }
            let same: BTreeSet<_> = ids.iter().zip(&chunks)
                .filter(|(_, (_, tokens))| *tokens == prompt).map(|(id, _)| *id).collect();
            prop_assert_eq!(with_content(&index, 1, &prompt).unwrap(), Vec::from_iter(same));
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
        let found: BTreeSet<_> = runs(&index, 1, &prompt, 64).unwrap().into_iter()
            .map(|run| (run.chunk, run.in_chunk.start, run.in_chunk.end, run.in_prompt.start)).collect();
        prop_assert_eq!(found, wanted);
    }
}

#[test]
fn equal_hashes_of_other_tokens_are_not_a_match() {
    let (index, _) = bare_index(&[(ChainHash::START, vec![1, 2, 3])]);
    index
        .execute("UPDATE chunk SET content = ?1", [content_hash(&[4, 5, 6]) as i64])
        .unwrap();
    assert!(with_content(&index, 1, &[4, 5, 6]).unwrap().is_empty());
}
