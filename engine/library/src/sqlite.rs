//! What chats and documents need of SQLite alike.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ffi};

/// What the names of a database's files end in. Those that SQLite keeps beside it come first: without them it may lack its
/// last changes.
pub(crate) const SUFFIXES: [&str; 3] = ["-wal", "-shm", ""];

/// A file beside a database.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

/// Removes a database with the files beside it, as far as they are there.
pub(crate) fn remove_database(path: &Path) -> io::Result<()> {
    for suffix in SUFFIXES {
        match std::fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Leaves the database's log and its shared memory in place when the last connection is closed. They are small, and without
/// them a database on a disk that has become full could not even be read: the shared memory is a file that has its length
/// before anything else happens.
pub(crate) fn keep_side_files(connection: &Connection) -> rusqlite::Result<()> {
    let mut yes: std::ffi::c_int = 1;
    // SAFETY: the handle is open for as long as `connection` is borrowed; this opcode reads and writes one int, and keeps
    // no pointer to it.
    let code = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_PERSIST_WAL,
            (&raw mut yes).cast(),
        )
    };
    if code != ffi::SQLITE_OK {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
    }
    // What is left of the log is nothing.
    connection.pragma_update_and_check(None, "journal_size_limit", 0, |_| Ok(()))
}

/// Whether there was no room for the shared memory, which SQLite reports as a failing disk.
pub(crate) fn is_without_room(error: &rusqlite::Error) -> bool {
    error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE)
}
