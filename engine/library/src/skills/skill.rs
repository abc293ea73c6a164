//! One skill: a folder with a SKILL.md, read and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reprise_engine::{Owner, SegmentKind};

use super::error::{SkillError, SkillFault};
use super::files::{self, FileKind, SkillFile, refused};
use super::front_matter::{self, FrontMatter, is_name};
use super::toolbox::harmless;
use crate::assistant::Part;

/// Bytes that a SKILL.md may have.
pub const MAX_SKILL_BYTES: u64 = 1024 * 1024;
/// The kind of owner under which skills' chunks are kept.
pub const SKILL_OWNER: &str = "skill";

/// A skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it tells a model: the Markdown behind the front matter.
    pub body: String,
    /// Under which licence it is.
    pub license: Option<String>,
    /// What it needs.
    pub compatibility: Option<String>,
    /// Tools that its author expects; said to the person, and nothing is allowed by it.
    pub allowed_tools: Vec<String>,
    /// What else its front matter says.
    pub metadata: BTreeMap<String, String>,
    /// Its folder.
    pub folder: PathBuf,
    /// Its files besides SKILL.md.
    pub files: Vec<SkillFile>,
    /// What is odd about it.
    pub warnings: Vec<String>,
}

impl Skill {
    /// Reads a skill's folder.
    ///
    /// # Errors
    /// When it is none, or one that cannot be used safely.
    pub fn load(folder: &Path) -> Result<Skill, SkillError> {
        let Some(file) = ["SKILL.md", "skill.md"]
            .into_iter()
            .find(|name| folder.join(name).is_file())
        else {
            return Err(refused(folder, SkillFault::NoFile));
        };
        let text = files::read_text("", folder, file, MAX_SKILL_BYTES).map_err(|error| match error {
            SkillError::BadFile { fault, .. } => refused(folder, fault),
            other => other,
        })?;
        let folder_name = folder
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let mut skill = Skill::parse(&text, folder_name).map_err(|fault| refused(folder, fault))?;
        skill.files = files::list(folder)?;
        skill.files.retain(|other| other.path != file);
        skill.folder = folder.to_path_buf();
        Ok(skill)
    }

    /// Reads the text of a SKILL.md in a folder of this name.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str, folder_name: &str) -> Result<Skill, SkillFault> {
        let text = files::plain(text);
        let (front, body) = front_matter::cut(&text);
        let mut front = match front {
            Some(yaml) => front_matter::parse(yaml)?,
            None => FrontMatter {
                description: first_paragraph(body),
                warnings: vec![
                    "it has no front matter; its name is the folder's, its description the first paragraph"
                        .into(),
                ],
                ..FrontMatter::default()
            },
        };
        if front.description.is_empty() {
            return Err(SkillFault::NoDescription);
        }
        let name = match front.name.take() {
            Some(name) => {
                if name != folder_name && !folder_name.is_empty() {
                    let warning = format!("its name {name} differs from its folder's, {folder_name}");
                    front.warnings.push(warning);
                }
                name
            }
            None if is_name(folder_name) => folder_name.to_owned(),
            None => return Err(SkillFault::BadName(folder_name.to_owned())),
        };
        Ok(Skill {
            name,
            description: front.description,
            body: body.trim().to_owned(),
            license: front.license,
            compatibility: front.compatibility,
            allowed_tools: front.allowed_tools,
            metadata: front.metadata,
            folder: PathBuf::new(),
            files: Vec::new(),
            warnings: front.warnings,
        })
    }

    /// The hash of all that is in its folder.
    ///
    /// # Errors
    /// When the folder cannot be read, or no longer is a safe one.
    pub fn hash(&self) -> Result<String, SkillError> {
        files::hash(&self.folder)
    }

    /// Under which owner its chunks are kept.
    pub fn owner(&self) -> Owner {
        owner_of(&self.name)
    }

    /// What a model reads of it: the same text wherever it stands, so that it is read once.
    pub fn part(&self) -> Part {
        Part {
            text: harmless(&format!("# Skill: {}\n\n{}\n", self.name, self.body)),
            kind: SegmentKind::Skill,
            owner: Some(self.owner()),
        }
    }

    /// What of its files a model is told: a part of its own, so that the skill's text stays the same without tools.
    pub fn files_told(&self) -> String {
        let of = |kind| -> Vec<&str> {
            let files = self.files.iter().filter(|file| file.kind == kind);
            files.map(|file| file.path.as_str()).collect()
        };
        let mut text = String::new();
        let (references, scripts) = (of(FileKind::Reference), of(FileKind::Script));
        if !references.is_empty() {
            text += &format!("\nFiles for read_reference: {}\n", references.join(", "));
        }
        if !scripts.is_empty() {
            text += &format!("\nScripts for run_script: {}\n", scripts.join(", "));
        }
        text
    }

    /// The file that is meant: by its path in the folder, or by its name alone where that is clear.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn file(&self, kind: FileKind, asked: &str) -> Result<&SkillFile, SkillError> {
        let asked = asked.trim().trim_start_matches("./");
        // A script may be read as well as run; nothing else may be run.
        let fits = |file: &&SkillFile| kind == FileKind::Reference || file.kind == kind;
        let candidates = || self.files.iter().filter(fits);
        let by_name = |file: &&SkillFile| file.path.rsplit('/').next() == Some(asked);
        let found = candidates().find(|file| file.path == asked).or_else(|| {
            let mut named = candidates().filter(by_name);
            named.next().filter(|_| named.next().is_none())
        });
        found.ok_or_else(|| SkillError::NoFile {
            skill: self.name.clone(),
            what: kind.word(),
            file: asked.chars().take(200).collect(),
            known: candidates().map(|file| file.path.clone()).collect(),
        })
    }

    /// The text of one of its files.
    ///
    /// # Errors
    /// When there is no such file, or it is no text.
    pub fn reference(&self, asked: &str) -> Result<(String, String), SkillError> {
        let path = self.file(FileKind::Reference, asked)?.path.clone();
        let text = files::read_text(&self.name, &self.folder, &path, files::MAX_REFERENCE_BYTES)?;
        Ok((path, text))
    }

    /// A file's text as a part of a prompt, kept for the skill.
    pub fn reference_part(&self, path: &str, text: &str) -> Part {
        Part {
            text: harmless(&format!(
                "# File {path} of the skill {}\n\n{}\n",
                self.name,
                text.trim()
            )),
            kind: SegmentKind::Skill,
            owner: Some(self.owner()),
        }
    }
}

/// Under which owner the chunks of the skill with this name are kept.
pub fn owner_of(name: &str) -> Owner {
    Owner::new(SKILL_OWNER, name).unwrap_or_else(|_| unreachable!("a skill's name has 1 to 64 letters"))
}

/// The first paragraph that is no heading, on one line.
fn first_paragraph(body: &str) -> String {
    let paragraph = body
        .split("\n\n")
        .map(str::trim)
        .find(|paragraph| !paragraph.is_empty() && !paragraph.starts_with('#'));
    let words: Vec<&str> = paragraph.unwrap_or_default().split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .take(front_matter::DESCRIPTION_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn skill_at(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("tidy");
        fs::create_dir_all(folder.join("references")).unwrap();
        fs::write(folder.join("SKILL.md"), text).unwrap();
        (home, folder)
    }

    fn fault(outcome: Result<Skill, SkillError>) -> SkillFault {
        match outcome {
            Err(SkillError::Skill { fault, .. }) => fault,
            other => panic!("{other:?}"),
        }
    }

    const PLAIN: &[u8] = b"---\nname: tidy\ndescription: Tidies.\n---\n# Tidy\n\nDo it.\n";

    #[test]
    fn a_folder_is_read_with_its_files_by_kind() {
        let (_home, folder) = skill_at(PLAIN);
        fs::create_dir_all(folder.join("scripts/deep")).unwrap();
        for file in [
            "references/a.md",
            "scripts/run.py",
            "notes.md",
            "scripts/deep/b.py",
            ".hidden",
        ] {
            fs::write(folder.join(file), "x").unwrap();
        }
        let skill = Skill::load(&folder).unwrap();
        let files: Vec<(&str, FileKind)> = skill.files.iter().map(|f| (f.path.as_str(), f.kind)).collect();
        assert_eq!(
            files,
            [
                ("notes.md", FileKind::Reference),
                ("references/a.md", FileKind::Reference),
                ("scripts/run.py", FileKind::Script)
            ]
        );
        assert!(skill.warnings.is_empty());
        assert_eq!(
            skill.reference("a.md").unwrap(),
            ("references/a.md".into(), "x".into())
        );
        for escape in [
            "../x",
            "/etc/passwd",
            "references/../../x",
            "SKILL.md",
            "scripts/deep/b.py",
            "",
        ] {
            let error = skill.reference(escape).unwrap_err().to_string();
            assert!(error.contains("it has: notes.md, references/a.md"), "{error}");
        }
        assert!(skill.file(FileKind::Script, "notes.md").is_err());
        let hash = skill.hash().unwrap();
        fs::write(folder.join("scripts/deep/b.py"), "y").unwrap();
        assert_ne!(hash, skill.hash().unwrap(), "what a script may use is part of it");
    }

    #[test]
    fn marks_line_ends_and_missing_front_matter_are_tolerated() {
        let (_home, folder) =
            skill_at(b"\xef\xbb\xbf---\r\nname: other\r\ndescription: Tidies.\r\n---\r\nDo.\r\n");
        let skill = Skill::load(&folder).unwrap();
        assert_eq!((skill.name.as_str(), skill.body.as_str()), ("other", "Do."));
        assert_eq!(skill.warnings.len(), 1, "{:?}", skill.warnings);
        let (_home, folder) = skill_at(b"# Tidy\n\nTidies\nnotes.\n\nMore.\n");
        let skill = Skill::load(&folder).unwrap();
        assert_eq!(
            (skill.name.as_str(), skill.description.as_str()),
            ("tidy", "Tidies notes.")
        );
        assert_eq!(skill.warnings.len(), 1);
    }

    #[test]
    fn what_cannot_be_used_is_refused_in_words() {
        let (_home, folder) = skill_at(b"---\nname: tidy\n---\nDo.\n");
        assert_eq!(fault(Skill::load(&folder)), SkillFault::NoDescription);
        let (_home, folder) = skill_at(b"---\nname: tidy\ndescription: \xff\n---\n");
        assert_eq!(fault(Skill::load(&folder)), SkillFault::NotText);
        let (_home, folder) = skill_at(&[PLAIN, &vec![b'x'; 1 << 20]].concat());
        assert!(matches!(fault(Skill::load(&folder)), SkillFault::TooLarge { .. }));
        let (_home, folder) = skill_at(PLAIN);
        fs::remove_file(folder.join("SKILL.md")).unwrap();
        assert_eq!(fault(Skill::load(&folder)), SkillFault::NoFile);
    }

    #[cfg(unix)]
    #[test]
    fn links_may_not_lead_out_of_the_folder() {
        use std::os::unix::fs::symlink;
        let (home, folder) = skill_at(PLAIN);
        let skill = Skill::load(&folder).unwrap();
        symlink("SKILL.md", folder.join("again.md")).unwrap();
        symlink("..", folder.join("references/up")).unwrap();
        assert!(
            Skill::load(&folder).is_ok(),
            "a link that stays inside is a file like any other"
        );
        fs::write(home.path().join("secret"), "s").unwrap();
        symlink("../../secret", folder.join("references/secret.md")).unwrap();
        assert_eq!(
            fault(Skill::load(&folder)),
            SkillFault::LinkOut("references/secret.md".into())
        );
        assert!(skill.hash().is_err(), "nor after it was read");
        let (_home, folder) = skill_at(PLAIN);
        fs::remove_file(folder.join("SKILL.md")).unwrap();
        symlink("/etc/hostname", folder.join("SKILL.md")).unwrap();
        assert!(matches!(fault(Skill::load(&folder)), SkillFault::LinkOut(_)));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(---\n)?[ -~\n\t:&*\\[\\]{}'\"|>#-]{0,200}(\n---\n)?.{0,40}", name in ".{0,12}") {
            let text: String = text;
            let name: String = name;
            if let Ok(skill) = Skill::parse(&text, &name) {
                prop_assert!(is_name(&skill.name) && !skill.description.is_empty());
                prop_assert!(skill.description.chars().count() <= front_matter::DESCRIPTION_CHARS);
            }
        }
    }
}
