use super::*;
use crate::types::KvStorage;
use reprise_engine::snapshot::{LaneView, PhaseView};
use reprise_library::models::Shelf;
use std::time::Instant;

struct Bench {
    _folder: tempfile::TempDir,
    store: Arc<ChatStore>,
    host: Host,
}

fn bench(max_answer_tokens: usize) -> Bench {
    bench_with(Settings {
        max_answer_tokens,
        // Random enough that no answer ends because it repeats itself.
        temperature: 2.0,
        ..Settings::default()
    })
}

/// Where every answer is the one the model finds most likely.
fn greedy_bench(max_answer_tokens: usize) -> Bench {
    bench_with(Settings {
        max_answer_tokens,
        temperature: 0.0,
        ..Settings::default()
    })
}

fn bench_with(settings: Settings) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(ChatStore::open(folder.path().join("chats.sqlite")).unwrap().0);
    let settings = Settings {
        threads: Some(1),
        ..settings
    };
    let host = Host::start(Arc::clone(&store), Events::default(), settings).unwrap();
    Bench {
        _folder: folder,
        store,
        host,
    }
}

impl Bench {
    fn load(&self, file: &str) {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/tiny");
        self.host.load(LoadRequest {
            file: Ok(folder.join(file)),
            name: None,
            settings: self.host.settings(),
            profiles: None,
            index: None,
            store: None,
            is_published: false,
        });
    }

    /// The real model, whose answers take long enough to be stopped.
    fn load_default(&self) {
        self.host.load(LoadRequest {
            file: Ok(Shelf::of_machine().unwrap().resolve(None).unwrap()),
            name: None,
            settings: self.host.settings(),
            profiles: None,
            index: None,
            store: None,
            is_published: false,
        });
    }

    /// Waits until the first words of an answer are there.
    fn until_writing(&self, turn: TurnId) {
        self.until_all_write(&[turn]);
    }

    /// Waits until there is a moment in which all of these are being written.
    fn until_all_write(&self, turns: &[TurnId]) {
        until("the answers to be written side by side", || {
            let under_way = self.host.under_way();
            let is_writing = |turn: &TurnId| {
                (under_way.iter()).any(|answer| answer.turn == *turn && answer.phase == Phase::Writing)
            };
            turns.iter().all(is_writing).then_some(())
        });
    }

    /// Waits until the engine has so many requests at work and so many that wait; who waits.
    fn until_lanes(&self, active: usize, waiting: usize) -> Vec<String> {
        until("the engine's lanes", || {
            let lanes = self.host.snapshot()?.lanes;
            let is_waiting = |lane: &LaneView| matches!(lane.phase, PhaseView::Queued { .. });
            let (queued, busy): (Vec<_>, Vec<_>) = lanes.into_iter().partition(is_waiting);
            let owners = queued.into_iter().map(|lane| lane.owner).collect();
            ((busy.len(), waiting) == (active, Vec::len(&owners))).then_some(owners)
        })
    }

    fn ask(&self, text: &str) -> TurnId {
        let question = self.store.begin_chat(text).unwrap();
        let answer = self.store.begin_answer(question.id, "tiny").unwrap();
        self.host.answer(&answer);
        answer.id
    }

    /// Whether a model may still be asked for a chat's title, after a while in which it should have been.
    fn is_still_unnamed(&self, chat: ChatId) -> bool {
        let patience = Instant::now() + PATIENCE;
        while self.store.unnamed_question(chat).unwrap().is_some() {
            if Instant::now() > patience {
                return true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Waits until an answer has ended.
    fn ended(&self, turn: TurnId) -> Turn {
        until("the answer to end", || {
            let turn = self.store.turn(turn).unwrap();
            (turn.state != TurnState::Writing).then_some(turn)
        })
    }
}

/// How long tests that fail wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until there is something.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < patience, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

const MODEL: &str = "tiny-llama3-q4_k.gguf";

#[test]
fn an_answer_asked_for_while_the_model_loads_is_made_when_it_is_there() {
    let bench = bench(8);
    bench.load(MODEL);
    let turn = bench.ask("Good morning");
    let ended = bench.ended(turn);
    assert!(!ended.text.is_empty(), "{ended:?}");
    // It is kept first and leaves the list then.
    until("the answer to be no longer under way", || {
        bench.host.under_way().is_empty().then_some(())
    });
    assert!(matches!(bench.host.model(), ModelState::Ready { .. }));
}

#[test]
fn answers_are_stopped_while_loading_waiting_and_running() {
    let bench = bench(4_000);
    bench.load_default();
    // Long before the model is there; and however fast it is, its answer takes seconds.
    let turn = bench.ask("Tell me a long story about a lighthouse");
    bench.host.stop(turn).unwrap();
    assert_eq!(bench.ended(turn).state, TurnState::Stopped);

    // More than the lanes, some to spare: a story may come to its end soon. Which of them is written first is the
    // engine's choice.
    for number in 1..=8 {
        bench.ask(&format!("Tell me {number} long stories"));
    }
    let (running, waiting) = until("one answer to be written while another waits", || {
        let under_way = bench.host.under_way();
        let running = under_way.iter().find(|answer| answer.phase == Phase::Writing)?;
        let waiting = (under_way.iter()).rfind(|answer| answer.phase == Phase::Queued)?;
        Some((running.turn, waiting.turn))
    });
    bench.host.stop(waiting).unwrap();
    assert_eq!(bench.ended(waiting).state, TurnState::Stopped);
    assert_eq!(bench.store.turn(running).unwrap().state, TurnState::Writing);
    bench
        .host
        .stop_chat(bench.store.turn(running).unwrap().chat)
        .unwrap();
    let ended = bench.ended(running);
    assert_eq!(ended.state, TurnState::Stopped);
    assert!(!ended.text.is_empty(), "what was written is kept");
    bench.host.stop(running).unwrap();
    assert_eq!(bench.ended(running), ended, "stopping twice changes nothing");
}

#[test]
fn without_a_model_an_answer_tells_why_and_another_model_brings_the_next_one() {
    let bench = bench(8);
    bench.load("there-is-no-such.gguf");
    let turn = bench.ask("Good morning");
    let failed = bench.ended(turn);
    assert_eq!(failed.state, TurnState::Failed);
    assert!(failed.error.unwrap().contains("there-is-no-such.gguf"));
    assert!(matches!(bench.host.model(), ModelState::Failed { .. }));
    bench.load(MODEL);
    let turn = bench.ask("Good morning");
    assert!(bench.ended(turn).error.is_none());
}

#[test]
fn leaving_in_the_middle_of_an_answer_ends_it_in_the_store() {
    let bench = bench(4_000);
    bench.load_default();
    let turns = [1, 2].map(|number| bench.ask(&format!("Tell me {number} long stories")));
    bench.until_writing(turns[0]);
    bench.host.quit();
    for turn in turns {
        assert_eq!(bench.store.turn(turn).unwrap().state, TurnState::Stopped);
    }
}

#[test]
fn a_model_is_asked_for_a_title_once_and_never_for_a_chat_that_a_person_named() {
    let bench = bench(8);
    bench.load(MODEL);
    let named = bench.store.begin_chat("Good morning").unwrap();
    bench.store.rename_chat(named.chat, "Mine").unwrap();
    let first = bench.store.begin_answer(named.id, "tiny").unwrap();
    bench.host.answer(&first);
    bench.ended(first.id);
    let unnamed = bench.ask("Good evening");
    let chat = bench.ended(unnamed).chat;
    // Whether the random model finds a title or not, the question is settled.
    assert!(!bench.is_still_unnamed(chat), "the model was not asked");
    assert_eq!(
        bench.store.summary(named.chat).unwrap().title.as_deref(),
        Some("Mine")
    );
}

#[test]
fn a_window_wider_than_the_models_is_narrowed_and_told() {
    let bench = bench(8);
    bench.host.set_settings(Settings {
        context_tokens: Some(1 << 20),
        ..bench.host.settings()
    });
    bench.load(MODEL);
    bench.ended(bench.ask("Good morning"));
    let ModelState::Ready {
        warning,
        context_tokens,
        trained_context_tokens,
        ..
    } = bench.host.model()
    else {
        panic!("{:?}", bench.host.model());
    };
    assert_eq!(context_tokens, trained_context_tokens);
    assert!(warning.unwrap().contains("wider"));
}

#[test]
fn an_answer_that_nobody_makes_can_be_ended() {
    let bench = bench(8);
    let question = bench.store.begin_chat("Good morning").unwrap();
    let left = bench.store.begin_answer(question.id, "tiny").unwrap();
    bench.host.stop(left.id).unwrap();
    assert_eq!(bench.store.turn(left.id).unwrap().state, TurnState::Stopped);
    let left = bench.store.begin_answer(question.id, "tiny").unwrap();
    bench.host.settle(left.id).unwrap();
    assert_eq!(bench.store.turn(left.id).unwrap().state, TurnState::Interrupted);
}

const STORIES: [&str; 5] = [
    "Tell me a very long story about a lighthouse and its keeper",
    "Write a long letter from a sailor to his sister",
    "Explain in great detail how bread is made, step by step",
    "Describe every month of the year at length",
    "Tell me all you know about rivers, mountains and the sea",
];

#[test]
fn answers_in_several_chats_are_made_side_by_side_and_each_is_what_it_would_be_alone() {
    let bench = greedy_bench(60);
    bench.load_default();
    let alone = [0, 1, 2].map(|story| {
        let ended = bench.ended(bench.ask(STORIES[story]));
        assert!(ended.text.len() > 100, "{ended:?}");
        ended.text
    });
    // In the order of their numbers, so that one of them reads while others write.
    let together = [0, 1, 2].map(|story| bench.ask(STORIES[story]));
    bench.until_all_write(&together);
    assert_eq!(together.map(|turn| bench.ended(turn).text), alone);
    until("the list to be empty", || {
        bench.host.under_way().is_empty().then_some(())
    });
}

#[test]
fn stopping_one_of_several_answers_leaves_the_others_as_they_are() {
    let bench = greedy_bench(120);
    bench.load_default();
    let alone = bench.ended(bench.ask(STORIES[0])).text;
    let [kept, stopped] = [0, 1].map(|story| bench.ask(STORIES[story]));
    bench.until_all_write(&[kept, stopped]);
    bench.host.stop(stopped).unwrap();
    let ended = bench.ended(stopped);
    assert_eq!(ended.state, TurnState::Stopped);
    assert!(!ended.text.is_empty(), "what was written is kept");
    assert_eq!(bench.store.turn(kept).unwrap().state, TurnState::Writing);
    assert_eq!(bench.ended(kept).text, alone);
}

#[test]
fn a_fifth_answer_waits_for_a_lane_where_the_panel_shows_it_and_then_comes() {
    let bench = greedy_bench(100);
    bench.load_default();
    let turns = STORIES.map(|story| bench.ask(story));
    let waiting = bench.until_lanes(4, 1);
    let is_asked = |owner: &String| {
        STORIES
            .iter()
            .any(|story| story.starts_with(owner.trim_end_matches('…')))
    };
    assert!(waiting.iter().all(is_asked), "{waiting:?}");
    let queued = bench
        .host
        .under_way()
        .into_iter()
        .filter(|answer| answer.phase == Phase::Queued);
    assert_eq!(queued.count(), 1);
    for turn in turns {
        let ended = bench.ended(turn);
        assert!(!ended.text.is_empty() && ended.error.is_none(), "{ended:?}");
    }
}

#[test]
fn a_third_answer_waits_for_memory_when_there_is_enough_for_two() {
    let bench = bench_with(Settings {
        // Five pages of 3 MB; an answer takes two.
        kv_storage: KvStorage::Q8,
        kv_budget_megabytes: Some(16),
        max_answer_tokens: 300,
        temperature: 0.0,
        ..Settings::default()
    });
    bench.load_default();
    let turns = [0, 1, 2].map(|story| bench.ask(STORIES[story]));
    bench.until_lanes(2, 1);
    for turn in turns {
        let ended = bench.ended(turn);
        assert!(!ended.text.is_empty() && ended.error.is_none(), "{ended:?}");
    }
    let ModelState::Ready {
        context_tokens,
        warning,
        ..
    } = bench.host.model()
    else {
        panic!("{:?}", bench.host.model());
    };
    assert_eq!(context_tokens, 5 * 256);
    assert!(warning.unwrap().contains("memory for context"));
}

#[test]
fn another_model_stops_what_is_written_and_makes_what_is_not_begun() {
    let bench = greedy_bench(4_000);
    bench.load_default();
    let turns = STORIES.map(|story| bench.ask(story));
    bench.until_lanes(4, 1);
    let begun: Vec<TurnId> = until("two answers that are begun", || {
        let under_way = bench.host.under_way().into_iter();
        let begun = under_way
            .filter(|answer| answer.phase == Phase::Writing)
            .map(|answer| answer.turn);
        Some(begun.collect()).filter(|begun: &Vec<_>| begun.len() >= 2)
    });
    let seen: Vec<String> = begun
        .iter()
        .map(|&turn| bench.store.turn(turn).unwrap().text)
        .collect();
    bench.host.set_settings(Settings {
        max_answer_tokens: 8,
        ..bench.host.settings()
    });
    bench.load(MODEL);
    for (&turn, seen) in begun.iter().zip(&seen) {
        let stopped = bench.ended(turn);
        assert_eq!(stopped.state, TurnState::Stopped);
        assert!(
            !stopped.text.is_empty() && stopped.text.starts_with(seen),
            "{stopped:?}"
        );
    }
    // Among the others are some that the first model was reading for, and one that waited for a lane.
    let made: Vec<Turn> = turns
        .into_iter()
        .filter(|turn| !begun.contains(turn))
        .map(|turn| bench.ended(turn))
        .collect();
    assert!(
        made.iter()
            .all(|turn| !turn.text.is_empty() && turn.error.is_none()),
        "{made:?}"
    );
    let model = |turn: &Turn| turn.stats.as_ref().map(|stats| stats.model.clone());
    let ModelState::Ready { name, .. } = bench.host.model() else {
        panic!("{:?}", bench.host.model());
    };
    assert!(
        made.iter().any(|turn| model(turn).as_ref() == Some(&name)),
        "{made:?}"
    );
    // One that was stopped goes on with the new model.
    bench.host.answer(&bench.store.continue_answer(begun[0]).unwrap());
    let continued = bench.ended(begun[0]);
    assert!(continued.text.starts_with(&seen[0]), "{continued:?}");
}

#[test]
fn an_answer_that_is_stopped_while_the_model_changes_stays_stopped() {
    let bench = greedy_bench(4_000);
    bench.load_default();
    let turns = STORIES.map(|story| bench.ask(story));
    bench.until_lanes(4, 1);
    bench.load(MODEL);
    for turn in turns {
        bench.host.stop(turn).unwrap();
    }
    for turn in turns {
        assert_eq!(bench.ended(turn).state, TurnState::Stopped);
    }
    until("the list to be empty", || {
        bench.host.under_way().is_empty().then_some(())
    });
}

#[test]
fn a_question_ends_a_title_in_the_works_and_both_chats_get_theirs() {
    let bench = greedy_bench(8);
    bench.load_default();
    let first = bench.ask(STORIES[0]);
    let chat = bench.ended(first).chat;
    until("a title in the works", || {
        lock(&bench.host.shared.desk).title.is_some().then_some(())
    });
    let second = bench.ask(STORIES[1]);
    let other = bench.ended(second).chat;
    for chat in [chat, other] {
        assert!(!bench.is_still_unnamed(chat), "no title was made");
    }
}

#[test]
fn a_budget_that_holds_nothing_is_told_with_what_to_do() {
    let bench = bench(8);
    bench.host.set_settings(Settings {
        kv_budget_megabytes: Some(0),
        ..bench.host.settings()
    });
    bench.load(MODEL);
    let failed = bench.ended(bench.ask("Good morning"));
    let error = failed.error.unwrap();
    assert!(
        error.contains("KV memory") && error.contains("Settings"),
        "{error}"
    );
}
