//! Watching the sources for changes. The system tells of each change many times, so nothing is done until it has been quiet
//! for a moment, or for long enough in a row.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use notify::event::EventKind;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::error::IndexError;
use super::scan;
use super::types::Source;

/// Quiet for so long, and changes are looked at.
pub const QUIET: Duration = Duration::from_millis(1500);
/// At the latest after so long, even if it is never quiet.
pub const LONGEST: Duration = Duration::from_secs(20);

/// When changes are to be looked at. Times come from the caller, counted from any moment.
#[derive(Debug, Clone, Default)]
pub struct Debounce {
    first: Option<Duration>,
    last: Duration,
}

impl Debounce {
    /// Something changed.
    pub fn note(&mut self, now: Duration) {
        self.first.get_or_insert(now);
        self.last = self.last.max(now);
    }

    /// How long nothing needs to be done; none when nothing changed. Zero: now.
    pub fn wait(&self, now: Duration) -> Option<Duration> {
        let due = (self.last + QUIET).min(self.first? + LONGEST);
        Some(due.saturating_sub(now))
    }

    /// Whether changes are to be looked at now; then they are forgotten.
    pub fn take(&mut self, now: Duration) -> bool {
        let is_due = self.wait(now).is_some_and(|wait| wait.is_zero());
        if is_due {
            *self = Debounce::default();
        }
        is_due
    }
}

/// Watches until it is dropped.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    thread: Option<JoinHandle<()>>,
    /// Sources that cannot be watched, with the reason: they are looked at with the next update only.
    pub troubles: Vec<String>,
}

impl Watch {
    /// Watches these sources, without what is in the folder that is `left_out`; `changed` is called on a thread of its own,
    /// where it may take its time.
    pub(super) fn start(
        sources: &[Source],
        left_out: Option<PathBuf>,
        mut changed: impl FnMut() + Send + 'static,
    ) -> Result<Watch, IndexError> {
        let cannot = |path: &Path, error: notify::Error| {
            IndexError::files("watch", path, std::io::Error::other(error.to_string()))
        };
        let (sender, receiver) = mpsc::channel();
        let files: Vec<PathBuf> = sources
            .iter()
            .filter(|source| !source.is_folder)
            .map(|source| source.path.clone())
            .collect();
        let folders: Vec<PathBuf> = sources
            .iter()
            .filter(|source| source.is_folder)
            .map(|source| source.path.clone())
            .collect();
        let listen = move |event: notify::Result<Event>| {
            let matters = match &event {
                Ok(event) => {
                    !matches!(event.kind, EventKind::Access(_))
                        && (event.paths.is_empty()
                            || event.paths.iter().any(|path| {
                                files.contains(path)
                                    || folders
                                        .iter()
                                        .any(|folder| scan::matters(folder, path, left_out.as_deref()))
                            }))
                }
                // Events were lost.
                Err(_) => true,
            };
            if matters {
                let _ = sender.send(());
            }
        };
        let mut watcher =
            notify::recommended_watcher(listen).map_err(|error| cannot(Path::new("folders"), error))?;
        let mut troubles = Vec::new();
        for source in sources {
            // A file that is replaced is another one: its folder tells.
            let (path, mode) = match (source.is_folder, source.path.parent()) {
                (false, Some(parent)) => (parent, RecursiveMode::NonRecursive),
                _ => (source.path.as_path(), RecursiveMode::Recursive),
            };
            if let Err(error) = watcher.watch(path, mode) {
                troubles.push(format!("{} cannot be watched: {error}", source.path.display()));
            }
        }
        let follow = move || {
            let start = Instant::now();
            let mut debounce = Debounce::default();
            loop {
                let event = match debounce.wait(start.elapsed()) {
                    Some(wait) => receiver.recv_timeout(wait),
                    None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match event {
                    Ok(()) => debounce.note(start.elapsed()),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                if debounce.take(start.elapsed()) {
                    changed();
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(follow)
            .map_err(|error| IndexError::files("start a thread to watch", Path::new("folders"), error))?;
        Ok(Watch {
            watcher: Some(watcher),
            thread: Some(thread),
            troubles,
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread ends when nobody can tell it anything.
        self.watcher.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn many_changes_are_looked_at_once_when_it_is_quiet() {
        let mut debounce = Debounce::default();
        assert_eq!(debounce.wait(SECOND), None);
        for step in 0..10 {
            let now = SECOND + step * QUIET / 2;
            debounce.note(now);
            assert!(!debounce.take(now));
        }
        let last = SECOND + 9 * QUIET / 2;
        assert_eq!(debounce.wait(last), Some(QUIET));
        assert!(!debounce.take(last + QUIET - Duration::from_millis(1)));
        assert!(debounce.take(last + QUIET));
        assert!(!debounce.take(last + 2 * QUIET), "it is looked at once");
    }

    #[test]
    fn changes_without_end_are_looked_at_all_the_same() {
        let mut debounce = Debounce::default();
        let mut now = SECOND;
        let mut looked = 0;
        while now < SECOND + 3 * LONGEST {
            debounce.note(now);
            looked += usize::from(debounce.take(now));
            now += QUIET / 3;
        }
        assert_eq!(looked, 2);
    }

    #[test]
    fn a_clock_that_jumps_back_stops_nothing() {
        let mut debounce = Debounce::default();
        debounce.note(10 * SECOND);
        debounce.note(SECOND);
        assert!(debounce.take(10 * SECOND + QUIET));
    }
}
