//! What is kept of prompts beyond the pool: chunks on flash, and those lately used in memory.
//!
//! The keeper finds what of a prompt is stored, loads it, turned to where it is needed, and stores what requests leave
//! behind, on a thread of its own. It knows no lanes and computes nothing. A fault of the store never reaches an answer:
//! what cannot be found or read is computed, and the log says so.

use super::cut::{Cut, Segment, cut};
use crate::api::TokenId;
use crate::rope::LayerRope;
use reprise_kernels::isa::Isa;
use reprise_kv::pool::Sequence;
use reprise_kv::store::{
    ChainHash, ChunkId, ChunkStore, Erased, MIN_RUN_TOKENS, Namespace, NewChunk, Owner, Shard, StoreError,
};
use reprise_kv::{KvProfile, LayerLayout};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Tensors of a chunk: few enough for quick reads, enough for the first layers to be there before the last.
const SHARDS: usize = 8;
/// Chunks with fewer tokens than this are not looked for by their content: computing them is as quick.
const LEAST_CONTENT_TOKENS: usize = 16;

/// Part of a stored chunk, and where in a prompt it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// The chunk.
    pub chunk: ChunkId,
    /// Which of its tokens.
    pub of: Range<usize>,
    /// The position of the first of them in the prompt.
    pub at: usize,
}

impl Use {
    /// Which tokens of the prompt.
    pub fn tokens(&self) -> Range<usize> {
        self.at..self.at + self.of.len()
    }
}

/// A prompt, and what is to be found of it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its tokens.
    pub prompt: &'a [TokenId],
    /// What it consists of.
    pub segments: &'a [Segment],
    /// Tokens at its beginning that are there already.
    pub known: usize,
    /// Where the question begins: pieces are looked for before it.
    pub question: usize,
    /// Whether pieces from other contexts are looked for as well.
    pub anywhere: bool,
}

/// What of a prompt is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Its beginning, computed under the same context: the chunks, in order.
    pub prefix: Vec<Use>,
    /// How many of its tokens are exact: chunks that were made from pieces of other contexts are not.
    pub exact_tokens: usize,
    /// What comes from elsewhere, in order, behind the beginning.
    pub pieces: Vec<Use>,
}

impl Found {
    /// Tokens of the beginning.
    pub fn prefix_tokens(&self) -> usize {
        self.prefix.last().map_or(0, |last| last.tokens().end)
    }
}

/// A chunk's bytes, turned to where they are needed.
#[derive(Debug)]
pub struct LoadedChunk {
    bytes: Arc<ChunkBytes>,
    of: Range<usize>,
    at: usize,
}

impl LoadedChunk {
    /// Stores it in a sequence, at positions that are prepared and not committed.
    pub fn place(&self, isa: Isa, layouts: &[LayerLayout], sequence: &mut Sequence) {
        for (layer, layout) in layouts.iter().enumerate() {
            let bytes = self.bytes.layer(layouts, layer);
            let (at, count, of) = (self.at, self.bytes.tokens, self.of.clone());
            layout.place(isa, sequence, layer, at, bytes, count, of);
        }
    }
}

/// The bytes of a chunk's shards.
#[derive(Debug, Clone)]
struct ChunkBytes {
    tokens: usize,
    base: usize,
    layers_a_shard: usize,
    shards: Vec<Vec<u8>>,
}

impl ChunkBytes {
    fn layer(&self, layouts: &[LayerLayout], layer: usize) -> &[u8] {
        let (shard, first) = (
            layer / self.layers_a_shard,
            layer / self.layers_a_shard * self.layers_a_shard,
        );
        let start = self.tokens * LayerLayout::token_bytes_of(&layouts[first..layer]);
        &self.shards[shard][start..start + self.tokens * layouts[layer].token_bytes()]
    }

    fn len(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }
}

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

/// What a [`Keeper`] has to know of a model.
#[derive(Debug, Clone)]
pub struct KeptModel {
    /// Of the model's file.
    pub fingerprint: String,
    /// How keys and values are stored.
    pub profile: KvProfile,
    /// The same for each layer.
    pub layouts: Vec<LayerLayout>,
    /// How its keys turn.
    pub ropes: Vec<LayerRope>,
}

impl KeptModel {
    /// A digest of everything that changes keys and values besides the tokens.
    fn namespace(&self) -> Namespace {
        let mut hash = Sha256::new();
        hash.update(b"reprise kv 1\0");
        hash.update(self.fingerprint.as_bytes());
        for (layer, layout) in self.profile.layers.iter().zip(&self.layouts) {
            hash.update(format!(
                "\0{}/{} {}x{}",
                layer.keys.name(),
                layer.values.name(),
                layout.shape.kv_heads,
                layout.shape.head_dim
            ));
            for value in layer
                .residual
                .iter()
                .flat_map(|residual| residual.mean.iter().chain(&residual.scale))
            {
                hash.update(value.to_le_bytes());
            }
        }
        Namespace(hash.finalize().into())
    }
}

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

/// Chunks as they were stored, the most recently used last.
#[derive(Debug)]
struct Memory {
    budget_bytes: usize,
    bytes: usize,
    chunks: HashMap<ChunkId, (u64, Arc<ChunkBytes>)>,
    clock: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Leaving>,
    /// Whether one is being written.
    is_writing: bool,
    is_closing: bool,
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
            memory: Mutex::new(Memory {
                budget_bytes: memory_bytes,
                bytes: 0,
                chunks: HashMap::new(),
                clock: 0,
            }),
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

impl Shared {
    fn find(&self, wanted: &Wanted<'_>) -> Result<Found, StoreError> {
        let Wanted {
            prompt,
            known,
            question,
            ..
        } = *wanted;
        let usable = &prompt[..prompt.len().saturating_sub(1)];
        let stored = self
            .store
            .longest_prefix(self.namespace, ChainHash::START, usable)?;
        let mut found = Found::default();
        let mut at = 0;
        for chunk in &stored.chunks {
            found.prefix.push(Use {
                chunk: chunk.chunk,
                of: 0..chunk.tokens,
                at,
            });
            if found.exact_tokens == at && self.store.record(chunk.chunk)?.ratio >= 1.0 {
                found.exact_tokens = at + chunk.tokens;
            }
            at += chunk.tokens;
        }
        found.prefix.retain(|part| part.tokens().end > known);
        if !wanted.anywhere {
            return Ok(found);
        }
        let cuts = cut(wanted.segments);
        let end = question.min(usable.len());
        let mut from = at.max(known);
        for cut in cuts.iter().filter(|cut| cut.tokens.len() >= LEAST_CONTENT_TOKENS) {
            if cut.tokens.start < from || cut.tokens.end > end {
                continue;
            }
            let tokens = &prompt[cut.tokens.clone()];
            // The one that is exact, where there is one; of those the newest.
            let mut best: Option<(f32, ChunkId)> = None;
            for chunk in self.store.with_content(self.namespace, tokens)? {
                let ratio = self.store.record(chunk)?.ratio;
                if best.is_none_or(|(most, _)| ratio >= most) {
                    best = Some((ratio, chunk));
                }
            }
            if let Some((_, chunk)) = best {
                self.add_runs(prompt, from..cut.tokens.start, &mut found.pieces)?;
                found.pieces.push(Use {
                    chunk,
                    of: 0..tokens.len(),
                    at: cut.tokens.start,
                });
                from = cut.tokens.end;
            }
        }
        self.add_runs(prompt, from..end, &mut found.pieces)?;
        Ok(found)
    }

    /// Adds runs of tokens that stored chunks have in common with a range of the prompt: from the left, always the
    /// longest one that begins there.
    fn add_runs(
        &self,
        prompt: &[TokenId],
        range: Range<usize>,
        pieces: &mut Vec<Use>,
    ) -> Result<(), StoreError> {
        if range.len() < MIN_RUN_TOKENS {
            return Ok(());
        }
        let mut from = 0;
        for run in self.store.runs(self.namespace, &prompt[range.clone()])? {
            let skipped = from.max(run.in_prompt.start) - run.in_prompt.start;
            if run.in_prompt.len() < skipped + MIN_RUN_TOKENS {
                continue;
            }
            pieces.push(Use {
                chunk: run.chunk,
                of: run.in_chunk.start + skipped..run.in_chunk.end,
                at: range.start + run.in_prompt.start + skipped,
            });
            from = run.in_prompt.end;
        }
        Ok(())
    }

    /// A chunk as it was stored, from memory or flash.
    fn original(&self, id: ChunkId) -> Result<Arc<ChunkBytes>, StoreError> {
        if let Some(bytes) = lock(&self.memory).get(id) {
            return Ok(bytes);
        }
        let mut reader = self.store.load(id)?;
        let (tokens, base) = (reader.record().tokens.len(), reader.record().base as usize);
        let bytes = Arc::new(ChunkBytes {
            tokens,
            base,
            layers_a_shard: self.layers_a_shard(),
            shards: reader.read_all()?,
        });
        let expected = tokens * LayerLayout::token_bytes_of(&self.model.layouts);
        if bytes.len() != expected || bytes.shards.len() != self.shards().len() {
            return Err(StoreError::Invalid(format!(
                "a chunk of {tokens} tokens with {} bytes, this model's has {expected}",
                bytes.len()
            )));
        }
        lock(&self.memory).put(id, &bytes);
        Ok(bytes)
    }

    fn load(&self, part: &Use) -> Result<LoadedChunk, StoreError> {
        let mut bytes = self.original(part.chunk)?;
        if part.of.end > bytes.tokens {
            return Err(StoreError::Invalid(format!(
                "tokens {:?} of a chunk of {}",
                part.of, bytes.tokens
            )));
        }
        let delta = part.at as i64 - (bytes.base + part.of.start) as i64;
        if delta != 0 {
            bytes = Arc::new(self.turned(&bytes, delta));
        }
        Ok(LoadedChunk {
            bytes,
            of: part.of.clone(),
            at: part.at,
        })
    }

    /// A copy whose keys stand `delta` positions further.
    fn turned(&self, bytes: &ChunkBytes, delta: i64) -> ChunkBytes {
        let mut turned = bytes.clone();
        let layouts = &self.model.layouts;
        for (shard, layers) in turned.shards.iter_mut().zip(self.shards()) {
            let mut rest = shard.as_mut_slice();
            for layer in layers {
                let (own, behind) = rest.split_at_mut(bytes.tokens * layouts[layer].token_bytes());
                let turn = self.model.ropes[layer].turn(delta);
                layouts[layer].turn_packed(self.isa, &turn, bytes.tokens, own);
                rest = behind;
            }
        }
        turned
    }

    fn layers_a_shard(&self) -> usize {
        self.model.layouts.len().div_ceil(SHARDS).max(1)
    }

    /// The layers of each shard.
    fn shards(&self) -> Vec<Range<usize>> {
        let (layers, each) = (self.model.layouts.len(), self.layers_a_shard());
        (0..layers)
            .step_by(each)
            .map(|first| first..layers.min(first + each))
            .collect()
    }

    /// The writer's life.
    fn write_all(&self) {
        loop {
            let leaving = {
                let mut queue = lock(&self.queue);
                loop {
                    if let Some(leaving) = queue.waiting.pop_front() {
                        queue.is_writing = true;
                        break leaving;
                    }
                    if queue.is_closing {
                        return;
                    }
                    queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            };
            if let Err(error) = self.write(&leaving) {
                tracing::warn!(%error, "what a request computed cannot be stored; it will be computed again");
            }
            drop(leaving);
            lock(&self.queue).is_writing = false;
            self.changed.notify_all();
        }
    }

    /// Stores the chunks of a request that are not there yet.
    fn write(&self, leaving: &Leaving) -> Result<(), StoreError> {
        let stored = self
            .store
            .longest_prefix(self.namespace, ChainHash::START, &leaving.tokens)?;
        let (mut parent, mut end) = (ChainHash::START, 0);
        for chunk in &stored.chunks {
            if self.store.record(chunk.chunk)?.tokens.len() > chunk.tokens {
                break; // it ends inside this one
            }
            (parent, end) = (chunk.chain, end + chunk.tokens);
        }
        let names: Vec<(String, Range<usize>)> = self
            .shards()
            .into_iter()
            .map(|layers| (format!("layers.{}-{}", layers.start, layers.end - 1), layers))
            .collect();
        let (mut layer_bytes, mut parts) = (Vec::new(), Vec::new());
        for cut in &leaving.cuts {
            let range = cut.tokens.start.max(end)..cut.tokens.end.min(leaving.sequence.len());
            if range.is_empty() {
                continue;
            }
            let tokens = &leaving.tokens[range.clone()];
            let is_exact = range.end <= leaving.exact_tokens;
            let Some(owner) = &cut.owner else {
                // Not stored; what follows has it for context nonetheless.
                (parent, end) = (parent.then(tokens), range.end);
                continue;
            };
            parts.clear();
            for (_, layers) in &names {
                let mut bytes = Vec::new();
                for layer in layers.clone() {
                    let layout = &self.model.layouts[layer];
                    layout.pack(
                        self.isa,
                        &leaving.sequence,
                        layer,
                        range.clone(),
                        &mut layer_bytes,
                    );
                    bytes.extend_from_slice(&layer_bytes);
                }
                parts.push(bytes);
            }
            let chunk = NewChunk {
                namespace: self.namespace,
                parent,
                base: u32::try_from(range.start).unwrap_or(u32::MAX),
                tokens,
                owner,
                ratio: if is_exact { 1.0 } else { leaving.ratio },
            };
            let shards = names
                .iter()
                .zip(&parts)
                .map(|((name, _), bytes)| Shard::whole(name, bytes))
                .collect();
            self.store.put(&chunk, shards)?;
            (parent, end) = (parent.then(tokens), range.end);
        }
        Ok(())
    }
}

impl Memory {
    fn get(&mut self, id: ChunkId) -> Option<Arc<ChunkBytes>> {
        self.clock += 1;
        let (used, bytes) = self.chunks.get_mut(&id)?;
        *used = self.clock;
        Some(Arc::clone(bytes))
    }

    fn put(&mut self, id: ChunkId, bytes: &Arc<ChunkBytes>) {
        self.clock += 1;
        self.bytes += bytes.len();
        if let Some((_, old)) = self.chunks.insert(id, (self.clock, Arc::clone(bytes))) {
            self.bytes -= old.len();
        }
        self.shrink();
    }

    fn retain(&mut self, is_kept: impl Fn(ChunkId) -> bool) {
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
