//! Which chats a model may still name.

use rusqlite::OptionalExtension;

use super::error::StoreError;
use super::types::{ChatId, ChatSummary};
use super::{ChatStore, list};

impl ChatStore {
    /// The first question of a chat that is named by its question alone; none when a person or a model named it.
    pub fn unnamed_question(&self, chat: ChatId) -> Result<Option<String>, StoreError> {
        self.read(|connection| {
            list::load_summary(connection, chat)?;
            let question = connection
                .prepare_cached(
                    "SELECT t.text FROM turns t JOIN chats c ON c.id = t.chat
                     WHERE c.id = ?1 AND c.title_source IN ('none', 'question') AND t.role = 'user'
                     ORDER BY t.id LIMIT 1",
                )?
                .query_row([chat], |row| row.get(0))
                .optional()?;
            Ok(question)
        })
    }

    /// Leaves a chat the title its question gave it: a model that found no better one is not to be asked again.
    pub fn keep_question_title(&self, chat: ChatId) -> Result<ChatSummary, StoreError> {
        self.write(|transaction| {
            transaction.execute(
                "UPDATE chats SET title_source = 'model' WHERE id = ?1 AND title_source = 'question'",
                [chat],
            )?;
            list::load_summary(transaction, chat)
        })
    }
}
