//! The tools that a model is given: choosing a skill, reading a file of one, running a script of one, and the tools of
//! servers. Everything a call names is looked up; what goes wrong is told to the model in words, so that it can go on.

use reprise_engine::{CancelToken, SegmentKind};
use reprise_model::template::ToolSpec;
use serde_json::json;

use super::calls::ToolCall;
use super::consent::{Consent, Question, may_run};
use super::error::SkillError;
use super::files::FileKind;
use super::run::{Job, Ran, ScriptRunner};
use super::servers::Servers;
use super::shelf::SkillShelf;
use super::skill::Skill;
use crate::assistant::Part;

const USE_SKILL: &str = "use_skill";
const READ_REFERENCE: &str = "read_reference";
const RUN_SCRIPT: &str = "run_script";
/// Characters of a description in the catalogue, where whole ones are too long together.
const SHORT_DESCRIPTION_CHARS: usize = 160;

/// What a model may use.
pub struct Toolbox<'a> {
    /// The person's skills.
    pub shelf: &'a SkillShelf,
    /// Whether the model may choose among them by itself.
    pub offers_skills: bool,
    /// Skills that the person chose; their text is in the messages already.
    pub chosen: Vec<String>,
    /// Runs scripts.
    pub runner: &'a ScriptRunner,
    /// Servers of tools, where there are any.
    pub servers: Option<&'a mut Servers>,
}

/// What a call did, for the person.
#[derive(Debug)]
pub enum Done<'a> {
    /// The model chose a skill.
    Skill {
        /// The skill.
        skill: &'a Skill,
    },
    /// It read a file of one.
    Reference {
        /// The skill.
        skill: &'a Skill,
        /// The file, by its path in the skill's folder.
        file: String,
    },
    /// A script ran.
    Script {
        /// The skill.
        skill: &'a Skill,
        /// How it went.
        ran: Ran,
    },
    /// A tool of a server was called.
    Server {
        /// The tool.
        tool: String,
        /// What it said, as far as it is kept.
        text: String,
        /// Whether it says that it failed.
        is_error: bool,
    },
    /// Nothing was done.
    Refused {
        /// Why, in words.
        reason: String,
    },
}

/// What the model is told, and what was done.
pub(super) struct Told<'a> {
    pub(super) parts: Vec<Part>,
    pub(super) done: Done<'a>,
}

/// A script that is about to run.
pub(super) struct Starting<'a> {
    pub(super) skill: &'a Skill,
    pub(super) script: &'a str,
    pub(super) arguments: &'a [String],
}

impl<'a> Toolbox<'a> {
    /// The tools, in an order that stays the same; `room_tokens` is what the catalogue may take.
    pub fn specs(&self, count: &dyn Fn(&str) -> usize, room_tokens: usize) -> Vec<ToolSpec> {
        let offered: Vec<&Skill> = match self.offers_skills {
            true => self.shelf.enabled().collect(),
            false => Vec::new(),
        };
        let mut specs = Vec::new();
        if !offered.is_empty() {
            let names: Vec<&str> = offered.iter().map(|skill| skill.name.as_str()).collect();
            specs.push(ToolSpec {
                name: USE_SKILL.into(),
                description: format!(
                    "Loads the instructions of a skill. Call it first when one of these fits what is asked:\n{}",
                    catalogue(&offered, count, room_tokens)
                ),
                parameters: json!({
                    "type": "object",
                    "properties": {"skill": {"type": "string", "enum": names}},
                    "required": ["skill"],
                }),
            });
        }
        let reach: Vec<&Skill> = self
            .shelf
            .enabled()
            .filter(|skill| self.can_reach(skill))
            .collect();
        let has = |kind| {
            reach
                .iter()
                .any(|skill| skill.files.iter().any(|file| file.kind == kind))
        };
        if has(FileKind::Reference) {
            specs.push(ToolSpec {
                name: READ_REFERENCE.into(),
                description: "Reads a file of a skill. Use it when the skill's instructions name the file."
                    .into(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "skill": {"type": "string", "description": "The skill's name"},
                        "file": {"type": "string", "description": "The file's path, such as references/a.md"},
                    },
                    "required": ["skill", "file"],
                }),
            });
        }
        if has(FileKind::Script) {
            specs.push(ToolSpec {
                name: RUN_SCRIPT.into(),
                description: "Runs a script of a skill and gives what it prints. Use it when the skill's instructions \
                              name the script."
                    .into(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "skill": {"type": "string", "description": "The skill's name"},
                        "script": {"type": "string", "description": "The script's path, such as scripts/a.sh"},
                        "arguments": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["skill", "script"],
                }),
            });
        }
        if let Some(servers) = &self.servers {
            specs.extend(servers.specs().cloned());
        }
        specs
    }

    /// Whether the model may use this skill's files.
    fn can_reach(&self, skill: &Skill) -> bool {
        self.offers_skills || self.chosen.contains(&skill.name)
    }

    /// Does what a call asks for.
    pub(super) fn call(
        &mut self,
        call: &ToolCall,
        consent: &mut dyn Consent,
        cancel: &CancelToken,
        on_start: &mut dyn FnMut(Starting<'_>),
    ) -> Told<'a> {
        let outcome = match call.name.as_str() {
            USE_SKILL => self.use_skill(call),
            READ_REFERENCE => self.read_reference(call),
            RUN_SCRIPT => self.run_script(call, consent, cancel, on_start),
            _ => self.call_server(call, cancel),
        };
        outcome.unwrap_or_else(|reason| Told {
            parts: vec![format!("Error: {reason}").into()],
            done: Done::Refused { reason },
        })
    }

    /// The skill that a call means; where only one is in use, it need not be named, and small models name it wrong.
    fn skill_of(&self, call: &ToolCall) -> Result<&'a Skill, String> {
        let name = call
            .text("skill")
            .or_else(|| call.text("name"))
            .unwrap_or_default();
        let name = match (name.trim(), self.chosen.as_slice()) {
            ("", [only]) => only.as_str(),
            ("", _) => return Err("the call names no skill".into()),
            (name, _) => name,
        };
        let skill = match (self.shelf.usable(name), self.chosen.as_slice()) {
            (Err(SkillError::Unknown { .. }), [only]) => self.shelf.usable(only),
            (usable, _) => usable,
        };
        let skill = skill.map_err(|error| error.to_string())?;
        if self.can_reach(skill) {
            Ok(skill)
        } else {
            Err(format!("the skill {name} was not chosen"))
        }
    }

    fn use_skill(&mut self, call: &ToolCall) -> Result<Told<'a>, String> {
        let skill = self.skill_of(call)?;
        if self.chosen.contains(&skill.name) {
            return Err(format!(
                "the instructions of {} are above already; follow them now",
                skill.name
            ));
        }
        self.chosen.push(skill.name.clone());
        Ok(Told {
            parts: skill_parts(skill, true),
            done: Done::Skill { skill },
        })
    }

    fn read_reference(&self, call: &ToolCall) -> Result<Told<'a>, String> {
        let skill = self.skill_of(call)?;
        let asked = call
            .text("file")
            .or_else(|| call.text("path"))
            .unwrap_or_default();
        let (file, text) = skill.reference(&asked).map_err(|error| error.to_string())?;
        Ok(Told {
            parts: vec![skill.reference_part(&file, &text)],
            done: Done::Reference { skill, file },
        })
    }

    fn run_script(
        &self,
        call: &ToolCall,
        consent: &mut dyn Consent,
        cancel: &CancelToken,
        on_start: &mut dyn FnMut(Starting<'_>),
    ) -> Result<Told<'a>, String> {
        let skill = self.skill_of(call)?;
        let asked = call.text("script").unwrap_or_default();
        let script = skill
            .file(FileKind::Script, &asked)
            .map_err(|error| error.to_string())?;
        let mut arguments = call.texts("arguments");
        // Small models count the script among its arguments, as a command line has it.
        let names_script = |first: &String| *first == script.path || *first == asked;
        if arguments.first().is_some_and(names_script) {
            arguments.remove(0);
        }
        let question = Question::Script {
            skill,
            script: &script.path,
            arguments: &arguments,
            confinement: self.runner.confinement(),
        };
        let may = may_run(self.shelf.settings(), skill, &question, consent, cancel);
        if !may.map_err(|error| error.to_string())? {
            return Err("the person did not allow the script to run; go on without it".into());
        }
        let job = Job {
            skill,
            script: &script.path,
            arguments: &arguments,
        };
        on_start(Starting {
            skill,
            script: &script.path,
            arguments: &arguments,
        });
        let ran = self.runner.run(&job, cancel).map_err(|error| error.to_string())?;
        Ok(Told {
            parts: vec![script_told(&ran).into()],
            done: Done::Script { skill, ran },
        })
    }

    fn call_server(&mut self, call: &ToolCall, cancel: &CancelToken) -> Result<Told<'a>, String> {
        let unknown = || {
            format!(
                "there is no tool {:?}; call one of those you were told of",
                call.name
            )
        };
        let servers = self
            .servers
            .as_mut()
            .filter(|servers| servers.has(&call.name))
            .ok_or_else(unknown)?;
        let called = servers
            .call(&call.name, call.arguments.clone(), cancel)
            .map_err(|error| error.to_string())?;
        let mut text = harmless(&called.text);
        if called.left_out_bytes > 0 {
            text += &format!("\n[{} bytes left out]", called.left_out_bytes);
        }
        Ok(Told {
            parts: vec![
                if called.is_error {
                    format!("Error: {text}")
                } else {
                    text
                }
                .into(),
            ],
            done: Done::Server {
                tool: call.name.clone(),
                text: called.text,
                is_error: called.is_error,
            },
        })
    }
}

/// What a model reads of a skill that is used: its text, the same wherever it stands, and then which files it may ask for.
pub fn skill_parts(skill: &Skill, can_ask: bool) -> Vec<Part> {
    let mut parts = vec![skill.part()];
    let files = skill.files_told();
    if can_ask && !files.is_empty() {
        parts.push(Part {
            text: files,
            kind: SegmentKind::Turn,
            owner: None,
        });
    }
    parts
}

/// A result of a script, for the model.
fn script_told(ran: &Ran) -> String {
    let output = match ran.output.trim() {
        "" => "(it printed nothing)",
        output => output,
    };
    format!(
        "{} {}. Its output:\n{}",
        ran.script,
        ran.ending(),
        harmless(output)
    )
}

/// A text in which nothing is taken for the marks of calls and results.
pub(super) fn harmless(text: &str) -> String {
    let mut text = text.to_owned();
    for tag in ["tool_call>", "tool_response>", "tools>"] {
        for opening in ["<", "</"] {
            let mark = format!("{opening}{tag}");
            if text.contains(&mark) {
                text = text.replace(&mark, &format!("{opening} {tag}"));
            }
        }
    }
    text
}

/// The skills with what they are for, one a line. Where that takes more than its room, each is cut.
fn catalogue(skills: &[&Skill], count: &dyn Fn(&str) -> usize, room_tokens: usize) -> String {
    let line = |skill: &Skill, chars: usize| {
        let short: String = skill.description.chars().take(chars).collect();
        let cut = if short.len() < skill.description.len() {
            " ..."
        } else {
            ""
        };
        format!("- {}: {short}{cut}", skill.name)
    };
    let all = |chars| {
        skills
            .iter()
            .map(|skill| line(skill, chars))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let mut text = all(usize::MAX);
    let mut chars = SHORT_DESCRIPTION_CHARS;
    while count(&text) > room_tokens && chars > 0 {
        text = all(chars);
        chars /= 2;
    }
    text
}
