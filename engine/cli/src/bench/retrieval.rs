//! `reprise bench retrieval`: whether the passages that answer a question are among the first that the index finds, by
//! words, by meaning, and by both.
//!
//! The texts of a file are written as documents to a temporary folder and indexed as a person's would be, cut by the same
//! rules; nothing is told to the index about which passage is the right one. What counts as right depends on the file:
//! - paragraphs with questions: the paragraph that the question was asked about, among all paragraphs of the file;
//! - passages with a question: among the question's own passages, all that it needs, where lines say which (`supporting`, a
//!   list of titles). Where they do not: every passage whose title the question names, and one that holds the answer
//!   word for word, which is less than a person's judgement and close to it;
//! - sessions of a chat: a stretch with the turn that is the evidence, among all of that chat.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use reprise_library::folders;
use reprise_library::index::{By, DocumentId, Hit, Index, Run};
use serde::Serialize;
use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::output::{note, print};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reprise bench retrieval squad.jsonl hotpotqa.jsonl locomo.jsonl
  reprise bench retrieval squad.jsonl --misses")]
pub struct RetrievalArguments {
    /// Files of JSON lines, as for `reprise bench workload`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How many passages a question gets
    #[arg(short = 'n', long, value_name = "N", default_value = "6", value_parser = crate::arguments::at_least::<1>)]
    limit: usize,
    /// List the questions that fused search misses
    #[arg(long)]
    misses: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shorter titles may stand in a question by chance.
const SHORTEST_NAME: usize = 4;

/// A question, where it is looked for, and what would be right.
struct Asked {
    question: String,
    /// Numbers of the documents it is asked about; all where there are none.
    within: Vec<usize>,
    wanted: Wanted,
}

/// What has to be found. A document is known by its number.
enum Wanted {
    /// One document out of each of these lists.
    OneOfEach(Vec<Vec<usize>>),
    /// A passage with all of one of these texts, in the document that stands by it.
    Text(Vec<(usize, String)>),
}

/// A file's documents and questions.
#[derive(Default)]
struct Task {
    name: String,
    what: &'static str,
    documents: Vec<String>,
    asked: Vec<Asked>,
    /// Questions that cannot be judged.
    unjudged: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    file: String,
    wanted: &'static str,
    questions: usize,
    unjudged: usize,
    documents: usize,
    passages: usize,
    words: f64,
    meaning: Option<f64>,
    both: f64,
}

pub fn run(arguments: &RetrievalArguments) -> Outcome {
    let mut rows = Vec::new();
    for file in &arguments.files {
        let task = load(file)?;
        rows.push(measure(&task, arguments)?);
    }
    if arguments.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(&rows)?));
    }
    let mut text = format!(
        "share of questions with what they need among the first {}\n\n| file | wanted | questions | documents | passages | words (BM25) | meaning | both |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        arguments.limit
    );
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for row in &rows {
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row.file,
            row.wanted,
            row.questions,
            row.documents,
            row.passages,
            percent(row.words),
            row.meaning.map_or("-".into(), percent),
            percent(row.both)
        );
        if row.unjudged > 0 {
            text += &format!(
                "\n{}: {} questions cannot be judged and are left out\n\n",
                row.file, row.unjudged
            );
        }
    }
    print(&text)
}

fn measure(task: &Task, arguments: &RetrievalArguments) -> Outcome<Row> {
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("documents");
    fs::create_dir(&root)?;
    let root = root.canonicalize()?;
    let mut ids = Vec::new();
    for (number, document) in task.documents.iter().enumerate() {
        // Names that say nothing.
        let path = root.join(format!("{number:05}.md"));
        fs::write(&path, document)?;
        ids.push(DocumentId::of(&path));
    }
    let encoder = folders::encoder()?;
    let (index, _) = Index::open(&scratch.path().join("index"), Some(&encoder))?;
    index.add(&root)?;
    index.update(&mut Run {
        cancel: Default::default(),
        is_busy: &|| false,
        progress: &mut |_| {},
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    })?;
    let meaning = index.meaning();
    if let Some(why) = meaning.why_not() {
        note(&format!("note: {why}"));
    }
    let has_meaning = meaning.why_not().is_none();
    let number_of: HashMap<DocumentId, usize> =
        ids.iter().enumerate().map(|(number, id)| (*id, number)).collect();
    let mut right = [0usize; 3];
    for asked in &task.asked {
        let within: Vec<DocumentId> = asked.within.iter().map(|&number| ids[number]).collect();
        let within = (!within.is_empty()).then_some(within.as_slice());
        for (right, by) in right.iter_mut().zip([By::Words, By::Meaning, By::Both]) {
            let hits = index
                .search_by(&asked.question, within, arguments.limit, by)?
                .hits;
            let is_right = asked.wanted.is_in(&hits, &number_of);
            *right += usize::from(is_right);
            if arguments.misses && by == By::Both && !is_right {
                note(&format!("{}: {}", task.name, asked.question));
            }
        }
    }
    let share = |right: usize| right as f64 / task.asked.len().max(1) as f64;
    Ok(Row {
        file: task.name.clone(),
        wanted: task.what,
        questions: task.asked.len(),
        unjudged: task.unjudged,
        documents: task.documents.len(),
        passages: index.status()?.passages,
        words: share(right[0]),
        meaning: has_meaning.then(|| share(right[1])),
        both: share(right[2]),
    })
}

impl Wanted {
    fn is_in(&self, hits: &[Hit], number_of: &HashMap<DocumentId, usize>) -> bool {
        let found: HashSet<usize> = hits
            .iter()
            .filter_map(|hit| number_of.get(&hit.stored.document).copied())
            .collect();
        match self {
            Wanted::OneOfEach(lists) => lists
                .iter()
                .all(|any| any.iter().any(|number| found.contains(number))),
            Wanted::Text(texts) => hits.iter().any(|hit| {
                let number = number_of.get(&hit.stored.document);
                texts
                    .iter()
                    .any(|(of, text)| number == Some(of) && hit.stored.passage.text.contains(text.as_str()))
            }),
        }
    }
}

fn load(path: &Path) -> Outcome<Task> {
    let cannot = |what: String| Failure::message(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
    let mut task = Task {
        name: path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        ..Task::default()
    };
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let at = |what: &str| cannot(format!("line {}: {what}", number + 1));
        let value: Value =
            serde_json::from_str(line).map_err(|error| at(&format!("this is no JSON: {error}")))?;
        let known = if value.get("paragraphs").is_some() {
            article(&mut task, &value)
        } else if value.get("sessions").is_some() {
            chat(&mut task, &value)
        } else if value.get("passages").is_some() {
            passages(&mut task, &value)
        } else {
            return Err(at(
                "a line for retrieval has paragraphs, passages or sessions, and this has none of them",
            ));
        };
        known.ok_or_else(|| at("a field is missing or of another type"))?;
    }
    if task.asked.is_empty() {
        return Err(cannot("no question in it says where its answer stands".into()));
    }
    Ok(task)
}

fn article(task: &mut Task, value: &Value) -> Option<()> {
    task.what = "its paragraph";
    let title = value.get("title")?.as_str()?.replace('_', " ");
    for paragraph in value.get("paragraphs")?.as_array()? {
        let number = task.documents.len();
        task.documents
            .push(format!("# {title}\n\n{}\n", paragraph.get("text")?.as_str()?));
        for asked in paragraph.get("questions")?.as_array()? {
            let question = asked.get("question")?.as_str()?.to_owned();
            task.asked.push(Asked {
                question,
                within: Vec::new(),
                wanted: Wanted::OneOfEach(vec![vec![number]]),
            });
        }
    }
    Some(())
}

fn passages(task: &mut Task, value: &Value) -> Option<()> {
    let first = task.documents.len();
    let mut titles = Vec::new();
    for passage in value.get("passages")?.as_array()? {
        let (title, text) = (passage.get("title")?.as_str()?, passage.get("text")?.as_str()?);
        titles.push(title);
        let heading = if title.is_empty() {
            String::new()
        } else {
            format!("# {title}\n\n")
        };
        task.documents.push(format!("{heading}{text}\n"));
    }
    let all = || first..first + titles.len();
    let strings = |name: &str| -> Vec<String> {
        let list = value.get(name).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|one| one.as_str().map(str::to_owned))
            .collect()
    };
    let supporting = strings("supporting");
    let mut wanted = Vec::new();
    if supporting.is_empty() {
        task.what = "the passages named and one with the answer";
        let asked = value.get("question")?.as_str()?.to_lowercase();
        for (number, title) in all().zip(&titles) {
            // What stands in brackets tells namesakes apart, and nobody says it.
            let name = title.split(" (").next().unwrap_or_default().to_lowercase();
            if name.chars().count() >= SHORTEST_NAME && asked.contains(&name) {
                wanted.push(vec![number]);
            }
        }
        let answers: Vec<String> = strings("answers")
            .iter()
            .map(|one| one.trim().to_lowercase())
            .collect();
        let holds = |&number: &usize| {
            let text = task.documents[number].to_lowercase();
            let is_said =
                |answer: &String| !["", "yes", "no"].contains(&answer.as_str()) && text.contains(answer);
            answers.iter().any(is_said)
        };
        wanted.push(all().filter(holds).collect());
    } else {
        task.what = "all supporting passages";
        let is_wanted = |title: &&str| supporting.iter().any(|one| one == title);
        let numbers = all().zip(&titles).filter(|(_, title)| is_wanted(title));
        wanted.extend(numbers.map(|(number, _)| vec![number]));
    }
    wanted.retain(|any: &Vec<usize>| !any.is_empty());
    if wanted.is_empty() {
        task.unjudged += 1;
        return Some(());
    }
    let question = value.get("question")?.as_str()?.to_owned();
    task.asked.push(Asked {
        question,
        within: all().collect(),
        wanted: Wanted::OneOfEach(wanted),
    });
    Some(())
}

fn chat(task: &mut Task, value: &Value) -> Option<()> {
    task.what = "a turn of the evidence";
    let first = task.documents.len();
    let mut said = HashMap::new();
    for session in value.get("sessions")?.as_array()? {
        let mut document = format!("# {}\n\n", session.get("date")?.as_str()?);
        for turn in session.get("turns")?.as_array()? {
            let text = turn
                .get("text")?
                .as_str()?
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            if let Some(id) = turn.get("id").and_then(Value::as_str) {
                // A long turn may be cut: its beginning tells where it is.
                let start: String = text.chars().take(80).collect();
                said.insert(id.to_owned(), (task.documents.len(), start.trim_end().to_owned()));
            }
            document += &format!("{}: {text}\n\n", turn.get("speaker")?.as_str()?);
        }
        task.documents.push(document);
    }
    for asked in value.get("questions")?.as_array()? {
        let evidence = asked.get("evidence").and_then(Value::as_array);
        let turns: Vec<_> = evidence
            .into_iter()
            .flatten()
            .filter_map(|id| said.get(id.as_str()?).cloned())
            .collect();
        if turns.is_empty() {
            task.unjudged += 1;
            continue;
        }
        let question = asked.get("question")?.as_str()?.to_owned();
        let within = (first..task.documents.len()).collect();
        task.asked.push(Asked {
            question,
            within,
            wanted: Wanted::Text(turns),
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> Result<Task, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("some.jsonl");
        fs::write(&file, line).unwrap();
        load(&file).map_err(|failure| format!("{failure:?}"))
    }

    fn wanted(task: &Task) -> &Vec<Vec<usize>> {
        match &task.asked[0].wanted {
            Wanted::OneOfEach(lists) => lists,
            Wanted::Text(_) => panic!("this is about documents"),
        }
    }

    const PASSAGES: &str = r#"[{"title": "Ada Lovelace", "text": "She wrote it."}, {"title": "Engine (1837)", "text": "By Babbage."},
        {"title": "Other", "text": "Nothing."}]"#;

    #[test]
    fn what_is_right_comes_from_the_line() {
        let line = |extra: &str| {
            let line = format!(
                r#"{{"question": "Who built the engine of Ada Lovelace?", {extra}, "passages": {PASSAGES}}}"#
            );
            task(&line.replace('\n', "")).unwrap()
        };
        assert_eq!(
            wanted(&line(r#""answers": ["Babbage"]"#)),
            &[vec![0], vec![1], vec![1]]
        );
        assert_eq!(wanted(&line(r#""answers": ["no"]"#)), &[vec![0], vec![1]]);
        assert_eq!(
            wanted(&line(r#""answers": [], "supporting": ["Other"]"#)),
            &[vec![2]]
        );
    }

    #[test]
    fn turns_are_found_by_what_was_said() {
        let line = r#"{"sessions": [{"date": "May", "turns": [{"id": "1", "speaker": "A", "text": "We  met"}]}],
            "questions": [{"question": "When?", "evidence": ["1"]}, {"question": "Why?", "evidence": []}]}"#;
        let task = task(&line.replace('\n', "")).unwrap();
        assert_eq!((task.asked.len(), task.unjudged), (1, 1));
        assert!(matches!(&task.asked[0].wanted, Wanted::Text(texts) if texts == &[(0, "We met".to_owned())]));
    }

    #[test]
    fn faults_are_told_with_the_line() {
        for (line, word) in [
            ("7", "line 1"),
            ("{", "no JSON"),
            (r#"{"paragraphs": []}"#, "missing"),
        ] {
            let fault = task(line).err().unwrap();
            assert!(fault.contains(word), "{fault}");
        }
    }
}
