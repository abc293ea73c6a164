//! Results for people and for programs.

use reprise_engine::machine;
use serde_json::{Value, json};

use super::load::Workload;
use super::method::{Ablation, REPRISE};
use super::outcomes::Outcomes;
use crate::bench::median;

/// The other side's name.
pub const SERVER: &str = "llama-server";

/// What a workload came to.
pub struct Report {
    pub workload: String,
    /// For workloads of one long prompt: whether the question is the same as before or another.
    pub question: Option<&'static str>,
    pub model: String,
    pub kv: String,
    pub stored_bytes: u64,
    /// Our rows and the other side's, in order.
    pub rows: Vec<Row>,
}

/// A row: a method and what it came to.
pub struct Row {
    pub name: String,
    pub ablation: Option<Ablation>,
    /// Bytes stored, where the row has a store of its own.
    pub stored_bytes: Option<u64>,
    pub outcomes: Outcomes,
}

impl Row {
    pub fn new(name: impl Into<String>, outcomes: Outcomes) -> Row {
        Row {
            name: name.into(),
            ablation: None,
            stored_bytes: None,
            outcomes,
        }
    }
}

/// A number, or a dash where there is none.
fn cell(value: f64, decimals: usize) -> String {
    match value.is_finite() {
        true => format!("{value:.decimals$}"),
        false => "-".into(),
    }
}

/// A time in milliseconds, short ones with a tenth.
fn wait(ms: f64) -> String {
    cell(ms, usize::from(ms < 100.0))
}

fn maybe(value: Option<f64>, decimals: usize) -> String {
    cell(value.unwrap_or(f64::NAN), decimals)
}

fn times(ratio: f64) -> String {
    match ratio.is_finite() {
        true => format!("{ratio:.2}x"),
        false => "-".into(),
    }
}

/// A table in Markdown: the first columns to the left, the others to the right.
fn table(left: usize, head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        // Markdown's line below the head takes two at least.
        cells.chain([head[column].chars().count()]).fold(2, usize::max)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let fit = |(text, (column, &width)): (&str, (usize, &usize))| match column < left {
            true => format!("{text:<width$}"),
            false => format!("{text:>width$}"),
        };
        let cells: Vec<String> = cells.zip(widths.iter().enumerate()).map(fit).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rules: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(column, &width)| match column < left {
            true => "-".repeat(width),
            false => format!("{}:", "-".repeat(width - 1)),
        })
        .collect();
    let mut text = line(&mut head.iter().copied());
    text += &line(&mut rules.iter().map(String::as_str));
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

impl Report {
    pub fn new(workload: &Workload, model: &str, kv: &str) -> Report {
        Report {
            workload: workload.name.clone(),
            question: None,
            model: model.to_owned(),
            kv: kv.to_owned(),
            stored_bytes: 0,
            rows: Vec::new(),
        }
    }

    fn ttft_of(&self, name: &str) -> f64 {
        let row = self.rows.iter().find(|row| row.name == name);
        row.map_or(f64::NAN, |row| row.outcomes.ttft())
    }

    /// What other rows are held against: the program's own way.
    fn ours(&self) -> &'static str {
        match self.question {
            None => REPRISE,
            Some(_) => super::prefix::HIT,
        }
    }

    /// A row for each method.
    pub fn to_json(&self) -> Vec<Value> {
        let (none, ours) = (self.ttft_of("none"), self.ttft_of(self.ours()));
        let peak = machine::peak_resident_bytes();
        let rows = self.rows.iter().map(|row| {
            let mut value = json!({
                "workload": self.workload,
                "method": row.name,
                "without": row.ablation.map(|ablation| ablation.part),
                "model": self.model,
                "kv": self.kv,
                "faster_than_none": none / row.outcomes.ttft(),
                "ratio_to_reprise": row.outcomes.ttft() / ours,
                "stored_bytes": row.stored_bytes.unwrap_or(self.stored_bytes),
                "peak_resident_bytes": peak,
                "machine": machine::describe(),
            });
            if let Some(question) = self.question {
                value["question"] = question.into();
            }
            if let (Value::Object(all), Value::Object(more)) = (&mut value, row.outcomes.to_json()) {
                all.extend(more);
            }
            value
        });
        rows.collect()
    }

    /// Tables for people.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "\n{}{}: {}, {}, KV {}; {:.1} MB of chunks stored\n\n",
            self.workload,
            match self.question {
                Some(question) => format!(", {question} question"),
                None => String::new(),
            },
            crate::output::counted(
                self.rows.first().map_or(0, |row| row.outcomes.ttft_ms.len()),
                match self.question {
                    Some(_) => "repetition",
                    None => "question",
                }
            ),
            self.model,
            self.kv,
            self.stored_bytes as f64 / 1e6
        );
        let usual: Vec<&Row> = self.rows.iter().filter(|row| row.ablation.is_none()).collect();
        text += &self.waits(&usual);
        text += "\n";
        text += &self.steps();
        text += &self.ablations();
        let (ours, server) = (self.ttft_of(self.ours()), self.server());
        if let Some(server) = server.filter(|_| ours.is_finite()) {
            text += &format!(
                "\n{SERVER}'s first token comes after {:.2} times the wait of {}\n",
                server.outcomes.ttft() / ours,
                self.ours()
            );
        }
        for row in &self.rows {
            if let Some(state) = row.outcomes.file_cache_state() {
                text += &format!("{}: file cache {}\n", row.name, state.name());
            }
            if !row.outcomes.start_ms.is_empty() {
                text += &format!(
                    "{}: the model was loaded anew before, in {:.0} ms\n",
                    row.name,
                    median(&row.outcomes.start_ms)
                );
            }
        }
        text
    }

    fn server(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.name.starts_with(SERVER))
    }

    fn waits(&self, rows: &[&Row]) -> String {
        let none = self.ttft_of("none");
        // One token of one long prompt says nothing of answers.
        let columns = if self.question.is_some() { 7 } else { 11 };
        let lines: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let outcomes = &row.outcomes;
                let mut cells = vec![
                    row.name.clone(),
                    wait(outcomes.ttft()),
                    times(none / outcomes.ttft()),
                    cell(median(&outcomes.prompt_tokens), 0),
                    cell(median(&outcomes.reused_tokens), 0),
                    cell(median(&outcomes.moved_tokens), 0),
                    cell(median(&outcomes.recomputed_tokens), 0),
                    maybe(outcomes.f1(), 1),
                    maybe(outcomes.exact(), 1),
                    maybe(outcomes.kl(), 4),
                    maybe(outcomes.top1(), 3),
                ];
                cells.truncate(columns);
                cells
            })
            .collect();
        let head = [
            "method", "TTFT ms", "faster", "prompt", "reused", "moved", "again", "F1", "exact", "KL", "top-1",
        ];
        table(1, &head[..columns], &lines)
    }

    /// What went on until the first token.
    fn steps(&self) -> String {
        let lines: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| {
                let outcomes = &row.outcomes;
                let hits =
                    |of: fn((usize, usize)) -> usize| maybe(outcomes.hits().map(|hits| of(hits) as f64), 0);
                vec![
                    row.name.clone(),
                    cell(outcomes.match_ms(), 1),
                    cell(outcomes.load_ms(), 1),
                    cell(outcomes.turn_ms(), 1),
                    cell(outcomes.compute_ms(), 0),
                    cell(outcomes.store_ms(), 1),
                    match outcomes.hidden_share() {
                        share if share.is_finite() => format!("{:.0} %", share * 100.0),
                        _ => "-".into(),
                    },
                    hits(|hits| hits.0),
                    hits(|hits| hits.1),
                    maybe(outcomes.cpu_seconds(), 2),
                ]
            })
            .collect();
        table(
            1,
            &[
                "method",
                "match ms",
                "load ms",
                "turn ms",
                "compute ms",
                "store ms",
                "hidden",
                "memory hits",
                "flash hits",
                "CPU s",
            ],
            &lines,
        )
    }

    /// What each part saves: the program without it against the whole.
    fn ablations(&self) -> String {
        let whole = self.ttft_of(REPRISE);
        let lines: Vec<Vec<String>> = self
            .rows
            .iter()
            .filter_map(|row| {
                let ablation = row.ablation?;
                let outcomes = &row.outcomes;
                Some(vec![
                    ablation.part.to_owned(),
                    ablation.without.to_owned(),
                    wait(outcomes.ttft()),
                    times(outcomes.ttft() / whole),
                    cell(row.stored_bytes.unwrap_or(self.stored_bytes) as f64 / 1e6, 1),
                    maybe(outcomes.f1(), 1),
                    maybe(outcomes.kl(), 4),
                ])
            })
            .collect();
        if lines.is_empty() {
            return String::new();
        }
        let head = ["without", "that is", "TTFT ms", "wait", "MB stored", "F1", "KL"];
        format!("\n{}", table(2, &head, &lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ttft_ms: f64) -> Row {
        let mut outcomes = Outcomes::default();
        outcomes.ttft_ms.push(ttft_ms);
        Row::new(name, outcomes)
    }

    #[test]
    fn rows_are_held_against_none_and_against_ours() {
        let report = Report {
            workload: "w".into(),
            question: None,
            model: "m".into(),
            kv: "f16".into(),
            stored_bytes: 5,
            rows: vec![row("none", 100.0), row(REPRISE, 20.0), row(SERVER, 60.0)],
        };
        let rows = report.to_json();
        assert_eq!(rows[2]["method"], "llama-server");
        assert_eq!(rows[2]["ratio_to_reprise"], 3.0);
        assert_eq!(rows[1]["faster_than_none"], 5.0);
        assert_eq!(rows[2]["kl"], Value::Null);
        assert_eq!(rows[0]["stored_bytes"], 5);
        let text = report.to_text();
        assert!(text.contains("3.00 times"), "{text}");
        assert!(text.contains("1 question,"), "{text}");
        assert!(!text.contains("without"), "{text}");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let text = table(1, &["a", "b"], &[vec!["long name".into(), "1".into()]]);
        assert_eq!(
            text,
            "| a         |  b |\n| --------- | -: |\n| long name |  1 |\n"
        );
    }
}
