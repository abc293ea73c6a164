//! Files that are not as they should be: recognised before anything is written to them, moved aside and never deleted,
//! and read row by row for what is still there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::StoreError;
use super::{open, salvage, schema};

/// What kind of file was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// None, or nothing in it.
    Fresh,
    /// A database of this version; `is_empty` when it has no tables.
    Sound { version: i64, is_empty: bool },
    /// Not a database, or one with faults.
    Damaged,
}

/// Looks at a file without changing it.
pub(super) fn examine(path: &Path) -> Result<Condition, StoreError> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Condition::Fresh),
        Err(error) => return Err(StoreError::files("read", path, error)),
        Ok(metadata) if metadata.is_dir() => {
            return Err(StoreError::files(
                "open",
                path,
                std::io::ErrorKind::IsADirectory.into(),
            ));
        }
        Ok(metadata) if metadata.len() == 0 => return Ok(Condition::Fresh),
        Ok(_) => {}
    }
    let check = || -> rusqlite::Result<Condition> {
        let connection = open_to_read(path)?;
        let version = schema::version(&connection)?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if verdict != "ok" {
            tracing::warn!(%verdict, "the chat store is damaged");
            return Ok(Condition::Damaged);
        }
        Ok(Condition::Sound {
            version,
            is_empty: tables == 0,
        })
    };
    check().or_else(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            tracing::warn!(%error, "the chat store is damaged");
            Ok(Condition::Damaged)
        }
        _ => Err(StoreError::database(path, error)),
    })
}

/// A connection that leaves the file, and the log beside it, as they are.
pub(super) fn open_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(open::BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Saves what can be read of a damaged file into a new one, which takes its place. The notice says what was saved and
/// where the damaged file is.
///
/// The new file is complete before the damaged one is moved: ended at any moment, the next start finds either the
/// damaged file, or the new one under its first name (see [`complete_recovery`]).
pub(super) fn recover(path: &Path, migrations: &[&str]) -> Result<String, StoreError> {
    let rescued = rescued_name(path);
    remove_database(&rescued)?;
    let saved = salvage::salvage(path, &rescued, migrations)?;
    let aside = free_name(path, |number| format!(".damaged-{number}"));
    move_database(path, &aside)?;
    move_database(&rescued, path)?;
    let saved = match saved.chats {
        0 => "Nothing could be saved from it.".to_string(),
        _ => format!("Saved from it: {}.", saved),
    };
    Ok(format!(
        "The file with your chats was damaged. {saved} The damaged file is kept as {}.",
        aside.display()
    ))
}

/// Ends a recovery that was cut off after the damaged file was moved.
pub(super) fn complete_recovery(path: &Path) -> Result<(), StoreError> {
    let rescued = rescued_name(path);
    if !path.exists() && rescued.exists() {
        move_database(&rescued, path)
    } else {
        Ok(())
    }
}

fn rescued_name(path: &Path) -> PathBuf {
    beside(path, ".recovered")
}

/// `chats.sqlite` with `.x` is `chats.x.sqlite`, in the same folder.
pub(super) fn beside(path: &Path, addition: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or(path.as_os_str()).to_os_string();
    name.push(addition);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The first name of a numbered series, from 1, that no file has.
pub(super) fn free_name(path: &Path, addition: impl Fn(u32) -> String) -> PathBuf {
    let mut number = 1;
    loop {
        let candidate = beside(path, &addition(number));
        if !candidate.exists() {
            return candidate;
        }
        number += 1;
    }
}

/// Moves a database together with the files that SQLite keeps beside it; they come first, for without them the
/// database may lack its last changes.
fn move_database(from: &Path, to: &Path) -> Result<(), StoreError> {
    for suffix in SUFFIXES {
        match std::fs::rename(with_suffix(from, suffix), with_suffix(to, suffix)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !suffix.is_empty() => {}
            Err(error) => return Err(StoreError::files("move", from, error)),
            Ok(()) => {}
        }
    }
    Ok(())
}

fn remove_database(path: &Path) -> Result<(), StoreError> {
    for suffix in SUFFIXES {
        match std::fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::files("remove", path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

const SUFFIXES: [&str; 3] = ["-wal", "-shm", ""];

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}
