//! Rows of the database as what they stand for.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::types::{DocumentId, IndexedDocument, PassageId, Source, SourceId, State, StoredPassage};
use crate::{Passage, Place};

/// A hash of what is searched and embedded of a passage.
pub(super) type Content = [u8; 16];

/// Characters of a token, on average, where there are spaces between words.
const TOKEN_CHARACTERS: usize = 4;

/// About how many tokens a text has, whichever model reads it: passages are cut by this, so that they do not depend on
/// which model is loaded.
pub(crate) fn estimated_tokens(text: &str) -> usize {
    let (mut narrow, mut wide) = (0, 0);
    for character in text.chars() {
        // Scripts beyond these take about a token for each character.
        if u32::from(character) < 0x0590 {
            narrow += 1
        } else {
            wide += 1
        }
    }
    usize::div_ceil(narrow, TOKEN_CHARACTERS) + wide
}

pub(super) fn content_of(passage: &Passage) -> Content {
    let mut hasher = Xxh3::new();
    for heading in &passage.headings {
        hasher.update(heading.as_bytes());
        hasher.update(&[0]);
    }
    hasher.update(passage.text.as_bytes());
    hasher.digest128().to_le_bytes()
}

/// What a passage's vector is made of.
pub(super) fn embedded(headings: &[String], text: &str) -> String {
    // A text that begins with its heading need not hear it twice.
    let missing = headings.iter().filter(|heading| !text.contains(heading.as_str()));
    let mut whole = missing.fold(String::new(), |all, heading| all + heading + "\n");
    whole.push_str(text);
    whole
}

/// The passages of a document, numbered by what they are.
pub(super) fn numbered(document: DocumentId, passages: Vec<Passage>) -> Vec<StoredPassage> {
    let mut seen = std::collections::HashMap::<Content, u64>::new();
    let mut taken = std::collections::HashSet::new();
    let number = |(number, passage): (usize, Passage)| {
        let content = content_of(&passage);
        let which = seen.entry(content).or_default();
        let id = loop {
            let mut bytes = document.0.to_le_bytes().to_vec();
            bytes.extend(content);
            bytes.extend(which.to_le_bytes());
            *which += 1;
            let id = PassageId((xxh3_64(&bytes) >> 1) as i64);
            if taken.insert(id) {
                break id;
            }
        };
        StoredPassage {
            id,
            document,
            number,
            passage,
        }
    };
    passages.into_iter().enumerate().map(number).collect()
}

pub(super) fn sources(connection: &Connection) -> rusqlite::Result<Vec<Source>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, path, is_folder, (SELECT count(*) FROM documents WHERE source = sources.id AND state != 'skipped')
         FROM sources ORDER BY path",
    )?;
    let rows = statement.query_map([], |row| {
        let path = PathBuf::from(row.get::<_, String>(1)?);
        Ok(Source {
            id: SourceId(row.get(0)?),
            is_there: path.exists(),
            path,
            is_folder: row.get(2)?,
            documents: row.get(3)?,
        })
    })?;
    rows.collect()
}

const DOCUMENT: &str = "SELECT id, source, path, name, bytes, state, trouble, needs_password, notes,
    (SELECT count(*) FROM passages WHERE document = documents.id) FROM documents";

fn document(row: &Row<'_>) -> rusqlite::Result<IndexedDocument> {
    Ok(IndexedDocument {
        id: DocumentId(row.get(0)?),
        source: SourceId(row.get(1)?),
        path: PathBuf::from(row.get::<_, String>(2)?),
        name: row.get(3)?,
        bytes: row.get::<_, i64>(4)?.try_into().unwrap_or(0),
        state: State::from_word(&row.get::<_, String>(5)?),
        trouble: row.get(6)?,
        needs_password: row.get(7)?,
        notes: serde_json::from_str(&row.get::<_, String>(8)?).unwrap_or_default(),
        passages: row.get(9)?,
    })
}

pub(super) fn documents(
    connection: &Connection,
    state: Option<State>,
) -> rusqlite::Result<Vec<IndexedDocument>> {
    let mut statement = connection.prepare_cached(&format!(
        "{DOCUMENT} WHERE ?1 IS NULL OR state = ?1 ORDER BY path"
    ))?;
    statement.query_map([state.map(State::word)], document)?.collect()
}

pub(super) fn document_by_id(
    connection: &Connection,
    id: DocumentId,
) -> rusqlite::Result<Option<IndexedDocument>> {
    let mut statement = connection.prepare_cached(&format!("{DOCUMENT} WHERE id = ?1"))?;
    statement.query_row([id.0], document).optional()
}

pub(super) fn has_ocr(connection: &Connection, document: DocumentId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM passages WHERE document = ?1 AND is_ocr)")?
        .query_row([document.0], |row| row.get(0))
}

const PASSAGE: &str =
    "SELECT passages.id, document, documents.path, documents.name, number, place, headings, first_byte,
    end_byte, is_ocr, text, content FROM passages JOIN documents ON documents.id = document";

fn passage(row: &Row<'_>) -> rusqlite::Result<(StoredPassage, Content)> {
    let json = |index, error: serde_json::Error| {
        rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, Box::new(error))
    };
    let place: Place = serde_json::from_str(&row.get::<_, String>(5)?).map_err(|error| json(5, error))?;
    let headings = serde_json::from_str(&row.get::<_, String>(6)?).map_err(|error| json(6, error))?;
    let mut passage = Passage {
        document: row.get(3)?,
        path: PathBuf::from(row.get::<_, String>(2)?),
        place,
        headings,
        range: row.get::<_, usize>(7)?..row.get::<_, usize>(8)?,
        text: row.get(10)?,
        is_ocr: row.get(9)?,
        tokens: 0,
    };
    passage.tokens = estimated_tokens(&passage.rendered());
    let stored = StoredPassage {
        id: PassageId(row.get(0)?),
        document: DocumentId(row.get(1)?),
        number: row.get(4)?,
        passage,
    };
    Ok((stored, row.get(11)?))
}

pub(super) fn passage_by_id(
    connection: &Connection,
    id: PassageId,
) -> rusqlite::Result<Option<(StoredPassage, Content)>> {
    let mut statement = connection.prepare_cached(&format!("{PASSAGE} WHERE passages.id = ?1"))?;
    statement.query_row([id.0], passage).optional()
}

/// A document's passages from one number to another, both included.
pub(super) fn passages_between(
    connection: &Connection,
    document: DocumentId,
    first: usize,
    last: usize,
) -> rusqlite::Result<Vec<StoredPassage>> {
    let mut statement = connection.prepare_cached(&format!(
        "{PASSAGE} WHERE document = ?1 AND number BETWEEN ?2 AND ?3 ORDER BY number"
    ))?;
    let last = i64::try_from(last).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![document.0, first, last], passage)?;
    rows.map(|row| row.map(|(stored, _)| stored)).collect()
}

/// The passages with a content, of these documents only where some are named, in the order of the files.
pub(super) fn passages_with(
    connection: &Connection,
    content: &Content,
    is_wanted: impl Fn(DocumentId) -> bool,
) -> rusqlite::Result<Vec<StoredPassage>> {
    let mut statement = connection.prepare_cached(&format!(
        "{PASSAGE} WHERE content = ?1 ORDER BY documents.path, number"
    ))?;
    let mut rows = statement.query([content])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if is_wanted(DocumentId(row.get(1)?)) {
            found.push(passage(row)?.0);
            // More of the same would say nothing more.
            break;
        }
    }
    Ok(found)
}

/// Puts a document's passages in the place of those it had. False when the document is gone meanwhile.
pub(super) fn replace_passages(
    transaction: &Transaction<'_>,
    document: DocumentId,
    passages: &[StoredPassage],
) -> rusqlite::Result<bool> {
    let there = transaction
        .prepare_cached("UPDATE documents SET in_keywords = 0 WHERE id = ?1")?
        .execute([document.0])?;
    if there == 0 {
        return Ok(false);
    }
    transaction
        .prepare_cached("DELETE FROM passages WHERE document = ?1")?
        .execute([document.0])?;
    let mut statement = transaction.prepare_cached(
        "INSERT INTO passages (id, document, number, content, place, headings, first_byte, end_byte, is_ocr, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    let json = |error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
    for stored in passages {
        let passage = &stored.passage;
        statement.execute(params![
            stored.id.0,
            document.0,
            stored.number,
            content_of(passage),
            serde_json::to_string(&passage.place).map_err(json)?,
            serde_json::to_string(&passage.headings).map_err(json)?,
            passage.range.start,
            passage.range.end,
            passage.is_ocr,
            passage.text,
        ])?;
    }
    Ok(true)
}

/// Deletes documents, and notes that the keyword index has yet to lose them.
pub(super) fn delete_document(transaction: &Transaction<'_>, document: DocumentId) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT OR IGNORE INTO erased VALUES (?1)")?
        .execute([document.0])?;
    transaction
        .prepare_cached("DELETE FROM documents WHERE id = ?1")?
        .execute([document.0])?;
    Ok(())
}

/// Deletes vectors that no passage has any more.
pub(super) fn delete_lone_vectors(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let gone = transaction.execute(
        "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM passages WHERE passages.content = vectors.content)",
        [],
    )?;
    if gone > 0 {
        transaction.execute(
            "UPDATE counters SET value = value + 1 WHERE name = 'vectors_erased'",
            [],
        )?;
    }
    Ok(())
}
