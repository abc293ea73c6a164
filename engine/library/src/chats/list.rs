//! The chats as a list: made, named, pinned, put into folders, put away and brought back.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, Transaction, params};

use super::error::{StoreError, Trouble};
use super::types::{ChatId, ChatList, ChatSummary, FolderId};
use super::{ChatStore, folders, storable, title};

/// Longest title a person may give, in characters.
pub(super) const LONGEST_TITLE: usize = 200;

macro_rules! summary_columns {
    () => {
        "c.id, c.title, c.folder, c.pinned, c.created_ms, c.updated_ms, c.draft"
    };
}

impl ChatStore {
    /// All chats but deleted ones and those with neither a turn nor a draft: pinned ones first, then by when something
    /// was last said.
    pub fn list(&self) -> Result<ChatList, StoreError> {
        const SQL: &str = concat!(
            "SELECT ",
            summary_columns!(),
            " FROM chats c WHERE c.deleted_ms IS NULL AND (c.current IS NOT NULL OR c.draft <> '')
             ORDER BY c.pinned DESC, c.touched DESC"
        );
        self.read(|connection| {
            let mut select = connection.prepare_cached(SQL)?;
            let chats = select
                .query_map([], summary_from)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(ChatList {
                chats,
                folders: folders::load(connection)?,
            })
        })
    }

    /// One chat as the list shows it.
    pub fn summary(&self, chat: ChatId) -> Result<ChatSummary, StoreError> {
        self.read(|connection| load_summary(connection, chat))
    }

    /// Begins a chat. It is not listed before something is in it.
    pub fn create_chat(&self) -> Result<ChatSummary, StoreError> {
        let now = self.now_ms();
        self.write(|transaction| {
            let chat = insert_chat(transaction, now, now)?;
            load_summary(transaction, chat)
        })
    }

    /// Gives a chat the title a person wants; no generated one replaces it any more.
    pub fn rename_chat(&self, chat: ChatId, title: &str) -> Result<ChatSummary, StoreError> {
        let title = storable(title);
        let title = title::one_line(&title);
        if title.is_empty() {
            return Err(StoreError::refused(
                "a chat's title cannot be empty; type at least one character",
            ));
        }
        if title.chars().count() > LONGEST_TITLE {
            return Err(StoreError::refused(format!(
                "a chat's title has at most {LONGEST_TITLE} characters; type a shorter one"
            )));
        }
        self.change(chat, "title = ?2, title_source = 'person'", &title)
    }

    /// Gives a chat a title that a model made, unless a person or a model has named it before.
    pub fn set_generated_title(&self, chat: ChatId, title: &str) -> Result<ChatSummary, StoreError> {
        let title = title::from_text(&storable(title));
        self.write(|transaction| {
            if let Some(title) = &title {
                transaction.execute(
                    "UPDATE chats SET title = ?2, title_source = 'model'
                     WHERE id = ?1 AND deleted_ms IS NULL AND title_source IN ('none', 'question')",
                    params![chat, title],
                )?;
            }
            load_summary(transaction, chat)
        })
    }

    /// Keeps a chat at the top of the list, or no longer.
    pub fn pin_chat(&self, chat: ChatId, pinned: bool) -> Result<ChatSummary, StoreError> {
        self.change(chat, "pinned = ?2", &pinned)
    }

    /// Puts a chat into a folder, or out of any.
    pub fn move_chat(&self, chat: ChatId, folder: Option<FolderId>) -> Result<ChatSummary, StoreError> {
        self.write(|transaction| {
            if let Some(folder) = folder {
                folders::require(transaction, folder)?;
            }
            change(transaction, chat, "folder = ?2", &folder)
        })
    }

    /// Hides a chat. It can be brought back until it is erased.
    pub fn delete_chat(&self, chat: ChatId) -> Result<(), StoreError> {
        let now = self.now_ms();
        self.write(|transaction| {
            let changed = transaction.execute(
                "UPDATE chats SET deleted_ms = ?2 WHERE id = ?1 AND deleted_ms IS NULL",
                params![chat, now],
            )?;
            if changed == 0 {
                Err(missing(chat).into())
            } else {
                Ok(())
            }
        })
    }

    /// Brings a deleted chat back; one that was not deleted stays as it is.
    pub fn restore_chat(&self, chat: ChatId) -> Result<ChatSummary, StoreError> {
        self.write(|transaction| {
            transaction.execute("UPDATE chats SET deleted_ms = NULL WHERE id = ?1", [chat])?;
            load_summary(transaction, chat)
        })
    }

    fn change(&self, chat: ChatId, assignment: &str, value: &dyn ToSql) -> Result<ChatSummary, StoreError> {
        self.write(|transaction| change(transaction, chat, assignment, value))
    }
}

/// Sets columns of a chat that was not deleted; `?2` in the assignment is the value.
pub(super) fn change(
    transaction: &Transaction<'_>,
    chat: ChatId,
    assignment: &str,
    value: &dyn ToSql,
) -> Result<ChatSummary, Trouble> {
    let sql = format!("UPDATE chats SET {assignment} WHERE id = ?1 AND deleted_ms IS NULL");
    transaction.prepare_cached(&sql)?.execute(params![chat, value])?;
    load_summary(transaction, chat)
}

/// Adds an empty chat at the top of the list.
pub(super) fn insert_chat(
    transaction: &Transaction<'_>,
    created_ms: i64,
    updated_ms: i64,
) -> rusqlite::Result<ChatId> {
    transaction
        .prepare_cached(
            "INSERT INTO chats (created_ms, updated_ms, touched)
             VALUES (?1, ?2, (SELECT coalesce(max(touched), 0) + 1 FROM chats))",
        )?
        .execute(params![created_ms, updated_ms])?;
    Ok(ChatId(transaction.last_insert_rowid()))
}

/// Something was said in this chat.
pub(super) fn touch(transaction: &Transaction<'_>, chat: ChatId, now: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE chats SET updated_ms = ?2, touched = (SELECT max(touched) + 1 FROM chats) WHERE id = ?1",
        )?
        .execute(params![chat, now])?;
    Ok(())
}

pub(super) fn load_summary(connection: &Connection, chat: ChatId) -> Result<ChatSummary, Trouble> {
    const SQL: &str = concat!(
        "SELECT ",
        summary_columns!(),
        " FROM chats c WHERE c.id = ?1 AND c.deleted_ms IS NULL"
    );
    let found = connection
        .prepare_cached(SQL)?
        .query_row([chat], summary_from)
        .optional()?;
    found.ok_or_else(|| missing(chat).into())
}

fn summary_from(row: &Row<'_>) -> rusqlite::Result<ChatSummary> {
    Ok(ChatSummary {
        id: row.get(0)?,
        title: row.get(1)?,
        folder: row.get(2)?,
        pinned: row.get(3)?,
        created_ms: row.get(4)?,
        updated_ms: row.get(5)?,
        draft: row.get(6)?,
    })
}

pub(super) fn missing(chat: ChatId) -> StoreError {
    StoreError::Missing {
        what: "chat",
        id: chat.0,
    }
}
