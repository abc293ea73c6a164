//! Opening the file: made when missing, recovered when damaged, copied and migrated when old, refused when too new.
//! Afterwards no answer is left half-way: those that were being written are marked as interrupted.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};

use super::damage::{self, Condition};
use super::error::StoreError;
use super::{ChatStore, Clock, Writer, index, schema};
use crate::sqlite::keep_side_files;

/// How long to wait for another program that holds the file, such as a backup of the disk.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Statements kept ready; the store has fewer.
const STATEMENTS: usize = 96;

impl ChatStore {
    /// Opens the chats in this file, or begins them. The notices are for the person: what was recovered, copied or
    /// interrupted.
    pub fn open(path: impl AsRef<Path>) -> Result<(ChatStore, Vec<String>), StoreError> {
        Self::open_with_clock(path, system_clock)
    }

    /// As [`ChatStore::open`], with another clock: milliseconds since 1970 (UTC). It may jump.
    pub fn open_with_clock(
        path: impl AsRef<Path>,
        clock: impl Fn() -> i64 + Send + Sync + 'static,
    ) -> Result<(ChatStore, Vec<String>), StoreError> {
        Self::open_with_migrations(path.as_ref(), Box::new(clock), schema::MIGRATIONS)
    }

    pub(super) fn open_with_migrations(
        path: &Path,
        clock: Clock,
        migrations: &[&str],
    ) -> Result<(ChatStore, Vec<String>), StoreError> {
        let mut notices = Vec::new();
        prepare_folder(path)?;
        damage::complete_recovery(path)?;
        match damage::examine(path)? {
            Condition::Fresh => create_private(path)?,
            Condition::Sound { version, .. } if version > schema::newest(migrations) => {
                let known = schema::newest(migrations);
                return Err(StoreError::Newer {
                    path: path.to_path_buf(),
                    found: version,
                    known,
                });
            }
            Condition::Sound { version, is_empty } => {
                if version < schema::newest(migrations) && !is_empty {
                    notices.push(upgrade(path, version, migrations)?);
                }
            }
            Condition::Damaged => notices.push(damage::recover(path, migrations)?),
        }

        let at = |error: rusqlite::Error| StoreError::database(path, error);
        let mut connection = connect(path).map_err(at)?;
        schema::migrate(&mut connection, migrations).map_err(|trouble| trouble.at(path))?;
        damage::clear_suspicion(path);
        let interrupted = match end_unfinished_answers(&mut connection) {
            Err(error) if index::is_at_fault(&error) => {
                index::rebuild(&mut connection).and_then(|()| end_unfinished_answers(&mut connection))
            }
            outcome => outcome,
        }
        .map_err(at)?;
        if interrupted > 0 {
            notices.push(match interrupted {
                1 => "1 answer was cut short when Reprise last ended; the text it had is kept.".to_string(),
                n => {
                    format!("{n} answers were cut short when Reprise last ended; the text they had is kept.")
                }
            });
        }
        let reader = connect(path).map_err(at)?;
        reader.pragma_update(None, "query_only", true).map_err(at)?;
        let writer = Writer::new(connection).map_err(at)?;
        let store = ChatStore {
            path: path.to_path_buf(),
            clock,
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
        };
        Ok((store, notices))
    }
}

fn system_clock() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        // A clock before 1970 is a dead battery; order does not depend on it.
        Err(_) => 0,
    }
}

fn prepare_folder(path: &Path) -> Result<(), StoreError> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder)
            .map_err(|source| StoreError::files("make the folder", folder, source)),
        _ => Ok(()),
    }
}

/// Makes the file so that other people of the same computer cannot read it; SQLite gives its side files the same
/// permissions.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .map(drop)
        .map_err(|source| StoreError::files("make", path, source))
}

/// A connection set up as all of the store's are.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // A journal mode other than asked for is a file that cannot be written, which the first write will say.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    keep_side_files(&connection)?;
    // On Apple's systems a plain sync leaves data in the drive's own cache; elsewhere this changes nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "secure_delete", true)?;
    // Chats do not belong into a folder for temporary files.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Copies the file and migrates it; the notice says where the copy is.
fn upgrade(path: &Path, from: i64, migrations: &[&str]) -> Result<String, StoreError> {
    let backup = back_up(path, from)?;
    let to = schema::newest(migrations);
    let mut connection = connect(path).map_err(|error| StoreError::database(path, error))?;
    schema::migrate(&mut connection, migrations).map_err(|trouble| match trouble.at(path) {
        // These say what to do themselves.
        error @ (StoreError::DiskFull { .. } | StoreError::ReadOnly { .. } | StoreError::Locked { .. }) => {
            error
        }
        error => {
            let reason = match error {
                StoreError::Database { source, .. } => source.to_string(),
                error => error.to_string(),
            };
            StoreError::Migration {
                path: path.to_path_buf(),
                from,
                to,
                backup: Some(backup.clone()),
                reason,
            }
        }
    })?;
    Ok(format!(
        "Your chats were brought to a new format. A copy as they were before is in {}; delete it when all is well.",
        backup.display()
    ))
}

/// A copy of the file beside it, proven to be whole before it gets its name.
fn back_up(path: &Path, version: i64) -> Result<PathBuf, StoreError> {
    let backup = damage::free_name(path, |number| match number {
        1 => format!(".v{version}.backup"),
        n => format!(".v{version}.backup-{n}"),
    });
    let partial = damage::beside(path, ".backup-in-progress");
    let files = |source| StoreError::files("copy the chats to", &partial, source);
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(files(error)),
        _ => {}
    }
    let Some(target) = partial.to_str() else {
        return Err(StoreError::refused(format!(
            "the chats in {} cannot be copied before they are brought to a new format, because the folder's name is \
             not valid Unicode; rename the folder",
            path.display()
        )));
    };
    let connection = connect(path).map_err(|error| StoreError::database(path, error))?;
    connection
        .execute("VACUUM INTO ?1", [target])
        .map_err(|error| StoreError::database(&partial, error))?;
    match damage::examine(&partial)? {
        Condition::Sound {
            version: copied,
            is_empty: false,
        } if copied == version => {}
        _ => {
            return Err(StoreError::Files {
                doing: "copy the chats to",
                path: partial,
                source: std::io::Error::other("the copy is not the same as the original"),
            });
        }
    }
    let permissions = std::fs::metadata(path).map_err(files)?.permissions();
    std::fs::set_permissions(&partial, permissions).map_err(files)?;
    std::fs::File::open(&partial)
        .and_then(|file| file.sync_all())
        .map_err(files)?;
    std::fs::rename(&partial, &backup).map_err(files)?;
    Ok(backup)
}

/// Ends the answers that were being written when the program ended, and counts those that a person can see.
fn end_unfinished_answers(connection: &mut Connection) -> rusqlite::Result<i64> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let visible = transaction.query_row(
        "SELECT count(*) FROM turns JOIN chats ON chats.id = turns.chat
         WHERE turns.state = 'writing' AND chats.deleted_ms IS NULL",
        [],
        |row| row.get(0),
    )?;
    transaction.execute(
        "UPDATE turns
         SET state = 'interrupted',
             text = text || coalesce((SELECT group_concat(text, '' ORDER BY number) FROM pieces WHERE turn = turns.id), '')
         WHERE state = 'writing'",
        [],
    )?;
    transaction.execute("DELETE FROM pieces", [])?;
    transaction.commit()?;
    Ok(visible)
}
