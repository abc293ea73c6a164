//! Steps and questions as values that can be kept and sent, for the window. The page sees the same ones: their TypeScript is
//! generated from here.

use serde::{Deserialize, Serialize};
#[cfg(feature = "bindings")]
use ts_rs::TS;

use super::answer::Step;
use super::consent::Question;
use super::run::Ended;
use super::toolbox::Done;

/// A step of an answer with tools, besides its text and the reading of its prompt, which the window shows as it does
/// without tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub enum StepTold {
    /// The model calls a tool.
    Calls {
        /// The tool.
        tool: String,
        /// Its arguments, as JSON.
        arguments: String,
    },
    /// A call that cannot be understood.
    Broken {
        /// What the model wrote, its beginning.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A script that was allowed starts.
    Starting {
        /// Whose it is.
        skill: String,
        /// The script.
        script: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// The model chose a skill and was given its text.
    Skill {
        /// The skill.
        skill: String,
        /// Tokens of it.
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        tokens: u64,
        /// Whether it had no room.
        is_left_out: bool,
    },
    /// It read a file of one.
    Reference {
        /// The skill.
        skill: String,
        /// The file.
        file: String,
        /// Tokens of it.
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        tokens: u64,
        /// Whether it was cut to fit.
        is_cut: bool,
    },
    /// A script ran.
    Script {
        /// Whose it is.
        skill: String,
        /// The script.
        script: String,
        /// How it ended, in words.
        ending: String,
        /// Whether it succeeded.
        is_done: bool,
        /// What it wrote.
        output: String,
        /// Milliseconds that it took.
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        milliseconds: u64,
    },
    /// A tool of a server was called.
    Server {
        /// The tool.
        tool: String,
        /// What it said.
        text: String,
        /// Whether it says that it failed.
        is_error: bool,
    },
    /// A call was not done.
    Refused {
        /// Why, in words.
        reason: String,
    },
    /// The model called tools as often as it may.
    OutOfSteps {
        /// How often it was asked.
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        steps: u64,
    },
}

impl Step<'_> {
    /// The step as a value; none for text, reading, and the figures of an answer.
    pub fn told(&self) -> Option<StepTold> {
        Some(match self {
            Step::Text(_) | Step::Reading { .. } | Step::Answered(_) => return None,
            Step::Calls(call) => StepTold::Calls {
                tool: call.name.clone(),
                arguments: serde_json::to_string(&call.arguments).unwrap_or_default(),
            },
            Step::Broken(broken) => StepTold::Broken {
                text: broken.text.clone(),
                reason: broken.reason.clone(),
            },
            Step::Starting {
                skill,
                script,
                arguments,
            } => StepTold::Starting {
                skill: (*skill).to_owned(),
                script: (*script).to_owned(),
                arguments: arguments.to_vec(),
            },
            Step::Done { done, tokens, is_cut } => done_told(done, *tokens as u64, *is_cut),
            Step::OutOfSteps { steps } => StepTold::OutOfSteps { steps: *steps as u64 },
        })
    }
}

fn done_told(done: &Done<'_>, tokens: u64, is_cut: bool) -> StepTold {
    match done {
        Done::Skill { skill } => StepTold::Skill {
            skill: skill.name.clone(),
            tokens,
            is_left_out: is_cut,
        },
        Done::Reference { skill, file } => StepTold::Reference {
            skill: skill.name.clone(),
            file: file.clone(),
            tokens,
            is_cut,
        },
        Done::Script { skill, ran } => StepTold::Script {
            skill: skill.name.clone(),
            script: ran.script.clone(),
            ending: ran.ending(),
            is_done: ran.ended == Ended::Exit(0),
            output: ran.output.clone(),
            milliseconds: u64::try_from(ran.time.as_millis()).unwrap_or(u64::MAX),
        },
        Done::Server { tool, text, is_error } => StepTold::Server {
            tool: tool.clone(),
            text: text.clone(),
            is_error: *is_error,
        },
        Done::Refused { reason } => StepTold::Refused {
            reason: reason.clone(),
        },
    }
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(TS))]
pub struct QuestionTold {
    /// What is asked, in words.
    pub words: String,
    /// What "always" would mean.
    pub always_means: String,
}

impl Question<'_> {
    /// The question as a value.
    pub fn told(&self) -> QuestionTold {
        QuestionTold {
            words: self.words(),
            always_means: self.always_means().to_owned(),
        }
    }
}
