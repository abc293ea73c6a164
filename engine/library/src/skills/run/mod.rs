//! Runs a script of a skill in a process of its own, held as tightly as the system allows.
//!
//! The script is started by a helper: the program itself, called with [`HELPER`] as its first argument, which confines
//! itself before it starts the script. So a script that runs is confined, and no confinement can be taken off again. What
//! a system can forbid differs ([`Confinement`]); it is found out once by trying, told to the person who is asked for
//! consent, and a run that would get less is refused. A script gets its folder as working folder, a fresh folder for
//! temporary files, an environment of a few fixed variables, and no input. Everything it starts ends with it.
//!
//! Linux: namespaces for users, processes and the network, Landlock for writing, seccomp against sockets, resource limits.
//! Other Unix systems: resource limits and a process group alone; this has not been run on macOS. Windows: nothing is run.

#[cfg(unix)]
mod child;
#[cfg(unix)]
mod helper;
mod interpreter;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod output;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use reprise_engine::CancelToken;
use serde::{Deserialize, Serialize};

use super::error::SkillError;
use super::files::FileKind;
use super::skill::Skill;

/// The first argument that makes the program the helper.
pub const HELPER: &str = "__run-script-confined";

/// What the system holds a script to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// No connection to anything is possible.
    pub no_network: bool,
    /// Nothing can be written but temporary files, which are removed.
    pub no_writing: bool,
    /// No process outlives the run, and no other process is seen.
    pub own_processes: bool,
    /// Time, memory, number of processes and sizes of files are limited.
    pub limits: bool,
}

impl Confinement {
    /// Whether this holds at least to what `other` holds to.
    fn covers(self, other: Confinement) -> bool {
        let pairs = [
            (self.no_network, other.no_network),
            (self.no_writing, other.no_writing),
            (self.own_processes, other.own_processes),
            (self.limits, other.limits),
        ];
        pairs.iter().all(|(has, needs)| *has || !needs)
    }

    /// What a person should know before a script runs, in sentences.
    pub fn words(self) -> String {
        let mut cannot = Vec::new();
        let mut can = vec!["read what you can read"];
        for (is_held, held, open) in [
            (self.no_network, "use the network", "use the network"),
            (self.no_writing, "change your files", "change your files"),
            (
                self.own_processes,
                "leave anything running",
                "leave programs running behind it",
            ),
        ] {
            if is_held {
                cannot.push(held);
            } else {
                can.push(open);
            }
        }
        let mut words = format!("It can {}.", joined(&can));
        if !cannot.is_empty() {
            words = format!("It cannot {}. {words}", joined(&cannot).replace(" and ", " or "));
        }
        if !self.no_network {
            words += " This system cannot forbid it the network.";
        }
        words
    }
}

fn joined(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// How much a script may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From its start to its end.
    pub time: Duration,
    /// Of a process's address space.
    pub memory_bytes: u64,
    /// At once.
    pub processes: u64,
    /// Of one file.
    pub file_bytes: u64,
    /// What of its output is kept; what is left out is said.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(60),
            memory_bytes: 4 << 30,
            processes: 64,
            file_bytes: 64 << 20,
            output_bytes: 16 * 1024,
        }
    }
}

/// A script to be run.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// Whose it is.
    pub skill: &'a Skill,
    /// Its path in the skill's folder, or its name.
    pub script: &'a str,
    /// Its arguments.
    pub arguments: &'a [String],
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code; 0 is success.
    Exit(i32),
    /// By a signal, as when it took more than it may.
    Signal(i32),
    /// It took too long and was ended.
    TimedOut,
    /// It wrote far more than anybody would read, and was ended.
    Flooded,
    /// The person stopped it.
    Cancelled,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The script that was run, by its path in the skill's folder.
    pub script: String,
    /// How it ended.
    pub ended: Ended,
    /// What it wrote, to both outputs, as text without control characters.
    pub output: String,
    /// Bytes of what it wrote that are not in `output`.
    pub left_out_bytes: u64,
    /// How long it took.
    pub time: Duration,
}

impl Ran {
    /// How it ended, for people and models.
    pub fn ending(&self) -> String {
        match self.ended {
            Ended::Exit(0) => "done".into(),
            Ended::Exit(code) => format!("failed with exit code {code}"),
            Ended::Signal(signal) => format!("ended by signal {signal}, as when it takes more than it may"),
            Ended::TimedOut => format!(
                "ended after {:.0} s: it took too long",
                self.time.as_secs_f64().max(1.0)
            ),
            Ended::Flooded => "ended: it wrote without end".into(),
            Ended::Cancelled => "stopped".into(),
        }
    }
}

/// Why a script was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is no such script.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// Nothing says what runs it.
    #[error("nothing is known that runs {script}: give it a first line such as #!/usr/bin/env python3")]
    NoInterpreter {
        /// The script.
        script: String,
    },
    /// What runs it is not there, or the like.
    #[error("{script} could not be started: {reason}")]
    Start {
        /// The script.
        script: String,
        /// What is wrong.
        reason: String,
    },
    /// The system no longer holds it to what the person was told.
    #[error("{script} was not started: {reason}; nothing runs less confined than you were told")]
    Confine {
        /// The script.
        script: String,
        /// What is wrong.
        reason: String,
    },
    /// Scripts are not run on this system.
    #[error("scripts of skills are not run on this system yet; run {script} yourself")]
    NotHere {
        /// The script.
        script: String,
    },
}

/// Runs scripts.
#[derive(Debug)]
pub struct ScriptRunner {
    helper: PathBuf,
    #[cfg_attr(not(unix), allow(dead_code))]
    limits: Limits,
    confinement: OnceLock<Confinement>,
}

impl ScriptRunner {
    /// A runner whose helper is this program; its `main` begins with [`helper_main`].
    pub fn of_program(limits: Limits) -> ScriptRunner {
        // The program that runs, even when its file was replaced.
        let own = match cfg!(target_os = "linux") {
            true => PathBuf::from("/proc/self/exe"),
            false => std::env::current_exe().unwrap_or_default(),
        };
        ScriptRunner::with_helper(own, limits)
    }

    /// A runner with another program as helper, whose `main` begins with [`helper_main`].
    pub fn with_helper(helper: PathBuf, limits: Limits) -> ScriptRunner {
        ScriptRunner {
            helper,
            limits,
            confinement: OnceLock::new(),
        }
    }

    /// What this system holds scripts to, found out once by trying.
    pub fn confinement(&self) -> Confinement {
        #[cfg(unix)]
        let probe = || child::probe(&self.helper);
        #[cfg(not(unix))]
        let probe = Confinement::default;
        *self.confinement.get_or_init(probe)
    }

    /// Runs a script to its end; the person's consent is the caller's business.
    ///
    /// # Errors
    /// When it was not run at all.
    pub fn run(&self, job: &Job<'_>, cancel: &CancelToken) -> Result<Ran, RunError> {
        let script = job.skill.file(FileKind::Script, job.script)?.path.clone();
        #[cfg(unix)]
        {
            let path = super::files::inside(&job.skill.folder, &script)?;
            let mut program = interpreter::of(&path).ok_or_else(|| RunError::NoInterpreter {
                script: script.clone(),
            })?;
            program.extend(job.arguments.iter().cloned());
            child::Child {
                helper: &self.helper,
                folder: &job.skill.folder,
                script: &script,
                limits: self.limits,
                confinement: self.confinement(),
            }
            .run(program, cancel)
        }
        #[cfg(not(unix))]
        {
            let _ = (cancel, &self.helper);
            Err(RunError::NotHere { script })
        }
    }
}

/// The helper's `main`: none when the program was called for something else. Call it before anything else, and before any
/// thread is started.
pub fn helper_main() -> Option<ExitCode> {
    #[cfg(unix)]
    {
        helper::main()
    }
    #[cfg(not(unix))]
    {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_what_is_held_and_what_is_not() {
        let all = Confinement {
            no_network: true,
            no_writing: true,
            own_processes: true,
            limits: true,
        };
        assert_eq!(
            all.words(),
            "It cannot use the network, change your files or leave anything running. It can read what you can read."
        );
        let none = Confinement::default().words();
        assert!(
            none.contains("use the network") && none.contains("cannot forbid it the network"),
            "{none}"
        );
        assert!(all.covers(Confinement::default()) && !Confinement::default().covers(all));
    }
}
