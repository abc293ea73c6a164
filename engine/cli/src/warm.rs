//! `reprise cache warm`: documents read ahead, so that the first question about them is as quick as the second.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use reprise_engine::Reuse;
use reprise_library::asking::MOST_TOKENS;
use reprise_library::models::Shelf;
use reprise_library::{Document, PASSAGE_TOKENS, Passage, select, split};

use crate::arguments::{KeepArguments, ModelArguments};
use crate::ask::{self, parts_ahead};
use crate::failure::{Failure, Outcome};
use crate::output::{StatusLine, counted, note};
use crate::password::PasswordArguments;
use crate::session::Session;

/// How often is looked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is read ahead while the machine runs on battery or memory is short. Ctrl-C ends it at any time; what
was read by then is kept.

Example:
  reprise cache warm report.pdf notes.md")]
pub struct WarmArguments {
    /// Documents
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    password: PasswordArguments,
    #[command(flatten)]
    keep: KeepArguments,
    #[command(flatten)]
    model: ModelArguments,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &WarmArguments) -> Outcome {
    let (documents, unreadable) = open(arguments)?;
    let model = Shelf::of_machine()?.resolve(arguments.model.model.as_deref())?;
    let options = arguments
        .keep
        .applied(arguments.model.load_options(false), Reuse::default());
    let mut session = Session::load("cache warm", &model, &options, arguments.quiet)?;
    let mut texts = Vec::new();
    for document in &documents {
        let count = |text: &str| session.count(text);
        let passages: Vec<Passage> = split(document, PASSAGE_TOKENS, &count);
        // A document that a question gets whole is read whole, as it will stand; of others each passage by itself.
        let selection = select("", &passages, MOST_TOKENS, &count)?;
        if selection.is_everything() {
            texts.push(session.lay_out_ahead(&parts_ahead(&passages))?);
        } else {
            for passage in passages {
                texts.push(session.lay_out_ahead(&parts_ahead(&[passage]))?);
            }
        }
    }
    let (all, unread) = session.read_ahead(texts, |status: &mut StatusLine, done, all| {
        status.show(&format!("reading ahead: {done} of {}", counted(all, "text")));
        thread::sleep(LOOK_EVERY);
    })?;
    if unread > 0 {
        return Err(Failure::Interrupted);
    }
    if !arguments.quiet {
        note(&format!("[{} read ahead]", counted(all, "text")));
    }
    match unreadable {
        0 => Ok(()),
        some => Err(Failure::message(format!(
            "{} left out, for the reason said above",
            counted(some, "file")
        ))),
    }
}

/// The documents that have text, and how many have none, which is said: the others are read all the same.
fn open(arguments: &WarmArguments) -> Outcome<(Vec<Document>, usize)> {
    let options = ask::read_options()?;
    let (mut documents, mut unreadable) = (Vec::new(), 0);
    for file in &arguments.files {
        match ask::open_one(file, &arguments.password, &options) {
            Ok(document) => documents.push(document),
            Err(Failure::Message(why)) if arguments.files.len() > 1 => {
                note(&why);
                unreadable += 1;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok((documents, unreadable))
}
