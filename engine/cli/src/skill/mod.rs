//! `reprise skill`: which skills there are, what is in them, whose scripts may run, and running one.

pub mod consent;
pub mod show;

use clap::Subcommand;
use reprise_engine::CancelToken;
use reprise_library::folders::shown;
use reprise_library::skills::run::{Ended, Job, Limits, ScriptRunner};
use reprise_library::skills::{FileKind, ListedSkill, Skill, SkillShelf};
use std::time::Duration;

use crate::arguments::at_least;
use crate::failure::{Failure, Outcome};
use crate::interrupts;
use crate::output::{counted, note, print};

/// Width of a line of text in a list.
const DESCRIPTION_CHARS: usize = 100;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Skills are folders with a SKILL.md in .agents/skills and .claude/skills, of the project (from here up to the root of the
repository) and of your home, and in the program's own folder. Of two with the same name the project's counts, then
yours.

Examples:
  reprise skill list
  reprise skill run tidy-notes scripts/notes.sh notes.txt
  reprise chat --skill tidy-notes")]
pub enum SkillAction {
    /// List the skills: where they are, whether they are on, what is wrong with others
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a skill: what it says, its files, whether its scripts may run
    Show {
        /// Its name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a script of a skill, as confined as the system allows
    #[command(override_usage = "reprise skill run [OPTIONS] <NAME> [SCRIPT] [ARGUMENTS]...")]
    Run {
        /// The skill's name
        name: String,
        /// The script, by its path in the skill's folder; without one the scripts are listed
        script: Option<String>,
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
        /// Seconds that it may take
        #[arg(long, value_name = "N", default_value = "60", value_parser = at_least::<1>)]
        time: usize,
    },
    /// Let a model run the scripts of a skill without asking, until a file of it changes
    Trust {
        /// Its name
        name: String,
        /// Ask again
        #[arg(long)]
        off: bool,
    },
    /// Switch a skill on
    Enable {
        /// Its name
        name: String,
    },
    /// Switch a skill off
    Disable {
        /// Its name
        name: String,
    },
}

pub fn run(action: SkillAction) -> Outcome {
    let mut shelf = SkillShelf::of_person()?;
    match action {
        SkillAction::List { json } => list(&shelf, json),
        SkillAction::Show { name, json } => show(&shelf, shelf.find(&name)?, json),
        SkillAction::Run {
            name,
            script,
            arguments,
            time,
        } => run_script(shelf.usable(&name)?, script, &arguments, time),
        SkillAction::Trust { name, off } => {
            let skill = &shelf.find(&name)?.skill;
            shelf.set_trusted(skill, !off)?;
            print(&match off {
                true => format!("scripts of {name} run only when you allow it each time\n"),
                false => format!(
                    "scripts of {name} may run without asking, until a file of it changes ({})\n",
                    counted(scripts(skill).len(), "script")
                ),
            })
        }
        SkillAction::Enable { name } => {
            shelf.set_enabled(&name, true)?;
            print(&format!("{name} is on\n"))
        }
        SkillAction::Disable { name } => {
            shelf.set_enabled(&name, false)?;
            print(&format!("{name} is off\n"))
        }
    }
}

fn scripts(skill: &Skill) -> Vec<&str> {
    let scripts = skill.files.iter().filter(|file| file.kind == FileKind::Script);
    scripts.map(|file| file.path.as_str()).collect()
}

fn list(shelf: &SkillShelf, is_json: bool) -> Outcome {
    if is_json {
        let rows: Result<Vec<_>, _> = shelf
            .skills()
            .iter()
            .map(|listed| shelf.summary(listed))
            .collect();
        let rows = rows?;
        return print(&format!("{}\n", serde_json::to_string_pretty(&rows)?));
    }
    let width = shelf
        .skills()
        .iter()
        .map(|listed| listed.skill.name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for listed in shelf.skills() {
        let skill = &listed.skill;
        let short: String = skill.description.chars().take(DESCRIPTION_CHARS).collect();
        text += &format!(
            "{:width$}  {:7}  {}{short}{}\n",
            skill.name,
            listed.source.word(),
            if listed.is_enabled { "" } else { "(off) " },
            if short.len() < skill.description.len() {
                " ..."
            } else {
                ""
            },
        );
    }
    if text.is_empty() {
        text = "there are no skills\n".into();
    }
    print(&text)?;
    for listed in shelf.skills() {
        for warning in &listed.skill.warnings {
            note(&format!("note: {}: {warning}", listed.skill.name));
        }
    }
    for other in shelf.shadowed() {
        note(&format!(
            "note: {} does not count: {} in {} has its name",
            shown(&other.folder),
            other.name,
            shown(&other.by)
        ));
    }
    for refused in shelf.refused() {
        note(&format!("note: {refused}"));
    }
    Ok(())
}

fn show(shelf: &SkillShelf, listed: &ListedSkill, is_json: bool) -> Outcome {
    let skill = &listed.skill;
    if is_json {
        return print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&shelf.summary(listed)?)?
        ));
    }
    let mut text = format!(
        "{} ({}, {})\n{}\n\nfolder     {}\n",
        skill.name,
        listed.source.word(),
        if listed.is_enabled { "on" } else { "off" },
        skill.description,
        shown(&skill.folder)
    );
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text += &format!("{name:10} {value}\n");
        }
    };
    line("licence", skill.license.as_deref().unwrap_or_default());
    line("needs", skill.compatibility.as_deref().unwrap_or_default());
    line("expects", &skill.allowed_tools.join(", "));
    for file in &skill.files {
        line(file.kind.word(), &format!("{} ({} bytes)", file.path, file.bytes));
    }
    if !scripts(skill).is_empty() {
        let trusted = match shelf.is_trusted(skill)? {
            true => "may run without asking, until a file changes",
            false => "run only when you allow it",
        };
        line("scripts", trusted);
    }
    text += &format!("\n{}\n", skill.body);
    print(&text)?;
    skill
        .warnings
        .iter()
        .for_each(|warning| note(&format!("note: {warning}")));
    Ok(())
}

/// Runs a script. The person asked for it, so nobody is asked again.
fn run_script(skill: &Skill, script: Option<String>, arguments: &[String], seconds: usize) -> Outcome {
    let Some(script) = script else {
        let scripts = scripts(skill);
        if scripts.is_empty() {
            return Err(Failure::message(format!(
                "the skill {} has no scripts",
                skill.name
            )));
        }
        return print(&format!("{}\n", scripts.join("\n")));
    };
    let runner = ScriptRunner::of_program(Limits {
        time: Duration::from_secs(seconds as u64),
        output_bytes: 1 << 20,
        ..Limits::default()
    });
    note(&format!("[{}]", runner.confinement().words()));
    let cancel = CancelToken::default();
    let seen = cancel.clone();
    interrupts::on_stop(move |stop| {
        if seen.is_cancelled() {
            interrupts::end(stop);
        }
        seen.cancel();
    })?;
    let job = Job {
        skill,
        script: &script,
        arguments,
    };
    let ran = runner.run(&job, &cancel)?;
    print(&ran.output)?;
    if !ran.output.is_empty() && !ran.output.ends_with('\n') {
        print("\n")?;
    }
    match ran.ended {
        Ended::Exit(0) => Ok(()),
        Ended::Cancelled => Err(Failure::Interrupted),
        _ => Err(Failure::message(format!("{} {}", ran.script, ran.ending()))),
    }
}
