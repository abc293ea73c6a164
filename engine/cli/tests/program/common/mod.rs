//! Runs the `reprise` binary as a person would.
#![allow(dead_code, missing_docs)] // each test file uses what it needs

pub mod server;
#[cfg(target_os = "linux")]
pub mod terminal;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of model files: as the program finds it, without a home of the test's own.
pub fn models() -> PathBuf {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    set("REPRISE_MODELS")
        .or_else(|| cache.map(|cache| cache.join("reprise/models")))
        .expect("HOME or REPRISE_MODELS")
}

/// The default model's file. Every machine that tests has it.
pub fn default_model() -> PathBuf {
    let file = models().join("SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(
        file.is_file(),
        "the default model is missing at {}; ./test and models/fetch bring it",
        file.display()
    );
    file
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder for one test; removed with it.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// `reprise` with its own data folder, so that no test touches the person's.
pub fn reprise(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprise"));
    command
        .env("REPRISE_HOME", home)
        .env("REPRISE_MODELS", models())
        .env("REPRISE_TUNE", "off")
        .stdin(Stdio::null());
    command
}

#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs to the end, with `input` on standard input.
pub fn run(command: &mut Command, input: &str) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that fails early does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let run = Run {
        code: done.status.code(),
        out: text(done.stdout),
        err: text(done.stderr),
    };
    assert!(!run.err.contains("panicked"), "{run:?}");
    run
}

/// Runs with these arguments in a data folder of its own.
pub fn run_args<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Run {
    let home = folder();
    run(reprise(home.path()).args(args), "")
}

/// Asserts one error line with these words, and the exit code.
#[track_caller]
pub fn assert_fails(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert_eq!(run.err.matches("error: ").count(), 1, "{run:?}");
    for word in words {
        assert!(run.err.contains(word), "no {word:?} in {run:?}");
    }
}
