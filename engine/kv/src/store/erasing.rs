//! Taking chunks out: on request so that no trace stays, when their file is damaged, and for eviction.

use super::chunk_store::{ChunkStore, Shared, State, in_transaction};
use super::error::{During, StoreError};
use super::file::Fault;
use super::record::{ChunkId, Namespace, Owner};
use super::rows;
use rusqlite::Connection;
use std::fs;
use std::path::Path;

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
    /// Erases what is kept for this owner alone, pinned or not, and takes the owner off chunks that others hold too.
    /// Nothing of the erased tokens or of the owner's name is left in the index's files. What is put for the owner
    /// meanwhile is erased as well.
    ///
    /// # Errors
    /// [`StoreError::Index`] when nothing was erased; [`StoreError::File`] when rows are gone but a file could not be
    /// removed now, and [`StoreError::InUse`] when another program reads the index and so keeps its log: opening the
    /// store completes both.
    pub fn erase_owner(&self, owner: &Owner) -> Result<Erased, StoreError> {
        const ACTION: &str = "erasing an owner's chunks";
        let mut kept = 0;
        let erased = self.0.erase(ACTION, Some(owner), |index| {
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

    /// Deletes these chunks, whoever owns them and pinned or not. Those that are gone are passed over.
    ///
    /// # Errors
    /// As [`ChunkStore::erase_owner`].
    pub fn erase_chunks(&self, chunks: &[ChunkId]) -> Result<Erased, StoreError> {
        self.0.erase("erasing chunks", None, |_| Ok(chunks.to_vec()))
    }

    /// Erases the chunks of all namespaces but these, whoever owns them: for when a model, an adapter or a format is
    /// gone.
    ///
    /// # Errors
    /// As [`ChunkStore::erase_owner`].
    pub fn forget_namespaces_except(&self, keep: &[Namespace]) -> Result<Erased, StoreError> {
        self.0.erase("forgetting namespaces", None, |index| {
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
    pub(super) fn remove_file(&self, id: ChunkId) -> Result<(), StoreError> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::file("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Deletes the rows of the chunks that `choose` names, in one transaction with whatever else it changes, and then
    /// their files. The second result is about the files.
    pub(super) fn delete(
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
                    erased.bytes = erased.bytes.saturating_add(bytes);
                }
            }
            rows::delete_unused(index).during(action)
        })?;
        state.bytes = state.bytes.saturating_sub(erased.bytes);
        let mut catalogue = self.catalogue_mut();
        for &id in &ids {
            catalogue.remove(id);
        }
        drop(catalogue);
        let mut files = Ok(());
        for id in ids {
            files = files.and(self.remove_file(id));
        }
        Ok((erased, files))
    }

    /// Deletes, and leaves nothing of what was deleted in the index's files. Chunks of `owner` that are not written yet
    /// go as well.
    fn erase(
        &self,
        action: &'static str,
        owner: Option<&Owner>,
        choose: impl FnOnce(&Connection) -> rusqlite::Result<Vec<ChunkId>>,
    ) -> Result<Erased, StoreError> {
        let mut state = self.state();
        let (erased, files) = self.delete(&mut state, action, choose)?;
        if let Some(owner) = owner {
            let mut catalogue = self.catalogue_mut();
            for id in catalogue.disown_pending(owner) {
                catalogue.remove(id);
            }
        }
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

    pub(super) fn damaged(&self, id: ChunkId, reason: String) -> StoreError {
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

/// Moves all of the log into the database and empties it.
pub(super) fn checkpoint(index: &Connection, folder: &Path) -> Result<(), StoreError> {
    let busy: bool = index
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .during("emptying its log")?;
    if busy {
        // Another program reads the index, and so keeps the log.
        return Err(StoreError::InUse {
            folder: folder.to_owned(),
        });
    }
    Ok(())
}
