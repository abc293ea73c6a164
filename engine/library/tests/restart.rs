//! What is kept on disk of chats, with the default model: a chat goes on at once after a restart, and what is erased is
//! gone while nothing of others is.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use reprise_engine::explain::Origin;
use reprise_engine::{CancelToken, GenerateOptions, LoadOptions, SamplingOptions, StoreChoice};
use reprise_library::assistant::Assistant;
use reprise_library::cache::Cache;
use reprise_library::chats::{ChatId, ChatStore, Turn, TurnState};
use reprise_library::converse::{AnswerRequest, Instructions, TokenCounts, owner_of, prompt_before};
use reprise_library::inspection::{How, Readings, Reason, explain, inspect};
use reprise_library::models::Shelf;

const NOTES: &str = include_str!("../../../README.md");

/// A program's run: everything but the folder goes with it.
struct Run {
    chats: ChatStore,
    assistant: Assistant,
    counts: TokenCounts,
    readings: Readings,
    instructions: Instructions,
}

fn kv(folder: &Path) -> PathBuf {
    folder.join("kv")
}

fn run(folder: &Path) -> Run {
    let options = LoadOptions {
        store: Some(StoreChoice {
            folder: kv(folder),
            budget_bytes: Some(1 << 30),
            memory_bytes: None,
        }),
        ..LoadOptions::default()
    };
    let model = Shelf::of_machine().unwrap().resolve(None).unwrap();
    let assistant = Assistant::load(&model, &options).unwrap();
    assert_eq!(assistant.engine().store_fault(), None);
    Run {
        chats: ChatStore::open(folder.join("chats.sqlite")).unwrap().0,
        assistant,
        counts: TokenCounts::default(),
        readings: Readings::default(),
        instructions: Instructions {
            system: "You are a careful assistant who answers in one sentence.".into(),
            options: GenerateOptions {
                sampling: SamplingOptions::greedy(),
                max_tokens: 6,
                ..GenerateOptions::default()
            },
            tools_tokens: 0,
        },
    }
}

impl Run {
    fn answer(&self, question: &Turn) -> Turn {
        let turn = self.chats.begin_answer(question.id, "model").unwrap().id;
        let request = AnswerRequest {
            store: &self.chats,
            counts: &self.counts,
            turn,
            instructions: &self.instructions,
            cancel: &CancelToken::default(),
            readings: &self.readings,
            is_put_off: &AtomicBool::new(false),
        };
        let ended = request.answer(&self.assistant, &mut |_| ()).unwrap().unwrap();
        assert_ne!(ended.state, TurnState::Failed);
        ended
    }

    fn begin(&self, text: &str) -> Turn {
        self.answer(&self.chats.begin_chat(text).unwrap())
    }

    fn go_on(&self, after: &Turn, text: &str) -> Turn {
        let question = self
            .chats
            .add_user_turn(after.chat, Some(after.id), text)
            .unwrap();
        self.answer(&question)
    }

    /// A chat of some thousand tokens; its last answer.
    fn long_chat(&self) -> Turn {
        let parts: Vec<&str> = NOTES.split("\n## ").collect();
        let mut last = self.begin(&format!("Here is a text.\n\n{}", parts[0]));
        for part in &parts[1..] {
            let now = self.go_on(&last, &format!("And this:\n\n{part}"));
            if now.stats.as_ref().unwrap().prompt_tokens > 4_500 {
                return now;
            }
            last = now;
        }
        last
    }

    fn owned(&self, chat: ChatId) -> Vec<String> {
        let cache = Cache::of(self.assistant.engine()).unwrap().unwrap();
        let chunks = cache.chunks(&owner_of(chat)).unwrap();
        chunks.into_iter().map(|chunk| chunk.id).collect()
    }
}

/// Tokens of an answer's prompt that were known as they stand, and of all of it.
fn known(turn: &Turn) -> (u64, u64) {
    let stats = turn.stats.as_ref().unwrap();
    (stats.reused_prefix_tokens, stats.prompt_tokens)
}

fn first_token_ms(turn: &Turn) -> u64 {
    turn.stats.as_ref().unwrap().first_token_ms
}

#[test]
fn a_long_chat_goes_on_at_once_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let last = run(folder.path()).long_chat();

    let again = run(folder.path());
    let next = again.go_on(&last, "What was that about?");
    let (prefix, all) = known(&next);
    assert!(all > 3_000, "a long chat: {all} tokens");
    assert!(prefix * 10 >= all * 9, "{prefix} of {all} tokens were known");

    // How it was read is told as it happened.
    let (reading, before) = again.readings.of(next.id).unwrap();
    let stored = reading.explanation.spans.iter();
    let stored = stored.filter(|span| matches!(span.origin, Origin::Stored { .. }));
    assert_eq!(stored.map(|span| span.tokens.len() as u64).sum::<u64>(), prefix);
    let engine = again.assistant.engine();
    let told = inspect(engine, &again.chats, &reading, &before, false).unwrap();
    assert_eq!(
        (told.prefix_tokens as u64, told.prompt_tokens as u64),
        (prefix, all)
    );
    assert_eq!(told.stretches.last().map(|stretch| stretch.to as u64), Some(all));
    assert!(
        told.stretches.is_sorted_by(|a, b| a.to == b.from),
        "every token once, in order"
    );
    let used: usize = told.chunks.iter().map(|chunk| chunk.used_tokens).sum();
    assert_eq!(used as u64, prefix);
    assert!(
        told.chunks
            .iter()
            .all(|chunk| chunk.kept.is_some() && chunk.owners.len() == 1)
    );
    let text: String = told
        .stretches
        .iter()
        .map(|stretch| stretch.text.as_str())
        .collect();
    assert!(
        text.starts_with("<|im_start|>system\nYou are a careful"),
        "{}",
        &text[..80]
    );
    assert!(text.contains("What was that about?"));

    // Of an answer of the earlier run there is what would be read now.
    assert!(again.readings.of(last.id).is_none());
    let writer = again.assistant.writer();
    let laid_out = prompt_before(&again.chats, writer, &again.counts, last.id, &again.instructions).unwrap();
    let now = explain(engine, laid_out).unwrap();
    let now = inspect(engine, &again.chats, &now, &again.readings.all(), true).unwrap();
    assert!(
        now.is_now && now.divergence.reason == Reason::Whole,
        "{:?}",
        now.divergence
    );
    assert!(now.stretches.iter().all(|stretch| stretch.how != How::Moved));

    // The same without anything that is kept, for comparison.
    drop(again);
    std::fs::remove_dir_all(kv(folder.path())).unwrap();
    let cold = run(folder.path());
    let turns = cold.chats.path_to(next.id).unwrap();
    let question = &turns[turns.len() - 2];
    let afresh = cold.answer(question);
    assert_eq!(known(&afresh).0, 0);
    assert_eq!(afresh.text, next.text, "what was kept is exact");
    println!(
        "{all} tokens: first token after {} ms when all is read, {} ms after a restart ({prefix} known)",
        first_token_ms(&afresh),
        first_token_ms(&next)
    );
    assert!(first_token_ms(&next) * 2 < first_token_ms(&afresh));
}

#[test]
fn a_chat_that_is_erased_leaves_nothing_and_takes_nothing_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = NOTES.chars().take(2_500).collect();
    let (first, second) = {
        let run = run(folder.path());
        // The same text in both: the chunks of the beginning are both chats'.
        let first = run.begin(&format!("Here is a text.\n\n{text}\n\nWhat is it about?"));
        let second = run.begin(&format!("Here is a text.\n\n{text}\n\nWho wrote it?"));
        (first, second)
    };
    assert_ne!(first.chat, second.chat);

    // Deleted and erased by a run that ended before it could tell the store of chunks.
    {
        let (chats, _) = ChatStore::open(folder.path().join("chats.sqlite")).unwrap();
        chats.delete_chat(first.chat).unwrap();
        assert_eq!(chats.erase_deleted(None).unwrap(), [first.chat]);
    }
    let run = run(folder.path());
    let before = run.owned(second.chat);
    assert!(!run.owned(first.chat).is_empty() && !before.is_empty());
    let engine = run.assistant.engine();
    let cache = Cache::of(engine).unwrap().unwrap();
    let gone = cache.erase_chats_that_are_gone(&run.chats).unwrap();
    assert_eq!(gone, [owner_of(first.chat)]);
    assert!(run.owned(first.chat).is_empty());
    assert_eq!(run.owned(second.chat), before, "what the other chat owns stays");
    let owners = cache.owners(&run.chats).unwrap();
    assert!(
        owners
            .iter()
            .all(|owner| owner.owner != owner_of(first.chat).to_string())
    );
    assert_eq!(owners.len(), 1);
    assert_eq!(
        owners[0].name,
        run.chats.summary(second.chat).unwrap().title.unwrap()
    );
    assert!(cache.erase_chats_that_are_gone(&run.chats).unwrap().is_empty());
    let next = run.go_on(&second, "And when?");
    // The beginning that both had in common was the first chat's; what is the second's own is used from where it is.
    let stats = next.stats.as_ref().unwrap();
    assert!(
        stats.reused_prefix_tokens + stats.reused_elsewhere_tokens > 0,
        "{stats:?}"
    );

    cache.erase_all().unwrap();
    assert_eq!(cache.store().stats().unwrap().chunks, 0);
    let anew = run.go_on(&next, "And where?");
    assert_eq!(known(&anew).0, 0, "nothing of it is left in memory");
}
