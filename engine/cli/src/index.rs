//! `reprise index`: the documents that are kept ready for questions, and finding passages in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Subcommand;
use reprise_library::asking::documents_within;
use reprise_library::cache::Cache;
use reprise_library::folders;
use reprise_library::index::{
    DocumentId, Index, IndexError, IndexedDocument, Progress, Run, State, Status, Updated,
};
use reprise_library::models::Shelf;
use reprise_library::{Ocr, system_words};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::interrupts::Interrupts;
use crate::output::{StatusLine, counted, note, print, with_commas};
use crate::password::PasswordArguments;

/// How often the line about the work in progress changes at most.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// Characters of a passage that a search shows.
const SHOWN_CHARACTERS: usize = 240;
/// Troubles that status lists.
const SHOWN_TROUBLES: usize = 20;

#[derive(Debug, Subcommand)]
pub enum IndexAction {
    /// Add files and folders, and read what is new in all of them; Ctrl-C stops, and the next time goes on there
    Add {
        /// Files and folders
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Files that are read at once [default: the machine's physical cores]
        #[arg(long, value_name = "N", value_parser = crate::arguments::threads)]
        threads: Option<usize>,
    },
    /// Read what is new or changed, and go on where a stop left off
    Update {
        /// Files that are read at once [default: the machine's physical cores]
        #[arg(long, value_name = "N", value_parser = crate::arguments::threads)]
        threads: Option<usize>,
    },
    /// Read an encrypted document
    Unlock {
        /// The file
        path: PathBuf,
        #[command(flatten)]
        password: PasswordArguments,
    },
    /// Say how far it is, and which files have no text and why
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take files and folders out again, with all that was read of them
    Rm {
        /// As they were added
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Find passages
    Search {
        /// The question
        question: String,
        /// Passages to show
        #[arg(short = 'n', long, value_name = "N", default_value = "6", value_parser = crate::arguments::at_least::<1>)]
        limit: usize,
        /// Only in documents at or below this path
        #[arg(long, value_name = "PATH")]
        within: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn run(action: IndexAction) -> Outcome {
    let index = open()?;
    match action {
        IndexAction::Add { paths, threads } => {
            // All of them, or none: a slip in one name is mended before anything begins.
            let paths = paths
                .iter()
                .map(|path| found(path))
                .collect::<Outcome<Vec<_>>>()?;
            for path in &paths {
                index.add(path)?;
            }
            let added = "what you named is added; read it then with: reprise index update";
            update(&index, threads, Some(added))
        }
        IndexAction::Update { threads } => update(&index, threads, None),
        IndexAction::Unlock { path, password } => unlock(&index, &path, &password),
        IndexAction::Status { json } => status(&index, json),
        IndexAction::Rm { paths } => paths.iter().try_for_each(|path| remove(&index, path)),
        IndexAction::Search {
            question,
            limit,
            within,
            json,
        } => search(&index, &question, limit, within.as_deref(), json),
    }
}

/// The full path of something that is there, as the index keeps it.
fn found(path: &Path) -> Outcome<PathBuf> {
    path.canonicalize().map_err(|error| {
        Failure::message(format!(
            "cannot find {}: {}",
            path.display(),
            system_words(&error)
        ))
    })
}

/// The full path of something that may be gone since it was added: of what is still there, with the rest behind it.
fn named(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = whole.ancestors().find_map(|there| {
        let rest = whole.strip_prefix(there).ok()?;
        Some(there.canonicalize().ok()?.join(rest))
    });
    // Joining nothing would leave a separator at the end.
    there.map_or(whole, |there| there.components().collect())
}

/// Opens the person's index.
pub fn open() -> Outcome<Index> {
    let (index, notices) = Index::open(&folders::index()?, Some(&folders::encoder()?))?;
    for notice in notices {
        note(&format!("note: {notice}"));
    }
    let ocr = Ocr::on(&Shelf::of_machine()?).map(Arc::new);
    Ok(index.with_ocr(ocr).leaving_out(&folders::data()?))
}

/// Brings the index up to date. Where somebody else is doing that, `meanwhile` says what the person has of it.
fn update(index: &Index, threads: Option<usize>, meanwhile: Option<&str>) -> Outcome {
    let interrupts = Interrupts::install()?;
    let begin = Instant::now();
    let mut line = StatusLine::new(false);
    let mut shown: Option<Instant> = None;
    let mut read_time = Duration::ZERO;
    let updated = interrupts.while_answering(|cancel| {
        index.update(&mut Run {
            cancel: cancel.clone(),
            is_busy: &|| false,
            threads: threads.unwrap_or_else(cores),
            progress: &mut |progress| {
                if let Progress::Reading {
                    path,
                    trouble: Some(trouble),
                    ..
                } = progress
                {
                    line.clear();
                    note(&format!("{}: {trouble}", folders::shown(path)));
                }
                if matches!(progress, Progress::Reading { .. }) {
                    read_time = begin.elapsed();
                }
                if shown.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
                    shown = Some(Instant::now());
                    line.show(&told(progress));
                }
            },
        })
    });
    line.clear();
    let updated = updated.map_err(|error| match (&error, meanwhile) {
        (IndexError::InUse { .. }, Some(meanwhile)) => Failure::message(format!("{error}; {meanwhile}")),
        _ => error.into(),
    })?;
    for trouble in &updated.troubles {
        note(&format!("note: {trouble}"));
    }
    erase_kept(&updated.gone)?;
    note(&summary(&updated, read_time, begin.elapsed()));
    if let Some(why) = index.meaning().why_not() {
        note(&format!("note: {why}"));
    }
    match updated.stopped {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn told(progress: &Progress) -> String {
    match progress {
        Progress::Looking(path) => format!("looking at {}", folders::shown(path)),
        Progress::Reading {
            done, total, path, ..
        } => {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            format!(
                "reading {} of {}: {name}",
                with_commas(*done),
                with_commas(*total)
            )
        }
        Progress::Embedding { done, total } => format!(
            "searchable by words; by meaning {} of {} passages",
            with_commas(*done),
            with_commas(*total)
        ),
    }
}

fn summary(updated: &Updated, read_time: Duration, time: Duration) -> String {
    let seen = updated.read + updated.unchanged + updated.failed + updated.skipped;
    let mut parts = vec![format!("{} read", counted(updated.read, "file"))];
    for (count, what) in [
        (updated.unchanged, "unchanged"),
        (updated.failed, "without text"),
        (updated.skipped, "of other kinds"),
        (updated.gone.documents, "gone"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", with_commas(count)));
        }
    }
    if updated.read > 0 {
        let rate = seen as f64 / read_time.as_secs_f64().max(1e-3);
        parts.push(format!("{rate:.0} files/s"));
    }
    if updated.embedded > 0 {
        let rate = updated.embedded as f64 / (time - read_time).as_secs_f64().max(1e-3);
        parts.push(format!(
            "{} by meaning, {rate:.0}/s",
            counted(updated.embedded, "passage")
        ));
    }
    let how = if updated.stopped {
        "stopped, to go on: reprise index update"
    } else {
        "up to date"
    };
    format!("[{}; {:.1} s; {how}]", parts.join(", "), time.as_secs_f64())
}

fn unlock(index: &Index, path: &Path, password: &PasswordArguments) -> Outcome {
    let path = found(path)?;
    let documents = index.documents(None)?;
    let Some(document) = documents.iter().find(|document| document.path == path) else {
        return Err(Failure::message(format!(
            "{} is not in the index; add it first",
            path.display()
        )));
    };
    index.unlock(document.id, &password.password_of(&document.name)?)?;
    update(index, None, None)
}

fn remove(index: &Index, path: &Path) -> Outcome {
    let sources = index.sources()?;
    let full = named(path);
    let Some(source) = sources
        .iter()
        .find(|source| source.path == full || source.path == path)
    else {
        return Err(Failure::message(format!(
            "{} was not added; see what was with: reprise index status",
            path.display()
        )));
    };
    let removed = index.remove(source.id)?;
    erase_kept(&removed)?;
    print(&format!(
        "removed {}, {}\n",
        path.display(),
        counted(removed.documents, "document")
    ))
}

/// Erases the keys and values that are kept of documents that are gone.
fn erase_kept(removed: &reprise_library::index::Removed) -> Outcome {
    if removed.owners.is_empty() {
        return Ok(());
    }
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::message(format!(
            "the documents are out of the index, but what is kept of them for answers could not be erased ({error}); \
             reprise cache ls shows their owners, and reprise cache erase --owner OWNER erases it later"
        ))
    };
    if let Some(cache) = Cache::open(&folders::kv()?).map_err(|error| cannot(&error))? {
        for owner in &removed.owners {
            cache.erase(owner).map_err(|error| cannot(&error))?;
        }
    }
    Ok(())
}

fn status(index: &Index, is_json: bool) -> Outcome {
    let status = index.status()?;
    let failed = index.documents(Some(State::Failed))?;
    if is_json {
        let row = json!({ "status": status, "failed": failed });
        return print(&format!("{}\n", serde_json::to_string_pretty(&row)?));
    }
    print(&shown(&status, &failed))
}

fn shown(status: &Status, failed: &[IndexedDocument]) -> String {
    if status.sources.is_empty() {
        return "nothing was added yet; add a file or folder with: reprise index add PATH\n".into();
    }
    let mut text = String::new();
    for source in &status.sources {
        let there = if source.is_there { "" } else { ", not there now" };
        text += &format!(
            "{}  ({}{there})\n",
            folders::shown(&source.path),
            counted(source.documents, "document")
        );
    }
    text += &format!(
        "\n{} ready, {} waiting, {} without text; {} of other kinds left out\n{}, {:.1} MB on disk\n",
        with_commas(status.ready),
        with_commas(status.waiting),
        with_commas(status.failed),
        counted(status.skipped, "file"),
        counted(status.passages, "passage"),
        status.bytes as f64 / 1e6,
    );
    text += &match status.meaning.why_not() {
        None if status.without_vector == 0 => "found by words and by meaning\n".into(),
        None => format!(
            "found by words and by meaning, {} by words only so far (go on with: reprise index update)\n",
            counted(status.without_vector, "passage")
        ),
        Some(why) => format!("{why}\n"),
    };
    if !failed.is_empty() {
        text += "\nWithout text:\n";
    }
    for document in failed.iter().take(SHOWN_TROUBLES) {
        text += &format!(
            "{}: {}\n",
            folders::shown(&document.path),
            document.trouble.as_deref().unwrap_or("")
        );
    }
    if failed.len() > SHOWN_TROUBLES {
        text += &format!(
            "and {} more (--json has all)\n",
            with_commas(failed.len() - SHOWN_TROUBLES)
        );
    }
    text
}

/// The indexed documents with text, those at or below a path where one is given; never none.
pub fn documents_at(index: &Index, within: Option<&Path>) -> Outcome<Vec<DocumentId>> {
    let within = within.map(named);
    let documents = documents_within(index, within.as_deref())?;
    if documents.is_empty() {
        return Err(Failure::message(match within {
            Some(path) => format!(
                "no indexed document is at {}; see what there is with: reprise index status",
                path.display()
            ),
            None => "no document is indexed; add some with: reprise index add PATH, or name a file".into(),
        }));
    }
    Ok(documents)
}

fn search(index: &Index, question: &str, limit: usize, within: Option<&Path>, is_json: bool) -> Outcome {
    if question.trim().is_empty() {
        return Err(Failure::Usage("the question is empty".into()));
    }
    let found = match within {
        None => index.search(question, limit)?,
        Some(path) => index.search_in(question, &documents_at(index, Some(path))?, limit)?,
    };
    if is_json {
        let rows: Vec<_> = found
            .hits
            .iter()
            .map(|hit| {
                json!({
                    "passage": hit.stored.id,
                    "document": hit.stored.document,
                    "path": hit.stored.passage.path,
                    "place": hit.stored.passage.place,
                    "headings": hit.stored.passage.headings,
                    "text": hit.stored.passage.text,
                    "score": hit.score,
                    "words_rank": hit.words_rank,
                    "meaning_rank": hit.meaning_rank,
                })
            })
            .collect();
        return print(&format!("{}\n", serde_json::to_string_pretty(&rows)?));
    }
    if let Some(why) = found.meaning.why_not() {
        note(&format!("note: {why}"));
    }
    let mut text = String::new();
    for hit in &found.hits {
        let rank = |rank: Option<usize>| rank.map_or("-".into(), |rank| rank.to_string());
        text += &format!(
            "{}, {}  (words {}, meaning {})\n",
            folders::shown(&hit.stored.passage.path),
            hit.stored.passage.place,
            rank(hit.words_rank),
            rank(hit.meaning_rank)
        );
        let flat = hit
            .stored
            .passage
            .text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let mut short: String = flat.chars().take(SHOWN_CHARACTERS).collect();
        if short.len() < flat.len() {
            short.push('…');
        }
        text += &format!("    {short}\n");
    }
    if found.hits.is_empty() {
        text = "nothing was found\n".into();
    }
    print(&text)
}
