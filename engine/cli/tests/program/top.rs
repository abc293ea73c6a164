//! `reprise top`: which engines run is seen from outside, and only as long as they do.

use crate::common;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::server::{PATIENCE, Server, question};
#[cfg(target_os = "linux")]
use crate::common::terminal::Terminal;
use crate::common::{Run, assert_fails, folder, reprise, run};
use serde_json::{Value, json};

fn top(home: &Path, arguments: &[&str]) -> Run {
    run(reprise(home).arg("top").args(arguments), "")
}

/// The list that --json prints, once it says what is waited for.
fn wait_for(home: &Path, is_there: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let run = top(home, &["--json"]);
        let list = serde_json::from_str(&run.out).unwrap_or(Value::Null);
        if is_there(&list) {
            return list;
        }
        assert!(begin.elapsed() < PATIENCE, "{run:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_is_seen_with_what_it_did_and_forgotten_when_it_dies() {
    let mut server = Server::tiny(&[]);
    let home = server.home.path().to_path_buf();
    assert_eq!(
        server
            .ask(&question("Hi", json!({ "max_tokens": 4, "user": "alice" })))
            .status,
        200
    );
    let list = wait_for(&home, |list| list[0]["snapshot"]["totals"]["answer_tokens"] == 4);
    assert_eq!(
        (&list[0]["pid"], &list[0]["program"]),
        (&json!(server.child.id()), &json!("serve"))
    );

    let picture = top(&home, &["--once"]);
    assert_eq!(picture.code, Some(0));
    let pid = format!("serve {}", server.child.id());
    for words in [
        pid.as_str(),
        "A server: alice",
        "KV pool",
        "Lanes",
        "Components",
        "backbone",
        "Memory",
        "4 answered",
    ] {
        assert!(picture.out.contains(words), "no {words:?} in {}", picture.out);
    }
    assert!(
        picture.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        picture.out
    );
    assert!(!picture.out.contains('\u{1b}'), "no colours through a pipe");
    let folder = home.join("running");
    assert!(folder.is_dir());

    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert_fails(
        &top(&home, &["--once"]),
        1,
        &["no engine is running", "reprise chat"],
    );
    assert_eq!(
        std::fs::read_dir(folder).unwrap().count(),
        0,
        "what it left is cleared away"
    );
}

#[cfg(unix)]
#[test]
fn a_server_that_ends_well_takes_its_file_along() {
    let server = Server::tiny(&[]);
    let folder = server.home.path().join("running");
    wait_for(server.home.path(), |list| list[0]["program"] == "serve");
    assert!(std::fs::read_dir(&folder).unwrap().count() >= 2);
    server.signal("TERM");
    let begin = Instant::now();
    while std::fs::read_dir(&folder).unwrap().count() > 0 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_chat_is_seen_too() {
    use std::io::Write;
    use std::process::Stdio;

    let home = folder();
    let mut chat = reprise(home.path())
        .args(["chat", "--threads", "1", "--max-tokens", "2", "--quiet", "-m"])
        .arg(common::server::tiny())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = chat.stdin.take().unwrap();
    writeln!(input, "Hello").unwrap();
    let list = wait_for(home.path(), |list| list[0]["snapshot"]["totals"]["requests"] == 1);
    assert_eq!(list[0]["program"], "chat");
    let pid = list[0]["pid"].to_string();
    assert_eq!(top(home.path(), &["--once", "--pid", &pid]).code, Some(0));
    drop(input);
    assert!(chat.wait().unwrap().success());
    assert_fails(
        &top(home.path(), &["--json", "--pid", &pid]),
        1,
        &["runs no engine"],
    );
}

#[test]
fn without_a_terminal_the_live_view_says_what_to_use() {
    let home = folder();
    assert_fails(&top(home.path(), &[]), 2, &["--once", "--json"]);
    assert_fails(&top(home.path(), &["--once", "--json"]), 2, &["--json"]);
    // For a script no engine is an answer like any other.
    let none = top(home.path(), &["--json"]);
    assert_eq!((none.code, none.out.trim()), (Some(0), "[]"), "{none:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_live_view_draws_and_gives_the_terminal_back() {
    let server = Server::tiny(&[]);
    wait_for(server.home.path(), |list| list[0]["program"] == "serve");
    let Some(mut view) = Terminal::run(server.home.path(), "exec $REPRISE top") else {
        return;
    };
    view.until("Totals");
    view.press("q");
    let (shown, status) = view.end();
    assert!(status.success());
    assert!(
        shown.contains(&format!("serve {}", server.child.id())) && shown.contains("q leaves"),
        "{shown}"
    );
    assert!(
        shown.contains("\u{1b}[?1049h") && shown.contains("\u{1b}[?1049l"),
        "{shown}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_live_view_ends_with_its_terminal() {
    let home = folder();
    let number = home.path().join("pid");
    // Whoever ignores the hang-up has only the end of the input to go by.
    let command = format!("trap '' HUP; echo $$ >'{}'; exec $REPRISE top", number.display());
    let Some(view) = Terminal::run(home.path(), &command) else {
        return;
    };
    let begin = Instant::now();
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(begin.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let process = || {
        let number = std::fs::read_to_string(&number).unwrap_or_default();
        std::fs::read_to_string(format!("/proc/{}/cmdline", number.trim())).unwrap_or_default()
    };
    wait("the view did not start", &|| process().ends_with("top\0"));
    view.vanish();
    wait("the view outlived its terminal", &|| {
        !process().ends_with("top\0")
    });
}
