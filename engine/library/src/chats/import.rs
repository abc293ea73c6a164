//! Reading a chat from JSON that [`ChatStore::export`] wrote, here or elsewhere. The text comes from outside: everything
//! is checked before anything is kept.

use std::path::Path;

use rusqlite::params;

use super::error::StoreError;
use super::export::{ChatFile, FORMAT, TurnRecord, VERSION};
use super::types::{ChatSummary, Given, Origin, Role, TurnId, TurnState};
use super::{ChatStore, given, list, steps, storable, title, turns};
use crate::error::system_words;

/// Longest text that is read, in bytes; ten times what the longest chats have.
const MOST_BYTES: usize = 256 << 20;
/// Most turns of a chat.
const MOST_TURNS: usize = 200_000;
/// The last millisecond of the year 9999; times are shown in four digits.
const LAST_MS: i64 = 253_402_300_799_999;

impl ChatStore {
    /// Adds a chat that was exported as JSON, with all its branches, as a new chat at the top of the list.
    pub fn import_json(&self, json: &str) -> Result<ChatSummary, StoreError> {
        self.insert(&checked(json)?)
    }

    /// The same of a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not a chat.
    pub fn import_file(&self, path: &Path) -> Result<ChatSummary, StoreError> {
        let cannot = |error: std::io::Error| {
            StoreError::Import(format!("it cannot be read ({})", system_words(&error)))
        };
        let facts = std::fs::metadata(path).map_err(cannot)?;
        // Reading a pipe would not end.
        if !facts.is_file() {
            return Err(StoreError::Import("it is not a file".into()));
        }
        if facts.len() > MOST_BYTES as u64 {
            return Err(too_long());
        }
        let bytes = std::fs::read(path).map_err(cannot)?;
        let Ok(json) = String::from_utf8(bytes) else {
            return Err(StoreError::Import(
                "it is not text, as a chat that Reprise exported as JSON is".into(),
            ));
        };
        let file = checked(json.trim_start_matches('\u{feff}'))?;
        if file.turns.is_empty() {
            return Err(StoreError::Import("there is nothing in it".into()));
        }
        self.insert(&file)
    }

    fn insert(&self, file: &ChatFile) -> Result<ChatSummary, StoreError> {
        let now = self.now_ms();
        self.write(|transaction| {
            let chat = list::insert_chat(transaction, file.created_ms, now)?;
            let mut ids: Vec<TurnId> = Vec::with_capacity(file.turns.len());
            let mut insert = transaction.prepare_cached(
                "INSERT INTO turns (chat, parent, role, state, created_ms, model, stats, error, text)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?;
            for turn in &file.turns {
                // An answer that was exported while it was written goes no further here.
                let state = if turn.state == TurnState::Writing {
                    TurnState::Interrupted
                } else {
                    turn.state
                };
                let stats = turn
                    .stats
                    .as_ref()
                    .and_then(|stats| serde_json::to_string(stats).ok());
                insert.execute(params![
                    chat,
                    turn.parent.and_then(|place| ids.get(place)),
                    turn.role,
                    state,
                    turn.created_ms,
                    turn.model.as_deref().map(storable),
                    stats,
                    turn.error.as_deref().map(storable),
                    storable(&turn.text),
                ])?;
                let id = TurnId(transaction.last_insert_rowid());
                // Numbers of turns mean nothing in another store.
                let known = |one: &&Given| {
                    !matches!(one.source, Origin::Earlier { .. }) && given::belongs_to(one, turn.role)
                };
                let kept: Vec<Given> = turn.given.iter().filter(known).cloned().collect();
                given::insert(transaction, id, &kept)?;
                if turn.role == Role::Assistant {
                    steps::insert(transaction, id, 0, &turn.steps)?;
                }
                ids.push(id);
            }
            let shown = file.current.and_then(|place| ids.get(place)).or(ids.last());
            if let Some(shown) = shown {
                let leaf = turns::last_shown_leaf(transaction, *shown)?;
                turns::show(transaction, chat, leaf)?;
            }
            let title = title::one_line(&storable(file.title.as_deref().unwrap_or_default()));
            let title: String = title.chars().take(list::LONGEST_TITLE).collect();
            if !title.is_empty() {
                list::change(transaction, chat, "title = ?2, title_source = 'person'", &title)?;
            }
            list::load_summary(transaction, chat)
        })
    }
}

fn too_long() -> StoreError {
    StoreError::Import(format!("it has more than {} MiB", MOST_BYTES >> 20))
}

fn checked(json: &str) -> Result<ChatFile, StoreError> {
    let refuse = |reason: String| Err(StoreError::Import(reason));
    if json.len() > MOST_BYTES {
        return Err(too_long());
    }
    let header: Header = match serde_json::from_str(json) {
        Ok(header) => header,
        Err(error) => {
            return refuse(format!(
                "it is not a chat that Reprise exported as JSON ({error})"
            ));
        }
    };
    if header.format != FORMAT {
        return refuse(format!(
            "it says it is “{}”, and a chat says “{FORMAT}”",
            title::one_line(&header.format)
        ));
    }
    if header.version > VERSION || header.version == 0 {
        return refuse(format!(
            "it has version {}, and this Reprise reads up to version {VERSION}; update Reprise",
            header.version
        ));
    }
    let file: ChatFile = match serde_json::from_str(json) {
        Ok(file) => file,
        Err(error) => return refuse(format!("a part of it is missing or wrong ({error})")),
    };
    if file.turns.len() > MOST_TURNS {
        return refuse(format!("it has more than {MOST_TURNS} turns"));
    }
    if file.current.is_some_and(|place| place >= file.turns.len()) {
        return refuse("the turn it should show is not in it".to_string());
    }
    if !(0..=LAST_MS).contains(&file.created_ms) {
        return refuse("the time it was made is not a time".to_string());
    }
    for (place, turn) in file.turns.iter().enumerate() {
        if let Err(fault) = check_turn(place, turn, &file.turns) {
            return refuse(format!("turn {} {fault}", place + 1));
        }
    }
    Ok(file)
}

/// What is read first, to say more than "a field is missing" about other JSON.
#[derive(serde::Deserialize)]
struct Header {
    format: String,
    version: u32,
}

fn check_turn(place: usize, turn: &TurnRecord, turns: &[TurnRecord]) -> Result<(), &'static str> {
    let parent = match turn.parent {
        // Parents come first: so there is no circle, and every path ends.
        Some(parent) if parent >= place => return Err("follows a turn that does not come before it"),
        Some(parent) => turns.get(parent).map(|parent| parent.role),
        None => None,
    };
    match (turn.role, parent) {
        (Role::User, Some(Role::User)) => return Err("is a question that follows a question"),
        (Role::Assistant, Some(Role::Assistant)) => return Err("is an answer that follows an answer"),
        (Role::Assistant, None) => return Err("is an answer without a question"),
        _ => {}
    }
    if turn.role == Role::User && turn.state != TurnState::Done {
        return Err("is a question in a state that only answers have");
    }
    if !(0..=LAST_MS).contains(&turn.created_ms) {
        return Err("has a time that is not a time");
    }
    Ok(())
}
