use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_library::chats::{ChatStore, Origin};

use super::*;
use crate::types::Settings;

struct Place {
    folder: tempfile::TempDir,
    documents: Documents,
    host: Host,
}

impl Place {
    fn begin() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(ChatStore::open(folder.path().join("chats.sqlite")).unwrap().0);
        let host = Host::start(store, Events::default(), Settings::default()).unwrap();
        let documents = Place::start(folder.path(), &host);
        Place {
            folder,
            documents,
            host,
        }
    }

    fn start(folder: &Path, host: &Host) -> Documents {
        let folders = Folders {
            index: folder.join("index"),
            encoder: folder.join("no-encoder"),
            attached: folder.join("data/attached"),
            kv: folder.join("kv"),
        };
        let shelf = Shelf::of_machine().unwrap();
        Documents::start(folders, shelf, host.clone(), Events::default()).unwrap()
    }

    /// A folder of papers, and its path as the index has it.
    fn papers(&self, files: &[(&str, &str)]) -> PathBuf {
        let papers = self.folder.path().join("papers");
        fs::create_dir_all(&papers).unwrap();
        for (name, text) in files {
            fs::write(papers.join(name), text).unwrap();
        }
        papers.canonicalize().unwrap()
    }

    fn ready(&self) -> Vec<String> {
        let list = self.documents.list("", None, Some(State::Ready)).unwrap();
        list.documents.into_iter().map(|document| document.name).collect()
    }

    fn end(self) {
        self.documents.quit();
        self.host.quit();
    }
}

/// Waits for what a thread does; a test that waits this long has failed.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[test]
fn a_folder_is_read_watched_asked_about_and_taken_out_again() {
    let place = Place::begin();
    let papers = place.papers(&[
        ("trees.md", "# Garden\n\nPrune the apple tree in February.\n"),
        ("empty.txt", ""),
    ]);
    let documents = &place.documents;
    assert_eq!(documents.list("", None, None).unwrap().total, 0);
    documents.add(std::slice::from_ref(&papers)).unwrap();
    until("the folder to be read", || place.ready() == ["trees.md"]);
    let list = documents.list("", None, None).unwrap();
    assert!(list.sources.iter().all(|source| !source.is_copy));
    assert_eq!((list.sources.len(), list.total), (1, 2));
    let empty = list
        .documents
        .iter()
        .find(|document| document.name == "empty.txt")
        .unwrap();
    assert_eq!(empty.state, State::Failed);
    assert!(empty.trouble.is_some());

    let suggested = documents.suggest("TREE").unwrap();
    assert_eq!(suggested.len(), 1);
    let ask = |question: &str, chosen: &[String], seen: &[&Given]| {
        documents.given(question, chosen, chosen.is_empty(), seen, 2_048, &words)
    };
    let given = ask("When is the apple tree pruned?", &[suggested[0].id.clone()], &[]).unwrap();
    assert_eq!(given[0].label, "trees.md, lines 1-3");
    let again = ask("And the apple tree?", &[], &given.iter().collect::<Vec<_>>()).unwrap();
    assert!(again.is_empty(), "what the model sees already is not given again");
    let refused = ask("What?", std::slice::from_ref(&empty.id), &[]).unwrap_err();
    assert!(refused.message.contains("empty.txt"), "{}", refused.message);

    let path = papers.join("trees.md");
    let text = documents.read(path.to_str().unwrap()).unwrap();
    let Origin::Passage { start, end, .. } = given[0].source else {
        panic!("{given:?}");
    };
    let cited = text
        .passages
        .iter()
        .find(|passage| passage.start as u64 == start)
        .unwrap();
    assert_eq!(cited.end as u64, end);
    documents.check_known(path.to_str().unwrap()).unwrap();
    assert!(documents.check_known("/etc/passwd").is_err());

    until("the files to be watched", || {
        documents.indexing().work == IndexWork::Idle
    });
    fs::write(papers.join("bees.md"), "The bees swarm in May.").unwrap();
    until("the new file", || place.ready() == ["bees.md", "trees.md"]);

    let source = documents.list("", None, None).unwrap().sources[0].id;
    documents.remove(source).unwrap();
    assert_eq!(documents.list("", None, None).unwrap().total, 0);
    assert!(documents.read(path.to_str().unwrap()).is_err());
    assert!(path.exists(), "the person's own file stays");
    place.end();
}

#[test]
fn a_file_without_a_path_is_copied_and_its_copy_goes_with_it() {
    let place = Place::begin();
    let documents = &place.documents;
    let shown = documents
        .attach("../notes.md", b"The lamp is lit at six.")
        .unwrap();
    assert_eq!(shown.name, "notes.md");
    let given = documents
        .given(
            "When is the lamp lit?",
            std::slice::from_ref(&shown.id),
            false,
            &[],
            2_048,
            &words,
        )
        .unwrap();
    assert_eq!(given.len(), 1, "what is being read is waited for");
    let again = documents.attach("notes.md", b"The lamp is lit at six.").unwrap();
    assert_eq!(again.id, shown.id, "the same file twice is one document");
    assert!(shown.is_copy && again.is_copy);
    let listed = documents.list("", None, None).unwrap();
    assert!(listed.sources.iter().all(|source| source.is_copy));
    assert!(documents.attach("nothing.md", b"").is_err());
    documents.remove(shown.source).unwrap();
    assert!(!Path::new(&shown.path).exists());
    place.end();
}

#[test]
fn what_was_stopped_goes_on_when_it_is_wished_for_and_after_a_restart() {
    let place = Place::begin();
    place.documents.stop();
    let papers = place.papers(&[("a.md", "One."), ("b.md", "Two.")]);
    place.documents.inner.index().unwrap().add(&papers).unwrap();
    assert_eq!(place.documents.indexing().work, IndexWork::Stopped);
    place.documents.update();
    until("both files", || place.ready() == ["a.md", "b.md"]);
    place.documents.quit();
    fs::write(papers.join("c.md"), "Three.").unwrap();
    let later = Place::start(place.folder.path(), &place.host);
    until("the file that came meanwhile", || {
        later.list("c.md", None, Some(State::Ready)).unwrap().total == 1
    });
    later.quit();
    place.host.quit();
}
