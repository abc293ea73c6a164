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
