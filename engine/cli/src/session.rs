//! A loaded model as the commands use it: messages in, answer out, with everything a person sees on the way.

use std::path::Path;

use reprise_engine::explain::Explanation;
use reprise_engine::store::Erased;
use reprise_engine::worker::{AheadText, Worker};
use reprise_engine::{Answer, CancelToken, Event, GenerateOptions, LoadOptions, ModelInfo, Owner, TokenId};
use reprise_library::assistant::{Assistant, LaidOut, Message, Writer};
use reprise_library::chats::Given;
use reprise_library::citations::CitedStream;
use reprise_library::running::Published;
use reprise_library::skills::{Answered, AssistantModel, Consent, StepLimits, Toolbox, answer_with_tools};
use reprise_model::template::{ToolCalls, ToolSpec};

use crate::failure::{Failure, Outcome};
use crate::interrupts::Interrupts;
use crate::output::{Display, StatusLine, counted, note, with_commas};
use crate::skill::show::show;

/// A model ready to answer.
pub struct Session {
    assistant: Assistant,
    interrupts: Interrupts,
    quiet: bool,
    /// Shows the engine to `reprise top`.
    _published: Option<Published>,
}

impl Session {
    /// Loads a model file, for the command of this name.
    pub fn load(program: &str, path: &Path, options: &LoadOptions, quiet: bool) -> Outcome<Session> {
        let interrupts = Interrupts::install()?;
        let mut status = StatusLine::new(quiet);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        status.show(&format!("\x1b[2mloading {name} ...\x1b[0m"));
        let assistant = Assistant::load(path, options)?;
        drop(status);
        warn(&assistant);
        Ok(Session {
            _published: publish(program, &assistant, quiet),
            assistant,
            interrupts,
            quiet,
        })
    }

    /// Facts about the model.
    pub fn info(&self) -> &ModelInfo {
        self.assistant.writer().info()
    }

    /// Writes prompts for the model.
    pub fn writer(&self) -> &Writer {
        self.assistant.writer()
    }

    /// Tokens of a text that stands alone.
    pub fn count(&self, text: &str) -> usize {
        self.assistant.writer().count(text)
    }

    /// The prompt for these messages, ending where the answer begins. Every part is tokenised on its own, so that it is
    /// the same tokens in every prompt.
    pub fn prompt(&self, messages: &[Message]) -> Outcome<Vec<TokenId>> {
        Ok(self.assistant.writer().prompt(messages)?)
    }

    /// The same, with the segments it consists of; what belongs to no one else is `owner`'s, and what belongs to nobody
    /// is not kept.
    pub fn lay_out(&self, messages: &[Message], owner: Option<&Owner>) -> Outcome<LaidOut> {
        Ok(self.assistant.writer().lay_out(messages, owner)?)
    }

    /// As [`Session::lay_out`], for a model that may call these tools.
    pub fn lay_out_with_tools(
        &self,
        messages: &[Message],
        owner: Option<&Owner>,
        tools: &[ToolSpec],
    ) -> Outcome<LaidOut> {
        Ok(self
            .assistant
            .writer()
            .lay_out_with_tools(messages, owner, tools)?)
    }

    /// Whether the model can be told of tools, and how it calls them.
    pub fn tool_calls(&self) -> ToolCalls {
        self.assistant.writer().tool_calls()
    }

    /// Does something that Ctrl-C stops.
    pub fn interrupted<T>(&self, work: impl FnOnce(&CancelToken) -> T) -> T {
        self.interrupts.while_answering(work)
    }

    /// Erases what is kept for an owner, in memory and on disk.
    pub fn erase(&self, owner: &Owner) -> Outcome<Erased> {
        let owner = owner.clone();
        let erase = move |worker: &mut Worker| worker.erase(&owner);
        Ok(self.assistant.engine().with_worker(erase)??)
    }

    /// How a prompt would be read.
    pub fn explain(&self, laid_out: &LaidOut) -> Outcome<Explanation> {
        let LaidOut { tokens, segments } = laid_out.clone();
        let explain = move |worker: &mut Worker| worker.explain(&tokens, &segments);
        Ok(self.assistant.engine().with_worker(explain)??)
    }

    /// The text of some tokens.
    pub fn text_of(&self, tokens: &[TokenId]) -> String {
        self.assistant.engine().tokenizer().decode(tokens)
    }

    /// Tokens of the window kept free for the answer when a prompt is fitted into it: as many as may be written, but
    /// no more than a quarter of the window.
    pub fn answer_room(&self, options: &GenerateOptions) -> usize {
        self.assistant.writer().answer_room(options.max_tokens)
    }

    /// A prompt that ends with some parts, to be read ahead.
    pub fn lay_out_ahead(&self, messages: &[Message]) -> Outcome<AheadText> {
        Ok(self.assistant.writer().lay_out_ahead(messages)?)
    }

    /// Reads texts ahead and stores them; how many there were, and how many are left when a person has enough. `wait` is
    /// called again and again meanwhile, with how many are done, and of how many.
    pub fn read_ahead(
        &mut self,
        texts: Vec<AheadText>,
        wait: impl Fn(&mut StatusLine, usize, usize),
    ) -> Outcome<(usize, usize)> {
        let (engine, all) = (self.assistant.engine(), texts.len());
        let mut status = StatusLine::new(self.quiet);
        let unread = self.interrupts.while_answering(|cancel| -> Outcome<usize> {
            engine.with_worker(move |worker| worker.read_ahead(texts))?;
            loop {
                let look = |worker: &mut Worker| (worker.texts_ahead(), worker.ahead_waits_for());
                let (left, reason) = engine.with_worker(look)?;
                if left > 0 && cancel.is_cancelled() {
                    engine.with_worker(Worker::stop_reading_ahead)?;
                    return Ok(left);
                }
                match reason {
                    _ if left == 0 => return Ok(0),
                    Some(reason) => {
                        return Err(Failure::message(format!(
                            "{} not read ahead: {reason}",
                            counted(left, "text")
                        )));
                    }
                    None => wait(&mut status, all - left, all),
                }
            }
        })?;
        status.show("storing what was read ...");
        engine.with_worker(|worker| {
            if let Some(keeper) = worker.keeper() {
                keeper.flush();
            }
        })?;
        Ok((all, unread))
    }

    /// Answers a question that was given these, streaming to standard output without marks that name nothing of it.
    pub fn answer_about(
        &mut self,
        given: &[Given],
        prompt: &[TokenId],
        options: &GenerateOptions,
    ) -> Outcome<Answer> {
        let mut display = Display::new(self.quiet);
        let mut marks = CitedStream::default();
        let assistant = &self.assistant;
        let answer = self.interrupts.while_answering(|cancel| {
            let answer = assistant.answer(prompt, options, cancel, &mut |event| match event {
                Event::Text(text) => display.show(&Event::Text(&marks.push(text, given)), cancel),
                other => display.show(&other, cancel),
            });
            display.show(&Event::Text(&marks.finish(given)), cancel);
            answer
        });
        display.finish()?;
        Ok(answer?)
    }

    /// Answers with tools, streaming to standard output; the steps are told on standard error.
    pub fn answer_with_tools(
        &mut self,
        messages: &[Message],
        owner: &Owner,
        options: &GenerateOptions,
        toolbox: &mut Toolbox<'_>,
        consent: &mut dyn Consent,
        limits: StepLimits,
    ) -> Outcome<Answered> {
        let mut display = Display::new(self.quiet);
        let quiet = self.quiet;
        let mut model = AssistantModel {
            assistant: &self.assistant,
            options,
            owner: Some(owner),
            last_prompt: None,
        };
        let answered = self.interrupts.while_answering(|cancel| {
            let mut on_step =
                |step: reprise_library::skills::Step<'_>| show(&step, &mut display, cancel, quiet);
            answer_with_tools(
                &mut model,
                messages,
                toolbox,
                consent,
                limits,
                cancel,
                &mut on_step,
            )
        });
        display.finish()?;
        Ok(answered?)
    }
}

/// The owner of what a command of this name reads on its own behalf.
pub fn program_owner(command: &str) -> Outcome<Owner> {
    Owner::new("program", command).map_err(|error| Failure::message(error.to_string()))
}

/// Says what a person should know of a model that has just been loaded.
pub fn warn(assistant: &Assistant) {
    let writer = assistant.writer();
    if let Some(warning) = writer.warning() {
        note(&format!("note: {warning}"));
    }
    if let Some(fault) = assistant.engine().store_fault() {
        note(&format!(
            "note: nothing that is read now is kept on disk: {fault}"
        ));
    }
    let (held, window) = (
        writer.info().context_tokens,
        assistant.engine().info().context_tokens,
    );
    if held < window {
        note(&format!(
            "note: the KV memory holds {} of the window's {}; give it more with --kv-budget for longer prompts",
            counted(held, "token"),
            with_commas(window)
        ));
    }
}

/// Shows the engine to `reprise top`, for as long as the result lives. Where that cannot be, everything else still can.
pub fn publish(program: &str, assistant: &Assistant, quiet: bool) -> Option<Published> {
    match Published::start(program, assistant.engine().shared_snapshot()) {
        Ok(published) => Some(published),
        Err(error) => {
            if !quiet {
                note(&format!("note: reprise top cannot show this program: {error}"));
            }
            None
        }
    }
}
