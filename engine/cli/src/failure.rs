//! How a command fails: a sentence for the person and an exit code. 1 is a failure, 2 a wrong use, 130 an interruption;
//! a reader that went away (`reprise ... | head`) is none of these.

use std::io::{self, Write};
use std::process::ExitCode;

use reprise_library::system_words;

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// Something did not work: what, where, what to do.
    Message(String),
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// The failure was told already, when it happened.
    Told,
    /// The person interrupted.
    Interrupted,
    /// Nobody reads the output any more.
    ClosedPipe,
}

/// What a step of a command gives.
pub type Outcome<T = ()> = Result<T, Failure>;

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Message(error.to_string())
    }
}

impl Failure {
    /// A failure with this message.
    pub fn message(text: impl Into<String>) -> Failure {
        Failure::Message(text.into())
    }

    /// A failure to write to standard output.
    pub fn output(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::message(format!("cannot write the output: {}", system_words(error))),
        }
    }

    /// Prints the message, where there is one, and gives the exit code.
    pub fn report(self) -> ExitCode {
        // A closed standard error leaves nobody to tell.
        let tell = |text: &str| drop(writeln!(io::stderr(), "error: {}", crate::output::harmless(text)));
        match self {
            Failure::Message(text) => {
                tell(&text);
                ExitCode::FAILURE
            }
            Failure::Usage(text) => {
                tell(&text);
                ExitCode::from(2)
            }
            Failure::Told => ExitCode::FAILURE,
            Failure::Interrupted => ExitCode::from(130),
            Failure::ClosedPipe => ExitCode::SUCCESS,
        }
    }
}
