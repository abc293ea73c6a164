//! `reprise index` as a person uses it.

use std::fs;

use crate::common::{assert_fails, folder, reprise, run};

#[test]
fn documents_are_added_found_and_taken_out_again() {
    let home = folder();
    let papers = folder();
    fs::write(
        papers.path().join("garden.md"),
        "# Garden\n\nPrune the apple tree in February.\n",
    )
    .unwrap();
    fs::write(papers.path().join("empty.txt"), "").unwrap();
    let command = |arguments: &[&str]| {
        // Without the model for meanings.
        let mut command = reprise(home.path());
        command
            .env("REPRISE_MODELS", home.path())
            .arg("index")
            .args(arguments);
        run(&mut command, "")
    };
    let path = papers.path().to_str().unwrap();
    let added = command(&["add", path]);
    assert_eq!(added.code, Some(0), "{added:?}");
    for words in [
        "empty.txt",
        "the document is empty",
        "1 file read",
        "1 without text",
        "by their words only",
    ] {
        assert!(added.err.contains(words), "{words}: {}", added.err);
    }
    let found = command(&["search", "When do I prune apple trees?", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert!(rows[0]["path"].as_str().unwrap().ends_with("garden.md"));
    assert!(rows[0]["meaning_rank"].is_null() && rows[0]["words_rank"] == 1);
    let within = |path: &str| command(&["search", "apple trees", "--within", path]);
    assert!(within(path).out.contains("garden.md"));
    assert_fails(&within("/nowhere"), 1, &["no indexed document is at /nowhere"]);
    let status: serde_json::Value = serde_json::from_str(&command(&["status", "--json"]).out).unwrap();
    assert_eq!(status["status"]["ready"], 1);
    assert_eq!(status["failed"][0]["name"], "empty.txt");
    let told = command(&["status"]);
    assert!(
        told.out.contains("1 ready, 0 waiting, 1 without text") && told.out.contains("reprise models fetch")
    );
    let removed = command(&["rm", path]);
    assert_eq!(removed.out, format!("removed {path}, 2 documents\n"));
    assert!(command(&["search", "apple"]).out.contains("nothing was found"));
    assert_fails(
        &command(&["rm", path]),
        1,
        &["was not added", "reprise index status"],
    );
    assert_fails(&command(&["add", "/nowhere"]), 1, &["/nowhere"]);
}

/// Ctrl-C in the middle ends in order, and the next run does the rest.
#[cfg(unix)]
#[test]
fn ctrl_c_stops_and_the_next_time_goes_on() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let home = folder();
    let papers = folder();
    for n in 0..3000 {
        fs::write(
            papers.path().join(format!("{n:04}.txt")),
            format!("file{n} {}", "words of it. ".repeat(150)),
        )
        .unwrap();
    }
    // One that is read first, by its size, and has no text: its message tells that reading began.
    fs::write(papers.path().join("empty.txt"), "").unwrap();
    let command = |arguments: &[&str]| {
        let mut command = reprise(home.path());
        command
            .env("REPRISE_MODELS", home.path())
            .arg("index")
            .args(arguments);
        command
    };
    let mut child = command(&["add", papers.path().to_str().unwrap(), "--threads", "1"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("empty.txt") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it ended before it began");
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let rest: Vec<String> = lines.lines().map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(
        rest.iter()
            .any(|line| line.contains("to go on: reprise index update")),
        "{rest:?}"
    );
    let status = run(&mut command(&["status", "--json"]), "");
    let status: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    let (ready, waiting) = (&status["status"]["ready"], &status["status"]["waiting"]);
    assert_eq!(ready.as_u64().unwrap() + waiting.as_u64().unwrap(), 3000);
    assert!(waiting.as_u64().unwrap() > 0);
    let done = run(&mut command(&["update"]), "");
    assert!(
        done.err
            .contains(&format!("{} read", reprise_words(waiting.as_u64().unwrap()))),
        "{}",
        done.err
    );
}

/// "1,234 files", as the program writes it.
fn reprise_words(files: u64) -> String {
    match files {
        1 => "1 file".into(),
        0..1000 => format!("{files} files"),
        _ => format!("{},{:03} files", files / 1000, files % 1000),
    }
}

/// A folder with two documents.
fn papers() -> tempfile::TempDir {
    let papers = folder();
    for (name, text) in [
        ("garden.md", "# Garden\n\nPrune the apple tree in February.\n"),
        (
            "boiler.md",
            "# Boiler\n\nThe boiler is serviced each October by Mr Brandt.\n",
        ),
    ] {
        fs::write(papers.path().join(name), text).unwrap();
    }
    papers
}

#[test]
fn a_question_without_a_file_asks_the_indexed_documents() {
    let (home, papers) = (folder(), papers());
    let command = |arguments: &[&str]| run(reprise(home.path()).args(arguments), "");
    let question = "Who services the boiler?";
    assert_fails(
        &command(&["ask", question]),
        1,
        &["no document is indexed", "reprise index add"],
    );
    let path = papers.path().canonicalize().unwrap();
    assert_eq!(command(&["index", "add", path.to_str().unwrap()]).code, Some(0));
    let asked = command(&["ask", question]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(asked.out.contains("Brandt"), "{}", asked.out);
    assert!(
        asked.err.contains("[using all 2 documents whole, "),
        "{}",
        asked.err
    );
    let boiler = path.join("boiler.md");
    let within = command(&[
        "explain",
        "--within",
        boiler.to_str().unwrap(),
        "Who services the boiler?",
    ]);
    assert_eq!(within.code, Some(0), "{within:?}");
    assert!(
        within.out.contains("passage of document:boiler.md#"),
        "{}",
        within.out
    );
    assert!(!within.out.contains("garden.md") && within.out.contains("layers, 30 see all of it"));
    assert_fails(
        &command(&["ask", "--within", "/nowhere", question]),
        1,
        &["no indexed document is at /nowhere"],
    );
}

#[test]
fn a_chat_about_documents_is_given_each_passage_once() {
    let (home, papers) = (folder(), papers());
    let garden = papers.path().join("garden.md");
    let mut chat = reprise(home.path());
    chat.args(["chat", "--greedy", "--max-tokens", "24", "--doc"])
        .arg(&garden);
    let said = run(
        &mut chat,
        "In which month is the apple tree pruned?\nIs that in winter?\n",
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(
        said.err.matches("[given 1 document whole, ").count(),
        1,
        "{}",
        said.err
    );
    assert!(said.err.contains("[no passage besides those that it has]"));
    let mut chat = reprise(home.path());
    assert_fails(
        &run(chat.args(["chat", "--doc", "/nowhere.pdf"]), ""),
        1,
        &["/nowhere.pdf"],
    );
    let mut chat = reprise(home.path());
    assert_fails(
        &run(chat.args(["chat", "--indexed"]), ""),
        1,
        &["no document is indexed"],
    );
}

#[test]
fn what_is_gone_is_taken_out_by_the_path_it_was_added_by() {
    let (home, papers) = (folder(), folder());
    let gone = papers.path().join("gone");
    fs::create_dir(&gone).unwrap();
    fs::write(gone.join("garden.md"), "Apple trees are pruned in February.\n").unwrap();
    let command = |arguments: &[&str]| {
        let mut command = reprise(home.path());
        command
            .env("REPRISE_MODELS", home.path())
            .current_dir(papers.path())
            .arg("index")
            .args(arguments);
        run(&mut command, "")
    };
    assert_eq!(command(&["add", "gone"]).code, Some(0));
    fs::remove_dir_all(&gone).unwrap();
    let removed = command(&["rm", "./gone/"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.out.contains("1 document"), "{}", removed.out);
    assert!(command(&["search", "apple"]).out.contains("nothing was found"));
}
