//! Every wrong input gives a sentence that says what, where and what to do, and an exit code; nothing panics.

use crate::common;
use std::fs;
use std::path::Path;

use crate::common::{assert_fails, default_model, folder, reprise, run, run_args};
use lopdf::encryption::{EncryptionState, EncryptionVersion, Permissions};
use lopdf::{Document as Pdf, Object, Stream, StringFormat, dictionary};

fn chat_with(file: &Path) -> common::Run {
    run_args(&["chat".as_ref(), "-m".as_ref(), file.as_os_str()])
}

#[test]
fn a_missing_model_is_named_with_the_way_to_get_one() {
    assert_fails(
        &run_args(&["chat", "-m", "/nowhere/a.gguf"]),
        1,
        &["/nowhere/a.gguf", "reprise models list"],
    );
    let empty = folder();
    let run = run(
        reprise(empty.path())
            .env("REPRISE_MODELS", empty.path())
            .arg("chat"),
        "",
    );
    assert_fails(&run, 1, &["smollm2-135m is not here yet", "reprise models fetch"]);
    let run = common::run(
        reprise(empty.path())
            .env("REPRISE_MODELS", empty.path())
            .args(["chat", "-m", "qwen3-4b"]),
        "",
    );
    assert_fails(
        &run,
        1,
        &[
            "download Qwen3-4B-Q4_K_M.gguf from https://",
            "reprise models add",
        ],
    );
}

#[test]
fn files_that_are_no_usable_model_are_told_apart() {
    let folder = folder();
    let file = folder.path().join("model.gguf");
    fs::write(&file, "just text, but long enough to be looked at").unwrap();
    assert_fails(&chat_with(&file), 1, &["model.gguf", "not a GGUF file"]);
    fs::write(&file, "").unwrap();
    assert_fails(&chat_with(&file), 1, &["model.gguf", "empty"]);
    assert_fails(&chat_with(folder.path()), 1, &["is a folder"]);

    let whole = fs::read(default_model()).unwrap();
    for end in [20, 5_000, 3_000_000, whole.len() - 1] {
        fs::write(&file, &whole[..end]).unwrap();
        assert_fails(
            &chat_with(&file),
            1,
            &["model.gguf", "cut short", "download it again"],
        );
    }
}

#[test]
fn an_unknown_architecture_is_named_with_the_known_ones() {
    let mut gguf = b"GGUF".to_vec();
    gguf.extend(3u32.to_le_bytes());
    gguf.extend(0u64.to_le_bytes());
    gguf.extend(1u64.to_le_bytes());
    for text in ["general.architecture", "seahorse"] {
        if text == "seahorse" {
            gguf.extend(8u32.to_le_bytes());
        }
        gguf.extend((text.len() as u64).to_le_bytes());
        gguf.extend(text.as_bytes());
    }
    let folder = folder();
    let file = folder.path().join("sea.gguf");
    fs::write(&file, gguf).unwrap();
    assert_fails(
        &chat_with(&file),
        1,
        &["seahorse", "llama", "qwen2", "qwen3", "gemma3"],
    );
}

fn pdf(password: Option<&str>) -> Vec<u8> {
    let mut pdf = Pdf::with_version("1.5");
    let pages = pdf.new_object_id();
    let content = pdf.add_object(Stream::new(dictionary! {}, Vec::new()));
    let media_box = vec![0.into(), 0.into(), 595.into(), 842.into()];
    let page = pdf.add_object(
        dictionary! { "Type" => "Page", "Parent" => pages, "Contents" => content, "MediaBox" => media_box },
    );
    pdf.objects.insert(
        pages,
        dictionary! { "Type" => "Pages", "Kids" => vec![page.into()], "Count" => 1 }.into(),
    );
    let catalog = pdf.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
    pdf.trailer.set("Root", catalog);
    if let Some(password) = password {
        let id = Object::String(b"0123456789abcdef".to_vec(), StringFormat::Hexadecimal);
        pdf.trailer.set("ID", vec![id.clone(), id]);
        let version = EncryptionVersion::V2 {
            document: &pdf,
            owner_password: "owner",
            user_password: password,
            key_length: 128,
            permissions: Permissions::all(),
        };
        let state = EncryptionState::try_from(version).unwrap();
        pdf.encrypt(&state).unwrap();
    }
    let mut bytes = Vec::new();
    pdf.save_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn documents_without_text_say_why() {
    let folder = folder();
    let ask = |name: &str, bytes: &[u8], words: &[&str]| {
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        let run = run_args(&["ask".as_ref(), file.as_os_str(), "What is it?".as_ref()]);
        assert_fails(&run, 1, &[&[name], words].concat());
    };
    ask(
        "locked.pdf",
        &pdf(Some("sesame")),
        &["only be asked for in a terminal", "--password-file"],
    );
    // Opened, and then as empty as any other.
    let (locked, password) = (folder.path().join("locked.pdf"), folder.path().join("password"));
    for (word, words) in [("sesame\n", "no text"), ("wrong\n", "not the one that opens it")] {
        fs::write(&password, word).unwrap();
        let run = run_args(&[
            "ask".as_ref(),
            locked.as_os_str(),
            "What is it?".as_ref(),
            "--password-file".as_ref(),
            password.as_os_str(),
        ]);
        assert_fails(&run, 1, &["locked.pdf", words]);
    }
    ask("blank.pdf", &pdf(None), &["no text", "empty"]);
    ask("cut.pdf", &pdf(None)[..200], &["broken or cut short"]);
    ask("empty.txt", b"", &["is empty"]);
    ask(
        "letter.docx",
        b"PK\x03\x04",
        &["a Word document", "broken or cut short"],
    );
    ask(
        "noise.bin",
        &[0, 159, 146, 150, 0, 1, 2],
        &["a binary file", "known kinds"],
    );
    assert_fails(
        &run_args(&["ask", "/nowhere.pdf", "What is it?"]),
        1,
        &["/nowhere.pdf", "No such file"],
    );
    assert_fails(&run_args(&["ask", "/", "What is it?"]), 1, &["folder"]);
}

#[test]
fn a_prompt_longer_than_the_window_says_by_how_much() {
    let home = folder();
    let long = "word ".repeat(300);
    let run = run(
        reprise(home.path()).args(["chat", "--context", "64", "--threads", "1"]),
        &long,
    );
    assert_fails(
        &run,
        1,
        &["the prompt has", "more than the window of", "--context"],
    );

    let document = common::repository().join("assets/handbook.md");
    let mut ask = reprise(home.path());
    ask.arg("ask").arg(&document).args([
        "Who?",
        "--context",
        "128",
        "--passages-tokens",
        "2000",
        "--threads",
        "1",
    ]);
    let run = common::run(&mut ask, "");
    assert_fails(&run, 1, &["the prompt has", "more than the window of"]);
}

#[test]
fn unknown_options_and_values_out_of_range_are_wrong_use() {
    assert_fails(&run_args(&["chat", "--colour"]), 2, &["--colour"]);
    assert_fails(&run_args(&["sing"]), 2, &["sing"]);
    assert_fails(&run_args(&["ask"]), 2, &["QUESTION"]);
    assert_fails(
        &run_args(&["ask", "/etc/passwd"]),
        2,
        &["is a file", "the question comes last"],
    );
    assert_fails(&run_args(&["ask", "a.md", " "]), 2, &["question is empty"]);
    assert_fails(
        &run_args(&["ask", "a.md", "/etc/passwd"]),
        2,
        &["is a file", "the question comes last"],
    );
    for (option, value, words) in [
        ("--temperature", "-1", "a number from 0 to 10"),
        ("--temperature", "warm", "a number from 0 to 10"),
        ("--top-p", "0", "above 0 and at most 1"),
        ("--min-p", "1.5", "from 0 to 1"),
        ("--repetition-penalty", "0", "above 0"),
        ("--max-tokens", "0", "at least 1"),
        ("--context", "3", "at least 64"),
        ("--threads", "0", "at least 1"),
        ("--stop", "", "the text is empty"),
        ("--seed", "x", "--seed"),
    ] {
        assert_fails(&run_args(&["chat", option, value]), 2, &[option, words]);
    }
    assert_fails(
        &run_args(&["chat", "--greedy", "--temperature", "1"]),
        2,
        &["cannot be used with"],
    );
    assert_eq!(run_args::<&str>(&[]).code, Some(2));
    assert_eq!(run_args(&["--help"]).code, Some(0));
}

#[test]
fn model_names_are_checked() {
    let home = folder();
    let model = default_model();
    let models = |args: &[&str]| run(reprise(home.path()).arg("models").args(args), "");
    let file = model.to_str().unwrap();
    assert_fails(&models(&["path", "nothing"]), 1, &["no model is named nothing"]);
    assert_fails(
        &models(&["remove", "nothing"]),
        1,
        &["no added model is named nothing"],
    );
    assert_fails(&models(&["fetch", "nothing"]), 1, &["no model is named nothing"]);
    assert_fails(
        &models(&["add", "/nowhere.gguf"]),
        1,
        &["/nowhere.gguf", "no such file"],
    );
    assert_fails(
        &models(&["add", file, "--name", "qwen3-4b"]),
        1,
        &["qwen3-4b is taken"],
    );
    assert_fails(&models(&["add", file, "--name", "a b"]), 1, &["cannot be a name"]);
    assert_eq!(models(&["add", file, "--name", "mine"]).code, Some(0));
    assert_eq!(
        models(&["add", file, "--name", "mine"]).code,
        Some(0),
        "the same again is no fault"
    );
    assert_eq!(
        models(&["path", "mine"]).out.trim(),
        model.canonicalize().unwrap().to_str().unwrap()
    );
    assert!(models(&["list"]).out.contains("mine"));
    assert_eq!(models(&["remove", "mine"]).code, Some(0));
    fs::write(home.path().join("models.toml"), "model = 7").unwrap();
    assert_fails(&models(&["list"]), 1, &["models.toml", "mend the file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_in_words() {
    use std::process::{Command, Stdio};

    let home = folder();
    let run = run(
        reprise(home.path()).args(["chat", "--threads", "1"]),
        "/save /dev/full\n",
    );
    assert_fails(&run, 1, &["cannot save to /dev/full", "no space left"]);

    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = reprise(home.path())
        .args(["models", "list"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let done = child.wait_with_output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(
        err.contains("error: cannot write the output: no space left"),
        "{err}"
    );

    // A disk of one page, full before the list of models is written to it; only root may mount it.
    let script = "mount -t tmpfs -o size=4k tmpfs \"$REPRISE_HOME\" || exit 77
        head -c 4096 /dev/zero > \"$REPRISE_HOME/filler\"
        exec \"$1\" models add \"$2\" --name mine";
    let done = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_reprise")])
        .arg(default_model())
        .env("REPRISE_HOME", home.path())
        .output();
    match done {
        Ok(done)
            if done.status.code() == Some(1) && String::from_utf8_lossy(&done.stderr).contains("error: ") =>
        {
            let err = String::from_utf8(done.stderr).unwrap();
            assert!(
                err.contains("models.toml: no space left") && !err.contains("panicked"),
                "{err}"
            );
        }
        other => eprintln!("skipped: no disk can be mounted here ({other:?})"),
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::process::Stdio;

    let home = folder();
    let mut child = reprise(home.path())
        .args(["models", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(String::from_utf8(done.stderr).unwrap(), "");
}

#[cfg(target_os = "linux")]
#[test]
fn control_c_takes_the_line_about_the_work_along() {
    let home = common::folder();
    let model = common::default_model();
    let command = format!(
        "exec $REPRISE bench quality --formats tq4 -m '{}'",
        model.display()
    );
    let Some(mut bench) = common::terminal::Terminal::run(home.path(), &command) else {
        return;
    };
    bench.until("0 %");
    bench.press("\u{3}");
    let (shown, status) = bench.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(shown.ends_with("\r\u{1b}[2K"), "{shown:?}");
}
