//! What belongs to no single turn: settings, and drafts.

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::error::StoreError;
use super::types::ChatId;
use super::{ChatStore, list, storable};

impl ChatStore {
    /// The value kept under this key.
    pub fn setting(&self, key: &str) -> Result<Option<Value>, StoreError> {
        self.read(|connection| {
            let text: Option<String> = connection
                .prepare_cached("SELECT value FROM settings WHERE key = ?1")?
                .query_row([key], |row| row.get(0))
                .optional()?;
            let Some(text) = text else { return Ok(None) };
            serde_json::from_str(&text).map(Some).map_err(|error| {
                StoreError::refused(format!(
                    "the setting “{key}” in {} cannot be read ({error}); set it again",
                    self.path().display()
                ))
                .into()
            })
        })
    }

    /// Keeps a value under a key, instead of what was there.
    pub fn set_setting(&self, key: &str, value: &Value) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO settings (key, value) VALUES (?1, ?2)")?
                .execute(params![key, value.to_string()])?;
            Ok(())
        })
    }

    /// What was typed and not sent, where no chat is open yet.
    pub fn new_chat_draft(&self) -> Result<String, StoreError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached("SELECT new_chat_draft FROM store")?;
            Ok(select
                .query_row([], |row| row.get(0))
                .optional()?
                .unwrap_or_default())
        })
    }

    /// What the next message is to be asked with beside its text, as it was kept: in a chat, or where none is open yet.
    /// Nothing where none was picked, or what is there cannot be read: that is picked again sooner than mended.
    pub fn draft_with(&self, chat: Option<ChatId>) -> Result<Option<Value>, StoreError> {
        let text: Option<String> = self.read(|connection| {
            let (sql, parameter) = match chat {
                Some(chat) => (
                    "SELECT draft_with FROM chats WHERE id = ?1 AND deleted_ms IS NULL",
                    chat.0,
                ),
                None => ("SELECT new_chat_draft_with FROM store WHERE one = ?1", 1),
            };
            let mut select = connection.prepare_cached(sql)?;
            Ok(select.query_row([parameter], |row| row.get(0)).optional()?)
        })?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Keeps what the next message is to be asked with; none lets go of it. Does not move the chat in the list.
    pub fn set_draft_with(&self, chat: Option<ChatId>, with: Option<&Value>) -> Result<(), StoreError> {
        let with = with.map_or_else(String::new, Value::to_string);
        self.write(|transaction| match chat {
            Some(chat) => list::change(transaction, chat, "draft_with = ?2", &with).map(drop),
            None => {
                transaction
                    .prepare_cached("UPDATE store SET new_chat_draft_with = ?1")?
                    .execute([&with])?;
                Ok(())
            }
        })
    }

    /// Keeps what is typed and not sent: in a chat, or where none is open yet. Does not move the chat in the list.
    pub fn set_draft(&self, chat: Option<ChatId>, text: &str) -> Result<(), StoreError> {
        let text = storable(text);
        self.write(|transaction| match chat {
            Some(chat) => list::change(transaction, chat, "draft = ?2", &text).map(drop),
            None => {
                transaction
                    .prepare_cached("UPDATE store SET new_chat_draft = ?1")?
                    .execute([&text])?;
                Ok(())
            }
        })
    }
}
