//! Asking the person before something runs.

use reprise_engine::CancelToken;
use serde::{Deserialize, Serialize};

use super::run::Confinement;
use super::settings::Settings;
use super::shelf::trust;
use super::skill::Skill;
use super::{SkillError, servers::ServerConfig};
use crate::folders::shown;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub enum Question<'a> {
    /// Whether a script of a skill may run.
    Script {
        /// The skill.
        skill: &'a Skill,
        /// The script, by its path in the skill's folder.
        script: &'a str,
        /// Its arguments.
        arguments: &'a [String],
        /// What the system holds it to.
        confinement: Confinement,
    },
    /// Whether a server of tools may be started. It is a program like any other, held to nothing.
    Server {
        /// Its name and command.
        server: &'a ServerConfig,
    },
}

impl Question<'_> {
    /// The question in words.
    pub fn words(&self) -> String {
        match self {
            Question::Script {
                skill,
                script,
                arguments,
                confinement,
            } => {
                let line = command_line(script, arguments);
                format!(
                    "The skill {} wants to run: {line}\nIn {}. {}",
                    skill.name,
                    shown(&skill.folder),
                    confinement.words()
                )
            }
            Question::Server { server } => format!(
                "The tool server {} wants to start: {}\nIt is a program like any other: it can do what you can do.",
                server.name,
                command_line(&server.command, &server.arguments)
            ),
        }
    }

    /// What "always" would mean.
    pub fn always_means(&self) -> &'static str {
        match self {
            Question::Script { .. } => "all scripts of this skill, until a file of it changes",
            Question::Server { .. } => "this command, until it changes",
        }
    }
}

/// The words of a command, each one told from the next.
fn command_line(program: &str, arguments: &[String]) -> String {
    let quoted = |word: &str| {
        // Nothing that a terminal would obey, or that hides what follows.
        let word: String = word
            .chars()
            .flat_map(|c| {
                if c.is_control() {
                    c.escape_default().collect()
                } else {
                    vec![c]
                }
            })
            .collect();
        if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '"') {
            format!("{word:?}")
        } else {
            word
        }
    };
    let words: Vec<String> = std::iter::once(program)
        .chain(arguments.iter().map(String::as_str))
        .map(quoted)
        .collect();
    words.join(" ")
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub enum Permission {
    /// This time.
    Once,
    /// From now on, until it changes.
    Always,
    /// No.
    Deny,
}

/// Asks the person. It is called on the thread that answers, and may wait as long as the person thinks; once `cancel` is
/// set it returns, with a denial.
pub trait Consent {
    /// The person's decision.
    fn ask(&mut self, question: &Question<'_>, cancel: &CancelToken) -> Permission;
}

/// Denies everything, where nobody can be asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyToAsk;

impl Consent for NobodyToAsk {
    fn ask(&mut self, _question: &Question<'_>, _cancel: &CancelToken) -> Permission {
        Permission::Deny
    }
}

/// Whether a skill's script may run: because the skill as it is now is trusted, or because the person says so. What was
/// asked about is what runs: a folder that changes in between is asked about again by denying it now.
///
/// # Errors
/// When the folder or the settings cannot be read or written.
pub(super) fn may_run(
    settings: &Settings,
    skill: &Skill,
    question: &Question<'_>,
    consent: &mut dyn Consent,
    cancel: &CancelToken,
) -> Result<bool, SkillError> {
    let hash = skill.hash()?;
    if settings.read()?.trusted_skills.contains_key(&hash) {
        return Ok(true);
    }
    let permission = consent.ask(question, cancel);
    if permission == Permission::Deny || cancel.is_cancelled() || skill.hash()? != hash {
        return Ok(false);
    }
    if permission == Permission::Always {
        trust(settings, &skill.name, &hash, true)?;
    }
    Ok(true)
}

/// Whether a server may be started.
///
/// # Errors
/// When the settings cannot be read or written.
pub(super) fn may_start(
    settings: &Settings,
    server: &ServerConfig,
    consent: &mut dyn Consent,
    cancel: &CancelToken,
) -> Result<bool, SkillError> {
    let hash = server.hash();
    if settings.read()?.trusted_servers.contains_key(&hash) {
        return Ok(true);
    }
    let permission = consent.ask(&Question::Server { server }, cancel);
    if permission == Permission::Deny || cancel.is_cancelled() {
        return Ok(false);
    }
    if permission == Permission::Always {
        settings.change(|decisions| {
            decisions.trusted_servers.retain(|_, of| *of != server.name);
            decisions
                .trusted_servers
                .insert(hash.clone(), server.name.clone());
        })?;
    }
    Ok(true)
}
