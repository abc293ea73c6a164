//! Files the person asked for.

use std::path::Path;

use reprise_library::{files, folders};

use crate::types::Failure;

/// Writes a file whole or not at all, and tells a failure in a person's words.
///
/// # Errors
/// A sentence that names the file.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    files::write_whole(path, bytes).map_err(|error| {
        Failure::new(format!(
            "cannot write {}: {error}; choose another place",
            folders::shown(path)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_written_whole_and_a_bad_place_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat.md");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let bad = write_whole(&folder.path().join("none/chat.md"), b"x").unwrap_err();
        assert!(bad.message.contains("chat.md"), "{}", bad.message);
    }
}
