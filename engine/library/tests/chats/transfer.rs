//! Chats as Markdown and JSON, and back from JSON.

use reprise_library::chats::{ExportFormat, StoreError, TurnState};
use reprise_library::skills::StepTold;
use serde_json::{Value, json};

use crate::Bench;

#[test]
fn markdown_is_the_shown_branch_with_times_in_utc() {
    let bench = Bench::new();
    let question = bench.store().begin_chat("When do I prune?").unwrap();
    bench.answer(question.id, "An answer that is not shown");
    bench.pass_ms(61_000);
    let answer = bench.store().begin_answer(question.id, "a model").unwrap();
    bench
        .store()
        .append_piece(answer.id, "In **February**.\n")
        .unwrap();
    bench
        .store()
        .finish_answer(answer.id, TurnState::Stopped, None, None)
        .unwrap();
    assert_eq!(
        bench
            .store()
            .export(question.chat, ExportFormat::Markdown)
            .unwrap(),
        "# When do I prune?\n\n## You, 2027-01-15T08:00:00Z\n\nWhen do I prune?\n\n\
         ## Assistant, 2027-01-15T08:01:01Z\n\nIn **February**.\n\n*(stopped)*\n"
    );
}

#[test]
fn what_an_answer_did_with_tools_stays_with_it_and_goes_along() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    let (question, answer) = bench.exchange(chat, None, "How many?", "Three.");
    let steps = [
        StepTold::Skill {
            skill: "count-notes".into(),
            tokens: 120,
            is_left_out: false,
        },
        StepTold::Script {
            skill: "count-notes".into(),
            script: "scripts/count.sh".into(),
            ending: "exited with 0".into(),
            is_done: true,
            output: "3\u{0}\n".into(),
            milliseconds: 12,
        },
    ];
    for step in &steps {
        bench.store().add_step(answer.id, step).unwrap();
    }
    let error = bench.store().add_step(question.id, &steps[0]).unwrap_err();
    assert!(error.to_string().contains("this is a question"), "{error}");
    assert_eq!(bench.store().steps_of(answer.id).unwrap(), steps);

    let json = bench.store().export(chat, ExportFormat::Json).unwrap();
    let other = Bench::new();
    let summary = other.store().import_json(&json).unwrap();
    let there = other.store().chat(summary.id).unwrap().turns[1].id;
    assert_eq!(other.store().steps_of(there).unwrap(), steps);

    bench.store().forget_steps(answer.id).unwrap();
    assert_eq!(bench.store().steps_of(answer.id).unwrap(), []);
}

#[test]
fn json_brings_back_every_branch_in_any_store() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    let (_, answer) = bench.exchange(chat, None, "one \"quoted\" 苹果", "1");
    let (second, _) = bench.exchange(chat, Some(answer.id), "two", "2\u{1}👩‍👩‍👧");
    bench.exchange(chat, second.parent, "two, edited", "2e");
    bench.store().select_branch(second.id).unwrap();
    bench
        .store()
        .rename_chat(chat, &"A long title by a person ".repeat(7))
        .unwrap();
    let json = bench.store().export(chat, ExportFormat::Json).unwrap();

    let other = Bench::new();
    other.store().begin_chat("ids differ here").unwrap();
    other.pass_ms(5_000);
    let summary = other.store().import_json(&json).unwrap();

    assert_eq!(
        other.store().export(summary.id, ExportFormat::Json).unwrap(),
        json
    );
    assert_eq!(other.store().list().unwrap().chats[0], summary);
    assert_eq!(other.texts(summary.id), bench.texts(chat));
    assert_eq!(summary.title, bench.store().summary(chat).unwrap().title);
    assert_eq!(other.store().search("edited", 9).unwrap().len(), 1);
    // Branches can be gone through as before.
    let shown = other.store().chat(summary.id).unwrap().turns;
    let edited = shown[2].branch.siblings[1];
    assert_eq!(
        other
            .store()
            .select_branch(edited)
            .unwrap()
            .turns
            .last()
            .unwrap()
            .text,
        "2e"
    );
}

#[test]
fn an_answer_exported_while_it_is_written_arrives_as_interrupted() {
    let bench = Bench::new();
    let question = bench.store().begin_chat("one").unwrap();
    let answer = bench.store().begin_answer(question.id, "a model").unwrap();
    bench.store().append_piece(answer.id, "half").unwrap();
    let json = bench.store().export(question.chat, ExportFormat::Json).unwrap();
    let copy = bench.store().import_json(&json).unwrap().id;
    let turn = &bench.store().chat(copy).unwrap().turns[1];
    assert_eq!((turn.state, turn.text.as_str()), (TurnState::Interrupted, "half"));
}

#[test]
fn an_empty_chat_can_be_exported_and_imported() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    assert_eq!(
        bench.store().export(chat, ExportFormat::Markdown).unwrap(),
        "# Untitled chat\n"
    );
    let json = bench.store().export(chat, ExportFormat::Json).unwrap();
    assert_eq!(bench.store().import_json(&json).unwrap().title, None);
}

/// A chat of one question and one answer.
fn valid() -> Value {
    let turn = |parent: Value, role: &str| json!({"parent": parent, "role": role, "text": role, "state": "done", "createdMs": 1});
    json!({
        "format": "reprise-chat", "version": 1, "title": "T", "createdMs": 1, "current": 1,
        "turns": [turn(json!(null), "user"), turn(json!(0), "assistant")],
    })
}

#[test]
fn hostile_json_is_refused_with_a_reason_and_leaves_nothing() {
    let bench = Bench::new();
    bench.store().import_json(&valid().to_string()).unwrap();
    let cases: [(&str, Value, &str); 16] = [
        ("/format", json!("other-chat"), "other-chat"),
        ("/format", json!(null), "not a chat"),
        ("/version", json!(2), "update Reprise"),
        ("/version", json!(0), "version 0"),
        ("/current", json!(2), "should show"),
        ("/current", json!(-1), "wrong"),
        ("/createdMs", json!(i64::MAX), "time"),
        ("/turns", json!({}), "wrong"),
        (
            "/turns/1/parent",
            json!(1),
            "turn 2 follows a turn that does not come before",
        ),
        (
            "/turns/0/parent",
            json!(1),
            "turn 1 follows a turn that does not come before",
        ),
        (
            "/turns/1/parent",
            json!(77),
            "turn 2 follows a turn that does not come before",
        ),
        ("/turns/1/parent", json!(null), "an answer without a question"),
        (
            "/turns/1/role",
            json!("user"),
            "a question that follows a question",
        ),
        ("/turns/1/role", json!("system"), "wrong"),
        (
            "/turns/0/state",
            json!("writing"),
            "a state that only answers have",
        ),
        ("/turns/1/createdMs", json!(-1), "time"),
    ];
    for (place, value, reason) in cases {
        let mut file = valid();
        *file.pointer_mut(place).unwrap() = value;
        match bench.store().import_json(&file.to_string()) {
            Err(StoreError::Import(said)) => assert!(said.contains(reason), "{place}: {said}"),
            other => panic!("{place}: {other:?}"),
        }
    }
    for text in [
        "",
        "{",
        "[]",
        "null",
        &"[".repeat(100_000),
        "{\"format\":\"reprise-chat\",\"version\":1}",
    ] {
        assert!(matches!(
            bench.store().import_json(text),
            Err(StoreError::Import(_))
        ));
    }
    let mut answers = valid();
    answers["turns"][1]["parent"] = json!(0);
    answers["turns"][0]["role"] = json!("assistant");
    assert!(bench.store().import_json(&answers.to_string()).is_err());
    assert_eq!(bench.store().list().unwrap().chats.len(), 1);
}

#[test]
fn unknown_fields_of_a_later_export_do_no_harm() {
    let bench = Bench::new();
    let mut file = valid();
    file["colour"] = json!("green");
    file["turns"][0]["attachments"] = json!([]);
    bench.store().import_json(&file.to_string()).unwrap();
}

#[test]
fn files_that_are_no_chats_are_refused_with_a_reason() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("picture.json"), [0xff, 0xd8, 0xff]).unwrap();
    let mut nothing = valid();
    nothing["turns"] = json!([]);
    nothing["current"] = json!(null);
    std::fs::write(at("nothing.json"), nothing.to_string()).unwrap();
    std::fs::File::create(at("huge.json"))
        .and_then(|file| file.set_len(1 << 40))
        .unwrap();
    std::fs::write(at("chat.json"), valid().to_string()).unwrap();
    let refused = |name: &str| {
        let refused = bench.store().import_file(&at(name));
        refused.unwrap_err().to_string()
    };
    for (name, reason) in [
        ("picture.json", "not text"),
        ("nothing.json", "nothing in it"),
        ("huge.json", "more than 256 MiB"),
        ("missing.json", "cannot be read"),
        (".", "not a file"),
    ] {
        assert!(refused(name).contains(reason), "{name}: {}", refused(name));
    }
    bench.store().import_file(&at("chat.json")).unwrap();
    assert_eq!(bench.store().list().unwrap().chats.len(), 1);
}
