//! Files that are written whole or not at all.

use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

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
        "Chat".into()
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
}
