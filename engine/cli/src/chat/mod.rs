//! `reprise chat`: a conversation in the terminal, or through a pipe.

mod command;
mod conversation;
mod documents;
mod input;
mod skills;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use reprise_engine::{Answer, GenerateOptions, Owner, Reuse};
use reprise_library::assistant::{CHAT_REPETITION_PENALTY, CHAT_TEMPERATURE, LaidOut, Message, Part};
use reprise_library::models::Shelf;
use reprise_library::{SYSTEM, system_words};

use crate::arguments::{ChatArguments, SamplingDefaults};
use crate::ask::sources;
use crate::failure::{Failure, Outcome};
use crate::output::{counted, decode_rate, footer, note, with_commas};
use crate::session::{Session, program_owner};
use command::{Command, HELP};
use conversation::Conversation;
use documents::Documents;
use input::{Input, Read};
use skills::Skills;

const DEFAULTS: SamplingDefaults = SamplingDefaults {
    temperature: CHAT_TEMPERATURE,
    repetition_penalty: CHAT_REPETITION_PENALTY,
};

pub fn run(arguments: &ChatArguments) -> Outcome {
    let model = Shelf::of_machine()?.resolve(arguments.model.model.as_deref())?;
    let quiet = arguments.answer.quiet;
    let load_options = arguments
        .keep
        .applied(arguments.model.load_options(true), Reuse::default());
    let session = Session::load("chat", &model, &load_options, quiet)?;
    let mut input = Input::open()?;
    if input.is_terminal() && !quiet {
        let info = session.info();
        note(&format!(
            "{} | {} | window {} | Ctrl-C stops an answer, /help lists commands, Ctrl-D leaves",
            info.name,
            info.quantisation,
            counted(info.context_tokens, "token")
        ));
    }
    let documents = match arguments.doc.is_empty() && !arguments.indexed {
        true => None,
        false => Some(Documents::open(&arguments.doc, &arguments.password, &session)?),
    };
    let options = arguments.answer.generate_options(match documents {
        None => &DEFAULTS,
        // What documents say is asked for in their own words.
        Some(_) => &crate::ask::DEFAULTS,
    });
    // Who asks about documents wants answers out of them, unless told otherwise.
    let system = documents.is_some().then(|| SYSTEM.to_owned());
    let conversation = Conversation::new(arguments.system.clone().or(system));
    let mut chat = Chat {
        session,
        owner: program_owner("chat")?,
        options,
        conversation,
        documents,
        skills: None,
        next_skill: Vec::new(),
        standing: arguments.skill.clone(),
        quiet,
        totals: Totals::default(),
    };
    if arguments.tools {
        let skills = Skills::open(&chat.session)?.with_tools(&chat.session)?;
        chat.skills = Some(skills);
    }
    for name in &arguments.skill {
        let parts = chat.choose(name, &arguments.reference)?;
        chat.conversation.add_skill(parts);
    }
    let mut failed = false;
    loop {
        let text = match input.read()? {
            Read::Text(text) => text,
            Read::Nothing => continue,
            Read::End => break,
        };
        match chat.take(&text) {
            Ok(Next::Stay) => {}
            Ok(Next::Leave) => break,
            // One failed turn does not end a chat; a pipe learns of it by the exit code.
            Err(Failure::Message(text)) => {
                note(&format!("error: {text}"));
                failed = true;
            }
            Err(other) => return Err(other),
        }
    }
    if failed && !input.is_terminal() {
        Err(Failure::Told)
    } else {
        Ok(())
    }
}

fn opened<'a>(skills: &'a mut Option<Skills>, session: &Session) -> Outcome<&'a mut Skills> {
    let opened = match skills.take() {
        Some(opened) => opened,
        None => Skills::open(session)?,
    };
    Ok(skills.insert(opened))
}

/// What comes after a line.
enum Next {
    Stay,
    Leave,
}

#[derive(Default)]
struct Totals {
    answers: usize,
    prompt_tokens: usize,
    reused_tokens: usize,
    answer_tokens: usize,
    decode_time: Duration,
}

struct Chat {
    session: Session,
    /// Under which what is read is kept.
    owner: Owner,
    options: GenerateOptions,
    conversation: Conversation,
    /// What it is about.
    documents: Option<Documents>,
    /// Once one is asked for.
    skills: Option<Skills>,
    /// A skill that the next question is asked with.
    next_skill: Vec<Part>,
    /// Skills of the whole chat.
    standing: Vec<String>,
    quiet: bool,
    totals: Totals,
}

impl Chat {
    fn take(&mut self, text: &str) -> Outcome<Next> {
        match Command::parse(text) {
            Command::Say(text) => {
                let skill = std::mem::take(&mut self.next_skill);
                self.conversation.ask(skill, text);
                self.answer()?;
            }
            Command::Skill(None) => {
                let listed = self.skills()?.listed();
                note(&listed);
            }
            Command::Skill(Some(text)) => {
                let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
                self.use_skill(name, rest.trim())?;
            }
            Command::Regenerate => {
                if !self.conversation.take_back_answer() {
                    return Err(Failure::message(
                        "there is no answer yet to make anew; ask something first",
                    ));
                }
                self.answer()?;
            }
            Command::Erase => {
                self.begin();
                let erased = self.session.erase(&self.owner)?;
                note(&format!(
                    "a new chat begins; of this one and of earlier ones in the terminal nothing is kept any more ({} \
                     erased)",
                    counted(erased.chunks, "chunk")
                ));
            }
            Command::New => {
                self.begin();
                note("a new chat begins");
            }
            Command::System(None) => match self.conversation.system() {
                Some(text) => note(&format!("system: {text}")),
                None => note("no system text is set; /system TEXT sets one"),
            },
            Command::System(Some(text)) => {
                self.conversation.set_system(text);
                note("the system text is set and counts from the next message on");
            }
            Command::Save(None) => return Err(Failure::message("where to? /save FILE")),
            Command::Save(Some(file)) => self.save(Path::new(&file))?,
            Command::Stats => self.stats()?,
            Command::Help => note(HELP),
            Command::Quit => return Ok(Next::Leave),
            Command::Unknown(name, rest) if self.has_skill(&name) => {
                self.use_skill(name.trim_start_matches('/'), rest.as_deref().unwrap_or_default())?;
            }
            Command::Unknown(name, _) => {
                let way =
                    "/help lists the commands; to send text that begins with a slash, put a space before it";
                return Err(Failure::message(format!("there is no command {name}; {way}")));
            }
        }
        Ok(Next::Stay)
    }

    fn begin(&mut self) {
        self.conversation.clear();
        self.next_skill.clear();
        if let Some(skills) = &mut self.skills {
            skills.keep_only(&self.standing);
        }
    }

    /// The person's skills, looked for when the first one is asked for.
    fn skills(&mut self) -> Outcome<&mut Skills> {
        opened(&mut self.skills, &self.session)
    }

    /// Whether a command that there is not is the name of a skill.
    fn has_skill(&mut self, command: &str) -> bool {
        let name = command.trim_start_matches('/');
        self.skills().is_ok_and(|skills| skills.has(name))
    }

    /// Chooses a skill for the chat; what the model reads of it.
    fn choose(&mut self, name: &str, references: &[String]) -> Outcome<Vec<Part>> {
        opened(&mut self.skills, &self.session)?.choose(name, references, &self.session)
    }

    /// Asks something with a skill; without a question the next one is asked with it.
    fn use_skill(&mut self, name: &str, question: &str) -> Outcome {
        let parts = self.choose(name, &[])?;
        if question.is_empty() {
            self.next_skill.extend(parts);
            note("what you write next is asked with it");
            return Ok(());
        }
        self.next_skill.clear();
        self.conversation.ask(parts, question.to_owned());
        self.answer()
    }

    /// Answers the last message.
    fn answer(&mut self) -> Outcome {
        let hidden = self.conversation.hidden();
        let outcome = self.try_answer();
        match &outcome {
            Ok((answer, between)) => {
                self.conversation.answered(&answer.text, between.clone());
                if !self.quiet {
                    note(&footer(answer));
                }
                self.totals.answers += 1;
                self.totals.prompt_tokens += answer.prompt_tokens;
                self.totals.reused_tokens += answer.reused_tokens;
                self.totals.answer_tokens += answer.answer_tokens;
                self.totals.decode_time += answer.decode_time;
            }
            // A message that could not be answered is not part of the chat.
            Err(_) => {
                self.conversation.hide_only(hidden);
                self.conversation.take_back_question();
            }
        }
        outcome.map(|_| ())
    }

    /// The answer, and the calls of tools before it.
    fn try_answer(&mut self) -> Outcome<(Answer, Vec<Message>)> {
        let window = self.session.info().context_tokens;
        let room = window.saturating_sub(self.session.answer_room(&self.options));
        let tools = match &mut self.skills {
            Some(skills) => skills.tools(&self.session, room),
            None => Vec::new(),
        };
        let lay_out = |chat: &Chat| {
            chat.session
                .lay_out_with_tools(&chat.conversation.messages(), Some(&chat.owner), &tools)
        };
        let mut told = self.give()?;
        let mut prompt = lay_out(self)?;
        let mut dropped = 0;
        while prompt.tokens.len() > room && self.conversation.drop_oldest_turn() {
            dropped += 1;
            // What it had seen of the documents may be gone with the turn.
            told = self.give()?;
            prompt = lay_out(self)?;
        }
        if let (Some(told), false) = (told, self.quiet) {
            note(&told);
        }
        // Where the message alone is too long the engine says so, and nothing is dropped.
        if dropped > 0 && prompt.tokens.len() < window {
            let window = counted(window, "token");
            let turns = counted(dropped, "oldest turn");
            note(&format!(
                "the window of {window} is full: the model no longer sees the {turns}"
            ));
        }
        let mut options = self.options.clone();
        options.sampling.seed = options
            .sampling
            .seed
            .map(|seed| seed.wrapping_add(self.conversation.attempt()));
        if let (Some(skills), false) = (&mut self.skills, tools.is_empty()) {
            let messages = self.conversation.messages();
            let answered = skills.answer(&mut self.session, &messages, &self.owner, &options)?;
            return Ok((answered.answer, answered.between));
        }
        options.segments = prompt.segments;
        let given = self.conversation.given();
        let answer = self.session.answer_about(&given, &prompt.tokens, &options)?;
        if let (Some(sources), false) = (sources(&answer.text, &given), self.quiet) {
            note(&sources);
        }
        Ok((answer, Vec::new()))
    }

    /// Gives the last question what the documents say about it; what is said of that.
    fn give(&mut self) -> Outcome<Option<String>> {
        let (Some(documents), Some(question)) = (&self.documents, self.conversation.question()) else {
            return Ok(None);
        };
        let seen = self.conversation.given_before();
        let (given, told) = documents.for_question(question, &seen, &self.session)?;
        self.conversation.give(given);
        Ok(Some(told))
    }

    fn lay_out(&self) -> Outcome<LaidOut> {
        self.session
            .lay_out(&self.conversation.messages(), Some(&self.owner))
    }

    fn save(&self, file: &Path) -> Outcome {
        let existed = file.exists();
        if file.is_file() {
            return Err(Failure::message(format!(
                "{} exists already; choose another name",
                file.display()
            )));
        }
        let text = self.conversation.transcript(&self.session.info().name);
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(file)
            .and_then(|mut out| {
                out.write_all(text.as_bytes())?;
                // A device cannot be synced; a file must be, or a full disk goes unnoticed.
                if existed { out.flush() } else { out.sync_all() }
            });
        if let Err(error) = written {
            if !existed {
                // Half a transcript helps nobody; where even removing fails, the error below is the one that counts.
                let _ = fs::remove_file(file);
            }
            return Err(Failure::message(format!(
                "cannot save to {}: {}",
                file.display(),
                system_words(&error)
            )));
        }
        note(&format!("saved to {}", file.display()));
        Ok(())
    }

    fn stats(&self) -> Outcome {
        let info = self.session.info();
        let used = self.lay_out()?.tokens.len();
        let totals = &self.totals;
        let rate = decode_rate(totals.answer_tokens, totals.decode_time);
        note(&format!(
            "model     {} ({}, {}, {} million weights)\n\
             threads   {}\n\
             window    {} of {} tokens used\n\
             answers   {}, {}{}\n\
             prompts   {}, {} of them reused",
            info.name,
            info.architecture,
            info.quantisation,
            with_commas((info.parameters / 1_000_000) as usize),
            info.threads,
            with_commas(used),
            with_commas(info.context_tokens),
            with_commas(totals.answers),
            counted(totals.answer_tokens, "token"),
            rate.map(|rate| format!(", {rate:.1} tokens/s"))
                .unwrap_or_default(),
            counted(totals.prompt_tokens, "token"),
            with_commas(totals.reused_tokens),
        ));
        Ok(())
    }
}
