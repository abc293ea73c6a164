//! What is kept within the budget: uses, pins, and evicting what is worth least.

use super::catalogue::Node;
use super::chunk_store::{ChunkStore, Shared, State, in_transaction};
use super::error::{During, StoreError};
use super::policy::{Candidate, Ranking};
use super::record::ChunkId;
use super::rows;

impl ChunkStore {
    /// Notes that chunks were used now. Those that are gone are passed over. The index hears of it with
    /// [`ChunkStore::save_uses`], or when the store is closed.
    pub fn record_use(&self, chunks: &[ChunkId]) {
        let options = &self.0.options;
        let now_ms = options.clock.now_ms();
        let mut catalogue = self.0.catalogue_mut();
        for chunk in chunks {
            catalogue.used(*chunk, now_ms, options.half_life);
        }
    }

    /// Writes down the uses that were noted since the last time, so that they outlive this process.
    ///
    /// # Errors
    /// [`StoreError::Index`].
    pub fn save_uses(&self) -> Result<(), StoreError> {
        let mut state = self.0.state();
        self.0.save_uses(&mut state)
    }

    /// Exempts a chunk from eviction, or no longer.
    ///
    /// # Errors
    /// [`StoreError::NoSuchChunk`] and [`StoreError::Index`].
    pub fn set_pinned(&self, id: ChunkId, pinned: bool) -> Result<(), StoreError> {
        let state = self.0.state();
        let sql = "UPDATE chunk SET pinned = ?2 WHERE id = ?1";
        if rows::change(&state.index, sql, (id.0, pinned)).during("pinning a chunk")? == 0 {
            return Err(StoreError::NoSuchChunk(id));
        }
        if let Some(entry) = self.0.catalogue_mut().get_mut(id) {
            entry.pinned = pinned;
        }
        Ok(())
    }
}

impl Shared {
    pub(super) fn save_uses(&self, state: &mut State) -> Result<(), StoreError> {
        const ACTION: &str = "noting the use of chunks";
        let unsaved = self.catalogue_mut().take_unsaved();
        if unsaved.is_empty() {
            return Ok(());
        }
        in_transaction(&mut state.index, ACTION, |index| {
            for (chunk, uses) in unsaved {
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

    /// Evicts until `needed` bytes fit the budget, and a little more so that not each chunk has to ask again. Evicts
    /// nothing when they cannot fit.
    pub(super) fn make_room(&self, state: &mut State, needed: u64) -> Result<usize, StoreError> {
        let budget = self.options.budget_bytes;
        let wanted = state.bytes.saturating_add(state.writing).saturating_add(needed);
        let Some(missing) = wanted.checked_sub(budget).filter(|&missing| missing > 0) else {
            return Ok(0);
        };
        let chunks = self.ranked();
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

    /// All chunks on disk as eviction sees them now.
    pub(super) fn ranked(&self) -> Vec<(ChunkId, Candidate<Node>)> {
        let now_ms = self.options.clock.now_ms();
        self.catalogue().candidates(now_ms, self.options.half_life)
    }
}
