//! What the engine offers its callers.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
        /// Time since the request began.
        elapsed: Duration,
    },
    /// The next piece of the answer, whole characters only.
    Text(&'a str),
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
    /// Tokens generated.
    pub answer_tokens: usize,
    /// Time to first token.
    pub time_to_first_token: Duration,
    /// Time from the first token to the last.
    pub decode_time: Duration,
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
    /// A sampling option out of range.
    #[error("{name} is {value} and must be {range}")]
    BadOption {
        name: &'static str,
        value: String,
        range: &'static str,
    },
}
