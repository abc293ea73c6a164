//! `reprise models tune`: finds the smallest form of keys and values that serves a model, and stores it.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use reprise_engine::tune::store::{self, Stored};
use reprise_engine::tune::{MOST_KL, MOST_RISE, Tuned, Tuner};
use reprise_engine::worker::Worker;
use reprise_engine::{LoadOptions, machine};
use reprise_library::folders;

use crate::failure::{Failure, Outcome};
use crate::interrupts;
use crate::output::{StatusLine, note};

/// Tunes a model file and says what was found.
pub fn run(path: &Path, threads: Option<usize>) -> Outcome {
    interrupts::end_without_a_trace()?;
    let mut worker = Worker::load(
        path,
        &LoadOptions {
            threads,
            ..LoadOptions::default()
        },
    )?;
    let begin = Instant::now();
    let tuned = tune(&mut worker)?;
    let gguf = reprise_model::gguf::Gguf::open(path).map_err(reprise_engine::EngineError::from)?;
    let stored = Stored::new(gguf.fingerprint(), worker.info().name.clone(), &tuned);
    let file =
        store::save(&folders::profiles()?, &stored).map_err(|error| Failure::message(error.to_string()))?;
    let text = report(&worker, &tuned);
    writeln!(io::stdout(), "{text}").map_err(|e| Failure::output(&e))?;
    note(&format!(
        "stored in {} after {:.0} s; used from the next start on",
        folders::shown(&file),
        begin.elapsed().as_secs_f64()
    ));
    Ok(())
}

fn tune(worker: &mut Worker) -> Outcome<Tuned> {
    let shapes: Vec<_> = worker.layouts().iter().map(|layout| layout.shape).collect();
    let mut tuner = Tuner::new(&shapes, worker.tokenizer().clone())?;
    let (backend, _) = worker.parts_mut();
    let mut status = StatusLine::new(false);
    loop {
        status.show(&format!("{:.0} % {}", tuner.progress() * 100.0, tuner.activity()));
        if let Some(tuned) = tuner.step(backend)? {
            return Ok(tuned);
        }
    }
}

fn report(worker: &Worker, tuned: &Tuned) -> String {
    let mut text = format!("{}\n{}\n\n", worker.info().name, machine::describe());
    text += "| KV format       | bytes/token |  rise of perplexity |      KL |        |\n";
    text += "| --------------- | ----------: | ------------------: | ------: | ------ |\n";
    for verdict in &tuned.verdicts {
        let total = verdict.total();
        let words = match (verdict.profile == tuned.profile, verdict.is_hopeless) {
            (true, _) => "chosen",
            (_, true) => "far off",
            _ => "",
        };
        text += &format!(
            "| {:15} | {:11} | {:11.2} ± {:.2} % | {:7.4} | {words:6} |\n",
            verdict.name,
            verdict.token_bytes,
            total.perplexity_rise() * 100.0,
            total.rise_error() * 100.0,
            total.mean_kl()
        );
    }
    text += &format!(
        "\nchosen: {}, the smallest with a KL below {MOST_KL} and a rise, its error included, below {:.0} %\n",
        tuned.profile.name(),
        MOST_RISE * 100.0
    );
    text += &match tuned.alarmed_heads {
        0 => format!(
            "plain four-bit keys: no head is off by three nats (the worst by {:.2})\n",
            tuned.worst_alarm
        ),
        heads => format!(
            "plain four-bit keys would ruin {heads} heads (the worst off by {:.1} nats)\n",
            tuned.worst_alarm
        ),
    };
    let latencies = &tuned.latencies;
    text += &format!(
        "prefill: {} tokens a call are enough here; decode calls of 1 to {} rows:",
        latencies.prefill_tokens,
        latencies.decode.len()
    );
    for (_, seconds) in &latencies.decode {
        text += &format!(" {:.1} ms", seconds * 1_000.0);
    }
    text
}
