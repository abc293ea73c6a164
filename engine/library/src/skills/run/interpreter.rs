//! What runs a script: its first line says so, or its ending.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a first line that are looked at.
const FIRST_LINE_BYTES: u64 = 256;

/// What is known of scripts without a first line that says it.
const BY_ENDING: [(&str, &str); 8] = [
    ("py", "python3"),
    ("sh", "sh"),
    ("bash", "bash"),
    ("js", "node"),
    ("mjs", "node"),
    ("rb", "ruby"),
    ("pl", "perl"),
    ("ps1", "pwsh"),
];

/// The program and its first arguments, the script's path among them.
pub(super) fn of(script: &Path) -> Option<Vec<String>> {
    let path = script.to_str()?.to_owned();
    let mut begin = Vec::new();
    File::open(script)
        .and_then(|file| file.take(FIRST_LINE_BYTES).read_to_end(&mut begin))
        .ok()?;
    if begin.starts_with(b"\x7fELF") {
        return Some(vec![path]);
    }
    let first = String::from_utf8_lossy(&begin);
    let first = first.lines().next().unwrap_or_default();
    if let Some(line) = first.strip_prefix("#!") {
        let line = line.trim();
        let (program, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let mut parts = vec![program.to_owned()];
        // As the system does it, all that follows is one argument.
        parts.extend(Some(argument.trim().to_owned()).filter(|argument| !argument.is_empty()));
        parts.push(path);
        return (!program.is_empty()).then_some(parts);
    }
    let ending = script.extension()?.to_str()?;
    let (_, program) = BY_ENDING.iter().find(|(known, _)| *known == ending)?;
    Some(vec![(*program).to_owned(), path])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_first_line_counts_and_then_the_ending() {
        let folder = tempfile::tempdir().unwrap();
        let of_text = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            of(&path).map(|parts| parts[..parts.len() - 1].join(" "))
        };
        assert_eq!(
            of_text("a.py", "#!/usr/bin/env python3\nx").as_deref(),
            Some("/usr/bin/env python3")
        );
        assert_eq!(of_text("b", "#!/bin/sh\r\nx").as_deref(), Some("/bin/sh"));
        assert_eq!(of_text("c.py", "x").as_deref(), Some("python3"));
        assert_eq!(of_text("d.txt", "x"), None);
        assert_eq!(of_text("e", "#!\n"), None);
    }
}
