//! Finding chunks for a prompt: the longest chain from its start, chunks of the same tokens, and runs of tokens inside
//! chunks. Hashes and embeddings only propose; what is reported has been compared token by token.

use super::catalogue::{Catalogue, Texts};
use super::chunk_store::ChunkStore;
use super::grams::fingerprints;
use super::record::{CHUNK_TOKENS, ChainHash, ChunkId, Embedding, Namespace, content_hash};
use super::suffix::{MIN_RUN_TOKENS, SuffixAutomaton};
use std::collections::HashMap;
use std::ops::Range;

/// Chunks looked at for one fingerprint, the newest: one that more chunks have says little about any of them.
const MAX_CHUNKS_A_GRAM: usize = 32;
/// Chunks looked at because their embedding is like the prompt's.
const CHUNKS_BY_EMBEDDING: usize = 8;

/// A chunk whose KV, computed under the same left context, begins a prompt or goes on with one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrefixChunk {
    /// The chunk.
    pub chunk: ChunkId,
    /// How many of its tokens, from its first on, are the prompt's: all of them, except perhaps in the last chunk.
    pub tokens: usize,
    /// The context behind the whole of it, wherever the match ends.
    pub chain: ChainHash,
    /// Whether the match reaches its end.
    pub is_whole: bool,
    /// The recompute ratio it was made under; 1 is exact.
    pub ratio: f32,
}

/// The longest chain of stored chunks that a prompt begins with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrefixMatch {
    /// The chunks, in order of position.
    pub chunks: Vec<PrefixChunk>,
    /// Tokens of the prompt that they hold.
    pub tokens: usize,
}

/// A run of a prompt's tokens that a stored chunk has somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRun {
    /// The chunk.
    pub chunk: ChunkId,
    /// Where the run stands in the chunk. It cannot be made longer there.
    pub in_chunk: Range<usize>,
    /// Where it stands in the prompt; the first place, when there are several.
    pub in_prompt: Range<usize>,
}

/// Matching asks memory alone: it waits neither for the disk nor for what is being written. Chunks that are not on disk
/// yet are found as well.
impl ChunkStore {
    /// The longest chain of chunks that `prompt` begins with, when its first token stands behind the context `from`
    /// ([`ChainHash::START`] for a whole prompt). Their KV is exact, as far as their recompute ratio is 1.
    pub fn longest_prefix(&self, namespace: Namespace, from: ChainHash, prompt: &[u32]) -> PrefixMatch {
        longest_prefix(&self.0.catalogue(), namespace, from, prompt)
    }

    /// The chunks that hold exactly `tokens`, under whatever context, oldest first.
    pub fn with_content(&self, namespace: Namespace, tokens: &[u32]) -> Vec<ChunkId> {
        with_content(&self.0.catalogue(), namespace, tokens)
    }

    /// The chunk that holds exactly `tokens`, under whatever context, and is exact there (its recompute ratio is 1): moving
    /// what was moved before would add one error to another. Of several the newest.
    pub fn exact_with_content(&self, namespace: Namespace, tokens: &[u32]) -> Option<ChunkId> {
        let catalogue = self.0.catalogue();
        let is_exact = |id: &ChunkId| catalogue.get(*id).is_some_and(|entry| entry.ratio >= 1.0);
        let mut found = with_content(&catalogue, namespace, tokens).into_iter();
        found.rfind(is_exact)
    }

    /// Runs of at least [`MIN_RUN_TOKENS`](super::MIN_RUN_TOKENS) tokens that `prompt` shares with stored chunks, in
    /// order of their place in the prompt; they may overlap. Each chunk that shares one is considered, unless more
    /// than 32 newer chunks have the same text or more chunks than [`StoreOptions::run_candidates`] look as good.
    /// Chunks whose embedding is most like `embedding`, the prompt's, are considered in any case.
    ///
    /// [`StoreOptions::run_candidates`]: super::StoreOptions::run_candidates
    pub fn runs(&self, namespace: Namespace, prompt: &[u32], embedding: Option<&[f32]>) -> Vec<ChunkRun> {
        let embedding = embedding.and_then(Embedding::new);
        let candidates = self.0.options.run_candidates;
        runs(
            &self.0.catalogue(),
            namespace,
            prompt,
            embedding.as_ref(),
            candidates,
        )
    }
}

/// A place that the walk down the tree has reached.
struct Visit {
    /// The visit before it, and the chunk that led here.
    via: Option<(usize, PrefixChunk)>,
    chain: ChainHash,
    /// Tokens of the prompt up to here.
    matched: usize,
    /// Chunks up to here.
    depth: usize,
    /// Whether the match ends inside the chunk, so that nothing below it can go on.
    ends: bool,
}

/// The longest chain below `from` that begins `prompt`. Of equally long ones, one of the fewest chunks.
pub(super) fn longest_prefix(
    catalogue: &Catalogue,
    namespace: Namespace,
    from: ChainHash,
    prompt: &[u32],
) -> PrefixMatch {
    let Some(texts) = catalogue.texts(namespace) else {
        return PrefixMatch::default();
    };
    let mut visits = vec![Visit {
        via: None,
        chain: from,
        matched: 0,
        depth: 0,
        ends: false,
    }];
    // Several paths exist where the same text was cut into chunks in different ways. Each visit is another chunk that
    // the prompt begins with, so there are no more of them than of those.
    let (mut next, mut best) = (0, 0);
    while let Some(&Visit {
        chain,
        matched,
        depth,
        ends,
        ..
    }) = visits.get(next)
    {
        if (matched, visits[best].depth) > (visits[best].matched, depth) {
            best = next;
        }
        if !ends && matched < prompt.len() {
            let query = &prompt[matched..prompt.len().min(matched + CHUNK_TOKENS)];
            for child in children(catalogue, texts, chain, query) {
                visits.push(Visit {
                    via: Some((next, child)),
                    chain: child.chain,
                    matched: matched + child.tokens,
                    depth: depth + 1,
                    ends: !child.is_whole,
                });
            }
        }
        next += 1;
    }
    let tokens = visits[best].matched;
    let mut chunks = Vec::with_capacity(visits[best].depth);
    while let Some((before, chunk)) = visits[best].via {
        chunks.push(chunk);
        best = before;
    }
    chunks.reverse();
    PrefixMatch { chunks, tokens }
}

/// The chunks below a context that `query` begins with, and the one of the others that it shares most tokens with, if
/// any.
///
/// Siblings are sorted by their tokens. The one that shares most with the query is a neighbour of the place where the
/// query would stand. Those that the query begins with stand before it: each is looked for as the last one not behind
/// what of the query can still be in front.
fn children(catalogue: &Catalogue, texts: &Texts, parent: ChainHash, query: &[u32]) -> Vec<PrefixChunk> {
    let siblings = texts.children(parent);
    let behind = |query: &[u32]| siblings.partition_point(|id| catalogue.tokens(*id) <= query);
    let matched = |at: usize, query: &[u32]| {
        let chunk = *siblings.get(at)?;
        let entry = catalogue.get(chunk)?;
        let tokens = common_prefix(&entry.tokens, query);
        Some(PrefixChunk {
            chunk,
            tokens,
            chain: entry.chain,
            is_whole: tokens == entry.tokens.len(),
            ratio: entry.ratio,
        })
    };
    let mut found: Vec<PrefixChunk> = Vec::new();
    let mut partial: Option<PrefixChunk> = None;
    let mut offer = |other: PrefixChunk| {
        if other.tokens > partial.map_or(0, |best| best.tokens) {
            partial = Some(other);
        }
    };
    let mut at = behind(query);
    if let Some(next) = matched(at, query) {
        offer(next);
    }
    let mut front = query.len();
    while front > 0
        && let Some(before) = at.checked_sub(1)
        && let Some(chunk) = matched(before, &query[..front])
    {
        if chunk.is_whole {
            found.push(chunk);
            front = chunk.tokens - 1;
        } else {
            offer(chunk);
            front = chunk.tokens;
        }
        at = behind(&query[..front]);
    }
    // A whole chunk of as many tokens is as good, and can be gone on from.
    let longest = found.iter().map(|chunk| chunk.tokens).max().unwrap_or(0);
    found.extend(partial.filter(|chunk| chunk.tokens > longest));
    found
}

fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The chunks that hold exactly these tokens, under whatever context, in order of age.
pub(super) fn with_content(catalogue: &Catalogue, namespace: Namespace, tokens: &[u32]) -> Vec<ChunkId> {
    let Some(texts) = catalogue.texts(namespace) else {
        return Vec::new();
    };
    let proposed = texts.with_content(content_hash(tokens));
    proposed.filter(|id| catalogue.tokens(*id) == tokens).collect()
}

/// Runs of at least [`MIN_RUN_TOKENS`] tokens that the prompt shares with stored chunks, from the `candidates` chunks
/// whose fingerprints promise most and a few whose embedding is most like the prompt's. In order of their place in the
/// prompt, longer ones first.
pub(super) fn runs(
    catalogue: &Catalogue,
    namespace: Namespace,
    prompt: &[u32],
    embedding: Option<&Embedding>,
    candidates: usize,
) -> Vec<ChunkRun> {
    let Some(texts) = catalogue.texts(namespace) else {
        return Vec::new();
    };
    let mut promise: HashMap<ChunkId, f64> = HashMap::new();
    for gram in fingerprints(prompt) {
        let having: Vec<ChunkId> = texts.with_gram(gram).rev().take(MAX_CHUNKS_A_GRAM).collect();
        // A gram that many chunks have promises less of each.
        let share = 1.0 / having.len().max(1) as f64;
        for chunk in having {
            *promise.entry(chunk).or_default() += share;
        }
    }
    let mut order: Vec<(ChunkId, f64)> = promise.into_iter().collect();
    order.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    order.truncate(candidates);
    let mut chosen: Vec<ChunkId> = order.into_iter().map(|(chunk, _)| chunk).collect();
    if let Some(embedding) = embedding {
        let alike = like(catalogue, texts, embedding).into_iter();
        let more: Vec<ChunkId> = alike.filter(|chunk| !chosen.contains(chunk)).collect();
        chosen.extend(more);
    }
    if chosen.is_empty() {
        return Vec::new();
    }
    let automaton = SuffixAutomaton::new(prompt);
    let mut found = Vec::new();
    for chunk in chosen {
        let runs = automaton.runs(catalogue.tokens(chunk), MIN_RUN_TOKENS);
        found.extend(runs.into_iter().map(|run| ChunkRun {
            chunk,
            in_chunk: run.second,
            in_prompt: run.first,
        }));
    }
    found.sort_by_key(|run| {
        (
            run.in_prompt.start,
            std::cmp::Reverse(run.in_prompt.end),
            run.chunk,
        )
    });
    found
}

/// The chunks whose embedding is most like this one, the most alike first.
fn like(catalogue: &Catalogue, texts: &Texts, embedding: &Embedding) -> Vec<ChunkId> {
    let mut alike: Vec<(i32, ChunkId)> = texts
        .with_embedding()
        .filter_map(|id| {
            let likeness = catalogue.get(id)?.embedding.as_ref()?.likeness(embedding);
            (likeness > 0).then_some((likeness, id))
        })
        .collect();
    alike.sort_unstable_by(|a, b| b.cmp(a));
    alike.truncate(CHUNKS_BY_EMBEDDING);
    alike.into_iter().map(|(_, id)| id).collect()
}
