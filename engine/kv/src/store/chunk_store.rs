//! The store itself: one lock around the index, files outside of it.
//!
//! Rows are the truth. A file is finished before its row is committed, and a row is deleted before its file: whatever
//! is interrupted leaves at worst a file that nobody knows, which opening removes.

use super::error::{During, StoreError};
use super::file::{self, Fault};
use super::matching::{self, ChunkRun, PrefixMatch};
use super::options::StoreOptions;
use super::policy::{Ranking, UseRecord};
use super::reader::ChunkReader;
use super::record::{self, ChainHash, ChunkId, ChunkRecord, Namespace, NewChunk, Owner, Shard};
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
    folder: PathBuf,
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
    bytes: u64,
    /// Bytes promised to files that are being written.
    writing: u64,
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

/// What an erasure took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Chunks erased.
    pub chunks: usize,
    /// Bytes of their files.
    pub bytes: u64,
    /// Chunks that stay because they have other owners.
    pub kept: usize,
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
            .query_row("SELECT coalesce(sum(bytes), 0) FROM chunk", [], |row| row.get(0))
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

    /// The longest chain of chunks that `prompt` begins with, when its first token stands behind the context `from`
    /// ([`ChainHash::START`] for a whole prompt). Their KV is exact, as far as their recompute ratio is 1.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn longest_prefix(
        &self,
        namespace: Namespace,
        from: ChainHash,
        prompt: &[u32],
    ) -> Result<PrefixMatch, StoreError> {
        let state = self.0.state();
        match rows::space(&state.index, namespace).during("matching a prompt")? {
            Some(space) => matching::longest_prefix(&state.index, space, from, prompt),
            None => Ok(PrefixMatch::default()),
        }
    }

    /// The chunks that hold exactly `tokens`, under whatever context, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn with_content(&self, namespace: Namespace, tokens: &[u32]) -> Result<Vec<ChunkId>, StoreError> {
        let state = self.0.state();
        match rows::space(&state.index, namespace).during("matching a prompt")? {
            Some(space) => matching::with_content(&state.index, space, tokens),
            None => Ok(Vec::new()),
        }
    }

    /// Runs of at least [`MIN_RUN_TOKENS`](super::MIN_RUN_TOKENS) tokens that `prompt` shares with stored chunks, in
    /// order of their place in the prompt; they may overlap. Each chunk that shares one is considered, unless more
    /// than 32 newer chunks have the same text or more chunks than [`StoreOptions::run_candidates`] look as good.
    ///
    /// # Errors
    /// [`StoreError::Index`] and [`StoreError::IndexDamaged`].
    pub fn runs(&self, namespace: Namespace, prompt: &[u32]) -> Result<Vec<ChunkRun>, StoreError> {
        let state = self.0.state();
        match rows::space(&state.index, namespace).during("matching a prompt")? {
            Some(space) => matching::runs(&state.index, space, prompt, self.0.options.run_candidates),
            None => Ok(Vec::new()),
        }
    }

    /// Notes that chunks were used now. Those that are gone are passed over.
    ///
    /// # Errors
    /// [`StoreError::Index`].
    pub fn record_use(&self, chunks: &[ChunkId]) -> Result<(), StoreError> {
        const ACTION: &str = "noting the use of chunks";
        let options = &self.0.options;
        let now_ms = options.clock.now_ms();
        in_transaction(&mut self.0.state().index, ACTION, |index| {
            for chunk in chunks {
                let uses = rows::first(
                    index,
                    "SELECT weight, used_ms FROM chunk WHERE id = ?1",
                    [chunk.0],
                    |row| {
                        Ok(UseRecord {
                            weight: row.get(0)?,
                            at_ms: row.get(1)?,
                        })
                    },
                )
                .during(ACTION)?;
                let Some(uses) = uses.map(|uses| uses.used(now_ms, options.half_life)) else {
                    continue;
                };
                rows::change(
                    index,
                    "UPDATE chunk SET weight = ?2, used_ms = ?3 WHERE id = ?1",
                    rusqlite::params![chunk.0, uses.weight, uses.at_ms],
                )
                .during(ACTION)?;
            }
            Ok(())
        })
    }

    /// Exempts a chunk from eviction, or no longer.
    ///
    /// # Errors
    /// [`StoreError::NoSuchChunk`] and [`StoreError::Index`].
    pub fn set_pinned(&self, id: ChunkId, pinned: bool) -> Result<(), StoreError> {
        let state = self.0.state();
        let sql = "UPDATE chunk SET pinned = ?2 WHERE id = ?1";
        match rows::change(&state.index, sql, (id.0, pinned)).during("pinning a chunk")? {
            0 => Err(StoreError::NoSuchChunk(id)),
            _ => Ok(()),
        }
    }

    /// Erases what is kept for this owner alone, pinned or not, and takes the owner off chunks that others hold too.
    /// Nothing of the erased tokens or of the owner's name is left in the index's files. What is put for the owner
    /// afterwards, or is being put meanwhile, is stored.
    ///
    /// # Errors
    /// [`StoreError::Index`] when nothing was erased; [`StoreError::File`] when rows are gone but a file could not be
    /// removed now, and [`StoreError::InUse`] when another program reads the index and so keeps its log: opening the
    /// store completes both.
    pub fn erase_owner(&self, owner: &Owner) -> Result<Erased, StoreError> {
        const ACTION: &str = "erasing an owner's chunks";
        let mut kept = 0;
        let erased = self.0.erase(ACTION, |index| {
            let held = rows::all(
                index,
                "SELECT chunk, (SELECT count(*) FROM holding AS other WHERE other.chunk = holding.chunk)
                 FROM holding JOIN owner ON owner.id = holding.owner WHERE kind = ?1 AND name = ?2",
                [owner.kind(), owner.name()],
                |row| Ok((ChunkId(row.get(0)?), row.get::<_, i64>(1)?)),
            )?;
            rows::change(
                index,
                "DELETE FROM holding WHERE owner = (SELECT id FROM owner WHERE kind = ?1 AND name = ?2)",
                [owner.kind(), owner.name()],
            )?;
            let alone: Vec<ChunkId> = held
                .iter()
                .filter(|(_, owners)| *owners == 1)
                .map(|(id, _)| *id)
                .collect();
            kept = held.len() - alone.len();
            Ok(alone)
        })?;
        Ok(Erased { kept, ..erased })
    }

    /// Erases the chunks of all namespaces but these, whoever owns them: for when a model, an adapter or a format is
    /// gone.
    ///
    /// # Errors
    /// As [`ChunkStore::erase_owner`].
    pub fn forget_namespaces_except(&self, keep: &[Namespace]) -> Result<Erased, StoreError> {
        self.0.erase("forgetting namespaces", |index| {
            let all = rows::all(
                index,
                "SELECT chunk.id, digest FROM chunk JOIN space ON space.id = chunk.space",
                [],
                |row| Ok((ChunkId(row.get(0)?), Namespace(row.get(1)?))),
            )?;
            Ok(all
                .into_iter()
                .filter(|(_, namespace)| !keep.contains(namespace))
                .map(|(id, _)| id)
                .collect())
        })
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

    fn remove_file(&self, id: ChunkId) -> Result<(), StoreError> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::file("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Evicts until `needed` bytes fit the budget, and a little more so that not each chunk has to ask again. Evicts
    /// nothing when they cannot fit.
    fn make_room(&self, state: &mut State, needed: u64) -> Result<usize, StoreError> {
        let budget = self.options.budget_bytes;
        let wanted = state.bytes.saturating_add(state.writing).saturating_add(needed);
        let Some(missing) = wanted.checked_sub(budget).filter(|&missing| missing > 0) else {
            return Ok(0);
        };
        let chunks = self.ranked(state)?;
        let candidates: Vec<_> = chunks.iter().map(|(_, candidate)| *candidate).collect();
        let pinned: u64 = candidates
            .iter()
            .filter(|one| one.pinned)
            .map(|one| one.bytes)
            .sum();
        let kept = pinned.saturating_add(state.writing);
        if kept.saturating_add(needed) > budget {
            return Err(StoreError::NoRoom {
                needed_bytes: needed,
                budget_bytes: budget,
                kept_bytes: kept,
            });
        }
        let slack = budget / 64;
        let evicted = Ranking::new(&candidates, self.options.costs).evict(missing.saturating_add(slack));
        let ids: Vec<ChunkId> = evicted
            .iter()
            .filter_map(|&at| chunks.get(at))
            .map(|(id, _)| *id)
            .collect();
        self.delete(state, "evicting chunks", |_| Ok(ids))?.1?;
        Ok(evicted.len())
    }

    /// All chunks as eviction sees them now.
    pub(super) fn ranked(
        &self,
        state: &State,
    ) -> Result<Vec<(ChunkId, super::policy::Candidate<rows::Node>)>, StoreError> {
        let now_ms = self.options.clock.now_ms();
        let chunks = rows::candidates(&state.index)?;
        Ok(chunks
            .into_iter()
            .map(|(id, uses, mut candidate)| {
                candidate.weight = uses.weight_at(now_ms, self.options.half_life);
                (id, candidate)
            })
            .collect())
    }

    /// Deletes the rows of the chunks that `choose` names, in one transaction with whatever else it changes, and then
    /// their files. The second result is about the files.
    fn delete(
        &self,
        state: &mut State,
        action: &'static str,
        choose: impl FnOnce(&Connection) -> rusqlite::Result<Vec<ChunkId>>,
    ) -> Result<(Erased, Result<(), StoreError>), StoreError> {
        let mut erased = Erased::default();
        let mut ids = Vec::new();
        in_transaction(&mut state.index, action, |index| {
            ids = choose(index).during(action)?;
            for &id in &ids {
                if let Some(bytes) = rows::delete(index, id)? {
                    erased.chunks += 1;
                    erased.bytes += bytes;
                }
            }
            rows::delete_unused(index).during(action)
        })?;
        state.bytes = state.bytes.saturating_sub(erased.bytes);
        let mut files = Ok(());
        for id in ids {
            files = files.and(self.remove_file(id));
        }
        Ok((erased, files))
    }

    /// Deletes, and leaves nothing of what was deleted in the index's files.
    fn erase(
        &self,
        action: &'static str,
        choose: impl FnOnce(&Connection) -> rusqlite::Result<Vec<ChunkId>>,
    ) -> Result<Erased, StoreError> {
        let mut state = self.state();
        let (erased, files) = self.delete(&mut state, action, choose)?;
        let busy: bool = state
            .index
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .during(action)?;
        files?;
        if busy {
            // Another program reads the index, and so keeps the log with what was erased.
            return Err(StoreError::InUse {
                folder: self.folder.clone(),
            });
        }
        Ok(erased)
    }

    /// What a fault of a chunk's file means. A damaged one is dropped; chunks below it stay, for their tokens.
    pub(super) fn fault(&self, id: ChunkId, fault: Fault) -> StoreError {
        match fault {
            Fault::Damaged(reason) => self.damaged(id, reason),
            Fault::Failed(error) => StoreError::file("read", &self.path(id))(error),
        }
    }

    fn damaged(&self, id: ChunkId, reason: String) -> StoreError {
        let dropped = self.delete(&mut self.state(), "dropping a damaged chunk", |_| Ok(vec![id]));
        match dropped {
            // It was erased or evicted while somebody began to read it.
            Ok((Erased { chunks: 0, .. }, _)) => StoreError::NoSuchChunk(id),
            Ok((_, files)) => {
                let path = self.path(id);
                tracing::warn!(chunk = %id, path = %path.display(), %reason, "a damaged chunk was dropped");
                if let Err(error) = files {
                    tracing::warn!(%error, "the file of a damaged chunk stays until the store is opened again");
                }
                StoreError::ChunkDamaged {
                    chunk: id,
                    path,
                    reason,
                }
            }
            Err(error) => error,
        }
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

/// Moves all of the log into the database and empties it.
fn checkpoint(index: &Connection, folder: &Path) -> Result<(), StoreError> {
    let busy: bool = index
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .during("emptying its log")?;
    if busy {
        // Another program reads the index, and so keeps the log.
        return Err(StoreError::InUse { folder: folder.to_owned() });
    }
    Ok(())
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
fn in_transaction<T>(
    index: &mut Connection,
    action: &'static str,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = index.transaction().during(action)?;
    let result = work(&transaction)?;
    transaction.commit().during(action)?;
    Ok(result)
}
