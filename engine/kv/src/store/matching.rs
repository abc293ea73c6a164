//! Finding chunks for a prompt: the longest chain from its start, chunks of the same tokens, and runs of tokens inside
//! chunks. Hashes only propose; what is reported has been compared token by token.

use super::chunk_store::ChunkStore;
use super::error::{During, StoreError};
use super::grams::fingerprints;
use super::record::{
    CHUNK_TOKENS, ChainHash, ChunkId, Namespace, content_hash, decode_tokens, encode_tokens,
};
use super::rows::{self, Space};
use super::suffix::{MIN_RUN_TOKENS, SuffixAutomaton};
use rusqlite::{Connection, Params, Transaction, params};
use std::collections::HashMap;
use std::ops::Range;

/// Chunks looked at for one fingerprint, the newest: one that more chunks have says little about any of them.
const MAX_CHUNKS_A_GRAM: usize = 32;

/// A chunk whose KV, computed under the same left context, begins a prompt or goes on with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixChunk {
    /// The chunk.
    pub chunk: ChunkId,
    /// How many of its tokens, from its first on, are the prompt's: all of them, except perhaps in the last chunk.
    pub tokens: usize,
    /// The context behind the whole of it, wherever the match ends.
    pub chain: ChainHash,
}

/// The longest chain of stored chunks that a prompt begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

impl ChunkStore {
    /// The longest chain of chunks that `prompt` begins with, when its first token stands behind the context `from`
    /// ([`ChainHash::START`] for a whole prompt). Their KV is exact, as far as their recompute ratio is 1.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn longest_prefix(
        &self,
        namespace: Namespace,
        from: ChainHash,
        prompt: &[u32],
    ) -> Result<PrefixMatch, StoreError> {
        let state = self.0.state();
        let index = reading(&state.index)?;
        match rows::space(&index, namespace).during("matching a prompt")? {
            Some(space) => longest_prefix(&index, space, from, prompt),
            None => Ok(PrefixMatch::default()),
        }
    }

    /// The chunks that hold exactly `tokens`, under whatever context, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn with_content(&self, namespace: Namespace, tokens: &[u32]) -> Result<Vec<ChunkId>, StoreError> {
        let state = self.0.state();
        let index = reading(&state.index)?;
        match rows::space(&index, namespace).during("matching a prompt")? {
            Some(space) => with_content(&index, space, tokens),
            None => Ok(Vec::new()),
        }
    }

    /// Runs of at least [`MIN_RUN_TOKENS`](super::MIN_RUN_TOKENS) tokens that `prompt` shares with stored chunks, in
    /// order of their place in the prompt; they may overlap. Each chunk that shares one is considered, unless more
    /// than 32 newer chunks have the same text or more chunks than [`StoreOptions::run_candidates`] look as good.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn runs(&self, namespace: Namespace, prompt: &[u32]) -> Result<Vec<ChunkRun>, StoreError> {
        let state = self.0.state();
        let index = reading(&state.index)?;
        match rows::space(&index, namespace).during("matching a prompt")? {
            Some(space) => runs(&index, space, prompt, self.0.options.run_candidates),
            None => Ok(Vec::new()),
        }
    }
}

/// One transaction for all questions of a match: to begin and end one for each question takes longer than the answers.
fn reading(index: &Connection) -> Result<Transaction<'_>, StoreError> {
    index.unchecked_transaction().during("matching a prompt")
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
    index: &Connection,
    space: Space,
    from: ChainHash,
    prompt: &[u32],
) -> Result<PrefixMatch, StoreError> {
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
            for (child, ends) in children(index, space, chain, query)? {
                visits.push(Visit {
                    via: Some((next, child)),
                    chain: child.chain,
                    matched: matched + child.tokens,
                    depth: depth + 1,
                    ends,
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
    Ok(PrefixMatch { chunks, tokens })
}

/// The chunks below a context that `query` begins with, and the one of the others that it shares most tokens with, if
/// any; the flag says that the match ends inside the chunk.
///
/// Siblings are sorted by their tokens. The one that shares most with the query is a neighbour of the place where the
/// query would stand. Those that the query begins with stand before it: each is looked for as the last one not behind
/// what of the query can still be in front.
fn children(
    index: &Connection,
    space: Space,
    parent: ChainHash,
    query: &[u32],
) -> Result<Vec<(PrefixChunk, bool)>, StoreError> {
    const BEHIND: &str = "SELECT chunk, tokens FROM tree WHERE space = ?1 AND parent = ?2 AND tokens > ?3
                          ORDER BY tokens LIMIT 1";
    const NOT_BEHIND: &str =
        "SELECT chunk, tokens FROM tree WHERE space = ?1 AND parent = ?2 AND tokens <= ?3
                              ORDER BY tokens DESC LIMIT 1";
    let mut found = Vec::new();
    let mut partial: Option<(PrefixChunk, bool)> = None;
    let mut offer = |id: ChunkId, stored: &[u32], common: usize| {
        if common > partial.map_or(0, |(best, _)| best.tokens) {
            partial = Some((
                PrefixChunk {
                    chunk: id,
                    tokens: common,
                    chain: parent.then(stored),
                },
                true,
            ));
        }
    };
    let encoded = encode_tokens(query);
    if let Some((id, stored)) = sibling(index, BEHIND, params![space, parent.0, encoded])? {
        offer(id, &stored, common_prefix(&stored, query));
    }
    let mut front = query.len();
    while front > 0
        && let Some((id, stored)) =
            sibling(index, NOT_BEHIND, params![space, parent.0, &encoded[..4 * front]])?
    {
        let common = common_prefix(&stored, &query[..front]);
        if common == stored.len() {
            let chain = parent.then(&stored);
            found.push((
                PrefixChunk {
                    chunk: id,
                    tokens: common,
                    chain,
                },
                false,
            ));
            front = common - 1;
        } else {
            offer(id, &stored, common);
            front = common;
        }
    }
    // A whole chunk of as many tokens is as good, and can be gone on from.
    let longest = found.iter().map(|(chunk, _)| chunk.tokens).max().unwrap_or(0);
    found.extend(partial.filter(|(chunk, _)| chunk.tokens > longest));
    Ok(found)
}

fn sibling(
    index: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<Option<(ChunkId, Vec<u32>)>, StoreError> {
    rows::first(index, sql, values, |row| {
        Ok((ChunkId(row.get(0)?), decode_tokens(row.get_ref(1)?.as_blob()?)))
    })
    .during("walking the prefix tree")?
    .map(|(id, stored)| Ok((id, stored?)))
    .transpose()
}

fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The chunks that hold exactly these tokens, under whatever context, in order of age.
pub(super) fn with_content(
    index: &Connection,
    space: Space,
    tokens: &[u32],
) -> Result<Vec<ChunkId>, StoreError> {
    let proposed = rows::all(
        index,
        "SELECT id, tokens FROM chunk JOIN text ON text.chunk = chunk.id WHERE space = ?1 AND content = ?2 ORDER BY id",
        params![space, content_hash(tokens) as i64],
        |row| Ok((ChunkId(row.get(0)?), decode_tokens(row.get_ref(1)?.as_blob()?))),
    )
    .during("looking for chunks by content")?;
    let mut found = Vec::new();
    for (id, stored) in proposed {
        if stored? == tokens {
            found.push(id);
        }
    }
    Ok(found)
}

/// Runs of at least [`MIN_RUN_TOKENS`] tokens that the prompt shares with stored chunks, from the `candidates` chunks
/// whose fingerprints promise most. In order of their place in the prompt, longer ones first.
pub(super) fn runs(
    index: &Connection,
    space: Space,
    prompt: &[u32],
    candidates: usize,
) -> Result<Vec<ChunkRun>, StoreError> {
    let mut promise: HashMap<ChunkId, f64> = HashMap::new();
    for gram in fingerprints(prompt) {
        let having = rows::all(
            index,
            "SELECT chunk FROM gram WHERE space = ?1 AND hash = ?2 ORDER BY chunk DESC LIMIT ?3",
            params![space, gram, MAX_CHUNKS_A_GRAM as i64],
            |row| row.get(0).map(ChunkId),
        )
        .during("looking for runs of tokens")?;
        // A gram that many chunks have promises less of each.
        let share = 1.0 / having.len().max(1) as f64;
        for chunk in having {
            *promise.entry(chunk).or_default() += share;
        }
    }
    if promise.is_empty() || candidates == 0 {
        return Ok(Vec::new());
    }
    let mut order: Vec<(ChunkId, f64)> = promise.into_iter().collect();
    order.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    order.truncate(candidates);
    let automaton = SuffixAutomaton::new(prompt);
    let mut found = Vec::new();
    for (chunk, _) in order {
        let stored = rows::tokens(index, chunk)?;
        found.extend(
            automaton
                .runs(&stored, MIN_RUN_TOKENS)
                .into_iter()
                .map(|run| ChunkRun {
                    chunk,
                    in_chunk: run.second,
                    in_prompt: run.first,
                }),
        );
    }
    found.sort_by_key(|run| {
        (
            run.in_prompt.start,
            std::cmp::Reverse(run.in_prompt.end),
            run.chunk,
        )
    });
    Ok(found)
}
