//! The format of the file, as the steps that lead to it. A step that was released is never changed: a new one follows it.

use rusqlite::Connection;

use super::error::{StoreError, Trouble};

/// SQL that takes a file from the version before to the next; the first one makes version 1 out of nothing.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("schema_v1.sql"),
    include_str!("schema_v2.sql"),
    include_str!("schema_v3.sql"),
    include_str!("schema_v4.sql"),
];

/// The version that a list of steps leads to.
pub(super) fn newest(migrations: &[&str]) -> i64 {
    migrations.len() as i64
}

/// The version of an open file; 0 is a file nothing was ever written to.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Takes an open file to the newest version, each step whole or not at all.
pub(super) fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), Trouble> {
    let from = version(connection)?;
    // A step may rebuild a table that others refer to; whether all references hold is checked at the step's end.
    connection.pragma_update(None, "foreign_keys", false)?;
    for (number, sql) in (1_i64..).zip(migrations) {
        if number <= from {
            continue;
        }
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        if transaction.prepare("PRAGMA foreign_key_check")?.exists([])? {
            return Err(StoreError::refused(format!("step {number} leaves a reference to nothing")).into());
        }
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
        tracing::info!(number, "chat store migrated");
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(())
}
