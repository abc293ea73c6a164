//! What is kept on disk of texts that were read, for a person to see, pin and erase: by owner, chunk by chunk.
//!
//! A store belongs to one engine at a time. Where an engine has it open, everything goes through that engine, which also
//! holds chunks in memory and has some that wait to be written; else the store is opened for a moment. Callers need not
//! care which. The words are the caller's.

use std::collections::HashSet;
use std::path::Path;

use reprise_engine::store::{
    ChunkId, ChunkRecord, ChunkStore, ChunkSummary, Erased, ListOrder, Owner, OwnerSummary, StoreError,
    StoreOptions,
};
use reprise_engine::worker::Worker;
use reprise_engine::{Engine, EngineError};
use serde::Serialize;

use crate::chats::{ChatId, ChatStore};
use crate::converse::{CHAT_OWNER, owner_of};

/// What is kept, wherever it is open.
pub struct Cache<'a> {
    store: ChunkStore,
    engine: Option<&'a Engine>,
    /// Chunks that were in the engine's memory when this was made.
    in_memory: HashSet<ChunkId>,
    /// What was put in order at opening.
    mended: Option<String>,
}

/// An owner, and what is kept for it. Chunks with several owners count for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct KeptOwner {
    /// Its name in full, such as `chat:12`.
    pub owner: String,
    /// What it is, such as `chat`.
    pub kind: String,
    /// What a person knows it by: a chat's title, a document's name.
    pub name: String,
    /// Chunks it holds.
    pub chunks: usize,
    /// Bytes of their files.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
}

/// A chunk that is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct KeptChunk {
    /// Its number.
    pub id: String,
    /// Its tokens.
    pub tokens: usize,
    /// Bytes of its file.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// How much it was used lately.
    pub uses: f64,
    /// Milliseconds that keeping a kilobyte of it is expected to save: the least goes first.
    pub score: f64,
    /// Whether it stays whatever else has to go.
    pub pinned: bool,
    /// When it was stored, in milliseconds since 1970.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub made_ms: i64,
    /// Whether its keys and values are exact; else a part of them was moved from elsewhere.
    pub exact: bool,
    /// Whether it is in the engine's memory as well, or still only there, waiting to be written.
    pub in_memory: bool,
}

impl Cache<'static> {
    /// Opens a folder that no engine has open; none when nothing is kept there yet.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when a program has it open, and whatever else keeps it from being opened.
    pub fn open(folder: &Path) -> Result<Option<Cache<'static>>, StoreError> {
        if !folder.exists() {
            // Nothing is made only to say that there is nothing.
            return Ok(None);
        }
        let options = StoreOptions {
            // What the budget is, is for those to say who add to it.
            budget_bytes: u64::MAX / 2,
            ..StoreOptions::default()
        };
        let (store, recovery) = ChunkStore::open(folder, options)?;
        Ok(Some(Cache {
            store,
            engine: None,
            in_memory: HashSet::new(),
            mended: recovery.told(),
        }))
    }
}

impl<'a> Cache<'a> {
    /// What an engine has open; none when it keeps nothing on disk.
    ///
    /// # Errors
    /// When the engine has ended.
    pub fn of(engine: &'a Engine) -> Result<Option<Cache<'a>>, EngineError> {
        let open = |worker: &mut Worker| {
            let keeper = worker.keeper()?;
            Some((keeper.store().clone(), keeper.in_memory()))
        };
        Ok(engine.with_worker(open)?.map(|(store, in_memory)| Cache {
            store,
            engine: Some(engine),
            in_memory: in_memory.into_iter().collect(),
            mended: None,
        }))
    }

    /// What was put in order at opening, as the rest of a sentence.
    pub fn mended(&self) -> Option<&str> {
        self.mended.as_deref()
    }

    /// The store itself, for what only looks.
    pub fn store(&self) -> &ChunkStore {
        &self.store
    }

    /// Owners with the most bytes first, by the names that people know them by.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn owners(&self, chats: &ChatStore) -> Result<Vec<KeptOwner>, StoreError> {
        let mut owners = self.store.owners()?;
        owners.sort_by_key(|owner| std::cmp::Reverse(owner.bytes));
        let shown = |summary: OwnerSummary| KeptOwner {
            name: name_of(&summary.owner, chats),
            kind: summary.owner.kind().to_owned(),
            owner: summary.owner.to_string(),
            chunks: summary.chunks,
            bytes: summary.bytes,
        };
        Ok(owners.into_iter().map(shown).collect())
    }

    /// An owner's chunks, most worth keeping first.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn chunks(&self, owner: &Owner) -> Result<Vec<KeptChunk>, StoreError> {
        let list = self.store.list(Some(owner), ListOrder::Score)?;
        // One that goes meanwhile is not there.
        Ok(list
            .into_iter()
            .filter_map(|summary| Some(self.shown(&self.store.record(summary.id).ok()?, &summary)))
            .collect())
    }

    /// A chunk as it is shown.
    pub(crate) fn shown(&self, record: &ChunkRecord, summary: &ChunkSummary) -> KeptChunk {
        KeptChunk {
            id: summary.id.to_string(),
            tokens: summary.tokens,
            bytes: summary.bytes,
            uses: summary.weight,
            score: summary.score * 1e3,
            pinned: summary.pinned,
            made_ms: record.made_ms,
            exact: record.ratio >= 1.0,
            in_memory: self.in_memory.contains(&summary.id),
        }
    }

    /// Keeps chunks whatever else has to go, or no longer; all of them are there, or nothing is done.
    ///
    /// # Errors
    /// When one of them is not there, or the index cannot be written.
    pub fn set_pinned(&self, chunks: &[ChunkId], pinned: bool) -> Result<(), StoreError> {
        self.are_there(chunks)?;
        for &chunk in chunks {
            self.store.set_pinned(chunk, pinned)?;
        }
        Ok(())
    }

    /// Lets chunks go; all of them are there, or nothing is done. Their text is read again when it is needed.
    ///
    /// # Errors
    /// When one of them is not there, or the index cannot be written.
    pub fn evict(&self, chunks: &[ChunkId]) -> Result<Erased, StoreError> {
        self.are_there(chunks)?;
        self.store.erase_chunks(chunks)
    }

    fn are_there(&self, chunks: &[ChunkId]) -> Result<(), StoreError> {
        chunks
            .iter()
            .try_for_each(|&chunk| self.store.record(chunk).map(drop))
    }

    /// Erases everything that is kept for an owner, in memory and on disk; what others own as well stays with them.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn erase(&self, owner: &Owner) -> Result<Erased, EngineError> {
        let Some(engine) = self.engine else {
            return Ok(self.store.erase_owner(owner)?);
        };
        let owner = owner.clone();
        engine.with_worker(move |worker| worker.erase(&owner))?
    }

    /// Erases everything that is kept for anybody, in memory and on disk.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn erase_all(&self) -> Result<Erased, EngineError> {
        let mut all = Erased::default();
        let mut add = |erased: Erased| {
            all.chunks += erased.chunks;
            all.bytes += erased.bytes;
        };
        for owner in self.store.owners()? {
            add(self.erase(&owner.owner)?);
        }
        if let Some(engine) = self.engine {
            engine.forget();
        }
        add(self.store.forget_namespaces_except(&[])?);
        Ok(all)
    }

    /// Erases what is kept for chats that are gone for good, and gives their owners. Whatever became of earlier attempts,
    /// this one finds what they left.
    ///
    /// # Errors
    /// When the chats cannot be read, or the store cannot be written.
    pub fn erase_chats_that_are_gone(&self, chats: &ChatStore) -> Result<Vec<Owner>, CacheError> {
        // The owners first: a chat that begins meanwhile is not among them.
        let owners = self.store.owners()?.into_iter().map(|summary| summary.owner);
        let mut gone: Vec<Owner> = owners.filter(|owner| owner.kind() == CHAT_OWNER).collect();
        let there: HashSet<Owner> = chats.all_ids()?.into_iter().map(owner_of).collect();
        gone.retain(|owner| !there.contains(owner));
        for owner in &gone {
            self.erase(owner)?;
        }
        Ok(gone)
    }
}

/// Why what is kept could not be seen or erased.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The store refuses or fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine that has it open does.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The chats cannot be read.
    #[error(transparent)]
    Chats(#[from] crate::chats::StoreError),
}

/// What a person knows an owner by.
pub(crate) fn name_of(owner: &Owner, chats: &ChatStore) -> String {
    let title = || {
        let id = owner.name().parse().ok().map(ChatId);
        let id = id.filter(|_| owner.kind() == CHAT_OWNER)?;
        chats.summary(id).ok()?.title
    };
    title().unwrap_or_else(|| owner.name().to_owned())
}
