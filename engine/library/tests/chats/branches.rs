//! Turns as a tree: what may follow what, which branch is shown, and how answers come.

use reprise_library::chats::{AnswerStats, ChatId, Role, StoreError, TurnId, TurnState};

use crate::Bench;

fn stats() -> AnswerStats {
    AnswerStats {
        model: "a model".to_string(),
        prompt_tokens: 30,
        reused_prefix_tokens: 12,
        reused_elsewhere_tokens: 3,
        answer_tokens: 4,
        first_token_ms: 210,
        decode_ms: 190,
        saved_ms: 80,
    }
}

#[test]
fn a_first_question_names_the_chat_and_uses_up_its_draft() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    bench.store().set_draft(Some(chat), "When do I prune").unwrap();

    let turn = bench
        .store()
        .add_user_turn(chat, None, "\n  When do I\tprune?\nTell me all.")
        .unwrap();

    assert_eq!(
        (turn.role, turn.state, turn.parent),
        (Role::User, TurnState::Done, None)
    );
    assert_eq!(turn.text, "\n  When do I\tprune?\nTell me all.");
    let summary = bench.store().summary(chat).unwrap();
    assert_eq!(summary.title.as_deref(), Some("When do I prune?"));
    assert_eq!(summary.draft, "");
}

#[test]
fn a_chat_begun_with_a_question_uses_up_the_new_chats_draft() {
    let bench = Bench::new();
    bench.store().set_draft(None, "half a question").unwrap();
    let turn = bench.store().begin_chat("A whole question").unwrap();
    assert_eq!(bench.store().new_chat_draft().unwrap(), "");
    assert_eq!(bench.store().list().unwrap().chats[0].id, turn.chat);
    assert!(matches!(
        bench.store().begin_chat(" \n"),
        Err(StoreError::Refused(_))
    ));
    assert_eq!(bench.store().list().unwrap().chats.len(), 1);
}

#[test]
fn what_the_next_message_is_asked_with_is_kept_until_it_is_let_go() {
    let mut bench = Bench::new();
    let with = serde_json::json!({ "skills": ["tidy"] });
    bench.store().set_draft_with(None, Some(&with)).unwrap();
    let chat = bench.store().create_chat().unwrap().id;
    assert_eq!(bench.store().draft_with(Some(chat)).unwrap(), None);
    bench.store().set_draft_with(Some(chat), Some(&with)).unwrap();
    bench.close();
    bench.open();
    assert_eq!(bench.store().draft_with(None).unwrap().as_ref(), Some(&with));
    bench.store().set_draft_with(None, None).unwrap();
    assert_eq!(bench.store().draft_with(None).unwrap(), None);
    assert_eq!(
        bench.store().draft_with(Some(chat)).unwrap().as_ref(),
        Some(&with)
    );
    bench.store().set_draft_with(Some(chat), None).unwrap();
    assert_eq!(bench.store().draft_with(Some(chat)).unwrap(), None);
    bench.store().delete_chat(chat).unwrap();
    assert!(bench.store().set_draft_with(Some(chat), Some(&with)).is_err());
}

#[test]
fn an_answer_is_readable_while_it_is_written_and_whole_at_its_end() {
    let bench = Bench::new();
    let question = bench.store().begin_chat("Why?").unwrap();
    let answer = bench.store().begin_answer(question.id, "a model").unwrap();
    assert_eq!((answer.state, answer.text.as_str()), (TurnState::Writing, ""));
    for piece in ["Be", "cause", "", " 因为", "👩‍👩‍👧"] {
        bench.store().append_piece(answer.id, piece).unwrap();
    }
    assert_eq!(bench.store().turn(answer.id).unwrap().text, "Because 因为👩‍👩‍👧");

    let ended = bench
        .store()
        .finish_answer(answer.id, TurnState::Limit, Some(&stats()), None)
        .unwrap();

    assert_eq!(
        (ended.state, ended.text.as_str()),
        (TurnState::Limit, "Because 因为👩‍👩‍👧")
    );
    assert_eq!(ended.stats, Some(stats()));
    assert_eq!(bench.store().turn(answer.id).unwrap(), ended);
    assert!(matches!(
        bench.store().append_piece(answer.id, "more"),
        Err(StoreError::Refused(_))
    ));
    let again = bench
        .store()
        .finish_answer(answer.id, TurnState::Done, None, None);
    assert!(matches!(again, Err(StoreError::Refused(_))));
}

#[test]
fn a_failed_answer_keeps_its_text_and_says_why() {
    let bench = Bench::new();
    let question = bench.store().begin_chat("Why?").unwrap();
    let answer = bench.store().begin_answer(question.id, "a model").unwrap();
    bench.store().append_piece(answer.id, "Bec").unwrap();
    let ended = bench
        .store()
        .finish_answer(answer.id, TurnState::Failed, None, Some("out of memory"))
        .unwrap();
    assert_eq!(
        (ended.text.as_str(), ended.error.as_deref()),
        ("Bec", Some("out of memory"))
    );
}

#[test]
fn a_continued_answer_goes_on_after_its_text() {
    let bench = Bench::new();
    let question = bench.store().begin_chat("Why?").unwrap();
    let answer = bench.store().begin_answer(question.id, "a model").unwrap();
    bench.store().append_piece(answer.id, "Be").unwrap();
    bench
        .store()
        .finish_answer(answer.id, TurnState::Stopped, Some(&stats()), Some("odd"))
        .unwrap();

    let again = bench.store().continue_answer(answer.id).unwrap();
    assert_eq!(
        (again.state, again.text.as_str(), again.error),
        (TurnState::Writing, "Be", None)
    );
    assert_eq!(again.stats, Some(stats()), "the figures of its beginning");
    bench.store().append_piece(answer.id, "cause").unwrap();
    bench
        .store()
        .finish_answer(answer.id, TurnState::Done, None, None)
        .unwrap();
    assert_eq!(bench.texts(question.chat), ["Why?", "Because"]);

    bench
        .store()
        .add_user_turn(question.chat, Some(answer.id), "And?")
        .unwrap();
    assert!(matches!(
        bench.store().continue_answer(answer.id),
        Err(StoreError::Refused(_))
    ));
}

#[test]
fn an_edited_question_stands_beside_the_first_and_either_can_be_shown() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    let (first, answer) = bench.exchange(chat, None, "one", "1");
    let (second, _) = bench.exchange(chat, Some(answer.id), "two", "2");
    let (edited, _) = bench.exchange(chat, second.parent, "two, edited", "2e");
    assert_eq!(bench.texts(chat), ["one", "1", "two, edited", "2e"]);
    let shown = bench.store().turn(edited.id).unwrap();
    assert_eq!(
        (shown.branch.siblings, shown.branch.index),
        (vec![second.id, edited.id], 1)
    );

    let back = bench.store().select_branch(second.id).unwrap();
    assert_eq!(back, bench.store().chat(chat).unwrap());
    assert_eq!(bench.texts(chat), ["one", "1", "two", "2"]);

    let (other, _) = bench.exchange(chat, first.parent, "one, edited", "1e");
    assert_eq!(
        bench.store().turn(other.id).unwrap().branch.siblings,
        [first.id, other.id]
    );
    bench.store().select_branch(first.id).unwrap();
    assert_eq!(
        bench.texts(chat),
        ["one", "1", "two", "2"],
        "where one was before"
    );
    bench.store().select_branch(edited.id).unwrap();
    bench.store().select_branch(other.id).unwrap();
    bench.store().select_branch(first.id).unwrap();
    assert_eq!(bench.texts(chat), ["one", "1", "two, edited", "2e"]);
}

#[test]
fn a_question_added_off_the_shown_branch_is_where_one_comes_back_to() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    let (root, _) = bench.exchange(chat, None, "root", "old answer");
    let old = bench.store().chat(chat).unwrap().turns[1].id;
    let new = bench.answer(root.id, "new answer");
    // Sent from a page that still showed the old answer.
    bench
        .store()
        .add_user_turn(chat, Some(old), "to the old")
        .unwrap();
    assert_eq!(bench.texts(chat), ["root", "old answer", "to the old"]);
    bench.store().select_branch(new.id).unwrap();
    bench.store().select_branch(old).unwrap();
    assert_eq!(bench.texts(chat), ["root", "old answer", "to the old"]);
}

#[test]
fn siblings_keep_their_order_when_the_clock_is_set_back() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    let mut added = Vec::new();
    for text in ["a", "b", "c"] {
        added.push(bench.store().add_user_turn(chat, None, text).unwrap().id);
        bench.pass_ms(-86_400_000);
    }
    assert_eq!(bench.store().turn(added[0]).unwrap().branch.siblings, added);
    assert_eq!(bench.texts(chat), ["c"]);
}

#[test]
fn the_path_to_a_turn_ends_with_it() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    let (_, answer) = bench.exchange(chat, None, "one", "1");
    bench.exchange(chat, Some(answer.id), "two", "2");
    let path: Vec<String> = bench
        .store()
        .path_to(answer.id)
        .unwrap()
        .into_iter()
        .map(|turn| turn.text)
        .collect();
    assert_eq!(path, ["one", "1"]);
}

#[test]
fn turns_that_make_no_conversation_are_refused() {
    let bench = Bench::new();
    let store = bench.store();
    let question = store.begin_chat("one").unwrap();
    let elsewhere = bench.answer(store.begin_chat("other").unwrap().id, "1");
    let writing = store.begin_answer(question.id, "a model").unwrap();

    let refused = |result: Result<_, StoreError>| matches!(result, Err(StoreError::Refused(_)));
    assert!(refused(store.add_user_turn(
        question.chat,
        Some(question.id),
        "after a question"
    )));
    assert!(refused(store.add_user_turn(
        question.chat,
        Some(elsewhere.id),
        "after another chat's answer"
    )));
    assert!(refused(store.add_user_turn(
        question.chat,
        Some(writing.id),
        "after half an answer"
    )));
    assert!(refused(store.add_user_turn(question.chat, None, " \n ")));
    assert!(refused(store.begin_answer(elsewhere.id, "a model")));
    assert!(refused(store.continue_answer(question.id)));
    assert!(refused(store.continue_answer(writing.id)));
    assert!(refused(store.finish_answer(
        writing.id,
        TurnState::Writing,
        None,
        None
    )));
    assert!(refused(store.finish_answer(
        question.id,
        TurnState::Done,
        None,
        None
    )));
    assert!(refused(
        store.append_piece(question.id, "more").map(|()| question.clone())
    ));

    let missing = |result: Result<_, StoreError>| matches!(result, Err(StoreError::Missing { .. }));
    assert!(missing(store.turn(TurnId(999))));
    assert!(missing(store.begin_answer(TurnId(999), "a model")));
    assert!(missing(store.add_user_turn(ChatId(999), None, "hello")));
    assert!(missing(
        store.append_piece(TurnId(999), "x").map(|()| question.clone())
    ));
}

#[test]
fn an_answer_in_a_deleted_chat_still_ends_in_order() {
    let bench = Bench::new();
    let store = bench.store();
    let question = store.begin_chat("one").unwrap();
    let answer = store.begin_answer(question.id, "a model").unwrap();
    store.delete_chat(question.chat).unwrap();
    store.append_piece(answer.id, "1").unwrap();
    store
        .finish_answer(answer.id, TurnState::Stopped, None, None)
        .unwrap();
    store.restore_chat(question.chat).unwrap();
    assert_eq!(bench.texts(question.chat), ["one", "1"]);
}

#[test]
fn zero_characters_do_not_cut_a_text() {
    let bench = Bench::new();
    let question = bench.store().begin_chat("be\0fore").unwrap();
    bench.answer(question.id, "af\0ter");
    assert_eq!(bench.texts(question.chat), ["be\u{FFFD}fore", "af\u{FFFD}ter"]);
    assert_eq!(bench.store().search("ter", 9).unwrap().len(), 1);
}
