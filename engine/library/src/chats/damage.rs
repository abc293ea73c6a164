//! Files that are not as they should be: recognised before anything is written to them, moved aside and never deleted,
//! and read row by row for what is still there.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::StoreError;
use super::{open, salvage, schema};
use crate::sqlite::{SUFFIXES, remove_database, with_suffix};

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
    let bytes = match std::fs::metadata(path) {
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
        Ok(metadata) => metadata.len(),
    };
    // With a log beside it, the file may have been in the middle of taking changes over when the power failed.
    let is_settled = std::fs::metadata(with_suffix(path, "-wal")).map_or(0, |log| log.len()) == 0;
    let check = || -> rusqlite::Result<Condition> {
        let connection = open_to_read(path)?;
        let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        if is_settled && bytes % u64::try_from(page_bytes).unwrap_or(u64::MAX) != 0 {
            tracing::warn!(bytes, "the chat store is cut off");
            return Ok(Condition::Damaged);
        }
        let version = schema::version(&connection)?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        for verdict in verdicts(&connection, is_suspect(path))? {
            if verdict != "ok" {
                tracing::warn!(%verdict, "the chat store is damaged");
                return Ok(Condition::Damaged);
            }
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

/// What SQLite says about the file. At every start it looks at each table by itself: the search index's own check reads
/// all texts, which takes five times as long as all the rest (1.1 s of 1.3 s for 50,000 turns, `measure` in the tests).
/// A file that failed while it was used is looked at in every way there is.
fn verdicts(connection: &Connection, is_thorough: bool) -> rusqlite::Result<Vec<String>> {
    if is_thorough {
        return Ok(vec![connection.query_row(
            "PRAGMA quick_check(1)",
            [],
            |row| row.get(0),
        )?]);
    }
    let tables: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let check = |table: &str| {
        let sql = format!("PRAGMA quick_check(\"{}\")", table.replace('"', "\"\""));
        connection.query_row(&sql, [], |row| row.get(0))
    };
    std::iter::once("sqlite_schema")
        .chain(tables.iter().map(String::as_str))
        .map(check)
        .collect()
}

/// Notes that the file failed while it was used.
pub(super) fn suspect(path: &Path) {
    if let Err(error) = std::fs::write(
        suspicion(path),
        "Reprise found its chats damaged and checks them at its next start.\n",
    ) {
        tracing::warn!(%error, "the next start will not look closer at the damaged chat store");
    }
}

/// Forgets that the file failed, once it was looked at and what was damaged was replaced.
pub(super) fn clear_suspicion(path: &Path) {
    // One that stays costs the next start a second.
    let _ = std::fs::remove_file(suspicion(path));
}

fn is_suspect(path: &Path) -> bool {
    suspicion(path).exists()
}

fn suspicion(path: &Path) -> PathBuf {
    with_suffix(path, "-suspect")
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
    remove_database(&rescued).map_err(|error| StoreError::files("remove", &rescued, error))?;
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
