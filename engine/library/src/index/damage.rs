//! A database that is damaged: noticed while it is used or opened, and begun anew. All it has can be read again from the
//! person's files; which ones those are stands in a file of its own beside it.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::database::{self, Database};
use super::error::IndexError;
use crate::files::write_whole;
use crate::sqlite::remove_database;

/// What was added, as a list of paths in JSON.
const LIST: &str = "sources.json";
/// Is there where the database failed while it was used.
const SUSPICION: &str = "damaged";
/// Locked by whoever has the index open.
const USE: &str = "in-use.lock";

/// Says to others that the index is open here, until it is dropped.
#[derive(Debug)]
pub(super) struct InUse {
    _file: File,
}

impl InUse {
    pub(super) fn begin(folder: &Path) -> Result<InUse, IndexError> {
        let (file, path) = file(folder)?;
        file.lock_shared()
            .map_err(|error| IndexError::files("lock", &path, error))?;
        Ok(InUse { _file: file })
    }
}

fn file(folder: &Path) -> Result<(File, PathBuf), IndexError> {
    let path = folder.join(USE);
    let file = File::create(&path).map_err(|error| IndexError::files("make", &path, error))?;
    Ok((file, path))
}

/// Opens the database, and begins it anew where it is damaged; the notices are for the person.
pub(super) fn open(folder: &Path) -> Result<(Database, InUse, Vec<String>), IndexError> {
    let in_use = InUse::begin(folder)?;
    let opened = match is_suspect(folder) || is_lost(folder)? {
        true => Err(IndexError::Damaged {
            folder: folder.to_owned(),
        }),
        false => with_paths(folder),
    };
    let ((database, paths), in_use, notices) = match opened {
        Err(IndexError::Damaged { .. }) => {
            drop(in_use);
            let notice = begin_anew(folder)?;
            let in_use = InUse::begin(folder)?;
            (with_paths(folder)?, in_use, vec![notice])
        }
        opened => (opened?, in_use, Vec::new()),
    };
    // Indexes of earlier versions have none; and the last moments before a loss of power may not have reached it.
    note(folder, &paths)?;
    Ok((database, in_use, notices))
}

fn with_paths(folder: &Path) -> Result<(Database, Vec<String>), IndexError> {
    let database = Database::open(folder)?;
    let paths = database.paths()?;
    Ok((database, paths))
}

/// Keeps the paths that were added where no damage of the database reaches them.
pub(super) fn note(folder: &Path, paths: &[String]) -> Result<(), IndexError> {
    let list = folder.join(LIST);
    let json = serde_json::to_vec_pretty(paths).unwrap_or_default();
    if fs::read(&list).is_ok_and(|before| before == json) {
        return Ok(());
    }
    write_whole(&list, &json).map_err(|error| IndexError::files("write", &list, error))
}

/// The paths that were added.
fn listed(folder: &Path) -> Result<Vec<String>, IndexError> {
    let list = folder.join(LIST);
    match fs::read(&list) {
        Ok(json) => Ok(serde_json::from_slice(&json).unwrap_or_else(|error| {
            tracing::warn!(%error, "the list of what was added cannot be read");
            Vec::new()
        })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(IndexError::files("read", &list, error)),
    }
}

/// Whether the database is gone or empty, though something was added.
fn is_lost(folder: &Path) -> Result<bool, IndexError> {
    let is_there = fs::metadata(folder.join(database::FILE)).is_ok_and(|facts| facts.len() > 0);
    Ok(!is_there && !listed(folder)?.is_empty())
}

/// Notes that the database failed while it was used.
pub(super) fn suspect(folder: &Path) {
    if let Err(error) = fs::write(
        folder.join(SUSPICION),
        "The index of documents was found damaged. It is begun anew when it is opened next.\n",
    ) {
        tracing::warn!(%error, "the damaged index of documents will not be noticed when it is opened next");
    }
}

fn is_suspect(folder: &Path) -> bool {
    folder.join(SUSPICION).exists()
}

/// Puts an empty database with the same files and folders in the place of the damaged one. Ended at any moment, the next
/// opening does it again: the note of the damage is the last to go.
fn begin_anew(folder: &Path) -> Result<String, IndexError> {
    let (use_of_all, path) = file(folder)?;
    match use_of_all.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(IndexError::Damaged {
                folder: folder.to_owned(),
            });
        }
        Err(TryLockError::Error(error)) => return Err(IndexError::files("lock", &path, error)),
    }
    suspect(folder);
    let paths = listed(folder)?;
    let gone = |path: &Path, outcome: std::io::Result<()>| match outcome {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(IndexError::files("remove", path, error)),
        _ => Ok(()),
    };
    let keywords = folder.join(super::KEYWORDS);
    gone(&keywords, fs::remove_dir_all(&keywords))?;
    let path = folder.join(database::FILE);
    gone(&path, remove_database(&path))?;
    let database = Database::open(folder)?;
    for path in &paths {
        database.add_source(path, Path::new(path).is_dir())?;
    }
    drop(database);
    let suspicion = folder.join(SUSPICION);
    gone(&suspicion, fs::remove_file(&suspicion))?;
    let again = match paths.len() {
        0 => "What was in it is not known any more: add your files again.".to_owned(),
        1 => "What you added is read again by the next update.".to_owned(),
        n => format!("The {n} files and folders you added are read again by the next update."),
    };
    Ok(format!(
        "The index of documents was damaged and is begun anew. {again}"
    ))
}
