//! What is found of a prompt, held against trying every chunk.

use super::*;
use crate::store::catalogue::{Catalogue, Entry};
use crate::store::matching::{longest_prefix, runs, with_content};
use crate::store::policy::UseRecord;
use proptest::prelude::*;
use std::collections::BTreeSet;

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
    let found = store.longest_prefix(SPACE, ChainHash::START, &prompt);
    assert_eq!(found.tokens, 400);
    let chunks: Vec<_> = found
        .chunks
        .iter()
        .map(|chunk| (chunk.chunk, chunk.tokens))
        .collect();
    assert_eq!(chunks, [(first, 256), (second, 144)]);
    // From the middle on, and in another namespace.
    assert_eq!(store.longest_prefix(SPACE, after(256), &text[256..]).tokens, 256);
    let other = store.longest_prefix(Namespace([8; 32]), ChainHash::START, &prompt);
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
            .tokens,
        0
    );
    assert_eq!(store.with_content(SPACE, &[3, 4]), [child]);
    put(&store, &[1, 2], "parent");
    assert_eq!(
        store
            .longest_prefix(SPACE, ChainHash::START, &[1, 2, 3, 4])
            .tokens,
        4
    );
}

/// A catalogue without an index.
fn bare_catalogue(chunks: &[(ChainHash, Vec<u32>)]) -> (Catalogue, Vec<ChunkId>) {
    let mut catalogue = Catalogue::default();
    let mut ids = Vec::new();
    for (parent, tokens) in chunks {
        let same = catalogue.same_chain(SPACE, *parent, tokens);
        ids.push(same.unwrap_or_else(|| {
            let id = catalogue.number();
            catalogue.insert(id, entry(*parent, tokens));
            id
        }));
    }
    (catalogue, ids)
}

fn entry(parent: ChainHash, tokens: &[u32]) -> Entry {
    Entry {
        namespace: SPACE,
        parent,
        chain: parent.then(tokens),
        base: 0,
        tokens: tokens.into(),
        embedding: None,
        ratio: 1.0,
        bytes: 1,
        pinned: false,
        uses: UseRecord::first(0),
        pending: None,
    }
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
        let (catalogue, ids) = bare_catalogue(&chunks);
        for prompt in prompts {
            let found = longest_prefix(&catalogue, SPACE, ChainHash::START, &prompt);
            prop_assert_eq!((found.tokens, found.chunks.len()), plain_prefix(&chunks, ChainHash::START, &prompt));
            let mut rest = &prompt[..];
            for matched in &found.chunks {
                let stored = catalogue.tokens(matched.chunk);
                prop_assert!(rest.starts_with(&stored[..matched.tokens]));
                rest = &rest[matched.tokens..];
            }
            let same: BTreeSet<_> = ids.iter().zip(&chunks)
                .filter(|(_, (_, tokens))| *tokens == prompt).map(|(id, _)| *id).collect();
            prop_assert_eq!(with_content(&catalogue, SPACE, &prompt), Vec::from_iter(same));
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
        let (catalogue, ids) = bare_catalogue(&chunks);
        let mut wanted: BTreeSet<_> = BTreeSet::new();
        for (id, (_, tokens)) in ids.iter().zip(&chunks) {
            wanted.extend(common_runs(&prompt, tokens, MIN_RUN_TOKENS).into_iter()
                .map(|run| (*id, run.second.start, run.second.end, run.first.start)));
        }
        let found: BTreeSet<_> = runs(&catalogue, SPACE, &prompt, None, 64).into_iter()
            .map(|run| (run.chunk, run.in_chunk.start, run.in_chunk.end, run.in_prompt.start)).collect();
        prop_assert_eq!(found, wanted);
    }
}

#[test]
fn a_chunk_is_proposed_by_its_embedding_where_fingerprints_propose_others() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions {
        run_candidates: 0,
        ..with_files()
    };
    let store = open_with(&folder, options.clone()).0;
    let (text, someone) = (noise(1, 120), owner("a"));
    let meaning: Vec<f32> = (0..300).map(|at| (at as f32).sin()).collect();
    let new = NewChunk {
        embedding: Some(&meaning),
        ..chunk(ChainHash::START, &text, &someone)
    };
    let id = store.put(&new, vec![Shard::whole("all", b"kv")]).unwrap().id;
    put(&store, &noise(2, 120), "a");
    let prompt = [noise(3, 40), text[20..70].to_vec()].concat();
    assert!(store.runs(SPACE, &prompt, None).is_empty());
    let opposite: Vec<f32> = meaning.iter().map(|value| -value).collect();
    assert!(store.runs(SPACE, &prompt, Some(&opposite)).is_empty());
    drop(store);
    let store = open_with(&folder, options).0;
    let nearly: Vec<f32> = meaning.iter().map(|value| value + 0.1).collect();
    let runs = store.runs(SPACE, &prompt, Some(&nearly));
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].chunk, runs[0].in_chunk.clone()), (id, 20..70));
    assert_eq!(runs[0].in_prompt, 40..90);
}

#[test]
fn what_is_removed_from_the_catalogue_is_not_found_again() {
    let chunks: Vec<_> = (0..20)
        .map(|at| (ChainHash::START, noise(at % 7, 40 + at as usize)))
        .collect();
    let (mut catalogue, ids) = bare_catalogue(&chunks);
    for (id, (_, tokens)) in ids.iter().zip(&chunks) {
        assert!(catalogue.remove(*id).is_some() && catalogue.remove(*id).is_none());
        assert!(!with_content(&catalogue, SPACE, tokens).contains(id));
        let found = longest_prefix(&catalogue, SPACE, ChainHash::START, tokens);
        assert!(found.chunks.iter().all(|chunk| chunk.chunk != *id));
        assert!(
            runs(&catalogue, SPACE, tokens, None, 64)
                .iter()
                .all(|run| run.chunk != *id)
        );
    }
    assert!(catalogue.texts(SPACE).is_none());
}
