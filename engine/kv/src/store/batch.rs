//! Writing chunks, many at a time: all their files, then one transaction for all their rows.

use super::catalogue::Entry;
use super::chunk_store::{ChunkStore, Shared, State, in_transaction};
use super::error::{During, StoreError};
use super::file::{self, Unfinished};
use super::policy::UseRecord;
use super::record::{self, ChunkId, Embedding, NewChunk, Owner, Shard, ShardRecord};
use super::rows;

/// What became of a chunk that was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// It is new: it is found from now on, and to be written.
    New(ChunkId),
    /// It was announced before, and its owner is one of the chunk's from now on.
    Pending(ChunkId),
    /// It is stored; [`ChunkStore::share`] gives its owner a part in it.
    Stored(ChunkId),
}

impl Announced {
    /// The chunk.
    pub fn id(&self) -> ChunkId {
        match *self {
            Announced::New(id) | Announced::Pending(id) | Announced::Stored(id) => id,
        }
    }
}

impl ChunkStore {
    /// Makes a chunk known before it is written: matching finds it from now on, and it cannot be loaded until a
    /// [`Batch`] has it written. Asks neither the disk nor the index.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a chunk that the format has no room for.
    pub fn announce(&self, chunk: &NewChunk<'_>) -> Result<Announced, StoreError> {
        record::check(chunk)?;
        let chain = chunk.parent.then(chunk.tokens);
        let now_ms = self.0.options.clock.now_ms();
        let mut catalogue = self.0.catalogue_mut();
        if let Some(id) = catalogue.same_chain(chunk.namespace, chunk.parent, chunk.tokens)
            && let Some(entry) = catalogue.get_mut(id)
        {
            return Ok(match &mut entry.pending {
                Some(owners) => {
                    if !owners.contains(chunk.owner) {
                        owners.push(chunk.owner.clone());
                    }
                    Announced::Pending(id)
                }
                None => Announced::Stored(id),
            });
        }
        let id = catalogue.number();
        let entry = Entry {
            namespace: chunk.namespace,
            parent: chunk.parent,
            chain,
            base: chunk.base,
            tokens: chunk.tokens.into(),
            embedding: chunk.embedding.and_then(Embedding::new),
            ratio: chunk.ratio,
            bytes: 0,
            pinned: false,
            uses: UseRecord::first(now_ms),
            pending: Some(vec![chunk.owner.clone()]),
        };
        catalogue.insert(id, entry);
        Ok(Announced::New(id))
    }

    /// Takes back chunks that were announced and are not written. Others are passed over.
    pub fn withdraw(&self, chunks: &[ChunkId]) {
        self.0.withdraw(chunks.iter().copied());
    }

    /// Makes `owner` one of a stored chunk's owners.
    ///
    /// # Errors
    /// [`StoreError::Index`].
    pub fn share(&self, chunk: ChunkId, owner: &Owner) -> Result<(), StoreError> {
        const ACTION: &str = "adding an owner to a chunk";
        let mut state = self.0.state();
        in_transaction(&mut state.index, ACTION, |index| {
            rows::add_owner(index, chunk, owner).during(ACTION)
        })
    }

    /// Begins to write chunks.
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            shared: &self.0,
            ready: Vec::new(),
            at_work: None,
            promised: 0,
            evicted: 0,
        }
    }
}

impl Shared {
    fn withdraw(&self, chunks: impl Iterator<Item = ChunkId>) {
        let mut catalogue = self.catalogue_mut();
        for chunk in chunks {
            if catalogue.get(chunk).is_some_and(|entry| entry.pending.is_some()) {
                catalogue.remove(chunk);
            }
        }
    }
}

/// Chunks that are being written. Dropped before [`Batch::commit`] it leaves nothing of them behind: chunks that could
/// not be written are withdrawn.
#[derive(Debug)]
pub struct Batch<'a> {
    shared: &'a Shared,
    ready: Vec<Ready>,
    /// A chunk whose bytes are being asked for.
    at_work: Option<ChunkId>,
    /// Bytes of the budget that its files may take.
    promised: u64,
    evicted: usize,
}

#[derive(Debug)]
struct Ready {
    id: ChunkId,
    bytes: u64,
    shards: Vec<ShardRecord>,
    tensors: Tensors,
}

#[derive(Debug)]
enum Tensors {
    File(Unfinished),
    Small(Vec<u8>),
}

/// What a batch came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    /// Chunks that are stored now.
    pub written: Vec<ChunkId>,
    /// Chunks that were evicted to make room.
    pub evicted: usize,
}

impl Batch<'_> {
    /// Writes an announced chunk: a file in one pass from the borrowed parts, not synced yet. False when it is no
    /// longer wanted, because it was erased or withdrawn.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a shard whose parts have other bytes than it said; [`StoreError::NoRoom`] when the
    /// budget is too small; [`StoreError::File`] and [`StoreError::Index`] when the disk is full or fails. The chunk is
    /// withdrawn then, and the others can still be committed.
    pub fn add(&mut self, chunk: ChunkId, shards: Vec<Shard<'_>>) -> Result<bool, StoreError> {
        self.at_work = Some(chunk);
        let added = self.write(chunk, shards);
        self.at_work = None;
        if added.is_err() {
            self.shared.withdraw(std::iter::once(chunk));
        }
        added
    }

    fn write(&mut self, chunk: ChunkId, shards: Vec<Shard<'_>>) -> Result<bool, StoreError> {
        let tensor_bytes = record::check_shards(&shards)?;
        let is_small = tensor_bytes <= self.shared.options.small_bytes;
        let preamble = {
            let catalogue = self.shared.catalogue();
            let pending = catalogue.get(chunk).filter(|entry| entry.pending.is_some());
            let Some(entry) = pending else {
                return Ok(false);
            };
            let sizes = shards.iter().map(|shard| (shard.name, shard.bytes));
            file::preamble(entry.namespace, entry.chain, sizes)
        };
        let bytes = match is_small {
            true => tensor_bytes,
            false => preamble.len() as u64 + tensor_bytes,
        };
        {
            let mut state = self.shared.state();
            self.evicted += self.shared.make_room(&mut state, bytes)?;
            state.writing += bytes;
            self.promised += bytes;
        }
        let (tensors, shards) = match is_small {
            true => {
                let (bytes, shards) = file::gather(shards)?;
                (Tensors::Small(bytes), shards)
            }
            false => {
                let (file, shards) = file::write(self.shared.files(), chunk, &preamble, shards)?;
                (Tensors::File(file), shards)
            }
        };
        self.ready.push(Ready {
            id: chunk,
            bytes,
            shards,
            tensors,
        });
        Ok(true)
    }

    /// Makes all chunks last: syncs their files and gives them their names, then adds their rows in one transaction.
    /// Those that were erased meanwhile are left out.
    ///
    /// # Errors
    /// [`StoreError::File`] and [`StoreError::Index`] when the disk is full or fails: then none of them is stored, and
    /// all are withdrawn.
    pub fn commit(mut self) -> Result<Committed, StoreError> {
        const ACTION: &str = "adding chunks";
        let files: Vec<&Unfinished> = self.ready.iter().filter_map(Ready::file).collect();
        file::publish(self.shared.files(), &files)?;

        let shared = self.shared;
        let now_ms = shared.options.clock.now_ms();
        let mut state = shared.state();
        self.settle(&mut state);
        // The catalogue is free while the index works, for whoever matches a prompt.
        let mut rows: Vec<(&Ready, Entry)> = Vec::new();
        {
            let catalogue = shared.catalogue();
            for ready in &self.ready {
                rows.extend(catalogue.get(ready.id).map(|entry| (ready, entry.clone())));
            }
        }
        rows.retain(|(_, entry)| entry.pending.is_some());
        in_transaction(&mut state.index, ACTION, |index| {
            for (ready, entry) in &rows {
                let row = rows::Written {
                    id: ready.id,
                    bytes: ready.bytes,
                    shards: &ready.shards,
                    small: match &ready.tensors {
                        Tensors::Small(tensors) => Some(tensors),
                        Tensors::File(_) => None,
                    },
                    owners: entry.pending.as_deref().unwrap_or_default(),
                    now_ms,
                };
                rows::insert(index, entry, &row).during(ACTION)?;
            }
            Ok(())
        })?;
        let (mut withdrawn, mut shared_meanwhile) = (Vec::new(), Vec::new());
        {
            let mut catalogue = shared.catalogue_mut();
            for (ready, before) in &rows {
                state.bytes += ready.bytes;
                let Some(owners) = catalogue.write(ready.id, ready.bytes) else {
                    withdrawn.push(ready.id);
                    continue;
                };
                let known = before.pending.as_deref().unwrap_or_default();
                let new = owners.into_iter().filter(|owner| !known.contains(owner));
                shared_meanwhile.extend(new.map(|owner| (ready.id, owner)));
            }
        }
        let mut written: Vec<ChunkId> = rows.iter().map(|(ready, _)| ready.id).collect();
        written.retain(|id| !withdrawn.contains(id));
        drop(rows);
        for ready in std::mem::take(&mut self.ready) {
            if !written.contains(&ready.id) {
                ready.discard(shared);
            }
        }
        if !withdrawn.is_empty() {
            shared.delete(&mut state, ACTION, |_| Ok(withdrawn))?.1?;
        }
        for (chunk, owner) in shared_meanwhile {
            rows::add_owner(&state.index, chunk, &owner).during(ACTION)?;
        }
        Ok(Committed {
            written,
            evicted: self.evicted,
        })
    }

    /// Gives what was promised back to the budget.
    fn settle(&mut self, state: &mut State) {
        state.writing = state.writing.saturating_sub(self.promised);
        self.promised = 0;
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let shared = self.shared;
        if self.promised > 0 {
            self.settle(&mut shared.state());
        }
        for ready in &self.ready {
            ready.discard(shared);
        }
        // One that is at work here is one whose bytes could not be given: the caller's iterator panicked.
        if let Some(chunk) = self.at_work {
            file::discard_unfinished(shared.files(), chunk);
        }
        let lost = self.ready.iter().map(|ready| ready.id).chain(self.at_work);
        shared.withdraw(lost);
    }
}

impl Ready {
    fn file(&self) -> Option<&Unfinished> {
        match &self.tensors {
            Tensors::File(file) => Some(file),
            Tensors::Small(_) => None,
        }
    }

    fn discard(&self, shared: &Shared) {
        if let Some(file) = self.file() {
            file::discard(shared.files(), file);
        }
    }
}
