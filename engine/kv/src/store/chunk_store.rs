//! The store itself: one lock around the index, files outside of it.
//!
//! Rows are the truth. A file is finished before its row is committed, and a row is deleted before its file: whatever
//! is interrupted leaves at worst a file that nobody knows, which opening removes.

use super::erasing::checkpoint;
use super::error::{During, StoreError};
use super::file;
use super::options::StoreOptions;
use super::reader::ChunkReader;
use super::record::{self, ChunkId, ChunkRecord, NewChunk, Shard};
use super::recovery::{self, Recovery};
use super::rows;
use super::schema;
use rusqlite::Connection;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Chunks on disk and their index. Clones are the same store; it may be used from any thread. Matching waits for no
/// file, but for other calls that read or change the index.
#[derive(Debug, Clone)]
pub struct ChunkStore(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    files: PathBuf,
    pub(super) options: StoreOptions,
    state: Mutex<State>,
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
    next: i64,
}

/// What became of a chunk that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// The chunk, new or not.
    pub id: ChunkId,
    /// Whether it was written; otherwise it was there and has one owner more.
    pub written: bool,
    /// Chunks that were evicted to make room.
    pub evicted: usize,
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
        fs::create_dir_all(&files).map_err(StoreError::file("create", &files))?;
        let lock = lock(folder)?;
        let (mut index, state) = schema::open(&folder.join("index.sqlite"), folder, options.busy_timeout)?;
        let recovery = recovery::reconcile(&mut index, state, &files)?;
        // An erasure that was cut short is completed: the log may still have what it deleted.
        checkpoint(&index, folder).or_else(|error| match error {
            StoreError::InUse { .. } => Ok(()),
            error => Err(error),
        })?;
        // Uses that lie in the future, because the clock was wrong then or is now, decay from now on.
        let now_ms = options.clock.now_ms();
        rows::change(
            &index,
            "UPDATE chunk SET used_ms = ?1 WHERE used_ms > ?1",
            [now_ms],
        )
        .during("opening it")?;
        let bytes: i64 = index
            .query_row("SELECT CAST(total(bytes) AS INTEGER) FROM chunk", [], |row| {
                row.get(0)
            })
            .during("opening it")?;
        let last: i64 = index
            .query_row("SELECT coalesce(max(seq), 0) FROM sqlite_sequence", [], |row| {
                row.get(0)
            })
            .during("opening it")?;
        let store = ChunkStore(Arc::new(Shared {
            folder: folder.to_owned(),
            files,
            options,
            state: Mutex::new(State {
                index,
                bytes: bytes.max(0) as u64,
                writing: 0,
                next: last.max(0).saturating_add(1),
            }),
            _lock: lock,
        }));
        Ok((store, recovery))
    }

    /// Stores a chunk: its file in one pass from the borrowed parts, synced, then its row. When the same tokens are
    /// stored under the same context already, that chunk gets `chunk.owner` as one owner more and nothing is written.
    /// Others are evicted when the budget asks for it.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a chunk the format has no room for, or a shard whose parts have other bytes than it
    /// said; [`StoreError::NoRoom`] when the budget is too small; [`StoreError::File`] and [`StoreError::Index`] when
    /// the disk is full or fails. No file and no row of the chunk is left then.
    pub fn put(&self, chunk: &NewChunk<'_>, shards: Vec<Shard<'_>>) -> Result<Put, StoreError> {
        const ACTION: &str = "adding a chunk";
        record::check(chunk, &shards)?;
        let chain = chunk.parent.then(chunk.tokens);
        let sizes = shards.iter().map(|shard| (shard.name, shard.bytes));
        let preamble = file::preamble(chunk.namespace, chain, sizes);
        let bytes = preamble.len() as u64 + shards.iter().map(|shard| shard.bytes).sum::<u64>();

        let mut state = self.0.state();
        if let Some(id) = share(&mut state.index, chunk)? {
            return Ok(Put {
                id,
                written: false,
                evicted: 0,
            });
        }
        let evicted = self.0.make_room(&mut state, bytes)?;
        let id = ChunkId(state.next);
        state.next = state.next.saturating_add(1);
        state.writing += bytes;
        let mut promise = Promise {
            shared: &self.0,
            bytes,
        };
        drop(state);

        let shards = file::write(&self.0.files, id, &preamble, shards)?;

        let mut state = self.0.state();
        promise.settle(&mut state);
        let committed = match share(&mut state.index, chunk) {
            // Somebody else stored it meanwhile.
            Ok(Some(id)) => Ok(Put {
                id,
                written: false,
                evicted,
            }),
            Ok(None) => {
                let written = rows::Written {
                    id,
                    bytes,
                    shards: &shards,
                    now_ms: self.0.options.clock.now_ms(),
                };
                in_transaction(&mut state.index, ACTION, |index| {
                    rows::insert(index, chunk, &written).during(ACTION)
                })
                .map(|()| Put {
                    id,
                    written: true,
                    evicted,
                })
            }
            Err(error) => Err(error),
        };
        match &committed {
            Ok(Put { written: true, .. }) => state.bytes += bytes,
            Ok(_) => self.0.remove_file(id)?,
            // The first error is the one to tell. A file that stays is removed at the next opening.
            Err(_) => drop(self.0.remove_file(id)),
        }
        committed
    }

    /// Opens a chunk for reading.
    ///
    /// # Errors
    /// [`StoreError::NoSuchChunk`]; [`StoreError::ChunkDamaged`] when its file is missing, has another size or begins
    /// differently: then the chunk is dropped; [`StoreError::File`] and [`StoreError::Index`].
    pub fn load(&self, id: ChunkId) -> Result<ChunkReader, StoreError> {
        let record = rows::record(&self.0.state().index, id)?;
        if record.chain != record.parent.then(&record.tokens) {
            return Err(self
                .0
                .damaged(id, "belongs to a row with other tokens".to_owned()));
        }
        let sizes = record
            .shards
            .iter()
            .map(|shard| (shard.name.as_str(), shard.bytes));
        let preamble = file::preamble(record.namespace, record.chain, sizes);
        let file =
            file::open(&self.0.path(id), record.bytes, &preamble).map_err(|fault| self.0.fault(id, fault))?;
        Ok(ChunkReader::new(
            self.clone(),
            record,
            file,
            preamble.len() as u64,
        ))
    }

    /// What the index knows of a chunk.
    ///
    /// # Errors
    /// [`StoreError::NoSuchChunk`] and [`StoreError::Index`].
    pub fn record(&self, id: ChunkId) -> Result<ChunkRecord, StoreError> {
        rows::record(&self.0.state().index, id)
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere left no half-done transaction behind: it was rolled back on the way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn path(&self, id: ChunkId) -> PathBuf {
        file::path(&self.files, id)
    }
}

/// Bytes of the budget that a file in writing may take. They come back when it fails, or panics in the caller's
/// iterator.
struct Promise<'a> {
    shared: &'a Shared,
    bytes: u64,
}

impl Promise<'_> {
    /// Gives them back under a lock that is held already.
    fn settle(&mut self, state: &mut State) {
        state.writing = state.writing.saturating_sub(self.bytes);
        self.bytes = 0;
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let shared = self.shared;
            self.settle(&mut shared.state());
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

/// Gives the chunk's owner a share in the stored chunk of the same chain, if there is one.
fn share(index: &mut Connection, chunk: &NewChunk<'_>) -> Result<Option<ChunkId>, StoreError> {
    const ACTION: &str = "adding an owner to a chunk";
    in_transaction(index, ACTION, |index| {
        let stored = rows::same_chain(index, chunk).during(ACTION)?;
        if let Some(id) = stored {
            rows::add_owner(index, id, chunk.owner).during(ACTION)?;
        }
        Ok(stored)
    })
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
