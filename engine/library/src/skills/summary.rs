//! A skill as lists show it, in the terminal and in the window. The page sees the same values: their TypeScript is
//! generated from here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::error::SkillError;
use super::files::FileKind;
use super::shelf::{ListedSkill, SkillShelf, Source};
use crate::folders::shown;

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct FileSummary {
    /// Where it is in the folder, with `/` between.
    pub path: String,
    /// Its size.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// What it is for.
    pub kind: FileKind,
}

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct SkillSummary {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where it comes from.
    pub source: Source,
    /// Its folder, as a person would type it.
    pub folder: String,
    /// Whether it is on.
    pub is_enabled: bool,
    /// Whether its scripts, as they are now, may run without asking.
    pub is_trusted: bool,
    /// Under which licence it is.
    pub license: Option<String>,
    /// What it needs.
    pub compatibility: Option<String>,
    /// Tools that its author expects.
    pub allowed_tools: Vec<String>,
    /// What else its front matter says.
    pub metadata: BTreeMap<String, String>,
    /// Its files besides SKILL.md.
    pub files: Vec<FileSummary>,
    /// What is odd about it.
    pub warnings: Vec<String>,
    /// What it tells a model.
    pub body: String,
}

impl SkillShelf {
    /// A skill as lists show it.
    ///
    /// # Errors
    /// When its folder, or the settings, cannot be read.
    pub fn summary(&self, listed: &ListedSkill) -> Result<SkillSummary, SkillError> {
        let skill = &listed.skill;
        let file = |file: &super::SkillFile| FileSummary {
            path: file.path.clone(),
            bytes: file.bytes,
            kind: file.kind,
        };
        Ok(SkillSummary {
            name: skill.name.clone(),
            description: skill.description.clone(),
            source: listed.source,
            folder: shown(&skill.folder),
            is_enabled: listed.is_enabled,
            is_trusted: self.is_trusted(skill)?,
            license: skill.license.clone(),
            compatibility: skill.compatibility.clone(),
            allowed_tools: skill.allowed_tools.clone(),
            metadata: skill.metadata.clone(),
            files: skill.files.iter().map(file).collect(),
            warnings: skill.warnings.clone(),
            body: skill.body.clone(),
        })
    }
}
