//! Files that are written whole or not at all, and names of files.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;
use xxhash_rust::xxh3::xxh3_128;

/// Writes a file whole or not at all: a full disk leaves no half of it, and what was there before stays.
///
/// # Errors
/// What the system says.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut partial = NamedTempFile::new_in(folder)?;
    partial.write_all(bytes)?;
    partial.as_file().sync_all()?;
    partial.persist(path)?;
    Ok(())
}

/// A chat's title as a file's name, without its ending and what some system does not allow.
pub fn stem_of(title: &str) -> String {
    allowed(title, "Chat")
}

/// A file's name as another program tells it, without folders and what some system does not allow.
pub fn plain_name(told: &str) -> String {
    let name = told.rsplit(['/', '\\']).next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, ending)) if !ending.is_empty() && ending.chars().all(char::is_alphanumeric) => {
            format!("{}.{ending}", allowed(stem, "file"))
        }
        _ => allowed(name, "file"),
    }
}

/// A name in one line: those of files and chats may have line breaks, and worse.
pub fn in_a_line(name: &str) -> Cow<'_, str> {
    match name.contains(char::is_control) {
        false => Cow::Borrowed(name),
        true => Cow::Owned(name.replace(char::is_control, "\u{fffd}")),
    }
}

/// What tells a file's bytes from any others, as a name.
pub fn fingerprint(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

fn allowed(title: &str, fallback: &str) -> String {
    const LONGEST_BYTES: usize = 120;
    let is_bad =
        |c: char| c.is_control() || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    let mut stem: String = title.chars().map(|c| if is_bad(c) { '-' } else { c }).collect();
    while stem.len() > LONGEST_BYTES {
        stem.pop();
    }
    let stem = stem.trim_matches([' ', '.', '-']).to_string();
    // Names of devices on Windows.
    let is_device = ["con", "nul", "prn", "aux"].contains(&stem.to_lowercase().as_str());
    if stem.is_empty() || is_device {
        fallback.into()
    } else {
        stem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_become_file_names_that_every_system_takes() {
        assert_eq!(stem_of("What is 1/2: a \"half\"?"), "What is 1-2- a -half");
        assert_eq!(stem_of("..."), "Chat");
        assert_eq!(stem_of("早上好"), "早上好");
        assert_eq!(stem_of(&"a".repeat(500)).len(), 120);
        assert!(stem_of(&"🙂".repeat(80)).len() <= 120);
        assert_eq!(stem_of("CON"), "Chat");
    }

    #[test]
    fn names_told_by_other_programs_stay_in_their_folder() {
        assert_eq!(plain_name("../../etc/report 1.pdf"), "report 1.pdf");
        assert_eq!(plain_name("C:\\x\\a:b.TXT"), "a-b.TXT");
        assert_eq!(plain_name(".."), "file");
        assert_eq!(plain_name(""), "file");
        assert_eq!(plain_name("archive.tar.gz"), "archive.tar.gz");
        assert_eq!(plain_name(&format!("{}.md", "a".repeat(300))).len(), 123);
    }
}
