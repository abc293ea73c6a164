//! Questions to the person before something runs, and the tools that make them necessary.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use reprise_engine::CancelToken;
use reprise_library::assistant::Writer;
use reprise_library::chats::{ChatId, Origin, TurnId};
use reprise_library::folders;
use reprise_library::skills::run::{Limits, ScriptRunner};
use reprise_library::skills::servers::{ServerLimits, Servers, config};
use reprise_library::skills::{Consent, Permission, Question, SkillShelf};
use reprise_model::template::ToolCalls;

use super::{Host, Model, Shared, lock};
use crate::types::{AppEvent, Asking, Failure};

/// How often a person who is asked is looked for to have stopped the answer instead.
const GLANCE: Duration = Duration::from_millis(100);

/// The questions that wait for the person.
#[derive(Default)]
pub(super) struct Questions {
    last: u64,
    waiting: Vec<(Asking, Sender<Permission>)>,
}

impl Host {
    /// The questions that wait for the person.
    pub fn questions(&self) -> Vec<Asking> {
        let questions = lock(&self.shared.questions);
        questions
            .waiting
            .iter()
            .map(|(asking, _)| asking.clone())
            .collect()
    }

    /// Takes the person's decision; one on a question that waits no more is of no use, and does no harm.
    pub fn decide(&self, question: u64, permission: Permission) {
        let questions = lock(&self.shared.questions);
        if let Some((_, decision)) = questions.waiting.iter().find(|(asking, _)| asking.id == question) {
            let _ = decision.send(permission);
        }
    }
}

/// Asks in the window.
pub(super) struct AskInWindow<'a> {
    pub(super) shared: &'a Shared,
    pub(super) chat: ChatId,
}

impl Consent for AskInWindow<'_> {
    fn ask(&mut self, question: &Question<'_>, cancel: &CancelToken) -> Permission {
        let (decision, decided) = mpsc::channel();
        let asking = {
            let mut questions = lock(&self.shared.questions);
            questions.last += 1;
            let asking = Asking {
                id: questions.last,
                chat: self.chat,
                question: question.told(),
            };
            questions.waiting.push((asking.clone(), decision));
            asking
        };
        let id = asking.id;
        self.shared.events.tell(AppEvent::Asks { asking });
        let permission = loop {
            match decided.recv_timeout(GLANCE) {
                Ok(permission) => break permission,
                Err(RecvTimeoutError::Timeout) if !cancel.is_cancelled() => {}
                Err(_) => break Permission::Deny,
            }
        };
        let mut questions = lock(&self.shared.questions);
        questions.waiting.retain(|(asking, _)| asking.id != id);
        drop(questions);
        self.shared.events.tell(AppEvent::Asked { id });
        permission
    }
}

/// What an answer may be made with beside the model.
pub(super) struct Kit<'a> {
    pub(super) shelf: SkillShelf,
    pub(super) runner: ScriptRunner,
    pub(super) chosen: Vec<String>,
    pub(super) offers_skills: bool,
    /// Answers with servers wait for one another: a server does one thing at a time.
    pub(super) servers: Option<MutexGuard<'a, Option<Servers>>>,
}

impl<'a> Kit<'a> {
    /// The tools for an answer; none where the model can call none, or there is nothing to call.
    pub(super) fn for_answer(
        shared: &Shared,
        model: &'a Model,
        chat: ChatId,
        turn: TurnId,
        cancel: &CancelToken,
    ) -> Result<Option<Kit<'a>>, Failure> {
        let writer: &Arc<Writer> = model.assistant.writer();
        if writer.tool_calls() != ToolCalls::Hermes {
            return Ok(None);
        }
        let offers = lock(&shared.settings).tools;
        let mut chosen: Vec<String> = Vec::new();
        for given in shared.store.given_up_to(turn)?.into_values().flatten() {
            match given.source {
                Origin::Skill { name }
                | Origin::Result {
                    skill: Some(name), ..
                } if !chosen.contains(&name) => {
                    chosen.push(name);
                }
                _ => {}
            }
        }
        if !offers && chosen.is_empty() {
            return Ok(None);
        }
        chosen.sort();
        let shelf = SkillShelf::of_person()?;
        let mut servers = None;
        if offers {
            let mut started = lock(&model.servers);
            if started.is_none() {
                *started = start_servers(shared, &shelf, chat, cancel)?;
            }
            servers = Some(started);
        }
        Ok(Some(Kit {
            shelf,
            runner: ScriptRunner::of_program(Limits::default()),
            chosen,
            offers_skills: offers,
            servers,
        }))
    }
}

/// Starts the servers of tools that the person allows; none where none are set up.
fn start_servers(
    shared: &Shared,
    shelf: &SkillShelf,
    chat: ChatId,
    cancel: &CancelToken,
) -> Result<Option<Servers>, Failure> {
    let (configs, notes) = config::read(&folders::data()?)?;
    for message in notes {
        shared.events.tell(AppEvent::Notice { message });
    }
    if configs.is_empty() {
        return Ok(None);
    }
    let mut consent = AskInWindow { shared, chat };
    let limits = ServerLimits::default();
    let (servers, failures) = Servers::start(configs, shelf.settings(), &mut consent, limits, cancel)?;
    for failure in failures {
        shared.events.tell(AppEvent::Notice {
            message: failure.to_string(),
        });
    }
    Ok(Some(servers))
}
