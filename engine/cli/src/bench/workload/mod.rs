//! `reprise bench workload`: questions over texts that were seen before, and what using them again does to the wait for
//! the first word and to the answers.
//!
//! First every text is read once, behind the system message, and stored. Then every question is asked with each method;
//! nothing of the answers is kept, so that no question profits from another. The other side, where there is one, reads
//! the same texts first and is asked the same prompts by turns with ours.

mod ask;
mod leftovers;
mod load;
mod method;
mod outcomes;
mod prefix;
mod report;
mod score;
mod server;
mod system;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use reprise_engine::worker::Worker;
use reprise_engine::{KvChoice, LoadOptions, Speculation, StoreChoice, machine};
use reprise_library::{folders, models::Shelf};
use reprise_model::gguf::Gguf;

use crate::failure::{Failure, Outcome};
use ask::Bench;
use leftovers::Leftovers;
use load::Workload;
use method::{Ablation, Method, REPRISE};
use report::{Report, Row, SERVER};
use server::LlamaServer;

#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct WorkloadArguments {
    /// Workloads: files of JSON lines with a question, answers and passages (or sessions and questions of a chat, a title
    /// and paragraphs with questions, or a skill and an instruction)
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
    /// Parts of the program to do without, a row for each: what it saves here
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    ablate: Vec<Ablation>,
    /// A llama-server binary to ask the same: with the same model, threads and window, one slot, its prompt cache as by
    /// default, and --cache-reuse 256
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
    /// Instead of the questions: a prompt of N tokens of the files' texts that is known from its beginning, asked again
    /// with the same question and with others
    #[arg(long, value_name = "N", conflicts_with_all = ["methods", "ablate", "cold"], value_parser = crate::arguments::at_least::<64>)]
    prefix: Option<usize>,
    /// How often --prefix asks each
    #[arg(long, value_name = "N", default_value = "3", value_parser = crate::arguments::at_least::<1>)]
    repetitions: usize,
    /// Take the stored chunks out of the system's file cache before each question, so that they come from the disk
    /// (Linux)
    #[arg(long)]
    cold: bool,
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
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = crate::arguments::bytes_or_nothing)]
    memory: u64,
    /// Tokens of the window
    #[arg(long, value_name = "N", default_value = "4096", value_parser = crate::arguments::at_least::<256>)]
    context: usize,
    /// Compute threads [default: the machine's physical cores]
    #[arg(short, long, value_name = "N", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
    /// Print JSON: an array of {workload, method, without, requests, ttft_ms, faster_than_none, ratio_to_reprise, f1, kl,
    /// match_ms, load_ms, turn_ms, compute_ms, hidden_share, cpu_seconds, ...}; what a row has not is null
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    format!(
        "\
Methods are none (every prompt is read whole), prefix (what begins alike is not read), full (the same
texts are taken as they are, wherever they stand), reprise (a share of them is computed again: the
program's own way), and STRATEGY@RATIO for others: heads+query, heads, keys, values or both, such as
heads+query@0.25. KL and the agreement of the most likely token are those of the answer's tokens
against none.

Parts to do without:{}
A part that belongs to how a model is loaded has a worker of its own, after the others; its KL is
against none of that worker.

Times are medians. Those of the other side are what its client sees; it keeps what it was asked
before, ours keeps nothing of a question. CPU s is of all answers together. With --prefix the rows
are none, hit (the engine has the prompt), restart (the model was loaded anew, and chunks are on the
disk only) and llama-server hit; answers are one token, and ratio_to_reprise is that to hit.

Examples:
  reprise bench workload hotpotqa.jsonl -m model.gguf --limit 20
  reprise bench workload hotpotqa.jsonl --against ~/llama.cpp/build/bin/llama-server --json
  reprise bench workload hotpotqa.jsonl --prefix 3000 --against ~/llama.cpp/build/bin/llama-server
  reprise bench workload musique.jsonl --methods none,reprise --ablate memory,anywhere --cold",
        Ablation::manual()
    )
}

/// What all measurements of a run share.
pub struct Setup<'a> {
    pub arguments: &'a WorkloadArguments,
    pub model: PathBuf,
    pub gguf: Gguf,
    pub leftovers: Leftovers,
}

impl Setup<'_> {
    /// How the model is loaded, with its chunks in a folder.
    pub fn load_options(&self, folder: &Path) -> LoadOptions {
        LoadOptions {
            threads: self.arguments.threads,
            context_tokens: Some(self.arguments.context),
            kv: self.arguments.kv.clone(),
            profiles: folders::profiles().ok(),
            speculation: Speculation::Off,
            store: Some(StoreChoice {
                folder: folder.to_owned(),
                budget_bytes: Some(u64::MAX / 2),
                memory_bytes: usize::try_from(self.arguments.memory).ok(),
            }),
            ..LoadOptions::default()
        }
    }

    /// The other side, where one is named: with the same model, window and threads as a worker.
    pub fn server(&self, worker: &Worker) -> Outcome<Option<LlamaServer>> {
        let start = |binary: &PathBuf| {
            let threads = worker.info().threads;
            LlamaServer::start(
                binary,
                &self.model,
                self.arguments.context,
                threads,
                &self.leftovers,
            )
        };
        self.arguments.against.as_ref().map(start).transpose()
    }
}

/// Measures and prints.
pub fn run(arguments: &WorkloadArguments) -> Outcome {
    if let Some(binary) = &arguments.against {
        LlamaServer::check(binary)?;
    }
    let workloads: Vec<Workload> = arguments
        .files
        .iter()
        .map(|file| load::load(file, arguments.limit))
        .collect::<Outcome<_>>()?;
    let model = Shelf::of_machine()?.resolve(arguments.model.as_deref())?;
    let setup = Setup {
        arguments,
        gguf: Gguf::open(&model).map_err(reprise_engine::EngineError::from)?,
        model,
        leftovers: Leftovers::of_program()?,
    };
    let mut reports = Vec::new();
    match arguments.prefix {
        Some(tokens) => reports.extend(prefix::run(&setup, &Workload::of_all(workloads), tokens)?),
        None => {
            for workload in &workloads {
                reports.push(measure(&setup, workload)?);
            }
        }
    }
    let out = match arguments.json {
        true => {
            let rows: Vec<_> = reports.iter().flat_map(Report::to_json).collect();
            serde_json::to_string_pretty(&rows)?
        }
        false => {
            let tables: String = reports.iter().map(Report::to_text).collect();
            let peak = machine::peak_resident_bytes().map_or(String::new(), |bytes| {
                format!("\npeak memory of this process {:.0} MB", bytes as f64 / 1e6)
            });
            format!("{}\n{tables}{peak}", machine::describe())
        }
    };
    writeln!(io::stdout(), "{}", out.trim_end()).map_err(|error| Failure::output(&error))
}

/// The methods asked for, the program's own way where something is held against it, and ablations that need no worker of
/// their own.
fn methods(arguments: &WorkloadArguments, usual: &LoadOptions) -> Vec<(Method, Option<Ablation>)> {
    let mut methods: Vec<_> = arguments
        .methods
        .iter()
        .map(|method| (method.clone(), None))
        .collect();
    let is_base = !arguments.ablate.is_empty() || arguments.against.is_some();
    if is_base && methods.iter().all(|(method, _)| method.name != REPRISE) {
        methods.push((Method::reprise(), None));
    }
    let beside = arguments
        .ablate
        .iter()
        .filter(|ablation| ablation.load_options(usual).is_none());
    methods.extend(beside.map(|ablation| (ablation.method(), Some(*ablation))));
    methods
}

/// Asks a workload's questions with every method, the other side, and without each part.
fn measure(setup: &Setup<'_>, workload: &Workload) -> Outcome<Report> {
    let folder = setup.leftovers.folder()?;
    let usual = setup.load_options(folder.path());
    let mut bench = Bench::load(setup, workload, &usual)?;
    let server = setup.server(&bench.worker)?;
    bench.read_texts(server.as_ref())?;
    let info = bench.worker.info();
    let mut report = Report::new(workload, &info.name, &info.kv_format);
    report.stored_bytes = bench.stored()?.map_or(0, |stats| stats.bytes);
    let (methods, ablations): (Vec<_>, Vec<_>) = methods(setup.arguments, &usual).into_iter().unzip();
    let (results, theirs) = bench.ask_all(&methods, server.as_ref(), folder.path())?;
    drop((server, bench));
    for ((method, ablation), outcomes) in methods.into_iter().zip(ablations).zip(results) {
        report.rows.push(Row {
            ablation,
            ..Row::new(method.name, outcomes)
        });
    }
    report
        .rows
        .extend(theirs.map(|outcomes| Row::new(SERVER, outcomes)));
    drop(folder);
    for ablation in &setup.arguments.ablate {
        let folder = setup.leftovers.folder()?;
        let Some(options) = ablation.load_options(&setup.load_options(folder.path())) else {
            continue;
        };
        let mut bench = Bench::load(setup, workload, &options)?;
        bench.read_texts(None)?;
        let stored = bench.stored()?.map(|stats| stats.bytes);
        let (results, _) = bench.ask_all(&[ablation.method()], None, folder.path())?;
        report.rows.extend(results.into_iter().map(|outcomes| Row {
            ablation: Some(*ablation),
            stored_bytes: stored,
            ..Row::new(ablation.name(), outcomes)
        }));
    }
    Ok(report)
}
