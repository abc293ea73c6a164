//! A loaded model and the loop that answers with it.

use crate::api::{
    Answer, CancelToken, EngineError, Event, GenerateOptions, LoadOptions, ModelInfo, StopReason, TokenId,
};
use crate::backend::{Backend, GraphCall, GraphKind, Outputs};
use crate::cpu::CpuBackend;
use crate::sampling::Sampler;
use crate::stop::StopWatch;
use reprise_kernels::quant::QuantType;
use reprise_kv::KvMemory;
use reprise_model::arch::Architecture;
use reprise_model::gguf::Gguf;
use reprise_model::tokenizer::Tokenizer;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The window when the caller names none: enough for a long chat, and its keys fit small machines.
const DEFAULT_CONTEXT_TOKENS: usize = 8_192;
/// The least window that can hold a question and an answer.
const LEAST_CONTEXT_TOKENS: usize = 64;

/// See [`is_repeating`].
const LEAST_REPEATED_TOKENS: usize = 96;
/// A prompt is read in calls of about this long, so that progress shows and a cancellation is heard; how it is split
/// changes no result.
const CALL_SECONDS: f64 = 0.5;
/// The first call's tokens, before the machine's speed is known.
const FIRST_CALL_TOKENS: usize = 128;
/// Calls are multiples of this.
const CALL_STEP_TOKENS: usize = 32;

/// A model loaded and ready, with the KV of its last request kept: a prompt that begins like the last one reads only
/// what is new.
pub struct Engine {
    info: ModelInfo,
    gguf: Arc<Gguf>,
    tokenizer: Arc<Tokenizer>,
    backend: Box<dyn Backend>,
    kv: KvMemory,
    /// The tokens whose keys and values are in memory, by position.
    tokens: Vec<TokenId>,
    work: Work,
}

/// What one token costs.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Multiplications and additions in the layers' matrices.
    pub matrix_ops_per_token: f64,
    /// Bytes of weights that writing a token reads.
    pub weight_bytes: f64,
    /// Bytes of keys and values that writing a token reads for each token before it.
    pub kv_bytes_per_token: f64,
}

impl Work {
    fn of(gguf: &Gguf, arch: &Architecture) -> Work {
        let is_matrix = |name: &str| name.starts_with("blk.") && name.ends_with(".weight");
        let layers = gguf
            .tensors()
            .filter(|tensor| is_matrix(tensor.name) && tensor.rows() > 1);
        let (values, bytes) = layers.fold((0, 0), |(values, bytes), t| {
            (values + t.row_len() * t.rows(), bytes + t.data.len())
        });
        let head = gguf
            .tensor("output.weight")
            .or_else(|| gguf.tensor("token_embd.weight"));
        let kv: usize = arch
            .layers
            .iter()
            .map(|layer| 2 * 2 * layer.kv_heads * layer.head_dim)
            .sum();
        Work {
            matrix_ops_per_token: 2.0 * values as f64,
            weight_bytes: (bytes + head.map_or(0, |head| head.data.len())) as f64,
            kv_bytes_per_token: kv as f64,
        }
    }
}

/// The part of a request that is measured.
struct Clock {
    begin: Instant,
    first_token: Option<Duration>,
}

impl Engine {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// When the file is broken, holds a model that is not supported, or the window asked for is larger than the
    /// model's.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Engine, EngineError> {
        let gguf = Arc::new(Gguf::open(path)?);
        let arch = Architecture::from_gguf(&gguf)?;
        let tokenizer = Tokenizer::from_gguf(&gguf).map_err(|source| EngineError::Tokenizer {
            path: path.to_owned(),
            source,
        })?;
        let tokenizer = Arc::new(tokenizer);
        let trained = arch.context_tokens;
        let context_tokens = match options.context_tokens {
            None => trained.min(DEFAULT_CONTEXT_TOKENS),
            Some(asked) if (LEAST_CONTEXT_TOKENS..=trained).contains(&asked) => asked,
            Some(asked) => {
                return Err(EngineError::Window {
                    asked,
                    trained,
                    least: LEAST_CONTEXT_TOKENS,
                });
            }
        };
        let threads = options.threads.unwrap_or_else(default_threads).max(1);
        let work = Work::of(&gguf, &arch);
        let info = describe(&gguf, &arch, context_tokens, threads);
        let kv = KvMemory::new(&CpuBackend::kv_shape(&arch), context_tokens);
        let backend = Box::new(CpuBackend::load(
            Arc::clone(&gguf),
            arch,
            threads,
            context_tokens,
        )?);
        tracing::debug!(backend = backend.name(), bytes = backend.bytes(), "model loaded");
        Ok(Engine {
            info,
            gguf,
            tokenizer,
            backend,
            kv,
            tokens: Vec::with_capacity(context_tokens),
            work,
        })
    }

    /// Facts about the model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The model's file.
    pub fn gguf(&self) -> &Gguf {
        &self.gguf
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The model's tokenizer, to be used while the engine is busy.
    pub fn shared_tokenizer(&self) -> Arc<Tokenizer> {
        Arc::clone(&self.tokenizer)
    }

    /// The backend's name, for example `cpu avx2`.
    pub fn backend_name(&self) -> &str {
        self.backend.name()
    }

    /// The backend and an empty KV memory, for measuring.
    pub fn parts_mut(&mut self) -> (&mut dyn Backend, &mut KvMemory) {
        self.tokens.clear();
        (&mut *self.backend, &mut self.kv)
    }

    /// What one token costs, for measuring.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Bytes of weights and scratch, and of keys and values.
    pub fn bytes(&self) -> (usize, usize) {
        (self.backend.bytes(), self.kv.bytes())
    }

    /// Forgets the last request and gives its KV pages back.
    pub fn forget(&mut self) {
        self.tokens.clear();
        self.kv.shrink(0);
    }

    /// Runs requests beside the one that is kept: what `work` generates reads and leaves nothing in the KV of the last
    /// request, which is as it was afterwards. The scratch KV lives for the length of the call.
    pub fn aside<T>(&mut self, work: impl FnOnce(&mut Engine) -> T) -> T {
        let scratch = self.kv.sibling();
        let kv = std::mem::replace(&mut self.kv, scratch);
        let tokens = std::mem::take(&mut self.tokens);
        let result = work(self);
        self.kv = kv;
        self.tokens = tokens;
        result
    }

    /// Runs one request; blocks until it ends. `on_event` is called on this thread.
    ///
    /// # Errors
    /// When the prompt is empty or does not fit, an option is out of range, or a graph call fails. What had been
    /// computed by then is kept.
    pub fn generate(
        &mut self,
        prompt: &[TokenId],
        options: &GenerateOptions,
        cancel: &CancelToken,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Answer, EngineError> {
        let window = self.info.context_tokens - 1;
        if prompt.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        if prompt.len() > window {
            return Err(EngineError::PromptTooLong {
                prompt_tokens: prompt.len(),
                window,
            });
        }
        let mut sampler = Sampler::new(&options.sampling, self.tokenizer.vocab_size())?;
        let mut clock = Clock {
            begin: Instant::now(),
            first_token: None,
        };
        let reused = self.keep_prefix(prompt);
        // All pages of the request, so that no step has to allocate.
        let whole = (prompt.len() + options.max_tokens).min(self.info.context_tokens);
        self.kv
            .reserve(whole)
            .map_err(crate::backend::BackendError::from)?;
        let (text, stop, answer_tokens) = if self.prefill(prompt, reused, cancel, &clock, on_event)? {
            self.decode(prompt.len(), &mut sampler, options, cancel, &mut clock, on_event)?
        } else {
            (String::new(), StopReason::Cancelled, 0)
        };
        let elapsed = clock.begin.elapsed();
        let first = clock.first_token.unwrap_or(elapsed);
        Ok(Answer {
            text,
            stop,
            prompt_tokens: prompt.len(),
            reused_tokens: reused,
            answer_tokens,
            time_to_first_token: first,
            decode_time: elapsed - first,
        })
    }

    /// Keeps the KV of the longest common beginning; the prompt's last token is always computed, for its logits.
    fn keep_prefix(&mut self, prompt: &[TokenId]) -> usize {
        let common = self.tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        let reused = common.min(prompt.len() - 1);
        self.tokens.truncate(reused);
        reused
    }

    /// Reads the prompt from token `reused` on; false when cancelled.
    fn prefill(
        &mut self,
        prompt: &[TokenId],
        reused: usize,
        cancel: &CancelToken,
        clock: &Clock,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, EngineError> {
        let capacity = self.backend.capacity(GraphKind::Prefill);
        let mut call_tokens = FIRST_CALL_TOKENS.min(capacity);
        let mut done = reused;
        let mut report = |done| {
            on_event(Event::Prefill {
                done_tokens: done,
                total_tokens: prompt.len(),
                reused_tokens: reused,
                elapsed: clock.begin.elapsed(),
            });
        };
        report(done);
        while done < prompt.len() {
            if cancel.is_cancelled() {
                return Ok(false);
            }
            let call_begin = Instant::now();
            let tokens = &prompt[done..(done + call_tokens).min(prompt.len())];
            let is_last = done + tokens.len() == prompt.len();
            let outputs = if is_last { Outputs::Last } else { Outputs::None };
            let call = GraphCall {
                kind: GraphKind::Prefill,
                tokens,
                start: done,
                outputs,
            };
            self.backend.run(&call, &mut self.kv)?;
            self.tokens.extend_from_slice(tokens);
            done += tokens.len();
            let rate = tokens.len() as f64 / call_begin.elapsed().as_secs_f64();
            let wanted = (rate * CALL_SECONDS) as usize / CALL_STEP_TOKENS * CALL_STEP_TOKENS;
            call_tokens = wanted
                .clamp(CALL_STEP_TOKENS, capacity.max(CALL_STEP_TOKENS))
                .min(capacity);
            report(done);
        }
        Ok(true)
    }

    fn decode(
        &mut self,
        prompt_tokens: usize,
        sampler: &mut Sampler,
        options: &GenerateOptions,
        cancel: &CancelToken,
        clock: &mut Clock,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(String, StopReason, usize), EngineError> {
        let mut detokenizer = self.tokenizer.detokenizer();
        let mut watch = StopWatch::new(&options.stop);
        let mut text = String::new();
        let mut shown = 0;
        let stop = loop {
            let count = self.tokens.len() - prompt_tokens;
            if cancel.is_cancelled() {
                break StopReason::Cancelled;
            }
            if options.stop_when_repeating && is_repeating(&self.tokens[prompt_tokens..]) {
                break StopReason::Repeating;
            }
            if count >= options.max_tokens {
                break StopReason::MaxTokens;
            }
            let token = sampler.sample(self.backend.logits(), &self.tokens);
            clock.first_token.get_or_insert_with(|| clock.begin.elapsed());
            if self.tokenizer.is_end_of_generation(token) {
                break StopReason::EndOfTurn;
            }
            let found = watch
                .push(detokenizer.push(&self.tokenizer, token), &mut text)
                .map(str::to_owned);
            if shown < text.len() {
                on_event(Event::Text(&text[shown..]));
                shown = text.len();
            }
            let position = self.tokens.len();
            if let Some(stop) = found {
                let answer_tokens = count + 1;
                return Ok((text, StopReason::StopString(stop), answer_tokens));
            }
            if position + 1 >= self.info.context_tokens {
                break StopReason::WindowFull;
            }
            let call = GraphCall {
                kind: GraphKind::Decode,
                tokens: &[token],
                start: position,
                outputs: Outputs::Last,
            };
            self.backend.run(&call, &mut self.kv)?;
            self.tokens.push(token);
        };
        if watch.push(detokenizer.finish(), &mut text).is_none() {
            watch.finish(&mut text);
        }
        if shown < text.len() {
            on_event(Event::Text(&text[shown..]));
        }
        Ok((text, stop, self.tokens.len() - prompt_tokens))
    }
}

/// Whether an answer ends in at least four copies of the same tokens, and at least [`LEAST_REPEATED_TOKENS`] of them:
/// more than lists, tables or verses do.
fn is_repeating(answer: &[TokenId]) -> bool {
    (1..=answer.len() / 4).any(|period| {
        let repeated = (3 * period).max(LEAST_REPEATED_TOKENS);
        let Some(start) = answer.len().checked_sub(repeated + period) else {
            return false;
        };
        let tail = &answer[start..];
        tail[period..]
            .iter()
            .rev()
            .zip(tail[..repeated].iter().rev())
            .all(|(a, b)| a == b)
    })
}

/// Physical cores, as far as this process may use them.
fn default_threads() -> usize {
    num_cpus::get_physical().min(num_cpus::get()).max(1)
}

fn describe(gguf: &Gguf, arch: &Architecture, context_tokens: usize, threads: usize) -> ModelInfo {
    let mut values_of: BTreeMap<QuantType, u64> = BTreeMap::new();
    for tensor in gguf.tensors() {
        *values_of.entry(tensor.ty).or_default() += tensor.shape.iter().product::<u64>();
    }
    let stem = gguf
        .path()
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    ModelInfo {
        name: gguf
            .str("general.name")
            .map(str::to_owned)
            .ok()
            .or(stem)
            .unwrap_or_default(),
        architecture: arch.name.clone(),
        quantisation: values_of
            .iter()
            .max_by_key(|(_, n)| **n)
            .map_or("", |(ty, _)| ty.name())
            .to_owned(),
        parameters: values_of.values().sum(),
        file_bytes: gguf.file_bytes(),
        trained_context_tokens: arch.context_tokens,
        context_tokens,
        threads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_exact_loops_count_as_repeating() {
        let unique: Vec<TokenId> = (0..400).collect();
        assert!(!is_repeating(&unique));
        let looped = |period: usize, copies: usize| {
            let mut tokens: Vec<TokenId> = (1_000..1_050).collect();
            tokens.extend((0..copies).flat_map(|_| 0..period as TokenId));
            tokens
        };
        assert!(is_repeating(&looped(40, 4)));
        assert!(!is_repeating(&looped(40, 3)));
        assert!(is_repeating(&looped(1, 97)));
        assert!(!is_repeating(&looped(1, 60)));
        assert!(!is_repeating(&[]));
        let mut broken = looped(40, 4);
        broken[100] = 7_777;
        assert!(!is_repeating(&broken));
    }
}
