//! Workloads from JSON lines: what is asked about which texts.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use reprise_library::{Passage, Place, rank};
use serde::Deserialize;
use serde_json::Value;

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

impl Workload {
    /// The texts and questions of all of them as one.
    pub fn of_all(workloads: Vec<Workload>) -> Workload {
        let mut all = Workload {
            name: String::new(),
            system: DOCUMENT_SYSTEM,
            texts: Vec::new(),
            requests: Vec::new(),
        };
        for workload in workloads {
            let before = all.texts.len();
            if !all.name.is_empty() {
                all.name += "+";
            }
            all.name += &workload.name;
            all.texts.extend(workload.texts);
            all.requests
                .extend(workload.requests.into_iter().map(|request| Request {
                    texts: request.texts.iter().map(|text| before + text).collect(),
                    ..request
                }));
        }
        all
    }
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

/// A line of a file. Files hold one kind of lines, which a field tells apart.
enum Line {
    Skill(SkillTask),
    Chat(Chat),
    Article(Article),
    Document(Document),
}

/// Reads the whole of a line.
type Read = fn(Value) -> serde_json::Result<Line>;

/// The fields that tell kinds of lines apart.
const KINDS: [(&str, Read); 4] = [
    ("skill", |value| serde_json::from_value(value).map(Line::Skill)),
    ("sessions", |value| serde_json::from_value(value).map(Line::Chat)),
    ("paragraphs", |value| {
        serde_json::from_value(value).map(Line::Article)
    }),
    ("passages", |value| {
        serde_json::from_value(value).map(Line::Document)
    }),
];

impl Line {
    /// Reads a line, and says which of [`KINDS`] it is; else what is wrong with it.
    fn parse(text: &str) -> Result<(&'static str, Line), String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("this is no JSON: {error}"))?;
        let (kind, read) = KINDS.iter().find(|(kind, _)| value.get(kind).is_some()).ok_or(
            "a workload's line has skill, sessions, paragraphs or passages, and this has none of them",
        )?;
        let line = read(value).map_err(|error| error.to_string())?;
        let questions = match &line {
            Line::Skill(task) => vec![&task.instruction],
            Line::Chat(chat) => chat.questions.iter().map(|asked| &asked.question).collect(),
            Line::Article(article) => {
                let asked = article.paragraphs.iter().flat_map(|one| &one.questions);
                asked.map(|asked| &asked.question).collect()
            }
            Line::Document(document) => vec![&document.question],
        };
        match questions.iter().all(|question| !question.trim().is_empty()) {
            true => Ok((kind, line)),
            false => Err("a question is empty".into()),
        }
    }
}

#[derive(Deserialize)]
struct SkillTask {
    skill: String,
    instruction: String,
}

#[derive(Deserialize)]
struct Chat {
    sessions: Vec<Session>,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Article {
    title: String,
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Document {
    question: String,
    answers: Vec<String>,
    passages: Vec<Source>,
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
    let mut lines: Vec<Line> = Vec::new();
    let mut first = None;
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let cannot = |what: String| cannot(format!("line {}: {what}", number + 1));
        let (kind, line) = Line::parse(line).map_err(cannot)?;
        match *first.get_or_insert(kind) {
            first if first == kind => lines.push(line),
            first => {
                return Err(cannot(format!(
                    "this is about {kind}, and earlier lines are about {first}; make two files of it"
                )));
            }
        }
    }
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let (texts, requests, system) = match first {
        None => return Err(cannot("there is nothing in it".into())),
        Some("skill") => {
            let (texts, requests) = skills(lines, path, limit)?;
            (texts, requests, SKILL_SYSTEM)
        }
        Some(kind) => {
            let (texts, requests) = questions(lines, limit)?;
            let system = match kind {
                "sessions" => CHAT_SYSTEM,
                _ => DOCUMENT_SYSTEM,
            };
            (texts, requests, system)
        }
    };
    if requests.is_empty() {
        return Err(cannot("there is no question in it".into()));
    }
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
        let Line::Skill(SkillTask { skill, instruction }) = line else {
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
            Line::Skill(_) => {}
            Line::Document(Document {
                question,
                answers,
                passages,
            }) => {
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
            Line::Article(Article { title, paragraphs }) => {
                for paragraph in paragraphs {
                    let title = title.replace('_', " ");
                    bodies.extend(
                        pieces(&paragraph.text, PASSAGE_CHARS).map(|piece| format!("{title}: {piece}")),
                    );
                    asked.extend(paragraph.questions);
                }
            }
            Line::Chat(Chat { sessions, questions }) => {
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
            path: PathBuf::new(),
            place: Place::Lines { first: 1, last: 1 },
            headings: Vec::new(),
            range: 0..text.len(),
            text,
            is_ocr: false,
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
            // An answer of nothing would make silence right.
            answers: answers
                .into_iter()
                .filter(|answer| !answer.trim().is_empty())
                .collect(),
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
    use super::*;

    fn load_lines(lines: &str, limit: usize) -> Result<Workload, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("some.jsonl");
        fs::write(&file, lines).unwrap();
        load(&file, limit).map_err(|failure| match failure {
            Failure::Message(text) => text,
            other => format!("{other:?}"),
        })
    }

    const ASKED: &str = r#"{"question": "Who?", "answers": ["Ada", " "], "passages": [{"title": "", "text": "Ada wrote it."}]}"#;
    const CHAT: &str = r#"{"sessions": [{"date": "today", "turns": [{"speaker": "A", "text": "When we met"}]}],
        "questions": [{"question": "When?", "answers": []}, {"question": "Why?", "answers": ["so"]}]}"#;

    #[test]
    fn lines_become_texts_and_questions() {
        let workload = load_lines(&format!("\n{ASKED}\n"), usize::MAX).unwrap();
        assert_eq!((workload.texts.len(), workload.requests.len()), (1, 1));
        assert_eq!(workload.requests[0].answers, ["Ada"]);
        let chat = CHAT.replace('\n', "");
        assert_eq!(load_lines(&chat, usize::MAX).unwrap().requests.len(), 2);
        let limited = load_lines(&chat, 1).unwrap();
        assert!(limited.requests.len() == 1 && limited.requests[0].answers.is_empty());
        let both = Workload::of_all(vec![workload, limited]);
        assert_eq!((both.name.as_str(), both.texts.len()), ("some+some", 2));
        assert_eq!(both.requests[1].texts, [1]);
    }

    #[test]
    fn faults_are_told_with_the_line_and_the_field() {
        let fault = |lines: &str| load_lines(lines, usize::MAX).err().unwrap();
        let with = |line: &str| fault(&format!("{ASKED}\n\n{line}\n"));
        let cases = [
            (
                with(r#"{"question": "Who?", "passages": []}"#),
                ["line 3", "`answers`"],
            ),
            (with("{\"question\": \"Who?\""), ["line 3", "no JSON"]),
            (with(r#"{"question": "Who?"}"#), ["line 3", "passages"]),
            (with("7"), ["line 3", "none of them"]),
            (
                with(r#"{"question": " ", "answers": [], "passages": []}"#),
                ["line 3", "question is empty"],
            ),
            (
                with(r#"{"question": "Who?", "answers": "Ada", "passages": []}"#),
                ["line 3", "string"],
            ),
            (
                with(&CHAT.replace('\n', "")),
                ["line 3", "earlier lines are about passages"],
            ),
            (fault(" \n"), ["some.jsonl", "nothing in it"]),
            (
                fault(r#"{"title": "A", "paragraphs": [{"text": "b", "questions": []}]}"#),
                ["some.jsonl", "no question"],
            ),
            (
                fault(r#"{"skill": "nothing", "instruction": "Do."}"#),
                ["nothing", "SKILL.md"],
            ),
        ];
        for (fault, words) in cases {
            assert!(words.iter().all(|word| fault.contains(word)), "{fault}");
        }
    }

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
