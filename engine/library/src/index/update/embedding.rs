//! Gives passages their vectors, after their text: until then they are found by their words.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reprise_engine::encoder::{Encoder, Workspace};
use rusqlite::params;

use super::{GLANCE, Progress, Run, Updated};
use crate::index::error::IndexError;
use crate::index::rows::{self, Content};
use crate::index::{Index, vectors};

/// Passages that a thread embeds before it looks up.
const EMBED_BATCH: usize = 8;
/// Vectors of a commit.
const COMMIT_VECTORS: usize = 128;

impl Index {
    /// Gives passages their vectors.
    pub(super) fn embed(
        &self,
        run: &mut Run<'_>,
        encoder: &Encoder,
        updated: &mut Updated,
    ) -> Result<(), IndexError> {
        let total: usize = self.database.read(|connection| {
            connection.query_row(
                "SELECT count(DISTINCT content) FROM passages
                 WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.content = passages.content)",
                [],
                |row| row.get(0),
            )
        })?;
        let mut done = 0;
        // Where the last batch ended, so that each begins there and not with those that are done.
        let mut after = Vec::new();
        let mut workspaces: Vec<Workspace> =
            (0..run.threads.max(1)).map(|_| Workspace::new(encoder)).collect();
        while !run.cancel.is_cancelled() {
            let texts = self.without_vector(&after, COMMIT_VECTORS)?;
            let Some((last, _)) = texts.last() else {
                if after.is_empty() {
                    break;
                }
                // Some may have come before this place meanwhile.
                after.clear();
                continue;
            };
            after = last.to_vec();
            let made: Mutex<Vec<(Content, Vec<u8>)>> = Mutex::default();
            let failure: Mutex<Option<IndexError>> = Mutex::default();
            let next = AtomicUsize::new(0);
            let (cancel, is_busy) = (&run.cancel, run.is_busy);
            let batches: Vec<_> = texts.chunks(EMBED_BATCH).collect();
            let shared = (&next, &made, &failure, &batches);
            std::thread::scope(|scope| {
                for workspace in &mut workspaces {
                    scope.spawn(move || {
                        let (next, made, failure, batches) = shared;
                        while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                            while is_busy() && !cancel.is_cancelled() {
                                std::thread::sleep(GLANCE);
                            }
                            if cancel.is_cancelled() {
                                return;
                            }
                            let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
                            match encoder.embed(&texts, workspace) {
                                Ok(vectors) => {
                                    let vectors = vectors.iter().map(|vector| vectors::packed(vector));
                                    let made_here = batch.iter().map(|(content, _)| *content).zip(vectors);
                                    if let Ok(mut made) = made.lock() {
                                        made.extend(made_here);
                                    }
                                }
                                Err(error) => {
                                    if let Ok(mut failure) = failure.lock() {
                                        *failure = Some(error.into());
                                    }
                                    return;
                                }
                            }
                        }
                    });
                }
            });
            let made = made.into_inner().unwrap_or_default();
            self.database.write(|transaction| {
                // A passage that is gone meanwhile needs none.
                let mut statement = transaction.prepare_cached(
                    "INSERT OR IGNORE INTO vectors (content, vector)
                     SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM passages WHERE content = ?1)",
                )?;
                made.iter()
                    .try_for_each(|(content, vector)| statement.execute(params![content, vector]).map(drop))
            })?;
            if let Some(error) = failure.into_inner().unwrap_or_default() {
                return Err(error);
            }
            done += made.len();
            updated.embedded += made.len();
            (run.progress)(&Progress::Embedding {
                done,
                total: total.max(done),
            });
        }
        Ok(())
    }

    /// Contents without a vector, in the order of their hashes, behind one of them.
    fn without_vector(&self, after: &[u8], limit: usize) -> Result<Vec<(Content, String)>, IndexError> {
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT content, headings, text FROM passages
                 WHERE content > ?1
                    AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.content = passages.content)
                 GROUP BY content ORDER BY content LIMIT ?2",
            )?;
            let rows = statement.query_map(params![after, limit], |row| {
                let headings: Vec<String> =
                    serde_json::from_str(&row.get::<_, String>(1)?).unwrap_or_default();
                Ok((row.get(0)?, rows::embedded(&headings, &row.get::<_, String>(2)?)))
            })?;
            rows.collect()
        })
    }
}
