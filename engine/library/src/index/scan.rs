//! Which files a source has: hidden and ignored ones and folders of programs are left out, links to folders are not
//! followed (so that loops cannot happen).

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;

/// Folders that programs fill, and nobody reads.
const SKIPPED_FOLDERS: [&str; 6] = [
    "node_modules",
    "__pycache__",
    "target",
    "venv",
    "$RECYCLE.BIN",
    "System Volume Information",
];

/// A file on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) bytes: i64,
    pub(super) modified_ns: i64,
}

/// What a look at a source gave.
pub(super) struct Scanned {
    pub(super) files: Vec<Found>,
    /// Files and folders that could not be looked at, with the reason.
    pub(super) troubles: Vec<String>,
}

/// All files of a source; none when it is not there (an unplugged drive is no reason to forget what was read of it).
pub(super) fn scan(root: &Path, is_cancelled: &dyn Fn() -> bool) -> Option<Scanned> {
    let metadata = root.metadata().ok()?;
    let mut scanned = Scanned {
        files: Vec::new(),
        troubles: Vec::new(),
    };
    if metadata.is_file() {
        scanned.files.push(found(root.to_owned(), &metadata));
        return Some(scanned);
    }
    let walk = WalkBuilder::new(root)
        .follow_links(false)
        .git_global(false)
        .filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            // What a person named is taken, whatever its name.
            entry.depth() == 0
                || !(is_folder && SKIPPED_FOLDERS.contains(&name.as_ref()) && !is_own(entry.path(), &name))
        })
        .build();
    for entry in walk {
        if is_cancelled() {
            return None;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                scanned.troubles.push(error.to_string());
                continue;
            }
        };
        let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else {
            continue;
        };
        // Links to files count, unless the file is in the folder anyway.
        let metadata = if kind.is_symlink() {
            match entry.path().canonicalize() {
                Ok(target) if !target.starts_with(root) => target.metadata().ok().filter(Metadata::is_file),
                _ => None,
            }
        } else {
            entry.metadata().ok().filter(Metadata::is_file)
        };
        if let Some(metadata) = metadata {
            scanned.files.push(found(entry.into_path(), &metadata));
        }
    }
    Some(scanned)
}

/// Whether a folder is called like a program's and is not one: a program's `target` has a marker in it.
fn is_own(path: &Path, name: &str) -> bool {
    match name {
        "target" => !path.join("CACHEDIR.TAG").exists(),
        "venv" => !path.join("pyvenv.cfg").exists(),
        _ => false,
    }
}

fn found(path: PathBuf, metadata: &Metadata) -> Found {
    let modified = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Found {
        path,
        bytes: i64::try_from(metadata.len()).unwrap_or(i64::MAX),
        modified_ns: modified
            .and_then(|since| i64::try_from(since.as_nanos()).ok())
            .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(root: &Path) -> Vec<String> {
        let scanned = scan(root, &|| false).unwrap();
        assert!(scanned.troubles.is_empty(), "{:?}", scanned.troubles);
        let mut names: Vec<_> = scanned
            .files
            .iter()
            .map(|file| {
                file.path
                    .strip_prefix(root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn hidden_ignored_and_programs_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in [
            ".git/config",
            ".hidden.txt",
            "node_modules/a/readme.md",
            "notes.md",
            "deep/er/b.txt",
            "target/CACHEDIR.TAG",
            "target/x.txt",
            "sub/target/mine.txt",
            "private/secret.txt",
            ".ignore",
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(
                &path,
                if path.ends_with(".ignore") {
                    "private/\n"
                } else {
                    "x"
                },
            )
            .unwrap();
        }
        assert_eq!(names(&root), ["deep/er/b.txt", "notes.md", "sub/target/mine.txt"]);
        assert!(scan(&root.join("gone"), &|| false).is_none());
        assert!(scan(&root, &|| true).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn links_make_no_loops_and_no_doubles() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/one.txt"), "x").unwrap();
        fs::write(folder.path().join("outside.txt"), "x").unwrap();
        symlink(&root, root.join("a/loop")).unwrap();
        symlink(root.join("a/one.txt"), root.join("again.txt")).unwrap();
        symlink(folder.path().join("outside.txt"), root.join("linked.txt")).unwrap();
        symlink(root.join("nothing"), root.join("dangling.txt")).unwrap();
        assert_eq!(names(&root), ["a/one.txt", "linked.txt"]);
    }
}
