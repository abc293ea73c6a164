//! What the engine offers its callers.
pub use crate::reuse::cut::{Segment, SegmentKind};
use crate::reuse::explain::Explanation;
pub use crate::reuse::read::{Recompute, Strategy};
use crate::units::megabytes;
use reprise_kv::{KvFormat, KvProfile};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Identifies one token of a model's vocabulary.
pub type TokenId = u32;

/// How to load a model.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Compute threads; `None` takes the machine's physical cores.
    pub threads: Option<usize>,
    /// The window in tokens; `None` takes the smaller of the model's own context and 8,192.
    pub context_tokens: Option<usize>,
    /// How keys and values are stored.
    pub kv: KvChoice,
    /// The folder where tuning stores profiles; without one only those that come with the program are known.
    pub profiles: Option<PathBuf>,
    /// Whether a model without a measured profile is tuned in the background while nothing else runs. Needs
    /// `profiles`, where the result is stored; it is used from then on.
    pub tunes_when_idle: bool,
    /// Bytes of KV memory for all requests; `None` takes a safe share of what is free (see [`crate::budget`]).
    pub kv_budget_bytes: Option<u64>,
    /// Bytes this process may take before new work is refused; `None` takes a share of the machine's memory.
    pub memory_limit_bytes: Option<u64>,
    /// How tokens are guessed ahead while one request runs alone.
    pub speculation: Speculation,
    /// When parts of the model that nobody needs are released.
    pub residency: Residency,
    /// Where chunks are kept beyond this run; without one only what the pool holds is used again.
    pub store: Option<StoreChoice>,
    /// What of earlier prompts is used again.
    pub reuse: Reuse,
}

/// Where chunks are kept on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreChoice {
    /// The folder: of one engine at a time.
    pub folder: PathBuf,
    /// Most bytes of it; `None` takes what suits the disk (see [`crate::budget`]).
    pub budget_bytes: Option<u64>,
    /// Most bytes of chunks that stay in memory as well; `None` takes a share of the KV memory.
    pub memory_bytes: Option<usize>,
}

/// What of earlier prompts is used again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reuse {
    /// Nothing: every prompt is read as a new one.
    Nothing,
    /// What begins alike.
    Prefix,
    /// That, and the same segments wherever they stand; of these a share is computed again.
    Anywhere(Recompute),
}

impl Default for Reuse {
    fn default() -> Reuse {
        Reuse::Anywhere(Recompute::default())
    }
}

/// How reading a prompt that is partly known is done; changed only to measure what a part of it saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workings {
    /// Whether chunks arrive while something is computed; else they are waited for.
    pub overlaps: bool,
    /// Whether tokens from anywhere in the prompt share a call; else each stretch of consecutive ones has its own.
    pub merges: bool,
    /// Most tokens of a call; `None` leaves it to the engine.
    pub call_tokens: Option<usize>,
}

impl Default for Workings {
    fn default() -> Workings {
        Workings {
            overlaps: true,
            merges: true,
            call_tokens: None,
        }
    }
}

/// How keys and values are stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum KvChoice {
    /// As the model's profile says: the one that tuning stored, else the one that came with the program, else a
    /// cautious one (see [`crate::profile`]).
    #[default]
    Profile,
    /// The same formats for every layer, without residual keys.
    Uniform {
        /// Of keys.
        keys: KvFormat,
        /// Of values.
        values: KvFormat,
    },
    /// This profile.
    Given(KvProfile),
}

/// How tokens are guessed ahead while one request runs alone. Guesses change no answer, only how fast it comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Speculation {
    /// Not at all.
    Off,
    /// What followed the last tokens earlier in the prompt or the answer, as long as that measures faster.
    #[default]
    PromptLookup,
    /// By a smaller model with the same vocabulary: its file.
    DraftModel(PathBuf),
}

/// When parts of the model that nobody needs are released.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Residency {
    /// When memory is short.
    #[default]
    Auto,
    /// As soon as no request holds them: the least memory, at the price of loading them again.
    Lean,
}

/// Facts about a loaded model that a person may want to see.
#[derive(Debug, Clone)]
pub struct ModelInfo {
    /// The model's own name (`general.name`), or the file's stem.
    pub name: String,
    /// GGUF architecture, for example `llama`.
    pub architecture: String,
    /// The type most weights have, for example `Q4_1`.
    pub quantisation: String,
    /// Number of weights.
    pub parameters: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The context the model was trained for, in tokens.
    pub trained_context_tokens: usize,
    /// The window in use, in tokens.
    pub context_tokens: usize,
    /// Compute threads in use.
    pub threads: usize,
    /// How keys and values are stored: the profile's name.
    pub kv_format: String,
    /// Bytes of keys and values a token takes.
    pub kv_token_bytes: usize,
    /// Bytes of KV memory for all requests.
    pub kv_budget_bytes: u64,
    /// The model's layers, those alike together.
    pub layers: Vec<LayerKind>,
}

/// Layers that attend alike. Keys of all of them can be turned to new places: models whose rotary positions depend on the
/// text's length, or that scale them in ways unknown here, are refused when they are loaded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerKind {
    /// How many there are.
    pub count: usize,
    /// Tokens that they see back; `None` is all of the prompt. What lies further back is kept for them, and not looked at.
    pub window_tokens: Option<usize>,
    /// The base of their rotary positions' frequencies.
    pub rope_base: f32,
}

/// Sampling settings. `temperature` 0 is greedy.
#[derive(Debug, Clone)]
pub struct SamplingOptions {
    /// 0 takes the most likely token.
    pub temperature: f32,
    /// Keep the k most likely tokens; 0 keeps all.
    pub top_k: usize,
    /// Keep the smallest set whose probability reaches p; 1.0 keeps all.
    pub top_p: f32,
    /// Drop tokens less likely than this share of the most likely one; 0 drops none.
    pub min_p: f32,
    /// Divide (or multiply) the logits of recent tokens; 1.0 is off.
    pub repetition_penalty: f32,
    /// How many recent tokens the penalty looks at.
    pub repetition_window: usize,
    /// Same seed, same answer; `None` draws one.
    pub seed: Option<u64>,
}

/// One request's options.
#[derive(Debug, Clone, Default)]
pub struct GenerateOptions {
    /// How tokens are drawn.
    pub sampling: SamplingOptions,
    /// Most tokens to answer with.
    pub max_tokens: usize,
    /// The answer ends before any of these.
    pub stop: Vec<String>,
    /// The answer ends when it has come to nothing but repeating itself, as small models do at times.
    pub stop_when_repeating: bool,
    /// Whether what the request computed is let go at its end, as for a title: nothing of it is kept for later prompts.
    pub scratch: bool,
    /// Who asks, for the panel: a chat's name, a client. Shown on this machine only.
    pub owner: String,
    /// What the prompt consists of, in order; together as long as it. Without segments nothing of it is stored, and
    /// nothing is looked for beyond its beginning.
    pub segments: Vec<Segment>,
    /// Watches the answer's logits, or dictates the answer, for measuring.
    pub script: Option<Arc<Script>>,
}

/// Watches an answer's logits; dictates the answer where there is one.
#[derive(Debug, Default)]
pub struct Script {
    dictated: Option<Vec<TokenId>>,
    seen: Mutex<Vec<Vec<f32>>>,
}

impl Script {
    /// Watches an answer.
    pub fn watch() -> Arc<Script> {
        Arc::default()
    }

    /// Dictates an answer, which ends with the last of `tokens`, and watches what the model would have said.
    pub fn dictate(tokens: Vec<TokenId>) -> Arc<Script> {
        Arc::new(Script {
            dictated: Some(tokens),
            seen: Mutex::default(),
        })
    }

    /// The logits from which each token of the answer was drawn, in order; they are taken out.
    pub fn take_logits(&self) -> Vec<Vec<f32>> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes the logits of the answer's next token; that token, or none at the end, where it is dictated.
    pub(crate) fn next(&self, index: usize, logits: &[f32]) -> Option<Option<TokenId>> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(logits.to_vec());
        self.dictated.as_ref().map(|tokens| tokens.get(index).copied())
    }
}

/// A request for [`crate::Engine::submit`].
pub struct Request {
    /// The prompt.
    pub prompt: Vec<TokenId>,
    /// How to answer.
    pub options: GenerateOptions,
    /// Stops it at any phase.
    pub cancel: CancelToken,
    /// Called on the engine's thread for everything that happens: it must return soon.
    pub on_event: Box<dyn FnMut(Event<'_>) + Send>,
    /// Called once at the end, on the engine's thread.
    pub on_end: Box<dyn FnOnce(Result<Answer, EngineError>) + Send>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended its turn.
    EndOfTurn,
    /// One of the stop strings came up.
    StopString(String),
    /// `max_tokens` was reached.
    MaxTokens,
    /// The window is full.
    WindowFull,
    /// The answer repeated itself over and over (`stop_when_repeating`).
    Repeating,
    /// The caller cancelled.
    Cancelled,
    /// The answer was longer than what is guaranteed, and the KV memory it used was needed for others.
    Capacity,
}

/// Something that happens while a request runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// Prompt tokens read so far (those reused count as read).
    Prefill {
        /// Tokens read.
        done_tokens: usize,
        /// Tokens of the whole prompt.
        total_tokens: usize,
        /// Tokens whose KV was already there.
        reused_tokens: usize,
        /// Time since reading began; what the request waited for a lane is not part of it.
        reading_time: Duration,
    },
    /// The next piece of the answer, whole characters only.
    Text(&'a str),
}

/// How long one kind of work took, and how much of that ran while something was computed, so that nobody waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// All of it.
    pub taken: Duration,
    /// What of it was hidden behind computing.
    pub hidden: Duration,
}

/// What went on until a request's first token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// Looking for what is stored of the prompt.
    pub matching: Spent,
    /// Reading chunks from disk, and checking them.
    pub loading: Spent,
    /// Turning keys to where they are needed, and placing chunks.
    pub turning: Spent,
    /// Computing; never hidden.
    pub computing: Duration,
    /// Storing what earlier requests left.
    pub storing: Spent,
}

impl Steps {
    /// The share of everything but computing that was hidden behind it; 1 where there was nothing to hide.
    pub fn hidden_share(&self) -> f64 {
        let all = [self.matching, self.loading, self.turning, self.storing];
        let seconds =
            |of: fn(&Spent) -> Duration| all.iter().map(|spent| of(spent).as_secs_f64()).sum::<f64>();
        let taken = seconds(|spent| spent.taken);
        if taken > 0.0 {
            seconds(|spent| spent.hidden) / taken
        } else {
            1.0
        }
    }
}

/// A finished request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The text, without stop strings and control tokens.
    pub text: String,
    /// Why it ended.
    pub stop: StopReason,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them whose KV was already there.
    pub reused_tokens: usize,
    /// Those of the reused ones that came from another context or position.
    pub moved_tokens: usize,
    /// Those of the moved ones that were computed again, at least.
    pub recomputed_tokens: usize,
    /// Tokens generated.
    pub answer_tokens: usize,
    /// Time until it had a lane; part of the next.
    pub waiting_time: Duration,
    /// Time to first token.
    pub time_to_first_token: Duration,
    /// Time from the first token to the last.
    pub decode_time: Duration,
    /// What went on until the first token.
    pub steps: Steps,
    /// How the prompt was read; none when the request was cancelled before it became a lane.
    pub explanation: Option<Explanation>,
}

/// Cancels a running request from another thread or a signal handler.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Asks the request to stop; honoured within one graph call.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Whether someone asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    /// Makes the token ready for the next request.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// What can go wrong; every message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are what the message prints
pub enum EngineError {
    /// The file cannot be used.
    #[error(transparent)]
    Gguf(#[from] reprise_model::gguf::GgufError),
    /// The model's architecture cannot be used.
    #[error(transparent)]
    Architecture(#[from] reprise_model::arch::ArchitectureError),
    /// The model's tokenizer cannot be used.
    #[error("{path}: {source}", path = path.display())]
    Tokenizer {
        path: PathBuf,
        source: reprise_model::tokenizer::TokenizerError,
    },
    /// The weights cannot be loaded.
    #[error(transparent)]
    Load(#[from] crate::cpu::CpuError),
    /// A graph call failed.
    #[error(transparent)]
    Backend(#[from] crate::backend::BackendError),
    /// The KV profile cannot be used.
    #[error(transparent)]
    Profile(#[from] reprise_kv::ProfileMismatch),
    /// The KV memory cannot be had.
    #[error(transparent)]
    Pool(#[from] reprise_kv::pool::PoolError),
    /// The KV memory is too small for a useful window.
    #[error(
        "a KV memory of {} holds {tokens} tokens, and a window of {least} takes {}; give it more (--kv-budget, or \
         Settings)",
        megabytes(*budget_bytes),
        megabytes(*needed_bytes)
    )]
    BudgetTooSmall {
        budget_bytes: u64,
        tokens: usize,
        least: usize,
        needed_bytes: u64,
    },
    /// The request does not fit the KV memory, however long it waits.
    #[error(
        "this request needs {} of KV memory (a prompt of {prompt_tokens} tokens and up to {output_tokens} of answer), \
         and {} is all there is, for {held_tokens} tokens of prompt and answer together; shorten it, or give the KV \
         memory more (--kv-budget, or Settings)",
        megabytes(*needed_bytes),
        megabytes(*total_bytes)
    )]
    DoesNotFit {
        prompt_tokens: usize,
        output_tokens: usize,
        needed_bytes: u64,
        total_bytes: u64,
        held_tokens: usize,
    },
    /// The guard refuses new work.
    #[error(
        "memory is short: {reason}; close other programs, choose a smaller model, or raise the limit, and try again"
    )]
    MemoryShort {
        /// What is short, with numbers.
        reason: String,
    },
    /// A call that served several requests failed.
    #[error("the computation failed: {reason}")]
    Failed { reason: String },
    /// The engine's thread has ended.
    #[error("the engine has stopped; load the model again")]
    Stopped,
    /// A draft model that does not fit the model.
    #[error("{path} cannot guess for this model: {reason}; choose a smaller model of the same family", path = path.display())]
    Draft { path: PathBuf, reason: String },
    /// There is nothing to answer.
    #[error("the prompt is empty; type a question")]
    EmptyPrompt,
    /// The prompt does not fit.
    #[error(
        "the prompt has {prompt_tokens} tokens, {excess} more than the window of {window} holds; shorten it, or load a \
         model with a larger window (--context)",
        excess = prompt_tokens.saturating_sub(*window)
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens the window can take as a prompt.
        window: usize,
    },
    /// A window that the model cannot have.
    #[error(
        "a window of {asked} tokens cannot be had: this model was trained for {trained}; choose from {least} to {trained}"
    )]
    Window {
        asked: usize,
        trained: usize,
        least: usize,
    },
    /// The chunks' folder cannot be used.
    #[error(transparent)]
    Store(#[from] reprise_kv::store::StoreError),
    /// Segments that are not the prompt's.
    #[error("the segments have {segments} tokens, the prompt has {prompt}; build both from the same text")]
    Segments { segments: usize, prompt: usize },
    /// A sampling option out of range.
    #[error("{name} is {value} and must be {range}")]
    BadOption {
        name: &'static str,
        value: String,
        range: &'static str,
    },
}
