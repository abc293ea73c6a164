//! `reprise ask`: one question about documents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reprise_engine::{GenerateOptions, Owner, Reuse, SegmentKind, StopReason};
use reprise_library::asking::{How, MOST_TOKENS, findings};
use reprise_library::assistant::{LaidOut, Message, Part};
use reprise_library::chats::{Given, Origin};
use reprise_library::citations::cited;
use reprise_library::folders;
use reprise_library::index::{DocumentId, Index};
use reprise_library::models::Shelf;
use reprise_library::{
    Document, Ocr, PASSAGE_TOKENS, Passage, ReadOptions, SYSTEM, Selection, TokenCounter, given,
    names_passages, question_about, select, split,
};
use reprise_model::template::Role;

use crate::arguments::{AskArguments, SamplingDefaults};
use crate::failure::{Failure, Outcome};
use crate::index::documents_at;
use crate::output::{counted, footer, note, with_commas};
use crate::password::PasswordArguments;
use crate::session::Session;

/// Facts are asked for, in the words of the document: no inventions, and no penalty for words that the passages have. An answer
/// that only repeats itself is ended.
pub const DEFAULTS: SamplingDefaults = SamplingDefaults {
    temperature: 0.0,
    repetition_penalty: 1.0,
};

pub fn run(arguments: &AskArguments) -> Outcome {
    let Prepared {
        mut session,
        laid_out,
        mut options,
        given,
    } = prepare("ask", arguments)?;
    options.segments = laid_out.segments;
    let answer = session.answer_about(&given, &laid_out.tokens, &options)?;
    if !arguments.answer.quiet {
        if let Some(cited) = sources(&answer.text, &given) {
            note(&cited);
        }
        note(&footer(&answer));
    }
    if answer.stop == StopReason::Cancelled {
        Err(Failure::Interrupted)
    } else {
        Ok(())
    }
}

/// Reads documents, each once however often and by whatever path it is named; what is odd about one is said.
pub fn open(files: &[impl AsRef<Path>], password: &PasswordArguments) -> Outcome<Vec<Document>> {
    let options = read_options()?;
    let mut documents: Vec<Document> = Vec::new();
    for file in files {
        let document = open_one(file.as_ref(), password, &options)?;
        if !documents.iter().any(|known| known.path == document.path) {
            documents.push(document);
        }
    }
    Ok(documents)
}

/// How documents are read: with the models that recognise text in pictures, where they are there.
pub fn read_options() -> Outcome<ReadOptions> {
    let ocr = Ocr::on(&Shelf::of_machine()?).map(Arc::new);
    Ok(ReadOptions::default().with_ocr(ocr))
}

/// Reads a document; what is odd about it is said.
pub fn open_one(file: &Path, password: &PasswordArguments, options: &ReadOptions) -> Outcome<Document> {
    let document = password.open(file, options)?;
    for text in &document.notes {
        note(&format!("note: {}: {text}", document.name));
    }
    Ok(document)
}

/// A question ready to be asked.
pub struct Prepared {
    pub session: Session,
    pub laid_out: LaidOut,
    /// The passages it is asked about.
    pub given: Vec<Given>,
    options: GenerateOptions,
}

/// What is asked.
enum About {
    Files(Vec<Document>),
    Indexed(Box<Index>, Vec<DocumentId>),
}

/// Loads the model for the command of this name, reads the documents, chooses passages and lays out the prompt.
pub fn prepare(program: &str, arguments: &AskArguments) -> Outcome<Prepared> {
    let Some((question, files)) = arguments.files_and_question.split_last() else {
        return Err(Failure::Usage(format!(
            "a question is needed: reprise {program} [FILE]... \"QUESTION\""
        )));
    };
    if question.trim().is_empty() {
        return Err(Failure::Usage("the question is empty".into()));
    }
    if !question.contains(char::is_whitespace) && Path::new(question).is_file() {
        let example = format!("reprise {program} FILE \"your question\"");
        return Err(Failure::Usage(format!(
            "{question} is a file, and the question comes last: {example}"
        )));
    }
    if arguments.within.is_some() && !files.is_empty() {
        return Err(Failure::Usage(
            "--within chooses among indexed documents; leave out the files, or --within".into(),
        ));
    }
    let quiet = arguments.answer.quiet;
    let about = match files.is_empty() {
        true => indexed(arguments.within.as_deref())?,
        false => About::Files(open(files, &arguments.password)?),
    };
    let model = Shelf::of_machine()?.resolve(arguments.model.model.as_deref())?;
    let load_options = arguments
        .keep
        .applied(arguments.model.load_options(false), Reuse::default());
    let session = Session::load(program, &model, &load_options, quiet)?;
    let mut options = arguments.answer.generate_options(&DEFAULTS);
    // Nothing in a document asks for endless repetition.
    options.stop_when_repeating = true;

    let budget = match arguments.passages_tokens {
        Some(tokens) => tokens,
        None => room(&session, question, &options)?,
    };
    let count = |text: &str| session.count(text);
    let (given, told) = match &about {
        About::Files(documents) => of_files(documents, question, budget, &count)?,
        About::Indexed(index, documents) => of_index(index, documents, question, budget, &count)?,
    };
    if !quiet {
        note(&told);
    }
    let laid_out = session.lay_out(
        &around(question_about(&given, question, names_passages(session.info()))),
        None,
    )?;
    Ok(Prepared {
        session,
        laid_out,
        given,
        options,
    })
}

/// Tokens there are for passages.
fn room(session: &Session, question: &str, options: &GenerateOptions) -> Outcome<usize> {
    let empty = around(question_about(&[], question, names_passages(session.info())));
    let around = session.prompt(&empty)?.len() + session.answer_room(options);
    let window = session.info().context_tokens;
    if around >= window {
        return Err(Failure::message(format!(
            "the question, with room for an answer, takes {} of the window's {}, and leaves none for a \
             passage; shorten it, let the answer be shorter (--max-tokens), or choose a larger window \
             (--context, --kv-budget)",
            counted(around, "token"),
            with_commas(window)
        )));
    }
    Ok((window - around).min(MOST_TOKENS))
}

/// The passages of files for a question, and what is said of them.
fn of_files(
    documents: &[Document],
    question: &str,
    budget: usize,
    count: TokenCounter<'_>,
) -> Outcome<(Vec<Given>, String)> {
    let passages: Vec<Passage> = documents
        .iter()
        .flat_map(|document| split(document, PASSAGE_TOKENS, count))
        .collect();
    let selection = select(question, &passages, budget, count)?;
    if selection.used().is_empty() {
        return Err(nothing_fits(
            if documents.len() == 1 {
                "the document"
            } else {
                "the documents"
            },
            budget,
        ));
    }
    let given = selection.used().iter().map(given).collect();
    Ok((given, used(&selection, documents.len())))
}

fn nothing_fits(what: &str, budget: usize) -> Failure {
    Failure::message(format!(
        "no passage of {what} fits into {budget} tokens, and without one an answer would be invented; give more with \
         --passages-tokens or --context"
    ))
}

/// The indexed documents, at or below a path.
fn indexed(within: Option<&Path>) -> Outcome<About> {
    let index = crate::index::open()?;
    let documents = documents_at(&index, within)?;
    Ok(About::Indexed(Box::new(index), documents))
}

/// The passages of indexed documents for a question, and what is said of them.
fn of_index(
    index: &Index,
    documents: &[DocumentId],
    question: &str,
    budget: usize,
    count: TokenCounter<'_>,
) -> Outcome<(Vec<Given>, String)> {
    let found = findings(index, question, documents, budget, count)?;
    if found.given.is_empty() {
        return Err(Failure::message(format!(
            "nothing in {} answers to the question; ask in other words, or name the file before the question",
            counted(documents.len(), "indexed document")
        )));
    }
    tell_changes(index, &found.given)?;
    let tokens = counted(found.tokens, "token");
    let told = match found.how {
        How::Whole { documents: 1 } => format!("[using the whole document, {tokens}]"),
        How::Whole { documents } => format!("[using all {documents} documents whole, {tokens}]"),
        How::Passages { meaning } => {
            if let Some(why) = meaning.why_not() {
                note(&format!("note: {why}"));
            }
            let path_of = |given: &Given| match &given.source {
                Origin::Passage { path, .. } => PathBuf::from(path),
                _ => PathBuf::new(),
            };
            let paths: Vec<PathBuf> = found.given.iter().map(path_of).collect();
            let told = |(given, path): (&Given, &PathBuf)| told_apart(&given.label, path, &paths);
            let labels: Vec<String> = found.given.iter().zip(&paths).map(told).collect();
            format!(
                "[using {} of {}, {tokens}: {}]",
                counted(found.given.len(), "passage"),
                counted(documents.len(), "document"),
                labels.join("; ")
            )
        }
    };
    Ok((found.given, told))
}

/// Says which of the files have changed since they were read.
fn tell_changes(index: &Index, given: &[Given]) -> Outcome {
    let mut paths: Vec<&str> = given
        .iter()
        .filter_map(|one| match &one.source {
            Origin::Passage { path, .. } => Some(path.as_str()),
            _ => None,
        })
        .collect();
    paths.dedup();
    for path in paths {
        let Some(document) = index.document(DocumentId::of(Path::new(path)))? else {
            continue;
        };
        let how = match document.path.metadata() {
            Err(_) => "is no longer there",
            Ok(file) if file.len() != document.bytes => "has changed",
            Ok(_) => continue,
        };
        note(&format!(
            "note: {path} {how} since it was read; bring the index up to date with: reprise index update"
        ));
    }
    Ok(())
}

/// Where the passages are that an answer names.
pub fn sources(answer: &str, given: &[Given]) -> Option<String> {
    let mut named: Vec<usize> = cited(answer, given)
        .citations
        .iter()
        .map(|citation| citation.given)
        .collect();
    named.sort_unstable();
    named.dedup();
    let line = |index: usize| match &given[index].source {
        Origin::Passage { path, place, .. } => format!("\n  {}, {place}", folders::shown(Path::new(path))),
        _ => format!("\n  {}", given[index].label),
    };
    let lines: String = named.into_iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("sources:{lines}"))
}

/// The same up to these passages' end, for reading them ahead.
pub fn parts_ahead(passages: &[Passage]) -> [Message; 2] {
    around(passages.iter().map(|passage| given(passage).part()).collect())
}

/// The standing instruction, and what the person's message consists of.
fn around(user: Vec<Part>) -> [Message; 2] {
    [
        Message {
            role: Role::System,
            // The same in every question about documents, and nobody's secret.
            parts: vec![Part {
                text: SYSTEM.to_owned(),
                kind: SegmentKind::System,
                owner: Owner::new("program", "ask").ok(),
            }],
        },
        Message {
            role: Role::User,
            parts: user,
        },
    ]
}

/// What a document or passage of this file is called, with its folder where another file of the same name is among them.
fn told_apart(name: &str, path: &Path, all: &[PathBuf]) -> String {
    let is_namesake = |other: &PathBuf| other.file_name() == path.file_name() && other != path;
    match path.parent() {
        Some(folder) if all.iter().any(is_namesake) => format!("{name} in {}", folders::shown(folder)),
        _ => name.to_owned(),
    }
}

/// Which passages the answer stands on.
fn used(selection: &Selection, documents: usize) -> String {
    let tokens = counted(selection.tokens(), "token");
    if selection.is_everything() {
        let what = if documents == 1 {
            "the whole document".to_string()
        } else {
            format!("all {documents} documents")
        };
        return format!("[using {what}, {tokens}]");
    }
    let paths: Vec<PathBuf> = selection
        .used()
        .iter()
        .map(|passage| passage.path.clone())
        .collect();
    let mut places: Vec<(&Passage, Vec<String>)> = Vec::new();
    for passage in selection.used() {
        let place = passage.place.to_string();
        match places.last_mut() {
            Some((before, listed)) if before.path == passage.path => {
                if listed.last() != Some(&place) {
                    listed.push(place);
                }
            }
            _ => places.push((passage, vec![place])),
        }
    }
    let listed: Vec<_> = places
        .iter()
        .map(|(passage, places)| {
            let name = told_apart(&passage.document, &passage.path, &paths);
            format!("{name}: {}", places.join(", "))
        })
        .collect();
    let count = format!(
        "{} of {} passages, {tokens}",
        selection.used().len(),
        selection.available()
    );
    let why = if selection.matched() {
        ""
    } else {
        "; no word of the question is in the documents, so their beginning"
    };
    format!("[using {count}{why}: {}]", listed.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn files_of_one_name_are_told_apart_by_their_folders() {
        let paths = ["/x/a.md", "/y/a.md", "/y/b.md"].map(PathBuf::from);
        let told = |path: usize| told_apart("name", &paths[path], &paths);
        assert_eq!([told(0), told(1), told(2)], ["name in /x", "name in /y", "name"]);
    }

    #[test]
    fn what_was_used_is_said_by_document_and_place() {
        let text = (1..=9)
            .map(|n| format!("paragraph {n} about apples\n\n"))
            .collect::<String>();
        let mut passages = Vec::new();
        for name in ["a.md", "b.md"] {
            passages.extend(split(
                &Document::from_bytes(name, text.as_bytes()).unwrap(),
                12,
                &words,
            ));
        }
        let all = select("apples", &passages, 1000, &words).unwrap();
        assert_eq!(
            used(&all, 2),
            format!("[using all 2 documents, {} tokens]", all.tokens())
        );
        let some = select("paragraph 7 and 8", &passages, 25, &words).unwrap();
        assert_eq!(
            used(&some, 2),
            "[using 2 of 10 passages, 22 tokens: a.md: lines 13-15; b.md: lines 13-15]"
        );
        let none = select("zebra", &passages, 20, &words).unwrap();
        assert!(used(&none, 2).contains("no word of the question is in the documents"));
    }
}
