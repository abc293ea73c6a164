//! Reading a stored chunk, shard by shard, so that a part of it can be used while the rest is on its way.

use super::chunk_store::ChunkStore;
use super::error::StoreError;
use super::file;
use super::record::{ChunkId, ShardRecord};
use std::fs::File;

/// Where a chunk's tensors are.
#[derive(Debug)]
pub(super) enum Source {
    /// In a file, from a place on.
    File(File, u64),
    /// In the index.
    Index(Vec<u8>),
}

/// An open chunk. It can be read to its end even when it is evicted meanwhile.
#[derive(Debug)]
pub struct ChunkReader {
    pub(super) store: ChunkStore,
    pub(super) record: OpenChunk,
    pub(super) source: Source,
}

/// What is known of an open chunk; [`ChunkStore::record`] has more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenChunk {
    /// The chunk.
    pub id: ChunkId,
    /// The position of its first token, at which its keys are rotated.
    pub base: u32,
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Its tensors, in order.
    pub shards: Vec<ShardRecord>,
}

impl ChunkReader {
    /// What is known of the chunk.
    pub fn record(&self) -> &OpenChunk {
        &self.record
    }

    /// Reads the bytes of one shard into `bytes`, whose content they replace and whose room they use. The checksum is
    /// verified at every read: the file can change between two of them.
    ///
    /// # Errors
    /// [`StoreError::ChunkDamaged`] when the file was cut short or changed: the chunk is dropped, and what `bytes`
    /// holds is of no use. [`StoreError::Invalid`] when there is no such shard; [`StoreError::File`] when the system
    /// cannot read now.
    pub fn read(&mut self, shard: usize, bytes: &mut Vec<u8>) -> Result<(), StoreError> {
        let Some(wanted) = self.record.shards.get(shard) else {
            return Err(StoreError::Invalid(format!(
                "shard {shard} of {}",
                self.record.shards.len()
            )));
        };
        let before: u64 = self
            .record
            .shards
            .iter()
            .take(shard)
            .map(|shard| shard.bytes)
            .sum();
        let read = match &mut self.source {
            Source::File(file, tensors_at) => file::read(file, *tensors_at + before, wanted, bytes),
            Source::Index(tensors) => file::copy(tensors, before, wanted, bytes),
        };
        read.map_err(|fault| self.store.0.fault(self.record.id, fault))
    }

    /// The bytes of all shards, in order.
    ///
    /// # Errors
    /// As [`ChunkReader::read`].
    pub fn read_all(&mut self) -> Result<Vec<Vec<u8>>, StoreError> {
        (0..self.record.shards.len())
            .map(|shard| {
                let mut bytes = Vec::new();
                self.read(shard, &mut bytes)?;
                Ok(bytes)
            })
            .collect()
    }
}
