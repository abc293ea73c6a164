//! What must not outlive the program, however it ends: the other server's process and the folders of chunks.
//!
//! Ends that unwind are served by `Drop`; Ctrl-C and requests to end come on a thread of their own, which finds here what
//! there is.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::failure::{Failure, Outcome};
use crate::interrupts;

/// See the module.
#[derive(Clone, Default)]
pub struct Leftovers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    child: Option<Child>,
    folders: Vec<PathBuf>,
}

impl State {
    fn end_child(&mut self) {
        if let Some(mut child) = self.child.take() {
            // One that has ended by itself needs no end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Leftovers {
    /// Takes over Ctrl-C and requests to end; once in a program.
    pub fn of_program() -> Outcome<Leftovers> {
        let leftovers = Leftovers::default();
        let seen = leftovers.clone();
        interrupts::on_stop(move |stop| {
            // Held to the end: the other thread, which may miss the process it talked to, waits here instead of saying so.
            let mut state = seen.state();
            state.end_child();
            for folder in &state.folders {
                let _ = fs::remove_dir_all(folder);
            }
            interrupts::end(stop);
        })?;
        Ok(leftovers)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new folder of its own: nothing of it is left behind, and nothing of the person's is touched.
    pub fn folder(&self) -> Outcome<TempDir> {
        let mut state = self.state();
        let folder =
            tempfile::tempdir().map_err(|error| Failure::message(format!("no room for chunks: {error}")))?;
        state.folders.push(folder.path().to_owned());
        Ok(folder)
    }

    /// Starts a process, and ends the one before.
    pub fn spawn(&self, command: &mut Command) -> std::io::Result<u32> {
        let mut state = self.state();
        state.end_child();
        let child = command.spawn()?;
        let id = child.id();
        state.child = Some(child);
        Ok(id)
    }

    /// How the process ended, if it has.
    pub fn child_ended(&self) -> Option<ExitStatus> {
        self.state().child.as_mut()?.try_wait().ok().flatten()
    }

    /// Ends the process.
    pub fn end_child(&self) {
        self.state().end_child();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_when_told_or_followed() {
        let leftovers = Leftovers::default();
        let runs = |id: u32| {
            Command::new("kill")
                .args(["-0", &id.to_string()])
                .stderr(std::process::Stdio::null())
                .status()
                .unwrap()
                .success()
        };
        let first = leftovers.spawn(Command::new("sleep").arg("60")).unwrap();
        assert!(runs(first) && leftovers.child_ended().is_none());
        let second = leftovers.spawn(Command::new("sleep").arg("60")).unwrap();
        assert!(!runs(first) && runs(second));
        leftovers.end_child();
        assert!(!runs(second));
    }
}
