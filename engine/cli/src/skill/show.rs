//! What a person sees of the steps of an answer with tools: the answer on standard output, steps on standard error.

use reprise_engine::{CancelToken, Event};
use reprise_library::skills::{Done, Step};

use crate::output::{Display, counted, footer, note};

/// Characters of an argument or a result that are shown.
const SHOWN_CHARS: usize = 120;

/// Shows a step.
pub fn show(step: &Step<'_>, display: &mut Display, cancel: &CancelToken, quiet: bool) {
    if let Some(event) = as_event(step) {
        display.show(&event, cancel);
        return;
    }
    if let Some(line) = line(step)
        && !quiet
    {
        display.end_line(cancel);
        note(&line);
    }
}

/// The engine's form of a step, where it has one.
fn as_event<'a>(step: &Step<'a>) -> Option<Event<'a>> {
    match *step {
        Step::Text(text) => Some(Event::Text(text)),
        Step::Reading {
            done_tokens,
            total_tokens,
            reused_tokens,
            reading_time,
        } => Some(Event::Prefill {
            done_tokens,
            total_tokens,
            reused_tokens,
            reading_time,
        }),
        _ => None,
    }
}

fn line(step: &Step<'_>) -> Option<String> {
    Some(match step {
        Step::Calls(call) => {
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            format!("> {} {}", call.name, short(&arguments))
        }
        Step::Broken(broken) => format!(
            "> a call that cannot be understood ({}): {}",
            broken.reason,
            short(&broken.text)
        ),
        Step::Starting { script, .. } => format!("  running {script} ..."),
        Step::Done { done, tokens, is_cut } => {
            let cut = if *is_cut { ", cut to fit" } else { "" };
            let tokens = counted(*tokens, "token");
            match done {
                Done::Skill { skill } => format!("  skill {} ({tokens}{cut})", skill.name),
                Done::Reference { skill, file } => format!("  {file} of {} ({tokens}{cut})", skill.name),
                Done::Script { ran, .. } => {
                    format!(
                        "  {} {} ({tokens}{cut}): {}",
                        ran.script,
                        ran.ending(),
                        short(&ran.output)
                    )
                }
                Done::Server { text, is_error, .. } => {
                    let failed = if *is_error { "failed: " } else { "" };
                    format!("  {failed}{} ({tokens}{cut})", short(text))
                }
                Done::Refused { reason } => format!("  not done: {reason}"),
            }
        }
        Step::Answered(answer) if answer.text.is_empty() => format!("  {}", footer(answer)),
        Step::OutOfSteps { steps } => format!(
            "  stopped: the model called tools in {} on end",
            counted(*steps, "answer")
        ),
        Step::Answered(_) | Step::Text(_) | Step::Reading { .. } => return None,
    })
}

fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let short: String = line.chars().take(SHOWN_CHARS).collect();
    if short.len() < line.len() {
        short + " ..."
    } else {
        short
    }
}
