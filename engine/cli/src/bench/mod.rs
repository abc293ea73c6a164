//! `reprise bench`: how fast prompts are read and answers written, in llama-bench's terms, alone or against it.
//!
//! `pp512` reads 512 prompt tokens into an empty window, `tg128` writes 128 tokens one by one, `@d4096` does so with
//! 4,096 tokens already in the window. Tokens are arbitrary and nothing is sampled, as in llama-bench. With a peer the
//! two run by turns, repetition by repetition, so that whatever else the machine does falls on both; reported are
//! medians of tokens a second and their ratio.

mod ours;
mod peer;
mod table;

use std::path::PathBuf;

use clap::Args;
use reprise_engine::{Engine, LoadOptions};
use reprise_library::models::Shelf;

use crate::failure::{Failure, Outcome};
use ours::Ours;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reprise bench
  reprise bench -m model.gguf -p 512,4096 -n 128 -d 0,4096 -t 2 -r 5
  reprise bench -m model.gguf --against ~/llama.cpp/build/bin/llama-bench --json")]
pub struct BenchArguments {
    /// A name from `reprise models list`, or a GGUF file [default: the default model]
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,
    /// Prompt lengths to read, in tokens; 0 for none
    #[arg(
        short = 'p',
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "512"
    )]
    prompt: Vec<usize>,
    /// Answer lengths to write, in tokens; 0 for none
    #[arg(
        short = 'n',
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "128"
    )]
    generate: Vec<usize>,
    /// Tokens already in the window
    #[arg(short, long, value_name = "N,...", value_delimiter = ',', default_value = "0")]
    depth: Vec<usize>,
    /// Compute threads [default: the machine's physical cores]
    #[arg(short, long, value_name = "N", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
    /// Repetitions of each test
    #[arg(short, long, value_name = "N", default_value = "5", value_parser = crate::arguments::at_least::<1>)]
    repetitions: usize,
    /// Print JSON: an array of {test, ours, peer, ratio}
    #[arg(long)]
    json: bool,
    /// A llama-bench binary to run by turns with
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
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
}

impl Test {
    /// llama-bench's name for it, for example `tg128@d4096`.
    fn name(self) -> String {
        let name = match self.work {
            Work::Prompt(n) => format!("pp{n}"),
            Work::Generate(n) => format!("tg{n}"),
        };
        if self.depth == 0 {
            name
        } else {
            format!("{name}@d{}", self.depth)
        }
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
    ours: Vec<f64>,
    peer: Vec<f64>,
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
    let tests = tests(arguments)?;
    let path = Shelf::of_machine()?.resolve(arguments.model.as_deref())?;
    let context_tokens = tests
        .iter()
        .map(|test| test.depth + test.tokens())
        .max()
        .map(|n| n.max(64));
    let mut engine = Engine::load(
        &path,
        &LoadOptions {
            threads: arguments.threads,
            context_tokens,
        },
    )?;
    let threads = engine.info().threads;
    let mut results = Vec::new();
    for test in tests {
        let mut measured = Measured {
            test,
            ours: Vec::new(),
            peer: Vec::new(),
        };
        let mut ours = Ours::new(&mut engine, test)?;
        for _ in 0..arguments.repetitions.max(1) {
            ours.warm_up()?;
            measured.ours.push(ours.measure()?);
            if let Some(binary) = &arguments.against {
                measured.peer.push(peer::measure(binary, &path, test, threads)?);
            }
        }
        if !arguments.json {
            eprintln!("{} done", test.name());
        }
        results.push(measured);
    }
    if arguments.json {
        table::print_json(&results)
    } else {
        table::print(&results, &engine, arguments.against.is_some())
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
                .map(|work| Test { work, depth })
                .filter(|test| test.tokens() > 0),
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
                depth: 0
            }
            .name(),
            "pp512"
        );
        assert_eq!(
            Test {
                work: Work::Generate(128),
                depth: 4096
            }
            .name(),
            "tg128@d4096"
        );
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
