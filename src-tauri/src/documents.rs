//! The person's documents: one index, and one thread that keeps it up to date with the files, at once when a file is added
//! and again whenever one changes. Reading pauses while an answer is made.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use reprise_engine::{CancelToken, Owner};
use reprise_library::asking::{chat_budget, documents_within, findings, unseen};
use reprise_library::chats::Given;
use reprise_library::folders::NoHome;
use reprise_library::index::watch::Watch;
use reprise_library::index::{
    DocumentId, Index, IndexedDocument, Progress, Run, Source, SourceId, State, StoredPassage,
};
use reprise_library::models::Shelf;
use reprise_library::{Ocr, TokenCounter, files, folders};

use crate::events::Events;
use crate::host::Host;
use crate::platform;
use crate::types::{
    AppEvent, DocumentList, DocumentShown, DocumentText, Failure, IndexWork, Indexing, PassageShown,
    SourceShown,
};

/// Most documents of one list.
const MOST_LISTED: usize = 500;
/// Most documents that are suggested while a name is typed.
const MOST_SUGGESTED: usize = 8;
/// The page hears of progress this often at most,
const TELL_EVERY: Duration = Duration::from_millis(150);
/// and of counts, which take a look at the whole index, this often.
const COUNT_EVERY: Duration = Duration::from_secs(2);
/// How long a question waits for documents that are being read.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(50);
/// A file of more bytes is named by adding it, instead of handing its bytes over.
const MOST_ATTACHED_BYTES: usize = 256 << 20;

/// What is asked of the thread.
enum Wish {
    Update,
    Quit,
}

/// Where things are.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The index.
    pub index: PathBuf,
    /// The model for meanings, which need not be there.
    pub encoder: PathBuf,
    /// Copies of files that come without a path.
    pub attached: PathBuf,
    /// What is kept of texts that were read.
    pub kv: PathBuf,
}

impl Folders {
    /// This person's.
    ///
    /// # Errors
    /// When no home directory is known.
    pub fn of_person() -> Result<Folders, NoHome> {
        let data = folders::data()?;
        // As the index has paths, which follow links.
        let data = data.canonicalize().unwrap_or(data);
        Ok(Folders {
            index: folders::index()?,
            encoder: folders::encoder()?,
            attached: data.join("attached"),
            kv: folders::kv()?,
        })
    }

    /// The program's own folder.
    fn data(&self) -> &Path {
        self.attached.parent().unwrap_or(&self.attached)
    }

    /// Whether a file is a copy of one that came without a path.
    fn is_copy(&self, path: &Path) -> bool {
        path.starts_with(&self.attached)
    }

    fn source_shown(&self, source: &Source) -> SourceShown {
        SourceShown {
            id: source.id.0,
            path: folders::shown(&source.path),
            is_folder: source.is_folder,
            documents: source.documents,
            is_there: source.is_there,
            is_copy: self.is_copy(&source.path),
        }
    }

    fn document_shown(&self, index: &Index, document: &IndexedDocument) -> Result<DocumentShown, Failure> {
        Ok(DocumentShown {
            id: document.id.to_string(),
            source: document.source.0,
            name: document.name.clone(),
            path: document.path.to_string_lossy().into_owned(),
            is_copy: self.is_copy(&document.path),
            bytes: document.bytes,
            state: document.state,
            trouble: document.trouble.clone(),
            needs_password: document.needs_password,
            notes: document.notes.clone(),
            is_ocr: index.has_ocr(document.id)?,
            passages: document.passages,
        })
    }
}

/// The documents.
pub struct Documents {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    folders: Folders,
    shelf: Shelf,
    host: Host,
    events: Events,
    index: Mutex<Option<Arc<Index>>>,
    state: Mutex<Work>,
    wishes: Sender<Wish>,
}

struct Work {
    indexing: Indexing,
    told: Option<Instant>,
    counted: Option<Instant>,
    /// Ends the run that is under way.
    cancel: CancelToken,
    /// The person wants nothing read until they say so.
    is_stopped: bool,
    is_leaving: bool,
    /// What the last run and the watching found odd.
    notes: Vec<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each of these is changed by single assignments: whole after any panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Documents {
    /// Starts the thread, which brings the index up to date where there is one.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(folders: Folders, shelf: Shelf, host: Host, events: Events) -> std::io::Result<Documents> {
        let (wishes, queue) = mpsc::channel();
        let inner = Arc::new(Inner {
            wishes,
            folders,
            shelf,
            host,
            events,
            index: Mutex::default(),
            state: Mutex::new(Work {
                indexing: Indexing {
                    work: IndexWork::Idle,
                    waiting: 0,
                    ready: 0,
                    failed: 0,
                    skipped: 0,
                    passages: 0,
                    without_vector: 0,
                    bytes: 0,
                },
                told: None,
                counted: None,
                cancel: CancelToken::default(),
                is_stopped: false,
                is_leaving: false,
                notes: Vec::new(),
            }),
        });
        let thread = {
            let inner = Arc::clone(&inner);
            thread::Builder::new().name("documents".into()).spawn(move || {
                platform::let_the_window_go_first();
                inner.keep(&queue);
            })?
        };
        if inner.folders.index.is_dir() {
            let _ = inner.wishes.send(Wish::Update);
        }
        Ok(Documents {
            inner,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// How far they are.
    pub fn indexing(&self) -> Indexing {
        lock(&self.inner.state).indexing.clone()
    }

    /// Those with this text in their name or path, of this source, in this state.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn list(
        &self,
        query: &str,
        source: Option<i64>,
        state: Option<State>,
    ) -> Result<DocumentList, Failure> {
        let inner = &self.inner;
        if !inner.exists() {
            return Ok(DocumentList {
                sources: Vec::new(),
                documents: Vec::new(),
                total: 0,
                indexing: self.indexing(),
                notes: Vec::new(),
            });
        }
        let index = inner.index()?;
        let query = query.trim().to_lowercase();
        let fits = |document: &IndexedDocument| {
            source.is_none_or(|source| document.source.0 == source)
                && (query.is_empty() || document.path.to_string_lossy().to_lowercase().contains(&query))
        };
        let mut documents = index.documents(state)?;
        documents.retain(fits);
        let total = documents.len();
        let mut notes = lock(&inner.state).notes.clone();
        notes.extend(index.meaning().why_not().map(str::to_owned));
        Ok(DocumentList {
            sources: index
                .sources()?
                .iter()
                .map(|source| inner.folders.source_shown(source))
                .collect(),
            documents: documents
                .iter()
                .take(MOST_LISTED)
                .map(|document| inner.folders.document_shown(&index, document))
                .collect::<Result<_, _>>()?,
            total,
            indexing: self.indexing(),
            notes,
        })
    }

    /// Documents whose name fits what is typed, those first whose name begins so.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn suggest(&self, typed: &str) -> Result<Vec<DocumentShown>, Failure> {
        if !self.inner.exists() {
            return Ok(Vec::new());
        }
        let typed = typed.trim().to_lowercase();
        let index = self.inner.index()?;
        let mut fitting: Vec<(usize, IndexedDocument)> = index
            .documents(None)?
            .into_iter()
            .filter(|document| matches!(document.state, State::Ready | State::Waiting))
            .filter_map(|document| {
                let at = document.name.to_lowercase().find(&typed)?;
                Some((at, document))
            })
            .collect();
        fitting.sort_by(|(at, one), (other_at, other)| (at, &one.name).cmp(&(other_at, &other.name)));
        fitting.truncate(MOST_SUGGESTED);
        fitting
            .iter()
            .map(|(_, document)| self.inner.folders.document_shown(&index, document))
            .collect()
    }

    /// Those of these documents that are still there, by their numbers.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn known(&self, documents: &[String]) -> Result<Vec<DocumentShown>, Failure> {
        if documents.is_empty() || !self.inner.exists() {
            return Ok(Vec::new());
        }
        let index = self.inner.index()?;
        let mut known = Vec::new();
        for document in documents {
            if let Some(document) = index.document(number(document)?)? {
                known.push(self.inner.folders.document_shown(&index, &document)?);
            }
        }
        Ok(known)
    }

    /// Adds files or folders; they are read at once.
    ///
    /// # Errors
    /// When one is not there, or the index cannot be written.
    pub fn add(&self, paths: &[PathBuf]) -> Result<(), Failure> {
        let index = self.inner.index()?;
        for path in paths {
            index.add(path)?;
        }
        self.update();
        Ok(())
    }

    /// Keeps a copy of a file that came without a path, dropped on the window perhaps, and adds that.
    ///
    /// # Errors
    /// When it is empty or too large, or the copy cannot be written.
    pub fn attach(&self, name: &str, bytes: &[u8]) -> Result<DocumentShown, Failure> {
        let name = files::plain_name(name);
        if bytes.is_empty() {
            return Err(Failure::new(format!(
                "{name} is empty; there is nothing to ask about"
            )));
        }
        if bytes.len() > MOST_ATTACHED_BYTES {
            return Err(Failure::new(format!(
                "{name} has {} MB; a file of more than {} MB is added in Documents, with Add files",
                bytes.len() >> 20,
                MOST_ATTACHED_BYTES >> 20
            )));
        }
        // The same file twice is one document.
        let folder = self.inner.folders.attached.join(files::fingerprint(bytes));
        reprise_engine::store::private_folder(&folder)?;
        let path = folder.join(&name);
        if !path.is_file() {
            crate::files::write_whole(&path, bytes)?;
        }
        let path = path.canonicalize()?;
        let index = self.inner.index()?;
        let source = index.add(&path)?;
        self.update();
        if let Some(known) = index.document(DocumentId::of(&path))? {
            return self.inner.folders.document_shown(&index, &known);
        }
        // It is in the index as soon as it was looked at.
        Ok(DocumentShown {
            id: DocumentId::of(&path).to_string(),
            source: source.id.0,
            name,
            path: path.to_string_lossy().into_owned(),
            is_copy: true,
            bytes: bytes.len() as u64,
            state: State::Waiting,
            trouble: None,
            needs_password: false,
            notes: Vec::new(),
            is_ocr: false,
            passages: 0,
        })
    }

    /// Takes a source out, with all that was read of it.
    ///
    /// # Errors
    /// When there is no such source, or something of it cannot be erased.
    pub fn remove(&self, source: i64) -> Result<(), Failure> {
        let inner = &self.inner;
        let index = inner.index()?;
        let path = index
            .sources()?
            .into_iter()
            .find(|one| one.id.0 == source)
            .map(|one| one.path);
        let removed = index.remove(SourceId(source))?;
        if let Some(copy) = path.filter(|path| inner.folders.is_copy(path)) {
            // A copy of ours, in a folder of its own.
            if let Some(folder) = copy.parent() {
                fs::remove_dir_all(folder)?;
            }
        }
        inner.erase_kept(removed.owners)?;
        inner.count();
        inner.tell(None, true);
        // A run under way looks at the sources again, and what is watched changes.
        let _ = self.inner.wishes.send(Wish::Update);
        Ok(())
    }

    /// Takes every source out, with all that was read.
    ///
    /// # Errors
    /// When something of it cannot be erased.
    pub fn remove_all(&self) -> Result<(), Failure> {
        if !self.inner.exists() {
            return Ok(());
        }
        let sources = self.inner.index()?.sources()?;
        sources.iter().try_for_each(|source| self.remove(source.id.0))
    }

    /// Gives the password of a document, which is read again.
    ///
    /// # Errors
    /// When there is no such document.
    pub fn unlock(&self, document: &str, password: &str) -> Result<(), Failure> {
        self.inner.index()?.unlock(number(document)?, password)?;
        self.update();
        Ok(())
    }

    /// Stops reading until [`Documents::update`].
    pub fn stop(&self) {
        let mut work = lock(&self.inner.state);
        work.is_stopped = true;
        work.cancel.cancel();
        drop(work);
        self.inner.tell(Some(IndexWork::Stopped), true);
    }

    /// Reads what is new or changed, and goes on where a stop left off.
    pub fn update(&self) {
        {
            // A run that is under way begins anew: files that a person named come before those in folders.
            let mut work = lock(&self.inner.state);
            work.is_stopped = false;
            work.cancel.cancel();
        }
        let _ = self.inner.wishes.send(Wish::Update);
    }

    /// A document's text, as it was read.
    ///
    /// # Errors
    /// When it is not in the index (any more).
    pub fn read(&self, path: &str) -> Result<DocumentText, Failure> {
        let index = self.inner.index()?;
        let document = index
            .document(DocumentId::of(Path::new(path)))?
            .ok_or_else(|| not_there(path))?;
        let passages = index.passages(document.id)?;
        Ok(DocumentText {
            document: self.inner.folders.document_shown(&index, &document)?,
            passages: passages.iter().map(passage_shown).collect(),
        })
    }

    /// Whether a file is among the documents.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_known(&self, path: &str) -> Result<(), Failure> {
        match self.inner.exists()
            && self
                .inner
                .index()?
                .document(DocumentId::of(Path::new(path)))?
                .is_some()
        {
            true => Ok(()),
            false => Err(not_there(path)),
        }
    }

    /// What a question about documents is given, beside what the model sees already: all of them, or those with these numbers.
    /// Documents that are being read are waited for a while.
    ///
    /// # Errors
    /// When a document has no text, is not ready in time, or the index cannot be read.
    pub fn given(
        &self,
        question: &str,
        documents: &[String],
        is_all: bool,
        seen: &[&Given],
        context_tokens: usize,
        count: TokenCounter<'_>,
    ) -> Result<Vec<Given>, Failure> {
        let index = self.inner.index()?;
        let chosen: Vec<DocumentId> = match is_all {
            true => documents_within(&index, None)?,
            false => {
                let chosen = documents
                    .iter()
                    .map(|document| number(document))
                    .collect::<Result<Vec<_>, _>>()?;
                wait_for(&index, &chosen)?;
                chosen
            }
        };
        if chosen.is_empty() {
            return Err(Failure::new(
                "no document can be asked about yet; add some in Documents, or wait until they are read",
            ));
        }
        let found = findings(&index, question, &chosen, chat_budget(context_tokens), count)?;
        Ok(unseen(found.given, seen))
    }

    /// Whether all of these documents have text that can be found.
    pub fn are_read(&self, documents: &[String]) -> bool {
        documents.is_empty()
            || self.inner.index().is_ok_and(|index| {
                documents.iter().all(|document| {
                    let known = number(document).ok().and_then(|id| index.document(id).ok()?);
                    known.is_some_and(|document| document.state == State::Ready)
                })
            })
    }

    /// Tells the thread to end, and does not wait for it.
    pub fn leave(&self) {
        let mut work = lock(&self.inner.state);
        work.is_leaving = true;
        work.cancel.cancel();
        drop(work);
        let _ = self.inner.wishes.send(Wish::Quit);
    }

    /// Ends the thread.
    pub fn quit(&self) {
        self.leave();
        if let Some(thread) = lock(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("the documents' thread ended by a fault of its own");
        }
    }
}

impl Inner {
    /// Whether anything was ever added.
    fn exists(&self) -> bool {
        lock(&self.index).is_some() || self.folders.index.is_dir()
    }

    /// The index, opened once; and again where it was found damaged, which begins it anew.
    fn index(&self) -> Result<Arc<Index>, Failure> {
        let mut opened = lock(&self.index);
        if let Some(index) = opened.as_ref().filter(|index| !index.is_damaged()) {
            return Ok(Arc::clone(index));
        }
        *opened = None;
        let (index, notices) = Index::open(&self.folders.index, Some(&self.folders.encoder))?;
        // What was begun anew is read again, whoever opened it.
        if !notices.is_empty() {
            let _ = self.wishes.send(Wish::Update);
        }
        for message in notices {
            self.events.tell(AppEvent::Notice { message });
        }
        let index = index.with_ocr(Ocr::on(&self.shelf).map(Arc::new));
        // Copies of dropped files are named one by one.
        let index = Arc::new(index.leaving_out(self.folders.data()));
        *opened = Some(Arc::clone(&index));
        Ok(index)
    }

    /// The thread: brings the index up to date whenever that is wished for, and watches the files in between.
    fn keep(self: &Arc<Inner>, queue: &Receiver<Wish>) {
        // Kept for as long as nothing is read: a run begins by looking at everything anyway.
        let mut _watch = None;
        while let Ok(wish) = queue.recv() {
            let rest: Vec<Wish> = queue.try_iter().collect();
            if matches!(wish, Wish::Quit) || rest.iter().any(|wish| matches!(wish, Wish::Quit)) {
                return;
            }
            if let Err(Failure { message }) = self.update() {
                self.tell(Some(IndexWork::Failed { message }), true);
            }
            _watch = self.watch();
        }
    }

    fn update(&self) -> Result<(), Failure> {
        let cancel = {
            let mut work = lock(&self.state);
            if work.is_stopped || work.is_leaving {
                return Ok(());
            }
            work.cancel = CancelToken::default();
            work.cancel.clone()
        };
        let index = self.index()?;
        self.count();
        let updated = index.update(&mut Run {
            cancel: cancel.clone(),
            is_busy: &|| self.host.is_answering(),
            // The other half is for whoever chats meanwhile.
            threads: thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)),
            progress: &mut |progress| {
                if lock(&self.state)
                    .counted
                    .is_none_or(|at| at.elapsed() >= COUNT_EVERY)
                {
                    self.count();
                }
                self.tell(Some(told(progress)), false);
            },
        })?;
        {
            let mut work = lock(&self.state);
            work.notes = updated.troubles;
        }
        self.erase_kept(updated.gone.owners)?;
        self.count();
        let is_stopped = lock(&self.state).is_stopped;
        let work = if is_stopped {
            IndexWork::Stopped
        } else {
            IndexWork::Idle
        };
        self.tell(Some(work), true);
        if updated.read > 0 {
            self.host.read_ahead();
        }
        Ok(())
    }

    /// Watches the sources; what cannot be watched is noted.
    fn watch(&self) -> Option<Watch> {
        let wishes = self.wishes.clone();
        let watch = self.index().and_then(|index| {
            Ok(index.watch(move || {
                let _ = wishes.send(Wish::Update);
            })?)
        });
        match watch {
            Ok(watch) => {
                lock(&self.state).notes.extend(watch.troubles.iter().cloned());
                Some(watch)
            }
            Err(Failure { message }) => {
                lock(&self.state).notes.push(message);
                None
            }
        }
    }

    /// Erases the keys and values that are kept of documents that are gone.
    fn erase_kept(&self, owners: Vec<Owner>) -> Result<(), Failure> {
        if owners.is_empty() {
            return Ok(());
        }
        self.host.with_cache(self.folders.kv.clone(), move |cache, _| {
            for owner in &owners {
                cache.erase(owner)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Counts what is in the index.
    fn count(&self) {
        let status = match self.index().and_then(|index| Ok(index.status()?)) {
            Ok(status) => status,
            Err(Failure { message }) => {
                tracing::warn!(message, "the documents could not be counted");
                return;
            }
        };
        let mut work = lock(&self.state);
        work.counted = Some(Instant::now());
        work.indexing = Indexing {
            work: work.indexing.work.clone(),
            waiting: status.waiting,
            ready: status.ready,
            failed: status.failed,
            skipped: status.skipped,
            passages: status.passages,
            without_vector: status.without_vector,
            bytes: status.bytes,
        };
    }

    /// Tells the page how far it is, now or if it was not told lately.
    fn tell(&self, now: Option<IndexWork>, is_due: bool) {
        let mut work = lock(&self.state);
        if let Some(now) = now {
            work.indexing.work = now;
        }
        if is_due || work.told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            work.told = Some(Instant::now());
            let indexing = work.indexing.clone();
            drop(work);
            self.events.tell(AppEvent::Documents { indexing });
        }
    }
}

/// Waits until these documents have been read.
fn wait_for(index: &Index, documents: &[DocumentId]) -> Result<(), Failure> {
    let begin = Instant::now();
    for &id in documents {
        loop {
            let document = index.document(id)?;
            let state = document.as_ref().map(|document| document.state);
            match (state, document) {
                (Some(State::Ready), _) => break,
                (Some(State::Failed | State::Skipped), Some(document)) => {
                    return Err(Failure::new(format!(
                        "{} cannot be asked about: {}",
                        document.name,
                        document.trouble.as_deref().unwrap_or("it has no text")
                    )));
                }
                (_, document) if begin.elapsed() > LONGEST_WAIT => {
                    let name = document.map_or_else(|| "a document".to_owned(), |document| document.name);
                    return Err(Failure::new(format!(
                        "{name} is still being read; ask again when it is ready, or take it off the message"
                    )));
                }
                // A file that was just added is not in the index until it was looked at.
                _ => thread::sleep(GLANCE),
            }
        }
    }
    Ok(())
}

fn number(document: &str) -> Result<DocumentId, Failure> {
    document
        .parse()
        .map_err(|_| Failure::new(format!("{document} is no number of a document")))
}

fn not_there(path: &str) -> Failure {
    Failure::new(format!(
        "{} is not among your documents (any more); add it in Documents",
        folders::shown(Path::new(path))
    ))
}

fn told(progress: &Progress) -> IndexWork {
    match progress {
        Progress::Looking(path) => IndexWork::Looking {
            path: folders::shown(path),
        },
        Progress::Reading {
            done, total, path, ..
        } => IndexWork::Reading {
            done: *done,
            total: *total,
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        },
        Progress::Embedding { done, total } => IndexWork::Embedding {
            done: *done,
            total: *total,
        },
    }
}

fn passage_shown(stored: &StoredPassage) -> PassageShown {
    let passage = &stored.passage;
    PassageShown {
        place: passage.place.to_string(),
        headings: passage.headings.clone(),
        text: passage.text.clone(),
        start: passage.range.start,
        end: passage.range.end,
        is_ocr: passage.is_ocr,
    }
}
