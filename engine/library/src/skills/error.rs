//! What can go wrong with skills. Each message says what, where, and what to do.

use std::path::PathBuf;

use crate::error::system_words;
use crate::folders::shown;

/// Why something about skills could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// A folder that is no skill, or a dangerous one.
    #[error("the skill in {} cannot be used: {fault}", shown(path))]
    Skill {
        /// Its folder.
        path: PathBuf,
        /// What is wrong.
        fault: SkillFault,
    },
    /// A file cannot be read or written.
    #[error("cannot {act} {}: {}", shown(path), system_words(source))]
    File {
        /// "read", "write".
        act: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No skill has this name.
    #[error(
        "there is no skill {name:?}{}; see them with: reprise skill list",
        close_by(near)
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// A name that looks like it.
        near: Option<String>,
    },
    /// The skill is switched off.
    #[error("the skill {name} is disabled; enable it with: reprise skill enable {name}")]
    Disabled {
        /// Its name.
        name: String,
    },
    /// A skill's folder has no such file.
    #[error("the skill {skill} has no {what} {file:?}; it has: {}", listed(known))]
    NoFile {
        /// The skill.
        skill: String,
        /// "reference", "script".
        what: &'static str,
        /// What was asked for.
        file: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A file of a skill that cannot be shown to a model.
    #[error("{file} of the skill {skill} cannot be read as text: {fault}")]
    BadFile {
        /// The skill.
        skill: String,
        /// The file.
        file: String,
        /// What is wrong.
        fault: SkillFault,
    },
    /// The settings file is not what was written.
    #[error(
        "the skill settings in {} cannot be understood ({reason}); mend the file, or remove it to trust and enable anew",
        shown(path)
    )]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// What is wrong with a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillFault {
    /// No SKILL.md.
    #[error("there is no SKILL.md in it")]
    NoFile,
    /// Bytes that are no text.
    #[error("it is not UTF-8 text; save it as UTF-8")]
    NotText,
    /// Larger than the limit.
    #[error("it has {bytes} bytes, and at most {limit_bytes} are read; make it shorter")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The front matter is no YAML.
    #[error("its front matter is not YAML that can be read ({0})")]
    BadYaml(String),
    /// Nothing says what it is for.
    #[error("it has no description; write one into the front matter: when is it of use, and what for?")]
    NoDescription,
    /// Neither front matter nor folder gives a usable name.
    #[error("{0:?} is no name for a skill: 1 to 64 small letters, digits and hyphens are")]
    BadName(String),
    /// A link that leads elsewhere.
    #[error("{0} is a link that leads out of the skill's folder; put the file itself there")]
    LinkOut(String),
    /// More than anybody would put into a skill.
    #[error("its folder has more than {limit} {what}; a skill is a small folder")]
    TooMany {
        /// "files", "bytes".
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

fn close_by(near: &Option<String>) -> String {
    near.as_ref()
        .map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}
