//! Answers of the real default model, through the program.

use crate::common::{Run, folder, repository, reprise, run};

const QUESTION: &str = "Who is the nearest doctor?";

fn ask(options: &[&str]) -> Run {
    let home = folder();
    let mut command = reprise(home.path());
    command
        .arg("ask")
        .arg(repository().join("assets/handbook.md"))
        .arg(QUESTION)
        .args(["--threads", "1"])
        .args(options);
    let run = run(&mut command, "");
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

#[test]
fn a_question_about_the_sample_document_is_answered_from_it() {
    let run = ask(&["--greedy", "--max-tokens", "48"]);
    assert!(run.out.contains("Iwona Sauer"), "{run:?}");
    assert!(run.err.contains("[using the whole document, "), "{run:?}");
    assert!(run.err.contains("prompt tokens reused"), "{run:?}");
}

#[test]
fn the_passages_used_are_said_and_fit_their_budget() {
    let run = ask(&["--greedy", "--max-tokens", "4", "--passages-tokens", "300"]);
    let line = run.err.lines().find(|line| line.starts_with("[using ")).unwrap();
    assert!(
        line.contains(" passages, ") && line.contains("handbook.md: lines "),
        "{line}"
    );
    let tokens: usize = line
        .split(", ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(tokens <= 300, "{line}");
}

#[test]
fn quiet_shows_the_answer_alone() {
    let run = ask(&[
        "--greedy",
        "--max-tokens",
        "4",
        "--passages-tokens",
        "300",
        "--quiet",
    ]);
    assert_eq!(run.err, "");
    assert!(run.out.ends_with('\n') && run.out.trim().len() > 1, "{run:?}");
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let seeded = |seed: &str| {
        ask(&[
            "--temperature",
            "1.5",
            "--seed",
            seed,
            "--max-tokens",
            "24",
            "--passages-tokens",
            "300",
            "-q",
        ])
        .out
    };
    let first = seeded("7");
    assert_eq!(first, seeded("7"));
    assert_ne!(first, seeded("8"));
}

#[test]
fn an_answer_ends_before_a_stop_string() {
    let options = ["--greedy", "--max-tokens", "24", "--passages-tokens", "300", "-q"];
    let whole = ask(&options).out;
    let word = whole.split_whitespace().nth(2).expect("an answer of three words");
    let run = ask(&[&options[..5], &["--stop", word]].concat());
    assert_eq!(run.out.trim_end(), whole[..whole.find(word).unwrap()].trim_end());
    assert!(run.err.contains("ended at"), "{run:?}");
}
