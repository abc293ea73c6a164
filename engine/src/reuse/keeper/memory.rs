//! The memory tier: chunks as they are stored, within a budget. What is not on disk yet is dirty and stays, in the
//! pages where it was computed or as bytes; of the rest what is worth least goes first (R * C_mem per byte, DESIGN
//! section 8).

use super::chunk::ChunkBytes;
use super::writer::Leaving;
use reprise_kv::store::ChunkId;
use reprise_kv::store::policy::Reload;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// How much a chunk was used lately: R.
pub(super) type Weight<'a> = &'a dyn Fn(ChunkId) -> f64;

#[derive(Debug)]
pub(super) struct Memory {
    budget_bytes: usize,
    /// The budget, or less of it while memory is short.
    ceiling_bytes: usize,
    bytes: usize,
    chunks: HashMap<ChunkId, Slot>,
    clock: u64,
    /// What it costs to load a chunk again.
    pub(super) reload: Reload,
    pub(super) counts: Counts,
}

/// What was asked for and what came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) lookups: usize,
    pub(super) hits: usize,
    pub(super) prefetched: usize,
    pub(super) prefetch_hits: usize,
    pub(super) prefetch_wasted: usize,
}

#[derive(Debug)]
struct Slot {
    held: Held,
    is_dirty: bool,
    is_prefix: bool,
    /// Whether it was brought here before anybody asked, and nobody has.
    is_unasked: bool,
    /// When it was used last; being taken in counts.
    used: u64,
}

/// Where a chunk's keys and values are.
#[derive(Debug, Clone)]
pub(super) enum Held {
    Bytes(Arc<ChunkBytes>),
    /// In the pages of what a request left, at these positions.
    Pages(Arc<Leaving>, Range<usize>),
}

impl Held {
    /// Bytes beyond the pool's.
    fn len(&self) -> usize {
        match self {
            Held::Bytes(bytes) => bytes.len(),
            Held::Pages(..) => 0,
        }
    }
}

impl Memory {
    pub(super) fn new(budget_bytes: usize) -> Memory {
        Memory {
            budget_bytes,
            ceiling_bytes: budget_bytes,
            bytes: 0,
            chunks: HashMap::new(),
            clock: 0,
            // Before anything was measured: a plain SSD.
            reload: Reload {
                flash_bytes_per_ms: 500_000.0,
                start_ms: 0.2,
                hidden_ms: 0.0,
            },
            counts: Counts::default(),
        }
    }

    pub(super) fn budget_bytes(&self) -> usize {
        self.budget_bytes
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ChunkId> {
        self.chunks.keys().copied()
    }

    pub(super) fn dirty(&self) -> usize {
        self.chunks.values().filter(|slot| slot.is_dirty).count()
    }

    /// A chunk that somebody asks for.
    pub(super) fn get(&mut self, id: ChunkId, is_prefix: bool) -> Option<Held> {
        self.clock += 1;
        self.counts.lookups += 1;
        let slot = self.chunks.get_mut(&id)?;
        self.counts.hits += 1;
        self.counts.prefetch_hits += usize::from(std::mem::take(&mut slot.is_unasked));
        slot.used = self.clock;
        slot.is_prefix |= is_prefix;
        Some(slot.held.clone())
    }

    /// The same without asking for it.
    pub(super) fn peek(&self, id: ChunkId) -> Option<Held> {
        self.chunks.get(&id).map(|slot| slot.held.clone())
    }

    /// Takes in a chunk that is not on disk. An exact one is likely to begin a later prompt.
    pub(super) fn put_dirty(
        &mut self,
        id: ChunkId,
        pages: &Arc<Leaving>,
        range: Range<usize>,
        is_exact: bool,
    ) {
        self.insert(
            id,
            Slot {
                held: Held::Pages(Arc::clone(pages), range),
                is_dirty: true,
                is_prefix: is_exact,
                is_unasked: false,
                used: 0,
            },
        );
    }

    /// Takes in a chunk that was loaded from disk for somebody.
    pub(super) fn put(&mut self, id: ChunkId, bytes: &Arc<ChunkBytes>, is_prefix: bool, weight: Weight<'_>) {
        self.insert(id, Slot::clean(bytes, is_prefix));
        self.evict_to(self.ceiling_bytes, weight);
    }

    /// Takes in a chunk that nobody has asked for, where it is worth more than what has to go for it.
    pub(super) fn prefetch(&mut self, id: ChunkId, bytes: &Arc<ChunkBytes>, weight: Weight<'_>) -> bool {
        let worth = worth(&self.reload, bytes.len(), true, weight(id));
        if self.chunks.contains_key(&id) || !self.has_room(bytes.len(), worth, weight) {
            return false;
        }
        self.evict_to(self.ceiling_bytes.saturating_sub(bytes.len()), weight);
        self.counts.prefetched += 1;
        let slot = Slot::clean(bytes, true);
        self.insert(
            id,
            Slot {
                is_unasked: true,
                ..slot
            },
        );
        true
    }

    /// Whether so many bytes fit when everything worth less goes. No while memory is short.
    pub(super) fn has_room(&self, bytes: usize, than_worth: f64, weight: Weight<'_>) -> bool {
        let stays = |(id, slot): (&ChunkId, &Slot)| {
            let worth = worth(&self.reload, slot.held.len(), slot.is_prefix, weight(*id));
            (slot.is_dirty || worth >= than_worth).then(|| slot.held.len())
        };
        self.ceiling_bytes == self.budget_bytes
            && self.chunks.iter().filter_map(stays).sum::<usize>() + bytes <= self.ceiling_bytes
    }

    /// What a chunk that is read from disk when it is next needed is worth in memory, a byte.
    pub(super) fn worth_of(&self, bytes: usize, weight: f64) -> f64 {
        worth(&self.reload, bytes, true, weight)
    }

    /// Puts the bytes of a dirty chunk in the place of its pages, where they fit; false when they do not, and it stays
    /// as it is.
    pub(super) fn settle(&mut self, id: ChunkId, bytes: &Arc<ChunkBytes>, weight: Weight<'_>) -> bool {
        let dirty: usize = self
            .chunks
            .values()
            .filter(|slot| slot.is_dirty)
            .map(|slot| slot.held.len())
            .sum();
        if !self.chunks.contains_key(&id) || dirty + bytes.len() > self.ceiling_bytes {
            return false;
        }
        self.evict_to(self.ceiling_bytes - bytes.len(), weight);
        if let Some(slot) = self.chunks.get_mut(&id) {
            self.bytes -= slot.held.len();
            slot.held = Held::Bytes(Arc::clone(bytes));
            self.bytes += bytes.len();
        }
        true
    }

    /// Notes that chunks are on disk: their pages are let go, their bytes stay for as long as they are worth it.
    pub(super) fn clean(&mut self, written: &[ChunkId], weight: Weight<'_>) {
        for id in written {
            if let Some(slot) = self.chunks.get_mut(id) {
                slot.is_dirty = false;
                if matches!(slot.held, Held::Pages(..)) {
                    self.chunks.remove(id);
                }
            }
        }
        self.evict_to(self.ceiling_bytes, weight);
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(ChunkId) -> bool) {
        self.chunks.retain(|&id, slot| {
            let keep = is_kept(id);
            if !keep {
                self.bytes -= slot.held.len();
            }
            keep
        });
    }

    pub(super) fn remove(&mut self, id: ChunkId) {
        if let Some(slot) = self.chunks.remove(&id) {
            self.bytes -= slot.held.len();
        }
    }

    /// The chunks whose pages belong to what was left first.
    pub(super) fn oldest_pages(&self) -> Vec<(ChunkId, Arc<Leaving>, Range<usize>)> {
        let pages = |(id, slot): (&ChunkId, &Slot)| match &slot.held {
            Held::Pages(leaving, range) => Some((*id, Arc::clone(leaving), range.clone())),
            Held::Bytes(_) => None,
        };
        let mut all: Vec<_> = self.chunks.iter().filter_map(pages).collect();
        // Numbers go up with time.
        all.sort_unstable_by_key(|(id, ..)| *id);
        let oldest = all.first().map(|(_, leaving, _)| Arc::clone(leaving));
        all.retain(|(_, leaving, _)| oldest.as_ref().is_some_and(|oldest| Arc::ptr_eq(oldest, leaving)));
        all
    }

    /// Lets go what is on disk until so many bytes are left, and takes no more until [`Memory::relax`]. Gives the bytes
    /// that came free.
    pub(super) fn shrink(&mut self, to_bytes: usize, weight: Weight<'_>) -> usize {
        let before = self.bytes;
        self.ceiling_bytes = to_bytes.min(self.budget_bytes);
        self.evict_to(to_bytes, weight);
        before - self.bytes
    }

    /// Takes up to the budget again.
    pub(super) fn relax(&mut self) {
        self.ceiling_bytes = self.budget_bytes;
    }

    fn insert(&mut self, id: ChunkId, slot: Slot) {
        self.clock += 1;
        self.bytes += slot.held.len();
        let used = self.clock;
        let slot = Slot { used, ..slot };
        if let Some(old) = self.chunks.insert(id, slot) {
            self.bytes -= old.held.len();
        }
    }

    /// Evicts what is worth least, of equal ones what was used longest ago.
    fn evict_to(&mut self, most_bytes: usize, weight: Weight<'_>) {
        if self.bytes <= most_bytes {
            return;
        }
        let Memory { chunks, reload, .. } = self;
        let mut order: Vec<(f64, u64, ChunkId)> = chunks
            .iter()
            .filter(|(_, slot)| !slot.is_dirty)
            .map(|(id, slot)| {
                let worth = worth(reload, slot.held.len(), slot.is_prefix, weight(*id));
                (worth, slot.used, *id)
            })
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, _, id) in order {
            if self.bytes <= most_bytes {
                break;
            }
            if let Some(slot) = self.chunks.remove(&id) {
                self.bytes -= slot.held.len();
                self.counts.prefetch_wasted += usize::from(slot.is_unasked);
            }
        }
    }
}

impl Slot {
    fn clean(bytes: &Arc<ChunkBytes>, is_prefix: bool) -> Slot {
        Slot {
            held: Held::Bytes(Arc::clone(bytes)),
            is_dirty: false,
            is_prefix,
            is_unasked: false,
            used: 0,
        }
    }
}

/// R * C_mem per byte.
fn worth(reload: &Reload, bytes: usize, is_prefix: bool, weight: f64) -> f64 {
    weight * reload.cost(bytes as u64, is_prefix) / bytes.max(1) as f64
}
