//! The memory tier: chunks as they were stored, within a budget.

use super::chunk::ChunkBytes;
use reprise_kv::store::ChunkId;
use std::collections::HashMap;
use std::sync::Arc;

/// Chunks as they were stored, the most recently used last.
#[derive(Debug)]
pub(super) struct Memory {
    budget_bytes: usize,
    bytes: usize,
    chunks: HashMap<ChunkId, (u64, Arc<ChunkBytes>)>,
    clock: u64,
}

impl Memory {
    pub(super) fn new(budget_bytes: usize) -> Memory {
        Memory {
            budget_bytes,
            bytes: 0,
            chunks: HashMap::new(),
            clock: 0,
        }
    }

    pub(super) fn get(&mut self, id: ChunkId) -> Option<Arc<ChunkBytes>> {
        self.clock += 1;
        let (used, bytes) = self.chunks.get_mut(&id)?;
        *used = self.clock;
        Some(Arc::clone(bytes))
    }

    pub(super) fn put(&mut self, id: ChunkId, bytes: &Arc<ChunkBytes>) {
        self.clock += 1;
        self.bytes += bytes.len();
        if let Some((_, old)) = self.chunks.insert(id, (self.clock, Arc::clone(bytes))) {
            self.bytes -= old.len();
        }
        self.shrink();
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(ChunkId) -> bool) {
        self.chunks.retain(|&id, (_, bytes)| {
            let keep = is_kept(id);
            if !keep {
                self.bytes -= bytes.len();
            }
            keep
        });
    }

    fn shrink(&mut self) {
        while self.bytes > self.budget_bytes
            && let Some((&id, _)) = self.chunks.iter().min_by_key(|(_, (used, _))| *used)
            && let Some((_, bytes)) = self.chunks.remove(&id)
        {
            self.bytes -= bytes.len();
        }
    }
}
