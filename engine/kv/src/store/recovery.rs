//! Bringing files and rows together when a store is opened: whatever moment the last process ended at, afterwards each
//! row has its file and each file its row.

use super::error::{During, StoreError};
use super::file::{self, Kind};
use super::record::ChunkId;
use super::rows;
use super::schema::IndexState;
use rusqlite::Connection;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// What opening a store found and put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// How the index was found.
    pub index: IndexState,
    /// Files of chunks that the index did not know: removed.
    pub files_without_rows: usize,
    /// Chunks of the index whose file was gone: removed.
    pub rows_without_files: usize,
    /// Files whose writing was never finished: removed.
    pub unfinished_files: usize,
}

impl Recovery {
    /// What a person should know of it, as the rest of a sentence; nothing where nothing had to be put right.
    pub fn told(&self) -> Option<String> {
        match &self.index {
            IndexState::Rebuilt { reason } => Some(format!(
                "the index of what was kept could not be used ({reason}), so that nothing of it is left; texts are read \
                 once more"
            )),
            _ if self.is_clean() => None,
            _ => Some("what an interrupted program had left was put in order first".into()),
        }
    }

    /// Whether nothing had to be put right.
    pub fn is_clean(&self) -> bool {
        let removed = self.files_without_rows + self.rows_without_files + self.unfinished_files;
        removed == 0 && !matches!(self.index, IndexState::Rebuilt { .. })
    }
}

/// What was found, and the chunks that the index forgot.
pub(super) struct Reconciled {
    pub(super) found: Recovery,
    pub(super) removed: HashSet<ChunkId>,
}

/// Removes what has no counterpart. Files with names that the store never gives are left alone.
pub(super) fn reconcile(
    index: &mut Connection,
    state: IndexState,
    files: &Path,
) -> Result<Reconciled, StoreError> {
    const ACTION: &str = "comparing it with the files";
    let mut recovery = Recovery {
        index: state,
        files_without_rows: 0,
        rows_without_files: 0,
        unfinished_files: 0,
    };
    let mut without_file: HashSet<ChunkId> = rows::all(
        index,
        "SELECT id FROM chunk WHERE NOT EXISTS (SELECT 1 FROM small WHERE small.chunk = chunk.id)",
        [],
        |row| row.get(0).map(ChunkId),
    )
    .during(ACTION)?
    .into_iter()
    .collect();
    for entry in fs::read_dir(files).map_err(StoreError::file("read", files))? {
        let path = entry.map_err(StoreError::file("read", files))?.path();
        let removed = match file::kind(&path) {
            Some(Kind::Finished(chunk)) if without_file.remove(&chunk) => continue,
            Some(Kind::Finished(_)) => &mut recovery.files_without_rows,
            Some(Kind::Unfinished(_)) => &mut recovery.unfinished_files,
            None => continue,
        };
        fs::remove_file(&path).map_err(StoreError::file("remove", &path))?;
        *removed += 1;
    }
    let transaction = index.transaction().during(ACTION)?;
    for &chunk in &without_file {
        rows::delete(&transaction, chunk)?;
    }
    if !without_file.is_empty() {
        rows::delete_unused(&transaction).during(ACTION)?;
    }
    transaction.commit().during(ACTION)?;
    recovery.rows_without_files = without_file.len();
    if recovery.index == IndexState::Created && recovery.files_without_rows > 0 {
        recovery.index = IndexState::Rebuilt {
            reason: "it was missing".to_owned(),
        };
    }
    if !recovery.is_clean() {
        tracing::warn!(
            index = ?recovery.index,
            files_without_rows = recovery.files_without_rows,
            rows_without_files = recovery.rows_without_files,
            unfinished_files = recovery.unfinished_files,
            "the chunk store was put in order"
        );
    }
    Ok(Reconciled {
        found: recovery,
        removed: without_file,
    })
}
