//! The chat store as its callers see it. Each file holds one promise.

#[cfg(feature = "bindings")]
mod bindings;
mod branches;
mod crash;
mod damage;
mod erasing;
mod listing;
mod measure;
mod model;
mod opening;
mod scale;
mod searching;
mod threads;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use reprise_library::chats::{ChatId, ChatStore, Turn, TurnId, TurnState};
use tempfile::TempDir;

/// A store in a folder of its own, with a clock that a test moves.
struct Bench {
    folder: TempDir,
    clock: Arc<AtomicI64>,
    store: Option<ChatStore>,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self::closed();
        assert_eq!(bench.open(), Vec::<String>::new());
        bench
    }

    fn closed() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            folder,
            clock: Arc::new(AtomicI64::new(1_800_000_000_000)),
            store: None,
        }
    }

    /// Opens the store, again if it is open, and gives the notices.
    fn open(&mut self) -> Vec<String> {
        self.store = None;
        let clock = Arc::clone(&self.clock);
        let (store, notices) =
            ChatStore::open_with_clock(self.path(), move || clock.load(Ordering::Relaxed)).unwrap();
        self.store = Some(store);
        notices
    }

    fn close(&mut self) {
        self.store = None;
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("chats.sqlite")
    }

    fn store(&self) -> &ChatStore {
        self.store.as_ref().unwrap()
    }

    fn pass_ms(&self, ms: i64) {
        self.clock.fetch_add(ms, Ordering::Relaxed);
    }

    /// A question and its answer at the end of a chat's branch, or at the chat's beginning.
    fn exchange(&self, chat: ChatId, parent: Option<TurnId>, question: &str, answer: &str) -> (Turn, Turn) {
        let question = self.store().add_user_turn(chat, parent, question).unwrap();
        let answer = self.answer(question.id, answer);
        (question, answer)
    }

    fn answer(&self, question: TurnId, text: &str) -> Turn {
        let turn = self.store().begin_answer(question, "a model").unwrap();
        self.store().append_piece(turn.id, text).unwrap();
        self.store()
            .finish_answer(turn.id, TurnState::Done, None, None)
            .unwrap()
    }

    fn texts(&self, chat: ChatId) -> Vec<String> {
        self.store()
            .chat(chat)
            .unwrap()
            .turns
            .into_iter()
            .map(|turn| turn.text)
            .collect()
    }

    /// The names of the folder's files, in order.
    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}
