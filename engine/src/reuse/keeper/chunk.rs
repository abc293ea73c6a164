//! The bytes of chunks: packed, read, turned to where they are needed.

use super::find::Use;
use super::memory::Held;
use super::writer::Leaving;
use super::{Shared, lock};
use reprise_kv::LayerLayout;
use reprise_kv::store::{ChunkId, ChunkReader, StoreError};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Shorter reads say little about the disk.
const LEAST_MEASURED_BYTES: usize = 64 << 10;

/// The bytes of a chunk's shards.
#[derive(Debug, Clone)]
pub(super) struct ChunkBytes {
    pub(super) tokens: usize,
    pub(super) base: usize,
    pub(super) shards: Vec<Arc<Vec<u8>>>,
}

impl ChunkBytes {
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }
}

/// A stored chunk that is being read.
#[derive(Debug)]
struct StoredReading {
    reader: ChunkReader,
    tokens: usize,
    base: usize,
    /// Those that were read.
    shards: Vec<Arc<Vec<u8>>>,
    /// How long reading them took.
    taken: Duration,
}

/// Where a chunk's bytes come from.
#[derive(Debug)]
enum From {
    Memory(Arc<ChunkBytes>),
    Flash(StoredReading),
}

/// A chunk that is being loaded, shard by shard.
#[derive(Debug)]
pub(super) struct Loading {
    chunk: ChunkId,
    is_prefix: bool,
    pub(super) tokens: usize,
    /// How many positions further its keys are needed.
    delta: i64,
    from: From,
}

impl Shared {
    /// How much a chunk was used lately: R.
    pub(super) fn weight(&self, id: ChunkId) -> f64 {
        self.store.facts(id).map_or(0.0, |facts| facts.weight)
    }

    /// Packs positions of what a request left.
    pub(super) fn pack(&self, leaving: &Leaving, range: Range<usize>) -> ChunkBytes {
        let shards = self.shards.iter().cloned();
        ChunkBytes {
            tokens: range.len(),
            base: range.start,
            shards: shards
                .map(|layers| Arc::new(self.pack_shard(leaving, range.clone(), layers)))
                .collect(),
        }
    }

    fn pack_shard(&self, leaving: &Leaving, range: Range<usize>, layers: Range<usize>) -> Vec<u8> {
        let layouts = &self.model.layouts[layers.clone()];
        let mut bytes = Vec::with_capacity(range.len() * LayerLayout::token_bytes_of(layouts));
        let mut layer_bytes = Vec::new();
        for (layer, layout) in layers.zip(layouts) {
            let positions = range.clone();
            layout.pack(self.isa, &leaving.sequence, layer, positions, &mut layer_bytes);
            bytes.extend_from_slice(&layer_bytes);
        }
        bytes
    }

    /// A chunk as it was stored, from disk.
    pub(super) fn read(&self, id: ChunkId) -> Result<Arc<ChunkBytes>, StoreError> {
        let mut reading = self.open_stored(id)?;
        while reading.shards.len() < self.shards.len() {
            self.read_shard(&mut reading)?;
        }
        Ok(self.whole(reading))
    }

    fn open_stored(&self, id: ChunkId) -> Result<StoredReading, StoreError> {
        let reader = self.store.load(id)?;
        let record = reader.record();
        let (tokens, base) = (record.tokens.len(), record.base as usize);
        let expected = self
            .shards
            .iter()
            .cloned()
            .map(|layers| self.shard_bytes(tokens, layers));
        if !expected.eq(record.shards.iter().map(|shard| shard.bytes as usize)) {
            return Err(StoreError::Invalid(format!(
                "a chunk of {tokens} tokens with other shards than this model's"
            )));
        }
        Ok(StoredReading {
            reader,
            tokens,
            base,
            shards: Vec::new(),
            taken: Duration::ZERO,
        })
    }

    fn read_shard(&self, reading: &mut StoredReading) -> Result<Arc<Vec<u8>>, StoreError> {
        let (begin, mut bytes) = (Instant::now(), Vec::new());
        reading.reader.read(reading.shards.len(), &mut bytes)?;
        let bytes = Arc::new(bytes);
        reading.shards.push(Arc::clone(&bytes));
        reading.taken += begin.elapsed();
        Ok(bytes)
    }

    /// What was read, when it was read to the end; how fast that was is noted.
    fn whole(&self, reading: StoredReading) -> Arc<ChunkBytes> {
        let StoredReading {
            tokens,
            base,
            shards,
            taken,
            ..
        } = reading;
        let bytes = Arc::new(ChunkBytes { tokens, base, shards });
        if bytes.len() >= LEAST_MEASURED_BYTES {
            let rate = bytes.len() as f64 / (1e3 * taken.as_secs_f64()).max(1e-3);
            let measured = &mut lock(&self.memory).reload.flash_bytes_per_ms;
            *measured += (rate - *measured) / 8.0;
        }
        bytes
    }

    fn shard_bytes(&self, tokens: usize, layers: Range<usize>) -> usize {
        tokens * LayerLayout::token_bytes_of(&self.model.layouts[layers])
    }

    /// Begins to load a chunk, from memory or flash, to be turned to where it is needed.
    pub(super) fn open(&self, part: &Use) -> Result<Loading, StoreError> {
        let id = part.chunk;
        let held = lock(&self.memory).get(id, part.is_prefix);
        let from = match held {
            Some(Held::Bytes(bytes)) => From::Memory(bytes),
            // Packed as a whole: the pages may be needed for others soon.
            Some(Held::Pages(..)) => match self.bytes_of_dirty(id) {
                Some(bytes) => From::Memory(bytes),
                None => From::Flash(self.open_stored(id)?),
            },
            None => {
                self.flash_lookups.fetch_add(1, Ordering::Relaxed);
                From::Flash(self.open_stored(id)?)
            }
        };
        let (tokens, base) = match &from {
            From::Memory(bytes) => (bytes.tokens, bytes.base),
            From::Flash(reading) => (reading.tokens, reading.base),
        };
        if part.of.end > tokens {
            return Err(StoreError::Invalid(format!(
                "tokens {:?} of a chunk of {tokens}",
                part.of
            )));
        }
        Ok(Loading {
            chunk: id,
            is_prefix: part.is_prefix,
            tokens,
            delta: part.at as i64 - (base + part.of.start) as i64,
            from,
        })
    }

    /// The next shard of a chunk, as it was stored.
    pub(super) fn next_shard(&self, loading: &mut Loading, shard: usize) -> Result<Arc<Vec<u8>>, StoreError> {
        match &mut loading.from {
            From::Memory(bytes) => Ok(Arc::clone(&bytes.shards[shard])),
            From::Flash(reading) => {
                let bytes = self.read_shard(reading)?;
                // Before it is handed over: who has the chunk sees that it was a hit.
                if shard + 1 == self.shards.len() {
                    self.flash_hits.fetch_add(1, Ordering::Relaxed);
                }
                Ok(bytes)
            }
        }
    }

    /// A copy of a shard whose keys stand where they are needed; the shard itself where that is where they stood.
    pub(super) fn turn_shard(&self, loading: &Loading, shard: usize, bytes: Arc<Vec<u8>>) -> Arc<Vec<u8>> {
        if loading.delta == 0 {
            return bytes;
        }
        let mut turned = bytes.to_vec();
        let (layouts, mut rest) = (&self.model.layouts, turned.as_mut_slice());
        for layer in self.shards[shard].clone() {
            let (own, behind) = rest.split_at_mut(loading.tokens * layouts[layer].token_bytes());
            let turn = self.model.ropes[layer].turn(loading.delta);
            layouts[layer].turn_packed(self.isa, &turn, loading.tokens, own);
            rest = behind;
        }
        Arc::new(turned)
    }

    /// Leaves what was loaded in memory, after its last shard.
    pub(super) fn keep_loaded(&self, loading: Loading) {
        let (id, weight) = (loading.chunk, |id| self.weight(id));
        match loading.from {
            From::Memory(_) => {}
            From::Flash(reading) => {
                let bytes = self.whole(reading);
                lock(&self.memory).put(id, &bytes, loading.is_prefix, &weight);
                self.forget_if_gone(id);
            }
        }
    }

    /// Lets go of a chunk that was erased while it was brought into memory.
    pub(super) fn forget_if_gone(&self, id: ChunkId) {
        if self.store.facts(id).is_none() {
            lock(&self.memory).remove(id);
        }
    }
}
