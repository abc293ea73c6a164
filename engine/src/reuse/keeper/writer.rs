//! The thread that has the disk to itself: it stores what requests leave behind, and brings ahead what is likely to be
//! asked for. While a prompt is being read it waits, so that reading has the disk and the memory's bandwidth.

use super::super::cut::Cut;
use super::chunk::ChunkBytes;
use super::memory::Held;
use super::{Keeper, Shared, lock};
use crate::api::TokenId;
use reprise_kv::pool::Sequence;
use reprise_kv::store::{Announced, ChainHash, ChunkId, NewChunk, Owner, Shard, StoreError};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Chunks of a batch at most: each is an open file until all are synced, and some systems allow few.
const BATCH_CHUNKS: usize = 64;

/// What a request leaves behind, to be stored.
#[derive(Debug)]
pub struct Leaving {
    /// Its tokens.
    pub tokens: Vec<TokenId>,
    /// The chunks they are cut into, in order.
    pub cuts: Vec<Cut>,
    /// Their keys and values.
    pub sequence: Sequence,
    /// How many of them were computed with nothing but exact tokens before them.
    pub exact_tokens: usize,
    /// Of the others the share that was computed again where they came from elsewhere.
    pub ratio: f32,
}

/// What of a request is to be written, in one batch.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// Chunks that are known already and not on disk.
    chunks: Vec<ChunkId>,
    /// Owners that chunks on disk get.
    shares: Vec<(ChunkId, Owner)>,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Job>,
    /// Whether a job is being done, and whether it is at its owners.
    is_writing: bool,
    is_sharing: bool,
    /// Prompts that are being read.
    readers: usize,
    /// Callers who wait for all to be written: then nobody waits for prompts.
    hurried: usize,
    is_closing: bool,
}

impl Queue {
    fn may_write(&self) -> bool {
        self.readers == 0 || self.hurried > 0 || self.is_closing
    }
}

/// Keeps the disk free for reading while it is there: nothing is written or brought ahead.
#[derive(Debug)]
pub struct ReadingGuard(Arc<Shared>);

impl Drop for ReadingGuard {
    fn drop(&mut self) {
        lock(&self.0.queue).readers -= 1;
        self.0.changed.notify_all();
    }
}

impl Keeper {
    /// Says that a prompt is being read, for as long as the guard lives.
    pub fn reading(&self) -> ReadingGuard {
        lock(&self.shared.queue).readers += 1;
        ReadingGuard(Arc::clone(&self.shared))
    }

    /// Takes what a request leaves behind: found from now on, in memory until it is written when there is time.
    pub fn keep(&self, leaving: Leaving) {
        let shared = &self.shared;
        match shared.announce(leaving) {
            Ok(job) if job.chunks.is_empty() && job.shares.is_empty() => {}
            Ok(job) => {
                lock(&shared.queue).waiting.push_back(job);
                shared.changed.notify_all();
            }
            Err(error) => {
                tracing::warn!(%error, "what a request computed cannot be kept; it will be computed again");
            }
        }
    }

    /// Lets the pages go of what has waited longest to be stored, since they are needed: its chunks stay as bytes where
    /// the memory tier has room for them. False when nothing has pages.
    pub fn give_up_oldest(&self) -> bool {
        let shared = &self.shared;
        // Nobody else holds pages then.
        let _packing = lock(&shared.packing);
        let oldest = lock(&shared.memory).oldest_pages();
        for (chunk, leaving, range) in &oldest {
            let bytes = Arc::new(shared.pack(leaving, range.clone()));
            let weight = |id| shared.weight(id);
            if !lock(&shared.memory).settle(*chunk, &bytes, &weight) {
                shared.store.withdraw(&[*chunk]);
                lock(&shared.memory).remove(*chunk);
            }
        }
        !oldest.is_empty()
    }

    /// Waits until everything is stored, whoever reads meanwhile.
    pub fn flush(&self) {
        let shared = &self.shared;
        let mut queue = lock(&shared.queue);
        queue.hurried += 1;
        shared.changed.notify_all();
        while !queue.waiting.is_empty() || queue.is_writing {
            queue = shared.wait(queue);
        }
        queue.hurried -= 1;
        drop(queue);
        shared.save_uses();
    }

    /// Takes an owner off what waits to be stored, and waits for owners that are being written now.
    pub(super) fn disown(&self, owner: &Owner) {
        let shared = &self.shared;
        let mut queue = lock(&shared.queue);
        for job in &mut queue.waiting {
            job.shares.retain(|(_, one)| one != owner);
        }
        lock(&shared.shares).retain(|(_, one)| one != owner);
        while queue.is_sharing {
            queue = shared.wait(queue);
        }
    }

    pub(super) fn close(&self) {
        lock(&self.shared.queue).is_closing = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the chunks of a request known that are not yet.
    fn announce(&self, leaving: Leaving) -> Result<Job, StoreError> {
        let leaving = Arc::new(leaving);
        let known = self
            .store
            .longest_prefix(self.namespace, ChainHash::START, &leaving.tokens);
        // What is known already becomes the request's owners' as well: it stays when those go who had it first.
        let (mut stretches, mut end) = (Vec::new(), 0);
        for chunk in known.chunks.iter().take_while(|chunk| chunk.is_whole) {
            let cut = leaving.cuts.iter().find(|cut| cut.tokens.contains(&end));
            stretches.push((end..end + chunk.tokens, cut.and_then(|cut| cut.owner.as_ref())));
            end += chunk.tokens;
        }
        let rest = leaving.cuts.iter().map(|cut| {
            let range = cut.tokens.start.max(end)..cut.tokens.end.min(leaving.sequence.len());
            (range, cut.owner.as_ref())
        });
        stretches.extend(rest.filter(|(range, _)| !range.is_empty()));
        let (mut job, mut parent) = (Job::default(), ChainHash::START);
        for (range, owner) in stretches {
            let tokens = &leaving.tokens[range.clone()];
            if let Some(owner) = owner {
                let is_exact = range.end <= leaving.exact_tokens;
                let announced = self.store.announce(&NewChunk {
                    namespace: self.namespace,
                    parent,
                    base: u32::try_from(range.start).unwrap_or(u32::MAX),
                    tokens,
                    owner,
                    ratio: if is_exact { 1.0 } else { leaving.ratio },
                    embedding: None,
                })?;
                match announced {
                    Announced::New(chunk) => {
                        lock(&self.memory).put_dirty(chunk, &leaving, range, is_exact);
                        job.chunks.push(chunk);
                    }
                    Announced::Pending(_) => {}
                    Announced::Stored(chunk) => self.share(chunk, owner.clone(), &mut job),
                }
            }
            // What belongs to nobody is not stored; what follows has it for context nonetheless.
            parent = parent.then(tokens);
        }
        Ok(job)
    }

    /// Gives a chunk one owner more, unless that was done before.
    fn share(&self, chunk: ChunkId, owner: Owner, job: &mut Job) {
        let share = (chunk, owner);
        let mut shared = lock(&self.shares);
        if !shared.contains(&share) {
            shared.insert(share.clone());
            job.shares.push(share);
        }
    }

    /// The thread's life.
    pub(super) fn live(&self) {
        while let Some(job) = self.next_job() {
            let (chunks, written) = (
                job.chunks.clone(),
                catch_unwind(AssertUnwindSafe(|| self.write(job))),
            );
            match written {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "what a request computed cannot be stored; it will be computed again");
                }
                Err(_) => tracing::error!("storing what a request computed ended by a fault of its own"),
            }
            // Whatever was not written is known no longer.
            self.store.withdraw(&chunks);
            lock(&self.memory).retain(|id| !chunks.contains(&id) || self.store.facts(id).is_some());
            lock(&self.plan).is_old = true;
            let mut queue = lock(&self.queue);
            (queue.is_writing, queue.is_sharing) = (false, false);
            drop(queue);
            self.changed.notify_all();
        }
        self.save_uses();
    }

    /// The next job, when nobody reads; chunks are brought ahead until there is one. None at the end.
    fn next_job(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.may_write()
                && let Some(job) = queue.waiting.pop_front()
            {
                (queue.is_writing, queue.is_sharing) = (true, true);
                return Some(job);
            }
            if queue.is_closing {
                return None;
            }
            if queue.readers == 0 && self.has_prefetch() {
                drop(queue);
                let brought = catch_unwind(AssertUnwindSafe(|| {
                    self.plan_prefetch();
                    self.prefetch_next();
                }));
                if brought.is_err() {
                    tracing::error!("bringing chunks into memory ended by a fault of its own");
                    lock(&self.plan).give_up();
                }
                queue = lock(&self.queue);
            } else {
                queue = self.wait(queue);
            }
        }
    }

    /// Waits while a prompt is being read; for how long.
    fn wait_for_readers(&self) -> Duration {
        let begin = Instant::now();
        let mut queue = lock(&self.queue);
        while !queue.may_write() {
            queue = self.wait(queue);
        }
        begin.elapsed()
    }

    /// Stores chunks: all files, then all rows.
    fn write(&self, job: Job) -> Result<(), StoreError> {
        for (chunk, owner) in &job.shares {
            // What is gone by now, or was never written, needs no owner.
            if self.store.facts(*chunk).is_some()
                && let Err(error) = self.store.share(*chunk, owner)
            {
                tracing::warn!(%error, "a chunk keeps its owners as they were");
            }
        }
        lock(&self.queue).is_sharing = false;
        self.changed.notify_all();

        for chunks in job.chunks.chunks(BATCH_CHUNKS) {
            self.write_batch(chunks)?;
        }
        self.save_uses();
        Ok(())
    }

    /// Stores what can be stored of some chunks, and tells the first fault.
    fn write_batch(&self, chunks: &[ChunkId]) -> Result<(), StoreError> {
        let (begin, mut waited) = (Instant::now(), Duration::ZERO);
        let names = self.model.shard_names();
        let mut batch = self.store.batch();
        let mut fault = Ok(());
        for &chunk in chunks {
            waited += self.wait_for_readers();
            let Some(bytes) = self.bytes_of_dirty(chunk) else {
                continue;
            };
            let shards = names.iter().zip(&bytes.shards);
            let shards = shards.map(|(name, bytes)| Shard::whole(name, bytes)).collect();
            if let Err(error) = batch.add(chunk, shards) {
                // What the disk has no room for says nothing about what is written already.
                fault = Err(error);
                break;
            }
        }
        waited += self.wait_for_readers();
        let committed = batch.commit()?;
        lock(&self.memory).clean(&committed.written, &|id| self.weight(id));
        let nanoseconds = begin.elapsed().saturating_sub(waited).as_nanos() as u64;
        self.storing.fetch_add(nanoseconds, Ordering::Relaxed);
        fault
    }

    /// The bytes of a dirty chunk, which stay in memory where they fit; nothing of one that is gone.
    pub(super) fn bytes_of_dirty(&self, chunk: ChunkId) -> Option<Arc<ChunkBytes>> {
        let _packing = lock(&self.packing);
        let held = lock(&self.memory).peek(chunk)?;
        Some(match held {
            Held::Bytes(bytes) => bytes,
            Held::Pages(leaving, range) => {
                let bytes = Arc::new(self.pack(&leaving, range));
                lock(&self.memory).settle(chunk, &bytes, &|id| self.weight(id));
                bytes
            }
        })
    }

    pub(super) fn save_uses(&self) {
        if let Err(error) = self.store.save_uses() {
            tracing::warn!(%error, "the use of chunks cannot be noted");
        }
    }
}
