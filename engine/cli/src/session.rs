//! A loaded model as the commands use it: messages in, answer out, with everything a person sees on the way.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use reprise_engine::{Answer, Engine, GenerateOptions, LoadOptions, ModelInfo, TokenId};
use reprise_model::template::{ChatTemplate, PartedMessage, Role, TemplateOptions};
use reprise_model::tokenizer::Specials;

use crate::failure::Outcome;
use crate::interrupts::Interrupts;
use crate::output::{Display, note};

/// One message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What it says, one part after the other.
    pub parts: Vec<String>,
}

/// A model ready to answer.
pub struct Session {
    engine: Engine,
    template: ChatTemplate,
    interrupts: Interrupts,
    quiet: bool,
}

impl Session {
    /// Loads a model file.
    pub fn load(path: &Path, options: &LoadOptions, quiet: bool) -> Outcome<Session> {
        let interrupts = Interrupts::install()?;
        let mut error = io::stderr();
        let shown = !quiet && error.is_terminal();
        if shown {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let _ = write!(error, "\x1b[2mloading {name} ...\x1b[0m").and_then(|()| error.flush());
        }
        let engine = Engine::load(path, options);
        if shown {
            let _ = write!(error, "\r\x1b[2K").and_then(|()| error.flush());
        }
        let engine = engine?;
        let template = ChatTemplate::from_gguf(engine.gguf(), engine.tokenizer());
        if let Some(warning) = template.warning() {
            note(&format!("note: {warning}"));
        }
        Ok(Session {
            engine,
            template,
            interrupts,
            quiet,
        })
    }

    /// Facts about the model.
    pub fn info(&self) -> &ModelInfo {
        self.engine.info()
    }

    /// Tokens of a text that stands alone.
    pub fn count(&self, text: &str) -> usize {
        self.engine.tokenizer().encode(text, Specials::AsText).len()
    }

    /// The prompt for these messages, ending where the answer begins. Every part is tokenised on its own, so that it is
    /// the same tokens in every prompt.
    pub fn prompt(&self, messages: &[Message]) -> Outcome<Vec<TokenId>> {
        let parts: Vec<Vec<&str>> = messages
            .iter()
            .map(|message| message.parts.iter().map(String::as_str).collect())
            .collect();
        let parted: Vec<PartedMessage<'_>> = messages
            .iter()
            .zip(&parts)
            .map(|(message, parts)| PartedMessage {
                role: message.role,
                parts,
            })
            .collect();
        let stretches =
            self.template
                .encode_parts(self.engine.tokenizer(), &parted, &TemplateOptions::ask())?;
        Ok(stretches.into_iter().flat_map(|stretch| stretch.ids).collect())
    }

    /// Tokens of the window kept free for the answer when a prompt is fitted into it: as many as may be written, but
    /// no more than a quarter of the window.
    pub fn answer_room(&self, options: &GenerateOptions) -> usize {
        options.max_tokens.min(self.info().context_tokens / 4)
    }

    /// Answers, streaming to standard output.
    pub fn answer(&mut self, prompt: &[TokenId], options: &GenerateOptions) -> Outcome<Answer> {
        let mut options = options.clone();
        options.stop.extend_from_slice(self.template.stop_strings());
        let mut display = Display::new(self.quiet);
        let engine = &mut self.engine;
        let answer = self.interrupts.while_answering(|cancel| {
            engine.generate(prompt, &options, cancel, &mut |event| {
                display.show(&event, cancel)
            })
        });
        display.finish()?;
        Ok(answer?)
    }
}
