//! `reprise bench workload` with a model of random weights: its rows, and what it says of another server that is none.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::server::tiny;
use crate::common::{assert_fails, folder, reprise, run, run_args};
use serde_json::{Value, json};

/// A workload of one question about two passages.
fn workload(folder: &Path) -> PathBuf {
    let file = folder.join("small.jsonl");
    let passage = |name: &str| json!({ "title": name, "text": format!("{name} lies by the sea and has a lighthouse. ").repeat(4) });
    let line = json!({
        "question": "Which town has a lighthouse?",
        "answers": ["Ystad"],
        "passages": [passage("Ystad"), passage("Ronne")],
    });
    fs::write(&file, format!("{line}\n")).unwrap();
    file
}

fn bench(home: &Path, arguments: &[&str]) -> Command {
    let mut command = reprise(home);
    command
        .args(["bench", "workload"])
        .arg(workload(home))
        .arg("-m")
        .arg(tiny())
        .args(["-n", "2", "--context", "1024", "-t", "1"])
        .args(arguments);
    command
}

#[test]
fn every_method_and_every_missing_part_is_a_row() {
    let home = folder();
    let run = run(
        &mut bench(
            home.path(),
            &[
                "--methods",
                "none,reprise",
                "--ablate",
                "memory,anywhere",
                "--json",
            ],
        ),
        "",
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "reprise", "without anywhere", "without memory"]);
    assert_eq!(rows[0]["reused_tokens"], 0.0);
    assert!(rows[1]["moved_tokens"].as_f64().unwrap() > 0.0, "{rows:?}");
    assert_eq!(rows[2]["moved_tokens"], 0.0);
    assert_eq!(
        (&rows[3]["without"], &rows[3]["memory_hits"]),
        (&json!("memory"), &json!(0))
    );
    for row in &rows {
        assert!(row["ttft_ms"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["stored_bytes"].as_u64().unwrap() > 0, "{row}");
    }
}

#[test]
fn a_long_prompt_is_hit_and_found_again_after_a_restart() {
    let home = folder();
    let hit = run(
        &mut bench(home.path(), &["--prefix", "120", "--repetitions", "1", "--json"]),
        "",
    );
    assert_eq!(hit.code, Some(0), "{hit:?}");
    let rows: Vec<Value> = serde_json::from_str(&hit.out).unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "hit", "restart", "none", "hit", "restart"]);
    let number = |row: usize, name: &str| rows[row][name].as_f64().unwrap();
    assert_eq!(rows[0]["question"], "the same");
    assert_eq!(number(1, "reused_tokens"), number(1, "prompt_tokens") - 1.0);
    assert!(number(2, "reused_tokens") > 0.0 && number(2, "start_ms") > 0.0);
    assert!(number(4, "reused_tokens") < number(4, "prompt_tokens") - 1.0);

    let long = run_long(home.path());
    assert_fails(&long, 1, &["--prefix wants 900", "give more files"]);
}

fn run_long(home: &Path) -> common::Run {
    run(&mut bench(home, &["--prefix", "900"]), "")
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let home = folder();
    let against = |path: &str| run(&mut bench(home.path(), &["--against", path]), "");
    assert_fails(
        &against("/nowhere/llama-server"),
        1,
        &["/nowhere/llama-server", "--against takes"],
    );
    assert_fails(&against("/"), 1, &["no llama-server binary"]);
}

#[test]
fn a_workload_is_checked_before_anything_is_loaded() {
    let home = folder();
    let file = home.path().join("wrong.jsonl");
    fs::write(&file, "{\"question\": \"Who?\", \"passages\": []}\n").unwrap();
    let file = file.to_str().unwrap();
    assert_fails(
        &run_args(&["bench", "workload", file, "-m", "/nowhere/a.gguf"]),
        1,
        &["wrong.jsonl: line 1", "`answers`"],
    );
}

#[cfg(unix)]
mod scripts {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use super::*;

    fn script(folder: &Path, text: &str) -> PathBuf {
        let file = folder.join("llama-server");
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn a_server_that_ends_at_once_is_told_with_what_it_said() {
        let home = folder();
        let binary = script(home.path(), "echo 'invalid argument: -np' >&2; exit 3");
        let run = run(
            &mut bench(home.path(), &["--against", binary.to_str().unwrap()]),
            "",
        );
        assert_fails(
            &run,
            1,
            &[
                "did not start",
                "exit status: 3",
                "it said: invalid argument: -np",
            ],
        );
        let silent = script(home.path(), "exit 0");
        let run = common::run(
            &mut bench(home.path(), &["--against", silent.to_str().unwrap()]),
            "",
        );
        assert_fails(&run, 1, &["did not start", "it said nothing"]);
    }

    #[test]
    fn a_program_that_is_told_to_end_takes_the_server_along() {
        let home = folder();
        let note = home.path().join("process");
        let binary = script(
            home.path(),
            &format!(
                "echo $$ > {0}.new; mv {0}.new {0}; exec sleep 100",
                note.display()
            ),
        );
        let mut command = bench(home.path(), &["--against", binary.to_str().unwrap()]);
        let temporary = home.path().join("temporary");
        fs::create_dir(&temporary).unwrap();
        let mut child = command
            .env("TMPDIR", &temporary)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while !note.exists() {
            assert!(started.elapsed() < common::server::PATIENCE, "it did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        let server = fs::read_to_string(&note).unwrap().trim().to_owned();
        let signal = |name: &str, process: &str| {
            Command::new("kill")
                .args([name, process])
                .stderr(Stdio::null())
                .status()
                .unwrap()
                .success()
        };
        assert!(signal("-0", &server));
        assert!(signal("-TERM", &child.id().to_string()));
        assert_eq!(child.wait().unwrap().code(), Some(143));
        assert!(!signal("-0", &server), "it still runs");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    }
}
