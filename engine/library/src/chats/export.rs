//! Writing a chat out: as Markdown to be read, or as JSON with every branch, to be kept and imported again.
//!
//! The JSON names turns by their place in the file, parents before children, so it means the same in any store.

use std::fmt::Write as _;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::error::{StoreError, Trouble};
use super::types::{AnswerStats, ChatId, ExportFormat, Given, Role, TurnId, TurnState};
use super::{ChatStore, given, list, paths, steps};
use crate::skills::StepTold;

/// What the JSON calls itself.
pub(super) const FORMAT: &str = "reprise-chat";
/// The version of the JSON that is written, and the newest that is read.
pub(super) const VERSION: u32 = 1;

/// A chat as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChatFile {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) title: Option<String>,
    pub(super) created_ms: i64,
    /// The place of the last turn that is shown.
    pub(super) current: Option<usize>,
    pub(super) turns: Vec<TurnRecord>,
}

/// A turn as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnRecord {
    /// The parent's place, before this turn's own.
    pub(super) parent: Option<usize>,
    pub(super) role: Role,
    pub(super) text: String,
    pub(super) state: TurnState,
    pub(super) created_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<AnswerStats>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What a question was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) given: Vec<Given>,
    /// What an answer did with tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<StepTold>,
}

impl ChatStore {
    /// Writes a chat out: its shown branch as Markdown, or all of it as JSON for [`ChatStore::import_json`].
    pub fn export(&self, chat: ChatId, format: ExportFormat) -> Result<String, StoreError> {
        self.read(|connection| match format {
            ExportFormat::Markdown => markdown(connection, chat),
            ExportFormat::Json => json(connection, chat),
        })
    }
}

fn markdown(connection: &Connection, chat: ChatId) -> Result<String, Trouble> {
    let chat = paths::load_chat(connection, chat)?;
    let mut out = format!("# {}\n", chat.summary.title.as_deref().unwrap_or("Untitled chat"));
    for turn in &chat.turns {
        let who = match turn.role {
            Role::User => "You",
            Role::Assistant => "Assistant",
        };
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "\n## {who}, {}\n\n{}\n",
            utc(turn.created_ms),
            turn.text.trim_end()
        );
        if let Some(remark) = remark(turn.state) {
            let _ = write!(out, "\n*({remark})*\n");
        }
        let given = given::of(connection, turn.id)?;
        if !given.is_empty() && turn.role == Role::User {
            let labels: Vec<_> = given.iter().map(|one| one.label.as_str()).collect();
            let _ = write!(out, "\n*(read along: {})*\n", labels.join("; "));
        }
    }
    Ok(out)
}

/// What a reader should know about how an answer ended.
fn remark(state: TurnState) -> Option<&'static str> {
    match state {
        TurnState::Done => None,
        TurnState::Writing => Some("still being written"),
        TurnState::Stopped => Some("stopped"),
        TurnState::Limit => Some("ended at the limit of its length"),
        TurnState::Window => Some("ended because the model's window was full"),
        TurnState::Repeating => Some("ended because it repeated itself"),
        TurnState::Interrupted => Some("interrupted"),
        TurnState::Failed => Some("failed"),
    }
}

fn json(connection: &Connection, chat: ChatId) -> Result<String, Trouble> {
    let summary = list::load_summary(connection, chat)?;
    let current: Option<TurnId> =
        connection.query_row("SELECT current FROM chats WHERE id = ?1", [chat], |row| {
            row.get(0)
        })?;
    let mut ids: Vec<TurnId> = Vec::new();
    let mut turns = Vec::new();
    let mut select = connection.prepare_cached(
        "SELECT t.id, t.parent, t.role, t.state, t.created_ms, t.model, t.stats, t.error,
                t.text || coalesce((SELECT group_concat(p.text, '' ORDER BY p.number) FROM pieces p WHERE p.turn = t.id), '')
         FROM turns t WHERE t.chat = ?1 ORDER BY t.id",
    )?;
    let mut rows = select.query([chat])?;
    // In the order of ids, parents come before their children and can be found by halving.
    let place = |ids: &[TurnId], id: Option<TurnId>| id.and_then(|id| ids.binary_search(&id).ok());
    while let Some(row) = rows.next()? {
        let stats: Option<String> = row.get(6)?;
        let id = row.get(0)?;
        turns.push(TurnRecord {
            given: given::of(connection, id)?,
            steps: steps::of(connection, id)?,
            parent: place(&ids, row.get(1)?),
            role: row.get(2)?,
            state: row.get(3)?,
            created_ms: row.get(4)?,
            model: row.get(5)?,
            stats: stats.and_then(|stats| serde_json::from_str(&stats).ok()),
            error: row.get(7)?,
            text: row.get(8)?,
        });
        ids.push(id);
    }
    let file = ChatFile {
        format: FORMAT.to_string(),
        version: VERSION,
        title: summary.title,
        created_ms: summary.created_ms,
        current: place(&ids, current),
        turns,
    };
    serde_json::to_string_pretty(&file).map_err(|error| {
        StoreError::refused(format!(
            "the chat cannot be written as JSON ({error}); this is a fault in Reprise"
        ))
        .into()
    })
}

/// A time in UTC as ISO 8601 has it, to the second.
fn utc(ms: i64) -> String {
    let seconds = ms.div_euclid(1_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days are counted from 1 March of year 0, so that leap days come last; 400 years have 146,097 of them.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696_789), "2000-02-29T12:34:56Z");
        assert_eq!(utc(1_767_225_599_999), "2025-12-31T23:59:59Z");
        assert_eq!(utc(-1), "1969-12-31T23:59:59Z");
    }
}
