//! `reprise bench workload`: questions over texts that were seen before, and what using them again does to the wait for
//! the first word and to the answers.
//!
//! First every text is read once, behind the system message, and stored. Then every question is asked with each method;
//! nothing of the answers is kept, so that no question profits from another.

mod load;
mod score;

use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use reprise_engine::backend::Deviation;
use reprise_engine::tune::quality::Quality;
use reprise_engine::worker::Worker;
use reprise_engine::{
    Answer, GenerateOptions, KvChoice, LoadOptions, Recompute, Reuse, SamplingOptions, Script, Segment,
    SegmentKind, Speculation, StoreChoice, Strategy, TokenId, machine,
};
use reprise_library::{folders, models::Shelf};
use reprise_model::gguf::Gguf;
use reprise_model::template::{ChatTemplate, Owner, PartedMessage, Role, TemplateOptions};
use serde_json::json;

use super::median;
use crate::failure::{Failure, Outcome};
use crate::interrupts;
use crate::output::StatusLine;
use load::{TextKind, Workload};
use score::likeliest;

#[derive(Debug, Args)]
#[command(after_help = "\
Methods are none (every prompt is read whole), prefix (what begins alike is not read), full (the same
texts are taken as they are, wherever they stand), reprise (a share of them is computed again: the
program's own way), and STRATEGY@RATIO for others: heads+query, heads, keys, values or both, such as
heads+query@0.25. KL and the agreement of the most likely token are those of the answer's tokens
against none.

Example:
  reprise bench workload hotpotqa.jsonl -m model.gguf --limit 20")]
pub struct WorkloadArguments {
    /// Workloads: files of JSON lines with a question, answers and passages (or sessions and questions of a chat, or a
    /// skill and an instruction)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A name from `reprise models list`, or a GGUF file [default: the default model]
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,
    /// What is used again
    #[arg(
        long,
        value_name = "METHOD,...",
        value_delimiter = ',',
        default_value = "none,prefix,full,reprise"
    )]
    methods: Vec<Method>,
    /// Most questions of a file
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true, value_parser = crate::arguments::at_least::<1>)]
    limit: usize,
    /// Most tokens of an answer
    #[arg(short = 'n', long, value_name = "N", default_value = "24", value_parser = crate::arguments::at_least::<1>)]
    generate: usize,
    /// How keys and values are stored
    #[arg(long, value_name = "FORMAT", default_value = "profile", value_parser = crate::arguments::kv_choice)]
    kv: KvChoice,
    /// Memory for chunks beside the disk, such as 256M; 0 for none
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = crate::arguments::bytes)]
    memory: u64,
    /// Tokens of the window
    #[arg(long, value_name = "N", default_value = "4096", value_parser = crate::arguments::at_least::<256>)]
    context: usize,
    /// Compute threads [default: the machine's physical cores]
    #[arg(short, long, value_name = "N", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
    /// Print JSON: an array of {workload, method, requests, ttft_ms, f1, exact, kl, top1, ...}
    #[arg(long)]
    json: bool,
}

/// What is used again.
#[derive(Debug, Clone, PartialEq)]
struct Method {
    name: String,
    reuse: Reuse,
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Method, String> {
        let anywhere = |strategy, ratio| Reuse::Anywhere(Recompute { strategy, ratio });
        let reuse = match text {
            "none" => Reuse::Nothing,
            "prefix" => Reuse::Prefix,
            "full" => anywhere(Strategy::Nothing, 0.0),
            "reprise" => Reuse::default(),
            other => {
                let (strategy, ratio) = other
                    .split_once('@')
                    .ok_or("known are none, prefix, full, reprise and STRATEGY@RATIO")?;
                let strategy = match strategy {
                    "heads+query" => Strategy::HeadsAndQuery,
                    "heads" => Strategy::Heads,
                    "keys" => Strategy::Deviation(Deviation::Keys),
                    "values" => Strategy::Deviation(Deviation::Values),
                    "both" => Strategy::Deviation(Deviation::Both),
                    _ => return Err("strategies are heads+query, heads, keys, values and both".into()),
                };
                let ratio = ratio.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                anywhere(strategy, ratio.ok_or("the ratio is a number from 0 to 1")?)
            }
        };
        Ok(Method {
            name: text.to_owned(),
            reuse,
        })
    }
}

/// What one method came to on one workload.
#[derive(Debug, Default)]
struct Outcomes {
    ttft_ms: Vec<f64>,
    prompt_tokens: Vec<f64>,
    reused_tokens: Vec<f64>,
    moved_tokens: Vec<f64>,
    f1: f64,
    exact: usize,
    judged: usize,
    /// Of the answer's tokens against those without reuse.
    quality: Quality,
    same: usize,
}

/// Measures and prints.
pub fn run(arguments: &WorkloadArguments) -> Outcome {
    interrupts::end_without_a_trace()?;
    let path = Shelf::of_machine()?.resolve(arguments.model.as_deref())?;
    let gguf = Gguf::open(&path).map_err(reprise_engine::EngineError::from)?;
    let mut rows = Vec::new();
    let mut text = format!("{}\n", machine::describe());
    for file in &arguments.files {
        let workload = load::load(file, arguments.limit)?;
        // A folder of its own: nothing of it is left behind, and nothing of the person's is touched.
        let folder =
            tempfile::tempdir().map_err(|error| Failure::message(format!("no room for chunks: {error}")))?;
        let mut worker = Worker::load(
            &path,
            &LoadOptions {
                threads: arguments.threads,
                context_tokens: Some(arguments.context),
                kv: arguments.kv.clone(),
                profiles: Some(folders::profiles()?),
                speculation: Speculation::Off,
                store: Some(StoreChoice {
                    folder: folder.path().to_owned(),
                    budget_bytes: Some(u64::MAX / 2),
                    memory_bytes: usize::try_from(arguments.memory).ok(),
                }),
                ..LoadOptions::default()
            },
        )?;
        let template = ChatTemplate::from_gguf(&gguf, worker.tokenizer());
        let mut bench = Bench {
            worker: &mut worker,
            template: &template,
            workload: &workload,
            most: arguments.generate,
        };
        let stored = bench.read_texts()?;
        let results = bench.ask_all(&arguments.methods)?;
        let (model, kv) = (worker.info().name.clone(), worker.info().kv_format.clone());
        rows.extend(
            arguments
                .methods
                .iter()
                .zip(&results)
                .map(|(method, result)| row(&workload, method, result, &model, &kv)),
        );
        text += &table(&workload, &arguments.methods, &results, &model, &kv, stored);
    }
    let out = match arguments.json {
        true => serde_json::to_string_pretty(&rows)?,
        false => text,
    };
    writeln!(io::stdout(), "{}", out.trim_end()).map_err(|error| Failure::output(&error))
}

struct Bench<'a> {
    worker: &'a mut Worker,
    template: &'a ChatTemplate,
    workload: &'a Workload,
    most: usize,
}

impl Bench<'_> {
    /// A prompt with some texts and perhaps a question, and its segments.
    fn prompt(&self, texts: &[usize], question: Option<&str>) -> Outcome<(Vec<TokenId>, Vec<Segment>)> {
        let owner = |kind: &str, name: String| {
            reprise_engine::Owner::new(kind, name)
                .map(Some)
                .map_err(|error| Failure::message(error.to_string()))
        };
        let mut parts: Vec<&str> = texts
            .iter()
            .map(|&text| self.workload.texts[text].rendered.as_str())
            .collect();
        parts.extend(question);
        let system = [self.workload.system];
        let messages = [
            PartedMessage {
                role: Role::System,
                parts: &system,
            },
            PartedMessage {
                role: Role::User,
                parts: &parts,
            },
        ];
        let stretches = self
            .template
            .encode_parts(self.worker.tokenizer(), &messages, &TemplateOptions::ask())
            .map_err(|error| Failure::message(error.to_string()))?;
        let (mut tokens, mut segments) = (Vec::new(), Vec::new());
        for stretch in stretches {
            let (kind, owner) = match stretch.owner {
                Owner::Part { message: 1, part } if part < texts.len() => {
                    let text = texts[part];
                    match self.workload.texts[text].kind {
                        TextKind::Passage => (SegmentKind::Passage, owner("document", format!("{text}"))?),
                        TextKind::Skill => (SegmentKind::Skill, owner("skill", format!("{text}"))?),
                    }
                }
                Owner::Part { message: 1, .. } => (SegmentKind::Question, owner("chat", "1".into())?),
                Owner::Part { .. } | Owner::Template => (SegmentKind::Turn, owner("chat", "1".into())?),
            };
            segments.push(Segment {
                kind,
                owner,
                tokens: stretch.ids.len(),
            });
            tokens.extend(stretch.ids);
        }
        Ok((tokens, segments))
    }

    /// Reads every text that is asked about, alone behind the system message; bytes stored.
    fn read_texts(&mut self) -> Outcome<u64> {
        let mut wanted: Vec<usize> = self
            .workload
            .requests
            .iter()
            .flat_map(|request| request.texts.clone())
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut status = StatusLine::new(false);
        for (done, &text) in wanted.iter().enumerate() {
            status.show(&format!(
                "{}: reading text {} of {}",
                self.workload.name,
                done + 1,
                wanted.len()
            ));
            let (mut tokens, mut segments) = self.prompt(&[text], None)?;
            // What the template writes behind it is not wanted.
            let end = segments
                .iter()
                .rposition(|segment| segment.kind != SegmentKind::Turn)
                .map_or(segments.len(), |last| last + 1);
            segments.truncate(end);
            tokens.truncate(segments.iter().map(|segment| segment.tokens).sum());
            let options = GenerateOptions {
                sampling: SamplingOptions::greedy(),
                max_tokens: 1,
                segments,
                ..GenerateOptions::default()
            };
            self.worker.set_reuse(Reuse::Prefix);
            self.worker.generate(&tokens, &options)?;
        }
        let Some(keeper) = self.worker.keeper() else {
            return Ok(0);
        };
        keeper.flush();
        let stats = keeper
            .store()
            .stats()
            .map_err(reprise_engine::EngineError::from)?;
        Ok(stats.bytes)
    }

    fn ask(
        &mut self,
        prompt: &(Vec<TokenId>, Vec<Segment>),
        method: &Method,
        script: Option<std::sync::Arc<Script>>,
    ) -> Outcome<Answer> {
        self.worker.set_reuse(method.reuse);
        self.worker.forget();
        let options = GenerateOptions {
            sampling: SamplingOptions::greedy(),
            max_tokens: self.most,
            scratch: true,
            segments: prompt.1.clone(),
            script,
            ..GenerateOptions::default()
        };
        Ok(self.worker.generate(&prompt.0, &options)?)
    }

    fn ask_all(&mut self, methods: &[Method]) -> Outcome<Vec<Outcomes>> {
        let none = Method {
            name: "none".into(),
            reuse: Reuse::Nothing,
        };
        let mut results: Vec<Outcomes> = methods.iter().map(|_| Outcomes::default()).collect();
        let mut status = StatusLine::new(false);
        let count = self.workload.requests.len();
        for (done, request) in self.workload.requests.iter().enumerate() {
            status.show(&format!(
                "{}: question {} of {count}",
                self.workload.name,
                done + 1
            ));
            let prompt = self.prompt(&request.texts, Some(&request.question))?;
            // The answer without any reuse, token by token, is what the others are held against.
            let watch = Script::watch();
            let plain = self.ask(&prompt, &none, Some(watch.clone()))?;
            let mut reference = watch.take_logits();
            reference.truncate(plain.answer_tokens.max(1));
            let said: Vec<TokenId> = reference.iter().map(|logits| likeliest(logits)).collect();
            for (method, result) in methods.iter().zip(&mut results) {
                let answer = self.ask(&prompt, method, None)?;
                let dictation = Script::dictate(said.clone());
                self.ask(&prompt, method, Some(dictation.clone()))?;
                for (reference, logits) in reference.iter().zip(dictation.take_logits()) {
                    result.quality.add(&logits, reference, None);
                    result.same += usize::from(likeliest(&logits) == likeliest(reference));
                }
                if !request.answers.is_empty() {
                    let (f1, exact) = score::score(&answer.text, &request.answers);
                    result.f1 += f1;
                    result.exact += usize::from(exact);
                    result.judged += 1;
                }
                result
                    .ttft_ms
                    .push(answer.time_to_first_token.as_secs_f64() * 1_000.0);
                result.prompt_tokens.push(answer.prompt_tokens as f64);
                result.reused_tokens.push(answer.reused_tokens as f64);
                result.moved_tokens.push(answer.moved_tokens as f64);
            }
        }
        Ok(results)
    }
}

impl Outcomes {
    fn f1(&self) -> Option<f64> {
        (self.judged > 0).then(|| 100.0 * self.f1 / self.judged as f64)
    }

    fn exact(&self) -> Option<f64> {
        (self.judged > 0).then(|| 100.0 * self.exact as f64 / self.judged as f64)
    }

    fn top1(&self) -> f64 {
        self.same as f64 / self.quality.tokens.max(1) as f64
    }
}

fn row(workload: &Workload, method: &Method, result: &Outcomes, model: &str, kv: &str) -> serde_json::Value {
    json!({
        "workload": workload.name,
        "method": method.name,
        "model": model,
        "kv": kv,
        "requests": result.ttft_ms.len(),
        "ttft_ms": median(&result.ttft_ms),
        "prompt_tokens": median(&result.prompt_tokens),
        "reused_tokens": median(&result.reused_tokens),
        "moved_tokens": median(&result.moved_tokens),
        "f1": result.f1(),
        "exact": result.exact(),
        "kl": result.quality.mean_kl(),
        "top1": result.top1(),
    })
}

fn table(
    workload: &Workload,
    methods: &[Method],
    results: &[Outcomes],
    model: &str,
    kv: &str,
    stored: u64,
) -> String {
    let count = results.first().map_or(0, |result| result.ttft_ms.len());
    let mut text = format!(
        "\n{}: {count} questions, {model}, KV {kv}; {:.0} MB of chunks stored\n\n",
        workload.name,
        stored as f64 / 1e6
    );
    text += "| method             | TTFT ms |  faster | prompt | reused | moved |    F1 | exact |      KL | top-1 |\n";
    text += "| ------------------ | ------: | ------: | -----: | -----: | ----: | ----: | ----: | ------: | ----: |\n";
    let none = methods.iter().position(|method| method.name == "none");
    let base = none.map(|none| median(&results[none].ttft_ms));
    let percent = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    for (method, result) in methods.iter().zip(results) {
        let ttft = median(&result.ttft_ms);
        text += &format!(
            "| {:18} | {ttft:7.0} | {:>7} | {:6.0} | {:6.0} | {:5.0} | {:>5} | {:>5} | {:7.4} | {:5.3} |\n",
            method.name,
            base.map_or("-".to_owned(), |base| format!("{:.2}x", base / ttft)),
            median(&result.prompt_tokens),
            median(&result.reused_tokens),
            median(&result.moved_tokens),
            percent(result.f1()),
            percent(result.exact()),
            result.quality.mean_kl(),
            result.top1(),
        );
    }
    text
}
