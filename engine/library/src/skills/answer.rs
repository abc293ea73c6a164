//! One answer with tools: the model answers, its calls are done and told to it, and it goes on, for a bounded number of
//! steps. Every step is told to the person as it happens, and the person may stop it at any time.

use std::time::Duration;

use reprise_engine::{Answer, CancelToken, Event, StopReason};
use reprise_model::template::{Role, ToolCalls, ToolSpec};

use super::calls::{BrokenCall, CallParser, ToolCall};
use super::consent::Consent;
use super::model::Model;
use super::toolbox::{Done, Toolbox};
use crate::assistant::{AssistantError, Message, Part};

/// The catalogue of skills may take one part in so many of the window.
const CATALOGUE_SHARE: usize = 8;
/// A result gets at least so many tokens, or is not given.
const LEAST_RESULT_TOKENS: usize = 48;
/// Answers that only repeat calls, before the model is asked without tools: small models do not leave such a loop.
const MOST_REPEATED: usize = 2;

/// How far an answer may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepLimits {
    /// Times that the model is asked; the last time without tools.
    pub steps: usize,
    /// Calls that are done of one answer.
    pub calls_at_once: usize,
    /// Tokens of one result; a longer one is cut, and that is said. Instructions of skills are given whole or not at all.
    pub result_tokens: usize,
}

impl Default for StepLimits {
    fn default() -> StepLimits {
        StepLimits {
            steps: 8,
            calls_at_once: 4,
            result_tokens: 2_048,
        }
    }
}

/// What happens while an answer is made, in order.
#[derive(Debug)]
pub enum Step<'a> {
    /// The prompt is being read, as in [`Event::Prefill`].
    Reading {
        /// Tokens read.
        done_tokens: usize,
        /// Tokens of the prompt.
        total_tokens: usize,
        /// Tokens that were known.
        reused_tokens: usize,
        /// Time since reading began.
        reading_time: Duration,
    },
    /// More of the answer; nothing of a call is ever in it.
    Text(&'a str),
    /// The model calls a tool. What came of it follows in [`Step::Done`].
    Calls(&'a ToolCall),
    /// A call that cannot be understood; the model is told.
    Broken(&'a BrokenCall),
    /// A script that was allowed starts.
    Starting {
        /// Whose it is.
        skill: &'a str,
        /// The script.
        script: &'a str,
        /// Its arguments.
        arguments: &'a [String],
    },
    /// A call was done.
    Done {
        /// What came of it.
        done: &'a Done<'a>,
        /// Tokens that the model is told of it.
        tokens: usize,
        /// Whether it was cut to fit.
        is_cut: bool,
    },
    /// One time the model was asked is over: its figures.
    Answered(&'a Answer),
    /// The model called tools as often as it may, and was stopped.
    OutOfSteps {
        /// How often it was asked.
        steps: usize,
    },
}

/// What an answer came to.
#[derive(Debug)]
pub struct Answered {
    /// The last of the model's answers, with its figures; its text is without calls.
    pub answer: Answer,
    /// Calls and results that came before it, to be kept between the question and the answer.
    pub between: Vec<Message>,
    /// Times that the model was asked.
    pub steps: usize,
}

/// Answers messages with tools. A model that cannot call tools answers without, and `Toolbox` is not used.
///
/// # Errors
/// When the model fails. What a tool does wrong is told to the model instead.
pub fn answer_with_tools(
    model: &mut dyn Model,
    messages: &[Message],
    toolbox: &mut Toolbox<'_>,
    consent: &mut dyn Consent,
    limits: StepLimits,
    cancel: &CancelToken,
    on_step: &mut dyn FnMut(Step<'_>),
) -> Result<Answered, AssistantError> {
    let room = model.room_tokens();
    let tools = match model.tool_calls() {
        ToolCalls::Hermes => toolbox.specs(&|text| model.count(text), room / CATALOGUE_SHARE),
        ToolCalls::No | ToolCalls::OtherForm => Vec::new(),
    };
    let mut all = messages.to_vec();
    let mut made: Vec<ToolCall> = Vec::new();
    let mut steps = 0;
    // Answers in which the model only said again what it had called before.
    let mut repeated = 0;
    loop {
        steps += 1;
        // The last time it is told of no tools, so that it answers with what it has.
        let is_last = steps >= limits.steps || repeated >= MOST_REPEATED;
        let given: &[ToolSpec] = if is_last { &[] } else { &tools };
        let mut parser = CallParser::new(tools.iter().map(|tool| tool.name.as_str()));
        let mut shown = String::new();
        let mut show = |text: String, on_step: &mut dyn FnMut(Step<'_>)| {
            if !text.is_empty() {
                on_step(Step::Text(&text));
                shown.push_str(&text);
            }
        };
        let mut answer = model.answer(&all, given, cancel, &mut |event| match event {
            Event::Prefill {
                done_tokens,
                total_tokens,
                reused_tokens,
                reading_time,
            } => on_step(Step::Reading {
                done_tokens,
                total_tokens,
                reused_tokens,
                reading_time,
            }),
            Event::Text(text) if tools.is_empty() => show(text.to_owned(), on_step),
            Event::Text(text) => show(parser.push(text), on_step),
        })?;
        let (rest, calls) = parser.finish();
        show(rest, on_step);
        let raw = std::mem::replace(&mut answer.text, shown);
        on_step(Step::Answered(&answer));
        let is_over = calls.is_empty() || answer.stop == StopReason::Cancelled || cancel.is_cancelled();
        let between = |all: Vec<Message>| all.into_iter().skip(messages.len()).collect();
        if is_over {
            return Ok(Answered {
                answer,
                between: between(all),
                steps,
            });
        }
        if is_last {
            on_step(Step::OutOfSteps { steps });
            return Ok(Answered {
                answer,
                between: between(all),
                steps,
            });
        }
        all.push(Message::new(Role::Assistant, raw.trim()));
        let says_nothing_new =
            |call: &Result<ToolCall, BrokenCall>| matches!(call, Ok(call) if made.contains(call));
        repeated += usize::from(calls.iter().all(says_nothing_new));
        for (number, call) in calls.into_iter().enumerate() {
            let parts = match call {
                Err(broken) => {
                    on_step(Step::Broken(&broken));
                    vec![Part::from(format!(
                        "Error: the call cannot be understood: {}. Write it as {{\"name\": ..., \"arguments\": {{...}}}}",
                        broken.reason
                    ))]
                }
                Ok(call) => {
                    on_step(Step::Calls(&call));
                    let why_not = if number >= limits.calls_at_once {
                        Some("too many calls at once; this one was not done")
                    } else if made.contains(&call) {
                        Some(
                            "the same call was made before and its result is above; do not call it again, write the answer now",
                        )
                    } else {
                        None
                    };
                    made.push(call.clone());
                    let (parts, done) = match why_not {
                        Some(reason) => {
                            let reason = reason.to_owned();
                            (
                                vec![Part::from(format!("Error: {reason}"))],
                                Done::Refused { reason },
                            )
                        }
                        None => {
                            let told = toolbox.call(&call, consent, cancel, &mut |starting| {
                                on_step(Step::Starting {
                                    skill: &starting.skill.name,
                                    script: starting.script,
                                    arguments: starting.arguments,
                                });
                            });
                            (told.parts, told.done)
                        }
                    };
                    let is_whole = matches!(done, Done::Skill { .. });
                    let used = model.prompt_tokens(&all, &tools)?;
                    let free = room.saturating_sub(used);
                    let limit = if is_whole {
                        free
                    } else {
                        free.min(limits.result_tokens)
                    };
                    let fitted = fit(parts, limit, is_whole, &|text| model.count(text));
                    on_step(Step::Done {
                        done: &done,
                        tokens: fitted.tokens,
                        is_cut: fitted.is_cut,
                    });
                    fitted.parts
                }
            };
            all.push(Message {
                role: Role::Tool,
                parts,
            });
            if cancel.is_cancelled() {
                break;
            }
        }
        if cancel.is_cancelled() {
            answer.stop = StopReason::Cancelled;
            return Ok(Answered {
                answer,
                between: between(all),
                steps,
            });
        }
    }
}

struct Fitted {
    parts: Vec<Part>,
    tokens: usize,
    is_cut: bool,
}

/// Cuts a result to so many tokens; one that must be whole is left out instead.
fn fit(parts: Vec<Part>, limit: usize, is_whole: bool, count: &dyn Fn(&str) -> usize) -> Fitted {
    let tokens: usize = parts.iter().map(|part| count(&part.text)).sum();
    if tokens <= limit {
        return Fitted {
            parts,
            tokens,
            is_cut: false,
        };
    }
    let left_out = |tokens: usize| {
        let text =
            format!("Error: this has {tokens} tokens, and the window has room for {limit}; go on without it");
        Fitted {
            tokens: count(&text),
            parts: vec![text.into()],
            is_cut: true,
        }
    };
    if is_whole || limit < LEAST_RESULT_TOKENS {
        return left_out(tokens);
    }
    let note = format!("\n[cut: the first part of {tokens} tokens]");
    let mut room = limit.saturating_sub(count(&note));
    let mut kept = Vec::new();
    for mut part in parts {
        let mut has = count(&part.text);
        while has > room && !part.text.is_empty() {
            let share = part.text.len() * room / has.max(1);
            // A little less than its share each time, so that it ends.
            let end = part.text.floor_char_boundary(share.min(part.text.len() - 1));
            part.text.truncate(end);
            has = count(&part.text);
        }
        room -= has.min(room);
        kept.push(part);
    }
    kept.push(note.into());
    Fitted {
        tokens: kept.iter().map(|part| count(&part.text)).sum(),
        parts: kept,
        is_cut: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_cut_to_their_room_and_instructions_are_not() {
        let words = |text: &str| text.split_whitespace().count();
        let long = vec![Part::from("word ".repeat(500))];
        let whole = fit(long.clone(), 600, false, &words);
        assert!(!whole.is_cut && whole.tokens == 500);
        let cut = fit(long.clone(), 100, false, &words);
        assert!(
            cut.is_cut && cut.tokens <= 100 && cut.tokens > 80,
            "{}",
            cut.tokens
        );
        let text = fit(long.clone(), 100, true, &words).parts[0].text.clone();
        assert!(text.starts_with("Error: this has 500 tokens"), "{text}");
        assert!(fit(long, 10, false, &words).parts[0].text.starts_with("Error"));
        assert_eq!(
            fit(vec!["é".repeat(90).into()], 0, false, &|text| text.len())
                .parts
                .len(),
            1
        );
    }
}
