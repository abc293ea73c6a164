//! The side of the program: starts the helper, watches time and output, and ends everything.

use std::fs;
use std::io::{PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use reprise_engine::CancelToken;

use super::helper::{Order, Report};
use super::output::Collected;
use super::{Confinement, Ended, HELPER, Limits, Ran, RunError};

/// How often is looked whether it ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long is waited for the last output of a process that ended: somebody may still hold the pipe.
const LAST_OUTPUT: Duration = Duration::from_millis(300);
/// Times the kept output that may be written before it is a flood.
const FLOOD: u64 = 256;
/// How long finding out what the system can do may take.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// A script about to be run.
pub(super) struct Child<'a> {
    pub(super) helper: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) script: &'a str,
    pub(super) limits: Limits,
    pub(super) confinement: Confinement,
}

impl Child<'_> {
    pub(super) fn run(&self, program: Vec<String>, cancel: &CancelToken) -> Result<Ran, RunError> {
        let cannot = |reason: String| RunError::Start {
            script: self.script.to_owned(),
            reason,
        };
        let from_io = |error: std::io::Error| cannot(crate::error::system_words(&error));
        let scratch = tempfile::Builder::new()
            .prefix("reprise-script-")
            .tempdir()
            .map_err(from_io)?;
        let work = scratch.path().join("tmp");
        fs::create_dir(&work).map_err(from_io)?;
        let folder = fs::canonicalize(self.folder).map_err(from_io)?;
        let order = Order {
            program,
            folder,
            work: fs::canonicalize(&work).map_err(from_io)?,
            report: scratch.path().join("report"),
            limits: self.limits,
            needed: Some(self.confinement),
        };
        let begin = Instant::now();
        let (ended, collected) = watch(self.helper, &order, self.limits, cancel).map_err(from_io)?;
        let report = fs::read(&order.report).ok();
        let report = report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let ended = match (ended, report) {
            (Some(ended), _) => ended,
            (None, Some(Report::Exit(code))) => Ended::Exit(code),
            (None, Some(Report::Signal(signal))) => Ended::Signal(signal),
            (None, Some(Report::NotStarted(reason))) => return Err(cannot(reason)),
            (None, Some(Report::NotConfined(reason))) => {
                return Err(RunError::Confine {
                    script: self.script.to_owned(),
                    reason,
                });
            }
            (None, None) => {
                let said = collected.text().0;
                return Err(cannot(format!(
                    "what was to start it ended without a word {}",
                    said.trim().chars().take(200).collect::<String>()
                )));
            }
        };
        let (output, left_out_bytes) = collected.text();
        Ok(Ran {
            script: self.script.to_owned(),
            ended,
            output,
            left_out_bytes,
            time: begin.elapsed(),
        })
    }
}

/// What the system can hold a script to.
pub(super) fn probe(helper: &Path) -> Confinement {
    let try_out = || -> std::io::Result<Confinement> {
        let scratch = tempfile::tempdir()?;
        let limits = Limits {
            time: PROBE_TIME,
            ..Limits::default()
        };
        let order = Order {
            program: Vec::new(),
            folder: scratch.path().to_path_buf(),
            work: fs::canonicalize(scratch.path())?,
            report: scratch.path().join("report"),
            limits,
            needed: None,
        };
        watch(helper, &order, limits, &CancelToken::default())?;
        let report = fs::read(&order.report)?;
        Ok(serde_json::from_slice(&report)?)
    };
    // A helper that cannot even say what it can do holds to nothing.
    try_out().unwrap_or_default()
}

/// Runs the helper; how it was ended, if it did not end by itself, and what was written.
fn watch(
    helper: &Path,
    order: &Order,
    limits: Limits,
    cancel: &CancelToken,
) -> std::io::Result<(Option<Ended>, Collected)> {
    let (reader, writer) = std::io::pipe()?;
    let mut command = Command::new(helper);
    command
        .arg(HELPER)
        .env_clear()
        .current_dir(&order.folder)
        .stdin(Stdio::piped())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let mut child = command.spawn()?;
    // The command holds an end of the pipe, which would never close.
    drop(command);
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let collected = Arc::new(Mutex::new(Collected::new(limits.output_bytes)));
    let reading = read(reader, Arc::clone(&collected))?;
    let begin = Instant::now();
    let written = serde_json::to_vec(order)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that ended already says so below.
        let _ = stdin.write_all(&written);
    }
    let lock = || collected.lock().unwrap_or_else(PoisonError::into_inner);
    let flood = limits.output_bytes as u64 * FLOOD;
    let ended = loop {
        if child.try_wait()?.is_some() {
            break None;
        }
        let ended = if cancel.is_cancelled() {
            Some(Ended::Cancelled)
        } else if begin.elapsed() > limits.time {
            Some(Ended::TimedOut)
        } else if lock().bytes > flood {
            Some(Ended::Flooded)
        } else {
            None
        };
        if ended.is_some() {
            break ended;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    // The helper's group, and with the helper its process namespace; a group that is empty needs nothing.
    let _ = killpg(group, Signal::SIGKILL);
    child.wait()?;
    let end = Instant::now();
    while !reading.is_finished() && end.elapsed() < LAST_OUTPUT {
        std::thread::sleep(LOOK_EVERY);
    }
    let taken = std::mem::replace(&mut *lock(), Collected::new(0));
    Ok((ended, taken))
}

/// Reads a pipe on a thread of its own, to its end.
fn read(
    mut reader: PipeReader,
    collected: Arc<Mutex<Collected>>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let read = move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count) = reader.read(&mut buffer) {
            if count == 0 {
                return;
            }
            let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
            collected.add(buffer.get(..count).unwrap_or_default());
        }
    };
    std::thread::Builder::new()
        .name("script-output".into())
        .spawn(read)
}
