//! The index of documents: files and folders that a person added, the passages in them, and finding those by words and by
//! meaning.
//!
//! One folder has all of it. `passages.sqlite` is the truth; `keywords` holds what can be made anew from it at any time.
//! Several programs may search one index at a time, and one may write it. What is on disk is a copy of what the files
//! said: removing a source leaves nothing of it.
//!
//! ```
//! use reprise_library::index::{Index, Run};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let notes = folder.path().join("house.md");
//! std::fs::write(&notes, "# Garden\n\nPrune the apple tree in February.\n").unwrap();
//! let (index, notices) = Index::open(&folder.path().join("index"), None)?;
//! assert!(notices.is_empty());
//! index.add(&notes)?;
//! index.update(&mut Run { cancel: Default::default(), is_busy: &|| false, progress: &mut |_| {}, threads: 1 })?;
//! let found = index.search("When do I prune apple trees?", 6)?;
//! assert_eq!(found.hits[0].stored.passage.path, notes.canonicalize().unwrap());
//! # Ok::<(), reprise_library::index::IndexError>(())
//! ```

mod choose;
mod damage;
mod database;
mod error;
mod keywords;
mod rows;
mod scan;
mod search;
mod types;
mod update;
mod vectors;
pub mod watch;

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use reprise_engine::encoder::Encoder;
use reprise_engine::store::private_folder;
use tantivy::TantivyError;

pub use choose::{Chosen, fitting, in_reading_order, joined};
pub use error::IndexError;
pub use search::{By, FoundPassages, Hit};
pub use types::{
    DOCUMENT_OWNER, DocumentId, IndexedDocument, Meaning, PassageId, Removed, Source, SourceId, State,
    Status, StoredPassage,
};
pub use update::{Progress, Run, Updated};

use crate::folders::shown;
use crate::ocr::Ocr;
use damage::InUse;
use database::Database;
use keywords::Keywords;
use vectors::Vectors;
use watch::Watch;

/// The folder of the keyword index.
const KEYWORDS: &str = "keywords";

/// An index of documents. Share it between threads in an [`Arc`].
pub struct Index {
    folder: PathBuf,
    database: Database,
    keywords: Mutex<Arc<Keywords>>,
    encoder: Option<Arc<Encoder>>,
    meaning: Meaning,
    vectors: Mutex<Vectors>,
    ocr: Option<Arc<Ocr>>,
    /// Of files that are yet to be read; never on disk.
    passwords: Mutex<HashMap<DocumentId, String>>,
    /// A folder of the program's own.
    left_out: Option<PathBuf>,
    /// The last to be dropped.
    _in_use: InUse,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Index")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index in this folder, or begins it; `encoder` is the folder of the model for meanings, where it is known.
    /// The notices are for the person.
    ///
    /// # Errors
    /// When the folder cannot be used. A model that is missing or broken is no error: passages are found by their words
    /// then, and [`Index::meaning`] says why.
    pub fn open(folder: &Path, encoder: Option<&Path>) -> Result<(Index, Vec<String>), IndexError> {
        private_folder(folder).map_err(|error| IndexError::files("make the folder", folder, error))?;
        let (database, in_use, mut notices) = damage::open(folder)?;
        let (encoder, meaning) = load(encoder);
        let at = folder.join(KEYWORDS);
        let opened = if at.exists() {
            Keywords::open(&at).map(Some)
        } else {
            Ok(None)
        };
        let (keywords, is_sound) = match opened {
            Ok(Some(keywords)) => (keywords, true),
            other => {
                if let Err(error) = &other {
                    tracing::warn!("the keyword index cannot be used: {error}");
                    notices.push("The keyword index was damaged and was made anew.".to_owned());
                }
                let _lock = lock(folder)?;
                let made = Keywords::create(&at).map_err(|error| IndexError::keywords(folder, error))?;
                (made, false)
            }
        };
        let index = Index {
            folder: folder.to_owned(),
            database,
            keywords: Mutex::new(Arc::new(keywords)),
            encoder: encoder.map(Arc::new),
            meaning,
            vectors: Mutex::default(),
            ocr: None,
            passwords: Mutex::default(),
            left_out: None,
            _in_use: in_use,
        };
        if !is_sound {
            index.rebuild_keywords()?;
        } else if !index.keywords_are_complete()? {
            match index.rebuild_keywords() {
                Ok(()) => notices.push("The keyword index was not complete and was made anew.".to_owned()),
                // Whoever writes it completes it.
                Err(IndexError::InUse { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((index, notices))
    }

    /// The same with models that recognise the text of scans and pictures. What was read without any is read again with them
    /// by the next update.
    #[must_use]
    pub fn with_ocr(mut self, ocr: Option<Arc<Ocr>>) -> Index {
        self.ocr = ocr;
        self
    }

    /// The same without what is in this folder, though a folder was added that has it: the program's own files are nothing
    /// that a person wrote.
    #[must_use]
    pub fn leaving_out(mut self, folder: &Path) -> Index {
        self.left_out = folder.canonicalize().ok();
        self
    }

    /// Adds a file or folder; the next update reads it. Adding it again changes nothing.
    ///
    /// # Errors
    /// When it is not there, or the index cannot be written.
    pub fn add(&self, path: &Path) -> Result<Source, IndexError> {
        let path = path
            .canonicalize()
            .map_err(|error| IndexError::files("find", path, error))?;
        let is_folder = path.is_dir();
        let shown = shown(&path);
        if !is_folder && !path.is_file() {
            return Err(IndexError::Refused(format!(
                "{shown} is neither a file nor a folder"
            )));
        }
        if is_folder && self.left_out.as_ref().is_some_and(|own| path.starts_with(own)) {
            return Err(IndexError::Refused(format!(
                "{shown} is where Reprise keeps its own files; choose another folder"
            )));
        }
        let Some(text) = path.to_str() else {
            return Err(IndexError::Refused(format!(
                "{shown}: its name is not valid Unicode; rename it"
            )));
        };
        if path.starts_with(&self.folder) || self.folder.canonicalize().is_ok_and(|own| path.starts_with(own))
        {
            return Err(IndexError::Refused(format!(
                "{shown} is the index itself; choose another folder"
            )));
        }
        let id = self.database.add_source(text, is_folder)?;
        damage::note(&self.folder, &self.database.paths()?)?;
        Ok(Source {
            id,
            path,
            is_folder,
            documents: 0,
            is_there: true,
        })
    }

    /// Takes a source out of the index, with everything that was read of it, so that nothing of it stays on disk; files
    /// that another source has too stay.
    ///
    /// # Errors
    /// When there is no such source, or the index cannot be written.
    pub fn remove(&self, source: SourceId) -> Result<Removed, IndexError> {
        let sources = self.sources()?;
        if !sources.iter().any(|one| one.id == source) {
            return Err(IndexError::Refused("this is not in the index (any more)".into()));
        }
        let others: Vec<&Source> = sources.iter().filter(|one| one.id != source).collect();
        // First, so that nothing brings back what is being taken out.
        let paths = others.iter().map(|one| one.path.to_string_lossy().into_owned());
        damage::note(&self.folder, &paths.collect::<Vec<_>>())?;
        let removed = self.database.write(|transaction| {
            let mut statement =
                transaction.prepare("SELECT id, path, name FROM documents WHERE source = ?1")?;
            let documents = statement
                .query_map([source.0], |row| {
                    Ok((
                        DocumentId(row.get(0)?),
                        PathBuf::from(row.get::<_, String>(1)?),
                        row.get::<_, String>(2)?,
                    ))
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let mut removed = Removed::default();
            for (id, path, name) in documents {
                let other = others
                    .iter()
                    .find(|other| path == other.path || other.is_folder && path.starts_with(&other.path));
                if let Some(other) = other {
                    transaction.execute(
                        "UPDATE documents SET source = ?2 WHERE id = ?1",
                        [id.0, other.id.0],
                    )?;
                } else {
                    rows::delete_document(transaction, id)?;
                    removed.documents += 1;
                    removed.owners.extend(id.owner(&name));
                }
            }
            transaction.execute("DELETE FROM sources WHERE id = ?1", [source.0])?;
            rows::delete_lone_vectors(transaction)?;
            Ok(removed)
        })?;
        self.database.empty_log()?;
        *self.vectors() = Vectors::default();
        match self.lock() {
            Ok(_lock) => {
                let keywords = |error| self.keywords_error(error);
                let index = self.keywords();
                let mut writer = index.writer().map_err(keywords)?;
                self.catch_up(&mut writer)?;
                writer.purge(&index).map_err(keywords)?;
                writer.close().map_err(keywords)?;
            }
            // An update that is under way does the rest, and it finds nothing in the meantime.
            Err(IndexError::InUse { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(removed)
    }

    /// Watches what was added for changes; `changed` is called on a thread of its own, where it may take its time.
    ///
    /// # Errors
    /// When the index cannot be read, or the system has no way to watch.
    pub fn watch(&self, changed: impl FnMut() + Send + 'static) -> Result<Watch, IndexError> {
        Watch::start(&self.sources()?, self.left_out.clone(), changed)
    }

    /// Gives the password of a document that is encrypted; the next update reads it. It is kept in memory until then.
    ///
    /// # Errors
    /// When there is no such document, or the index cannot be written.
    pub fn unlock(&self, document: DocumentId, password: &str) -> Result<(), IndexError> {
        let changed = self.database.write(|transaction| {
            transaction.execute(
                "UPDATE documents SET state = 'waiting' WHERE id = ?1",
                [document.0],
            )
        })?;
        if changed == 0 {
            return Err(IndexError::Refused(
                "this document is not in the index (any more)".into(),
            ));
        }
        self.passwords().insert(document, password.to_owned());
        Ok(())
    }

    /// What was added, by path.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn sources(&self) -> Result<Vec<Source>, IndexError> {
        self.database.read(rows::sources)
    }

    /// The documents, or those in this state, by path.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn documents(&self, state: Option<State>) -> Result<Vec<IndexedDocument>, IndexError> {
        self.database
            .read(|connection| rows::documents(connection, state))
    }

    /// A document.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn document(&self, id: DocumentId) -> Result<Option<IndexedDocument>, IndexError> {
        self.database
            .read(|connection| rows::document_by_id(connection, id))
    }

    /// Whether some of a document's text was recognised in pictures. It looks at every passage of the document.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn has_ocr(&self, document: DocumentId) -> Result<bool, IndexError> {
        self.database
            .read(|connection| rows::has_ocr(connection, document))
    }

    /// A passage.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn passage(&self, id: PassageId) -> Result<Option<StoredPassage>, IndexError> {
        let found = self
            .database
            .read(|connection| rows::passage_by_id(connection, id))?;
        Ok(found.map(|(stored, _)| stored))
    }

    /// A document's passages in order.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn passages(&self, document: DocumentId) -> Result<Vec<StoredPassage>, IndexError> {
        self.database
            .read(|connection| rows::passages_between(connection, document, 0, usize::MAX))
    }

    /// Whether it was found damaged while it was used. Opened again once nobody has it open any more, it is begun anew.
    pub fn is_damaged(&self) -> bool {
        self.database.is_damaged()
    }

    /// Whether passages are found by what they mean.
    pub fn meaning(&self) -> Meaning {
        self.meaning.clone()
    }

    /// How far the index is.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn status(&self) -> Result<Status, IndexError> {
        let sources = self.sources()?;
        self.database.read(|connection| {
            let count = |sql: &str| {
                connection
                    .prepare_cached(sql)?
                    .query_row([], |row| row.get::<_, usize>(0))
            };
            Ok(Status {
                waiting: count("SELECT count(*) FROM documents WHERE state = 'waiting'")?,
                ready: count("SELECT count(*) FROM documents WHERE state = 'ready'")?,
                failed: count("SELECT count(*) FROM documents WHERE state = 'failed'")?,
                skipped: count("SELECT count(*) FROM documents WHERE state = 'skipped'")?,
                passages: count("SELECT count(*) FROM passages")?,
                without_vector: count(
                    "SELECT count(*) FROM passages
                     WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.content = passages.content)",
                )?,
                bytes: bytes_in(&self.folder),
                meaning: self.meaning.clone(),
                sources,
            })
        })
    }

    /// The right to write, until it is dropped.
    fn lock(&self) -> Result<File, IndexError> {
        lock(&self.folder)
    }

    /// Whether the keyword index has all passages, save for what is noted as lacking, which the next update brings.
    fn keywords_are_complete(&self) -> Result<bool, IndexError> {
        let (is_noted, passages) = self.database.read(|connection| {
            connection.query_row(
                "SELECT EXISTS (SELECT 1 FROM documents WHERE in_keywords = 0) OR EXISTS (SELECT 1 FROM erased),
                    (SELECT count(*) FROM passages)",
                [],
                |row| Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?)),
            )
        })?;
        let has = self
            .keywords()
            .count()
            .map_err(|error| self.keywords_error(error))?;
        Ok(is_noted || has == passages.unsigned_abs())
    }

    /// Makes the keyword index anew out of the database.
    fn rebuild_keywords(&self) -> Result<(), IndexError> {
        let _lock = self.lock()?;
        let keywords = |error| self.keywords_error(error);
        let made = Keywords::create(self.keywords().folder()).map_err(keywords)?;
        *self.keywords.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
        self.database.write(|transaction| {
            transaction.execute(
                "UPDATE documents SET in_keywords = 0 WHERE id IN (SELECT document FROM passages)",
                [],
            )
        })?;
        let mut writer = self.keywords().writer().map_err(keywords)?;
        self.catch_up(&mut writer)?;
        writer.close().map_err(keywords)
    }

    fn keywords(&self) -> Arc<Keywords> {
        self.keywords
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn vectors(&self) -> MutexGuard<'_, Vectors> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn passwords(&self) -> MutexGuard<'_, HashMap<DocumentId, String>> {
        self.passwords.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keywords_error(&self, error: TantivyError) -> IndexError {
        IndexError::keywords(&self.folder, error)
    }
}

fn load(folder: Option<&Path>) -> (Option<Encoder>, Meaning) {
    let missing = || Meaning::Missing {
        what_to_do:
            "passages are found by their words only; to find them by meaning too: reprise models fetch \
                     all-minilm-l6-v2"
                .into(),
    };
    match folder {
        Some(folder) if folder.is_dir() => match Encoder::load(folder) {
            Ok(encoder) => (Some(encoder), Meaning::Ready),
            Err(error) => (
                None,
                Meaning::Broken {
                    why: error.to_string(),
                },
            ),
        },
        _ => (None, missing()),
    }
}

fn lock(folder: &Path) -> Result<File, IndexError> {
    let path = folder.join("writer.lock");
    let file = File::create(&path).map_err(|error| IndexError::files("make", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(IndexError::InUse {
            folder: folder.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(IndexError::files("lock", &path, error)),
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}
