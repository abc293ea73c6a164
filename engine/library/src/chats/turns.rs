//! Writing the tree of turns: questions, answers as they come, and which branch is shown.
//!
//! A question follows an answer or begins the chat; an answer follows a question. Every change is one transaction. What
//! comes of an answer goes into rows of its own, one small commit each, and is folded into the answer at its end.

use std::borrow::Cow;

use rusqlite::{Transaction, params};

use super::error::{StoreError, Trouble};
use super::paths::{self, Place};
use super::types::{AnswerStats, Chat, ChatId, Role, Turn, TurnId, TurnState};
use super::{ChatStore, Durability, list, storable, title};

impl ChatStore {
    /// Begins a chat with a question, which may have been the draft of the chat that did not exist yet.
    pub fn begin_chat(&self, text: &str) -> Result<Turn, StoreError> {
        let text = sendable(text)?;
        let now = self.now_ms();
        self.write(|transaction| {
            let chat = list::insert_chat(transaction, now, now)?;
            transaction
                .prepare_cached("UPDATE store SET new_chat_draft = ''")?
                .execute([])?;
            insert_question(transaction, chat, None, &text, now)
        })
    }

    /// Adds what a person said after an answer, or at the chat's beginning, and shows it. The chat's draft is used up,
    /// and a chat without a title gets one. An edited question is added beside the first one, after the same parent.
    pub fn add_user_turn(
        &self,
        chat: ChatId,
        parent: Option<TurnId>,
        text: &str,
    ) -> Result<Turn, StoreError> {
        let text = sendable(text)?;
        let now = self.now_ms();
        self.write(|transaction| {
            list::load_summary(transaction, chat)?;
            if let Some(parent) = parent {
                may_follow(paths::living(transaction, parent)?, chat)?;
            }
            insert_question(transaction, chat, parent, &text, now)
        })
    }

    /// Begins an answer to a question and shows it. A second answer to the same question stands beside the first.
    pub fn begin_answer(&self, question: TurnId, model: &str) -> Result<Turn, StoreError> {
        let now = self.now_ms();
        let model = storable(model);
        self.write(|transaction| {
            let place = paths::living(transaction, question)?;
            if place.role != Role::User {
                return Err(StoreError::refused(
                    "only a question can be answered, and this turn is an answer",
                )
                .into());
            }
            let turn = insert(
                transaction,
                &NewTurn {
                    chat: place.chat,
                    parent: Some(question),
                    role: Role::Assistant,
                    state: TurnState::Writing,
                    model: Some(&model),
                    text: "",
                    now,
                },
            )?;
            paths::load_turn(transaction, turn)
        })
    }

    /// Adds to an answer that is being written. When this returns, the piece outlives the process.
    pub fn append_piece(&self, answer: TurnId, text: &str) -> Result<(), StoreError> {
        if text.is_empty() {
            return Ok(());
        }
        let text = storable(text);
        let mut writer = self.lock_writer();
        let mut append = || -> Result<(), Trouble> {
            let connection = writer.with(Durability::Process)?;
            let added = connection
                .prepare_cached(
                    "INSERT INTO pieces (turn, number, text)
                     SELECT id, (SELECT coalesce(max(number), 0) + 1 FROM pieces WHERE turn = ?1), ?2
                     FROM turns WHERE id = ?1 AND state = 'writing'",
                )?
                .execute(params![answer, text])?;
            if added == 0 {
                Err(why_not_writing(connection, answer))
            } else {
                Ok(())
            }
        };
        append().map_err(|trouble| self.explain(trouble))
    }

    /// Ends an answer: what came of it becomes its text. The state says why it ended. Without figures those of the part
    /// that was there before it was continued stay.
    pub fn finish_answer(
        &self,
        answer: TurnId,
        state: TurnState,
        stats: Option<&AnswerStats>,
        error: Option<&str>,
    ) -> Result<Turn, StoreError> {
        if state == TurnState::Writing {
            return Err(StoreError::refused(
                "an answer cannot end in the state of being written",
            ));
        }
        let stats = stats.map(serde_json::to_string).transpose().map_err(|error| {
            StoreError::refused(format!(
                "the answer's numbers cannot be written ({error}); this is a fault in Reprise"
            ))
        })?;
        let error = error.map(storable);
        let now = self.now_ms();
        self.write(|transaction| {
            let ended = transaction
                .prepare_cached(
                    "UPDATE turns
                     SET text = text || coalesce(
                             (SELECT group_concat(text, '' ORDER BY number) FROM pieces WHERE turn = ?1), ''),
                         state = ?2, stats = coalesce(?3, stats), error = ?4
                     WHERE id = ?1 AND state = 'writing'",
                )?
                .execute(params![answer, state, stats, error])?;
            if ended == 0 {
                return Err(why_not_writing(transaction, answer));
            }
            transaction
                .prepare_cached("DELETE FROM pieces WHERE turn = ?1")?
                .execute([answer])?;
            // The answer ends in order even when its chat was deleted meanwhile: the chat may be restored.
            let turn = paths::load_turn(transaction, answer)?;
            list::touch(transaction, turn.chat, now)?;
            Ok(turn)
        })
    }

    /// Goes on with an answer that ended and that nothing follows; its text and figures stay.
    pub fn continue_answer(&self, answer: TurnId) -> Result<Turn, StoreError> {
        let now = self.now_ms();
        self.write(|transaction| {
            let place = paths::living(transaction, answer)?;
            if place.role != Role::Assistant {
                return Err(StoreError::refused("only an answer can be continued, and this turn is a question").into());
            }
            if place.state == TurnState::Writing {
                return Err(StoreError::refused("this answer is still being written; wait for it or stop it").into());
            }
            if transaction.prepare_cached("SELECT 1 FROM turns WHERE parent = ?1")?.exists([answer])? {
                return Err(StoreError::refused(
                    "this answer was followed by a question and can no longer be continued; ask for a new answer",
                )
                .into());
            }
            transaction
                .prepare_cached("UPDATE turns SET state = 'writing', error = NULL WHERE id = ?1")?
                .execute([answer])?;
            list::touch(transaction, place.chat, now)?;
            show(transaction, place.chat, answer)?;
            paths::load_turn(transaction, answer)
        })
    }

    /// Shows the branch that goes through this turn, down to where one last was in it.
    pub fn select_branch(&self, turn: TurnId) -> Result<Chat, StoreError> {
        self.write(|transaction| {
            let place = paths::living(transaction, turn)?;
            let leaf = last_shown_leaf(transaction, turn)?;
            show(transaction, place.chat, leaf)?;
            paths::load_chat(transaction, place.chat)
        })
    }
}

fn sendable(text: &str) -> Result<Cow<'_, str>, StoreError> {
    if text.trim().is_empty() {
        return Err(StoreError::refused(
            "there is nothing to send; type a question first",
        ));
    }
    Ok(storable(text))
}

fn may_follow(parent: Place, chat: ChatId) -> Result<(), StoreError> {
    if parent.chat != chat {
        return Err(StoreError::refused(
            "the answer that this question follows belongs to another chat",
        ));
    }
    if parent.role != Role::Assistant {
        return Err(StoreError::refused(
            "a question follows an answer, and the turn before it is a question",
        ));
    }
    if parent.state == TurnState::Writing {
        return Err(StoreError::refused(
            "the answer before is still being written; wait for it or stop it first",
        ));
    }
    Ok(())
}

fn why_not_writing(connection: &rusqlite::Connection, answer: TurnId) -> Trouble {
    match paths::load_turn(connection, answer) {
        Ok(_) => StoreError::refused("this answer is not being written any more").into(),
        Err(trouble) => trouble,
    }
}

fn insert_question(
    transaction: &Transaction<'_>,
    chat: ChatId,
    parent: Option<TurnId>,
    text: &str,
    now: i64,
) -> Result<Turn, Trouble> {
    let state = TurnState::Done;
    let turn = insert(
        transaction,
        &NewTurn {
            chat,
            parent,
            role: Role::User,
            state,
            model: None,
            text,
            now,
        },
    )?;
    transaction
        .prepare_cached("UPDATE chats SET draft = '' WHERE id = ?1")?
        .execute([chat])?;
    transaction
        .prepare_cached(
            "UPDATE chats SET title = ?2, title_source = 'question' WHERE id = ?1 AND title_source = 'none'",
        )?
        .execute(params![chat, title::from_text(text)])?;
    paths::load_turn(transaction, turn)
}

struct NewTurn<'a> {
    chat: ChatId,
    parent: Option<TurnId>,
    role: Role,
    state: TurnState,
    model: Option<&'a str>,
    text: &'a str,
    now: i64,
}

/// Adds a turn and shows it.
fn insert(transaction: &Transaction<'_>, turn: &NewTurn<'_>) -> rusqlite::Result<TurnId> {
    transaction
        .prepare_cached(
            "INSERT INTO turns (chat, parent, role, state, model, created_ms, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            turn.chat,
            turn.parent,
            turn.role,
            turn.state,
            turn.model,
            turn.now,
            turn.text
        ])?;
    let id = TurnId(transaction.last_insert_rowid());
    list::touch(transaction, turn.chat, turn.now)?;
    show(transaction, turn.chat, id)?;
    Ok(id)
}

/// Makes a leaf the one that is shown, and every turn above it remember the way to it.
pub(super) fn show(transaction: &Transaction<'_>, chat: ChatId, leaf: TurnId) -> rusqlite::Result<()> {
    // Below what is shown, all turns but the last know the way. Walking up for each new turn would make a long chat slow.
    let follows_shown = transaction
        .prepare_cached(
            "SELECT 1 FROM chats c JOIN turns t ON t.parent = c.current WHERE c.id = ?1 AND t.id = ?2",
        )?
        .exists(params![chat, leaf])?;
    let sql = if follows_shown {
        "UPDATE turns SET last_child = ?1 WHERE id = (SELECT parent FROM turns WHERE id = ?1)"
    } else {
        "WITH RECURSIVE up (id, child) AS (
             SELECT parent, id FROM turns WHERE id = ?1
             UNION ALL
             SELECT t.parent, t.id FROM up JOIN turns t ON t.id = up.id
         )
         UPDATE turns SET last_child = up.child FROM up
         WHERE turns.id = up.id AND turns.last_child IS NOT up.child"
    };
    transaction.prepare_cached(sql)?.execute([leaf])?;
    transaction
        .prepare_cached("UPDATE chats SET current = ?2 WHERE id = ?1")?
        .execute(params![chat, leaf])?;
    Ok(())
}

/// The leaf under a turn where one last was; where one never was, the youngest child leads on.
pub(super) fn last_shown_leaf(transaction: &Transaction<'_>, turn: TurnId) -> rusqlite::Result<TurnId> {
    // A child's id is greater than its parent's, so the greatest id of the way down is its end.
    transaction
        .prepare_cached(
            "WITH RECURSIVE down (id) AS (
                 SELECT ?1
                 UNION ALL
                 SELECT coalesce(
                     (SELECT c.id FROM turns c WHERE c.id = t.last_child AND c.parent = t.id),
                     (SELECT max(c.id) FROM turns c WHERE c.parent = t.id))
                 FROM down JOIN turns t ON t.id = down.id
             )
             SELECT max(id) FROM down",
        )?
        .query_row([turn], |row| row.get(0))
}
