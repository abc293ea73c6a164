//! The side of the helper: a process of one thread that confines itself, starts the script, and reports how it ended.
//!
//! On Linux it is two processes: the first enters namespaces, which only its children are in; the second, the first
//! process of its own process namespace, confines itself further and starts the script. When either ends, the system ends
//! everything in the namespace.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::resource::{Resource, setrlimit};
use serde::{Deserialize, Serialize};

use super::{Confinement, HELPER, Limits};

/// Of the second process, behind [`HELPER`].
#[cfg(target_os = "linux")]
const INSIDE: &str = "inside";
/// Where programs are looked for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin";
/// Files that a script may have open.
const OPEN_FILES: u64 = 256;

/// What the helper is told, on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The program and its arguments; empty to find out what can be held.
    pub(super) program: Vec<String>,
    /// Where it runs.
    pub(super) folder: PathBuf,
    /// Where it may write.
    pub(super) work: PathBuf,
    /// Where the report goes.
    pub(super) report: PathBuf,
    /// What it may take.
    pub(super) limits: Limits,
    /// What it must be held to.
    pub(super) needed: Option<Confinement>,
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Exit(i32),
    Signal(i32),
    NotStarted(String),
    NotConfined(String),
}

pub(super) fn main() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != HELPER {
        return None;
    }
    let mut text = String::new();
    let order: Option<Order> = std::io::stdin()
        .read_to_string(&mut text)
        .ok()
        .and_then(|_| serde_json::from_str(&text).ok());
    let Some(order) = order else {
        // Nobody but the program itself has reason to call it so.
        return Some(ExitCode::from(2));
    };
    #[cfg(target_os = "linux")]
    match arguments.next() {
        Some(stage) if stage == INSIDE => {
            // The namespaces are those of the first process: it said which it could have.
            let has_namespaces = arguments.next().is_some_and(|word| word == "namespaces");
            run(&order, has_namespaces);
        }
        _ => first(&order, &text),
    }
    #[cfg(not(target_os = "linux"))]
    run(&order, false);
    Some(ExitCode::SUCCESS)
}

/// The first process: into namespaces, then the second one.
#[cfg(target_os = "linux")]
fn first(order: &Order, text: &str) {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    let has_namespaces = super::linux::enter_namespaces().is_ok();
    let needs = order.needed.is_some_and(|needed| needed.own_processes);
    if needs && !has_namespaces {
        let reason = "the system no longer gives it namespaces of its own";
        return report(order, &Report::NotConfined(reason.into()));
    }
    let mut command = Command::new("/proc/self/exe");
    command
        .args([HELPER, INSIDE, if has_namespaces { "namespaces" } else { "none" }])
        .stdin(Stdio::piped());
    let run = command.spawn().and_then(|mut child| {
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(text.as_bytes())?;
        }
        child.wait()
    });
    if let Err(error) = run {
        report(order, &Report::NotStarted(error.to_string()));
    }
}

/// Confines itself, starts the program, and reports.
fn run(order: &Order, has_namespaces: bool) {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    // Open before writing is forbidden.
    let Ok(mut file) = open_report(order) else { return };
    let held = confine(order, has_namespaces);
    let report = match order.needed {
        None => serde_json::to_vec(&held),
        Some(needed) if !held.covers(needed) => {
            let reason = "the system holds it to less than it did before";
            serde_json::to_vec(&Report::NotConfined(reason.into()))
        }
        Some(_) => serde_json::to_vec(&start(order)),
    };
    // Without a report the program knows that something went wrong.
    let _ = report.map(|report| file.write_all(&report));
}

fn confine(order: &Order, has_namespaces: bool) -> Confinement {
    #[cfg(target_os = "linux")]
    let mut held = super::linux::confine(&order.work, order.limits.processes, has_namespaces);
    #[cfg(not(target_os = "linux"))]
    let mut held = {
        let _ = has_namespaces;
        Confinement::default()
    };
    held.limits = limit(&order.limits, has_namespaces).is_ok();
    #[cfg(target_os = "linux")]
    {
        // Last, because setting limits is no longer possible for everybody behind it.
        held.no_network |= super::linux::forbid_sockets().is_ok();
    }
    held
}

fn limit(limits: &Limits, has_namespaces: bool) -> nix::Result<()> {
    let seconds = limits.time.as_secs() + 1;
    let set = |resource, most| setrlimit(resource, most, most);
    set(Resource::RLIMIT_CPU, seconds)?;
    set(Resource::RLIMIT_FSIZE, limits.file_bytes)?;
    set(Resource::RLIMIT_CORE, 0)?;
    set(Resource::RLIMIT_NOFILE, OPEN_FILES)?;
    // macOS knows no such limit.
    #[cfg(target_os = "linux")]
    set(Resource::RLIMIT_AS, limits.memory_bytes)?;
    // Without a namespace all processes of the person count, and the script could start none.
    if has_namespaces {
        set(Resource::RLIMIT_NPROC, limits.processes)?;
    }
    Ok(())
}

fn start(order: &Order) -> Report {
    let Some((program, arguments)) = order.program.split_first() else {
        return Report::NotStarted("no program is named".into());
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&order.folder)
        .env_clear()
        .env("PATH", PATH)
        .env("LANG", "C.UTF-8")
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", &order.work)
        .env("TMPDIR", &order.work)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null());
    match command.status() {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Report::Exit(code),
            (None, signal) => Report::Signal(signal.unwrap_or_default()),
        },
        Err(error) => {
            let words = crate::error::system_words(&error);
            Report::NotStarted(format!("{program}: {words}"))
        }
    }
}

fn open_report(order: &Order) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&order.report)
}

#[cfg(target_os = "linux")]
fn report(order: &Order, report: &Report) {
    if let (Ok(mut file), Ok(bytes)) = (open_report(order), serde_json::to_vec(report)) {
        let _ = file.write_all(&bytes);
    }
}
