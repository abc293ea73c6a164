//! The store itself: one lock around the index, files outside of it.
//!
//! Rows are the truth. A file is finished before its row is committed, and a row is deleted before its file: whatever
//! is interrupted leaves at worst a file that nobody knows, which opening removes.

use super::batch::Announced;
use super::catalogue::Catalogue;
use super::erasing::checkpoint;
use super::error::{During, StoreError};
use super::file;
use super::options::StoreOptions;
use super::reader::{ChunkReader, OpenChunk, Source};
use super::record::{self, ChunkId, ChunkRecord, NewChunk, Owner, Shard};
use super::recovery::{self, Recovery};
use super::rows;
use super::schema;
use rusqlite::Connection;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Chunks on disk and their index. Clones are the same store; it may be used from any thread. Matching waits
/// neither for files nor for the index.
#[derive(Debug, Clone)]
pub struct ChunkStore(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    files: PathBuf,
    pub(super) options: StoreOptions,
    state: Mutex<State>,
    /// Whoever locks both locks the state first.
    catalogue: RwLock<Catalogue>,
    /// Held as long as the store is open.
    _lock: File,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) index: Connection,
    /// Bytes of all files with rows.
    pub(super) bytes: u64,
    /// Bytes promised to files that are being written.
    pub(super) writing: u64,
}

/// What became of a chunk that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// The chunk, new or not.
    pub id: ChunkId,
    /// Whether it was written; otherwise it was there, or is being written, and has one owner more.
    pub written: bool,
    /// Chunks that were evicted to make room.
    pub evicted: usize,
}

/// Makes a folder with those above it, closed to other people of the same machine: from chunks, and whatever else is kept of
/// what a person reads, the text can be told.
///
/// # Errors
/// What the system says.
pub fn private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

impl ChunkStore {
    /// Opens the store in a folder, which is made when there is none, and puts in order what an interrupted process
    /// left. A damaged index, or one of another version, is replaced by an empty one: the result says so.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when another store has the folder; [`StoreError::File`] and [`StoreError::Index`] when
    /// the system or SQLite refuse.
    pub fn open(folder: &Path, options: StoreOptions) -> Result<(ChunkStore, Recovery), StoreError> {
        let files = folder.join("chunks");
        private_folder(&files).map_err(StoreError::file("create", &files))?;
        let lock = lock(folder)?;
        let (mut index, state, mut entries) = schema::open(
            &folder.join("index.sqlite"),
            folder,
            options.busy_timeout,
            |index| {
                // Uses that lie in the future, because the clock was wrong then or is now, decay from now on.
                let now_ms = options.clock.now_ms();
                let sql = "UPDATE chunk SET used_ms = ?1 WHERE used_ms > ?1";
                rows::change(index, sql, [now_ms]).during("opening it")?;
                rows::entries(index)
            },
        )?;
        let recovery = recovery::reconcile(&mut index, state, &files)?;
        // An erasure that was cut short is completed: the log may still have what it deleted.
        checkpoint(&index, folder).or_else(|error| match error {
            StoreError::InUse { .. } => Ok(()),
            error => Err(error),
        })?;
        let last: i64 = index
            .query_row("SELECT coalesce(max(seq), 0) FROM sqlite_sequence", [], |row| {
                row.get(0)
            })
            .during("opening it")?;
        entries.retain(|(id, _)| !recovery.removed.contains(id));
        let catalogue = Catalogue::of(entries, last.max(0).saturating_add(1));
        let (_, bytes) = catalogue.written();
        let store = ChunkStore(Arc::new(Shared {
            folder: folder.to_owned(),
            files,
            options,
            state: Mutex::new(State {
                index,
                bytes,
                writing: 0,
            }),
            catalogue: RwLock::new(catalogue),
            _lock: lock,
        }));
        let recovery = recovery.found;
        Ok((store, recovery))
    }

    /// Stores a chunk: its file in one pass from the borrowed parts, synced, then its row. When the same tokens are
    /// known under the same context already, that chunk gets `chunk.owner` as one owner more and nothing is written.
    /// Others are evicted when the budget asks for it. Several at once are stored by a [`Batch`](super::Batch).
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a chunk the format has no room for, or a shard whose parts have other bytes than it
    /// said; [`StoreError::NoRoom`] when the budget is too small; [`StoreError::File`] and [`StoreError::Index`] when
    /// the disk is full or fails; [`StoreError::NoSuchChunk`] when it was erased meanwhile. No file and no row of the
    /// chunk is left then.
    pub fn put(&self, chunk: &NewChunk<'_>, shards: Vec<Shard<'_>>) -> Result<Put, StoreError> {
        record::check_shards(&shards)?;
        let (id, written, evicted) = match self.announce(chunk)? {
            Announced::New(id) => {
                let mut batch = self.batch();
                batch.add(id, shards)?;
                let committed = batch.commit()?;
                if !committed.written.contains(&id) {
                    return Err(StoreError::NoSuchChunk(id));
                }
                (id, true, committed.evicted)
            }
            Announced::Pending(id) => (id, false, 0),
            Announced::Stored(id) => {
                self.share(id, chunk.owner)?;
                (id, false, 0)
            }
        };
        Ok(Put { id, written, evicted })
    }

    /// Opens a chunk for reading.
    ///
    /// # Errors
    /// [`StoreError::NoSuchChunk`], also of one that is not written yet; [`StoreError::ChunkDamaged`] when its file is missing, has another size or begins
    /// differently: then the chunk is dropped; [`StoreError::File`] and [`StoreError::Index`].
    pub fn load(&self, id: ChunkId) -> Result<ChunkReader, StoreError> {
        let (namespace, chain, base, bytes, tokens) = {
            let catalogue = self.0.catalogue();
            let written = catalogue.get(id).filter(|entry| entry.pending.is_none());
            let entry = written.ok_or(StoreError::NoSuchChunk(id))?;
            if entry.chain != entry.parent.then(&entry.tokens) {
                drop(catalogue);
                return Err(self
                    .0
                    .damaged(id, "belongs to a row with other tokens".to_owned()));
            }
            let tokens = entry.tokens.to_vec();
            (entry.namespace, entry.chain, entry.base, entry.bytes, tokens)
        };
        let (shards, small) = {
            let state = self.0.state();
            (rows::shards(&state.index, id)?, rows::small(&state.index, id)?)
        };
        let source = match small {
            Some(tensors) => Source::Index(tensors),
            None => {
                let sizes = shards.iter().map(|shard| (shard.name.as_str(), shard.bytes));
                let preamble = file::preamble(namespace, chain, sizes);
                let file = file::open(&self.0.path(id), bytes, &preamble)
                    .map_err(|fault| self.0.fault(id, fault))?;
                Source::File(file, preamble.len() as u64)
            }
        };
        Ok(ChunkReader {
            store: self.clone(),
            record: OpenChunk {
                id,
                base,
                tokens,
                shards,
            },
            source,
        })
    }

    /// What the index knows of a chunk.
    ///
    /// # Errors
    /// [`StoreError::NoSuchChunk`] and [`StoreError::Index`].
    pub fn record(&self, id: ChunkId) -> Result<ChunkRecord, StoreError> {
        let record = rows::record(&self.0.state().index, id)?;
        let uses = self.0.catalogue().get(id).map_or(record.uses, |entry| entry.uses);
        Ok(ChunkRecord { uses, ..record })
    }

    /// Chunks on disk and their bytes, as [`ChunkStore::stats`] has them with more. Asks neither the disk nor the index.
    pub fn written(&self) -> (usize, u64) {
        self.0.catalogue().written()
    }

    /// On whose behalf a chunk is stored, in order of name; nobody of one that is gone or not written yet.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn owners_of(&self, id: ChunkId) -> Result<Vec<Owner>, StoreError> {
        rows::owners(&self.0.state().index, id)
    }

    /// What matching knows of a chunk, on disk or not; nothing when it is gone. Asks neither the disk nor the index.
    pub fn facts(&self, id: ChunkId) -> Option<ChunkFacts> {
        let now_ms = self.0.options.clock.now_ms();
        let catalogue = self.0.catalogue();
        let entry = catalogue.get(id)?;
        Some(ChunkFacts {
            tokens: entry.tokens.len(),
            base: entry.base,
            ratio: entry.ratio,
            is_written: entry.pending.is_none(),
            weight: entry.uses.weight_at(now_ms, self.0.options.half_life),
        })
    }
}

/// What is known of a chunk without asking the index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkFacts {
    /// How many tokens it has.
    pub tokens: usize,
    /// The position of its first token.
    pub base: u32,
    /// The recompute ratio it was made under; 1 is exact.
    pub ratio: f32,
    /// Whether it is on disk.
    pub is_written: bool,
    /// R: how much it was used lately.
    pub weight: f64,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere left no half-done transaction behind: it was rolled back on the way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn catalogue(&self) -> RwLockReadGuard<'_, Catalogue> {
        self.catalogue.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn catalogue_mut(&self) -> RwLockWriteGuard<'_, Catalogue> {
        self.catalogue.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of the chunks' files.
    pub(super) fn files(&self) -> &Path {
        &self.files
    }

    pub(super) fn path(&self, id: ChunkId) -> PathBuf {
        file::path(&self.files, id)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Err(error) = self.save_uses(&mut self.state()) {
            tracing::warn!(%error, "when chunks were used last is forgotten");
        }
    }
}

/// Takes the folder for this store alone.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(StoreError::file("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse {
            folder: folder.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(StoreError::file("lock", &path)(error)),
    }
}

/// All of `work` or, when it fails, nothing.
pub(super) fn in_transaction<T>(
    index: &mut Connection,
    action: &'static str,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = index.transaction().during(action)?;
    let result = work(&transaction)?;
    transaction.commit().during(action)?;
    Ok(result)
}
