//! What is kept of prompts beyond the pool: chunks on flash, and those lately used in memory.
//!
//! The keeper finds what of a prompt is stored, loads it, turned to where it is needed, and stores what requests leave
//! behind, on a thread of its own. It knows no lanes and computes nothing. A fault of the store never reaches an answer:
//! what cannot be found or read is computed, and the log says so.

mod chunk;
mod find;
mod memory;
mod model;
mod writer;

pub use chunk::LoadedChunk;
pub use find::{Found, Use, Wanted};
pub use model::KeptModel;
pub use writer::Leaving;

use memory::Memory;
use reprise_kernels::isa::Isa;
use reprise_kv::store::{ChunkId, ChunkStore, Erased, Namespace, Owner, StoreError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use writer::Queue;

/// See the module.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    store: ChunkStore,
    namespace: Namespace,
    model: KeptModel,
    isa: Isa,
    memory: Mutex<Memory>,
    queue: Mutex<Queue>,
    changed: Condvar,
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
            store,
            model,
            isa: Isa::best(),
            memory: Mutex::new(Memory::new(memory_bytes)),
            queue: Mutex::default(),
            changed: Condvar::new(),
        });
        let writer = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("chunk writer".into())
                .spawn(move || shared.write_all())?
        };
        Ok(Keeper {
            shared,
            writer: Some(writer),
        })
    }

    /// The store.
    pub fn store(&self) -> &ChunkStore {
        &self.shared.store
    }

    /// What of a prompt is stored. Its last token is never among it.
    pub fn find(&self, wanted: &Wanted<'_>) -> Found {
        self.shared.find(wanted).unwrap_or_else(|error| {
            tracing::warn!(%error, "stored chunks cannot be looked for; the prompt is read as a new one");
            Found::default()
        })
    }

    /// Loads part of a chunk, turned to where it is needed; nothing when it cannot be read, which the log tells.
    pub fn load(&self, part: &Use) -> Option<LoadedChunk> {
        self.shared
            .load(part)
            .map_err(|error| tracing::warn!(%error, "a stored chunk cannot be used; its tokens are computed"))
            .ok()
    }

    /// Notes that chunks were used.
    pub fn used(&self, chunks: &[ChunkId]) {
        if let Err(error) = self.shared.store.record_use(chunks) {
            tracing::warn!(%error, "the use of chunks cannot be noted");
        }
    }

    /// Erases everything that is kept for an owner: on disk, in memory, and what waits to be stored.
    ///
    /// # Errors
    /// As [`ChunkStore::erase_owner`].
    pub fn erase(&self, owner: &Owner) -> Result<Erased, StoreError> {
        let shared = &self.shared;
        let mut queue = lock(&shared.queue);
        for leaving in &mut queue.waiting {
            for cut in leaving
                .cuts
                .iter_mut()
                .filter(|cut| cut.owner.as_ref() == Some(owner))
            {
                cut.owner = None;
            }
        }
        // What is being written now may be the owner's.
        while queue.is_writing {
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        drop(queue);
        let erased = shared.store.erase_owner(owner);
        lock(&shared.memory).retain(|chunk| shared.store.record(chunk).is_ok());
        erased
    }

    /// Takes what a request leaves behind; it is stored when there is time.
    pub fn keep(&self, leaving: Leaving) {
        lock(&self.shared.queue).waiting.push_back(leaving);
        self.shared.changed.notify_all();
    }

    /// Lets the oldest of what waits to be stored go, since its pages are needed; false when nothing waits.
    pub fn give_up_oldest(&self) -> bool {
        lock(&self.shared.queue).waiting.pop_front().is_some()
    }

    /// Waits until everything is stored.
    pub fn flush(&self) {
        let mut queue = lock(&self.shared.queue);
        while !queue.waiting.is_empty() || queue.is_writing {
            queue = self
                .shared
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Keeper {
    /// Stores what waits.
    fn drop(&mut self) {
        {
            let mut queue = lock(&self.shared.queue);
            queue.is_closing = true;
            self.shared.changed.notify_all();
        }
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the thread that stores chunks ended by a fault of its own");
        }
    }
}
