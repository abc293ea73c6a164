//! A chat through a pipe, as scripts drive it, and Ctrl-C in the middle of an answer.

use crate::common;
use std::fs;

use crate::common::{folder, reprise, run};

#[test]
fn a_chat_keeps_its_turns_and_reads_only_what_is_new() {
    let home = folder();
    let saved = home.path().join("chat.md");
    let input = format!(
        "Name a river.\nName \\\nanother.\n/stats\n/save {0}\n/save {0}\n/new\n/help\n/sing\n/quit\nnever read\n",
        saved.display()
    );
    let mut command = reprise(home.path());
    command.args([
        "chat",
        "--greedy",
        "--max-tokens",
        "8",
        "--threads",
        "1",
        "--system",
        "Be brief.",
    ]);
    let run = run(&mut command, &input);
    assert_eq!(
        run.code,
        Some(1),
        "a failed command is told by the exit code: {run:?}"
    );
    assert_eq!(run.err.matches("error: ").count(), 2, "{run:?}");
    assert!(
        run.err.contains("exists already") && run.err.contains("there is no command /sing"),
        "{run:?}"
    );

    let footers: Vec<&str> = run
        .err
        .lines()
        .filter(|line| line.contains("prompt tokens reused"))
        .collect();
    let reused = |line: &str| -> usize {
        let part = line.split(" | ").find(|part| part.contains("reused")).unwrap();
        part.split(' ').next().unwrap().replace(',', "").parse().unwrap()
    };
    assert_eq!(footers.len(), 2, "{run:?}");
    assert_eq!(reused(footers[0]), 0);
    assert!(reused(footers[1]) > 10, "{footers:?}");

    let chat = fs::read_to_string(saved).unwrap();
    assert!(
        chat.contains("## System\n\nBe brief.\n") && chat.contains("## You\n\nName \nanother.\n"),
        "{chat}"
    );
    assert_eq!(chat.matches("## You").count(), 2);
    assert!(
        run.err.contains("window")
            && run.err.contains("a new chat begins")
            && run.err.contains("/regenerate")
    );
}

#[test]
fn regenerating_with_a_seed_gives_another_answer() {
    let home = folder();
    let mut command = reprise(home.path());
    command.args([
        "chat",
        "--seed",
        "1",
        "--temperature",
        "1.5",
        "--max-tokens",
        "16",
        "--threads",
        "1",
        "-q",
    ]);
    let run = run(&mut command, "/regenerate\nTell me a story.\n/regenerate\n");
    assert!(run.err.contains("there is no answer yet"), "{run:?}");
    let story = || {
        let mut command = reprise(home.path());
        command.args([
            "chat",
            "--seed",
            "1",
            "--temperature",
            "1.5",
            "--max-tokens",
            "16",
            "--threads",
            "1",
            "-q",
        ]);
        common::run(&mut command, "Tell me a story.\n").out
    };
    let first = story();
    assert!(
        run.out.starts_with(&first) && run.out.len() > first.len(),
        "{run:?}"
    );
    assert_ne!(run.out[first.len()..], first);
}

#[test]
fn a_full_window_drops_the_oldest_turns_and_says_so() {
    let home = folder();
    let mut command = reprise(home.path());
    command.args([
        "chat",
        "--greedy",
        "--max-tokens",
        "8",
        "--context",
        "128",
        "--threads",
        "1",
    ]);
    let turn = "Please tell me once more what the weather in the mountains is like in the spring, and why that is so.\n";
    let run = run(&mut command, &turn.repeat(5));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.err
            .contains("the window of 128 tokens is full: the model no longer sees the 1 oldest turn"),
        "{run:?}"
    );
    assert_eq!(run.err.matches("first token after").count(), 5, "{run:?}");
}

/// A chat that is writing a long answer, with its input and its output.
#[cfg(unix)]
fn chat_in_mid_answer(
    home: &std::path::Path,
) -> (
    std::process::Child,
    std::process::ChildStdin,
    std::process::ChildStdout,
) {
    use std::io::{Read, Write};
    use std::process::Stdio;

    let mut chat = reprise(home)
        .args(["chat", "--greedy", "--threads", "1", "--max-tokens", "4000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = chat.stdin.take().unwrap();
    let mut out = chat.stdout.take().unwrap();
    writeln!(
        input,
        "Write a very long story about a lighthouse and the people of its island, chapter by chapter."
    )
    .unwrap();
    // The answer has begun once there is a first byte of it.
    out.read_exact(&mut [0]).unwrap();
    (chat, input, out)
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    let command = format!("kill -{name} {}", child.id());
    let status = std::process::Command::new("sh").args(["-c", &command]).status();
    assert!(status.unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_chat_that_is_told_to_end_ends_in_the_middle_of_an_answer() {
    use std::io::Read;

    let home = folder();
    // The input is kept open: it is not its end that ends the chat.
    let (mut chat, _input, mut out) = chat_in_mid_answer(home.path());
    signal(&chat, "TERM");
    out.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(chat.wait().unwrap().code(), Some(143));
}

#[cfg(unix)]
#[test]
fn control_c_stops_the_answer_and_the_chat_goes_on() {
    use std::io::{BufRead, BufReader, Read, Write};

    let home = folder();
    let (mut chat, mut input, mut out) = chat_in_mid_answer(home.path());
    let mut err = BufReader::new(chat.stderr.take().unwrap());
    signal(&chat, "INT");
    let mut footer = String::new();
    err.read_line(&mut footer).unwrap();
    assert!(footer.contains("| stopped]"), "{footer}");

    writeln!(input, "/new").unwrap();
    writeln!(input, "Name a colour.").unwrap();
    drop(input);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("first token after"), "{rest}");
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(chat.wait().unwrap().code(), Some(0));
    assert!(!rest.contains("panicked"), "{rest}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_chat_that_is_told_to_end_at_its_prompt_gives_the_terminal_back() {
    let home = common::folder();
    let file = |name: &str| home.path().join(name);
    let command = format!(
        "stty -g >'{}'; sh -c 'echo $$ >{}; exec $REPRISE chat -m {}'; stty -g >'{}'",
        file("before").display(),
        file("pid").display(),
        common::server::tiny().display(),
        file("after").display()
    );
    let Some(mut chat) = common::terminal::Terminal::run(home.path(), &command) else {
        return;
    };
    chat.until("> ");
    let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let kill = std::process::Command::new("kill")
        .args(["-TERM", read("pid").trim()])
        .status();
    assert!(kill.unwrap().success());
    let (shown, _) = chat.end();
    assert!(shown.contains("\u{1b}[?2004l"), "{shown:?}");
    assert_eq!(read("before"), read("after"));
}

#[test]
fn a_message_that_is_refused_takes_no_earlier_turn_along() {
    let home = common::folder();
    let long = "word ".repeat(600);
    let say = |lines: &str| {
        let run = common::run(
            common::reprise(home.path())
                .args(["chat", "--greedy", "--max-tokens", "8", "--context", "128", "-m"])
                .arg(common::server::tiny()),
            lines,
        );
        run.err
    };
    let prompts = |err: &str| -> Vec<String> {
        let footers = err.lines().filter(|line| line.starts_with('['));
        let footers = footers.filter_map(|line| line.split(" of ").nth(1));
        footers
            .filter_map(|rest| rest.split(" prompt").next())
            .map(str::to_owned)
            .collect()
    };
    let refused = say(&format!("Hello\n{long}\nAgain\n"));
    assert!(
        refused.contains("error: the prompt has") && !refused.contains("no longer sees"),
        "{refused}"
    );
    assert_eq!(prompts(&refused), prompts(&say("Hello\nAgain\n")), "{refused}");
}
