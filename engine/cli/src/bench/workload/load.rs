//! Workloads from JSON lines: what is asked about which texts.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use reprise_library::{Passage, Place, rank};
use serde::Deserialize;

use crate::failure::{Failure, Outcome};

/// Characters a passage has at most.
const PASSAGE_CHARS: usize = 1_024;
/// Passages a question gets.
const PASSAGES: usize = 6;

/// Texts and what is asked about them.
pub struct Workload {
    /// The file's name without its ending.
    pub name: String,
    /// What the model is told first.
    pub system: &'static str,
    /// The texts, whole.
    pub texts: Vec<Text>,
    /// The questions.
    pub requests: Vec<Request>,
}

/// A text that prompts contain.
pub struct Text {
    /// Of a document's passage, or a skill.
    pub kind: TextKind,
    /// As it stands in a prompt.
    pub rendered: String,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// A passage.
    Passage,
    /// A skill.
    Skill,
}

/// One question.
pub struct Request {
    /// The question, with how to answer.
    pub question: String,
    /// Which texts stand before it, in order.
    pub texts: Vec<usize>,
    /// What counts as right; none where there is no short answer.
    pub answers: Vec<String>,
}

/// A line of a file. Files hold one kind of lines.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Skill {
        skill: String,
        instruction: String,
    },
    Chat {
        sessions: Vec<Session>,
        questions: Vec<Question>,
    },
    Article {
        title: String,
        paragraphs: Vec<Paragraph>,
    },
    Document {
        question: String,
        answers: Vec<String>,
        passages: Vec<Source>,
    },
}

#[derive(Deserialize)]
struct Session {
    date: String,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
struct Turn {
    speaker: String,
    text: String,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    answers: Vec<String>,
}

#[derive(Deserialize)]
struct Paragraph {
    text: String,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Source {
    title: String,
    text: String,
}

const DOCUMENT_SYSTEM: &str = "Answer the question from the passages, with a few words only: a name, a date, a number or a short phrase.";
const CHAT_SYSTEM: &str = "Answer the question from these parts of a conversation, with a few words only: a name, a date or a short phrase.";
const SKILL_SYSTEM: &str = "Follow the skill below. Say how you go about the task.";

/// Reads a file. Skills are folders with a SKILL.md beside it, in `skills`.
pub fn load(path: &Path, limit: usize) -> Outcome<Workload> {
    let cannot = |what: String| Failure::message(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    let mut lines = Vec::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        lines.push(
            serde_json::from_str::<Line>(line)
                .map_err(|error| cannot(format!("line {} is no known workload: {error}", number + 1)))?,
        );
    }
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let is_skills = lines.iter().all(|line| matches!(line, Line::Skill { .. }));
    let is_chats = lines.iter().all(|line| matches!(line, Line::Chat { .. }));
    let (texts, requests, system) = match lines.is_empty() {
        true => return Err(cannot("there is nothing in it".into())),
        false if is_skills => {
            let (texts, requests) = skills(lines, path, limit)?;
            (texts, requests, SKILL_SYSTEM)
        }
        false => {
            let (texts, requests) = questions(lines, limit)?;
            (
                texts,
                requests,
                if is_chats { CHAT_SYSTEM } else { DOCUMENT_SYSTEM },
            )
        }
    };
    Ok(Workload {
        name,
        system,
        texts,
        requests,
    })
}

fn skills(lines: Vec<Line>, path: &Path, limit: usize) -> Outcome<(Vec<Text>, Vec<Request>)> {
    let folder = path.parent().unwrap_or(Path::new(".")).join("../skills");
    let (mut texts, mut known) = (Vec::new(), BTreeMap::new());
    let mut requests = Vec::new();
    for line in lines.into_iter().take(limit) {
        let Line::Skill { skill, instruction } = line else {
            continue;
        };
        let index = match known.get(&skill) {
            Some(&index) => index,
            None => {
                let file = folder.join(&skill).join("SKILL.md");
                let body = fs::read_to_string(&file)
                    .map_err(|error| Failure::message(format!("{}: {error}", file.display())))?;
                texts.push(Text {
                    kind: TextKind::Skill,
                    rendered: format!("{body}\n\n"),
                });
                known.insert(skill, texts.len() - 1);
                texts.len() - 1
            }
        };
        requests.push(Request {
            question: format!("Task: {instruction}"),
            texts: vec![index],
            answers: Vec::new(),
        });
    }
    Ok((texts, requests))
}

/// Questions, each with the best of all passages before it.
fn questions(lines: Vec<Line>, limit: usize) -> Outcome<(Vec<Text>, Vec<Request>)> {
    let (mut bodies, mut asked): (Vec<String>, Vec<Question>) = (Vec::new(), Vec::new());
    for line in lines {
        match line {
            Line::Skill { .. } => {}
            Line::Document {
                question,
                answers,
                passages,
            } => {
                for Source { title, text } in passages {
                    let title = if title.is_empty() {
                        title
                    } else {
                        format!("{title}: ")
                    };
                    bodies.extend(
                        pieces(&text, PASSAGE_CHARS - title.len().min(200))
                            .map(|piece| format!("{title}{piece}")),
                    );
                }
                asked.push(Question { question, answers });
            }
            Line::Article { title, paragraphs } => {
                for paragraph in paragraphs {
                    let title = title.replace('_', " ");
                    bodies.extend(
                        pieces(&paragraph.text, PASSAGE_CHARS).map(|piece| format!("{title}: {piece}")),
                    );
                    asked.extend(paragraph.questions);
                }
            }
            Line::Chat { sessions, questions } => {
                for session in sessions {
                    let mut open = String::new();
                    for turn in session.turns {
                        let said = format!("{}: {}\n", turn.speaker, turn.text);
                        if !open.is_empty() && open.len() + said.len() > PASSAGE_CHARS {
                            bodies.push(std::mem::take(&mut open));
                        }
                        if open.is_empty() {
                            open = format!("({})\n", session.date);
                        }
                        open.push_str(&said);
                    }
                    bodies.push(open);
                }
                asked.extend(questions);
            }
        }
    }
    let mut seen = HashSet::new();
    bodies.retain(|body| !body.trim().is_empty() && seen.insert(body.clone()));
    let passages: Vec<Passage> = bodies
        .into_iter()
        .map(|text| Passage {
            document: String::new(),
            place: Place::Lines { first: 1, last: 1 },
            heading: None,
            text,
            tokens: 0,
        })
        .collect();
    let mut requests = Vec::new();
    for Question { question, answers } in asked.into_iter().take(limit) {
        let mut texts = rank(&question, &passages).map_err(|error| Failure::message(error.to_string()))?;
        texts.truncate(PASSAGES);
        requests.push(Request {
            question: format!("Question: {question}\nAnswer with a few words."),
            texts,
            answers,
        });
    }
    let texts = passages
        .into_iter()
        .map(|passage| Text {
            kind: TextKind::Passage,
            rendered: format!("{}\n\n", passage.text.trim_end()),
        })
        .collect();
    Ok((texts, requests))
}

/// A text in pieces of at most `most` bytes, cut behind sentences where there are some, else between words.
fn pieces(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.len();
        if end > most {
            end = (1..=most)
                .rev()
                .find(|&at| rest.is_char_boundary(at))
                .unwrap_or(rest.len());
            let head = &rest[..end];
            let sentence = head.rfind(". ").map(|at| at + 1).filter(|&at| at > most / 3);
            end = sentence
                .or_else(|| head.rfind(' '))
                .filter(|&at| at > 0)
                .unwrap_or(end);
        }
        let (piece, behind) = rest.split_at(end);
        rest = behind.trim_start();
        Some(piece.trim_end())
    })
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_end_behind_sentences_and_lose_no_word() {
        let text = "One two three. Four five six seven eight. Nine ten eleven twelve thirteen fourteen.";
        let cut: Vec<&str> = pieces(text, 40).collect();
        assert!(cut.iter().all(|piece| piece.len() <= 40), "{cut:?}");
        assert_eq!(cut[0], "One two three.");
        assert_eq!(cut.join(" "), text);
        assert_eq!(pieces("äöü", 1).collect::<String>(), "äöü");
        assert_eq!(pieces("  ", 9).count(), 0);
    }
}
