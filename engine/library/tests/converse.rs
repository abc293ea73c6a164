//! Answers of stored chats, made by a small model with random weights: what the model sees, what the store keeps.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use reprise_engine::{CancelToken, GenerateOptions, LoadOptions, SamplingOptions};
use reprise_library::assistant::Assistant;
use reprise_library::chats::{ChatStore, Given, Origin, TurnId, TurnState};
use reprise_library::converse::{
    AnswerRequest, Coming, ConverseError, GivenOf, Instructions, Progress, TokenCounts, layout,
};
use reprise_library::inspection::Readings;

const MODEL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/golden/tiny/tiny-llama3-q4_k.gguf"
);

struct Desk {
    _folder: tempfile::TempDir,
    store: ChatStore,
    assistant: Assistant,
    counts: TokenCounts,
    instructions: Instructions,
    cancel: CancelToken,
    readings: Readings,
    is_put_off: AtomicBool,
}

fn desk(context_tokens: usize) -> Desk {
    let folder = tempfile::tempdir().unwrap();
    let options = LoadOptions {
        threads: Some(1),
        context_tokens: Some(context_tokens),
        ..LoadOptions::default()
    };
    Desk {
        store: ChatStore::open(folder.path().join("chats.sqlite")).unwrap().0,
        _folder: folder,
        assistant: Assistant::load(Path::new(MODEL), &options).unwrap(),
        counts: TokenCounts::default(),
        instructions: Instructions {
            system: String::new(),
            options: GenerateOptions {
                sampling: SamplingOptions::greedy(),
                max_tokens: 12,
                ..GenerateOptions::default()
            },
            tools_tokens: 0,
        },
        cancel: CancelToken::default(),
        readings: Readings::default(),
        is_put_off: AtomicBool::new(false),
    }
}

impl Desk {
    fn ask(&self, parent: Option<TurnId>, text: &str) -> TurnId {
        let question = match parent {
            None => self.store.begin_chat(text).unwrap(),
            Some(parent) => {
                let chat = self.store.turn(parent).unwrap().chat;
                self.store.add_user_turn(chat, Some(parent), text).unwrap()
            }
        };
        self.store.begin_answer(question.id, "tiny").unwrap().id
    }

    /// Makes an answer; what was streamed, put together by the offsets that came with it.
    fn answer(&self, turn: TurnId) -> Result<(reprise_library::chats::Turn, String), ConverseError> {
        let request = AnswerRequest {
            store: &self.store,
            counts: &self.counts,
            turn,
            instructions: &self.instructions,
            cancel: &self.cancel,
            readings: &self.readings,
            is_put_off: &self.is_put_off,
        };
        let mut shown: Vec<u16> = self.store.turn(turn).unwrap().text.encode_utf16().collect();
        let ended = request.answer(&self.assistant, &mut |progress| {
            if let Progress::Text { from, text } = progress {
                assert_eq!(from, shown.len(), "pieces follow each other without a gap");
                shown.extend(text.encode_utf16());
            }
        })?;
        // One that was put off stands in the store as it was.
        let ended = ended.unwrap_or_else(|| self.store.turn(turn).unwrap());
        Ok((ended, String::from_utf16(&shown).unwrap()))
    }
}

#[test]
fn an_answer_is_streamed_and_kept_the_same() {
    let desk = desk(512);
    let turn = desk.ask(None, "Good morning");
    let (ended, shown) = desk.answer(turn).unwrap();
    assert_eq!(ended.text, shown);
    assert!(
        matches!(ended.state, TurnState::Limit | TurnState::Done),
        "{:?}",
        ended.state
    );
    let stats = ended.stats.unwrap();
    assert!(stats.prompt_tokens > 0 && stats.reused_prefix_tokens == 0 && stats.answer_tokens > 0);

    let next = desk.ask(Some(turn), "And a good evening");
    let (ended, _) = desk.answer(next).unwrap();
    assert!(
        ended.stats.unwrap().reused_prefix_tokens > 0,
        "the chat's beginning is known"
    );
}

#[test]
fn a_stopped_answer_is_continued_where_it_ended() {
    let desk = desk(512);
    let turn = desk.ask(None, "Good morning");
    let (first, _) = desk.answer(turn).unwrap();
    assert_eq!(first.state, TurnState::Limit);
    desk.store.continue_answer(turn).unwrap();
    let (both, shown) = desk.answer(turn).unwrap();
    assert_eq!(both.text, shown);
    assert!(both.text.starts_with(&first.text) && both.text.len() > first.text.len());
    let tokens = |turn: &reprise_library::chats::Turn| turn.stats.as_ref().unwrap().answer_tokens;
    assert!(
        tokens(&both) > tokens(&first),
        "the figures are those of the whole answer"
    );
}

#[test]
fn a_cancelled_answer_ends_as_stopped_and_keeps_what_was_read() {
    let desk = desk(512);
    let turn = desk.ask(None, "Good morning");
    desk.cancel.cancel();
    let (ended, shown) = desk.answer(turn).unwrap();
    assert_eq!((ended.state, shown.as_str()), (TurnState::Stopped, ""));
}

#[test]
fn an_answer_that_is_put_off_before_its_first_word_can_still_be_made() {
    let desk = desk(512);
    let turn = desk.ask(None, "Good morning");
    desk.cancel.cancel();
    desk.is_put_off.store(true, Ordering::Relaxed);
    assert_eq!(desk.answer(turn).unwrap().0.state, TurnState::Writing);
    desk.cancel.reset();
    let (ended, shown) = desk.answer(turn).unwrap();
    assert_eq!(ended.text, shown);
    assert!(!ended.text.is_empty(), "{ended:?}");
}

#[test]
fn an_answer_that_fills_a_window_of_little_memory_ends_for_that_reason() {
    // Two pages, and a window that asks for more.
    let probe = Assistant::load(Path::new(MODEL), &LoadOptions::default()).unwrap();
    let page_bytes = 256 * probe.engine().info().kv_token_bytes as u64;
    let options = LoadOptions {
        threads: Some(1),
        kv_budget_bytes: Some(5 * page_bytes / 2),
        ..LoadOptions::default()
    };
    let mut desk = desk(512);
    desk.assistant = Assistant::load(Path::new(MODEL), &options).unwrap();
    assert!(desk.assistant.engine().info().context_tokens > 512);
    assert_eq!(desk.assistant.writer().info().context_tokens, 512);
    desk.instructions.options.max_tokens = 5_000;
    let (ended, _) = desk.answer(desk.ask(None, "Good morning")).unwrap();
    assert_eq!(ended.state, TurnState::Window, "{ended:?}");
}

#[test]
fn a_question_that_is_too_long_fails_with_its_size_and_the_chat_goes_on() {
    let desk = desk(128);
    let turn = desk.ask(None, &"a very long question ".repeat(200));
    let error = desk.answer(turn).unwrap_err();
    assert!(
        matches!(error, ConverseError::TooLong { window: 127, .. }),
        "{error}"
    );
    let ended = desk.store.turn(turn).unwrap();
    assert_eq!(
        (ended.state, ended.error),
        (TurnState::Failed, Some(error.to_string()))
    );
    let turn = desk.ask(None, "Good morning");
    desk.answer(turn).unwrap();
}

#[test]
fn the_oldest_exchanges_are_left_out_whole_and_a_question_without_an_answer_joins_the_next() {
    let desk = desk(256);
    let mut last = None;
    for number in 0..12 {
        let turn = desk.ask(last, &format!("Question {number} about something or other"));
        desk.answer(turn).unwrap();
        last = Some(turn);
    }
    let turns = desk.store.path_to(last.unwrap()).unwrap();
    let writer = desk.assistant.writer().clone();
    let laid_out = layout(
        &writer,
        &desk.counts,
        &turns,
        &GivenOf::new(),
        &desk.instructions,
        Coming::Draft {
            text: "And what is it about now, after all of that?",
            given: &[],
        },
    );
    assert!(laid_out.hidden_turns > 0 && laid_out.hidden_turns.is_multiple_of(2));
    let first = laid_out.messages[0].text();
    assert_eq!(first, turns[laid_out.hidden_turns].text);

    let mut turns = turns[..2].to_vec();
    turns[1].text.clear();
    let mut next = turns[0].clone();
    next.text = "Are you there?".into();
    turns.push(next);
    let laid_out = layout(
        &writer,
        &desk.counts,
        &turns,
        &GivenOf::new(),
        &desk.instructions,
        Coming::Answer,
    );
    assert_eq!(laid_out.messages.len(), 1, "roles alternate");
    assert!(laid_out.messages[0].text().ends_with("\n\nAre you there?"));
}

#[test]
fn a_title_leaves_the_chat_as_it_was() {
    // How much of the second prompt is known, with a title made in between and without.
    let reused = [true, false].map(|with_title| {
        let desk = desk(512);
        let turn = desk.ask(None, "Good morning");
        desk.answer(turn).unwrap();
        if with_title {
            let question = "How do I bake bread?";
            desk.assistant.title(question, &CancelToken::default()).unwrap();
        }
        let next = desk.ask(Some(turn), "And a good evening");
        desk.answer(next).unwrap().0.stats.unwrap().reused_prefix_tokens
    });
    assert!(reused[0] > 0);
    assert_eq!(reused[0], reused[1]);
}

#[test]
fn a_long_answer_is_continued_although_the_chat_fills_the_window() {
    let desk = desk(256);
    let mut last = None;
    for number in 0..8 {
        let turn = desk.ask(last, &format!("Question {number} about something or other"));
        desk.answer(turn).unwrap();
        last = Some(turn);
    }
    let turn = last.unwrap();
    for _ in 0..6 {
        if desk.store.turn(turn).unwrap().state != TurnState::Limit {
            break;
        }
        desk.store.continue_answer(turn).unwrap();
        let (ended, _) = desk.answer(turn).unwrap();
        assert!(ended.error.is_none(), "{ended:?}");
    }
}

#[test]
fn the_account_of_a_prompt_is_its_length() {
    let mut desk = desk(512);
    for system in ["", "You are a lighthouse."] {
        desk.instructions.system = system.into();
        let turn = desk.ask(None, "Good morning");
        desk.answer(turn).unwrap();
        let turns = desk.store.path_to(turn).unwrap();
        let writer = desk.assistant.writer().clone();
        let laid_out = layout(
            &writer,
            &desk.counts,
            &turns[..1],
            &GivenOf::new(),
            &desk.instructions,
            Coming::Answer,
        );
        let counted = laid_out.system_tokens + laid_out.history_tokens;
        assert_eq!(
            counted,
            writer.prompt(&laid_out.messages).unwrap().len(),
            "system {system:?}"
        );
    }
}

#[test]
fn what_left_the_prompt_is_found_again_and_stays_with_the_question() {
    let desk = desk(2048);
    let first = desk.ask(None, "My sister Ada keeps bees in Lisbon");
    desk.answer(first).unwrap();
    let mut last = first;
    for number in 0..60 {
        last = desk.ask(Some(last), &format!("Question {number} about something or other"));
        desk.answer(last).unwrap();
    }
    let asked = desk.ask(Some(last), "Where does Ada keep bees?");
    desk.answer(asked).unwrap();
    let given = desk.store.given_up_to(asked).unwrap();
    let question = desk.store.turn(asked).unwrap().parent.unwrap();
    let found = &given[&question];
    assert!(found[0].text.contains("bees in Lisbon"), "{found:?}");
    assert!(matches!(found[0].source, Origin::Earlier { .. }));
    // Another answer to it is made from the same.
    let again = desk.store.begin_answer(question, "tiny").unwrap().id;
    desk.answer(again).unwrap();
    assert_eq!(desk.store.given_up_to(again).unwrap()[&question], *found);
}

#[test]
fn passages_stand_in_their_turn_before_the_question_and_are_counted() {
    let desk = desk(1024);
    let turn = desk.ask(None, "When do I prune the apple tree?");
    let question = desk.store.turn(turn).unwrap().parent.unwrap();
    let passage = Given {
        label: "house.md, lines 1-3".into(),
        text: "[house.md, lines 1-3]\nPrune the apple tree in February.\n\n".into(),
        source: Origin::Passage {
            path: "/home/ada/house.md".into(),
            owner: "house.md#7".into(),
            place: "lines 1-3".into(),
            start: 0,
            end: 34,
            is_ocr: false,
        },
    };
    desk.store
        .set_given(question, std::slice::from_ref(&passage))
        .unwrap();
    desk.answer(turn).unwrap();
    let turns = desk.store.path_to(turn).unwrap();
    let given = desk.store.given_up_to(turn).unwrap();
    let writer = desk.assistant.writer().clone();
    let laid_out = layout(
        &writer,
        &desk.counts,
        &turns[..1],
        &given,
        &desk.instructions,
        Coming::Answer,
    );
    let text = laid_out.messages[0].text();
    assert_eq!(
        text,
        format!("{}Question: When do I prune the apple tree?", passage.text)
    );
    assert_eq!(laid_out.given_tokens.passages, writer.count(&passage.text));
    let counted = laid_out.system_tokens + laid_out.history_tokens + laid_out.given_tokens.total();
    assert_eq!(counted, writer.prompt(&laid_out.messages).unwrap().len());
    // It survives being written out and read in again.
    let chat = desk.store.turn(turn).unwrap().chat;
    let json = desk
        .store
        .export(chat, reprise_library::chats::ExportFormat::Json)
        .unwrap();
    let copy = desk.store.import_json(&json).unwrap();
    let last = desk.store.chat(copy.id).unwrap().turns.pop().unwrap();
    let of_copy = desk.store.given_up_to(last.id).unwrap();
    assert_eq!(of_copy.into_values().next().unwrap(), [passage]);
}

#[test]
fn calls_that_an_answer_was_made_with_stand_before_it_in_later_prompts() {
    let desk = desk(512);
    let turn = desk.ask(None, "What is on the shelf?");
    desk.answer(turn).unwrap();
    let given = |text: &str, source: Origin| Given {
        label: "x".into(),
        text: text.into(),
        source,
    };
    let result = |number, skill: Option<&str>| Origin::Result {
        number,
        skill: skill.map(str::to_owned),
    };
    let calls = [
        given("look at the shelf", Origin::Call),
        given("# Skill: shelf\n", result(0, Some("shelf"))),
        given("three books", result(0, None)),
        given("a lamp", result(1, None)),
    ];
    desk.store.set_given(turn, &calls).unwrap();
    let question = desk.store.turn(turn).unwrap().parent.unwrap();
    assert!(
        desk.store.set_given(question, &calls).is_err(),
        "calls belong to answers"
    );
    desk.ask(Some(turn), "And below it?");
    let chat = desk.store.turn(turn).unwrap().chat;
    let turns = desk.store.chat(chat).unwrap().turns;
    let kept = desk.store.given_up_to(turn).unwrap();
    let laid_out = layout(
        desk.assistant.writer(),
        &desk.counts,
        &turns[..3],
        &kept,
        &desk.instructions,
        Coming::Answer,
    );
    let texts: Vec<String> = laid_out.messages.iter().map(|message| message.text()).collect();
    assert_eq!(texts.len(), 6, "{texts:?}");
    assert_eq!(texts[1], "look at the shelf");
    assert_eq!(texts[2], "# Skill: shelf\nthree books");
    assert_eq!(texts[3], "a lamp");
    assert!(laid_out.given_tokens.tools > 0 && laid_out.given_tokens.skills == 0);
    // They go where the chat goes.
    let json = desk
        .store
        .export(chat, reprise_library::chats::ExportFormat::Json)
        .unwrap();
    let copy = desk.store.import_json(&json).unwrap();
    let copied = desk.store.chat(copy.id).unwrap().turns;
    assert_eq!(
        desk.store.given_up_to(copied[1].id).unwrap()[&copied[1].id],
        calls
    );
}
