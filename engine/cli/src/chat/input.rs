//! Where a chat's lines come from: an editor on a terminal, plain lines through a pipe.

use std::io::{self, BufRead, IsTerminal};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::failure::{Failure, Outcome};
use crate::output::note;

const PROMPT: &str = "> ";
const MORE: &str = ". ";

/// What reading gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// A message or a command, its lines joined.
    Text(String),
    /// An empty or a cleared line.
    Nothing,
    /// The person leaves, or the pipe is at its end.
    End,
}

pub enum Input {
    Terminal {
        editor: Box<DefaultEditor>,
        cleared: bool,
    },
    Pipe(Box<dyn BufRead>),
}

impl Input {
    pub fn open() -> Outcome<Input> {
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            let editor = DefaultEditor::new()
                .map_err(|error| Failure::message(format!("cannot read from the terminal: {error}")))?;
            Ok(Input::Terminal {
                editor: Box::new(editor),
                cleared: false,
            })
        } else {
            Ok(Input::Pipe(Box::new(io::BufReader::new(io::stdin()))))
        }
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self, Input::Terminal { .. })
    }

    /// Reads a message; a backslash at the end of a line joins the next one to it.
    pub fn read(&mut self) -> Outcome<Read> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { PROMPT } else { MORE };
            match self.line(prompt)? {
                Read::Text(line) => match line.strip_suffix('\\') {
                    Some(begun) => {
                        text.push_str(begun);
                        text.push('\n');
                    }
                    None => {
                        text.push_str(&line);
                        break;
                    }
                },
                Read::Nothing => return Ok(Read::Nothing),
                Read::End if text.trim().is_empty() => return Ok(Read::End),
                Read::End => break,
            }
        }
        if text.trim().is_empty() {
            return Ok(Read::Nothing);
        }
        if let Input::Terminal { editor, .. } = self {
            // The history is a comfort; a line it does not take is no failure.
            let _ = editor.add_history_entry(text.as_str());
        }
        Ok(Read::Text(text))
    }

    fn line(&mut self, prompt: &str) -> Outcome<Read> {
        match self {
            Input::Terminal { editor, cleared } => match editor.readline(prompt) {
                Ok(line) => {
                    *cleared = false;
                    Ok(Read::Text(line))
                }
                Err(ReadlineError::Eof) => Ok(Read::End),
                Err(ReadlineError::Interrupted) if *cleared => Ok(Read::End),
                Err(ReadlineError::Interrupted) => {
                    *cleared = true;
                    note("(Ctrl-C again, or Ctrl-D, leaves)");
                    Ok(Read::Nothing)
                }
                Err(error) => Err(Failure::message(format!(
                    "cannot read from the terminal: {error}"
                ))),
            },
            Input::Pipe(lines) => {
                let mut line = Vec::new();
                let count = lines
                    .read_until(b'\n', &mut line)
                    .map_err(|error| Failure::message(format!("cannot read the input: {error}")))?;
                if count == 0 {
                    return Ok(Read::End);
                }
                let line = String::from_utf8(line)
                    .map_err(|_| Failure::message("the input is not UTF-8 text; convert it and try again"))?;
                Ok(Read::Text(line.trim_end_matches(['\n', '\r']).to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_joins_lines_and_empty_lines_say_nothing() {
        let mut input = Input::Pipe(Box::new(io::Cursor::new("one\\\ntwo\r\n\n  \nlast\\")));
        let mut reads = Vec::new();
        loop {
            match input.read().unwrap() {
                Read::End => break,
                other => reads.push(other),
            }
        }
        let text = |text: &str| Read::Text(text.into());
        assert_eq!(
            reads,
            [text("one\ntwo"), Read::Nothing, Read::Nothing, text("last\n")]
        );
    }
}
