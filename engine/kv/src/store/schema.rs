//! The index as a database: its tables, and opening it so that whatever is found there ends in a sound index.

use super::error::{During, StoreError, is_damage, is_lock};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the tables, of the files and of how hashes are made. Another one is not read: KV can be computed
/// again.
pub(super) const VERSION: i32 = 1;
/// "RKVS": marks the database as the index of a store.
const APPLICATION: i32 = 0x524b_5653;

/// Pages of 8 KiB: 256 tokens and their key in the tree then fit a cell of a page, so that a step down the tree reads no
/// overflow pages.
const SETTINGS: &str = "
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
        content INTEGER NOT NULL,
        base INTEGER NOT NULL,
        count INTEGER NOT NULL,
        ratio REAL NOT NULL,
        made_ms INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        pinned INTEGER NOT NULL,
        weight REAL NOT NULL,
        used_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX chunk_content ON chunk (space, content);
    CREATE TABLE text (
        chunk INTEGER PRIMARY KEY,
        tokens BLOB NOT NULL
    ) STRICT;
    CREATE TABLE tree (
        space INTEGER NOT NULL,
        parent BLOB NOT NULL,
        tokens BLOB NOT NULL,
        chunk INTEGER NOT NULL,
        PRIMARY KEY (space, parent, tokens)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE gram (
        space INTEGER NOT NULL,
        hash INTEGER NOT NULL,
        chunk INTEGER NOT NULL,
        PRIMARY KEY (space, hash, chunk)
    ) STRICT, WITHOUT ROWID;
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
const TABLE_NAMES: [&str; 8] = [
    "space", "chunk", "text", "tree", "gram", "shard", "owner", "holding",
];

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

/// Opens the index at `path`, or makes an empty one when there is none or it is of no use.
pub(super) fn open(
    path: &Path,
    folder: &Path,
    busy: Duration,
) -> Result<(Connection, IndexState), StoreError> {
    let (reason, created) = match connect(path, busy) {
        Ok((index, true)) => return Ok((index, IndexState::Created)),
        Ok((index, false)) => return Ok((index, IndexState::Found)),
        Err(Obstacle::Unusable(reason)) => {
            remove(path)?;
            (reason, connect(path, busy))
        }
        Err(obstacle) => (String::new(), Err(obstacle)),
    };
    match created {
        Ok((index, _)) => Ok((index, IndexState::Rebuilt { reason })),
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
