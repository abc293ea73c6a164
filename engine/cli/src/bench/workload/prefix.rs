//! One long prompt that is known already: what a wait is when nothing is used again, when the engine still has it, when
//! the model is loaded anew and chunks come from the disk, and on the other side.

use reprise_engine::{LoadOptions, Reuse};
use std::time::Instant;

use super::ask::{Bench, Leaves, Prompt};
use super::load::Workload;
use super::outcomes::Outcomes;
use super::report::{Report, Row};
use super::{Setup, system};
use crate::failure::{Failure, Outcome};
use crate::output::{StatusLine, with_commas};

/// The row of a prompt that the engine still has.
pub const HIT: &str = "hit";
/// What is asked where a workload has no questions.
const QUESTIONS: [&str; 2] = ["What is this about?", "What comes first in these texts?"];

/// Measures; a report for the same question as before, and one for another.
pub fn run(setup: &Setup<'_>, workload: &Workload, tokens: usize) -> Outcome<Vec<Report>> {
    let arguments = setup.arguments;
    let folder = setup.leftovers.folder()?;
    let options = setup.load_options(folder.path());
    let mut bench = Bench::load(setup, workload, &options)?;
    let window = bench.worker.info().context_tokens;
    let questions: Vec<&str> = workload
        .requests
        .iter()
        .map(|request| request.question.as_str())
        .chain(QUESTIONS)
        .collect();
    let too_few = |found: usize| {
        Failure::message(format!(
            "the files' texts make a prompt of {} tokens, and --prefix wants {}; give more files or fewer tokens",
            with_commas(found),
            with_commas(tokens)
        ))
    };
    // The first prompt has that many tokens; another question may take a few more or less.
    let first = bench.long_prompt(tokens, questions[0])?.map_err(too_few)?;
    let texts = first.tokens.len() - bench.prompt(&[], Some(questions[0]))?.tokens.len();
    let mut others = Vec::new();
    for repetition in 0..arguments.repetitions {
        let question = questions[1 + repetition % (questions.len() - 1)];
        let own = bench.prompt(&[], Some(question))?.tokens.len();
        others.push(bench.long_prompt(texts + own, question)?.map_err(too_few)?);
    }
    if let Some(longest) = others
        .iter()
        .chain([&first])
        .map(|prompt| prompt.tokens.len())
        .max()
        .filter(|longest| longest + arguments.generate > window)
    {
        return Err(Failure::Usage(format!(
            "a prompt of {} tokens and an answer do not fit a window of {}; give --context more",
            with_commas(longest),
            with_commas(window)
        )));
    }
    let same = vec![first.clone(); arguments.repetitions];

    let server = setup.server(&bench.worker)?;
    let mut status = StatusLine::new(false);
    status.show("reading the prompt for the first time");
    bench.worker.set_reuse(Reuse::default());
    bench.generate(&first, 1, Leaves::Chunks, None)?;
    if let Some(keeper) = bench.worker.keeper() {
        keeper.flush();
    }
    if let Some(server) = &server {
        server.ask(&first.tokens, 1)?;
    }
    let stored = bench.stored()?.map_or(0, |stats| stats.bytes);
    let mut reports = Vec::new();
    for (question, prompts) in [("the same", &same), ("another", &others)] {
        let (mut none, mut hit, mut theirs) = (Outcomes::default(), Outcomes::default(), Outcomes::default());
        for (done, prompt) in prompts.iter().enumerate() {
            status.show(&format!("{question} question, {} of {}", done + 1, prompts.len()));
            for (reuse, outcomes) in [(Reuse::default(), &mut hit), (Reuse::Nothing, &mut none)] {
                bench.worker.set_reuse(reuse);
                outcomes.add(&bench.generate(prompt, 1, Leaves::Nothing, None)?);
            }
            if let Some(server) = &server {
                theirs.add_reply(&server.ask(&prompt.tokens, 1)?, prompt.tokens.len());
            }
        }
        let info = bench.worker.info();
        let mut report = Report::new(workload, &info.name, &info.kv_format);
        report.workload = format!("prefix:{tokens}");
        report.question = Some(question);
        report.stored_bytes = stored;
        report.rows = vec![Row::new("none", none), Row::new(HIT, hit)];
        if server.is_some() {
            report.rows.push(Row::new("llama-server hit", theirs));
        }
        reports.push(report);
    }
    drop(server);
    drop(bench);
    for (report, prompts) in reports.iter_mut().zip([&same, &others]) {
        status.show("loading anew");
        let restart = restarts(setup, workload, &options, folder.path(), prompts)?;
        report.rows.insert(2, Row::new("restart", restart));
    }
    Ok(reports)
}

/// Each prompt with a worker that was just loaded, and chunks that are on the disk only.
fn restarts(
    setup: &Setup<'_>,
    workload: &Workload,
    options: &LoadOptions,
    folder: &std::path::Path,
    prompts: &[Prompt],
) -> Outcome<Outcomes> {
    let mut outcomes = Outcomes::default();
    for prompt in prompts {
        outcomes.file_cache(system::drop_file_cache(folder));
        let started = Instant::now();
        let mut bench = Bench::load(setup, workload, options)?;
        outcomes.start_ms.push(started.elapsed().as_secs_f64() * 1_000.0);
        bench.worker.set_reuse(Reuse::default());
        outcomes.add(&bench.generate(prompt, 1, Leaves::Nothing, None)?);
    }
    Ok(outcomes)
}
