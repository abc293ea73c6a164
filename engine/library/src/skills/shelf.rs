//! All skills of a person: where they are looked for, which one of two with the same name counts, which are off, and which
//! may run their scripts.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bundled;
use super::error::SkillError;
use super::settings::{Decisions, Settings};
use super::skill::Skill;
use crate::folders::{self, NoHome};

/// Folders that hold skills, in a home or a project, the first one first.
const FOLDERS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Where a skill comes from; the first of two with the same name counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub enum Source {
    /// The project in which the program was started.
    Project,
    /// The person's home.
    User,
    /// The program's own folder.
    App,
}

impl Source {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Source::Project => "project",
            Source::User => "user",
            Source::App => "app",
        }
    }
}

/// The folders that hold skills, in order of precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    folders: Vec<(Source, PathBuf)>,
}

impl Places {
    /// Those of a person who works in a folder: up from there to the root of its repository, in the home, and the
    /// program's own in the data folder.
    pub fn of(working: Option<&Path>, home: Option<&Path>, data: &Path) -> Places {
        let mut places = Places::default();
        if let Some(working) = working {
            let root = working.ancestors().find(|folder| folder.join(".git").exists());
            // Outside of a repository nothing above the folder is part of a project.
            let root = root.unwrap_or(working);
            let levels = working.ancestors().take_while(|folder| folder.starts_with(root));
            for folder in levels.filter(|folder| Some(*folder) != home) {
                places.add(Source::Project, folder);
            }
        }
        if let Some(home) = home {
            places.add(Source::User, home);
        }
        places.folders.push((Source::App, app_folder(data)));
        places
    }

    fn add(&mut self, source: Source, parent: &Path) {
        let folders = FOLDERS.iter().map(|folder| (source, parent.join(folder)));
        self.folders.extend(folders);
    }

    /// Those of this person, seen from the folder the program was started in.
    ///
    /// # Errors
    /// When no data folder is known.
    pub fn of_person() -> Result<Places, NoHome> {
        let working = std::env::current_dir().ok();
        let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf());
        Ok(Places::of(working.as_deref(), home.as_deref(), &folders::data()?))
    }

    /// The folders, in order of precedence.
    pub fn folders(&self) -> impl Iterator<Item = (Source, &Path)> {
        self.folders
            .iter()
            .map(|(source, path)| (*source, path.as_path()))
    }
}

/// The program's own folder of skills.
fn app_folder(data: &Path) -> PathBuf {
    data.join("skills")
}

/// A skill that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedSkill {
    /// The skill.
    pub skill: Skill,
    /// Where it comes from.
    pub source: Source,
    /// Whether it is on.
    pub is_enabled: bool,
}

/// A skill that does not count, because another one has its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadowed {
    /// The name.
    pub name: String,
    /// The folder that does not count.
    pub folder: PathBuf,
    /// The one that does.
    pub by: PathBuf,
}

/// The skills of a person, as they were when it was opened.
#[derive(Debug)]
pub struct SkillShelf {
    settings: Settings,
    decisions: Decisions,
    skills: Vec<ListedSkill>,
    shadowed: Vec<Shadowed>,
    refused: Vec<SkillError>,
}

impl SkillShelf {
    /// The skills of this person, seen from the folder the program was started in. Those that come with the program are
    /// put into its own folder first.
    ///
    /// # Errors
    /// When no data folder is known, or the settings cannot be understood.
    pub fn of_person() -> Result<SkillShelf, ShelfError> {
        let data = folders::data()?;
        let places = Places::of_person()?;
        let settings = Settings::in_folder(&data);
        bundled::install(&app_folder(&data), &settings)?;
        Ok(SkillShelf::open(&places, settings)?)
    }

    /// The skills in these places.
    ///
    /// # Errors
    /// When the settings cannot be understood; a skill that cannot be used is only told.
    pub fn open(places: &Places, settings: Settings) -> Result<SkillShelf, SkillError> {
        let mut shelf = SkillShelf {
            decisions: settings.read()?,
            settings,
            skills: Vec::new(),
            shadowed: Vec::new(),
            refused: Vec::new(),
        };
        let mut seen: Vec<PathBuf> = Vec::new();
        for (source, folder) in places.folders() {
            let Ok(entries) = fs::read_dir(folder) else {
                continue;
            };
            let mut found: Vec<PathBuf> = entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| path.is_dir() && path.file_name().is_some_and(|name| !is_hidden(name)))
                .collect();
            found.sort();
            for path in found {
                // The same folder by two ways is one skill.
                let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                if seen.contains(&real) {
                    continue;
                }
                seen.push(real);
                match Skill::load(&path) {
                    Ok(skill) => shelf.add(skill, source),
                    Err(error) => shelf.refused.push(error),
                }
            }
        }
        shelf
            .skills
            .sort_by(|one, other| one.skill.name.cmp(&other.skill.name));
        Ok(shelf)
    }

    fn add(&mut self, skill: Skill, source: Source) {
        let same = self.skills.iter().find(|other| other.skill.name == skill.name);
        if let Some(first) = same {
            self.shadowed.push(Shadowed {
                by: first.skill.folder.clone(),
                name: skill.name,
                folder: skill.folder,
            });
            return;
        }
        self.skills.push(ListedSkill {
            is_enabled: !self.decisions.disabled.contains(&skill.name),
            skill,
            source,
        });
    }

    /// All that can be used, by name; also those that are off.
    pub fn skills(&self) -> &[ListedSkill] {
        &self.skills
    }

    /// Those that do not count, because another one has their name.
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.shadowed
    }

    /// What was found and cannot be used.
    pub fn refused(&self) -> &[SkillError] {
        &self.refused
    }

    /// Where decisions are kept.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The skill with this name, also when it is off.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, name: &str) -> Result<&ListedSkill, SkillError> {
        let name = name.trim();
        self.skills
            .iter()
            .find(|listed| listed.skill.name == name)
            .ok_or_else(|| {
                let lower = name.to_lowercase();
                let near = self.skills.iter().map(|listed| &listed.skill.name).find(|known| {
                    !lower.is_empty() && (known.contains(&lower) || lower.contains(known.as_str()))
                });
                SkillError::Unknown {
                    name: name.chars().take(80).collect(),
                    near: near.cloned(),
                }
            })
    }

    /// The skill with this name, if it is on.
    ///
    /// # Errors
    /// When there is none, or it is off.
    pub fn usable(&self, name: &str) -> Result<&Skill, SkillError> {
        let listed = self.find(name)?;
        if listed.is_enabled {
            Ok(&listed.skill)
        } else {
            Err(SkillError::Disabled {
                name: listed.skill.name.clone(),
            })
        }
    }

    /// Those that are on.
    pub fn enabled(&self) -> impl Iterator<Item = &Skill> {
        self.skills
            .iter()
            .filter(|listed| listed.is_enabled)
            .map(|listed| &listed.skill)
    }

    /// Switches a skill on or off.
    ///
    /// # Errors
    /// When there is none with this name, or the decision cannot be kept.
    pub fn set_enabled(&mut self, name: &str, is_enabled: bool) -> Result<(), SkillError> {
        let name = self.find(name)?.skill.name.clone();
        self.settings.change(|decisions| {
            if is_enabled {
                decisions.disabled.remove(&name);
            } else {
                decisions.disabled.insert(name.clone());
            }
        })?;
        for listed in self.skills.iter_mut().filter(|listed| listed.skill.name == name) {
            listed.is_enabled = is_enabled;
        }
        Ok(())
    }

    /// Whether the scripts of this skill, as its folder is now, may run without being asked for.
    ///
    /// # Errors
    /// When the folder or the settings cannot be read.
    pub fn is_trusted(&self, skill: &Skill) -> Result<bool, SkillError> {
        let hash = skill.hash()?;
        Ok(self.settings.read()?.trusted_skills.contains_key(&hash))
    }

    /// Lets the scripts of this skill run from now on, as its folder is now; or asks again.
    ///
    /// # Errors
    /// When the folder cannot be read, or the decision cannot be kept.
    pub fn set_trusted(&self, skill: &Skill, is_trusted: bool) -> Result<(), SkillError> {
        trust(&self.settings, &skill.name, &skill.hash()?, is_trusted)
    }
}

/// Keeps that scripts of a skill with this hash may run, or forgets it for every version of the skill.
pub(super) fn trust(settings: &Settings, name: &str, hash: &str, is_trusted: bool) -> Result<(), SkillError> {
    settings.change(|decisions| {
        // What an older version was trusted with is over.
        decisions.trusted_skills.retain(|_, of| of != name);
        if is_trusted {
            decisions.trusted_skills.insert(hash.to_owned(), name.to_owned());
        }
    })
}

fn is_hidden(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with('.')
}

/// Why the skills of a person cannot be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShelfError {
    /// No folder is known.
    #[error(transparent)]
    NoHome(#[from] NoHome),
    /// The settings, or the program's own skills.
    #[error(transparent)]
    Skill(#[from] SkillError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(parent: &Path, folder: &str, description: &str) {
        let at = parent.join(folder);
        fs::create_dir_all(&at).unwrap();
        fs::write(
            at.join("SKILL.md"),
            format!("---\ndescription: {description}\n---\nDo.\n"),
        )
        .unwrap();
    }

    #[test]
    fn the_nearest_project_comes_before_the_home_and_the_home_before_the_app() {
        let world = tempfile::tempdir().unwrap();
        let home = world.path().join("home");
        let data = home.join(".data");
        let repository = home.join("code/thing");
        let working = repository.join("deep/er");
        fs::create_dir_all(&working).unwrap();
        fs::create_dir_all(repository.join(".git")).unwrap();
        put(&working, ".claude/skills/one", "nearest");
        put(&repository, ".agents/skills/one", "root");
        put(&repository, ".agents/skills/two", "root");
        put(&home.join("code"), ".agents/skills/four", "above the repository");
        put(&home, ".claude/skills/two", "home");
        put(&home, ".agents/skills/three", "home");
        put(&data, "skills/three", "app");
        put(&data, "skills/broken", "");

        let places = Places::of(Some(&working), Some(&home), &data);
        let mut shelf = SkillShelf::open(&places, Settings::in_folder(&data)).unwrap();
        let listed: Vec<(&str, &str, Source)> = shelf
            .skills()
            .iter()
            .map(|l| (l.skill.name.as_str(), l.skill.description.as_str(), l.source))
            .collect();
        assert_eq!(
            listed,
            [
                ("one", "nearest", Source::Project),
                ("three", "home", Source::User),
                ("two", "root", Source::Project)
            ]
        );
        assert_eq!(shelf.shadowed().len(), 3);
        assert!(shelf.refused()[0].to_string().contains("no description"));

        shelf.set_enabled("two", false).unwrap();
        assert!(
            shelf
                .usable("two")
                .unwrap_err()
                .to_string()
                .contains("reprise skill enable two")
        );
        let error = shelf.find("thre").unwrap_err().to_string();
        assert!(error.contains("did you mean three"), "{error}");
        let again = SkillShelf::open(&places, Settings::in_folder(&data)).unwrap();
        assert_eq!(again.enabled().count(), 2);
    }

    #[test]
    fn a_home_that_is_also_the_working_folder_is_the_home() {
        let world = tempfile::tempdir().unwrap();
        put(world.path(), ".agents/skills/one", "x");
        let data = world.path().join("data");
        let places = Places::of(Some(world.path()), Some(world.path()), &data);
        let shelf = SkillShelf::open(&places, Settings::in_folder(&data)).unwrap();
        assert_eq!(shelf.skills()[0].source, Source::User);
        assert!(shelf.shadowed().is_empty());
    }

    #[test]
    fn trust_is_given_to_a_version() {
        let world = tempfile::tempdir().unwrap();
        put(world.path(), ".agents/skills/one", "x");
        let data = world.path().join("data");
        let shelf = SkillShelf::open(
            &Places::of(None, Some(world.path()), &data),
            Settings::in_folder(&data),
        )
        .unwrap();
        let skill = &shelf.skills()[0].skill;
        assert!(!shelf.is_trusted(skill).unwrap());
        shelf.set_trusted(skill, true).unwrap();
        assert!(shelf.is_trusted(skill).unwrap());
        fs::create_dir(skill.folder.join("scripts")).unwrap();
        fs::write(skill.folder.join("scripts/new.sh"), "echo").unwrap();
        assert!(
            !shelf.is_trusted(skill).unwrap(),
            "what changed is asked for again"
        );
        shelf.set_trusted(skill, true).unwrap();
        assert_eq!(shelf.settings().read().unwrap().trusted_skills.len(), 1);
        shelf.set_trusted(skill, false).unwrap();
        assert!(shelf.settings().read().unwrap().trusted_skills.is_empty());
    }
}
