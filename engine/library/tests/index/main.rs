//! The document index as its callers see it: adding, changing, stopping, removing, and damage.

mod damage;
mod life;
#[path = "../documents/made/mod.rs"]
mod made;
mod recognition;
mod resume;

use std::fs;
use std::path::{Path, PathBuf};

use reprise_engine::CancelToken;
use reprise_library::index::{Index, Progress, Run, Updated};
use tempfile::TempDir;

/// A folder of documents and the folder of an index beside it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("documents")).unwrap();
        Place { folder }
    }

    pub(crate) fn documents(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("documents")
    }

    pub(crate) fn index_folder(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.documents().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Opened without a model for meanings, and without notices.
    pub(crate) fn open(&self) -> Index {
        let (index, notices) = Index::open(&self.index_folder(), None).unwrap();
        assert_eq!(notices, Vec::<String>::new());
        index
    }

    /// Opened, with the folder of documents added and read.
    pub(crate) fn filled(&self) -> Index {
        let index = self.open();
        index.add(&self.documents()).unwrap();
        update(&index);
        index
    }
}

pub(crate) fn update(index: &Index) -> Updated {
    update_with(index, &CancelToken::default(), &mut |_| {})
}

pub(crate) fn update_with(
    index: &Index,
    cancel: &CancelToken,
    progress: &mut dyn FnMut(&Progress),
) -> Updated {
    index
        .update(&mut Run {
            cancel: cancel.clone(),
            is_busy: &|| false,
            progress,
            threads: 2,
        })
        .unwrap()
}

/// The names of the files that a search finds, best first.
pub(crate) fn found(index: &Index, question: &str) -> Vec<String> {
    let hits = index.search(question, 20).unwrap().hits;
    hits.iter()
        .map(|hit| hit.stored.passage.document.clone())
        .collect()
}

/// All bytes of all files in a folder.
pub(crate) fn bytes_of(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.metadata().unwrap().is_dir() {
            true => all.extend(bytes_of(&entry.path())),
            false => all.extend(fs::read(entry.path()).unwrap()),
        }
    }
    all
}

pub(crate) fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The folder of the model for meanings, where it is on this machine.
pub(crate) fn encoder() -> Option<PathBuf> {
    let folder = reprise_library::folders::encoder()
        .ok()
        .filter(|folder| folder.is_dir());
    if folder.is_none() {
        eprintln!("not run: all-MiniLM-L6-v2 is not here (reprise models fetch all-minilm-l6-v2)");
    }
    folder
}
