//! What questions were given to be answered from: passages, earlier exchanges, skills, kept with the question.

use std::collections::HashMap;

use reprise_engine::{Owner, SegmentKind};
use rusqlite::{Connection, Transaction, params};

use super::error::{StoreError, Trouble};
use super::types::{Given, Origin, Role, TurnId};
use super::{ChatStore, paths, storable};
use crate::assistant::Part;
use crate::index::DOCUMENT_OWNER;
use crate::skills::SKILL_OWNER;

/// Most things one question can be given.
const MOST_GIVEN: usize = 256;

impl Given {
    /// As a part of a message, kept for its own owner.
    pub fn part(&self) -> Part {
        let (kind, owner) = match &self.source {
            Origin::Passage { owner, .. } => {
                (SegmentKind::Passage, Owner::new(DOCUMENT_OWNER, &**owner).ok())
            }
            Origin::Skill { name } => (SegmentKind::Skill, Owner::new(SKILL_OWNER, &**name).ok()),
            // It is the chat's own.
            Origin::Earlier { .. } => (SegmentKind::Passage, None),
            Origin::Result {
                skill: Some(name), ..
            } => (SegmentKind::Skill, Owner::new(SKILL_OWNER, &**name).ok()),
            Origin::Call | Origin::Result { skill: None, .. } => (SegmentKind::Turn, None),
        };
        Part {
            text: self.text.clone(),
            kind,
            owner,
        }
    }
}

impl ChatStore {
    /// Gives a question what it is to be answered from, or an answer the calls it was made with, in order, in place of what
    /// the turn had.
    ///
    /// # Errors
    /// When there is no such turn, when it is given what belongs to the other role or more than a prompt can hold, or when
    /// the file cannot be written.
    pub fn set_given(&self, turn: TurnId, given: &[Given]) -> Result<(), StoreError> {
        if given.len() > MOST_GIVEN {
            return Err(StoreError::refused(format!(
                "a question can be given {MOST_GIVEN} passages at most, and these are {}; choose fewer",
                given.len()
            )));
        }
        self.write(|transaction| {
            let role = paths::living(transaction, turn)?.role;
            if given.iter().any(|one| !belongs_to(one, role)) {
                return Err(StoreError::refused(match role {
                    Role::User => "calls of tools belong to an answer, and this is a question",
                    Role::Assistant => "only a question can be given passages, and this is an answer",
                })
                .into());
            }
            transaction
                .prepare_cached("DELETE FROM given WHERE turn = ?1")?
                .execute([turn])?;
            insert(transaction, turn, given)
        })
    }

    /// The owners of documents among the things that questions were given last, in any chat, the latest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn owners_given_last(&self, most_things: usize) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let mut select =
                connection.prepare_cached("SELECT source FROM given ORDER BY turn DESC, number LIMIT ?1")?;
            let mut rows = select.query([most_things])?;
            let mut owners: Vec<String> = Vec::new();
            while let Some(row) = rows.next()? {
                let source: String = row.get(0)?;
                if let Ok(Origin::Passage { owner, .. }) = serde_json::from_str(&source)
                    && !owners.contains(&owner)
                {
                    owners.push(owner);
                }
            }
            Ok(owners)
        })
    }

    /// What each question from the chat's first to this turn was given, and each answer was made with.
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

/// Whether something can stand before a turn of this role.
pub(super) fn belongs_to(given: &Given, role: Role) -> bool {
    given.source.is_of_answer() == (role == Role::Assistant)
}

/// Adds what a turn was given.
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
