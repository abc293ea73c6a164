//! What is kept of prompts beyond the pool: chunks on flash, and those in memory that are used most or not on flash yet.
//!
//! The keeper finds what of a prompt is known, loads it, turned to where it is needed, and takes what requests leave
//! behind: it is found at once, in memory, and reaches the disk later, in batches, on a thread of its own that waits
//! while a prompt is being read. The keeper knows no lanes and computes nothing. A fault of the store never reaches an
//! answer: what cannot be read is computed, and the log says so.

mod chunk;
mod fetch;
mod find;
mod memory;
mod model;
mod prefetch;
#[cfg(test)]
mod tests;
mod writer;

pub use fetch::Fetch;
pub use find::{Found, Use, Wanted};
pub use model::KeptModel;
pub use prefetch::PrefetchCounts;
pub use writer::{Leaving, ReadingGuard};

use crate::snapshot::{PrefetchView, TierView, TiersView};
use fetch::FetchJob;
use memory::Memory;
use prefetch::Plan;
use reprise_kernels::isa::Isa;
use reprise_kv::store::{ChunkId, ChunkStore, Erased, Namespace, Owner, StoreError};
use reprise_kv::{KvProfile, LayerLayout};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use writer::Queue;

/// See the module.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    loader: Option<JoinHandle<()>>,
    /// What the loader is to do; it ends when there is nobody left to tell it.
    fetches: Option<Sender<FetchJob>>,
}

#[derive(Debug)]
struct Shared {
    store: ChunkStore,
    namespace: Namespace,
    model: KeptModel,
    /// The layers of each shard.
    shards: Vec<Range<usize>>,
    isa: Isa,
    memory: Mutex<Memory>,
    plan: Mutex<Plan>,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Held by whoever packs pages on a thread other than the worker's, so that the worker can wait for pages to come
    /// free. Locked before the memory.
    packing: Mutex<()>,
    flash_lookups: AtomicUsize,
    flash_hits: AtomicUsize,
    /// Chunks that got another owner, so that it is not written down at every request.
    shares: Mutex<HashSet<(ChunkId, Owner)>>,
    /// Nanoseconds spent on storing.
    storing: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic left is still a list of chunks, each of them whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// Keeps chunks of a model in a store, and up to `memory_bytes` of them in memory.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn start(store: ChunkStore, model: KeptModel, memory_bytes: usize) -> std::io::Result<Keeper> {
        let shared = Arc::new(Shared {
            namespace: model.namespace(),
            shards: model.shards(),
            store,
            model,
            isa: Isa::best(),
            memory: Mutex::new(Memory::new(memory_bytes)),
            plan: Mutex::new(Plan::due()),
            queue: Mutex::default(),
            changed: Condvar::new(),
            packing: Mutex::default(),
            flash_lookups: AtomicUsize::new(0),
            flash_hits: AtomicUsize::new(0),
            shares: Mutex::default(),
            storing: AtomicU64::new(0),
        });
        let writer = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("chunk writer".into())
                .spawn(move || shared.live())?
        };
        let (fetches, jobs) = channel();
        let loader = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("chunk loader".into())
                .spawn(move || shared.serve_fetches(&jobs))
        };
        let mut keeper = Keeper {
            shared,
            writer: Some(writer),
            loader: None,
            fetches: Some(fetches),
        };
        keeper.loader = Some(loader?);
        Ok(keeper)
    }

    /// A keeper of the same model with another KV profile, on the same store.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn with_profile(&self, profile: &KvProfile, layouts: &[LayerLayout]) -> std::io::Result<Keeper> {
        let shared = &self.shared;
        let model = KeptModel {
            profile: profile.clone(),
            layouts: layouts.to_vec(),
            ..shared.model.clone()
        };
        Keeper::start(shared.store.clone(), model, lock(&shared.memory).budget_bytes())
    }

    /// The store.
    pub fn store(&self) -> &ChunkStore {
        &self.shared.store
    }

    /// What of a prompt is known, on disk or not yet. Its last token is never among it. Waits for no disk.
    pub fn find(&self, wanted: &Wanted<'_>) -> Found {
        self.shared.find(wanted)
    }

    /// Notes that chunks were used.
    pub fn used(&self, chunks: &[ChunkId]) {
        if !chunks.is_empty() {
            self.shared.store.record_use(chunks);
            lock(&self.shared.plan).is_old = true;
            self.shared.changed.notify_all();
        }
    }

    /// Erases everything that is kept for an owner: on disk, in memory, and what waits to be stored or is being stored.
    ///
    /// # Errors
    /// As [`ChunkStore::erase_owner`].
    pub fn erase(&self, owner: &Owner) -> Result<Erased, StoreError> {
        self.disown(owner);
        let shared = &self.shared;
        let erased = shared.store.erase_owner(owner);
        lock(&shared.memory).retain(|chunk| shared.store.facts(chunk).is_some());
        lock(&shared.plan).is_old = true;
        erased
    }

    /// Lets go of what is in memory and on disk as well, what is worth least first, until `to_bytes` are left; takes no
    /// more than that until [`Keeper::relax`]. Gives the bytes that came free.
    pub fn shrink(&self, to_bytes: usize) -> usize {
        let shared = &self.shared;
        lock(&shared.memory).shrink(to_bytes, &|id| shared.weight(id))
    }

    /// Memory is no longer short.
    pub fn relax(&self) {
        lock(&self.shared.memory).relax();
    }

    /// What memory and flash hold.
    pub fn tiers(&self) -> TiersView {
        let shared = &self.shared;
        let (chunks, bytes) = shared.store.written();
        let memory = lock(&shared.memory);
        TiersView {
            memory: TierView {
                bytes: memory.bytes() as u64,
                chunks: memory.len(),
                dirty_chunks: memory.dirty(),
                hits: memory.counts.hits,
                lookups: memory.counts.lookups,
            },
            flash: TierView {
                bytes,
                chunks,
                dirty_chunks: 0,
                hits: shared.flash_hits.load(Ordering::Relaxed),
                lookups: shared.flash_lookups.load(Ordering::Relaxed),
            },
        }
    }

    /// The chunks that are in memory.
    pub fn in_memory(&self) -> Vec<ChunkId> {
        lock(&self.shared.memory).ids().collect()
    }

    /// How long storing took since the start, without waiting for who reads.
    pub fn storing(&self) -> Duration {
        Duration::from_nanos(self.shared.storing.load(Ordering::Relaxed))
    }

    /// What is being brought into memory before anybody asks for it.
    pub fn prefetching(&self) -> Vec<PrefetchView> {
        lock(&self.shared.plan).views()
    }

    /// What that came to so far.
    pub fn prefetch_counts(&self) -> PrefetchCounts {
        let counts = lock(&self.shared.memory).counts;
        PrefetchCounts {
            loaded: counts.prefetched,
            hits: counts.prefetch_hits,
            wasted: counts.prefetch_wasted,
        }
    }
}

impl Drop for Keeper {
    /// Stores what waits.
    fn drop(&mut self) {
        self.close();
        self.fetches = None;
        for thread in [self.writer.take(), self.loader.take()].into_iter().flatten() {
            if thread.join().is_err() {
                tracing::error!("a thread that stores or loads chunks ended by a fault of its own");
            }
        }
    }
}
