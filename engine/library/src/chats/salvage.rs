//! What can still be read of a damaged file, copied row by row into a new one, with its references mended: a chat
//! whose own row is lost gets a new one, an answer whose question is lost gets a placeholder.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Transaction, params, params_from_iter};

use super::error::{StoreError, Trouble};
use super::{damage, open, schema};

/// Readings of single ranges before a table is given up; a broken page costs about two for each row that was on it.
const MOST_READINGS: usize = 200_000;

const LOST_QUESTION: &str = "(This question was lost when the file was damaged.)";
const LOST_TITLE: &str = "Recovered chat";

/// How much was saved of what a person can see.
#[derive(Debug, Default)]
pub(super) struct Saved {
    pub(super) chats: i64,
    turns: i64,
}

impl std::fmt::Display for Saved {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{} chat(s) with {} question(s) and answer(s)",
            self.chats, self.turns
        )
    }
}

/// Copies what can be read of `from` into the new file `to`.
pub(super) fn salvage(from: &Path, to: &Path, migrations: &[&str]) -> Result<Saved, StoreError> {
    let fill = || -> Result<Saved, Trouble> {
        let mut target = open::connect(to)?;
        schema::migrate(&mut target, migrations)?;
        let Ok(source) = open_in_spite_of_faults(from) else {
            return Ok(Saved::default());
        };
        target.pragma_update(None, "foreign_keys", false)?;
        let transaction = target.transaction()?;
        for table in [
            "folders", "chats", "turns", "pieces", "given", "steps", "settings", "store",
        ] {
            copy_table(&source, &transaction, table)?;
        }
        keep_ids_unused(&source, &transaction)?;
        mend(&transaction)?;
        let count = |sql| transaction.query_row(sql, [], |row| row.get(0));
        let saved = Saved {
            chats: count(
                "SELECT count(*) FROM chats WHERE deleted_ms IS NULL AND (current IS NOT NULL OR draft <> '')",
            )?,
            turns: count(
                "SELECT count(*) FROM turns JOIN chats ON chats.id = turns.chat WHERE chats.deleted_ms IS NULL",
            )?,
        };
        transaction.commit()?;
        // One file without a log, which can be renamed.
        target.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
        Ok(saved)
    };
    fill().map_err(|trouble| trouble.at(to))
}

/// A connection that works with the tables it can find, and with the pages that are there.
fn open_in_spite_of_faults(path: &Path) -> rusqlite::Result<Connection> {
    let source = damage::open_to_read(path)?;
    // Nothing is written; but with this set, SQLite goes on when a part of the schema or the end of the file is missing.
    source.pragma_update(None, "writable_schema", true)?;
    // The statement that finds the fault fails, the next ones see what was read of the schema.
    if let Err(error) = source.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())) {
        tracing::warn!(%error, "reading a damaged chat store");
    }
    Ok(source)
}

/// Copies a table's readable rows. Only writing can fail: what cannot be read is what is being left behind.
fn copy_table(source: &Connection, target: &Transaction<'_>, table: &str) -> rusqlite::Result<()> {
    let there = columns(source, table).unwrap_or_default();
    let shared: Vec<String> = columns(target, table)?
        .into_iter()
        .filter(|column| there.contains(column))
        .collect();
    if shared.is_empty() {
        return Ok(());
    }
    let names = shared.join(", ");
    let marks = vec!["?"; shared.len()].join(", ");
    let mut insert = target.prepare(&format!(
        "INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})"
    ))?;
    let mut keep = |values: Vec<Value>| match insert.execute(params_from_iter(values)) {
        // A row with nonsense in it breaks a rule of the table: it is damaged, too.
        Err(error) if !is_about_the_row(&error) => Err(error),
        _ => Ok(()),
    };

    // Tables without row numbers are small; they are read as far as that goes.
    let Some((first, last)) = rowid_range(source, table) else {
        return copy_range(source, &format!("SELECT {names} FROM {table}"), None, &mut keep).map(drop);
    };
    let sql = format!("SELECT {names} FROM {table} WHERE rowid BETWEEN ?1 AND ?2");
    let mut readings = 0;
    let mut ranges = vec![(first, last)];
    while let Some((first, last)) = ranges.pop() {
        readings += 1;
        if readings > MOST_READINGS {
            tracing::warn!(table, "gave up reading a damaged table");
            break;
        }
        let is_whole = copy_range(source, &sql, Some((first, last)), &mut keep)?;
        if !is_whole && first < last {
            let middle = first + (last - first) / 2;
            ranges.push((middle + 1, last));
            ranges.push((first, middle));
        }
    }
    Ok(())
}

/// Copies the rows of one query; false when it ended in a fault of the file.
fn copy_range(
    source: &Connection,
    sql: &str,
    range: Option<(i64, i64)>,
    keep: &mut impl FnMut(Vec<Value>) -> rusqlite::Result<()>,
) -> rusqlite::Result<bool> {
    let Ok(mut select) = source.prepare_cached(sql) else {
        return Ok(false);
    };
    let width = select.column_count();
    let rows = match range {
        Some((first, last)) => select.query(params![first, last]),
        None => select.query([]),
    };
    let Ok(mut rows) = rows else { return Ok(false) };
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(true),
            Err(_) => return Ok(false),
        };
        if let Ok(values) = (0..width)
            .map(|column| row.get(column))
            .collect::<rusqlite::Result<Vec<Value>>>()
        {
            keep(values)?;
        }
    }
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT name FROM pragma_table_info(?1)")?
        .query_map([table], |row| row.get(0))?
        .collect()
}

/// The least and greatest row number there can be; none for a table without them.
fn rowid_range(source: &Connection, table: &str) -> Option<(i64, i64)> {
    source.prepare(&format!("SELECT rowid FROM {table}")).ok()?;
    let edge = |sql: String| {
        source
            .query_row(&sql, [], |row| row.get::<_, Option<i64>>(0))
            .ok()
            .flatten()
    };
    let last = edge(format!("SELECT max(rowid) FROM {table}"));
    let issued = edge(format!("SELECT seq FROM sqlite_sequence WHERE name = '{table}'"));
    Some((1, last.into_iter().chain(issued).max().unwrap_or(1 << 24)))
}

fn is_about_the_row(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{ConstraintViolation, TooBig, TypeMismatch};
    matches!(
        error.sqlite_error_code(),
        Some(ConstraintViolation | TooBig | TypeMismatch)
    )
}

/// Ids that were given out and lost must not be given out again.
fn keep_ids_unused(source: &Connection, target: &Transaction<'_>) -> rusqlite::Result<()> {
    for table in ["folders", "chats", "turns"] {
        let issued = source
            .query_row(
                "SELECT seq FROM sqlite_sequence WHERE name = ?1",
                [table],
                |row| row.get::<_, i64>(0),
            )
            .optional();
        if let Ok(Some(issued)) = issued {
            target.execute("INSERT INTO sqlite_sequence (name, seq) SELECT ?1, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)", [table])?;
            target.execute(
                "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
                params![table, issued],
            )?;
        }
    }
    Ok(())
}

/// Makes all references point to something again.
fn mend(target: &Transaction<'_>) -> rusqlite::Result<()> {
    target.execute("INSERT OR IGNORE INTO store (one) VALUES (1)", [])?;
    target.execute("DELETE FROM pieces WHERE turn NOT IN (SELECT id FROM turns)", [])?;
    target.execute("DELETE FROM given WHERE turn NOT IN (SELECT id FROM turns)", [])?;
    target.execute("DELETE FROM steps WHERE turn NOT IN (SELECT id FROM turns)", [])?;
    target.execute(
        "UPDATE chats SET folder = NULL WHERE folder NOT IN (SELECT id FROM folders)",
        [],
    )?;
    target.execute(
        "INSERT INTO chats (id, title, title_source, created_ms, updated_ms, touched)
         SELECT chat, ?1, 'none', min(created_ms), max(created_ms), (SELECT coalesce(max(touched), 0) FROM chats) + chat
         FROM turns WHERE chat NOT IN (SELECT id FROM chats) GROUP BY chat",
        [LOST_TITLE],
    )?;
    target.execute(
        "UPDATE turns SET parent = NULL
         WHERE role = 'user' AND NOT EXISTS (SELECT 1 FROM turns p WHERE p.id = turns.parent AND p.chat = turns.chat)",
        [],
    )?;
    let orphans: Vec<(i64, i64, i64)> = target
        .prepare(
            "SELECT id, chat, created_ms FROM turns t
             WHERE role = 'assistant' AND NOT EXISTS (SELECT 1 FROM turns p WHERE p.id = t.parent AND p.chat = t.chat)
             ORDER BY id",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (orphan, chat, created_ms) in orphans {
        place_question(target, orphan, chat, created_ms)?;
    }
    target.execute(
        "UPDATE chats SET current = (SELECT max(id) FROM turns WHERE chat = chats.id)
         WHERE NOT EXISTS (SELECT 1 FROM turns WHERE id = chats.current AND chat = chats.id)
            OR EXISTS (SELECT 1 FROM turns WHERE parent = chats.current)",
        [],
    )?;
    Ok(())
}

/// Gives an answer a question. A parent's id must be less than its child's: the lost question's own id is free, or
/// another of the rows that were lost around it.
fn place_question(target: &Transaction<'_>, orphan: i64, chat: i64, created_ms: i64) -> rusqlite::Result<()> {
    let free: Option<i64> = target.query_row(
        "SELECT max(gap) FROM (
             SELECT max(t.id) + 1 AS gap FROM turns t
             WHERE t.id < ?1 - 1 AND NOT EXISTS (SELECT 1 FROM turns n WHERE n.id = t.id + 1)
             UNION ALL SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM turns WHERE id = 1)
         ) WHERE gap < ?1",
        [orphan],
        |row| row.get(0),
    )?;
    // An answer was younger than its question, whose id is not used any more: there is a gap.
    let Some(free) = free else { return Ok(()) };
    target.execute(
        "INSERT INTO turns (id, chat, parent, role, state, created_ms, text)
         VALUES (?1, ?2, NULL, 'user', 'done', ?3, ?4)",
        params![free, chat, created_ms, LOST_QUESTION],
    )?;
    target.execute(
        "UPDATE turns SET parent = ?2 WHERE id = ?1",
        params![orphan, free],
    )?;
    Ok(())
}
