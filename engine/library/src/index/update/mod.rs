//! Bringing the index up to date: look at the sources, read what is new, then give passages their vectors.
//!
//! Everything is committed every few files, so that a run that ends at any moment, by a stop or a kill, goes on where it
//! was. In the database a document's passages and the note that the keyword index lacks them change together; the note
//! goes once the keyword index has committed.

mod embedding;
mod reading;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, bounded};
use reprise_engine::CancelToken;
use rusqlite::params;

use super::Index;
use super::error::IndexError;
use super::keywords::KeywordsWriter;
use super::rows;
use super::scan::{self, Found};
use super::types::{DocumentId, Source, State, StoredPassage};
use crate::error::GET_OCR;
use crate::folders::shown;
use reading::{Job, Outcome, read};

/// Files of a commit, unless their text is long or time runs on.
const COMMIT_FILES: usize = 32;
const COMMIT_BYTES: usize = 4 << 20;
const COMMIT_AFTER: Duration = Duration::from_secs(2);
/// Looks at the sources in one run.
const ROUNDS: usize = 3;
/// How often a pause or a stop is looked for.
const GLANCE: Duration = Duration::from_millis(20);

/// How a run is done, and how its caller takes part.
pub struct Run<'a> {
    /// Ends it, within a file and within a batch of passages.
    pub cancel: CancelToken,
    /// Whether someone waits for an answer: then it pauses.
    pub is_busy: &'a (dyn Fn() -> bool + Sync),
    /// Hears how far it is, on the calling thread.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Files that are read at once.
    pub threads: usize,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Looks at a source.
    Looking(PathBuf),
    /// Reads files.
    Reading {
        /// Files read in this run.
        done: usize,
        /// Files to be read in this run.
        total: usize,
        /// The file read last.
        path: PathBuf,
        /// How it went: the reason, when there is no text.
        trouble: Option<String>,
    },
    /// Gives passages their vectors.
    Embedding {
        /// Passages done in this run.
        done: usize,
        /// Passages that lacked one.
        total: usize,
    },
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Updated {
    /// Files whose passages can be found now.
    pub read: usize,
    /// Files that changed on disk and not in content.
    pub unchanged: usize,
    /// Files without text.
    pub failed: usize,
    /// Files of kinds that are not read.
    pub skipped: usize,
    /// Documents that are gone from disk, and now from the index; chunks of their owners are to be erased.
    pub gone: super::Removed,
    /// Passages that got a vector.
    pub embedded: usize,
    /// Folders that could not be looked into, and sources that are not there.
    pub troubles: Vec<String>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

impl Index {
    /// Brings the index up to date. It takes long: call it on a thread of its own, with nobody else updating.
    ///
    /// # Errors
    /// When the index cannot be written, or another program writes it. Files that cannot be read are no errors here:
    /// each has its reason ([`Index::documents`]).
    pub fn update(&self, run: &mut Run<'_>) -> Result<Updated, IndexError> {
        let _lock = self.lock()?;
        let keywords = self.keywords();
        let mut writer = keywords.writer().map_err(|error| self.keywords_error(error))?;
        let mut updated = Updated::default();
        self.catch_up(&mut writer)?;
        self.wait_for_ocr()?;
        // What is added or changes meanwhile is looked for before the end; what changes all the time has to wait.
        for _ in 0..ROUNDS {
            self.look(run, &mut updated)?;
            let read = self.read_waiting(run, &mut writer, &mut updated)?;
            self.catch_up(&mut writer)?;
            if run.cancel.is_cancelled() || read == 0 {
                break;
            }
        }
        if updated.gone.documents > 0 {
            writer
                .purge(&keywords)
                .map_err(|error| self.keywords_error(error))?;
            self.database.empty_log()?;
        }
        writer.close().map_err(|error| self.keywords_error(error))?;
        if let Some(encoder) = self.encoder.clone() {
            self.embed(run, &encoder, &mut updated)?;
        }
        updated.stopped = run.cancel.is_cancelled();
        Ok(updated)
    }

    /// Documents that lacked the models for text recognition are to be read again, now that these are here.
    fn wait_for_ocr(&self) -> Result<(), IndexError> {
        if self.ocr.is_none() {
            return Ok(());
        }
        self.database.write(|transaction| {
            transaction.execute(
                "UPDATE documents SET state = 'waiting', hash = NULL WHERE instr(trouble, ?1) OR instr(notes, ?1)",
                [GET_OCR],
            )
        })?;
        Ok(())
    }

    /// Looks at the sources: new and changed files wait to be read, those that are gone are deleted.
    fn look(&self, run: &mut Run<'_>, updated: &mut Updated) -> Result<(), IndexError> {
        let mut seen = HashSet::new();
        updated.troubles.clear();
        let mut sources = self.sources()?;
        // A file that was named is that, even if its folder was added too.
        sources.sort_by_key(|source| source.is_folder);
        for source in sources {
            (run.progress)(&Progress::Looking(source.path.clone()));
            let Some(scanned) = scan::scan(&source.path, self.left_out.as_deref(), &|| {
                run.cancel.is_cancelled()
            }) else {
                if run.cancel.is_cancelled() {
                    return Ok(());
                }
                let path = shown(&source.path);
                updated.troubles.push(format!(
                    "{path} is not there; what was read of it stays until it is back or removed from the index"
                ));
                continue;
            };
            let unseen = scanned.unseen.iter().map(|(path, why)| {
                let path = shown(path);
                format!("{path}: {why}; what was read of it stays")
            });
            updated.troubles.extend(unseen);
            let mut files = scanned.files;
            files.retain(|file| {
                let is_text = file.path.to_str().is_some();
                if !is_text {
                    let path = shown(&file.path);
                    updated
                        .troubles
                        .push(format!("{path}: its name is not valid Unicode; rename it"));
                }
                is_text && seen.insert(file.path.clone())
            });
            let gone = self
                .database
                .write(|transaction| note_files(transaction, &source, &files, &scanned.unseen))?;
            updated.gone.documents += gone.len();
            updated
                .gone
                .owners
                .extend(gone.into_iter().filter_map(|(id, name)| id.owner(&name)));
        }
        if updated.gone.documents > 0 {
            self.database.write(rows::delete_lone_vectors)?;
        }
        Ok(())
    }

    /// Reads what waits, the smallest first; gives how many files that was.
    fn read_waiting(
        &self,
        run: &mut Run<'_>,
        writer: &mut KeywordsWriter,
        updated: &mut Updated,
    ) -> Result<usize, IndexError> {
        let jobs = self.jobs()?;
        let total = jobs.len();
        if total == 0 {
            return Ok(0);
        }
        let next = AtomicUsize::new(0);
        let (sender, receiver) = bounded(2 * run.threads.max(1));
        let (cancel, is_busy, jobs, ocr) = (&run.cancel, run.is_busy, &jobs, self.ocr.as_ref());
        let give_up = CancelToken::default();
        std::thread::scope(|scope| {
            for _ in 0..run.threads.clamp(1, total) {
                let (sender, next, give_up) = (sender.clone(), &next, &give_up);
                scope.spawn(move || {
                    while let Some((index, job)) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        jobs.get(index).map(|job| (index, job))
                    } {
                        while is_busy() && !cancel.is_cancelled() {
                            std::thread::sleep(GLANCE);
                        }
                        if cancel.is_cancelled() || give_up.is_cancelled() {
                            break;
                        }
                        if sender.send((index, read(job, ocr, cancel))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut batch = Batch::default();
            let mut done = 0;
            let mut work = || -> Result<(), IndexError> {
                loop {
                    match receiver.recv_timeout(GLANCE) {
                        Ok((index, outcome)) => {
                            let job: &Job = &jobs[index];
                            if matches!(outcome, Outcome::Stopped) {
                                continue;
                            }
                            done += 1;
                            let trouble = match &outcome {
                                Outcome::NoText {
                                    state: State::Failed,
                                    trouble,
                                    ..
                                } => Some(trouble.clone()),
                                _ => None,
                            };
                            (run.progress)(&Progress::Reading {
                                done,
                                total,
                                path: job.path.clone(),
                                trouble,
                            });
                            batch.add(job, outcome);
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => break,
                    }
                    if batch.is_full() {
                        self.commit(std::mem::take(&mut batch), writer, updated)?;
                    }
                }
                self.commit(std::mem::take(&mut batch), writer, updated)
            };
            let outcome = work();
            if outcome.is_err() {
                give_up.cancel();
            }
            // Nobody may wait to send what nobody takes.
            drop(receiver);
            outcome.map(|()| done)
        })
    }

    fn jobs(&self) -> Result<Vec<Job>, IndexError> {
        let mut jobs = self.database.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT documents.id, documents.path, name, bytes, hash,
                    EXISTS (SELECT 1 FROM passages WHERE document = documents.id), NOT sources.is_folder
                 FROM documents JOIN sources ON sources.id = source WHERE state = 'waiting'
                 ORDER BY sources.is_folder, bytes, documents.path",
            )?;
            let rows = statement.query_map([], |row| {
                Ok(Job {
                    id: DocumentId(row.get(0)?),
                    path: PathBuf::from(row.get::<_, String>(1)?),
                    name: row.get(2)?,
                    bytes: row.get::<_, i64>(3)?.try_into().unwrap_or(0),
                    hash: row.get(4)?,
                    has_passages: row.get(5)?,
                    is_named: row.get(6)?,
                    password: None,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<Job>>>()
        })?;
        let passwords = self.passwords();
        for job in &mut jobs {
            job.password = passwords.get(&job.id).cloned();
        }
        Ok(jobs)
    }

    fn commit(
        &self,
        batch: Batch,
        writer: &mut KeywordsWriter,
        updated: &mut Updated,
    ) -> Result<(), IndexError> {
        if batch.documents.is_empty() {
            return Ok(());
        }
        let done: Vec<bool> = self.database.write(|transaction| {
            batch
                .documents
                .iter()
                .map(|(id, outcome)| note_outcome(transaction, *id, outcome))
                .collect()
        })?;
        for ((id, outcome), is_there) in batch.documents.iter().zip(done) {
            match outcome {
                _ if !is_there => continue,
                Outcome::Stopped => {}
                Outcome::Unchanged => updated.unchanged += 1,
                Outcome::Read { .. } => updated.read += 1,
                Outcome::NoText {
                    state: State::Skipped,
                    ..
                } => updated.skipped += 1,
                Outcome::NoText { .. } => updated.failed += 1,
            }
            if !matches!(
                outcome,
                Outcome::NoText {
                    needs_password: true,
                    ..
                }
            ) {
                self.passwords().remove(id);
            }
        }
        self.catch_up(writer)
    }

    /// Gives the keyword index what it lacks, and takes from it what is gone.
    pub(super) fn catch_up(&self, writer: &mut KeywordsWriter) -> Result<(), IndexError> {
        let keywords = |error| self.keywords_error(error);
        loop {
            let (erased, lacking) = self.database.read(|connection| {
                let mut erased = connection.prepare_cached("SELECT document FROM erased")?;
                let erased: Vec<DocumentId> = erased
                    .query_map([], |row| row.get(0).map(DocumentId))?
                    .collect::<rusqlite::Result<_>>()?;
                let mut lacking =
                    connection.prepare_cached("SELECT id FROM documents WHERE in_keywords = 0 LIMIT 32")?;
                let ids: Vec<DocumentId> = lacking
                    .query_map([], |row| row.get(0).map(DocumentId))?
                    .collect::<rusqlite::Result<_>>()?;
                let lacking: Vec<(DocumentId, Vec<StoredPassage>)> = ids
                    .into_iter()
                    .map(|id| Ok((id, rows::passages_between(connection, id, 0, usize::MAX)?)))
                    .collect::<rusqlite::Result<_>>()?;
                Ok((erased, lacking))
            })?;
            if erased.is_empty() && lacking.is_empty() {
                return Ok(());
            }
            for id in &erased {
                writer.erase(*id);
            }
            for (id, passages) in &lacking {
                writer.replace(*id, passages).map_err(keywords)?;
            }
            writer.commit().map_err(keywords)?;
            self.database.write(|transaction| {
                for id in &erased {
                    transaction.execute("DELETE FROM erased WHERE document = ?1", [id.0])?;
                }
                for (id, passages) in &lacking {
                    // Unless the passages changed meanwhile.
                    transaction.execute(
                        "UPDATE documents SET in_keywords = 1 WHERE id = ?1
                         AND (SELECT count(*) FROM passages WHERE document = ?1) = ?2",
                        params![id.0, passages.len()],
                    )?;
                }
                Ok(())
            })?;
        }
    }
}

/// Outcomes that wait for a commit.
struct Batch {
    documents: Vec<(DocumentId, Outcome)>,
    bytes: usize,
    since: Instant,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch {
            documents: Vec::new(),
            bytes: 0,
            since: Instant::now(),
        }
    }
}

impl Batch {
    fn add(&mut self, job: &Job, outcome: Outcome) {
        if self.documents.is_empty() {
            self.since = Instant::now();
        }
        if let Outcome::Read { passages, .. } = &outcome {
            self.bytes += passages
                .iter()
                .map(|stored| stored.passage.text.len())
                .sum::<usize>();
        }
        self.documents.push((job.id, outcome));
    }

    fn is_full(&self) -> bool {
        !self.documents.is_empty()
            && (self.documents.len() >= COMMIT_FILES
                || self.bytes >= COMMIT_BYTES
                || self.since.elapsed() >= COMMIT_AFTER)
    }
}

/// Notes what comes of a file; false when it is gone from the index meanwhile.
fn note_outcome(
    transaction: &rusqlite::Transaction<'_>,
    id: DocumentId,
    outcome: &Outcome,
) -> rusqlite::Result<bool> {
    let changed = match outcome {
        Outcome::Stopped => 0,
        Outcome::Unchanged => {
            transaction.execute("UPDATE documents SET state = 'ready' WHERE id = ?1", [id.0])?
        }
        Outcome::Read {
            hash,
            passages,
            notes,
        } => {
            if !rows::replace_passages(transaction, id, passages)? {
                return Ok(false);
            }
            let notes = serde_json::to_string(notes)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
            transaction.execute(
                "UPDATE documents SET state = 'ready', trouble = NULL, needs_password = 0, hash = ?2, notes = ?3
                 WHERE id = ?1",
                params![id.0, hash, notes],
            )?
        }
        Outcome::NoText {
            hash,
            state,
            trouble,
            needs_password,
        } => {
            if !rows::replace_passages(transaction, id, &[])? {
                return Ok(false);
            }
            transaction.execute(
                "UPDATE documents SET state = ?2, trouble = ?3, needs_password = ?4, hash = ?5, notes = '[]' WHERE id = ?1",
                params![id.0, state.word(), trouble, needs_password, hash],
            )?
        }
    };
    Ok(changed > 0)
}

/// Notes what a source has now; gives the documents that are gone.
fn note_files(
    transaction: &rusqlite::Transaction<'_>,
    source: &Source,
    files: &[Found],
    unseen: &[(PathBuf, String)],
) -> rusqlite::Result<Vec<(DocumentId, String)>> {
    let still = transaction.query_row(
        "SELECT count(*) FROM sources WHERE id = ?1",
        [source.id.0],
        |row| row.get::<_, i64>(0),
    )?;
    if still == 0 {
        // Removed meanwhile.
        return Ok(Vec::new());
    }
    let mut upsert = transaction.prepare_cached(
        "INSERT INTO documents (id, source, path, name, bytes, modified_ns, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'waiting')
         ON CONFLICT (id) DO UPDATE SET
            state = CASE WHEN bytes = ?5 AND modified_ns = ?6 THEN state ELSE 'waiting' END,
            source = ?2, bytes = ?5, modified_ns = ?6",
    )?;
    let mut here = HashSet::with_capacity(files.len());
    for file in files {
        let id = DocumentId::of(&file.path);
        here.insert(id);
        upsert.execute(params![
            id.0,
            source.id.0,
            file.path.to_str(),
            file_name(&file.path),
            file.bytes,
            file.modified_ns
        ])?;
    }
    let mut statement =
        transaction.prepare_cached("SELECT id, name, path FROM documents WHERE source = ?1")?;
    let known: Vec<(DocumentId, String, String)> = statement
        .query_map([source.id.0], |row| {
            Ok((DocumentId(row.get(0)?), row.get(1)?, row.get(2)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    // What is in a folder that could not be looked into is there, for all that is known.
    let is_unseen = |path: &str| {
        unseen
            .iter()
            .any(|(folder, _)| Path::new(path).starts_with(folder))
    };
    let gone: Vec<_> = known
        .into_iter()
        .filter(|(id, _, path)| !here.contains(id) && !is_unseen(path))
        .map(|(id, name, _)| (id, name))
        .collect();
    for (id, _) in &gone {
        rows::delete_document(transaction, *id)?;
    }
    Ok(gone)
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_folder_that_cannot_be_looked_into_are_not_gone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("notes");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        for name in ["a.txt", "sub/b.txt"] {
            std::fs::write(root.join(name), name).unwrap();
        }
        let (index, _) = Index::open(&folder.path().join("index"), None).unwrap();
        let source = index.add(&root).unwrap();
        let mut run = Run {
            cancel: CancelToken::default(),
            is_busy: &|| false,
            progress: &mut |_| (),
            threads: 1,
        };
        assert_eq!(index.update(&mut run).unwrap().read, 2);
        let unseen = [(root.join("sub"), "a reason".to_owned())];
        let note = |unseen: &[(PathBuf, String)]| {
            let gone = index
                .database
                .write(|transaction| note_files(transaction, &source, &[], unseen))
                .unwrap();
            gone.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
        };
        assert_eq!(note(&unseen), ["a.txt"]);
        assert_eq!(note(&[]), ["b.txt"]);
    }
}
