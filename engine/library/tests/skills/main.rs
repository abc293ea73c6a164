//! Skills as a person uses them: real ones, hostile ones, their scripts, servers of tools, and answers that use them all.

#![allow(missing_docs)]

mod answering;
mod real;
#[cfg(unix)]
mod scripts;
mod servers;

use std::fs;
use std::path::{Path, PathBuf};

use reprise_engine::CancelToken;
use reprise_library::skills::run::{Limits, ScriptRunner};
use reprise_library::skills::{Consent, Permission, Places, Question, Settings, SkillShelf};

/// A program of this package that is built beside the tests.
pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap().join("examples");
    let file = built.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        file.is_file(),
        "{} is missing; build it with: cargo build -p reprise-library --examples",
        file.display()
    );
    file
}

pub fn runner(limits: Limits) -> ScriptRunner {
    ScriptRunner::with_helper(example("confine"), limits)
}

/// A home with skills, made of pairs of file and text.
pub struct World {
    pub folder: tempfile::TempDir,
    pub shelf: SkillShelf,
}

pub fn world(files: &[(&str, &str)]) -> World {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = folder.path().join(".agents/skills").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let data = folder.path().join("data");
    let places = Places::of(None, Some(folder.path()), &data);
    let shelf = SkillShelf::open(&places, Settings::in_folder(&data)).unwrap();
    World { folder, shelf }
}

/// Says the same to every question, and keeps what was asked.
pub struct Says {
    pub permission: Permission,
    pub asked: Vec<String>,
}

impl Says {
    pub fn always_the_same(permission: Permission) -> Says {
        Says {
            permission,
            asked: Vec::new(),
        }
    }
}

impl Consent for Says {
    fn ask(&mut self, question: &Question<'_>, _cancel: &CancelToken) -> Permission {
        self.asked.push(question.words());
        self.permission
    }
}
