//! Where files live: models in the cache folder (they can be fetched again), the person's own in the data folder.

use std::env;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use directories::ProjectDirs;
use reprise_engine::StoreChoice;
use reprise_engine::store::private_folder;

use crate::files::in_a_line;
use crate::system_words;

/// No folder can be named, because the system tells of no home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no home directory is known; set HOME, or REPRISE_MODELS and REPRISE_HOME to folders of your choice")]
pub struct NoHome;

/// The folder of model files: `REPRISE_MODELS`, or `reprise/models` in the platform's cache folder.
///
/// # Errors
/// When neither is known.
pub fn models() -> Result<PathBuf, NoHome> {
    match set("REPRISE_MODELS") {
        Some(folder) => Ok(folder),
        None => Ok(platform()?.cache_dir().join("models")),
    }
}

/// The folder of KV profiles, which tuning makes: `profiles` in the folder of model files.
///
/// # Errors
/// When that is not known.
pub fn profiles() -> Result<PathBuf, NoHome> {
    Ok(models()?.join("profiles"))
}

/// Whether a model without a measured profile is tuned while its engine idles: unless `REPRISE_TUNE` is `off`.
pub fn tunes_when_idle() -> bool {
    env::var_os("REPRISE_TUNE").is_none_or(|value| value != "off")
}

/// The folder of the person's own files: `REPRISE_HOME`, or `reprise` in the platform's data folder.
///
/// # Errors
/// When neither is known.
pub fn data() -> Result<PathBuf, NoHome> {
    match set("REPRISE_HOME") {
        Some(folder) => Ok(folder),
        None => Ok(platform()?.data_dir().to_path_buf()),
    }
}

/// The file of chats in the folder of the person's own files.
pub fn chats_in(data: &Path) -> PathBuf {
    data.join("chats.sqlite")
}

/// Why the person's own folder cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process has it.
    #[error("Reprise runs already with the chats in {}; use its window, or close it first", shown(.folder))]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// The system says no.
    #[error("cannot use the folder {}: {}; set REPRISE_HOME to a folder of yours", shown(.folder), system_words(.source))]
    Files {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Takes the folder of the person's own files, and makes it where it is missing: who has it is alone with the chats, since
/// opening them ends answers that a program left half-way.
///
/// # Errors
/// When another process has it, or it cannot be used.
pub fn lock(data: &Path) -> Result<File, LockError> {
    let cannot = |source| LockError::Files {
        folder: data.to_owned(),
        source,
    };
    private_folder(data).map_err(cannot)?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(data.join("lock"))
        .map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LockError::InUse {
            folder: data.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

/// The folder of stored chunks: `kv` in the person's own, since they are made of what the person reads.
///
/// # Errors
/// When that is not known.
pub fn kv() -> Result<PathBuf, NoHome> {
    Ok(data()?.join("kv"))
}

/// The folder of the document index: `index` in the person's own, since it is made of what the person reads.
///
/// # Errors
/// When that is not known.
pub fn index() -> Result<PathBuf, NoHome> {
    Ok(data()?.join("index"))
}

/// The folder of the model for meanings of texts, which need not be there: in the folder of model files.
///
/// # Errors
/// When that is not known.
pub fn encoder() -> Result<PathBuf, NoHome> {
    Ok(models()?.join("all-MiniLM-L6-v2"))
}

/// Where chunks are kept, on so many bytes of disk at most; `None` takes what suits the disk. Nowhere when that is zero, or
/// when no folder is known.
pub fn store(budget_bytes: Option<u64>) -> Option<StoreChoice> {
    let folder = kv().ok().filter(|_| budget_bytes != Some(0))?;
    Some(StoreChoice {
        folder,
        budget_bytes,
        memory_bytes: None,
    })
}

fn set(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn platform() -> Result<ProjectDirs, NoHome> {
    ProjectDirs::from("", "", "reprise").ok_or(NoHome)
}

/// A path as a person would type it: home as `~`.
pub fn shown(path: &Path) -> String {
    let home = env::var_os("HOME").filter(|home| !home.is_empty());
    let path = match home.and_then(|home| path.strip_prefix(home).map(Path::to_path_buf).ok()) {
        Some(rest) => Path::new("~").join(rest),
        None => path.to_path_buf(),
    };
    in_a_line(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        assert!(matches!(lock(folder.path()), Err(LockError::InUse { .. })));
        drop(first);
        lock(folder.path()).unwrap();
    }
}
