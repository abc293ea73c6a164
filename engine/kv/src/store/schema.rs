//! The index as a database: its tables, and opening it so that whatever is found there ends in a sound index.

use super::error::{During, StoreError, is_damage, is_lock};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the tables, of the files and of how hashes are made. Another one is not read: KV can be computed
/// again.
pub(super) const VERSION: i32 = 2;
/// "RKVS": marks the database as the index of a store.
const APPLICATION: i32 = 0x524b_5653;

/// Pages of 8 KiB: the tokens of a full chunk fit a cell of a page. What is left out when power fails are the last
/// transactions (synchronous = NORMAL); the database stays whole. One connection has the file, as one store has the
/// folder: then SQLite needs no file of shared memory, and what is kept can be read while the disk is full.
const SETTINGS: &str = "
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA page_size = 8192;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA foreign_keys = OFF;
    PRAGMA trusted_schema = OFF;
    PRAGMA cache_size = -16384;
    PRAGMA journal_size_limit = 16777216;
";

const TABLES: &str = "
    CREATE TABLE space (
        id INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE chunk (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        space INTEGER NOT NULL,
        parent BLOB NOT NULL,
        chain BLOB NOT NULL,
        base INTEGER NOT NULL,
        count INTEGER NOT NULL,
        ratio REAL NOT NULL,
        made_ms INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        pinned INTEGER NOT NULL,
        weight REAL NOT NULL,
        used_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE text (
        chunk INTEGER PRIMARY KEY,
        tokens BLOB NOT NULL,
        embedding BLOB
    ) STRICT;
    CREATE TABLE small (
        chunk INTEGER PRIMARY KEY,
        tensors BLOB NOT NULL
    ) STRICT;
    CREATE TABLE shard (
        chunk INTEGER NOT NULL,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (chunk, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE owner (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        UNIQUE (kind, name)
    ) STRICT;
    CREATE TABLE holding (
        owner INTEGER NOT NULL,
        chunk INTEGER NOT NULL,
        PRIMARY KEY (owner, chunk)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX holding_chunk ON holding (chunk);
";
const TABLE_NAMES: [&str; 7] = ["space", "chunk", "text", "small", "shard", "owner", "holding"];

/// What was found when the index was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexState {
    /// A sound index of this version.
    Found,
    /// No index: an empty one was made.
    Created,
    /// An index that could not be used: an empty one took its place, and all chunks are gone.
    Rebuilt {
        /// Why it could not be used.
        reason: String,
    },
}

/// Why a database is not our index, or why that cannot be told.
enum Obstacle {
    Unusable(String),
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Obstacle {
    fn from(error: rusqlite::Error) -> Obstacle {
        if is_damage(&error) {
            Obstacle::Unusable(error.to_string())
        } else {
            Obstacle::Failed(error)
        }
    }
}

/// Opens the index at `path`, or makes an empty one when there is none or it is of no use: also when `read`, which
/// takes in all that the index says, finds there what this program never writes.
pub(super) fn open<T>(
    path: &Path,
    folder: &Path,
    busy: Duration,
    read: impl Fn(&mut Connection) -> Result<T, StoreError>,
) -> Result<(Connection, IndexState, T), StoreError> {
    let opened = || {
        let (mut index, created) = connect(path, busy)?;
        match read(&mut index) {
            Ok(content) => Ok(Ok((index, created, content))),
            Err(StoreError::IndexDamaged { what }) => Err(Obstacle::Unusable(what)),
            Err(error) => Ok(Err(error)),
        }
    };
    let (reason, created) = match opened() {
        Ok(opened) => {
            let (index, created, content) = opened?;
            let state = match created {
                true => IndexState::Created,
                false => IndexState::Found,
            };
            return Ok((index, state, content));
        }
        Err(Obstacle::Unusable(reason)) => {
            remove(path)?;
            (reason, opened())
        }
        Err(obstacle) => (String::new(), Err(obstacle)),
    };
    match created {
        Ok(opened) => opened.map(|(index, _, content)| (index, IndexState::Rebuilt { reason }, content)),
        Err(Obstacle::Failed(error)) if is_lock(&error) => Err(StoreError::InUse {
            folder: folder.to_owned(),
        }),
        Err(Obstacle::Failed(source)) => Err(source).during("opening it"),
        Err(Obstacle::Unusable(what)) => Err(StoreError::IndexDamaged { what }),
    }
}

/// The database, and whether it was just made.
fn connect(path: &Path, busy: Duration) -> Result<(Connection, bool), Obstacle> {
    let mut index = Connection::open(path)?;
    index.busy_timeout(busy)?;
    index.set_prepared_statement_cache_capacity(64);
    index.execute_batch(SETTINGS)?;
    let number =
        |index: &Connection, pragma: &str| index.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, version) = (number(&index, "application_id")?, number(&index, "user_version")?);
    let objects: i64 = index.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (application, version, objects) == (0, 0, 0) {
        let transaction = index.transaction()?;
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
        return Ok((index, true));
    }
    if application != APPLICATION {
        return Err(Obstacle::Unusable(
            "it is a database of another program".to_owned(),
        ));
    }
    if version != VERSION {
        return Err(Obstacle::Unusable(format!(
            "it has version {version}, this program writes version {VERSION}"
        )));
    }
    let found: String = index.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(Obstacle::Unusable(found));
    }
    for table in TABLE_NAMES {
        if !index.table_exists(None, table)? {
            return Err(Obstacle::Unusable(format!("it has no table {table}")));
        }
    }
    Ok((index, false))
}

/// Removes a database and what SQLite keeps beside it.
fn remove(path: &Path) -> Result<(), StoreError> {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        let file = PathBuf::from(name);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::file("remove", &file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}
