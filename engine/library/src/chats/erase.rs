//! Erasing for good. A deleted chat is only hidden; here its rows go, then the bytes: the index is merged without them,
//! the file is written anew and the log beside it is emptied.

use rusqlite::params;

use super::error::{StoreError, Trouble};
use super::types::ChatId;
use super::{ChatStore, Durability, index};

impl ChatStore {
    /// Erases the deleted chats; with an age, those that were deleted at least so many milliseconds ago. Takes time in
    /// proportion to the whole file, during which nothing else can be done with it. Gives the chats that are gone, so
    /// that what was computed from them can go, too.
    pub fn erase_deleted(&self, older_than_ms: Option<i64>) -> Result<Vec<ChatId>, StoreError> {
        let now = self.now_ms();
        let (chats, is_scrub_due) = self.write(|transaction| {
            // Deleted in the future means the clock was set back: the wait begins now.
            transaction.execute("UPDATE chats SET deleted_ms = ?1 WHERE deleted_ms > ?1", [now])?;
            let latest = older_than_ms.map_or(i64::MAX, |age| now.saturating_sub(age));
            let chats: Vec<ChatId> = transaction
                .prepare("SELECT id FROM chats WHERE deleted_ms <= ?1 ORDER BY id")?
                .query_map([latest], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            for chat in &chats {
                transaction
                    .prepare_cached(
                        "DELETE FROM pieces WHERE turn IN (SELECT id FROM turns WHERE chat = ?1)",
                    )?
                    .execute([chat])?;
                transaction
                    .prepare_cached("DELETE FROM turns WHERE chat = ?1")?
                    .execute([chat])?;
                transaction
                    .prepare_cached("DELETE FROM chats WHERE id = ?1")?
                    .execute([chat])?;
            }
            transaction.execute(
                "UPDATE store SET scrub_due = 1 WHERE ?1",
                params![!chats.is_empty()],
            )?;
            let is_scrub_due = transaction.query_row("SELECT scrub_due FROM store", [], |row| row.get(0))?;
            Ok((chats, is_scrub_due))
        })?;
        if is_scrub_due && let Err(reason) = self.scrub() {
            return Err(StoreError::TracesLeft {
                chats,
                reason: Box::new(reason),
            });
        }
        Ok(chats)
    }

    /// Every chat there is, those that are deleted and not yet erased included.
    pub fn all_ids(&self) -> Result<Vec<ChatId>, StoreError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached("SELECT id FROM chats ORDER BY id")?;
            Ok(select
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Removes the bytes of erased rows from the file and its log.
    fn scrub(&self) -> Result<(), StoreError> {
        let mut writer = self.lock_writer();
        // A reader would keep the log from being emptied.
        let _reader = self.lock_reader();
        let mut scrub = || -> Result<(), Trouble> {
            let connection = writer.with(Durability::Power)?;
            match index::merge(connection) {
                Err(error) if index::is_at_fault(&error) => index::rebuild(connection)?,
                outcome => outcome?,
            }
            // Pages may keep remains of rows that once moved to another page. A file written anew has none.
            connection.execute_batch("VACUUM")?;
            connection.execute("UPDATE store SET scrub_due = 0", [])?;
            let is_busy: bool =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            if is_busy {
                connection.execute("UPDATE store SET scrub_due = 1", [])?;
                return Err(StoreError::Locked {
                    path: self.path.clone(),
                }
                .into());
            }
            Ok(())
        };
        scrub().map_err(|trouble| self.explain(trouble))
    }
}
