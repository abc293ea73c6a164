//! The bytes of chunks: read, turned to where they are needed, placed in a sequence.

use super::find::Use;
use super::memory::Held;
use super::writer::Leaving;
use super::{Shared, lock};
use reprise_kernels::isa::Isa;
use reprise_kv::LayerLayout;
use reprise_kv::pool::Sequence;
use reprise_kv::store::{ChunkId, StoreError};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Shorter reads say little about the disk.
const LEAST_MEASURED_BYTES: usize = 64 << 10;

/// A chunk's bytes, turned to where they are needed.
#[derive(Debug)]
pub struct LoadedChunk {
    bytes: Arc<ChunkBytes>,
    of: Range<usize>,
    at: usize,
}

impl LoadedChunk {
    #[cfg(test)]
    pub(super) fn shards(&self) -> &[Vec<u8>] {
        &self.bytes.shards
    }

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
pub(super) struct ChunkBytes {
    pub(super) tokens: usize,
    pub(super) base: usize,
    pub(super) layers_a_shard: usize,
    pub(super) shards: Vec<Vec<u8>>,
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

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }
}

impl Shared {
    /// How much a chunk was used lately: R.
    pub(super) fn weight(&self, id: ChunkId) -> f64 {
        self.store.facts(id).map_or(0.0, |facts| facts.weight)
    }

    /// Packs positions of what a request left.
    pub(super) fn pack(&self, leaving: &Leaving, range: Range<usize>) -> ChunkBytes {
        let mut layer_bytes = Vec::new();
        let shards = self.model.shards().into_iter().map(|layers| {
            let layouts = &self.model.layouts[layers.clone()];
            let mut bytes = Vec::with_capacity(range.len() * LayerLayout::token_bytes_of(layouts));
            for (layer, layout) in layers.zip(layouts) {
                layout.pack(
                    self.isa,
                    &leaving.sequence,
                    layer,
                    range.clone(),
                    &mut layer_bytes,
                );
                bytes.extend_from_slice(&layer_bytes);
            }
            bytes
        });
        ChunkBytes {
            tokens: range.len(),
            base: range.start,
            layers_a_shard: self.model.layers_a_shard(),
            shards: shards.collect(),
        }
    }

    /// A chunk as it was stored, from disk.
    pub(super) fn read(&self, id: ChunkId) -> Result<Arc<ChunkBytes>, StoreError> {
        let begin = Instant::now();
        let mut reader = self.store.load(id)?;
        let (tokens, base) = (reader.record().tokens.len(), reader.record().base as usize);
        let bytes = Arc::new(ChunkBytes {
            tokens,
            base,
            layers_a_shard: self.model.layers_a_shard(),
            shards: reader.read_all()?,
        });
        let expected = tokens * LayerLayout::token_bytes_of(&self.model.layouts);
        if bytes.len() != expected || bytes.shards.len() != self.model.shards().len() {
            return Err(StoreError::Invalid(format!(
                "a chunk of {tokens} tokens with {} bytes, this model's has {expected}",
                bytes.len()
            )));
        }
        if bytes.len() >= LEAST_MEASURED_BYTES {
            let rate = bytes.len() as f64 / (1e3 * begin.elapsed().as_secs_f64()).max(1e-3);
            let measured = &mut lock(&self.memory).reload.flash_bytes_per_ms;
            *measured += (rate - *measured) / 8.0;
        }
        Ok(bytes)
    }

    /// A chunk as it was stored, from memory or flash.
    fn original(&self, part: &Use) -> Result<Arc<ChunkBytes>, StoreError> {
        let id = part.chunk;
        let held = lock(&self.memory).get(id, part.is_prefix);
        match held {
            Some(Held::Bytes(bytes)) => Ok(bytes),
            Some(Held::Pages(leaving, range)) => {
                let bytes = Arc::new(self.pack(&leaving, range));
                lock(&self.memory).settle(id, &bytes, &|id| self.weight(id));
                Ok(bytes)
            }
            None => {
                self.flash_lookups.fetch_add(1, Ordering::Relaxed);
                let bytes = self.read(id)?;
                self.flash_hits.fetch_add(1, Ordering::Relaxed);
                lock(&self.memory).put(id, &bytes, part.is_prefix, &|id| self.weight(id));
                self.forget_if_gone(id);
                Ok(bytes)
            }
        }
    }

    /// Lets go of a chunk that was erased while it was brought into memory.
    pub(super) fn forget_if_gone(&self, id: ChunkId) {
        if self.store.facts(id).is_none() {
            lock(&self.memory).remove(id);
        }
    }

    pub(super) fn load(&self, part: &Use) -> Result<LoadedChunk, StoreError> {
        let mut bytes = self.original(part)?;
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
        for (shard, layers) in turned.shards.iter_mut().zip(self.model.shards()) {
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
}
