//! What answers did with tools, as the person was told it while they were made: kept with the answer.

use rusqlite::{Connection, Transaction, params};

use super::error::{StoreError, Trouble};
use super::types::{Role, TurnId};
use super::{ChatStore, paths, storable};
use crate::skills::StepTold;

/// Most steps that are kept of one answer; an answer is asked for a few times, and makes a few calls each time.
const MOST_STEPS: usize = 256;

impl ChatStore {
    /// Adds a step to those that an answer made.
    ///
    /// # Errors
    /// When there is no such answer, or the file cannot be written.
    pub fn add_step(&self, answer: TurnId, step: &StepTold) -> Result<(), StoreError> {
        self.write(|transaction| {
            if paths::living(transaction, answer)?.role != Role::Assistant {
                return Err(StoreError::refused("only an answer makes steps, and this is a question").into());
            }
            let number: i64 = transaction
                .prepare_cached("SELECT coalesce(max(number) + 1, 0) FROM steps WHERE turn = ?1")?
                .query_row([answer], |row| row.get(0))?;
            insert(transaction, answer, number, std::slice::from_ref(step))
        })
    }

    /// Forgets the steps of an answer, which is made anew.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget_steps(&self, answer: TurnId) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction
                .prepare_cached("DELETE FROM steps WHERE turn = ?1")?
                .execute([answer])?;
            Ok(())
        })
    }

    /// The steps that an answer made, in order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn steps_of(&self, answer: TurnId) -> Result<Vec<StepTold>, StoreError> {
        self.read(|connection| Ok(of(connection, answer)?))
    }
}

/// Adds steps from this number on.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    answer: TurnId,
    first: i64,
    steps: &[StepTold],
) -> Result<(), Trouble> {
    let mut insert =
        transaction.prepare_cached("INSERT INTO steps (turn, number, step) VALUES (?1, ?2, ?3)")?;
    for (number, step) in (first..).zip(steps).take(MOST_STEPS) {
        let step = serde_json::to_string(step).map_err(|error| {
            StoreError::refused(format!(
                "a step cannot be written ({error}); this is a fault in Reprise"
            ))
        })?;
        insert.execute(params![answer, number, storable(&step)])?;
    }
    Ok(())
}

/// The steps of one answer. What a later version wrote in another way is left out.
pub(super) fn of(connection: &Connection, answer: TurnId) -> rusqlite::Result<Vec<StepTold>> {
    let mut select =
        connection.prepare_cached("SELECT step FROM steps WHERE turn = ?1 ORDER BY number LIMIT ?2")?;
    let rows = select.query_map(params![answer, MOST_STEPS as i64], |row| row.get::<_, String>(0))?;
    let mut steps = Vec::new();
    for step in rows {
        steps.extend(serde_json::from_str(&step?).ok());
    }
    Ok(steps)
}
