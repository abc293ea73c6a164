//! The files of a skill's folder: which ones there are, whether any leads out of it, what they say, and the hash of them
//! all. A path that a model or a person names is only ever compared with this list.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{SkillError, SkillFault};

/// Files that a skill's folder may have.
pub const MAX_FILES: usize = 1_000;
/// Bytes that they may have together.
pub const MAX_FOLDER_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes that a file may have which a model reads.
pub const MAX_REFERENCE_BYTES: u64 = 1024 * 1024;
/// Folders in folders; files that are deeper are part of the hash, and offered to nobody.
const MAX_DEPTH: usize = 8;
/// What scripts end with.
const SCRIPT_ENDINGS: [&str; 8] = ["py", "sh", "bash", "js", "mjs", "rb", "pl", "ps1"];

/// What a file of a skill is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub enum FileKind {
    /// To be read when it is needed.
    Reference,
    /// To be run.
    Script,
    /// To be used as it is.
    Asset,
}

impl FileKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            FileKind::Reference => "reference",
            FileKind::Script => "script",
            FileKind::Asset => "asset",
        }
    }
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Where it is in the folder, with `/` between.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What it is for.
    pub kind: FileKind,
}

/// A file found in the folder.
struct Found {
    path: String,
    bytes: u64,
}

/// The files that are offered: those beside SKILL.md, and in the folders beside it.
///
/// # Errors
/// When the folder cannot be read, has a link that leads out of it, or is no small folder.
pub fn list(folder: &Path) -> Result<Vec<SkillFile>, SkillError> {
    let found = all(folder)?;
    let is_offered = |path: &str| {
        path.matches('/').count() <= 1
            && path != "SKILL.md"
            && !path
                .split('/')
                .any(|name| name.starts_with('.') || name == "__pycache__")
    };
    Ok(found
        .into_iter()
        .filter(|file| is_offered(&file.path))
        .map(|file| SkillFile {
            kind: kind_of(&file.path),
            path: file.path,
            bytes: file.bytes,
        })
        .collect())
}

fn kind_of(path: &str) -> FileKind {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    if path.starts_with("scripts/") || SCRIPT_ENDINGS.contains(&ending) {
        FileKind::Script
    } else if path.starts_with("assets/") {
        FileKind::Asset
    } else {
        FileKind::Reference
    }
}

/// The hash of everything in the folder: names, contents, and whether they are programs.
///
/// # Errors
/// As [`list`].
pub fn hash(folder: &Path) -> Result<String, SkillError> {
    let mut hasher = Sha256::new();
    for file in all(folder)? {
        let path = folder.join(&file.path);
        let mut content = Sha256::new();
        let mut open = File::open(&path).map_err(|source| cannot_read(&path, source))?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match open.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => content.update(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(cannot_read(&path, error)),
            }
        }
        hasher.update((file.path.len() as u64).to_le_bytes());
        hasher.update(file.path.as_bytes());
        hasher.update([u8::from(is_program(&path))]);
        hasher.update(content.finalize());
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// The text of a file of the folder.
///
/// # Errors
/// When it leads out of the folder, is no text, or too large.
pub fn read_text(skill: &str, folder: &Path, file: &str, limit_bytes: u64) -> Result<String, SkillError> {
    let bad = |fault| SkillError::BadFile {
        skill: skill.to_owned(),
        file: file.to_owned(),
        fault,
    };
    let path = inside(folder, file)?;
    let open = File::open(&path).map_err(|source| cannot_read(&path, source))?;
    let bytes = open.metadata().map_or(0, |metadata| metadata.len());
    if bytes > limit_bytes {
        return Err(bad(SkillFault::TooLarge { bytes, limit_bytes }));
    }
    let mut content = Vec::new();
    open.take(limit_bytes)
        .read_to_end(&mut content)
        .map_err(|source| cannot_read(&path, source))?;
    let text = String::from_utf8(content).map_err(|_| bad(SkillFault::NotText))?;
    Ok(plain(&text))
}

/// Text with plain line ends and without a byte order mark.
pub fn plain(text: &str) -> String {
    text.strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n")
        .replace('\r', "\n")
}

/// Where a file of the folder really is.
///
/// # Errors
/// When that is outside of the folder.
pub fn inside(folder: &Path, file: &str) -> Result<PathBuf, SkillError> {
    let path = folder.join(file);
    let root = fs::canonicalize(folder).map_err(|source| cannot_read(folder, source))?;
    let real = fs::canonicalize(&path).map_err(|source| cannot_read(&path, source))?;
    if real.starts_with(&root) {
        Ok(real)
    } else {
        Err(refused(folder, SkillFault::LinkOut(file.to_owned())))
    }
}

/// All files of the folder, sorted.
fn all(folder: &Path) -> Result<Vec<Found>, SkillError> {
    let mut found = Vec::new();
    let mut bytes = 0;
    let mut folders = vec![(folder.to_path_buf(), String::new(), 0)];
    while let Some((at, prefix, depth)) = folders.pop() {
        let entries = fs::read_dir(&at).map_err(|source| cannot_read(&at, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| cannot_read(&at, source))?;
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if depth == 0 && name == ".git" {
                continue;
            }
            let relative = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(|source| cannot_read(&path, source))?;
            if kind.is_symlink() {
                inside(folder, &relative)?;
            }
            let metadata = fs::metadata(&path).map_err(|source| cannot_read(&path, source))?;
            if metadata.is_dir() {
                // A link to a folder above would never end.
                if !kind.is_symlink() && depth < MAX_DEPTH {
                    folders.push((path, format!("{relative}/"), depth + 1));
                }
                continue;
            }
            if !metadata.is_file() {
                continue;
            }
            bytes += metadata.len();
            found.push(Found {
                path: relative,
                bytes: metadata.len(),
            });
            let too_many = |what, limit| Err(refused(folder, SkillFault::TooMany { what, limit }));
            if found.len() > MAX_FILES {
                return too_many("files", MAX_FILES as u64);
            }
            if bytes > MAX_FOLDER_BYTES {
                return too_many("bytes", MAX_FOLDER_BYTES);
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(_path: &Path) -> bool {
    false
}

pub(super) fn cannot_read(path: &Path, source: io::Error) -> SkillError {
    SkillError::File {
        act: "read",
        path: path.to_path_buf(),
        source,
    }
}

pub(super) fn refused(path: &Path, fault: SkillFault) -> SkillError {
    SkillError::Skill {
        path: path.to_path_buf(),
        fault,
    }
}
