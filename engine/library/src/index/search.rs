//! Finding passages: by the question's words (BM25), and by what it means where vectors are there. Both lists become one by
//! reciprocal ranks: a passage's score is the sum over the lists of weight / (60 + rank), so that the lists' own scores,
//! which cannot be compared, do not matter.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::error::IndexError;
use super::rows::{self, Content};
use super::types::{DocumentId, Meaning, StoredPassage};
use super::{Index, PassageId};

/// Of reciprocal rank fusion, as published.
const RANK_OFFSET: f32 = 60.0;
/// What a list counts; `reprise bench retrieval` measured it.
const KEYWORDS_WEIGHT: f32 = 1.0;
const MEANING_WEIGHT: f32 = 1.0;
/// Passages that each list has at least.
const DEPTH: usize = 100;

/// By what passages are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// Words and meaning.
    #[default]
    Both,
    /// Words alone.
    Words,
    /// Meaning alone.
    Meaning,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The passage.
    pub stored: StoredPassage,
    /// The fused score: to be compared within one search.
    pub score: f32,
    /// Its rank by words, from 1.
    pub words_rank: Option<usize>,
    /// Its rank by meaning, from 1.
    pub meaning_rank: Option<usize>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPassages {
    /// The passages, best first; of several with the same text only one.
    pub hits: Vec<Hit>,
    /// Whether meaning was looked at; if not, why.
    pub meaning: Meaning,
}

impl Index {
    /// The passages that answer to a question, best first, out of all documents.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn search(&self, question: &str, limit: usize) -> Result<FoundPassages, IndexError> {
        self.search_by(question, None, limit, By::Both)
    }

    /// As [`Index::search`], out of these documents.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn search_in(
        &self,
        question: &str,
        documents: &[DocumentId],
        limit: usize,
    ) -> Result<FoundPassages, IndexError> {
        self.search_by(question, Some(documents), limit, By::Both)
    }

    /// As [`Index::search`], with a choice of how.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn search_by(
        &self,
        question: &str,
        documents: Option<&[DocumentId]>,
        limit: usize,
        by: By,
    ) -> Result<FoundPassages, IndexError> {
        let depth = DEPTH.max(2 * limit);
        let words = if by == By::Meaning {
            Vec::new()
        } else {
            self.by_words(question, documents, depth)?
        };
        let nearest = if by == By::Words {
            Vec::new()
        } else {
            self.by_meaning(question, documents, depth)?
        };
        let wanted: Option<HashSet<DocumentId>> = documents.map(|ids| ids.iter().copied().collect());
        let is_wanted = |id: DocumentId| wanted.as_ref().is_none_or(|wanted| wanted.contains(&id));
        let hits = self.database.read(|connection| {
            // Keyed by content: the same text in many files is one find.
            let mut hits: HashMap<Content, Hit> = HashMap::new();
            let mut rank = 0;
            for id in words {
                // What is gone from the database is not there, whatever the keyword index says yet.
                let Some((stored, content)) = rows::passage_by_id(connection, id)? else {
                    continue;
                };
                match hits.entry(content) {
                    // Which file was indexed first is chance: the first by name stands for all.
                    Entry::Occupied(mut known) if stored.passage.path < known.get().stored.passage.path => {
                        known.get_mut().stored = stored;
                    }
                    Entry::Occupied(_) => {}
                    Entry::Vacant(place) => {
                        rank += 1;
                        place.insert(Hit {
                            stored,
                            score: KEYWORDS_WEIGHT / (RANK_OFFSET + rank as f32),
                            words_rank: Some(rank),
                            meaning_rank: None,
                        });
                    }
                }
            }
            let mut rank = 0;
            for content in nearest {
                let score = MEANING_WEIGHT / (RANK_OFFSET + (rank + 1) as f32);
                if let Some(hit) = hits.get_mut(&content) {
                    rank += 1;
                    hit.score += score;
                    hit.meaning_rank = Some(rank);
                } else if let Some(stored) = rows::passages_with(connection, &content, is_wanted)?
                    .into_iter()
                    .next()
                {
                    rank += 1;
                    hits.insert(
                        content,
                        Hit {
                            stored,
                            score,
                            words_rank: None,
                            meaning_rank: Some(rank),
                        },
                    );
                }
            }
            Ok(hits)
        })?;
        let mut hits: Vec<Hit> = hits.into_values().collect();
        let best_rank = |hit: &Hit| hit.words_rank.into_iter().chain(hit.meaning_rank).min();
        hits.sort_by(|a, b| {
            let order = b
                .score
                .total_cmp(&a.score)
                .then_with(|| best_rank(a).cmp(&best_rank(b)));
            order
                .then_with(|| a.stored.passage.path.cmp(&b.stored.passage.path))
                .then(a.stored.number.cmp(&b.stored.number))
        });
        hits.truncate(limit);
        Ok(FoundPassages {
            hits,
            meaning: self.meaning(),
        })
    }

    fn by_words(
        &self,
        question: &str,
        documents: Option<&[DocumentId]>,
        depth: usize,
    ) -> Result<Vec<PassageId>, IndexError> {
        let found = match self.keywords().search(question, documents, depth) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!("the keyword index is made anew, because it failed: {error}");
                self.rebuild_keywords()?;
                let again = self.keywords().search(question, documents, depth);
                again.map_err(|error| self.keywords_error(error))?
            }
        };
        Ok(found.into_iter().map(|(id, _)| id).collect())
    }

    fn by_meaning(
        &self,
        question: &str,
        documents: Option<&[DocumentId]>,
        depth: usize,
    ) -> Result<Vec<Content>, IndexError> {
        let Some(encoder) = &self.encoder else {
            return Ok(Vec::new());
        };
        let vector = encoder.embed_one(question)?;
        let mut vectors = self.vectors();
        let among = self.database.read(|connection| {
            vectors.refresh(connection, encoder.dimensions())?;
            let Some(documents) = documents else {
                return Ok(None);
            };
            let mut among = HashSet::new();
            let mut statement =
                connection.prepare_cached("SELECT content FROM passages WHERE document = ?1")?;
            for id in documents {
                let rows = statement.query_map([id.0], |row| row.get::<_, Content>(0))?;
                for content in rows {
                    among.insert(content?);
                }
            }
            Ok(Some(among))
        })?;
        let nearest = vectors.nearest(&vector, among.as_ref(), depth);
        Ok(nearest.into_iter().map(|(content, _)| content).collect())
    }
}
