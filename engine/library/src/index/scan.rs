//! Which files a source has: hidden and ignored ones and folders of programs are left out, links to folders are not
//! followed (so that loops cannot happen).

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;

use crate::error::system_words;

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
    pub(super) unseen: Vec<(PathBuf, String)>,
}

/// All files of a source, without what is in the folder that is `left_out`; none when the source is not there (an unplugged
/// drive is no reason to forget what was read of it).
pub(super) fn scan(root: &Path, left_out: Option<&Path>, is_cancelled: &dyn Fn() -> bool) -> Option<Scanned> {
    let metadata = root.metadata().ok()?;
    let mut scanned = Scanned {
        files: Vec::new(),
        unseen: Vec::new(),
    };
    let left_out = left_out.map(Path::to_owned);
    if metadata.is_file() {
        scanned.files.push(found(root.to_owned(), &metadata));
        return Some(scanned);
    }
    let walk = WalkBuilder::new(root)
        .follow_links(false)
        .git_global(false)
        .filter_entry(move |entry| {
            let name = entry.file_name().to_string_lossy();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let is_skipped = || {
                left_out.as_deref() == Some(entry.path())
                    || SKIPPED_FOLDERS.contains(&name.as_ref()) && !is_own(entry.path(), &name)
            };
            // What a person named is taken, whatever its name.
            entry.depth() == 0 || !is_folder || !is_skipped()
        })
        .build();
    for entry in walk {
        if is_cancelled() {
            return None;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let why = reason(&error);
                scanned
                    .unseen
                    .push((path_of(&error).unwrap_or(root).to_owned(), why));
                continue;
            }
        };
        let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else {
            continue;
        };
        // Links to files count, unless the file is in the folder anyway.
        let path = entry.path();
        let looked = if kind.is_symlink() {
            match path.canonicalize() {
                Ok(target) if target.starts_with(root) => continue,
                Ok(target) => target.metadata(),
                Err(error) => Err(error),
            }
        } else {
            path.symlink_metadata()
        };
        match looked {
            Ok(metadata) if metadata.is_file() => scanned.files.push(found(path.to_owned(), &metadata)),
            Ok(_) => {}
            // It went meanwhile, or leads nowhere.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                // A folder that gives names and nothing more does so of all that is in it.
                let unseen = match path.parent() {
                    Some(folder) if !kind.is_symlink() => folder,
                    _ => path,
                };
                if scanned.unseen.last().is_none_or(|(last, _)| last != unseen) {
                    scanned.unseen.push((unseen.to_owned(), system_words(&error)));
                }
            }
        }
    }
    Some(scanned)
}

/// Why something could not be looked at, in the system's words.
fn reason(error: &ignore::Error) -> String {
    let Some(outer) = error.io_error() else {
        return error.to_string();
    };
    // What walks the folders puts words of its own around the system's.
    let inner = outer.get_ref().and_then(|error| error.source());
    system_words(inner.and_then(|error| error.downcast_ref()).unwrap_or(outer))
}

/// What could not be looked at.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithLineNumber { err, .. } | ignore::Error::WithDepth { err, .. } => path_of(err),
        _ => None,
    }
}

/// Whether a change of this path can change what a source has; what is left out changes all the time, the program's own files
/// with every look at the source.
pub(super) fn matters(root: &Path, path: &Path, left_out: Option<&Path>) -> bool {
    let Ok(below) = path.strip_prefix(root) else {
        return false;
    };
    // Hidden ones are left out; these say what else is.
    let is_seen = |name: &str| !name.starts_with('.') || name == ".ignore" || name == ".gitignore";
    !left_out.is_some_and(|folder| path.starts_with(folder))
        && below
            .components()
            .all(|part| is_seen(&part.as_os_str().to_string_lossy()))
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
        let scanned = scan(root, Some(&root.join("own")), &|| false).unwrap();
        assert!(scanned.unseen.is_empty(), "{:?}", scanned.unseen);
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
            "own/kept.txt",
            "deep/own/kept.txt",
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
        assert_eq!(
            names(&root),
            [
                "deep/er/b.txt",
                "deep/own/kept.txt",
                "notes.md",
                "sub/target/mine.txt"
            ]
        );
        assert!(scan(&root.join("gone"), None, &|| false).is_none());
        assert!(scan(&root, None, &|| true).is_none());
    }

    #[test]
    fn changes_of_what_is_left_out_do_not_matter() {
        let (root, own) = (Path::new("/home/me"), Path::new("/home/me/Library/reprise"));
        let matters = |path: &str| matters(root, Path::new(path), Some(own));
        for path in ["/home/me/notes/a.md", "/home/me", "/home/me/notes/.gitignore"] {
            assert!(matters(path), "{path}");
        }
        for path in [
            "/home/me/Library/reprise/index/passages.sqlite-wal",
            "/home/me/.cache/browser/x",
            "/home/me/notes/.a.md.swp",
            "/home/you/a.md",
        ] {
            assert!(!matters(path), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_looked_into_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("a.txt"), "x").unwrap();
        // A path that is longer than the system takes: not even an administrator can read it. Named from the inside out.
        let short = |depth: usize| (0..depth).fold(root.clone(), |path, _| path.join("d"));
        fs::create_dir_all(short(20)).unwrap();
        for depth in (1..=20).rev() {
            fs::rename(short(depth), short(depth - 1).join("d".repeat(250))).unwrap();
        }
        let scanned = scan(&root, None, &|| false).unwrap();
        assert_eq!(scanned.files.len(), 1);
        let [(path, why)] = scanned.unseen.as_slice() else {
            panic!("{:?}", scanned.unseen)
        };
        assert!(path.starts_with(&root) && path != &root, "{}", path.display());
        assert!(why.contains("too long") && !why.contains("ddd"), "{why}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_gives_names_only_is_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        // The folder's path is short enough to be read, and those of the files in it are not.
        let chain = |name: &str, depth: usize| (0..depth).fold(root.clone(), |path, _| path.join(name));
        fs::create_dir_all(chain("d", 16)).unwrap();
        for name in ["a", "b"] {
            fs::write(chain("d", 16).join(name.repeat(200)), "x").unwrap();
        }
        let long = "d".repeat(250);
        for depth in (1..=16).rev() {
            fs::rename(chain("d", depth), chain("d", depth - 1).join(&long)).unwrap();
        }
        let scanned = scan(&root, None, &|| false).unwrap();
        assert!(scanned.files.is_empty());
        let [(path, why)] = scanned.unseen.as_slice() else {
            panic!("{:?}", scanned.unseen)
        };
        assert_eq!(path, &chain(&long, 16));
        assert!(why.contains("too long"), "{why}");
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
