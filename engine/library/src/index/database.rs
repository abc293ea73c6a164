//! The SQLite file: the truth about what was added, what was read of it, and its vectors.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

use super::damage;
use super::error::IndexError;
use super::types::SourceId;
use crate::sqlite::keep_side_files;

/// The file's name.
pub(super) const FILE: &str = "passages.sqlite";
const SCHEMA: &str = include_str!("schema.sql");
const FORMAT: i64 = 1;
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const STATEMENTS: usize = 64;
/// Memory for pages of the file, in KiB, of each connection.
const CACHE_KIB: i64 = 8 << 10;

pub(super) struct Database {
    folder: PathBuf,
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
    /// It was found damaged while it was used.
    is_damaged: AtomicBool,
}

impl Database {
    pub(super) fn open(folder: &Path) -> Result<Database, IndexError> {
        let path = folder.join(FILE);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
            .open(&path)
            .map_err(|error| IndexError::files("make", &path, error))?;
        let at = |error| IndexError::database(folder, error);
        let mut writer = connect(&path).map_err(at)?;
        let version = |connection: &Connection| {
            connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
        };
        let found = version(&writer).map_err(at)?;
        if found > FORMAT {
            return Err(IndexError::Newer {
                folder: folder.to_owned(),
                found,
                known: FORMAT,
            });
        }
        let transaction = writer
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(at)?;
        // Another program may have been faster.
        if version(&transaction).map_err(at)? == 0 {
            transaction.execute_batch(SCHEMA).map_err(at)?;
        }
        transaction.commit().map_err(at)?;
        let reader = connect(&path).map_err(at)?;
        reader.pragma_update(None, "query_only", true).map_err(at)?;
        Ok(Database {
            folder: folder.to_owned(),
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
            is_damaged: AtomicBool::new(false),
        })
    }

    /// Whether it was found damaged while it was used.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    fn error(&self, error: rusqlite::Error) -> IndexError {
        let error = IndexError::database(&self.folder, error);
        if matches!(error, IndexError::Damaged { .. }) {
            damage::suspect(&self.folder);
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        error
    }

    /// Adds a file or folder, unless it is there.
    pub(super) fn add_source(&self, path: &str, is_folder: bool) -> Result<SourceId, IndexError> {
        self.write(|transaction| {
            transaction.execute(
                "INSERT INTO sources (path, is_folder, added_ms) VALUES (?1, ?2, ?3) ON CONFLICT (path) DO NOTHING",
                params![path, is_folder, super::now_ms()],
            )?;
            transaction.query_row("SELECT id FROM sources WHERE path = ?1", [path], |row| row.get(0).map(SourceId))
        })
    }

    /// The paths that were added, in order.
    pub(super) fn paths(&self) -> Result<Vec<String>, IndexError> {
        self.read(|connection| {
            connection
                .prepare("SELECT path FROM sources ORDER BY path")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }

    /// Does all of a change or nothing of it.
    pub(super) fn write<T>(
        &self,
        job: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, IndexError> {
        let mut writer = lock(&self.writer);
        let attempt = || {
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = job(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        attempt().map_err(|error| self.error(error))
    }

    /// Reads from one state of the file, whatever is written meanwhile.
    pub(super) fn read<T>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, IndexError> {
        let reader = lock(&self.reader);
        let attempt = || {
            let transaction = reader.unchecked_transaction()?;
            job(&transaction)
        };
        attempt().map_err(|error| self.error(error))
    }

    /// Leaves no trace of what was deleted: the log of changes is emptied into the file, which overwrites.
    pub(super) fn empty_log(&self) -> Result<(), IndexError> {
        let writer = lock(&self.writer);
        writer
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(|error| self.error(error))
    }
}

// A thread that panicked left no half change behind: its transaction was rolled back. So a poisoned lock is sound.
fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    keep_side_files(&connection)?;
    // What the last moments before a loss of power added is read again from the files.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(connection)
}
