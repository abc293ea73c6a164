//! A model brought from its file to where it can work: tokenizer, backend, and the KV pool.

use crate::api::{EngineError, KvChoice, LayerKind, LoadOptions, ModelInfo};
use crate::backend::Backend;
use crate::budget::Budget;
use crate::cpu::CpuBackend;
use crate::guard::Guard;
use crate::profile::{self, Source};
use reprise_kernels::quant::QuantType;
use reprise_kv::pool::PagePool;
use reprise_kv::{KvProfile, LayerLayout, PAGE_TOKENS};
use reprise_model::arch::{Architecture, Layer};
use reprise_model::gguf::Gguf;
use reprise_model::tokenizer::Tokenizer;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The window where nobody chooses one: long enough for a chat, small enough for small machines.
const DEFAULT_CONTEXT_TOKENS: usize = 8_192;
/// The least window that can hold a question and an answer.
const LEAST_CONTEXT_TOKENS: usize = 64;

/// A loaded model, not at work yet.
pub struct Loaded {
    /// Facts for people.
    pub info: ModelInfo,
    /// The file.
    pub gguf: Arc<Gguf>,
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// What computes.
    pub backend: Box<dyn Backend>,
    /// How each layer's keys and values lie in a page.
    pub layouts: Vec<LayerLayout>,
    /// The profile in use, and where it came from.
    pub profile: KvProfile,
    /// See there.
    pub source: Source,
    /// What prefill calls take here, where tuning measured it (see [`profile::prefill_latencies`]).
    pub prefill_latencies: Vec<(usize, f64)>,
    /// The KV memory.
    pub pool: PagePool,
    /// What one token costs.
    pub work: Work,
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
    fn of(gguf: &Gguf, layouts: &[LayerLayout]) -> Work {
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
        Work {
            matrix_ops_per_token: 2.0 * values as f64,
            weight_bytes: (bytes + head.map_or(0, |head| head.data.len())) as f64,
            kv_bytes_per_token: LayerLayout::token_bytes_of(layouts) as f64,
        }
    }
}

impl Loaded {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// When the file is broken, holds a model that is not supported, or an option cannot be met.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Loaded, EngineError> {
        let gguf = Arc::new(Gguf::open(path)?);
        let arch = Architecture::from_gguf(&gguf)?;
        let tokenizer = Tokenizer::from_gguf(&gguf).map_err(|source| EngineError::Tokenizer {
            path: path.to_owned(),
            source,
        })?;
        let tokenizer = Arc::new(tokenizer);
        let context_tokens = window(options, arch.context_tokens)?;
        let threads = options.threads.unwrap_or_else(default_threads).max(1);
        let shapes = CpuBackend::kv_shape(&arch);
        let (profile, source) = match &options.kv {
            KvChoice::Profile => profile::of_model(&gguf, &arch, options.profiles.as_deref())?,
            KvChoice::Uniform { keys, values } => {
                (KvProfile::uniform(&shapes, *keys, *values), Source::Asked)
            }
            KvChoice::Given(profile) => (profile.clone(), Source::Asked),
        };
        let layouts = profile.layouts(&shapes)?;
        let backend = Box::new(CpuBackend::load(
            Arc::clone(&gguf),
            arch.clone(),
            threads,
            context_tokens,
            &profile,
        )?);
        // The weights are in memory by now, and no longer counted as free.
        let free = Guard::new(options.memory_limit_bytes).footprint().available_bytes;
        let budget = Budget::new(
            &layouts,
            context_tokens,
            options.kv_budget_bytes,
            Some(free).filter(|&free| free > 0),
        );
        let least = LEAST_CONTEXT_TOKENS.div_ceil(PAGE_TOKENS);
        if budget.pages < least {
            return Err(EngineError::BudgetTooSmall {
                budget_bytes: options.kv_budget_bytes.unwrap_or(0),
                tokens: budget.tokens(),
                least: LEAST_CONTEXT_TOKENS,
                needed_bytes: (least * budget.page_bytes) as u64,
            });
        }
        let pool = LayerLayout::pool(&layouts, budget.pages)?;
        let info = describe(&gguf, &arch, context_tokens, threads, &profile, &layouts, budget);
        tracing::debug!(
            backend = backend.name(),
            bytes = backend.bytes(),
            kv = info.kv_format,
            pages = budget.pages,
            "model loaded"
        );
        let work = Work::of(&gguf, &layouts);
        let prefill_latencies = profile::prefill_latencies(&gguf, options.profiles.as_deref());
        Ok(Loaded {
            info,
            prefill_latencies,
            gguf,
            tokenizer,
            backend,
            layouts,
            profile,
            source,
            pool,
            work,
        })
    }
}

fn window(options: &LoadOptions, trained: usize) -> Result<usize, EngineError> {
    match options.context_tokens {
        None => Ok(trained.min(DEFAULT_CONTEXT_TOKENS)),
        Some(asked) if (LEAST_CONTEXT_TOKENS..=trained).contains(&asked) => Ok(asked),
        Some(asked) => Err(EngineError::Window {
            asked,
            trained,
            least: LEAST_CONTEXT_TOKENS,
        }),
    }
}

/// Physical cores, as far as this process may use them.
fn default_threads() -> usize {
    num_cpus::get_physical().min(num_cpus::get()).max(1)
}

fn describe(
    gguf: &Gguf,
    arch: &Architecture,
    context_tokens: usize,
    threads: usize,
    profile: &KvProfile,
    layouts: &[LayerLayout],
    budget: Budget,
) -> ModelInfo {
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
        kv_format: profile.name(),
        kv_token_bytes: LayerLayout::token_bytes_of(layouts),
        kv_budget_bytes: budget.bytes(),
        layers: kinds_of(&arch.layers),
    }
}

/// Layers that attend alike, counted, in the order of the first of each kind.
fn kinds_of(layers: &[Layer]) -> Vec<LayerKind> {
    let mut kinds: Vec<LayerKind> = Vec::new();
    for layer in layers {
        let alike =
            |kind: &&mut LayerKind| (kind.window_tokens, kind.rope_base) == (layer.window, layer.rope.base);
        match kinds.iter_mut().find(alike) {
            Some(kind) => kind.count += 1,
            None => kinds.push(LayerKind {
                count: 1,
                window_tokens: layer.window,
                rope_base: layer.rope.base,
            }),
        }
    }
    kinds
}
