//! What is kept within the budget: uses, pins, and evicting what is worth least.

use super::chunk_store::{ChunkStore, Shared, State, in_transaction};
use super::error::{During, StoreError};
use super::policy::{Candidate, Ranking, UseRecord};
use super::record::ChunkId;
use super::rows;

impl ChunkStore {
    /// Notes that chunks were used now. Those that are gone are passed over.
    ///
    /// # Errors
    /// [`StoreError::Index`].
    pub fn record_use(&self, chunks: &[ChunkId]) -> Result<(), StoreError> {
        const ACTION: &str = "noting the use of chunks";
        let options = &self.0.options;
        let now_ms = options.clock.now_ms();
        in_transaction(&mut self.0.state().index, ACTION, |index| {
            for chunk in chunks {
                let uses = rows::first(
                    index,
                    "SELECT weight, used_ms FROM chunk WHERE id = ?1",
                    [chunk.0],
                    |row| {
                        Ok(UseRecord {
                            weight: row.get(0)?,
                            at_ms: row.get(1)?,
                        })
                    },
                )
                .during(ACTION)?;
                let Some(uses) = uses.map(|uses| uses.used(now_ms, options.half_life)) else {
                    continue;
                };
                rows::change(
                    index,
                    "UPDATE chunk SET weight = ?2, used_ms = ?3 WHERE id = ?1",
                    rusqlite::params![chunk.0, uses.weight, uses.at_ms],
                )
                .during(ACTION)?;
            }
            Ok(())
        })
    }

    /// Exempts a chunk from eviction, or no longer.
    ///
    /// # Errors
    /// [`StoreError::NoSuchChunk`] and [`StoreError::Index`].
    pub fn set_pinned(&self, id: ChunkId, pinned: bool) -> Result<(), StoreError> {
        let state = self.0.state();
        let sql = "UPDATE chunk SET pinned = ?2 WHERE id = ?1";
        match rows::change(&state.index, sql, (id.0, pinned)).during("pinning a chunk")? {
            0 => Err(StoreError::NoSuchChunk(id)),
            _ => Ok(()),
        }
    }
}

impl Shared {
    /// Evicts until `needed` bytes fit the budget, and a little more so that not each chunk has to ask again. Evicts
    /// nothing when they cannot fit.
    pub(super) fn make_room(&self, state: &mut State, needed: u64) -> Result<usize, StoreError> {
        let budget = self.options.budget_bytes;
        let wanted = state.bytes.saturating_add(state.writing).saturating_add(needed);
        let Some(missing) = wanted.checked_sub(budget).filter(|&missing| missing > 0) else {
            return Ok(0);
        };
        let chunks = self.ranked(state)?;
        let candidates: Vec<_> = chunks.iter().map(|(_, candidate)| *candidate).collect();
        let pinned = candidates
            .iter()
            .filter(|one| one.pinned)
            .fold(0_u64, |sum, one| sum.saturating_add(one.bytes));
        let kept = pinned.saturating_add(state.writing);
        if kept.saturating_add(needed) > budget {
            return Err(StoreError::NoRoom {
                needed_bytes: needed,
                budget_bytes: budget,
                kept_bytes: kept,
            });
        }
        let slack = budget / 64;
        let evicted = Ranking::new(&candidates, self.options.costs).evict(missing.saturating_add(slack));
        let ids: Vec<ChunkId> = evicted
            .iter()
            .filter_map(|&at| chunks.get(at))
            .map(|(id, _)| *id)
            .collect();
        self.delete(state, "evicting chunks", |_| Ok(ids))?.1?;
        Ok(evicted.len())
    }

    /// All chunks as eviction sees them now.
    pub(super) fn ranked(&self, state: &State) -> Result<Vec<(ChunkId, Candidate<rows::Node>)>, StoreError> {
        let now_ms = self.options.clock.now_ms();
        let chunks = rows::candidates(&state.index)?;
        Ok(chunks
            .into_iter()
            .map(|(id, uses, mut candidate)| {
                candidate.weight = uses.weight_at(now_ms, self.options.half_life);
                (id, candidate)
            })
            .collect())
    }
}
