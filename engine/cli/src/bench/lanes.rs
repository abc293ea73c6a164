//! `reprise bench lanes`: what a reader of a growing answer notices when a long prompt comes in beside it.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use clap::Args;
use reprise_engine::snapshot::PhaseView;
use reprise_engine::worker::Worker;
use reprise_engine::{
    CancelToken, GenerateOptions, KvChoice, LoadOptions, Request, SamplingOptions, Speculation, machine,
};
use reprise_library::{folders, models::Shelf};
use serde_json::json;

use crate::failure::{Failure, Outcome};

#[derive(Debug, Args)]
#[command(after_help = "\
One request answers; then another comes with a long prompt. Measured are the longest time between two
tokens of the first, and how long the second waits for its first token, beside it and alone.

Example:
  reprise bench lanes -m model.gguf -p 3000")]
pub struct LanesArguments {
    /// A name from `reprise models list`, or a GGUF file [default: the default model]
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,
    /// Tokens of the prompt that comes in
    #[arg(short, long, value_name = "N", default_value = "3000", value_parser = crate::arguments::at_least::<1>)]
    prompt: usize,
    /// How keys and values are stored
    #[arg(long, value_name = "FORMAT", default_value = "profile", value_parser = crate::arguments::kv_choice)]
    kv: KvChoice,
    /// Compute threads [default: the machine's physical cores]
    #[arg(short, long, value_name = "N", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Tokens of the prompt of the request that answers.
const FIRST_PROMPT_TOKENS: usize = 64;
/// Tokens it has answered when the other comes.
const TOKENS_BEFORE: usize = 16;

/// When each token of the request that answers came, as far as it was watched.
#[derive(Default)]
struct Watch {
    tokens: usize,
    came: Vec<Instant>,
}

impl Watch {
    /// Looks whether there are more tokens than the last time. A token need not be a piece of text, so the text is not
    /// what is looked at.
    fn look(&mut self, worker: &mut Worker) {
        let tokens = worker.snapshot().lanes.iter().find_map(|lane| match lane.phase {
            PhaseView::Decode { answer_tokens, .. } if lane.owner == ANSWERING => Some(answer_tokens),
            _ => None,
        });
        if let Some(tokens) = tokens.filter(|&tokens| tokens > self.tokens) {
            self.tokens = tokens;
            self.came.push(Instant::now());
        }
    }

    fn longest_gap(&self, from: usize) -> Option<Duration> {
        let came = self.came.get(from..)?;
        came.windows(2).map(|pair| pair[1] - pair[0]).max()
    }
}

/// The owners of the requests.
const ANSWERING: &str = "answers";
const READING: &str = "reads";

/// Measures and prints.
pub fn run(arguments: &LanesArguments) -> Outcome {
    let path = Shelf::of_machine()?.resolve(arguments.model.as_deref())?;
    let mut worker = Worker::load(
        &path,
        &LoadOptions {
            threads: arguments.threads,
            context_tokens: Some((arguments.prompt + 64).max(2_048)),
            kv: arguments.kv.clone(),
            profiles: Some(folders::profiles()?),
            // Tokens come one by one, so that the gaps are those of the lanes.
            speculation: Speculation::Off,
            ..LoadOptions::default()
        },
    )?;
    let vocabulary = worker.tokenizer().vocab_size() as u32;
    let tokens = |seed: u32, count: usize| -> Vec<u32> {
        (0..count as u32)
            .map(|i| (i.wrapping_mul(7_919) ^ seed) % (vocabulary / 2))
            .collect()
    };

    let begin = Instant::now();
    let alone = submit(&mut worker, READING, tokens(1, arguments.prompt), 1);
    while worker.turn() {}
    let alone = ended(&alone).map(|at| at - begin);

    let answering = submit(&mut worker, ANSWERING, tokens(2, FIRST_PROMPT_TOKENS), 100_000);
    let mut watch = Watch::default();
    while watch.tokens < TOKENS_BEFORE && worker.turn() {
        watch.look(&mut worker);
    }
    let before = watch.longest_gap(0);
    let from = watch.came.len().saturating_sub(1);
    let begin = Instant::now();
    let reading = submit(&mut worker, READING, tokens(3, arguments.prompt), 1);
    while ended(&reading).is_none() && worker.turn() {
        watch.look(&mut worker);
    }
    let beside = ended(&reading).map(|at| at - begin);
    let gap = watch.longest_gap(from);
    let told = watch.came.len().saturating_sub(from + 1);
    let still_answers = ended(&answering).is_none();
    let milliseconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1_000.0);
    if !still_answers {
        return Err(Failure::message(
            "the first answer ended before the prompt was read, so that nothing was measured; try a shorter prompt",
        ));
    }
    let text = if arguments.json {
        serde_json::to_string_pretty(&json!({
            "model": worker.info().name,
            "kv": worker.info().kv_format,
            "prompt_tokens": arguments.prompt,
            "longest_gap_ms": milliseconds(gap),
            "longest_gap_alone_ms": milliseconds(before),
            "tokens_meanwhile": told,
            "ttft_beside_ms": milliseconds(beside),
            "ttft_alone_ms": milliseconds(alone),
        }))?
    } else {
        let shown = |time| milliseconds(time).map_or("-".to_owned(), |ms| format!("{ms:.0} ms"));
        format!(
            "{}, KV {}, {} threads\n{}\n\n\
             | a prompt of {} tokens comes while another answers |  |\n| --- | ---: |\n\
             | longest time between two tokens of the answer | {} |\n\
             | the same before the prompt came | {} |\n\
             | tokens of the answer meanwhile | {told} |\n\
             | first token of the prompt's answer | {} |\n\
             | the same with nobody else there | {} |",
            worker.info().name,
            worker.info().kv_format,
            worker.info().threads,
            machine::describe(),
            arguments.prompt,
            shown(gap),
            shown(before),
            shown(beside),
            shown(alone),
        )
    };
    writeln!(io::stdout(), "{text}").map_err(|e| Failure::output(&e))
}

/// A greedy request; notes when it ended.
fn submit(worker: &mut Worker, owner: &str, prompt: Vec<u32>, max_tokens: usize) -> Ended {
    let ended = Ended::default();
    let at = Arc::clone(&ended);
    worker.submit(Request {
        prompt,
        options: GenerateOptions {
            sampling: SamplingOptions::greedy(),
            max_tokens,
            scratch: true,
            owner: owner.into(),
            ..GenerateOptions::default()
        },
        cancel: CancelToken::default(),
        on_event: Box::new(|_| ()),
        on_end: Box::new(move |_| {
            let _ = at.set(Instant::now());
        }),
    });
    ended
}

/// When a request ended.
type Ended = Arc<OnceLock<Instant>>;

fn ended(request: &Ended) -> Option<Instant> {
    request.get().copied()
}
