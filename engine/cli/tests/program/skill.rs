//! `reprise skill`, and skills in a chat with the default model, which cannot call tools.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Run, assert_fails, folder, reprise, run};

const SKILL: &str =
    "---\nname: garden\ndescription: Plans a garden. Use for plants.\n---\n# Garden\n\nAnswer in one word.\n";

/// A home with one skill of its own.
fn home() -> tempfile::TempDir {
    let home = folder();
    let skill = home.path().join(".agents/skills/garden");
    fs::create_dir_all(skill.join("scripts")).unwrap();
    fs::create_dir_all(skill.join("references")).unwrap();
    fs::write(skill.join("SKILL.md"), SKILL).unwrap();
    fs::write(
        skill.join("references/plants.md"),
        "Apple trees are pruned in February.\n",
    )
    .unwrap();
    fs::write(
        skill.join("scripts/say.sh"),
        "echo \"said $1\"\n[ \"$1\" != fail ]\n",
    )
    .unwrap();
    home
}

fn in_home(home: &Path) -> Command {
    let mut command = reprise(&home.join("data"));
    command.env("HOME", home).current_dir(home);
    command
}

fn skill(home: &Path, arguments: &[&str]) -> Run {
    run(in_home(home).arg("skill").args(arguments), "")
}

#[test]
fn skills_are_listed_shown_and_switched() {
    let home = home();
    let listed = skill(home.path(), &["list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(
        listed.out.contains("garden") && listed.out.contains("user"),
        "{listed:?}"
    );
    assert!(
        listed.out.contains("tidy-notes") && listed.out.contains("app"),
        "{listed:?}"
    );
    let shown = skill(home.path(), &["show", "garden"]);
    for words in [
        "Plans a garden",
        "references/plants.md",
        "run only when you allow it",
        "Answer in one word",
    ] {
        assert!(shown.out.contains(words), "{words}: {shown:?}");
    }
    skill(home.path(), &["trust", "garden"]);
    skill(home.path(), &["disable", "garden"]);
    let json = skill(home.path(), &["show", "garden", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["isEnabled"], &json["isTrusted"]),
        (&false.into(), &true.into())
    );
    fs::write(
        home.path().join(".agents/skills/garden/scripts/say.sh"),
        "echo other\n",
    )
    .unwrap();
    let json = skill(home.path(), &["show", "garden", "--json"]).out;
    assert!(
        json.contains("\"isTrusted\": false"),
        "a changed script is asked for again: {json}"
    );
    assert_fails(
        &skill(home.path(), &["run", "garden", "say.sh"]),
        1,
        &["is disabled", "reprise skill enable garden"],
    );
    assert_fails(
        &skill(home.path(), &["show", "gard"]),
        1,
        &["did you mean garden"],
    );
}

#[cfg(unix)]
#[test]
fn a_person_runs_a_script() {
    let home = home();
    let ran = skill(home.path(), &["run", "garden", "say.sh", "hello", "--there"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "said hello\n"), "{ran:?}");
    assert!(ran.err.contains("It can"), "what it is held to is said: {ran:?}");
    let failed = skill(home.path(), &["run", "garden", "scripts/say.sh", "fail"]);
    assert_fails(&failed, 1, &["failed with exit code 1"]);
    assert_eq!(skill(home.path(), &["run", "garden"]).out, "scripts/say.sh\n");
    assert_fails(
        &skill(home.path(), &["run", "garden", "../x"]),
        1,
        &["has no script"],
    );
    let notes = home.path().join("notes.txt");
    fs::write(&notes, "Ana will ask for offers by Friday\nhello\n").unwrap();
    let ran = skill(
        home.path(),
        &["run", "tidy-notes", "notes.sh", notes.to_str().unwrap()],
    );
    assert_eq!(
        ran.out, "* 1: Ana will ask for offers by Friday\n  2: hello\n",
        "{ran:?}"
    );
}

#[test]
fn a_chat_with_a_skill_says_what_a_model_without_tools_cannot_do() {
    let home = home();
    let mut command = in_home(home.path());
    command.args([
        "chat",
        "--greedy",
        "--max-tokens",
        "6",
        "--threads",
        "1",
        "--no-store",
        "--skill",
        "garden",
    ]);
    let chat = run(
        &mut command,
        "Name a tree.\n/garden Name another.\n/skill\n/skill garden\nAnd one more.\n/nothing\n",
    );
    assert!(chat.err.contains("[skill garden, "), "{chat:?}");
    assert!(
        chat.err.contains("cannot ask for files") && chat.err.contains("references/plants.md ("),
        "{chat:?}"
    );
    assert!(
        chat.err
            .contains("run one yourself with: reprise skill run garden"),
        "{chat:?}"
    );
    assert!(
        chat.err.contains("/garden  Plans a garden") && chat.err.contains("what you write next"),
        "{chat:?}"
    );
    assert!(chat.err.contains("there is no command /nothing"), "{chat:?}");
    assert_eq!(chat.err.matches("prompt tokens reused").count(), 3, "{chat:?}");

    let mut command = in_home(home.path());
    command.args([
        "chat",
        "--threads",
        "1",
        "--no-store",
        "--skill",
        "garden",
        "--reference",
        "plants.md",
    ]);
    let chat = run(&mut command, "");
    assert!(
        chat.code == Some(0) && !chat.err.contains("cannot ask for files"),
        "{chat:?}"
    );
    let mut command = in_home(home.path());
    command.args(["chat", "--threads", "1", "--no-store", "--tools"]);
    assert_fails(&run(&mut command, ""), 1, &["cannot call tools"]);
    let mut command = in_home(home.path());
    command.args(["chat", "--threads", "1", "--no-store", "--skill", "cellar"]);
    assert_fails(&run(&mut command, ""), 1, &["there is no skill \"cellar\""]);
}
