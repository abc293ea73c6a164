//! Finding chats by their words. A turn or title is a hit when it contains every word of the query, as part of a word
//! or whole, without regard to case; accents do not matter for words of three characters and more.
//!
//! Such words are looked up in the index of three-character runs, each quoted, so nothing a person types is taken for
//! the index's query language. Shorter words are not in that index; texts are read for them.

use rusqlite::{Connection, Row, params};

use super::ChatStore;
use super::error::StoreError;
use super::snippet::{self, HIT_BEGINS, HIT_ENDS};
use super::types::{SearchHit, SnippetPart};

/// Most hits that are given, whatever is asked for.
const MOST_HITS: usize = 1_000;

/// Most words of a query that count; the rest of a pasted page would only slow the search.
const MOST_WORDS: usize = 32;

/// Most characters of a word that count: the index looks up every run of three for itself.
const MOST_LETTERS: usize = 100;

/// What a person searches for.
struct Query {
    /// Words for the index, as its query language has them; none if all words are short.
    indexed: Option<String>,
    /// Words of one or two characters, folded.
    short: Vec<String>,
}

impl Query {
    fn new(text: &str) -> Option<Self> {
        let text = super::storable(text);
        let (long, short): (Vec<&str>, Vec<&str>) = text
            .split_whitespace()
            .take(MOST_WORDS)
            .map(|word| beginning(word, MOST_LETTERS))
            .partition(|word| letters(word) >= 3);
        if long.is_empty() && short.is_empty() {
            return None;
        }
        let quoted: Vec<String> = long
            .iter()
            .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
            .collect();
        Some(Self {
            indexed: (!quoted.is_empty()).then(|| quoted.join(" AND ")),
            short: short.iter().map(|word| snippet::fold(word)).collect(),
        })
    }

    /// The snippet of a text with the index's marks in it, if it has the short words, too.
    fn snippet_of(&self, marked: &str) -> Option<Vec<SnippetPart>> {
        if !self.short.is_empty() {
            let text = snippet::fold(&marked.replace([HIT_BEGINS, HIT_ENDS], ""));
            if !self.short.iter().all(|word| text.contains(word.as_str())) {
                return None;
            }
        }
        Some(if self.indexed.is_some() {
            snippet::around_marks(marked)
        } else {
            snippet::around_words(marked, &self.short)
        })
    }
}

/// The first characters of a word.
fn beginning(word: &str, characters: usize) -> &str {
    word.char_indices()
        .nth(characters)
        .map_or(word, |(end, _)| &word[..end])
}

/// Characters that the index counts: it drops accents that stand as characters of their own.
fn letters(word: &str) -> usize {
    word.chars()
        .filter(|character| !matches!(character, '\u{300}'..='\u{36F}'))
        .count()
}

impl ChatStore {
    /// Finds the words in titles and turns: titles first, then turns, the latest first. Deleted chats are left out.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<SearchHit>, StoreError> {
        let Some(query) = Query::new(query) else {
            return Ok(Vec::new());
        };
        let limit = limit.min(MOST_HITS);
        self.read(|connection| {
            let mut hits = Vec::new();
            collect(connection, TITLES, &query, limit, &mut hits)?;
            collect(connection, TURNS, &query, limit, &mut hits)?;
            Ok(hits)
        })
    }
}

/// How one kind of thing is searched. Both queries give chat, title, updated, turn and text, best first.
struct Source {
    by_index: &'static str,
    by_reading: &'static str,
}

const TITLES: Source = Source {
    by_index: "SELECT c.id, c.title, c.updated_ms, NULL, highlight(title_index, 0, ?2, ?3)
               FROM title_index CROSS JOIN chats c ON c.id = title_index.rowid
               WHERE title_index MATCH ?1 AND c.deleted_ms IS NULL ORDER BY c.touched DESC",
    by_reading: "SELECT c.id, c.title, c.updated_ms, NULL, c.title
                 FROM chats c WHERE c.deleted_ms IS NULL AND c.title IS NOT NULL ORDER BY c.touched DESC",
};

const TURNS: Source = Source {
    by_index: "SELECT c.id, c.title, c.updated_ms, t.id, highlight(text_index, 0, ?2, ?3)
               FROM text_index CROSS JOIN turns t ON t.id = text_index.rowid CROSS JOIN chats c ON c.id = t.chat
               WHERE text_index MATCH ?1 AND c.deleted_ms IS NULL ORDER BY text_index.rowid DESC",
    by_reading: "SELECT c.id, c.title, c.updated_ms, t.id, t.text
                 FROM turns t CROSS JOIN chats c ON c.id = t.chat WHERE c.deleted_ms IS NULL ORDER BY t.id DESC",
};

fn collect(
    connection: &Connection,
    source: Source,
    query: &Query,
    limit: usize,
    hits: &mut Vec<SearchHit>,
) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached(if query.indexed.is_some() {
        source.by_index
    } else {
        source.by_reading
    })?;
    let mut rows = match &query.indexed {
        Some(words) => select.query(params![words, HIT_BEGINS.to_string(), HIT_ENDS.to_string()])?,
        None => select.query([])?,
    };
    while hits.len() < limit
        && let Some(row) = rows.next()?
    {
        hits.extend(hit_from(row, query)?);
    }
    Ok(())
}

fn hit_from(row: &Row<'_>, query: &Query) -> rusqlite::Result<Option<SearchHit>> {
    let text: String = row.get(4)?;
    let Some(snippet) = query.snippet_of(&text) else {
        return Ok(None);
    };
    Ok(Some(SearchHit {
        chat: row.get(0)?,
        title: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
        turn: row.get(3)?,
        snippet,
        updated_ms: row.get(2)?,
    }))
}
