//! What a store holds, for people to see and for policies above it: lists, sums and a check of everything.

use super::chunk_store::ChunkStore;
use super::error::{During, StoreError};
use super::policy::Ranking;
use super::record::{ChunkId, Owner};
use super::rows;
use std::cmp::Reverse;

/// A chunk in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkSummary {
    /// The chunk.
    pub id: ChunkId,
    /// How many tokens it has.
    pub tokens: usize,
    /// Bytes of its file.
    pub bytes: u64,
    /// R: how much it was used lately.
    pub weight: f64,
    /// R*C per byte, in milliseconds a byte: the smallest is evicted first.
    pub score: f64,
    /// Whether it is exempt from eviction.
    pub pinned: bool,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOrder {
    /// Largest file first.
    Size,
    /// Most worth keeping first.
    Score,
}

/// An owner and what is kept for it. Chunks with several owners count for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerSummary {
    /// The owner.
    pub owner: Owner,
    /// How many chunks it holds.
    pub chunks: usize,
    /// Bytes of their files.
    pub bytes: u64,
}

/// Sums over a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Chunks.
    pub chunks: usize,
    /// Their tokens.
    pub tokens: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Chunks that are exempt from eviction.
    pub pinned_chunks: usize,
    /// Bytes of their files.
    pub pinned_bytes: u64,
    /// Owners.
    pub owners: usize,
    /// Namespaces with chunks.
    pub namespaces: usize,
    /// Bytes of the index, its log not included.
    pub index_bytes: u64,
    /// The most bytes that files may have.
    pub budget_bytes: u64,
}

/// What a check of all files found.
#[derive(Debug, Default)]
pub struct Verified {
    /// Chunks whose files are as they were written.
    pub sound: usize,
    /// Chunks that were dropped, each with a [`StoreError::ChunkDamaged`].
    pub dropped: Vec<StoreError>,
}

impl ChunkStore {
    /// All chunks, or those of one owner.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn list(&self, owner: Option<&Owner>, order: ListOrder) -> Result<Vec<ChunkSummary>, StoreError> {
        let state = self.0.state();
        let chunks = self.0.ranked();
        let of_owner = match owner {
            None => None,
            Some(owner) => Some(
                rows::all(
                    &state.index,
                    "SELECT chunk FROM holding JOIN owner ON owner.id = holding.owner
                     WHERE kind = ?1 AND name = ?2 ORDER BY chunk",
                    [owner.kind(), owner.name()],
                    |row| row.get(0).map(ChunkId),
                )
                .during("listing an owner's chunks")?,
            ),
        };
        drop(state);
        let candidates: Vec<_> = chunks.iter().map(|(_, candidate)| *candidate).collect();
        let ranking = Ranking::new(&candidates, self.0.options.costs);
        let mut list: Vec<ChunkSummary> = chunks
            .iter()
            .enumerate()
            .filter(|(_, (id, _))| of_owner.as_ref().is_none_or(|ids| ids.binary_search(id).is_ok()))
            .map(|(at, (id, candidate))| ChunkSummary {
                id: *id,
                tokens: candidate.tokens,
                bytes: candidate.bytes,
                weight: candidate.weight,
                score: ranking.score(at),
                pinned: candidate.pinned,
            })
            .collect();
        match order {
            ListOrder::Size => list.sort_by_key(|chunk| (Reverse(chunk.bytes), chunk.id)),
            ListOrder::Score => list.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id))),
        }
        Ok(list)
    }

    /// All owners, in order of name.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn owners(&self) -> Result<Vec<OwnerSummary>, StoreError> {
        let rows = rows::all(
            &self.0.state().index,
            "SELECT kind, name, count(*), CAST(total(bytes) AS INTEGER) FROM owner
             JOIN holding ON holding.owner = owner.id JOIN chunk ON chunk.id = holding.chunk
             GROUP BY owner.id ORDER BY kind, name",
            [],
            |row| {
                let names = (row.get::<_, String>(0)?, row.get::<_, String>(1)?);
                Ok((names, row.get::<_, u32>(2)?, row.get::<_, i64>(3)?))
            },
        )
        .during("listing owners")?;
        rows.into_iter()
            .map(|((kind, name), chunks, bytes)| {
                Ok(OwnerSummary {
                    owner: Owner::new(kind, name)?,
                    chunks: chunks as usize,
                    bytes: bytes.max(0) as u64,
                })
            })
            .collect()
    }

    /// Sums over all chunks.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let state = self.0.state();
        state
            .index
            .prepare_cached(
                "SELECT count(*), CAST(total(count) AS INTEGER), CAST(total(bytes) AS INTEGER),
                        CAST(total(pinned) AS INTEGER), CAST(total(bytes * pinned) AS INTEGER),
                        (SELECT count(*) FROM owner), (SELECT count(*) FROM space),
                        (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)
                 FROM chunk",
            )
            .and_then(|mut statement| {
                statement.query_row([], |row| {
                    let number = |column| row.get::<_, i64>(column).map(|value| value.max(0) as u64);
                    Ok(Stats {
                        chunks: number(0)? as usize,
                        tokens: number(1)?,
                        bytes: number(2)?,
                        pinned_chunks: number(3)? as usize,
                        pinned_bytes: number(4)?,
                        owners: number(5)? as usize,
                        namespaces: number(6)? as usize,
                        index_bytes: number(7)?,
                        budget_bytes: self.0.options.budget_bytes,
                    })
                })
            })
            .during("counting chunks")
    }

    /// Reads every file and drops the chunks whose file is not what was written. Chunks that come or go meanwhile are
    /// passed over.
    ///
    /// # Errors
    /// [`StoreError::Index`], and [`StoreError::File`] when a file cannot be read for another reason than its content.
    pub fn verify_all(&self) -> Result<Verified, StoreError> {
        let ids = rows::all(
            &self.0.state().index,
            "SELECT id FROM chunk ORDER BY id",
            [],
            |row| row.get(0).map(ChunkId),
        )
        .during("listing all chunks")?;
        let mut verified = Verified::default();
        let mut bytes = Vec::new();
        for id in ids {
            let read = self.load(id).and_then(|mut chunk| {
                (0..chunk.record().shards.len()).try_for_each(|shard| chunk.read(shard, &mut bytes))
            });
            match read {
                Ok(()) => verified.sound += 1,
                Err(StoreError::NoSuchChunk(_)) => {}
                Err(error @ StoreError::ChunkDamaged { .. }) => verified.dropped.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(verified)
    }
}
