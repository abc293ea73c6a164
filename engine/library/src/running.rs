//! Which programs of this person run an engine right now, and what their engines look like.
//!
//! A program that has an engine publishes the engine's snapshot as a small file in a private folder ([`Published`]);
//! `reprise top` reads them ([`list`]). A file is written whole or not at all, at most four times a second, and only
//! when the snapshot changed. Beside it lies a lock that its program holds: when the program is gone, however it went,
//! the lock is free, and whoever looks next clears away what it left. The files hold numbers and the labels of owners,
//! nothing of what was said.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use directories::ProjectDirs;
use reprise_engine::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::error::system_words;
use crate::folders::{self, NoHome};

/// A snapshot is written at most this often.
const INTERVAL: Duration = Duration::from_millis(250);
/// Larger files are none of ours.
const MOST_BYTES: u64 = 16 << 20;
/// What a program that ended while it began to publish left behind is cleared away after this.
const BEGUN: Duration = Duration::from_secs(60);

/// Why engines cannot be published or listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunningError {
    /// No folder is known.
    #[error(transparent)]
    NoHome(#[from] NoHome),
    /// A file or folder cannot be used.
    #[error(
        "cannot {act} {}: {}; make it a folder of your own, or remove it",
        folders::shown(path),
        system_words(source)
    )]
    File {
        /// What was tried.
        act: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A program with an engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// Its process.
    pub pid: u32,
    /// What it is: `serve`, `chat`, `app`.
    pub program: String,
    /// When its engine began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// When it last wrote, in milliseconds since 1970. An engine that has nothing to tell writes nothing.
    pub written_unix_ms: u64,
    /// Its engine, then.
    pub snapshot: Snapshot,
}

/// What [`list`] found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Programs that run, the oldest first.
    pub running: Vec<Running>,
    /// Processes of programs that run and write something else than this version of Reprise reads.
    pub unreadable: Vec<u32>,
}

/// The folder of the files: in `REPRISE_HOME` where that is set, else where the system keeps what lives as long as a
/// person's session.
///
/// # Errors
/// When none is known.
pub fn folder() -> Result<PathBuf, NoHome> {
    if let Some(home) = std::env::var_os("REPRISE_HOME").filter(|home| !home.is_empty()) {
        return Ok(PathBuf::from(home).join("running"));
    }
    let folders = ProjectDirs::from("", "", "reprise").ok_or(NoHome)?;
    Ok(match (folders.runtime_dir(), folders.state_dir()) {
        (Some(runtime), _) => runtime.to_path_buf(),
        (None, Some(state)) => state.join("running"),
        (None, None) => folders.cache_dir().join("running"),
    })
}

/// An engine that others can see; until dropped.
#[derive(Debug)]
pub struct Published {
    files: Files,
    /// Held for as long as the program lives.
    _lock: File,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Published {
    /// Shows an engine to the other programs of this person, from [`reprise_engine::Engine::shared_snapshot`]. `program`
    /// says what kind of program this is: `serve`, `chat`, `app`.
    ///
    /// # Errors
    /// When the folder cannot be made, or is not private and cannot be made so.
    pub fn start(program: &str, snapshot: Arc<Mutex<Snapshot>>) -> Result<Published, RunningError> {
        Published::start_in(&folder()?, program, snapshot)
    }

    /// As [`Published::start`], in this folder.
    ///
    /// # Errors
    /// As there.
    pub fn start_in(
        folder: &Path,
        program: &str,
        snapshot: Arc<Mutex<Snapshot>>,
    ) -> Result<Published, RunningError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (pid, started_unix_ms) = (std::process::id(), unix_ms());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let files = Files {
            folder: folder.to_path_buf(),
            // Never that of a dead one that somebody is about to clear away: process numbers come again.
            name: format!("{pid}-{started_unix_ms}-{count}"),
        };
        make_private(folder)?;
        // Whoever left without clearing away is cleared away now, and not only when somebody looks.
        list_in(folder)?;
        let lock = files.lock().map_err(|source| RunningError::File {
            act: "write into",
            path: folder.to_path_buf(),
            source,
        })?;
        let (stop, stopped) = channel();
        let mut record = Running {
            pid,
            program: program.to_owned(),
            started_unix_ms,
            written_unix_ms: 0,
            snapshot: Snapshot::default(),
        };
        let written_to = files.clone();
        let thread = std::thread::Builder::new()
            .name("reprise-running".into())
            .spawn(move || {
                loop {
                    let changed = {
                        let shared = snapshot.lock().unwrap_or_else(PoisonError::into_inner);
                        (shared.sequence != record.snapshot.sequence).then(|| shared.clone())
                    };
                    if let Some(changed) = changed {
                        record.snapshot = changed;
                        record.written_unix_ms = unix_ms();
                        if let Err(error) = written_to.write(&record) {
                            tracing::debug!(%error, "the engine's picture could not be written");
                        }
                    }
                    match stopped.recv_timeout(INTERVAL) {
                        Err(RecvTimeoutError::Timeout) => {}
                        Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            })
            .map_err(|source| RunningError::File {
                act: "start the thread that writes into",
                path: folder.to_path_buf(),
                source,
            })?;
        Ok(Published {
            files,
            _lock: lock,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.files.remove();
    }
}

/// The programs that run an engine, the oldest first. What dead ones left is cleared away.
///
/// # Errors
/// When the folder cannot be read; one that is not there holds nothing.
pub fn list() -> Result<Listing, RunningError> {
    list_in(&folder()?)
}

/// As [`list`], from this folder.
///
/// # Errors
/// As there.
pub fn list_in(folder: &Path) -> Result<Listing, RunningError> {
    let cannot_read = |source| RunningError::File {
        act: "read",
        path: folder.to_path_buf(),
        source,
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Listing::default()),
        Err(error) => return Err(cannot_read(error)),
    };
    let mut listing = Listing::default();
    for entry in entries {
        let path = entry.map_err(cannot_read)?.path();
        let (Some(name), Some(kind)) = (
            path.file_stem().and_then(|name| name.to_str()),
            path.extension().and_then(|kind| kind.to_str()),
        ) else {
            continue;
        };
        let files = Files {
            folder: folder.to_path_buf(),
            name: name.to_owned(),
        };
        match kind {
            "lock" if files.is_held() => match files.read() {
                Reading::Record(record) => listing.running.push(*record),
                Reading::NotYet => {}
                Reading::Unreadable => listing.unreadable.extend(files.pid()),
            },
            "lock" => files.remove(),
            "new" if is_older(&path, BEGUN) => drop(fs::remove_file(&path)),
            _ => {}
        }
    }
    listing
        .running
        .sort_by_key(|running| (running.started_unix_ms, running.pid));
    listing.unreadable.sort_unstable();
    Ok(listing)
}

/// The files of one engine: `NAME.lock`, held by its program; `NAME.json`, the record; `NAME.part`, the next record
/// while it is written; `NAME.new`, the lock before it is held.
#[derive(Debug, Clone)]
struct Files {
    folder: PathBuf,
    name: String,
}

/// What reading a record gave.
enum Reading {
    Record(Box<Running>),
    /// Its program has only begun.
    NotYet,
    Unreadable,
}

impl Files {
    fn path(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.name))
    }

    /// The process that the name begins with.
    fn pid(&self) -> Option<u32> {
        self.name.split('-').next()?.parse().ok()
    }

    /// Makes the lock and holds it. It gets its name only when it is held, so that nobody takes it for a dead one's.
    fn lock(&self) -> io::Result<File> {
        let begun = self.path("new");
        let lock = create(&begun)?;
        let held = lock
            .try_lock()
            .map_err(|error| match error {
                TryLockError::Error(error) => error,
                TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            })
            .and_then(|()| fs::rename(&begun, self.path("lock")));
        if let Err(error) = held {
            let _ = fs::remove_file(&begun);
            return Err(error);
        }
        Ok(lock)
    }

    fn is_held(&self) -> bool {
        match File::open(self.path("lock")) {
            Ok(lock) => lock.try_lock_shared().is_err(),
            // Removed since it was listed, or not ours to open.
            Err(_) => false,
        }
    }

    fn write(&self, record: &Running) -> io::Result<()> {
        let part = self.path("part");
        // What is left of a write that was cut off is no reason to write no more.
        let _ = fs::remove_file(&part);
        // Not synced: after a crash of the machine none of this matters.
        create(&part)?.write_all(&serde_json::to_vec(record)?)?;
        fs::rename(&part, self.path("json"))
    }

    fn read(&self) -> Reading {
        let mut text = String::new();
        let read =
            File::open(self.path("json")).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        match read.map(|_| serde_json::from_str(&text)) {
            Ok(Ok(record)) => Reading::Record(Box::new(record)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Reading::NotYet,
            _ => Reading::Unreadable,
        }
    }

    /// Removes them, the lock last; what is gone already is no failure.
    fn remove(&self) {
        for kind in ["json", "part", "lock"] {
            let _ = fs::remove_file(self.path(kind));
        }
    }
}

/// A new file that only this person can read.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the folder where it is missing, and makes sure that nobody else can look into it.
fn make_private(folder: &Path) -> Result<(), RunningError> {
    let failed = |act| {
        move |source| RunningError::File {
            act,
            path: folder.to_path_buf(),
            source,
        }
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(failed("make"))?;
    let metadata = fs::symlink_metadata(folder).map_err(failed("read"))?;
    if !metadata.is_dir() {
        return Err(failed("use")(io::ErrorKind::NotADirectory.into()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut permissions = metadata.permissions();
        if permissions.mode() & 0o077 != 0 {
            permissions.set_mode(0o700);
            fs::set_permissions(folder, permissions).map_err(failed("make private"))?;
        }
    }
    Ok(())
}

fn is_older(path: &Path, age: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed > age))
}

/// Now, in milliseconds since 1970.
fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shared(sequence: u64) -> Arc<Mutex<Snapshot>> {
        Arc::new(Mutex::new(Snapshot {
            sequence,
            ..Snapshot::default()
        }))
    }

    fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "it never came");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_engine_is_seen_from_its_first_picture_until_it_is_dropped() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/running");
        assert_eq!(list_in(&folder).unwrap(), Listing::default());
        let snapshot = shared(0);
        let published = Published::start_in(&folder, "serve", Arc::clone(&snapshot)).unwrap();
        assert_eq!(
            list_in(&folder).unwrap(),
            Listing::default(),
            "there is no picture yet"
        );
        snapshot.lock().unwrap().sequence = 1;
        let seen = wait_for(|| list_in(&folder).unwrap().running.pop());
        assert_eq!((seen.pid, seen.program.as_str()), (std::process::id(), "serve"));
        assert!(seen.started_unix_ms > 0 && seen.written_unix_ms >= seen.started_unix_ms);
        snapshot.lock().unwrap().sequence = 2;
        wait_for(|| (list_in(&folder).unwrap().running[0].snapshot.sequence == 2).then_some(()));
        drop(published);
        assert_eq!(names(&folder), [""; 0]);
    }

    #[test]
    fn nothing_is_written_while_nothing_changes_and_never_more_than_four_times_a_second() {
        let home = tempfile::tempdir().unwrap();
        let snapshot = shared(1);
        let _published = Published::start_in(home.path(), "chat", Arc::clone(&snapshot)).unwrap();
        let written = || list_in(home.path()).unwrap().running.pop();
        let first = wait_for(written);
        std::thread::sleep(3 * INTERVAL);
        assert_eq!(written().as_ref(), Some(&first));
        let begin = Instant::now();
        let mut times = vec![first.written_unix_ms];
        while begin.elapsed() < 4 * INTERVAL {
            snapshot.lock().unwrap().sequence += 1;
            times.extend(written().map(|running| running.written_unix_ms));
            std::thread::sleep(Duration::from_millis(5));
        }
        times.dedup();
        let writes = times.len() - 1;
        assert!((1..=5).contains(&writes), "{writes} writes in a second");
    }

    #[test]
    fn two_engines_of_one_process_are_two() {
        let home = tempfile::tempdir().unwrap();
        let _first = Published::start_in(home.path(), "app", shared(1)).unwrap();
        let second = Published::start_in(home.path(), "app", shared(1)).unwrap();
        wait_for(|| (list_in(home.path()).unwrap().running.len() == 2).then_some(()));
        drop(second);
        assert_eq!(list_in(home.path()).unwrap().running.len(), 1);
    }

    #[test]
    fn what_a_dead_program_left_is_cleared_away() {
        let home = tempfile::tempdir().unwrap();
        for name in ["1-0.lock", "1-0.json", "1-0.part"] {
            fs::write(home.path().join(name), "{}").unwrap();
        }
        fs::write(home.path().join("notes.txt"), "not ours").unwrap();
        assert_eq!(list_in(home.path()).unwrap(), Listing::default());
        assert_eq!(names(home.path()), ["notes.txt"]);
    }

    #[test]
    fn a_record_of_another_version_is_told_by_its_process() {
        let home = tempfile::tempdir().unwrap();
        let published = Published::start_in(home.path(), "app", shared(0)).unwrap();
        fs::write(
            published.files.path("json"),
            r#"{"pid": 7, "from": "the future"}"#,
        )
        .unwrap();
        let listing = list_in(home.path()).unwrap();
        assert_eq!(listing.unreadable, [std::process::id()]);
        assert!(listing.running.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_and_its_files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("running");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let _published = Published::start_in(&folder, "app", shared(1)).unwrap();
        wait_for(|| list_in(&folder).unwrap().running.pop());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        for name in names(&folder) {
            assert_eq!(mode(&folder.join(&name)), 0o600, "{name}");
        }

        let link = home.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let refused = Published::start_in(&link, "app", shared(1)).unwrap_err();
        assert!(refused.to_string().contains("link"), "{refused}");
    }

    #[test]
    fn a_file_where_the_folder_should_be_is_named() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("running");
        fs::write(&file, "").unwrap();
        for error in [
            Published::start_in(&file, "app", shared(1)).unwrap_err(),
            list_in(&file).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(
                error.contains("running") && error.contains("remove it"),
                "{error}"
            );
        }
    }
}
