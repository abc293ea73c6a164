//! Bringing chunks into memory before anybody asks for them, while the disk has nothing else to do.

use super::memory::Memory;
use super::{Shared, lock};
use crate::snapshot::PrefetchView;
use reprise_kv::store::{ChunkId, StoreError};
use std::collections::VecDeque;

/// R from which on the chunks that prompts begin with are brought into memory: used a second time, not long ago.
const LEAST_WEIGHT: f64 = 1.5;

/// What prefetching came to since the keeper was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrefetchCounts {
    /// Chunks that were brought into memory unasked.
    pub loaded: usize,
    /// Those of them that somebody asked for afterwards.
    pub hits: usize,
    /// Those that went without.
    pub wasted: usize,
}

/// What is to be brought.
#[derive(Debug, Default)]
pub(super) struct Plan {
    chunks: VecDeque<(ChunkId, PrefetchView)>,
    /// Whether uses or chunks have changed since it was made.
    pub(super) is_old: bool,
}

impl Plan {
    /// None yet.
    pub(super) fn due() -> Plan {
        Plan {
            chunks: VecDeque::new(),
            is_old: true,
        }
    }

    /// Nothing more is to be brought until there is a new plan.
    pub(super) fn give_up(&mut self) {
        self.chunks.clear();
    }

    /// For people to see.
    pub(super) fn views(&self) -> Vec<PrefetchView> {
        self.chunks.iter().map(|(_, view)| view.clone()).collect()
    }
}

impl Shared {
    /// Makes the plan anew where it is old.
    pub(super) fn plan_prefetch(&self) {
        if !std::mem::take(&mut lock(&self.plan).is_old) {
            return;
        }
        let chunks = self.choose().unwrap_or_else(|error| {
            tracing::warn!(%error, "nothing can be brought into memory ahead");
            VecDeque::new()
        });
        lock(&self.plan).chunks = chunks;
    }

    fn choose(&self) -> Result<VecDeque<(ChunkId, PrefetchView)>, StoreError> {
        let mut chosen = VecDeque::new();
        let mut bytes = 0;
        for one in self.store.promising(self.namespace, LEAST_WEIGHT) {
            let fits = |memory: &Memory| {
                let worth = memory.worth_of(one.bytes as usize, one.weight);
                memory.has_room(bytes + one.bytes as usize, worth, &|id| self.weight(id))
            };
            {
                let memory = lock(&self.memory);
                if memory.peek(one.chunk).is_some() {
                    continue;
                }
                if !fits(&memory) {
                    break;
                }
            }
            bytes += one.bytes as usize;
            let owners = self.store.owners_of(one.chunk)?;
            let view = PrefetchView {
                owner: owners.first().map(ToString::to_string).unwrap_or_default(),
                reason: match one.follows {
                    true => "follows what is used often".to_owned(),
                    false => format!("used {:.1} times lately", one.weight),
                },
            };
            chosen.push_back((one.chunk, view));
        }
        Ok(chosen)
    }

    /// Whether there is something to bring.
    pub(super) fn has_prefetch(&self) -> bool {
        let plan = lock(&self.plan);
        plan.is_old || !plan.chunks.is_empty()
    }

    /// Brings the next chunk of the plan.
    pub(super) fn prefetch_next(&self) {
        let next = lock(&self.plan).chunks.front().map(|(chunk, _)| *chunk);
        let Some(chunk) = next else { return };
        if lock(&self.memory).peek(chunk).is_none() {
            match self.read(chunk) {
                Ok(bytes) => {
                    lock(&self.memory).prefetch(chunk, &bytes, &|id| self.weight(id));
                    self.forget_if_gone(chunk);
                }
                Err(error) => tracing::debug!(%error, "a chunk was not brought into memory ahead"),
            }
        }
        let mut plan = lock(&self.plan);
        if plan.chunks.front().is_some_and(|(first, _)| *first == chunk) {
            plan.chunks.pop_front();
        }
    }
}
