//! `reprise bench quality`: what storing keys and values in fewer bits costs a model's predictions.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use reprise_engine::backend::Backend;
use reprise_engine::tune::{Trial, Tuner, Verdict, residual};
use reprise_engine::worker::Worker;
use reprise_engine::{KvFormat, KvProfile, LoadOptions, Residency, machine};
use reprise_library::{folders, models::Shelf};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::interrupts;
use crate::output::StatusLine;

#[derive(Debug, Args)]
#[command(after_help = "\
Formats are f16, q8, tq4, keys/values such as q8/tq4, and profile: what the model uses. A star takes
the calibrated mean out of the keys first: tq4*/tq4. The texts are bundled; KL is against f16.

Example:
  reprise bench quality -m model.gguf --formats f16,q8,tq4,tq4*/tq4,profile")]
pub struct QualityArguments {
    /// A name from `reprise models list`, or a GGUF file (repeatable) [default: the default model]
    #[arg(short, long, value_name = "MODEL")]
    model: Vec<String>,
    /// The formats to measure
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',', default_value = "f16,q8,tq4,profile", value_parser = format)]
    formats: Vec<Format>,
    /// Compute threads [default: the machine's physical cores]
    #[arg(short, long, value_name = "N", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
    /// Print JSON: an array of {model, format, bytes_per_token, perplexity, perplexity_rise,
    /// perplexity_rise_error, kl, texts}
    #[arg(long)]
    json: bool,
}

/// A format as it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Profile,
    Of {
        keys: KvFormat,
        values: KvFormat,
        is_residual: bool,
    },
}

fn format(text: &str) -> Result<Format, String> {
    if text == "profile" {
        return Ok(Format::Profile);
    }
    let (keys, values) = text.split_once('/').unwrap_or((text, text.trim_end_matches('*')));
    let is_residual = keys.ends_with('*');
    let format = Format::Of {
        keys: crate::arguments::kv_format(keys.trim_end_matches('*'))?,
        values: crate::arguments::kv_format(values)?,
        is_residual,
    };
    match format {
        Format::Of {
            keys: KvFormat::F16,
            is_residual: true,
            ..
        } => Err("half-precision keys keep their mean; take the star away".into()),
        format => Ok(format),
    }
}

/// Measures and prints.
pub fn run(arguments: &QualityArguments) -> Outcome {
    interrupts::end_without_a_trace()?;
    let shelf = Shelf::of_machine()?;
    let names: Vec<Option<&str>> = match arguments.model.as_slice() {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut rows = Vec::new();
    let mut text = format!("{}\n", machine::describe());
    for name in names {
        let path = shelf.resolve(name)?;
        let mut worker = Worker::load(
            &path,
            &LoadOptions {
                threads: arguments.threads,
                context_tokens: None,
                profiles: Some(folders::profiles()?),
                residency: Residency::Auto,
                ..LoadOptions::default()
            },
        )?;
        let verdicts = measure(&mut worker, &arguments.formats)?;
        let model = worker.info().name.clone();
        rows.extend(verdicts.iter().map(|verdict| row(&model, &path, verdict)));
        text += &table(&model, &verdicts);
    }
    let out = if arguments.json {
        serde_json::to_string_pretty(&rows)?
    } else {
        text
    };
    writeln!(io::stdout(), "{}", out.trim_end()).map_err(|e| Failure::output(&e))
}

fn measure(worker: &mut Worker, formats: &[Format]) -> Outcome<Vec<Verdict>> {
    let shapes: Vec<_> = worker.layouts().iter().map(|layout| layout.shape).collect();
    let (tokenizer, own) = (worker.tokenizer().clone(), worker.profile().clone());
    let (backend, _) = worker.parts_mut();
    let mut statistics = Vec::new();
    if formats.iter().any(|format| {
        matches!(
            format,
            Format::Of {
                is_residual: true,
                ..
            }
        )
    }) {
        let mut tuner = Tuner::new(&shapes, tokenizer.clone())?;
        while tuner.statistics().is_none() {
            tuner.step(backend)?;
        }
        statistics = tuner.statistics().unwrap_or_default().to_vec();
    }
    let candidates: Vec<(String, KvProfile)> = formats
        .iter()
        .map(|format| match *format {
            Format::Profile => (format!("profile ({})", own.name()), own.clone()),
            Format::Of {
                keys,
                values,
                is_residual,
            } => {
                let profile = if is_residual {
                    residual(&shapes, &statistics, keys, values)
                } else {
                    KvProfile::uniform(&shapes, keys, values)
                };
                (profile.name(), profile)
            }
        })
        .collect();
    let trial = Trial::new(&shapes, &tokenizer, &candidates)?;
    drive(trial, backend)
}

fn drive(mut trial: Trial, backend: &mut dyn Backend) -> Outcome<Vec<Verdict>> {
    let mut status = StatusLine::new(false);
    while !trial.step(backend, false)? {
        status.show(&format!("{:.0} %", trial.progress() * 100.0));
    }
    Ok(trial.verdicts().cloned().collect())
}

fn row(model: &str, path: &Path, verdict: &Verdict) -> serde_json::Value {
    let total = verdict.total();
    let texts: serde_json::Map<String, serde_json::Value> = verdict
        .texts
        .iter()
        .map(|(kind, quality)| {
            let numbers = json!({"perplexity": quality.perplexity(), "kl": quality.mean_kl()});
            ((*kind).to_owned(), numbers)
        })
        .collect();
    json!({
        "model": model,
        "file": path.display().to_string(),
        "format": verdict.name,
        "bytes_per_token": verdict.token_bytes,
        "perplexity": total.perplexity(),
        "perplexity_rise": total.perplexity_rise(),
        "perplexity_rise_error": total.rise_error(),
        "kl": total.mean_kl(),
        "tokens": total.tokens,
        "texts": texts,
    })
}

fn table(model: &str, verdicts: &[Verdict]) -> String {
    let tokens = verdicts.first().map_or(0, |verdict| verdict.total().tokens);
    let mut text = format!("\n{model}, {tokens} tokens of prose, code and chat\n\n");
    text += "| KV format          | bytes/token | perplexity |           rise |      KL |   prose |    code |    chat |\n";
    text += "| ------------------ | ----------: | ---------: | -------------: | ------: | ------: | ------: | ------: |\n";
    for verdict in verdicts {
        let total = verdict.total();
        text += &format!(
            "| {:18} | {:11} | {:10.3} | {:5.2} ± {:.2} % | {:7.4} |",
            verdict.name,
            verdict.token_bytes,
            total.perplexity(),
            total.perplexity_rise() * 100.0,
            total.rise_error() * 100.0,
            total.mean_kl()
        );
        for (_, quality) in &verdict.texts {
            text += &format!(" {:7.4} |", quality.mean_kl());
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names() {
        assert_eq!(format("profile"), Ok(Format::Profile));
        let of = |keys, values, is_residual| {
            Ok(Format::Of {
                keys,
                values,
                is_residual,
            })
        };
        assert_eq!(format("tq4"), of(KvFormat::Tq4, KvFormat::Tq4, false));
        assert_eq!(format("q8*/tq4"), of(KvFormat::Q8, KvFormat::Tq4, true));
        assert_eq!(format("tq4*"), of(KvFormat::Tq4, KvFormat::Tq4, true));
        assert!(format("f16*").is_err() && format("int3").is_err() && format("q8/").is_err());
    }
}
