//! Long chats: no stack of ours grows with them.

use std::fmt::Write as _;

use reprise_library::chats::{ChatId, ExportFormat, TurnState};

use crate::Bench;

/// Imports a chat of one path.
pub(crate) fn path_of(bench: &Bench, turns: usize, text: &str) -> ChatId {
    let mut json = format!(
        r#"{{"format":"reprise-chat","version":1,"title":"Long","createdMs":1,"current":{},"turns":["#,
        turns - 1
    );
    for place in 0..turns {
        let (parent, role) = match place {
            0 => ("null".to_string(), "user"),
            n if n % 2 == 0 => ((n - 1).to_string(), "user"),
            n => ((n - 1).to_string(), "assistant"),
        };
        let comma = if place == 0 { "" } else { "," };
        write!(
            json,
            r#"{comma}{{"parent":{parent},"role":"{role}","text":"{text} {place}","state":"done","createdMs":1}}"#
        )
        .unwrap();
    }
    json.push_str("]}");
    bench.store().import_json(&json).unwrap().id
}

#[test]
fn a_chat_of_a_thousand_turns_opens_whole() {
    let bench = Bench::new();
    let chat = path_of(&bench, 1_000, "turn");
    let turns = bench.store().chat(chat).unwrap().turns;
    assert_eq!(turns.len(), 1_000);
    assert!(
        turns
            .iter()
            .enumerate()
            .all(|(place, turn)| turn.text == format!("turn {place}"))
    );
    assert!(turns.windows(2).all(|pair| pair[1].parent == Some(pair[0].id)));
}

#[test]
fn a_path_of_a_hundred_thousand_turns_does_everything_a_short_one_does() {
    let bench = Bench::new();
    let chat = path_of(&bench, 100_000, "t");
    let turns = bench.store().chat(chat).unwrap().turns;
    assert_eq!(turns.len(), 100_000);
    let last = turns.last().unwrap().id;
    assert_eq!(bench.store().path_to(last).unwrap().len(), 100_000);
    let second = bench
        .store()
        .add_user_turn(chat, None, "another beginning")
        .unwrap();
    assert_eq!(bench.store().chat(chat).unwrap().turns.len(), 1);
    assert_eq!(
        bench.store().select_branch(turns[0].id).unwrap().turns.len(),
        100_000
    );
    assert_eq!(bench.store().turn(second.id).unwrap().branch.siblings.len(), 2);
    let question = bench.store().add_user_turn(chat, Some(last), "and on").unwrap();
    let answer = bench.store().begin_answer(question.id, "a model").unwrap();
    bench
        .store()
        .finish_answer(answer.id, TurnState::Done, None, None)
        .unwrap();
    let json = bench.store().export(chat, ExportFormat::Json).unwrap();
    assert!(bench.store().export(chat, ExportFormat::Markdown).unwrap().len() > 100_000);
    let copy = bench.store().import_json(&json).unwrap().id;
    assert_eq!(bench.store().chat(copy).unwrap().turns.len(), 100_002);
    bench.store().delete_chat(chat).unwrap();
    assert_eq!(bench.store().erase_deleted(None).unwrap(), [chat]);
}
