//! What `ask` read is kept, used again, explained, listed and erased.

use std::path::Path;

use crate::common::{Run, assert_fails, default_model, folder, reprise, run};
use serde_json::Value;

const FERRY: &str = "The ferry to the island leaves at seven in the morning and at five in the afternoon. On Sundays there is one \
                     crossing only, at ten. Bicycles travel free of charge, dogs pay half.\n";
const BAKERY: &str = "The bakery at the harbour opens at six. Its rye bread is baked over beech wood, and on Fridays there are buns \
                      with cardamom, which are gone by nine o'clock at the latest.\n";

fn reuse(home: &Path, command: &str, arguments: &[&str]) -> Run {
    let mut program = reprise(home);
    program.arg(command).args(arguments);
    if command != "cache" {
        program.arg("-m").arg(default_model());
    }
    run(&mut program, "")
}

#[test]
fn what_was_read_is_known_and_moved_and_erased() {
    let home = folder();
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ferry, bakery) = (file("ferry.txt", FERRY), file("bakery.txt", BAKERY));
    let (ferry, bakery) = (ferry.as_str(), bakery.as_str());
    let home = home.path();
    assert_fails(&reuse(home, "cache", &["ls"]), 1, &["nothing is kept yet"]);
    assert_eq!(
        reuse(
            home,
            "ask",
            &[ferry, "When?", "--max-tokens", "2", "--disk-budget", "0"]
        )
        .code,
        Some(0)
    );
    assert_fails(&reuse(home, "cache", &["stats"]), 1, &["nothing is kept yet"]);

    let first = reuse(
        home,
        "ask",
        &[ferry, bakery, "When does the ferry leave?", "--max-tokens", "8"],
    );
    assert!(first.err.contains("0 of "), "{first:?}");
    let again = reuse(
        home,
        "ask",
        &[ferry, bakery, "When does the ferry leave?", "--max-tokens", "8"],
    );
    assert_eq!((again.code, &again.out), (Some(0), &first.out));
    assert!(!again.err.contains(" 0 of "), "{again:?}");

    // The same order: all but the question as it stands. The other order: moved.
    let explain = |arguments: &[&str]| -> Value {
        let told = reuse(home, "explain", arguments);
        serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("{told:?}"))
    };
    let same = explain(&[ferry, bakery, "Do dogs pay?", "--json"]);
    assert_eq!(same["moved_tokens"], 0);
    assert!(
        same["differs_at"].as_str().unwrap().contains("Question: Do"),
        "{same}"
    );
    let other = explain(&[bakery, ferry, "Do dogs pay?", "--json"]);
    assert!(other["moved_tokens"].as_u64().unwrap() > 60, "{other}");
    assert!(
        other["recomputed_tokens"].as_u64() < other["moved_tokens"].as_u64(),
        "{other}"
    );
    let told = reuse(home, "explain", &[bakery, ferry, "Do dogs pay?"]).out;
    for words in [
        "stored, exact",
        "moved",
        "passage of document:ferry.txt#",
        "computed again",
        "the question attends to",
    ] {
        assert!(told.contains(words), "no {words:?} in {told}");
    }
    let moved = reuse(
        home,
        "ask",
        &[bakery, ferry, "When does the ferry leave?", "--max-tokens", "8"],
    );
    assert!(moved.code == Some(0) && !moved.out.trim().is_empty(), "{moved:?}");

    // What is kept can be seen, pinned and erased.
    let listed = reuse(home, "cache", &["ls", "--json"]);
    let owners: Value = serde_json::from_str(&listed.out).unwrap();
    let names: Vec<&str> = owners
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["owner"].as_str().unwrap())
        .collect();
    assert!(
        names[0].starts_with("document:bakery.txt#")
            && names[1].starts_with("document:ferry.txt#")
            && names[2..] == ["program:ask"],
        "{names:?}"
    );
    let chunks = reuse(home, "cache", &["ls", "--owner", "document:ferry.txt", "--json"]);
    let chunks: Value = serde_json::from_str(&chunks.out).unwrap();
    let chunk = chunks[0]["chunk"].as_str().unwrap();
    assert_eq!(reuse(home, "cache", &["pin", chunk]).code, Some(0));
    let shown = reuse(home, "cache", &["show", chunk]).out;
    assert!(
        shown.contains("document:ferry.txt") && shown.contains("pinned"),
        "{shown}"
    );
    // All of what is named, or nothing.
    let missing = "0000000000abcdef";
    assert_fails(
        &reuse(home, "cache", &["pin", "--off", chunk, missing]),
        1,
        &[missing],
    );
    assert!(reuse(home, "cache", &["show", chunk]).out.contains("pinned"));
    assert!(reuse(home, "cache", &["verify"]).out.contains("0 dropped"));
    assert_fails(&reuse(home, "cache", &["show", "zebra"]), 2, &["sixteen digits"]);
    assert_fails(
        &reuse(home, "cache", &["erase", "--owner", "ferry.txt"]),
        2,
        &["document:report.pdf"],
    );
    assert_fails(
        &reuse(home, "cache", &["erase", "--owner", "chat:9"]),
        1,
        &["reprise cache ls"],
    );
    assert_eq!(
        reuse(home, "cache", &["erase", "--owner", "document:ferry.txt"]).code,
        Some(0)
    );
    let listed = reuse(home, "cache", &["ls"]).out;
    assert!(!listed.contains("ferry") && listed.contains("bakery"), "{listed}");

    // One without text keeps no other from being read ahead.
    let empty = file("empty.txt", "");
    let warmed = reuse(home, "cache", &["warm", &empty, ferry]);
    assert_fails(&warmed, 1, &["empty.txt", "1 file left out"]);
    assert!(reuse(home, "cache", &["ls"]).out.contains("document:ferry.txt"));
}

#[cfg(unix)]
#[test]
fn files_of_one_name_are_kept_apart() {
    let home = folder();
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (here, there) = (file("here/notes.txt", FERRY), file("there/notes.txt", BAKERY));
    let home = home.path();
    assert_eq!(reuse(home, "cache", &["warm", &here, &there]).code, Some(0));
    let owners = || -> Vec<String> {
        let listed: Value = serde_json::from_str(&reuse(home, "cache", &["ls", "--json"]).out).unwrap();
        let owners = listed.as_array().unwrap().iter();
        let names = owners.map(|row| row["owner"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with("document:")).collect()
    };
    let [first, second] = owners().try_into().unwrap();
    assert_fails(
        &reuse(home, "cache", &["erase", "--owner", "document:notes.txt"]),
        2,
        &[&first, &second],
    );
    assert_eq!(reuse(home, "cache", &["erase", "--owner", &first]).code, Some(0));
    assert_eq!(owners(), [second]);
    // Now the name alone says which.
    assert_eq!(
        reuse(home, "cache", &["erase", "--owner", "document:notes.txt"]).code,
        Some(0)
    );
    assert!(owners().is_empty());

    // A link is the file that it leads to, and one file is read once.
    let link = home.join("link.txt");
    std::os::unix::fs::symlink(&here, &link).unwrap();
    let warmed = reuse(home, "cache", &["warm", link.to_str().unwrap(), &here]);
    assert_eq!(warmed.code, Some(0), "{warmed:?}");
    let [of_link] = owners().try_into().unwrap();
    assert_eq!(
        reuse(home, "cache", &["erase", "--owner", &of_link]).code,
        Some(0)
    );
    assert_eq!(reuse(home, "cache", &["warm", &here]).code, Some(0));
    assert_eq!(owners(), [of_link]);

    // Owners' names are cut, and the whole name of a file still says which.
    let long = format!("{}.txt", "long".repeat(40));
    assert_eq!(reuse(home, "cache", &["warm", &file(&long, FERRY)]).code, Some(0));
    let owner = format!("document:{long}");
    assert_eq!(reuse(home, "cache", &["erase", "--owner", &owner]).code, Some(0));
}
