//! A loaded model as the commands use it: messages in, answer out, with everything a person sees on the way.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use reprise_engine::{Answer, GenerateOptions, LoadOptions, ModelInfo, TokenId};
use reprise_library::assistant::{Assistant, Message};
use reprise_library::running::Published;

use crate::failure::Outcome;
use crate::interrupts::Interrupts;
use crate::output::{Display, note};

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
        let mut error = io::stderr();
        let shown = !quiet && error.is_terminal();
        if shown {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let _ = write!(error, "\x1b[2mloading {name} ...\x1b[0m").and_then(|()| error.flush());
        }
        let assistant = Assistant::load(path, options);
        if shown {
            let _ = write!(error, "\r\x1b[2K").and_then(|()| error.flush());
        }
        let assistant = assistant?;
        if let Some(warning) = assistant.writer().warning() {
            note(&format!("note: {warning}"));
        }
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

    /// Tokens of a text that stands alone.
    pub fn count(&self, text: &str) -> usize {
        self.assistant.writer().count(text)
    }

    /// The prompt for these messages, ending where the answer begins. Every part is tokenised on its own, so that it is
    /// the same tokens in every prompt.
    pub fn prompt(&self, messages: &[Message]) -> Outcome<Vec<TokenId>> {
        Ok(self.assistant.writer().prompt(messages)?)
    }

    /// Tokens of the window kept free for the answer when a prompt is fitted into it: as many as may be written, but
    /// no more than a quarter of the window.
    pub fn answer_room(&self, options: &GenerateOptions) -> usize {
        self.assistant.writer().answer_room(options.max_tokens)
    }

    /// Answers, streaming to standard output.
    pub fn answer(&mut self, prompt: &[TokenId], options: &GenerateOptions) -> Outcome<Answer> {
        let mut display = Display::new(self.quiet);
        let assistant = &self.assistant;
        let answer = self.interrupts.while_answering(|cancel| {
            assistant.answer(prompt, options, cancel, &mut |event| display.show(&event, cancel))
        });
        display.finish()?;
        Ok(answer?)
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
