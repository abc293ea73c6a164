//! Skills and tools in a chat: which are chosen, which the model may choose, and answers that use them.

use reprise_engine::{GenerateOptions, Owner};
use reprise_library::assistant::{Message, Part};
use reprise_library::folders;
use reprise_library::skills::run::{Limits, ScriptRunner};
use reprise_library::skills::servers::{ServerLimits, Servers, config};
use reprise_library::skills::{Answered, FileKind, Skill, SkillShelf, StepLimits, Toolbox, skill_parts};
use reprise_model::template::{ToolCalls, ToolSpec};

use crate::failure::{Failure, Outcome};
use crate::output::{counted, note};
use crate::session::Session;
use crate::skill::consent::AskInTerminal;

/// The catalogue of skills may take one part in so many of the window.
const CATALOGUE_SHARE: usize = 8;

pub struct Skills {
    shelf: SkillShelf,
    runner: ScriptRunner,
    servers: Option<Servers>,
    offers_skills: bool,
    chosen: Vec<String>,
    can_call: bool,
}

impl Skills {
    /// The person's skills, for the session's model.
    pub fn open(session: &Session) -> Outcome<Skills> {
        Ok(Skills {
            shelf: SkillShelf::of_person()?,
            servers: None,
            runner: ScriptRunner::of_program(Limits::default()),
            offers_skills: false,
            chosen: Vec::new(),
            can_call: session.tool_calls() == ToolCalls::Hermes,
        })
    }

    /// Lets the model choose by itself, and starts the servers of tools.
    pub fn with_tools(mut self, session: &Session) -> Outcome<Skills> {
        if !self.can_call {
            return Err(Failure::message(format!(
                "{} cannot call tools: its chat template knows of none, or of another form; choose a skill yourself \
                 (--skill NAME), or another model",
                session.info().name
            )));
        }
        self.offers_skills = true;
        self.start_servers(session)?;
        Ok(self)
    }

    fn start_servers(&mut self, session: &Session) -> Outcome {
        let (configs, notes) = config::read(&folders::data()?)?;
        notes.iter().for_each(|text| note(&format!("note: {text}")));
        if configs.is_empty() {
            return Ok(());
        }
        let settings = self.shelf.settings();
        let limits = ServerLimits::default();
        let started = session
            .interrupted(|cancel| Servers::start(configs, settings, &mut AskInTerminal, limits, cancel));
        let (servers, failures) = started?;
        failures
            .iter()
            .for_each(|failure| note(&format!("note: {failure}")));
        self.servers = Some(servers);
        Ok(())
    }

    pub fn has(&self, name: &str) -> bool {
        self.shelf.find(name).is_ok()
    }

    /// Chooses a skill for the chat; what the model reads of it. Of its files those that the person names are read too;
    /// a model that can call tools asks for others by itself.
    pub fn choose(&mut self, name: &str, references: &[String], session: &Session) -> Outcome<Vec<Part>> {
        let skill = self.shelf.usable(name)?;
        let mut parts = skill_parts(skill, self.can_call);
        for reference in references {
            let (path, text) = skill.reference(reference)?;
            parts.push(skill.reference_part(&path, &text));
        }
        let tokens: usize = parts.iter().map(|part| session.count(&part.text)).sum();
        note(&format!("[skill {}, {}]", skill.name, counted(tokens, "token")));
        if !self.can_call {
            tell_what_is_left(skill, references, session);
        }
        if !self.chosen.contains(&skill.name) {
            self.chosen.push(skill.name.clone());
        }
        Ok(parts)
    }

    /// Begins anew, with these skills.
    pub fn keep_only(&mut self, chosen: &[String]) {
        self.chosen.retain(|name| chosen.contains(name));
    }

    /// The skills, one a line.
    pub fn listed(&self) -> String {
        let lines: Vec<String> = self
            .shelf
            .enabled()
            .map(|skill| format!("/{}  {}", skill.name, skill.description))
            .collect();
        match lines.is_empty() {
            true => "there are no skills; see reprise skill --help for where they are looked for".into(),
            false => lines.join("\n"),
        }
    }

    fn toolbox(&mut self) -> Toolbox<'_> {
        Toolbox {
            shelf: &self.shelf,
            offers_skills: self.offers_skills,
            chosen: self.chosen.clone(),
            runner: &self.runner,
            servers: self.servers.as_mut(),
        }
    }

    /// The tools that the model is told of; none where it cannot call any, or there is no use for them.
    pub fn tools(&mut self, session: &Session, room_tokens: usize) -> Vec<ToolSpec> {
        if !self.can_call {
            return Vec::new();
        }
        self.toolbox()
            .specs(&|text| session.count(text), room_tokens / CATALOGUE_SHARE)
    }

    /// Answers with tools. What the model chose stays chosen.
    pub fn answer(
        &mut self,
        session: &mut Session,
        messages: &[Message],
        owner: &Owner,
        options: &GenerateOptions,
    ) -> Outcome<Answered> {
        let mut toolbox = self.toolbox();
        let limits = StepLimits::default();
        let answered =
            session.answer_with_tools(messages, owner, options, &mut toolbox, &mut AskInTerminal, limits);
        let chosen = toolbox.chosen;
        self.chosen = chosen;
        answered
    }
}

/// What a model that cannot ask for files misses, and what the person can do.
fn tell_what_is_left(skill: &Skill, given: &[String], session: &Session) {
    let mut left = Vec::new();
    for file in skill.files.iter().filter(|file| file.kind == FileKind::Reference) {
        let is_given = given.iter().any(|name| {
            skill
                .file(FileKind::Reference, name)
                .is_ok_and(|known| known == file)
        });
        if let (false, Ok((path, text))) = (is_given, skill.reference(&file.path)) {
            left.push(format!("{path} ({})", counted(session.count(&text), "token")));
        }
    }
    if !left.is_empty() {
        note(&format!(
            "note: this model cannot ask for files; to give it one: --reference FILE, of: {}",
            left.join(", ")
        ));
    }
    if skill.files.iter().any(|file| file.kind == FileKind::Script) {
        note(&format!(
            "note: this model cannot run scripts; run one yourself with: reprise skill run {0} SCRIPT",
            skill.name
        ));
    }
}
