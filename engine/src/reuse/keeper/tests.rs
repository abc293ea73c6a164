//! The keeper before a made-up model of two small layers, whose keys and values follow from a seed.

use super::super::cut::{Segment, SegmentKind, cut};
use super::chunk::ChunkBytes;
use super::memory::Held;
use super::*;
use crate::rope::LayerRope;
use reprise_kernels::math::RopePairs;
use reprise_kv::pool::{PagePool, Sequence};
use reprise_kv::store::StoreOptions;
use reprise_kv::{Arrivals, KvFormat, KvLanes, KvProfile, LayerLayout, LayerShape};
use reprise_model::arch::Rope;
use std::path::Path;

const SHAPE: LayerShape = LayerShape {
    kv_heads: 2,
    head_dim: 64,
};
const LAYERS: usize = 2;

fn model() -> KeptModel {
    let profile = KvProfile::uniform(&[SHAPE; LAYERS], KvFormat::Q8, KvFormat::Q8);
    let rope = Rope {
        dims: 64,
        base: 10_000.0,
        scale: 1.0,
        uses_factors: false,
        pairs: RopePairs::Halves,
    };
    KeptModel {
        fingerprint: "made up".into(),
        layouts: profile.layouts(&[SHAPE; LAYERS]).unwrap(),
        profile,
        ropes: vec![LayerRope::new(&rope, None); LAYERS],
    }
}

fn keeper(folder: &Path, memory_bytes: usize) -> Keeper {
    let options = StoreOptions {
        small_bytes: 4_000,
        ..StoreOptions::default()
    };
    let (store, _) = ChunkStore::open(folder, options).unwrap();
    Keeper::start(store, model(), memory_bytes).unwrap()
}

fn pool() -> PagePool {
    LayerLayout::pool(&model().layouts, 16).unwrap()
}

/// Keys and values of tokens, each following from its token and position.
fn computed(pool: &PagePool, tokens: &[u32]) -> Sequence {
    let (layouts, isa) = (model().layouts, Isa::best());
    let mut sequences = [pool.sequence()];
    sequences[0].prepare(tokens.len(), None).unwrap();
    let lanes = KvLanes::new(&layouts, &mut sequences);
    for layer in 0..LAYERS {
        let view = lanes.layer(layer, 0);
        for (position, token) in tokens.iter().enumerate() {
            for head in 0..SHAPE.kv_heads {
                let seed = (token * 31 + position as u32 * 7 + head as u32 + layer as u32) as f32;
                let key: Vec<f32> = (0..64).map(|d| (seed + d as f32 * 0.7).sin()).collect();
                // SAFETY: one thread, and the positions were prepared.
                unsafe { view.write(isa, head, position, &key, &key) };
            }
        }
    }
    let [mut sequence] = sequences;
    sequence.commit(tokens.len());
    sequence
}

/// A text of its own.
fn text(seed: u32, tokens: u32) -> Vec<u32> {
    (0..tokens).map(|at| (seed * 7_919 + at * 31) % 5_003).collect()
}

fn owner(name: &str) -> Owner {
    Owner::new("document", name).unwrap()
}

/// Segments that stand alone, each with an owner.
fn segments(parts: &[(&[u32], &str)]) -> Vec<Segment> {
    let segment = |(tokens, name): &(&[u32], &str)| Segment {
        kind: SegmentKind::Passage,
        owner: Some(owner(name)),
        tokens: tokens.len(),
    };
    parts.iter().map(segment).collect()
}

fn leaving(pool: &PagePool, parts: &[(&[u32], &str)]) -> Leaving {
    let tokens: Vec<u32> = parts
        .iter()
        .flat_map(|(tokens, _)| tokens.iter().copied())
        .collect();
    Leaving {
        cuts: cut(&segments(parts)),
        sequence: computed(pool, &tokens),
        exact_tokens: tokens.len(),
        tokens,
        ratio: 1.0,
    }
}

fn find(keeper: &Keeper, parts: &[(&[u32], &str)]) -> Found {
    let mut tokens: Vec<u32> = parts
        .iter()
        .flat_map(|(tokens, _)| tokens.iter().copied())
        .collect();
    // The last token is always computed.
    tokens.push(9_999);
    let mut segments = segments(parts);
    segments.push(Segment {
        kind: SegmentKind::Question,
        owner: None,
        tokens: 1,
    });
    keeper.find(&Wanted {
        prompt: &tokens,
        segments: &segments,
        known: 0,
        question: tokens.len() - 1,
        anywhere: true,
    })
}

/// What of a chunk arrives in a sequence, packed again, layer by layer; none where it cannot be had.
fn fetched(keeper: &Keeper, part: &Use) -> Option<Vec<Vec<u8>>> {
    let (layouts, end) = (model().layouts, part.tokens().end);
    let mut sequences = [pool().sequence()];
    sequences[0].prepare(end, None).unwrap();
    let mut fetch = keeper.fetch(vec![part.clone()], 0);
    for layer in 0..LAYERS {
        fetch.arrive(layer, &layouts, &mut sequences).ok()?;
    }
    assert!(fetch.is_done());
    sequences[0].commit(end);
    let packed = |layer: usize| {
        let mut bytes = Vec::new();
        layouts[layer].pack(Isa::best(), &sequences[0], layer, part.tokens(), &mut bytes);
        bytes
    };
    Some((0..LAYERS).map(packed).collect())
}

fn bytes_of(keeper: &Keeper, part: &Use) -> Vec<Vec<u8>> {
    fetched(keeper, part).unwrap()
}

/// Waits for the thread, whose work this is; a test that waits for ever has failed.
fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

const A: &str = "a";
const B: &str = "b";

#[test]
fn what_a_request_leaves_is_found_and_loads_before_and_after_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (keeper, pool) = (keeper(folder.path(), 1 << 20), pool());
    let (one, two) = (text(1, 200), text(2, 100));
    let reading = keeper.reading();
    keeper.keep(leaving(&pool, &[(&one, A), (&two, B)]));
    let whole = find(&keeper, &[(&one, A), (&two, B)]);
    assert_eq!((whole.prefix_tokens(), whole.exact_tokens), (300, 300));
    let moved = find(&keeper, &[(&two, B), (&one, A)]);
    let pieces: Vec<_> = moved.pieces.iter().map(Use::tokens).collect();
    assert_eq!((moved.prefix.len(), pieces), (0, vec![0..100, 100..300]));
    let run = find(&keeper, &[(&one[50..120], A)]);
    assert_eq!(run.pieces[0].of, 50..120);
    // Nothing is written while somebody reads, and all of it is there.
    let before = [&whole.prefix[0], &whole.prefix[1], &moved.pieces[0]].map(|part| bytes_of(&keeper, part));
    let tiers = keeper.tiers();
    assert_eq!((tiers.memory.chunks, tiers.memory.dirty_chunks), (2, 2));
    assert_eq!((tiers.flash.chunks, tiers.flash.lookups), (0, 0));
    drop(reading);
    keeper.flush();
    let tiers = keeper.tiers();
    assert_eq!((tiers.memory.chunks, tiers.memory.dirty_chunks), (2, 0));
    assert_eq!(tiers.flash.chunks, 2);
    assert_eq!(pool.usage().used, 0);
    // From disk alone.
    assert!(keeper.shrink(0) > 0);
    let after = [&whole.prefix[0], &whole.prefix[1], &moved.pieces[0]].map(|part| bytes_of(&keeper, part));
    assert_eq!(before, after);
    let tiers = keeper.tiers();
    assert_eq!((tiers.flash.lookups, tiers.flash.hits), (3, 3));
    assert_eq!((tiers.memory.lookups, tiers.memory.hits), (6, 3));
}

#[test]
fn flushing_and_closing_wait_for_no_reader() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool();
    {
        let keeper = keeper(folder.path(), 0);
        let _reading = keeper.reading();
        keeper.keep(leaving(&pool, &[(&text(1, 90), A)]));
        keeper.flush();
        assert_eq!(keeper.tiers().flash.chunks, 1);
        keeper.keep(leaving(&pool, &[(&text(2, 90), A)]));
        let _another = keeper.reading();
        drop(keeper);
    }
    assert_eq!(keeper(folder.path(), 0).tiers().flash.chunks, 2);
}

#[test]
fn pages_that_are_needed_are_given_up_and_what_fits_memory_stays() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool();
    let (one, two) = (text(1, 200), text(2, 200));
    let token_bytes = LayerLayout::token_bytes_of(&model().layouts);
    let keeper = keeper(folder.path(), 300 * token_bytes);
    let reading = keeper.reading();
    keeper.keep(leaving(&pool, &[(&one, A)]));
    keeper.keep(leaving(&pool, &[(&two, B)]));
    assert_eq!(pool.usage().used, 2);
    assert!(keeper.give_up_oldest());
    assert_eq!(pool.usage().used, 1);
    // The first stays as bytes; the second has no room beside it, and is forgotten.
    assert!(keeper.give_up_oldest());
    assert!(!keeper.give_up_oldest());
    assert_eq!((pool.usage().used, keeper.tiers().memory.dirty_chunks), (0, 1));
    assert_eq!(find(&keeper, &[(&one, A)]).prefix_tokens(), 200);
    assert_eq!(find(&keeper, &[(&two, B)]), Found::default());
    drop(reading);
    keeper.flush();
    assert_eq!(keeper.tiers().flash.chunks, 1);
}

#[test]
fn what_is_erased_while_it_waits_or_is_written_is_gone_everywhere() {
    for round in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let (keeper, pool) = (keeper(folder.path(), 1 << 20), pool());
        let texts: Vec<Vec<u32>> = (1..8).map(|seed| text(seed, 120)).collect();
        let reading = (round % 2 == 0).then(|| keeper.reading());
        for text in &texts {
            keeper.keep(leaving(&pool, &[(text, A), (&self::text(99, 80), B)]));
        }
        // In every second round the thread is somewhere in the middle of it.
        keeper.erase(&owner(A)).unwrap();
        drop(reading);
        for text in &texts {
            assert!(find(&keeper, &[(text, A)]).prefix.is_empty());
        }
        keeper.flush();
        let owners = keeper.store().owners().unwrap();
        assert!(owners.iter().all(|one| one.owner == owner(B)));
        assert_eq!(pool.usage().used, 0);
        let tiers = keeper.tiers();
        assert_eq!((tiers.memory.dirty_chunks, tiers.flash.chunks), (0, 7));
        drop(keeper);
        let (_, recovery) = ChunkStore::open(folder.path(), StoreOptions::default()).unwrap();
        assert!(recovery.is_clean(), "{recovery:?}");
    }
}

#[test]
fn what_prompts_begin_with_often_is_brought_ahead_with_what_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool();
    let (one, two, other) = (text(1, 200), text(2, 200), text(3, 200));
    {
        let keeper = keeper(folder.path(), 0);
        keeper.keep(leaving(&pool, &[(&one, A), (&two, A)]));
        keeper.keep(leaving(&pool, &[(&other, B)]));
        keeper.flush();
        let first = find(&keeper, &[(&one, A)]).prefix[0].chunk;
        keeper.used(&[first]);
    }
    let keeper = keeper(folder.path(), 1 << 20);
    wait_until(|| keeper.prefetch_counts().loaded == 2 && keeper.prefetching().is_empty());
    assert_eq!(keeper.tiers().memory.chunks, 2);
    for part in find(&keeper, &[(&one, A), (&two, A)]).prefix {
        fetched(&keeper, &part).unwrap();
    }
    let counts = keeper.prefetch_counts();
    assert_eq!((counts.hits, counts.wasted), (2, 0));
    assert_eq!(keeper.tiers().flash.lookups, 0);
    // While memory is short nothing is brought, and while somebody reads neither.
    keeper.shrink(0);
    let first = find(&keeper, &[(&other, B)]).prefix[0].chunk;
    let _reading = keeper.reading();
    keeper.relax();
    keeper.used(&[first, first]);
    assert_eq!(
        (keeper.tiers().memory.chunks, keeper.prefetch_counts().loaded),
        (0, 2)
    );
}

fn bytes(count: usize) -> Arc<ChunkBytes> {
    Arc::new(ChunkBytes {
        tokens: 1,
        base: 0,
        shards: vec![Arc::new(vec![0; count])],
    })
}

#[test]
fn memory_evicts_what_is_worth_least_and_never_what_is_dirty() {
    let ids: Vec<ChunkId> = (1..8).map(|id| format!("{id:016x}").parse().unwrap()).collect();
    let weights = [5.0, 1.0, 3.0, 9.0, 2.0, 1.0, 1.0];
    let weight = |id: ChunkId| weights[ids.iter().position(|one| *one == id).unwrap()];
    let mut memory = Memory::new(400);
    for (at, is_prefix) in [(0, true), (1, true), (2, true), (3, false)] {
        memory.put(ids[at], &bytes(100), is_prefix, &weight);
    }
    // Of no prefix: a load of it would be hidden.
    memory.put(ids[4], &bytes(100), true, &weight);
    assert!(memory.peek(ids[3]).is_none() && memory.len() == 4);
    memory.put(ids[5], &bytes(100), true, &weight);
    // Of equal worth, the one used longer ago.
    assert!(memory.peek(ids[1]).is_none() && memory.peek(ids[5]).is_some());
    // Nobody asked for it, and it is worth no more than the least.
    assert!(!memory.prefetch(ids[6], &bytes(100), &weight));
    let (pool, tokens) = (pool(), text(1, 100));
    memory.put_dirty(ids[6], &Arc::new(leaving(&pool, &[(&tokens, A)])), 0..100, true);
    assert!(memory.settle(ids[6], &bytes(150), &weight));
    assert_eq!((memory.bytes(), memory.dirty()), (350, 1));
    assert_eq!(memory.shrink(0, &weight), 200);
    assert!(matches!(memory.peek(ids[6]), Some(Held::Bytes(_))));
    memory.clean(&[ids[6]], &weight);
    assert_eq!((memory.bytes(), memory.len()), (0, 0));
    assert!(!memory.prefetch(ids[0], &bytes(100), &weight), "memory is short");
    memory.relax();
    assert!(memory.prefetch(ids[0], &bytes(100), &weight));
    memory.shrink(0, &weight);
    assert_eq!((memory.counts.prefetched, memory.counts.prefetch_wasted), (1, 1));
}
