//! The `reprise` command: chat with a model in the terminal, ask about documents, serve a model to other programs,
//! manage model files, take the window's chats out and in, measure speed.
//!
//! It parses arguments, talks to the person, and leaves the work to the engine and the library. It does not keep its own
//! chats (`/save` writes one to a file) and has no window.
//!
//! ```text
//! reprise ask report.pdf "What was decided?"
//! ```

mod arguments;
mod ask;
mod bench;
mod cache;
mod chat;
mod chats;
mod explain;
mod failure;
mod index;
mod interrupts;
mod models;
mod output;
mod password;
mod serve;
mod session;
mod skill;
mod top;
mod tune;
mod warm;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    // Scripts of skills are started by this program itself, which confines itself first.
    if let Some(code) = reprise_library::skills::run::helper_main() {
        return code;
    }
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::Chat(arguments) => chat::run(&arguments),
        Command::Ask(arguments) => ask::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Models { action } => models::run(action),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Export(arguments) => chats::export(&arguments),
        Command::Import(arguments) => chats::import(&arguments),
        Command::Skill { action } => skill::run(action),
        Command::Cache { action } => cache::run(action),
        Command::Index { action } => index::run(action),
        Command::Top(arguments) => top::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
