//! A terminal of 80 by 24 for a program to run in, given by script(1).

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

pub struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    screen: ChildStdout,
    shown: Vec<u8>,
}

impl Terminal {
    /// Runs a shell's command, which finds `reprise` as `$REPRISE`, with its own data folder. None, and a word about it,
    /// where there is no script(1).
    pub fn run(home: &Path, command: &str) -> Option<Terminal> {
        let command = format!("stty cols 80 rows 24; {command}");
        let mut program = Command::new("script");
        program
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env("REPRISE", env!("CARGO_BIN_EXE_reprise"))
            .env("REPRISE_HOME", home)
            .env("REPRISE_MODELS", super::models())
            .env("REPRISE_TUNE", "off")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let Ok(mut child) = program.spawn() else {
            eprintln!("skipped: there is no script(1) here to give a terminal");
            return None;
        };
        Some(Terminal {
            keys: child.stdin.take(),
            screen: child.stdout.take().unwrap(),
            child,
            shown: Vec::new(),
        })
    }

    /// Everything the terminal was sent so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// Waits until it was sent these words.
    pub fn until(&mut self, words: &str) {
        let mut buffer = [0; 4_096];
        while !self.shown().contains(words) {
            let count = self.screen.read(&mut buffer).unwrap();
            assert!(count > 0, "no {words:?} in {}", self.shown());
            self.shown.extend_from_slice(&buffer[..count]);
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the program's end; everything the terminal was sent, and how it ended.
    pub fn end(mut self) -> (String, ExitStatus) {
        self.screen.read_to_end(&mut self.shown).unwrap();
        (self.shown(), self.child.wait().unwrap())
    }

    /// Takes the terminal away from the program.
    pub fn vanish(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
