//! Skills that come with the program. They are put into the app's own folder, where a person can read, change and remove
//! them: what a person changed stays, and what was removed does not come back.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::error::SkillError;
use super::files::{self, SkillFile};
use super::settings::Settings;
use crate::files::write_whole;

struct Bundled {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! bundled {
    ($name:literal: $($file:literal),+) => {
        Bundled {
            name: $name,
            files: &[$(($file, include_str!(concat!("../../../../assets/skills/", $name, "/", $file)))),+],
        }
    };
}

const BUNDLED: &[Bundled] = &[bundled!("tidy-notes": "SKILL.md", "references/layout.md", "scripts/notes.sh")];

/// Puts the skills that come with the program into this folder, unless they were there before.
///
/// # Errors
/// When they cannot be written.
pub fn install(folder: &Path, settings: &Settings) -> Result<(), SkillError> {
    let decided = settings.read()?;
    for bundled in BUNDLED {
        let at = folder.join(bundled.name);
        let kept = decided.bundled.get(bundled.name);
        match (kept, at.is_dir()) {
            // Removed by the person, or there by another way.
            (Some(_), false) => continue,
            (None, true) if !is_part(&at, bundled) => continue,
            (Some(hash), true) if files::hash(&at)? != *hash || is_current(&at, bundled) => continue,
            (Some(_), true) | (None, _) => {}
        }
        for (file, text) in bundled.files {
            let path = at.join(file);
            let written = path
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| write_whole(&path, text.as_bytes()));
            written.map_err(|source| SkillError::File {
                act: "write",
                path,
                source,
            })?;
        }
        let hash = files::hash(&at)?;
        settings.change(|decisions| drop(decisions.bundled.insert(bundled.name.to_owned(), hash)))?;
    }
    Ok(())
}

/// Whether there is nothing but what an installation has written that did not come to its end.
fn is_part(at: &Path, bundled: &Bundled) -> bool {
    let Ok(there) = files::list(at) else {
        return false;
    };
    let is_ours = |there: &SkillFile| bundled.files.iter().any(|(file, _)| *file == there.path);
    let is_as_written = |(file, text): &(&str, &str)| match fs::read_to_string(at.join(file)) {
        Ok(there) => there == *text,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    there.iter().all(is_ours) && bundled.files.iter().all(is_as_written)
}

fn is_current(at: &Path, bundled: &Bundled) -> bool {
    bundled
        .files
        .iter()
        .all(|(file, text)| fs::read_to_string(at.join(file)).is_ok_and(|there| there == *text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skills::Skill;

    #[test]
    fn what_comes_with_the_program_is_a_sound_skill_and_does_not_come_back() {
        let home = tempfile::tempdir().unwrap();
        let settings = Settings::in_folder(home.path());
        let folder = home.path().join("skills");
        install(&folder, &settings).unwrap();
        let skill = Skill::load(&folder.join("tidy-notes")).unwrap();
        assert!(skill.warnings.is_empty(), "{:?}", skill.warnings);
        assert_eq!(skill.files.len(), 2);

        let changed = folder.join("tidy-notes/SKILL.md");
        fs::write(&changed, "---\ndescription: mine\n---\n").unwrap();
        install(&folder, &settings).unwrap();
        assert!(fs::read_to_string(&changed).unwrap().contains("mine"));
        fs::remove_dir_all(folder.join("tidy-notes")).unwrap();
        install(&folder, &settings).unwrap();
        assert!(!folder.join("tidy-notes").exists());
    }

    #[test]
    fn an_installation_that_did_not_come_to_its_end_is_completed() {
        let home = tempfile::tempdir().unwrap();
        let settings = Settings::in_folder(home.path());
        let at = home.path().join("skills/tidy-notes");
        fs::create_dir_all(&at).unwrap();
        install(&home.path().join("skills"), &settings).unwrap();
        assert!(Skill::load(&at).is_ok());
        let half = tempfile::tempdir().unwrap();
        let to = half.path().join("skills/tidy-notes");
        fs::create_dir_all(&to).unwrap();
        fs::copy(at.join("SKILL.md"), to.join("SKILL.md")).unwrap();
        install(&half.path().join("skills"), &Settings::in_folder(half.path())).unwrap();
        assert_eq!(Skill::load(&to).unwrap().files.len(), 2);

        // One of the same name that a person made is theirs.
        let other = tempfile::tempdir().unwrap();
        let at = other.path().join("skills/tidy-notes");
        fs::create_dir_all(&at).unwrap();
        fs::write(at.join("mine.md"), "mine").unwrap();
        install(&other.path().join("skills"), &Settings::in_folder(other.path())).unwrap();
        assert!(!at.join("SKILL.md").exists());
    }

    #[test]
    fn an_older_version_that_nobody_changed_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let settings = Settings::in_folder(home.path());
        let folder = home.path().join("skills");
        let at = folder.join("tidy-notes");
        fs::create_dir_all(&at).unwrap();
        fs::write(at.join("SKILL.md"), "old").unwrap();
        let hash = files::hash(&at).unwrap();
        settings
            .change(|decisions| drop(decisions.bundled.insert("tidy-notes".into(), hash)))
            .unwrap();
        install(&folder, &settings).unwrap();
        assert!(Skill::load(&at).is_ok());
    }
}
