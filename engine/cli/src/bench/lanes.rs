//! `reprise bench lanes`: what a reader of a growing answer notices when a long prompt comes in beside it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use reprise_engine::snapshot::PhaseView;
use reprise_engine::worker::Worker;
use reprise_engine::{
    CancelToken, Event, GenerateOptions, KvChoice, LoadOptions, Request, SamplingOptions, Speculation,
    machine,
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

/// When something happened to a request.
type Times = Arc<Mutex<Vec<Instant>>>;

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
    let alone = submit(&mut worker, tokens(1, arguments.prompt), 1);
    while worker.turn() {}
    let alone = first(&alone).map(|at| at - begin);

    let answering = submit(&mut worker, tokens(2, FIRST_PROMPT_TOKENS), 100_000);
    while count(&answering) < TOKENS_BEFORE && worker.turn() {}
    let before = longest_gap(&answering, 1);
    let begin = Instant::now();
    let reading = submit(&mut worker, tokens(3, arguments.prompt), 1);
    let from = count(&answering);
    while first(&reading).is_none() && worker.turn() {}
    let beside = first(&reading).map(|at| at - begin);
    let gap = longest_gap(&answering, from.saturating_sub(1));
    let told = count(&answering) - from;
    let still_answers = worker
        .snapshot()
        .lanes
        .iter()
        .any(|lane| matches!(lane.phase, PhaseView::Decode { .. }));
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

/// A greedy request; notes when each piece of its answer came.
fn submit(worker: &mut Worker, prompt: Vec<u32>, max_tokens: usize) -> Times {
    let times = Times::default();
    let (text, end) = (Arc::clone(&times), Arc::clone(&times));
    let note = |times: &Times| {
        times
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Instant::now())
    };
    worker.submit(Request {
        prompt,
        options: GenerateOptions {
            sampling: SamplingOptions::greedy(),
            max_tokens,
            scratch: true,
            owner: "bench".into(),
            ..GenerateOptions::default()
        },
        cancel: CancelToken::default(),
        on_event: Box::new(move |event| {
            if let Event::Text(_) = event {
                note(&text);
            }
        }),
        // A token without text of its own ends a request too.
        on_end: Box::new(move |_| note(&end)),
    });
    times
}

fn count(times: &Times) -> usize {
    times.lock().unwrap_or_else(PoisonError::into_inner).len()
}

fn first(times: &Times) -> Option<Instant> {
    times
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .first()
        .copied()
}

fn longest_gap(times: &Times, from: usize) -> Option<Duration> {
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    times.get(from..)?.windows(2).map(|pair| pair[1] - pair[0]).max()
}
