//! The list: order, titles, folders, drafts, putting away; and settings.

use reprise_library::chats::{ChatId, FolderId, StoreError};
use serde_json::json;

use crate::Bench;

fn ids(bench: &Bench) -> Vec<ChatId> {
    bench
        .store()
        .list()
        .unwrap()
        .chats
        .into_iter()
        .map(|chat| chat.id)
        .collect()
}

#[test]
fn pinned_chats_come_first_then_those_that_were_last_said_something_in() {
    let bench = Bench::new();
    let [a, b, c] = ["a", "b", "c"].map(|text| bench.store().begin_chat(text).unwrap());
    assert_eq!(ids(&bench), [c.chat, b.chat, a.chat]);
    // Whatever the clock says.
    bench.pass_ms(-3_600_000);
    bench.answer(a.id, "1");
    assert_eq!(ids(&bench), [a.chat, c.chat, b.chat]);
    bench.store().pin_chat(b.chat, true).unwrap();
    assert_eq!(ids(&bench), [b.chat, a.chat, c.chat]);
    bench.store().pin_chat(b.chat, false).unwrap();
    assert_eq!(ids(&bench), [a.chat, c.chat, b.chat]);
}

#[test]
fn an_empty_chat_is_listed_once_something_is_typed_in_it() {
    let bench = Bench::new();
    let chat = bench.store().create_chat().unwrap().id;
    assert_eq!(ids(&bench), []);
    bench.store().set_draft(Some(chat), "h").unwrap();
    assert_eq!(ids(&bench), [chat]);
    assert_eq!(bench.store().summary(chat).unwrap().draft, "h");
    bench.store().set_draft(Some(chat), "").unwrap();
    assert_eq!(ids(&bench), []);
}

#[test]
fn typing_does_not_move_a_chat() {
    let bench = Bench::new();
    let [a, b] = ["a", "b"].map(|text| bench.store().begin_chat(text).unwrap().chat);
    bench.store().set_draft(Some(a), "more").unwrap();
    bench.store().rename_chat(a, "A").unwrap();
    assert_eq!(ids(&bench), [b, a]);
}

#[test]
fn a_persons_title_is_not_replaced() {
    let bench = Bench::new();
    let store = bench.store();
    let chat = store.begin_chat("first words").unwrap().chat;
    let title = || store.summary(chat).unwrap().title.unwrap();
    assert_eq!(title(), "first words");
    store.set_generated_title(chat, "  \n").unwrap();
    assert_eq!(title(), "first words");
    store.set_generated_title(chat, "A summary\n").unwrap();
    assert_eq!(title(), "A summary");
    store.set_generated_title(chat, "Another").unwrap();
    assert_eq!(title(), "A summary");
    store.rename_chat(chat, "  Mine \n own ").unwrap();
    assert_eq!(title(), "Mine own");
    store.set_generated_title(chat, "Another").unwrap();
    assert_eq!(title(), "Mine own");
    assert!(matches!(
        store.rename_chat(chat, " "),
        Err(StoreError::Refused(_))
    ));
    assert!(matches!(
        store.rename_chat(chat, &"x".repeat(201)),
        Err(StoreError::Refused(_))
    ));
    assert!(matches!(
        store.rename_chat(ChatId(99), "x"),
        Err(StoreError::Missing { .. })
    ));
}

#[test]
fn a_chat_is_unnamed_until_a_person_or_a_model_names_it() {
    let bench = Bench::new();
    let store = bench.store();
    let chat = store.create_chat().unwrap().id;
    assert_eq!(store.unnamed_question(chat).unwrap(), None);
    store.add_user_turn(chat, None, "first words").unwrap();
    assert_eq!(
        store.unnamed_question(chat).unwrap().as_deref(),
        Some("first words")
    );
    store.set_generated_title(chat, "A summary").unwrap();
    assert_eq!(store.unnamed_question(chat).unwrap(), None);
}

#[test]
fn folders_have_names_of_their_own_and_leave_their_chats() {
    let bench = Bench::new();
    let store = bench.store();
    let garden = store.add_folder("  Garden ").unwrap();
    let attic = store.add_folder("attic").unwrap();
    assert_eq!(garden.name, "Garden");
    assert_eq!(store.list().unwrap().folders, [attic.clone(), garden.clone()]);
    for bad in ["Garden", " Garden", "", " \t", &"x".repeat(81)] {
        assert!(
            matches!(store.add_folder(bad), Err(StoreError::Refused(_))),
            "{bad:?}"
        );
    }
    assert!(matches!(
        store.rename_folder(attic.id, "Garden"),
        Err(StoreError::Refused(_))
    ));
    store.rename_folder(attic.id, "Attic").unwrap();
    store.rename_folder(attic.id, "Attic").unwrap();

    let chat = store.begin_chat("a").unwrap().chat;
    assert_eq!(
        store.move_chat(chat, Some(garden.id)).unwrap().folder,
        Some(garden.id)
    );
    assert!(matches!(
        store.move_chat(chat, Some(FolderId(99))),
        Err(StoreError::Missing { .. })
    ));
    store.remove_folder(garden.id).unwrap();
    assert_eq!(store.summary(chat).unwrap().folder, None);
    assert!(matches!(
        store.remove_folder(garden.id),
        Err(StoreError::Missing { .. })
    ));
    assert_ne!(
        store.add_folder("Garden").unwrap().id,
        garden.id,
        "ids are not used again"
    );
}

#[test]
fn a_deleted_chat_is_nowhere_until_it_is_restored() {
    let bench = Bench::new();
    let store = bench.store();
    let turn = store.begin_chat("find me").unwrap();
    store.delete_chat(turn.chat).unwrap();
    let missing = |error: Option<StoreError>| matches!(error, Some(StoreError::Missing { .. }));
    assert_eq!(ids(&bench), []);
    assert!(store.search("find me", 9).unwrap().is_empty());
    assert!(missing(store.chat(turn.chat).err()));
    assert!(missing(store.summary(turn.chat).err()));
    assert!(missing(store.turn(turn.id).err()));
    assert!(missing(store.path_to(turn.id).err()));
    assert!(missing(store.select_branch(turn.id).err()));
    assert!(missing(store.rename_chat(turn.chat, "x").err()));
    assert!(missing(store.set_generated_title(turn.chat, "x").err()));
    assert!(missing(store.add_user_turn(turn.chat, None, "x").err()));
    assert!(missing(store.begin_answer(turn.id, "x").err()));
    assert!(missing(store.set_draft(Some(turn.chat), "x").err()));
    assert!(missing(store.delete_chat(turn.chat).err()));
    assert_eq!(
        store.restore_chat(turn.chat).unwrap().title.as_deref(),
        Some("find me")
    );
    assert_eq!(ids(&bench), [turn.chat]);
    assert_eq!(store.search("find me", 9).unwrap().len(), 2);
    assert!(missing(store.restore_chat(ChatId(99)).err()));
}

#[test]
fn drafts_and_settings_are_there_again_after_a_restart() {
    let mut bench = Bench::new();
    assert_eq!(bench.store().setting("theme").unwrap(), None);
    bench
        .store()
        .set_setting("theme", &json!({"name": "dark", "size": [1, 2.5, null]}))
        .unwrap();
    bench.store().set_setting("other", &json!(1)).unwrap();
    bench.store().set_setting("other", &json!("two")).unwrap();
    bench.store().set_draft(None, "not sent").unwrap();
    assert_eq!(bench.open(), Vec::<String>::new());
    assert_eq!(
        bench.store().setting("theme").unwrap(),
        Some(json!({"name": "dark", "size": [1, 2.5, null]}))
    );
    assert_eq!(bench.store().setting("other").unwrap(), Some(json!("two")));
    assert_eq!(bench.store().new_chat_draft().unwrap(), "not sent");
}
