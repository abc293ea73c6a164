//! What the engine offers its callers.
use std::path::Path;
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
#[derive(Debug, Clone)]
pub struct GenerateOptions {
    /// How tokens are drawn.
    pub sampling: SamplingOptions,
    /// Most tokens to answer with.
    pub max_tokens: usize,
    /// The answer ends before any of these.
    pub stop: Vec<String>,
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

/// A model loaded and ready, with the KV of its last request kept: a prompt that begins like the last one reads
/// only what is new.
pub struct Engine {}

/// What can go wrong; every message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The prompt does not fit.
    #[error("the prompt has {prompt_tokens} tokens, {excess} more than the window of {window} holds; shorten it, or load a model with a larger window (--context)", excess = prompt_tokens - window)]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens the window can take as a prompt.
        window: usize,
    },
}

impl Engine {
    /// Loads a GGUF file.
    pub fn load(_path: &Path, _options: &LoadOptions) -> Result<Engine, EngineError> {
        unimplemented!()
    }
    /// Facts about the model.
    pub fn info(&self) -> &ModelInfo {
        unimplemented!()
    }
    /// Runs one request; blocks until it ends. `on_event` is called on this thread.
    pub fn generate(
        &mut self,
        _prompt: &[TokenId],
        _options: &GenerateOptions,
        _cancel: &CancelToken,
        _on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, EngineError> {
        unimplemented!()
    }
}
