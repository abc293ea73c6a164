//! What questions were given to be answered from: passages, earlier exchanges, skills, kept with the question.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, params};

use super::error::{StoreError, Trouble};
use super::types::{Given, Role, TurnId};
use super::{ChatStore, paths, storable};

/// Most things one question can be given.
const MOST_GIVEN: usize = 256;

impl ChatStore {
    /// Gives a question what it is to be answered from, in order, in place of what it had.
    ///
    /// # Errors
    /// When the turn is no question of a chat that is there, when it is given more than a prompt can hold, or when the
    /// file cannot be written.
    pub fn set_given(&self, question: TurnId, given: &[Given]) -> Result<(), StoreError> {
        if given.len() > MOST_GIVEN {
            return Err(StoreError::refused(format!(
                "a question can be given {MOST_GIVEN} passages at most, and these are {}; choose fewer",
                given.len()
            )));
        }
        self.write(|transaction| {
            if paths::living(transaction, question)?.role != Role::User {
                return Err(StoreError::refused(
                    "only a question can be given passages, and this is an answer",
                )
                .into());
            }
            transaction
                .prepare_cached("DELETE FROM given WHERE turn = ?1")?
                .execute([question])?;
            insert(transaction, question, given)
        })
    }

    /// What each question from the chat's first to this turn was given.
    ///
    /// # Errors
    /// When the turn is not there, or the file cannot be read.
    pub fn given_up_to(&self, turn: TurnId) -> Result<HashMap<TurnId, Vec<Given>>, StoreError> {
        self.read(|connection| {
            paths::living(connection, turn)?;
            let mut select = connection.prepare_cached(
                "WITH RECURSIVE path (id) AS (
                     SELECT ?1
                     UNION ALL
                     SELECT up.parent FROM path JOIN turns up ON up.id = path.id WHERE up.parent IS NOT NULL
                 )
                 SELECT g.turn, g.label, g.text, g.source FROM path JOIN given g ON g.turn = path.id
                 ORDER BY g.turn, g.number",
            )?;
            let mut rows = select.query([turn])?;
            let mut all: HashMap<TurnId, Vec<Given>> = HashMap::new();
            while let Some(row) = rows.next()? {
                // What a later version wrote in another way is not worth losing the chat.
                let source: String = row.get(3)?;
                if let Ok(source) = serde_json::from_str(&source) {
                    let (label, text) = (row.get(1)?, row.get(2)?);
                    all.entry(row.get(0)?)
                        .or_default()
                        .push(Given { label, text, source });
                }
            }
            Ok(all)
        })
    }
}

/// Adds what a question was given.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    question: TurnId,
    given: &[Given],
) -> Result<(), Trouble> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO given (turn, number, label, text, source) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (number, one) in (0_i64..).zip(given) {
        let source = serde_json::to_string(&one.source).map_err(|error| {
            StoreError::refused(format!(
                "where {} comes from cannot be written ({error}); this is a fault in Reprise",
                one.label
            ))
        })?;
        insert.execute(params![
            question,
            number,
            storable(&one.label),
            storable(&one.text),
            source
        ])?;
    }
    Ok(())
}

/// What one question was given.
pub(super) fn of(connection: &Connection, question: TurnId) -> rusqlite::Result<Vec<Given>> {
    let mut select =
        connection.prepare_cached("SELECT label, text, source FROM given WHERE turn = ?1 ORDER BY number")?;
    let rows = select.query_map([question], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))
    })?;
    let mut given = Vec::new();
    for row in rows {
        let (label, text, source) = row?;
        given.extend(
            serde_json::from_str(&source)
                .ok()
                .map(|source| Given { label, text, source }),
        );
    }
    Ok(given)
}
