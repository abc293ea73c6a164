//! The command line: what can be asked for, and what values make sense.

use std::path::PathBuf;

use crate::chats::{ExportArguments, ImportArguments};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::num::IntErrorKind;

use reprise_engine::{
    GenerateOptions, KvChoice, KvFormat, LoadOptions, Recompute, Reuse, SamplingOptions, Speculation,
    StoreChoice,
};

use reprise_library::folders;
use reprise_library::models::Shelf;

use crate::bench::BenchArguments;
use crate::cache::CacheAction;
use crate::index::IndexAction;
use crate::password::PasswordArguments;
use crate::serve::ServeArguments;
use crate::skill::SkillAction;
use crate::top::TopArguments;

/// A private chat with a language model on your own machine.
#[derive(Debug, Parser)]
#[command(
    name = "reprise",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  reprise chat
  reprise ask report.pdf \"What was decided?\"
  reprise models list
  reprise chat -m ~/models/my-model.gguf --temperature 0.2

Models are looked for in $REPRISE_MODELS (default: the cache folder's reprise/models).
Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Chat with a model; Ctrl-C stops an answer, /help lists what else there is
    Chat(ChatArguments),
    /// Ask one question about documents: PDF, Office files, web pages, mails, text and more
    Ask(AskArguments),
    /// Say how a question about documents would be read: what is known of it, what moved, what computed
    Explain(ExplainArguments),
    /// List, find, fetch and add model files
    Models {
        #[command(subcommand)]
        action: ModelsAction,
    },
    /// List, show, trust and switch skills, and run their scripts
    Skill {
        #[command(subcommand)]
        action: SkillAction,
    },
    /// See, pin and erase what is kept on disk of the texts that were read
    Cache {
        #[command(subcommand)]
        action: CacheAction,
    },
    /// Keep documents ready for questions: add files and folders, find passages in them
    Index {
        #[command(subcommand)]
        action: IndexAction,
    },
    /// Write the window's chats to files: one chat, or all of them with their folders
    Export(ExportArguments),
    /// Add chats that were exported as JSON
    Import(ImportArguments),
    /// Serve a model to other programs, in the words of OpenAI's API
    Serve(ServeArguments),
    /// Watch what running engines do: memory for keys and values, requests, speed
    Top(TopArguments),
    /// Measure reading and writing speed
    Bench(BenchArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
What the model computes for a chat is kept on disk, with the chat's tokens, so that a chat that begins like an
earlier one need not be read again; it belongs to program:chat, and /erase or `reprise cache erase` takes it
away. With --no-store nothing is kept.

Examples:
  reprise chat
  reprise chat -m qwen3-0.6b --system \"Answer in French.\"
  reprise chat --skill tidy-notes
  reprise chat --doc report.pdf
  echo \"Name three rivers.\" | reprise chat --greedy")]
pub struct ChatArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// What the model is told before the chat
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Give the model this skill (repeatable); see reprise skill list
    #[arg(long, value_name = "NAME")]
    pub skill: Vec<String>,
    /// Give it this file of the skill as well (repeatable), for models that cannot ask for files
    #[arg(long, value_name = "FILE", requires = "skill")]
    pub reference: Vec<String>,
    /// Chat about this document (repeatable): each question is given the passages that answer to it
    #[arg(long, value_name = "FILE")]
    pub doc: Vec<PathBuf>,
    #[command(flatten)]
    pub password: PasswordArguments,
    /// Chat about the indexed documents (see `reprise index`)
    #[arg(long, conflicts_with = "doc")]
    pub indexed: bool,
    /// Let the model choose skills by itself, and call the tool servers in mcp.json
    #[arg(long)]
    pub tools: bool,
    #[command(flatten)]
    pub keep: KeepArguments,
    #[command(flatten)]
    pub answer: AnswerArguments,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "reprise ask [OPTIONS] [FILE]... <QUESTION>",
    after_help = "\
Without a file the indexed documents are asked. The whole of a document is used when it fits; otherwise
the passages that answer to the question: of files by their words, of indexed documents by their meaning
too. Which ones were used is said before the answer, and where those are that it names after it.

Examples:
  reprise ask \"When do I prune the apple tree?\"
  reprise ask --within ~/contracts \"How long is the notice?\"
  reprise ask report.pdf \"What was decided?\"
  reprise ask notes.md minutes.html \"Who takes care of the boiler?\"
  reprise ask thesis.pdf \"Which data were used?\" --passages-tokens 6000"
)]
pub struct AskArguments {
    /// Files, then the question; without a file the indexed documents are asked (see `reprise index`)
    #[arg(num_args = 1.., value_names = ["FILE", "QUESTION"])]
    pub files_and_question: Vec<String>,
    /// Only indexed documents at or below this path
    #[arg(long, value_name = "PATH")]
    pub within: Option<PathBuf>,
    #[command(flatten)]
    pub password: PasswordArguments,
    #[command(flatten)]
    pub keep: KeepArguments,
    #[command(flatten)]
    pub model: ModelArguments,
    /// Most tokens of passages in the prompt [default: what fits the window, at most 3000]
    #[arg(long, value_name = "N", value_parser = at_least::<1>)]
    pub passages_tokens: Option<usize>,
    #[command(flatten)]
    pub answer: AnswerArguments,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "reprise explain [OPTIONS] [FILE]... <QUESTION>\n       reprise explain [OPTIONS] --chat CHAT"
)]
pub struct ExplainArguments {
    #[command(flatten)]
    pub ask: AskArguments,
    /// The prompt of the last answer of this chat of the window, by its title or number, as it would be read now
    #[arg(long, value_name = "CHAT", conflicts_with_all = ["files_and_question", "within", "passages_tokens"])]
    pub chat: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is kept on disk of what is read.
#[derive(Debug, Args)]
pub struct KeepArguments {
    /// Disk on which what was read is kept, such as 4G; 0 keeps nothing [default: a tenth of what is free, at most 8 GiB]
    #[arg(long, value_name = "SIZE", value_parser = bytes_or_nothing)]
    disk_budget: Option<u64>,
    /// Keep nothing on disk of what is read, and use nothing that is there
    #[arg(long, conflicts_with = "disk_budget")]
    no_store: bool,
    /// What of earlier texts is used again. The same beginning changes no answer; the same text anywhere saves more, and
    /// answers may come out a little different [default: anywhere; serve: prefix]
    #[arg(long, value_name = "WHAT")]
    reuse: Option<ReuseChoice>,
}

/// What of earlier texts is used again.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReuseChoice {
    Anywhere,
    Prefix,
    Nothing,
}

impl KeepArguments {
    /// These options, with what is kept and used again; `otherwise` is used again where the person says nothing.
    pub fn applied(&self, options: LoadOptions, otherwise: Reuse) -> LoadOptions {
        LoadOptions {
            store: self.store(),
            reuse: match self.reuse {
                None => otherwise,
                Some(ReuseChoice::Anywhere) => Reuse::Anywhere(Recompute::default()),
                Some(ReuseChoice::Prefix) => Reuse::Prefix,
                Some(ReuseChoice::Nothing) => Reuse::Nothing,
            },
            ..options
        }
    }

    /// Where chunks are kept, unless nothing is to be.
    fn store(&self) -> Option<StoreChoice> {
        if self.no_store {
            return None;
        }
        folders::store(self.disk_budget)
    }
}

#[derive(Debug, Subcommand)]
pub enum ModelsAction {
    /// Show the models known by name, and which are here
    List,
    /// Print where a model's file is
    Path {
        /// A name from `reprise models list`
        name: String,
    },
    /// Make a GGUF file known by a name; the file stays where it is
    Add {
        /// The GGUF file
        file: PathBuf,
        /// The name for -m [default: the file's name]
        #[arg(long)]
        name: Option<String>,
    },
    /// Forget an added model; the file stays where it is
    Remove {
        /// The name it was added with
        name: String,
    },
    /// Measure how small a model's keys and values can be stored, and store the choice
    Tune {
        /// A name from `reprise models list`, or a GGUF file [default: the default model]
        model: Option<String>,
        /// Compute threads [default: the machine's physical cores]
        #[arg(short, long, value_name = "N", value_parser = threads)]
        threads: Option<usize>,
    },
    /// Fetch a model's file, or say where to get it
    Fetch {
        /// A name from `reprise models list`, or `ocr` for text recognition [default: the default model]
        name: Option<String>,
    },
}

/// Which model, and how it is loaded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArguments {
    /// A name from `reprise models list`, or a GGUF file [default: the default model]
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The window in tokens: prompt and answer together [default: the model's own, at most 8192]
    #[arg(long, value_name = "N", value_parser = at_least::<64>, allow_negative_numbers = true)]
    pub context: Option<usize>,
    /// Compute threads [default: the machine's physical cores]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// How keys and values are stored: profile, f16, q8, tq4, or keys/values such as q8/tq4
    #[arg(long, value_name = "FORMAT", default_value = "profile", value_parser = kv_choice)]
    pub kv: KvChoice,
    /// Memory for keys and values, such as 500M or 2G [default: a quarter of what is free, at most 8 windows]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub kv_budget: Option<u64>,
    /// Memory the program may take in all, such as 4G [default: four fifths of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory_limit: Option<u64>,
    /// Guess tokens ahead: off, lookup (by what stood in the prompt), or a smaller model by its name or GGUF file
    #[arg(long, value_name = "HOW", default_value = "lookup", value_parser = speculation)]
    pub speculate: Speculation,
}

impl ModelArguments {
    /// The engine's form of these.
    ///
    /// A command that goes on for a while lets its idle engine tune a new model.
    pub fn load_options(&self, goes_on: bool) -> LoadOptions {
        LoadOptions {
            tunes_when_idle: goes_on && folders::tunes_when_idle(),
            threads: self.threads,
            context_tokens: self.context,
            kv: self.kv.clone(),
            kv_budget_bytes: self.kv_budget,
            memory_limit_bytes: self.memory_limit,
            speculation: self.speculate.clone(),
            ..LoadOptions::default()
        }
    }
}

/// How answers are made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
pub struct AnswerArguments {
    /// Most tokens to answer with [default: 1024]
    #[arg(long, value_name = "N", value_parser = at_least::<1>)]
    pub max_tokens: Option<usize>,
    /// End the answer before this text (repeatable)
    #[arg(long, value_name = "TEXT", value_parser = not_empty)]
    pub stop: Vec<String>,
    /// 0 always takes the likeliest token, higher is freer [default: chat 0.3, ask 0]
    #[arg(long, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    pub temperature: Option<f32>,
    /// The same as --temperature 0
    #[arg(long, conflicts_with = "temperature")]
    pub greedy: bool,
    /// Choose among the K likeliest tokens; 0 for all
    #[arg(long, value_name = "K", default_value_t = 40)]
    pub top_k: usize,
    /// Choose among the likeliest tokens that together have this probability; 1 for all
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = probability_above_zero, allow_negative_numbers = true)]
    pub top_p: f32,
    /// Leave out tokens less likely than this share of the likeliest; 0 for none
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = probability, allow_negative_numbers = true)]
    pub min_p: f32,
    /// Make tokens of the recent text less likely; 1 is off [default: chat 1.05, ask 1]
    #[arg(long, value_name = "R", value_parser = penalty, allow_negative_numbers = true)]
    pub repetition_penalty: Option<f32>,
    /// The same seed gives the same answer
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Only the answer and warnings
    #[arg(short, long)]
    pub quiet: bool,
}

/// What differs between commands.
pub struct SamplingDefaults {
    pub temperature: f32,
    pub repetition_penalty: f32,
}

/// Tokens the repetition penalty looks back on.
const REPETITION_WINDOW_TOKENS: usize = 64;
const MAX_TOKENS: usize = 1024;

impl AnswerArguments {
    /// The engine's form of these; what was not said takes the command's default.
    pub fn generate_options(&self, defaults: &SamplingDefaults) -> GenerateOptions {
        GenerateOptions {
            sampling: SamplingOptions {
                temperature: if self.greedy {
                    0.0
                } else {
                    self.temperature.unwrap_or(defaults.temperature)
                },
                top_k: self.top_k,
                top_p: self.top_p,
                min_p: self.min_p,
                repetition_penalty: self.repetition_penalty.unwrap_or(defaults.repetition_penalty),
                repetition_window: REPETITION_WINDOW_TOKENS,
                seed: self.seed,
            },
            max_tokens: self.max_tokens.unwrap_or(MAX_TOKENS),
            stop: self.stop.clone(),
            stop_when_repeating: false,
            scratch: false,
            owner: "terminal".into(),
            ..GenerateOptions::default()
        }
    }
}

pub fn at_least<const LEAST: usize>(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number >= LEAST => Ok(number),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err("that is more than can be counted".into())
        }
        _ => Err(format!("a whole number of at least {LEAST} is needed")),
    }
}

/// A number of compute threads: more than the machine runs at once would only wait for each other.
pub fn threads(text: &str) -> Result<usize, String> {
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    match at_least::<1>(text)? {
        number if number <= most => Ok(number),
        _ => Err(format!(
            "this machine runs {most} at once; give at most that many"
        )),
    }
}

/// A number of bytes with an optional unit: thousands, or powers of 1,024 where the unit says so (MiB).
pub fn bytes(text: &str) -> Result<u64, String> {
    let needed = || "a size such as 500M or 2G is needed".to_owned();
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1.0,
        "KIB" => 1024.0,
        "MIB" => 1024.0 * 1024.0,
        "GIB" => 1024.0 * 1024.0 * 1024.0,
        "K" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "T" | "TB" => 1e12,
        _ => return Err(needed()),
    };
    match digits.parse::<f64>() {
        Ok(number) if number * factor >= u64::MAX as f64 => Err("no machine has as much; give less".into()),
        Ok(number) if number > 0.0 => Ok((number * factor) as u64),
        _ => Err(needed()),
    }
}

/// A size in bytes, or 0 for nothing at all.
pub fn bytes_or_nothing(text: &str) -> Result<u64, String> {
    match text.trim() {
        "0" => Ok(0),
        text => bytes(text),
    }
}

/// A KV format by name.
pub fn kv_format(text: &str) -> Result<KvFormat, String> {
    let known = KvFormat::ALL.into_iter().find(|format| format.name() == text);
    known.ok_or_else(|| format!("\"{text}\" is no KV format; choose f16, q8 or tq4"))
}

/// How keys and values are stored.
pub fn kv_choice(text: &str) -> Result<KvChoice, String> {
    if text == "profile" {
        return Ok(KvChoice::Profile);
    }
    let (keys, values) = text.split_once('/').unwrap_or((text, text));
    match (kv_format(keys), kv_format(values)) {
        (Ok(keys), Ok(values)) => Ok(KvChoice::Uniform { keys, values }),
        _ => Err("choose profile, f16, q8, tq4, or keys/values such as q8/tq4".into()),
    }
}

fn speculation(text: &str) -> Result<Speculation, String> {
    match text {
        "off" => Ok(Speculation::Off),
        "lookup" => Ok(Speculation::PromptLookup),
        name => Shelf::of_machine()
            .and_then(|shelf| shelf.resolve(Some(name)))
            .map(Speculation::DraftModel)
            .map_err(|error| format!("it is neither off nor lookup, and as a model: {error}")),
    }
}

fn not_empty(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("the text is empty".into())
    } else {
        Ok(text.into())
    }
}

fn number(text: &str, fits: impl Fn(f32) -> bool, needed: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(number) if number.is_finite() && fits(number) => Ok(number),
        _ => Err(format!("a number {needed} is needed")),
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    number(text, |number| (0.0..=10.0).contains(&number), "from 0 to 10")
}

fn probability(text: &str) -> Result<f32, String> {
    number(text, |number| (0.0..=1.0).contains(&number), "from 0 to 1")
}

fn probability_above_zero(text: &str) -> Result<f32, String> {
    number(
        text,
        |number| number > 0.0 && number <= 1.0,
        "above 0 and at most 1",
    )
}

fn penalty(text: &str) -> Result<f32, String> {
    number(
        text,
        |number| number > 0.0 && number <= 10.0,
        "above 0 and at most 10",
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("500M"), Ok(500_000_000));
        assert_eq!(bytes("1.5gb"), Ok(1_500_000_000));
        assert_eq!(bytes("4096"), Ok(4_096));
        assert_eq!(bytes("1.5MiB"), Ok(1_572_864));
        assert!(bytes("99999999999T").is_err() && bytes("inf").is_err());
        assert!(bytes("").is_err() && bytes("-1G").is_err() && bytes("3X").is_err() && bytes("G").is_err());
    }

    #[test]
    fn numbers_outside_their_range_are_refused() {
        assert!(temperature("-0.1").is_err() && temperature("nan").is_err() && temperature("0").is_ok());
        assert!(
            probability_above_zero("0").is_err() && probability("0").is_ok() && probability("1.5").is_err()
        );
        assert!(penalty("0").is_err() && penalty("inf").is_err() && penalty("1").is_ok());
        assert!(at_least::<1>("0").is_err() && at_least::<1>("x").is_err() && at_least::<1>("3") == Ok(3));
    }
}
