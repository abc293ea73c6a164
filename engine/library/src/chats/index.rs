//! The index that search uses. It holds nothing that is not in the chats themselves, so when it is found broken it is
//! made anew and what failed is tried again: a fault in it is no reason to stop a conversation.

use rusqlite::{Connection, TransactionBehavior, ffi};

/// Whether the index, and not the chats, is what is damaged.
pub(super) fn is_at_fault(error: &rusqlite::Error) -> bool {
    // An index that lost its own records writes what is there already. The chats' tables have no key that could be.
    let codes = [ffi::SQLITE_CORRUPT_VTAB, ffi::SQLITE_CONSTRAINT_PRIMARYKEY];
    error
        .sqlite_error()
        .is_some_and(|error| codes.contains(&error.extended_code))
}

/// Makes the index anew out of the chats.
pub(super) fn rebuild(connection: &mut Connection) -> rusqlite::Result<()> {
    tracing::warn!("the chats' search index is damaged and is made anew");
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute("INSERT INTO title_index (title_index) VALUES ('rebuild')", [])?;
    transaction.execute("INSERT INTO text_index (text_index) VALUES ('rebuild')", [])?;
    transaction.commit()
}

/// Drops what was deleted from the index: until then it is only marked.
pub(super) fn merge(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO title_index (title_index) VALUES ('optimize')", [])?;
    connection.execute("INSERT INTO text_index (text_index) VALUES ('optimize')", [])?;
    Ok(())
}
