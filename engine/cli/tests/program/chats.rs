//! `reprise export` and `reprise import` as a person uses them.

use std::fs;
use std::path::Path;

use crate::common::{Run, assert_fails, default_model, folder, reprise, run};
use reprise_library::chats::{ChatStore, Given, Origin, TurnState};
use reprise_library::folders;

fn command(home: &Path, arguments: &[&str]) -> Run {
    run(reprise(home).args(arguments), "")
}

#[test]
fn all_chats_go_out_with_their_folders_and_come_back() {
    let (home, other, out) = (folder(), folder(), folder());
    let (store, _) = ChatStore::open(folders::chats_in(home.path())).unwrap();
    let garden = store.add_folder("Garden: 2026").unwrap();
    for (question, into) in [
        ("Roses", Some(garden.id)),
        ("roses", Some(garden.id)),
        ("Boats", None),
    ] {
        let asked = store.begin_chat(question).unwrap();
        store
            .set_given(
                asked.id,
                &[Given {
                    label: "a.md, line 1".into(),
                    text: "[a.md, line 1]\nRed.\n\n".into(),
                    source: Origin::Skill { name: "x".into() },
                }],
            )
            .unwrap();
        let answer = store.begin_answer(asked.id, "tiny").unwrap();
        store.append_piece(answer.id, "They are red.").unwrap();
        store
            .finish_answer(answer.id, TurnState::Done, None, None)
            .unwrap();
        store.rename_chat(asked.chat, question).unwrap();
        store.move_chat(asked.chat, into).unwrap();
    }
    drop(store);

    let all = out.path().join("all");
    let told = command(home.path(), &["export", all.to_str().unwrap()]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.starts_with("3 chats in "), "{}", told.out);
    let names = |folder: &Path| {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&all), ["Boats.json", "Garden- 2026"]);
    assert_eq!(names(&all.join("Garden- 2026")).len(), 2);
    assert_fails(
        &command(home.path(), &["export", all.to_str().unwrap()]),
        1,
        &["is not an empty folder"],
    );

    fs::write(all.join("broken.json"), "{").unwrap();
    let told = command(other.path(), &["import", all.to_str().unwrap()]);
    assert_eq!(told.code, Some(1));
    assert_eq!(told.out, "3 chats imported\n");
    assert!(told.err.contains("broken.json") && told.err.contains("1 file could not be imported"));
    let (store, _) = ChatStore::open(folders::chats_in(other.path())).unwrap();
    let list = store.list().unwrap();
    assert_eq!((list.chats.len(), list.folders.len()), (3, 1));
    assert_eq!(list.chats.iter().filter(|chat| chat.folder.is_some()).count(), 2);
    let chat = store.chat(list.chats[0].id).unwrap();
    assert_eq!(chat.turns[1].text, "They are red.");
    assert_eq!(
        store.given_up_to(chat.turns[1].id).unwrap()[&chat.turns[0].id].len(),
        1
    );
    drop(store);

    // Folders of folders get into one, whatever its name, and links to folders are not followed.
    let odd = out.path().join("odd");
    let deep = odd.join("two\nlines/deeper");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir_all(odd.join(" ")).unwrap();
    fs::copy(all.join("Boats.json"), deep.join("a.json")).unwrap();
    fs::copy(all.join("Boats.json"), odd.join(" /b.json")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&odd, odd.join("loop")).unwrap();
    for chats in [5, 7] {
        let told = command(other.path(), &["import", odd.to_str().unwrap()]);
        assert_eq!(
            (told.code, told.out.as_str()),
            (Some(0), "2 chats imported\n"),
            "{told:?}"
        );
        assert!(
            cfg!(not(unix)) || told.err.contains("loop: this link"),
            "{told:?}"
        );
        let (store, _) = ChatStore::open(folders::chats_in(other.path())).unwrap();
        let list = store.list().unwrap();
        assert_eq!(
            (list.chats.len(), list.folders.len()),
            (chats, 2),
            "{:?}",
            list.folders
        );
        assert!(list.folders.iter().any(|folder| folder.name == "two lines"));
    }

    let one = out.path().join("boats.md");
    let told = command(home.path(), &["export", one.to_str().unwrap(), "--chat", "Boats"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(fs::read_to_string(&one).unwrap().contains("They are red."));
    assert_fails(
        &command(home.path(), &["export", "x.md", "--chat", "Ships"]),
        1,
        &["no chat is called \"Ships\"", "Boats"],
    );
    assert_fails(
        &command(home.path(), &["export", "x.txt", "--chat", "Boats"]),
        2,
        &[".md", "--format"],
    );
}

#[test]
fn while_the_window_has_the_chats_nothing_is_touched() {
    let home = folder();
    let _lock = folders::lock(home.path()).unwrap();
    assert_fails(
        &command(home.path(), &["export", "anywhere"]),
        1,
        &["Reprise runs already"],
    );
}

#[test]
fn the_prompt_of_a_chat_is_told_as_it_would_be_read() {
    let home = folder();
    let (store, _) = ChatStore::open(folders::chats_in(home.path())).unwrap();
    let asked = store.begin_chat("What colour are roses?").unwrap();
    store.rename_chat(asked.chat, "Roses").unwrap();
    let explain = |chat: &str| {
        let model = default_model();
        let model = model.to_str().unwrap();
        command(
            home.path(),
            &["explain", "--chat", chat, "-m", model, "--json", "--quiet"],
        )
    };
    // The chats belong to whoever has them open.
    drop(store);
    assert_fails(&explain("Boats"), 1, &["no chat is called \"Boats\"", "Roses"]);
    assert_fails(&explain("Roses"), 1, &["\"Roses\" has no answer yet"]);

    let (store, _) = ChatStore::open(folders::chats_in(home.path())).unwrap();
    let answer = store.begin_answer(asked.id, "tiny").unwrap();
    store.append_piece(answer.id, "They are red.").unwrap();
    store
        .finish_answer(answer.id, TurnState::Done, None, None)
        .unwrap();
    drop(store);
    let told = explain("Roses");
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("{told:?}"));
    // Nothing was read before: all of it is new.
    assert_eq!(
        (&told["prefix_tokens"], &told["moved_tokens"]),
        (&0.into(), &0.into())
    );
    let calls = told["calls"].as_array().unwrap().iter();
    let computed: u64 = calls.map(|call| call["tokens"].as_u64().unwrap()).sum();
    assert!(computed > 10, "{told}");
    assert_eq!(told["spans"].as_array().unwrap().last().unwrap()["to"], computed);
}
