//! The bytes of chunks: read, turned to where they are needed, placed in a sequence.

use super::find::Use;
use super::{Shared, lock};
use reprise_kernels::isa::Isa;
use reprise_kv::LayerLayout;
use reprise_kv::pool::Sequence;
use reprise_kv::store::{ChunkId, StoreError};
use std::ops::Range;
use std::sync::Arc;

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
        lock(&self.memory).put(id, &bytes);
        Ok(bytes)
    }

    pub(super) fn load(&self, part: &Use) -> Result<LoadedChunk, StoreError> {
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
