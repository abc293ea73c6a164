//! Ten skills that people published, kept outside the repository in `REPRISE_TEST_DATA` (default `../shared/data` beside
//! it).

use std::path::PathBuf;

use reprise_library::skills::Skill;

fn skills() -> Option<PathBuf> {
    let data = std::env::var_os("REPRISE_TEST_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let folder = data.join("skills");
    if !folder.is_dir() {
        eprintln!(
            "skipped: no test skills at {} (set REPRISE_TEST_DATA)",
            folder.display()
        );
        return None;
    }
    Some(folder)
}

#[test]
fn ten_published_skills_load() {
    let Some(folder) = skills() else { return };
    let mut loaded = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let skill = Skill::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(path.file_name().unwrap().to_str(), Some(skill.name.as_str()));
        assert!(skill.warnings.is_empty(), "{}: {:?}", skill.name, skill.warnings);
        assert!(
            skill.body.len() > 1_000 && skill.body.starts_with('#'),
            "{}",
            skill.name
        );
        assert!(skill.description.len() > 20, "{}", skill.description);
        assert_eq!(skill.hash().unwrap().len(), 64);
        for file in &skill.files {
            let (path, text) = skill.reference(&file.path).unwrap();
            assert!(path.starts_with("references/") && !text.is_empty());
        }
        loaded += 1;
    }
    assert_eq!(loaded, 10);
    let files = Skill::load(&folder.join("senior-data-scientist")).unwrap().files;
    assert_eq!(files.len(), 3);
}
