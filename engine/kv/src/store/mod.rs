//! The flash tier: chunks of KV on disk, found by the text they stand for.
//!
//! A [`ChunkStore`] keeps a folder with an index and one file a chunk. The engine asks it what of a prompt is known
//! ([`ChunkStore::longest_prefix`], [`ChunkStore::with_content`], [`ChunkStore::runs`]), loads chunks shard by shard
//! ([`ChunkStore::load`]), makes new ones known ([`ChunkStore::announce`]) and writes them later, many at a time
//! ([`ChunkStore::batch`]); [`ChunkStore::put`] does both for one. KV can always be computed again, so the store
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
//! index.sqlite                      the index; SQLite keeps index.sqlite-wal beside it
//! chunks/<id>.safetensors           one finished chunk; <id> is 16 lower-case hexadecimal digits. Small chunks (by
//!                                   default those of at most 96 KiB) have no file: they stand in the index
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
//!                     {"__metadata__":{"format":"reprise-chunk","version":"2",
//!                      "namespace":"<64 hex digits>","chain":"<64 hex digits>"},
//!                      "<shard>":{"dtype":"U8","shape":[<bytes>],"data_offsets":[<start>,<end>]},...}
//! from 8+H          the shards, in the header's order, without gaps; offsets count from here
//! ```
//! No token ids, no owner and no text stand in it. What a shard's bytes mean is the engine's matter and is covered by
//! the namespace.
//!
//! # The index
//!
//! SQLite, `application_id` 0x524b5653 ("RKVS"), `user_version` 2, pages of 8 KiB, write-ahead log, `secure_delete`.
//! Digests are blobs of 32 bytes. Token ids are blobs of big-endian 32-bit numbers. Checksums are 64 bits, stored as
//! signed numbers. Times are milliseconds since 1970.
//! ```text
//! space    id, digest                                    a namespace
//! chunk    id, space, parent, chain, base, count, ratio, made_ms, bytes, pinned, weight, used_ms
//!            parent, chain: digests of the context before and behind the chunk; zeros before a text's first
//!                           chain = SHA-256(parent, tokens)
//!            count: of tokens; bytes: of the file, or of the tensors where there is none
//!            weight, used_ms: the use record R, and the time it is true for
//! text     chunk, tokens, embedding                      embedding: up to 64 signed bytes, or null
//! small    chunk, tensors                                the shards of a chunk without a file, without gaps
//! shard    (chunk, place), name, bytes, checksum         checksum: XXH3-64
//! owner    id, kind, name
//! holding  (owner, chunk)
//! ```
//! Children name their parent by its digest, not its row: a chunk whose parent was evicted is found again below it
//! when the parent comes back, and by its tokens meanwhile.
//!
//! # Matching
//!
//! Opening reads all rows of `chunk` and `text` into memory, about 2 KB a chunk, and makes three things of them: the
//! prefix tree (children of a context, sorted by their tokens), a set of content hashes (XXH3-64 of the tokens), and a
//! set of fingerprints (XXH3-64 of 8 tokens, about 20 a chunk, chosen so that texts with 32 tokens in a row in common
//! have one in common: the keyword index). Fingerprints, and embeddings where the caller has some, propose chunks; a
//! suffix automaton finds the runs. So matching asks neither SQLite nor the disk, and waits for no write. A prompt of
//! 3,000 tokens takes 0.02 to 0.06 ms where all of it is stored and 0.1 to 0.4 ms where nothing is, with 100 to 100,000
//! chunks, on two busy cores of a server: `cargo run --release -p reprise-kv --example store_rates`.
//!
//! # What can be interrupted
//!
//! The chunks of a batch are written to their `.part` names, synced, renamed, and their folder is synced; then their
//! rows are committed, all in one transaction. Rows are deleted before files. Opening removes files without rows and
//! rows without files. After a loss of power the last rows may be missing; their files are removed then. Uses are
//! written with the next batch, or when the store is closed.

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
pub use chunk_store::{ChunkFacts, ChunkStore, Put, private_folder};
pub use erasing::Erased;
pub use error::StoreError;
pub use inventory::{ChunkSummary, ListOrder, OwnerSummary, Stats, Verified};
pub use matching::{ChunkRun, PrefixChunk, PrefixMatch};
pub use options::{Clock, StoreOptions};
pub use promising::Promising;
pub use reader::{ChunkReader, OpenChunk};
pub use record::{
    CHUNK_TOKENS, ChainHash, ChunkId, ChunkRecord, MAX_NAME_BYTES, MAX_SHARDS, Namespace, NewChunk, Owner,
    Shard, ShardRecord, content_hash,
};
pub use recovery::Recovery;
pub use schema::IndexState;
pub use suffix::{CommonRun, MIN_RUN_TOKENS, SuffixAutomaton, common_runs, longest_common_run};
