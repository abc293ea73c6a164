//! `reprise bench`: how fast prompts are read and answers written, in llama-bench's terms, alone or against it.
//!
//! `pp512` reads 512 prompt tokens into an empty window, `tg128` writes 128 tokens one by one, `@d4096` does so with
//! 4,096 tokens already in the window, `x4` in four lanes at once (tokens a second of all together). Tokens are arbitrary
//! and nothing is sampled, as in llama-bench. With a peer the two run by turns, repetition by repetition, so that
//! whatever else the machine does falls on both; reported are medians of tokens a second and their ratio. Of the peer's
//! variants (KV types, flash attention on or off) the best one counts.

mod lanes;
mod ours;
mod peer;
mod quality;
mod retrieval;
mod table;
mod workload;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reprise_engine::worker::{LANES, Worker};
use reprise_engine::{KvChoice, LoadOptions};
use reprise_library::folders;
use reprise_library::models::Shelf;

use crate::failure::{Failure, Outcome};
use ours::Ours;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  reprise bench
  reprise bench -m model.gguf -p 512,4096 -n 128 -d 0,4096 -t 2 -r 5
  reprise bench -m model.gguf -n 64 -d 0,4096 --kv f16,tq4 --lanes 1,2,4
  reprise bench -m model.gguf --against ~/llama.cpp/build/bin/llama-bench --json"
)]
pub struct BenchArguments {
    #[command(subcommand)]
    what: Option<What>,
    /// A name from `reprise models list`, or a GGUF file [default: the default model]
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,
    /// Prompt lengths to read, in tokens; 0 for none
    #[arg(
        short = 'p',
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "512",
        value_parser = crate::arguments::at_least::<0>
    )]
    prompt: Vec<usize>,
    /// Answer lengths to write, in tokens; 0 for none
    #[arg(
        short = 'n',
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "128",
        value_parser = crate::arguments::at_least::<0>
    )]
    generate: Vec<usize>,
    /// Tokens already in the window
    #[arg(short, long, value_name = "N,...", value_delimiter = ',', default_value = "0", value_parser = crate::arguments::at_least::<0>)]
    depth: Vec<usize>,
    /// Compute threads [default: the machine's physical cores]
    #[arg(short, long, value_name = "N", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
    /// How keys and values are stored; by turns where several are named
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',', default_value = "profile", value_parser = crate::arguments::kv_choice)]
    kv: Vec<KvChoice>,
    /// Memory for keys and values, such as 200M [default: as in a chat]
    #[arg(long, value_name = "SIZE", value_parser = crate::arguments::bytes)]
    kv_budget: Option<u64>,
    /// Repetitions of each test
    #[arg(short, long, value_name = "N", default_value = "5", value_parser = crate::arguments::at_least::<1>)]
    repetitions: usize,
    /// Print JSON: an array of {test, ours, peer, ratio}
    #[arg(long)]
    json: bool,
    /// Lanes that write at once
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1", value_parser = lane_count)]
    lanes: Vec<usize>,
    /// A llama-bench binary to run by turns with
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
    /// KV types the peer is tried with, each without and with flash attention (quantised ones only with)
    #[arg(
        long,
        value_name = "TYPE,...",
        value_delimiter = ',',
        default_value = "f16",
        requires = "against"
    )]
    peer_kv: Vec<String>,
}

/// What else can be measured.
#[derive(Debug, Subcommand)]
enum What {
    /// Measure what storing keys and values in fewer bits costs a model's predictions
    Quality(quality::QualityArguments),
    /// Measure how long an answer stands still while a long prompt is read beside it
    Lanes(lanes::LanesArguments),
    /// Measure whether the passages that answer questions are among those that are found
    Retrieval(retrieval::RetrievalArguments),
    /// Measure what using earlier prompts again does to the wait and to the answers
    Workload(workload::WorkloadArguments),
}

fn lane_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(lanes) if (1..=LANES).contains(&lanes) => Ok(lanes),
        _ => Err(format!("a number of lanes from 1 to {LANES} is needed")),
    }
}

/// One thing to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Read this many tokens.
    Prompt(usize),
    /// Write this many tokens.
    Generate(usize),
}

/// A measurement to make: some work with some tokens before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    work: Work,
    depth: usize,
    /// Lanes that do it at once.
    lanes: usize,
}

impl Test {
    /// llama-bench's name for it, for example `tg128@d4096`; `x4` for four lanes.
    fn name(self) -> String {
        let name = match self.work {
            Work::Prompt(n) => format!("pp{n}"),
            Work::Generate(n) => format!("tg{n}"),
        };
        let depth = if self.depth == 0 {
            String::new()
        } else {
            format!("@d{}", self.depth)
        };
        let lanes = if self.lanes == 1 {
            String::new()
        } else {
            format!(" x{}", self.lanes)
        };
        format!("{name}{depth}{lanes}")
    }

    fn tokens(self) -> usize {
        match self.work {
            Work::Prompt(n) | Work::Generate(n) => n,
        }
    }
}

/// A test's result, in tokens a second.
#[derive(Debug)]
pub struct Measured {
    test: Test,
    /// How keys and values were stored.
    kv: String,
    ours: Vec<f64>,
    peer: Vec<f64>,
    /// Which of the peer's variants was best.
    variant: String,
}

/// The middle value.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        n => sorted[n / 2],
    }
}

/// Measures and prints.
pub fn run(arguments: &BenchArguments) -> Outcome {
    match &arguments.what {
        Some(What::Quality(arguments)) => return quality::run(arguments),
        Some(What::Lanes(arguments)) => return lanes::run(arguments),
        Some(What::Retrieval(arguments)) => return retrieval::run(arguments),
        Some(What::Workload(arguments)) => return workload::run(arguments),
        None => {}
    }
    let tests = tests(arguments)?;
    if arguments.against.is_some() && tests.iter().all(|test| test.lanes > 1) {
        return Err(Failure::Usage(
            "llama-bench has no lanes, and --against compares one with it; add 1 to --lanes".into(),
        ));
    }
    let path = Shelf::of_machine()?.resolve(arguments.model.as_deref())?;
    let context_tokens = tests
        .iter()
        .map(|test| test.depth + test.tokens())
        .max()
        .map(|n| n.max(64));
    let mut workers = Vec::new();
    for kv in &arguments.kv {
        let options = LoadOptions {
            threads: arguments.threads,
            context_tokens,
            kv: kv.clone(),
            kv_budget_bytes: arguments.kv_budget,
            profiles: Some(folders::profiles()?),
            ..LoadOptions::default()
        };
        workers.push(Worker::load(&path, &options)?);
    }
    let threads = workers.first().map_or(1, |worker| worker.info().threads);
    let variants = peer::variants(&arguments.peer_kv);
    let mut results = Vec::new();
    for test in tests {
        let mut peers = vec![Vec::new(); variants.len()];
        let mut measured: Vec<Measured> = workers
            .iter()
            .map(|worker| Measured {
                test,
                kv: worker.info().kv_format.clone(),
                ours: Vec::new(),
                peer: Vec::new(),
                variant: String::new(),
            })
            .collect();
        for worker in &mut workers {
            Ours::new(worker, test)?.fill()?;
        }
        for _ in 0..arguments.repetitions.max(1) {
            for (worker, measured) in workers.iter_mut().zip(&mut measured) {
                let mut ours = Ours::new(worker, test)?;
                ours.warm_up()?;
                measured.ours.push(ours.measure()?);
            }
            // llama-bench has no lanes: it is compared with one.
            if let (Some(binary), 1) = (&arguments.against, test.lanes) {
                for (variant, times) in variants.iter().zip(&mut peers) {
                    times.push(peer::measure(binary, &path, test, threads, variant)?);
                }
            }
        }
        for worker in &mut workers {
            Ours::new(worker, test)?.clear();
        }
        let best = variants.iter().zip(&peers).filter(|(_, times)| !times.is_empty());
        if let Some((variant, times)) = best.max_by(|a, b| median(a.1).total_cmp(&median(b.1))) {
            for measured in &mut measured {
                measured.peer = times.clone();
                measured.variant = variant.name();
            }
        }
        if !arguments.json {
            eprintln!("{} done", test.name());
        }
        results.extend(measured);
    }
    if arguments.json {
        table::print_json(&results)
    } else {
        table::print(&results, &workers, arguments.against.is_some())
    }
}

fn tests(arguments: &BenchArguments) -> Outcome<Vec<Test>> {
    let mut tests = Vec::new();
    for &depth in &arguments.depth {
        let prompts = arguments.prompt.iter().map(|&n| Work::Prompt(n));
        let answers = arguments.generate.iter().map(|&n| Work::Generate(n));
        tests.extend(
            prompts
                .chain(answers)
                .flat_map(|work| {
                    arguments
                        .lanes
                        .iter()
                        .map(move |&lanes| Test { work, depth, lanes })
                })
                // Prompts are read one after the other, whatever the lanes.
                .filter(|test| {
                    test.tokens() > 0 && (test.lanes == 1 || matches!(test.work, Work::Generate(_)))
                }),
        );
    }
    if tests.is_empty() {
        return Err(Failure::Usage(
            "there is nothing to measure; give -p or -n a length above 0".into(),
        ));
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_llama_benchs() {
        assert_eq!(
            Test {
                work: Work::Prompt(512),
                depth: 0,
                lanes: 1,
            }
            .name(),
            "pp512"
        );
        assert_eq!(
            Test {
                work: Work::Generate(128),
                depth: 4096,
                lanes: 4,
            }
            .name(),
            "tg128@d4096 x4"
        );
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
