//! Reading the tree of turns: single turns, and paths from the first turn to one further down. Paths are walked inside
//! SQLite, so a chat of any length needs no stack of ours.

use rusqlite::{Connection, OptionalExtension, Row};

use super::error::{StoreError, Trouble};
use super::types::{Branch, Chat, ChatId, Role, Turn, TurnId, TurnState};
use super::{ChatStore, list};

/// The columns of a turn `t`, as [`turn_from`] takes them.
macro_rules! turn_columns {
    () => {
        "t.id, t.chat, t.parent, t.role, t.state, t.error, t.stats, t.created_ms,
         t.text || coalesce((SELECT group_concat(p.text, '' ORDER BY p.number) FROM pieces p WHERE p.turn = t.id), ''),
         (SELECT group_concat(s.id, ' ' ORDER BY s.id) FROM turns s WHERE s.chat = t.chat AND s.parent IS t.parent)"
    };
}

/// The turns from the first of a chat to `?1`. A child's id is greater than its parent's, so the order of ids is the
/// order of the path.
pub(super) const PATH: &str = concat!(
    "WITH RECURSIVE path (id) AS (
         SELECT ?1
         UNION ALL
         SELECT up.parent FROM path JOIN turns up ON up.id = path.id WHERE up.parent IS NOT NULL
     )
     SELECT ",
    turn_columns!(),
    " FROM path CROSS JOIN turns t ON t.id = path.id ORDER BY t.id"
);

impl ChatStore {
    /// A chat with the branch of it that is shown.
    pub fn chat(&self, chat: ChatId) -> Result<Chat, StoreError> {
        self.read(|connection| load_chat(connection, chat))
    }

    /// One turn.
    pub fn turn(&self, turn: TurnId) -> Result<Turn, StoreError> {
        self.read(|connection| {
            living(connection, turn)?;
            load_turn(connection, turn)
        })
    }

    /// The turns from the first of the chat to this one.
    pub fn path_to(&self, turn: TurnId) -> Result<Vec<Turn>, StoreError> {
        self.read(|connection| {
            living(connection, turn)?;
            load_path(connection, turn)
        })
    }
}

pub(super) fn load_chat(connection: &Connection, chat: ChatId) -> Result<Chat, Trouble> {
    let summary = list::load_summary(connection, chat)?;
    let current: Option<TurnId> = connection
        .prepare_cached("SELECT current FROM chats WHERE id = ?1")?
        .query_row([chat], |row| row.get(0))?;
    let turns = current
        .map(|leaf| load_path(connection, leaf))
        .transpose()?
        .unwrap_or_default();
    Ok(Chat { summary, turns })
}

pub(super) fn load_turn(connection: &Connection, turn: TurnId) -> Result<Turn, Trouble> {
    const SQL: &str = concat!("SELECT ", turn_columns!(), " FROM turns t WHERE t.id = ?1");
    let found = connection
        .prepare_cached(SQL)?
        .query_row([turn], turn_from)
        .optional()?;
    found.ok_or_else(|| missing(turn).into())
}

fn load_path(connection: &Connection, last: TurnId) -> Result<Vec<Turn>, Trouble> {
    let mut select = connection.prepare_cached(PATH)?;
    let turns = select
        .query_map([last], turn_from)?
        .collect::<rusqlite::Result<_>>()?;
    Ok(turns)
}

fn turn_from(row: &Row<'_>) -> rusqlite::Result<Turn> {
    let id: TurnId = row.get(0)?;
    let siblings: String = row.get(9)?;
    let siblings: Vec<TurnId> = siblings
        .split(' ')
        .filter_map(|id| id.parse().ok().map(TurnId))
        .collect();
    let place = siblings
        .iter()
        .position(|sibling| *sibling == id)
        .unwrap_or_default();
    let stats: Option<String> = row.get(6)?;
    Ok(Turn {
        id,
        chat: row.get(1)?,
        parent: row.get(2)?,
        role: row.get(3)?,
        state: row.get(4)?,
        error: row.get(5)?,
        // Numbers about an answer that a later version wrote in another way are not worth losing the answer.
        stats: stats.and_then(|stats| serde_json::from_str(&stats).ok()),
        created_ms: row.get(7)?,
        text: row.get(8)?,
        branch: Branch {
            siblings,
            index: u32::try_from(place).unwrap_or(u32::MAX),
        },
    })
}

/// What changing the tree needs to know about a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) chat: ChatId,
    pub(super) role: Role,
    pub(super) state: TurnState,
}

/// Where a turn stands, if its chat was not deleted.
pub(super) fn living(connection: &Connection, turn: TurnId) -> Result<Place, Trouble> {
    let found = connection
        .prepare_cached(
            "SELECT t.chat, t.role, t.state FROM turns t JOIN chats c ON c.id = t.chat
             WHERE t.id = ?1 AND c.deleted_ms IS NULL",
        )?
        .query_row([turn], |row| {
            Ok(Place {
                chat: row.get(0)?,
                role: row.get(1)?,
                state: row.get(2)?,
            })
        })
        .optional()?;
    found.ok_or_else(|| missing(turn).into())
}

pub(super) fn missing(turn: TurnId) -> StoreError {
    StoreError::Missing {
        what: "turn",
        id: turn.0,
    }
}
