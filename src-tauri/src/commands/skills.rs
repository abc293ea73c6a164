//! What the page may ask for about skills, and the person's decisions on what they want to run.

use reprise_library::folders;
use reprise_library::skills::{Permission, Places, SkillShelf};
use reprise_model::template::ToolCalls;
use tauri::State;

use super::Outcome;
use crate::app::App;
use crate::types::{SkillList, SkillShown};

#[tauri::command(async)]
pub fn list_skills(app: State<'_, App>) -> Outcome<SkillList> {
    let shelf = SkillShelf::of_person()?;
    let loaded = app.host.loaded();
    let mut skills = Vec::new();
    for listed in shelf.skills() {
        let part = listed.skill.part();
        skills.push(SkillShown {
            skill: shelf.summary(listed)?,
            tokens: loaded.as_ref().map(|loaded| loaded.writer.count(&part.text)),
        });
    }
    let shadowed = shelf.shadowed().iter().map(|shadowed| {
        format!(
            "{} does not count: the skill {} is already in {}",
            folders::shown(&shadowed.folder),
            shadowed.name,
            folders::shown(&shadowed.by)
        )
    });
    Ok(SkillList {
        skills,
        troubles: shelf
            .refused()
            .iter()
            .map(ToString::to_string)
            .chain(shadowed)
            .collect(),
        folders: Places::of_person()?
            .folders()
            .map(|(_, folder)| folders::shown(folder))
            .collect(),
        can_call: loaded.map(|loaded| loaded.writer.tool_calls() == ToolCalls::Hermes),
    })
}

#[tauri::command(async)]
pub fn enable_skill(name: String, enabled: bool) -> Outcome<()> {
    Ok(SkillShelf::of_person()?.set_enabled(&name, enabled)?)
}

#[tauri::command(async)]
pub fn trust_skill(name: String, trusted: bool) -> Outcome<()> {
    let shelf = SkillShelf::of_person()?;
    let skill = &shelf.find(&name)?.skill;
    Ok(shelf.set_trusted(skill, trusted)?)
}

#[tauri::command(async)]
pub fn read_skill_file(name: String, path: String) -> Outcome<String> {
    let shelf = SkillShelf::of_person()?;
    let (_, text) = shelf.find(&name)?.skill.reference(&path)?;
    Ok(text)
}

#[tauri::command(async)]
pub fn answer_question(app: State<'_, App>, id: u64, permission: Permission) -> Outcome<()> {
    app.host.decide(id, permission);
    Ok(())
}
