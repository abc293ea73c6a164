//! The flash tier: chunks of KV on disk, found by the text they stand for.
//!
//! A [`ChunkStore`] keeps a folder with an index and one file a chunk. The engine asks it what of a prompt is stored
//! ([`ChunkStore::longest_prefix`], [`ChunkStore::with_content`], [`ChunkStore::runs`]), loads chunks shard by shard
//! ([`ChunkStore::load`]) and puts new ones ([`ChunkStore::put`]). KV can always be computed again, so the store
//! prefers forgetting to believing: what is not exactly as it was written is dropped.
//!
//! It is not the source of truth for anything, and it knows neither models nor text: a namespace is a digest that the
//! engine makes, tokens are numbers, tensors are bytes.
//!
//! ```
//! use reprise_kv::store::{ChainHash, ChunkStore, Namespace, NewChunk, Owner, Shard, StoreOptions};
//!
//! let folder = tempfile::tempdir()?;
//! let (store, recovery) = ChunkStore::open(folder.path(), StoreOptions::default())?;
//! assert!(recovery.is_clean());
//!
//! let tokens = [9, 8, 7, 6];
//! let chat = Owner::new("chat", "12")?;
//! let namespace = Namespace([1; 32]);
//! let chunk = NewChunk {
//!     namespace,
//!     parent: ChainHash::START,
//!     base: 0,
//!     tokens: &tokens,
//!     owner: &chat,
//!     ratio: 1.0,
//!     embedding: None,
//! };
//! store.put(&chunk, vec![Shard::whole("layers.0-7", b"keys and values")])?;
//!
//! let found = store.longest_prefix(namespace, ChainHash::START, &[9, 8, 7, 1]);
//! assert_eq!(found.tokens, 3); // exact KV, for as far as the texts are the same
//! let mut chunk = store.load(found.chunks[0].chunk)?;
//! assert_eq!(chunk.read_all()?, [b"keys and values"]);
//!
//! assert_eq!(chat, "chat:12".parse()?);
//! assert_eq!(store.erase_owner(&chat)?.chunks, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The folder
//!
//! ```text
//! lock                              empty; locked by the process that has the store open
//! index.sqlite                      the index; SQLite keeps index.sqlite-wal and index.sqlite-shm beside it
//! chunks/<id>.safetensors           one finished chunk; <id> is 16 lower-case hexadecimal digits
//! chunks/<id>.part                  one being written; removed at the next opening
//! ```
//! Other names in `chunks/` are never touched.
//!
//! # A chunk's file
//!
//! A safetensors file, with this header and no other:
//! ```text
//! bytes 0..8        length H of the header, little-endian 64-bit
//! bytes 8..8+H      the header: JSON without spaces, then spaces up to a multiple of eight
//!                     {"__metadata__":{"format":"reprise-chunk","version":"1",
//!                      "namespace":"<64 hex digits>","chain":"<64 hex digits>"},
//!                      "<shard>":{"dtype":"U8","shape":[<bytes>],"data_offsets":[<start>,<end>]},...}
//! from 8+H          the shards, in the header's order, without gaps; offsets count from here
//! ```
//! No token ids, no owner and no text stand in it. What a shard's bytes mean is the engine's matter and is covered by
//! the namespace.
//!
//! # The index
//!
//! SQLite, `application_id` 0x524b5653 ("RKVS"), `user_version` 1, pages of 8 KiB, write-ahead log, `secure_delete`.
//! Digests are blobs of 32 bytes. Token ids are blobs of big-endian 32-bit numbers, so that SQLite sorts them as
//! texts. Hashes are 64 bits, stored as signed numbers. Times are milliseconds since 1970.
//! ```text
//! space    id, digest                                    a namespace
//! chunk    id, space, parent, chain, content, base, count, ratio, made_ms, bytes, pinned, weight, used_ms
//!            parent, chain: digests of the context before and behind the chunk; zeros before a text's first
//!                           chain = SHA-256(parent, tokens)
//!            content:       XXH3-64(tokens); count: of tokens; bytes: of the file
//!            weight, used_ms: the use record R, and the time it is true for
//! text     chunk, tokens
//! tree     (space, parent, tokens), chunk                the prefix tree: siblings sorted by their tokens
//! gram     (space, hash, chunk)                          fingerprints: XXH3-64 of 8 tokens, about 20 a chunk
//! shard    (chunk, place), name, bytes, checksum         checksum: XXH3-64
//! owner    id, kind, name
//! holding  (owner, chunk)
//! ```
//! Children name their parent by its digest, not its row: a chunk whose parent was evicted is found again below it
//! when the parent comes back, and by its tokens meanwhile. Tokens are stored twice, since a tree that compares them
//! needs no hash to be believed.
//!
//! Fingerprints are in SQLite rather than in memory: at 100,000 chunks there are two million of them, which opening
//! would have to make anew from 100 MB of tokens. Looking up those of a prompt of 3,000 tokens takes some four
//! milliseconds of a busy machine with 10,000 chunks, most of what matching takes:
//! `cargo run --release -p reprise-kv --example store_rates`.
//!
//! # What can be interrupted
//!
//! A chunk is written to its `.part` name, synced, renamed, and its folder synced; then its row is committed. Rows are
//! deleted before files. Opening removes files without rows and rows without files. After a loss of power the last
//! rows may be missing; their files are removed then.

mod batch;
mod catalogue;
mod chunk_store;
mod erasing;
mod error;
mod file;
mod grams;
mod inventory;
mod keeping;
mod matching;
mod options;
pub mod policy;
mod promising;
mod reader;
mod record;
mod recovery;
mod rows;
mod schema;
mod suffix;
#[cfg(test)]
mod tests;

pub use batch::{Announced, Batch, Committed};
pub use chunk_store::{ChunkFacts, ChunkStore, Put};
pub use erasing::Erased;
pub use error::StoreError;
pub use inventory::{ChunkSummary, ListOrder, OwnerSummary, Stats, Verified};
pub use matching::{ChunkRun, PrefixChunk, PrefixMatch};
pub use options::{Clock, StoreOptions};
pub use promising::Promising;
pub use reader::ChunkReader;
pub use record::{
    CHUNK_TOKENS, ChainHash, ChunkId, ChunkRecord, MAX_NAME_BYTES, MAX_SHARDS, Namespace, NewChunk, Owner,
    Shard, ShardRecord, content_hash,
};
pub use recovery::Recovery;
pub use schema::IndexState;
pub use suffix::{CommonRun, MIN_RUN_TOKENS, SuffixAutomaton, common_runs, longest_common_run};
