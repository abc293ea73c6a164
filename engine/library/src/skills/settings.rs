//! What a person decided about skills and tool servers: which are off, and whose scripts and commands may run. One small
//! file in the data folder, written whole or not at all. Trust is given to what was looked at: to the hash of a skill's
//! folder, or of a server's command. What changes has to be trusted anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::SkillError;
use super::files::cannot_read;
use crate::files::write_whole;

/// Name of the file in the data folder.
const FILE: &str = "skills.toml";

/// What is decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Decisions {
    /// Skills that are off, by name.
    pub disabled: BTreeSet<String>,
    /// Hashes of skills' folders whose scripts may run, with the skill's name.
    pub trusted_skills: BTreeMap<String, String>,
    /// Hashes of servers' commands that may run, with the server's name.
    pub trusted_servers: BTreeMap<String, String>,
    /// Skills that came with the program and were put into its folder, with their hash.
    pub bundled: BTreeMap<String, String>,
}

/// The file with the decisions. Programs of one person may share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    path: PathBuf,
}

impl Settings {
    /// The settings in this data folder.
    pub fn in_folder(data: &Path) -> Settings {
        Settings {
            path: data.join(FILE),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is decided; nothing where there is no file yet.
    ///
    /// # Errors
    /// When the file cannot be read or understood. Nothing is trusted then.
    pub fn read(&self) -> Result<Decisions, SkillError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Decisions::default()),
            Err(error) => return Err(cannot_read(&self.path, error)),
        };
        toml::from_str(&text).map_err(|error| SkillError::Settings {
            path: self.path.clone(),
            reason: error.message().to_owned(),
        })
    }

    /// Changes what is decided, all of it or nothing.
    ///
    /// # Errors
    /// When the file cannot be read, understood or written.
    pub fn change(&self, change: impl FnOnce(&mut Decisions)) -> Result<(), SkillError> {
        let cannot_write = |source| SkillError::File {
            act: "write",
            path: self.path.clone(),
            source,
        };
        let _lock = self.lock().map_err(cannot_write)?;
        let before = self.read()?;
        let mut decisions = before.clone();
        change(&mut decisions);
        if decisions == before {
            return Ok(());
        }
        let text = toml::to_string_pretty(&decisions).map_err(|error| SkillError::Settings {
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        write_whole(&self.path, text.as_bytes()).map_err(cannot_write)
    }

    /// Holds other programs off while the file is changed.
    fn lock(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let path = self.path.with_extension("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        lock.lock()?;
        Ok(lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_kept_and_a_broken_file_trusts_nothing() {
        let home = tempfile::tempdir().unwrap();
        let settings = Settings::in_folder(&home.path().join("new"));
        assert_eq!(settings.read().unwrap(), Decisions::default());
        settings
            .change(|decisions| {
                decisions.disabled.insert("x".into());
                decisions.trusted_skills.insert("abc".into(), "y".into());
            })
            .unwrap();
        let kept = settings.read().unwrap();
        assert!(kept.disabled.contains("x") && kept.trusted_skills.contains_key("abc"));
        fs::write(settings.path(), "trusted-skills = 7").unwrap();
        let error = settings.read().unwrap_err().to_string();
        assert!(error.contains("skills.toml") && error.contains("mend"), "{error}");
        assert!(
            settings.change(|_| ()).is_err(),
            "what is not understood is not written over"
        );
    }

    #[test]
    fn programs_that_change_it_at_once_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        let settings = Settings::in_folder(home.path());
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let settings = settings.clone();
                scope.spawn(move || {
                    for number in 0..5 {
                        let name = format!("{writer}-{number}");
                        settings
                            .change(|decisions| {
                                decisions.disabled.insert(name);
                            })
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(settings.read().unwrap().disabled.len(), 20);
    }
}
