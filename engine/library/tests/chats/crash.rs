//! A process that is killed at any moment loses no piece whose call returned.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use reprise_library::chats::{ChatStore, TurnId, TurnState};

use crate::Bench;

const CHILD: &str = "REPRISE_CHATS_TEST_FILE";
const ROUNDS: u64 = 12;

/// Not a test of its own: what the killed process does.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let (store, _) = ChatStore::open(path).unwrap();
    let mut out = std::io::stdout();
    let mut say = |line: String| {
        out.write_all(format!("\n@{line}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    };
    let mut question = store.begin_chat("a question").unwrap();
    loop {
        let answer = store.begin_answer(question.id, "a model").unwrap().id;
        for number in 0..50 {
            store.append_piece(answer, &piece(number)).unwrap();
            say(format!("piece {answer} {number}"));
        }
        store.finish_answer(answer, TurnState::Done, None, None).unwrap();
        say(format!("done {answer}"));
        question = store
            .add_user_turn(question.chat, Some(answer), "and then?")
            .unwrap();
    }
}

fn piece(number: usize) -> String {
    format!("<{number} 苹果>")
}

#[test]
fn what_was_appended_outlives_the_process() {
    let mut bench = Bench::closed();
    let mut reported_in_all = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "crash::child_that_writes_until_it_is_killed",
                "--nocapture",
            ])
            .env(CHILD, bench.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reader = std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .filter_map(|line| line.strip_prefix('@').map(str::to_string))
                .collect::<Vec<_>>()
        });
        // Moments all over the child's life, some before it has opened the file.
        std::thread::sleep(Duration::from_millis(20 + round * 997 % 400));
        child.kill().unwrap();
        child.wait().unwrap();
        let reported = reader.join().unwrap();

        let notices = bench.open();
        assert!(
            notices.iter().all(|notice| notice.contains("cut short")),
            "{notices:?}"
        );
        for line in &reported {
            let words: Vec<&str> = line.split(' ').collect();
            let turn = bench.store().turn(TurnId(words[1].parse().unwrap())).unwrap();
            let written = match words[0] {
                "done" => {
                    assert_eq!(turn.state, TurnState::Done);
                    50
                }
                _ => words[2].parse::<usize>().unwrap() + 1,
            };
            let expected: String = (0..written).map(piece).collect();
            assert!(
                turn.text.starts_with(&expected),
                "round {round}: lost a piece of {line}: {}",
                turn.text
            );
            assert_ne!(turn.state, TurnState::Writing);
        }
        reported_in_all += reported.len();
        bench.close();
    }
    println!("{reported_in_all} reports in {ROUNDS} rounds");
    assert!(reported_in_all > 100, "the child got to write: {reported_in_all}");
}
