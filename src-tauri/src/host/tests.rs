use super::*;
use reprise_library::models::Shelf;
use std::time::Instant;

struct Bench {
    _folder: tempfile::TempDir,
    store: Arc<ChatStore>,
    host: Host,
}

fn bench(max_answer_tokens: usize) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(ChatStore::open(folder.path().join("chats.sqlite")).unwrap().0);
    let settings = Settings {
        max_answer_tokens,
        context_tokens: None,
        threads: Some(1),
        // Random enough that no answer ends because it repeats itself.
        temperature: 2.0,
        ..Settings::default()
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
        });
    }

    /// The real model, whose answers take long enough to be stopped.
    fn load_default(&self) {
        self.host.load(LoadRequest {
            file: Ok(Shelf::of_machine().unwrap().resolve(None).unwrap()),
            name: None,
            settings: self.host.settings(),
        });
    }

    /// Waits until the first words of an answer are there.
    fn until_writing(&self, turn: TurnId) {
        let patience = Instant::now() + Duration::from_secs(60);
        let is_writing = |answer: &UnderWay| answer.turn == turn && answer.phase == Phase::Writing;
        while !self.host.under_way().iter().any(is_writing) {
            assert!(Instant::now() < patience, "the answer does not begin");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn ask(&self, text: &str) -> TurnId {
        let question = self.store.begin_chat(text).unwrap();
        let answer = self.store.begin_answer(question.id, "tiny").unwrap();
        self.host.answer(&answer);
        answer.id
    }

    /// Whether a model may still be asked for a chat's title, after a while in which it should have been.
    fn is_still_unnamed(&self, chat: ChatId) -> bool {
        let patience = Instant::now() + Duration::from_secs(60);
        while self.store.unnamed_question(chat).unwrap().is_some() {
            if Instant::now() > patience {
                return true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Waits until an answer has ended; tests that fail wait a minute for it.
    fn ended(&self, turn: TurnId) -> Turn {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let turn = self.store.turn(turn).unwrap();
            if turn.state != TurnState::Writing {
                return turn;
            }
            assert!(Instant::now() < patience, "the answer does not end");
            thread::sleep(Duration::from_millis(2));
        }
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
    assert!(bench.host.under_way().is_empty());
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

    let [running, waiting] = [1, 2].map(|number| bench.ask(&format!("Tell me {number} long stories")));
    bench.until_writing(running);
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
