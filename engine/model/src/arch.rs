//! Architectures as data: what a GGUF file's model computes, layer by layer, in terms one forward pass understands.
//!
//! A description says what differs between models (which norms, which rotary positions, windows, scales); the engine
//! has one forward pass that reads it. Adding an architecture of this kind means adding a row to [`FAMILIES`].

use crate::gguf::{Gguf, GgufError};
pub use reprise_kernels::math::RopePairs;
use std::path::PathBuf;

/// The gate of a feed-forward layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// x * sigmoid(x)
    Silu,
    /// GELU in its tanh form
    Gelu,
}

/// Rotary positions of one layer: pair i turns by `position * scale * base^(-2i/dims) / factor_i`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// How values pair up.
    pub pairs: RopePairs,
    /// Values of a head that turn.
    pub dims: usize,
    /// The base of the frequencies.
    pub base: f32,
    /// Linear scaling of positions.
    pub scale: f32,
    /// Whether the file's `rope_freqs.weight` divides the frequencies (Llama 3.x).
    pub uses_factors: bool,
}

/// One transformer layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Values in a head.
    pub head_dim: usize,
    /// Width of the feed-forward layer.
    pub feed_forward: usize,
    /// Keys a query sees, itself included; `None` for all.
    pub window: Option<usize>,
    /// Rotary positions.
    pub rope: Rope,
    /// What queries are multiplied by before the scores.
    pub query_scale: f32,
    /// Whether each head of Q and K is normalised before its rotation.
    pub has_qk_norm: bool,
    /// Whether the attention's and the feed-forward layer's results are normalised before they are added.
    pub has_post_norms: bool,
}

/// A model's shape and everything that its forward pass has to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Architecture {
    /// The name in the file, for example `llama`.
    pub name: String,
    /// Width of the residual stream.
    pub width: usize,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// The context the model was trained for, in tokens.
    pub context_tokens: usize,
    /// What embeddings are multiplied by.
    pub embedding_scale: f32,
    /// Epsilon of every RMS norm.
    pub norm_epsilon: f32,
    /// The feed-forward gate.
    pub gate: Gate,
    /// Logits are squashed to `cap * tanh(logit / cap)` where this is given.
    pub logit_cap: Option<f32>,
    /// The layers, first to last.
    pub layers: Vec<Layer>,
}

/// What an architecture's name implies.
struct Family {
    name: &'static str,
    pairs: RopePairs,
    gate: Gate,
    has_qk_norm: bool,
    has_post_norms: bool,
    scales_embedding: bool,
    /// Every n-th layer is global and the others see a window, where the file gives a window.
    global_every: usize,
}

/// The architectures known.
const FAMILIES: [Family; 4] = [
    Family {
        name: "llama",
        pairs: RopePairs::Neighbours,
        gate: Gate::Silu,
        has_qk_norm: false,
        has_post_norms: false,
        scales_embedding: false,
        global_every: 1,
    },
    Family {
        name: "qwen2",
        pairs: RopePairs::Halves,
        gate: Gate::Silu,
        has_qk_norm: false,
        has_post_norms: false,
        scales_embedding: false,
        global_every: 1,
    },
    Family {
        name: "qwen3",
        pairs: RopePairs::Halves,
        gate: Gate::Silu,
        has_qk_norm: true,
        has_post_norms: false,
        scales_embedding: false,
        global_every: 1,
    },
    Family {
        name: "gemma3",
        pairs: RopePairs::Halves,
        gate: Gate::Gelu,
        has_qk_norm: true,
        has_post_norms: true,
        scales_embedding: true,
        global_every: 6,
    },
];

/// The base of rotary frequencies where the file gives none, and of Gemma's windowed layers.
const DEFAULT_ROPE_BASE: f32 = 10_000.0;

/// Why a model cannot be described.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are what the message prints
pub enum ArchitectureError {
    /// A key is missing or has the wrong type.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Not one of ours.
    #[error(
        "{path}: the model's architecture is \"{name}\", which is not supported yet; choose one of {known}",
        path = path.display(), known = known_names()
    )]
    Unknown { path: PathBuf, name: String },
    /// One of ours, with something that is not.
    #[error("{path}: the model uses {feature}, which is not supported yet; choose another model", path = path.display())]
    Unsupported { path: PathBuf, feature: String },
    /// Numbers that cannot be.
    #[error("{path}: \"{key}\" is {value}, which makes no sense; download the file again", path = path.display())]
    Senseless {
        path: PathBuf,
        key: String,
        value: String,
    },
}

/// The architectures this crate describes, for messages and help.
pub fn known_names() -> String {
    FAMILIES.map(|family| family.name).join(", ")
}

impl Architecture {
    /// Reads the description from a file's metadata.
    ///
    /// # Errors
    /// When the architecture is unknown (the message lists the known ones), uses something unsupported, or a number
    /// is missing or makes no sense.
    pub fn from_gguf(gguf: &Gguf) -> Result<Architecture, ArchitectureError> {
        Reader {
            gguf,
            name: gguf.str("general.architecture")?.to_owned(),
        }
        .read()
    }
}

struct Reader<'a> {
    gguf: &'a Gguf,
    name: String,
}

impl Reader<'_> {
    fn read(&self) -> Result<Architecture, ArchitectureError> {
        let family = FAMILIES
            .iter()
            .find(|family| family.name == self.name)
            .ok_or_else(|| ArchitectureError::Unknown {
                path: self.gguf.path().to_owned(),
                name: self.name.clone(),
            })?;
        if self.optional_number("expert_count")?.unwrap_or(0) > 0 {
            return Err(self.unsupported("a mixture of experts"));
        }
        let count = self.number("block_count", 1..=4_096)?;
        let width = self.number("embedding_length", 1..=1 << 20)?;
        let heads = self.per_layer("attention.head_count", count)?;
        let kv_heads = match self
            .gguf
            .metadata()
            .contains_key(&self.key("attention.head_count_kv"))
        {
            true => self.per_layer("attention.head_count_kv", count)?,
            false => heads.clone(),
        };
        let feed_forward = self.per_layer("feed_forward_length", count)?;
        let head_dim = match self.optional_number("attention.key_length")? {
            Some(dim) => dim,
            None => width / heads[0],
        };
        if self
            .optional_number("attention.value_length")?
            .is_some_and(|dim| dim != head_dim)
        {
            return Err(self.unsupported("keys and values of different sizes"));
        }
        if !head_dim.is_multiple_of(16) || head_dim == 0 || head_dim > 1_024 {
            return Err(self.unsupported(&format!("heads of {head_dim} values (multiples of 16 are)")));
        }
        let window = self
            .optional_number("attention.sliding_window")?
            .filter(|&window| window > 0);
        let global_every = match self.optional_number("attention.sliding_window_pattern")? {
            Some(pattern) if family.global_every > 1 => pattern.max(1),
            _ => family.global_every,
        };
        let layers = (0..count)
            .map(|i| {
                let is_global = window.is_none() || (i + 1).is_multiple_of(global_every);
                if heads[i] == 0 || kv_heads[i] == 0 || !heads[i].is_multiple_of(kv_heads[i]) {
                    let value = format!("{} for {} heads in layer {i}", kv_heads[i], heads[i]);
                    return Err(self.senseless("attention.head_count_kv", value));
                }
                Ok(Layer {
                    heads: heads[i],
                    kv_heads: kv_heads[i],
                    head_dim,
                    feed_forward: feed_forward[i],
                    window: window.filter(|_| !is_global),
                    rope: self.rope(family, head_dim, is_global)?,
                    query_scale: 1.0 / (head_dim as f32).sqrt(),
                    has_qk_norm: family.has_qk_norm,
                    has_post_norms: family.has_post_norms,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let embeddings = self.gguf.require_tensor("token_embd.weight")?;
        Ok(Architecture {
            name: self.name.clone(),
            width,
            vocabulary: embeddings.rows(),
            context_tokens: self.number("context_length", 1..=1 << 30)?,
            embedding_scale: if family.scales_embedding {
                (width as f32).sqrt()
            } else {
                1.0
            },
            norm_epsilon: self.gguf.f32(&self.key("attention.layer_norm_rms_epsilon"))?,
            gate: family.gate,
            logit_cap: self
                .gguf
                .optional::<f32>(&self.key("final_logit_softcapping"))?
                .filter(|&cap| cap > 0.0),
            layers,
        })
    }

    fn rope(&self, family: &Family, head_dim: usize, is_global: bool) -> Result<Rope, ArchitectureError> {
        let base = self
            .gguf
            .optional::<f32>(&self.key("rope.freq_base"))?
            .unwrap_or(DEFAULT_ROPE_BASE);
        let local = self
            .gguf
            .optional::<f32>(&self.key("rope.freq_base_swa"))?
            .unwrap_or(DEFAULT_ROPE_BASE);
        let dims = self.optional_number("rope.dimension_count")?.unwrap_or(head_dim);
        if dims == 0 || dims > head_dim || !dims.is_multiple_of(2) {
            return Err(self.senseless("rope.dimension_count", dims.to_string()));
        }
        let kind = self.gguf.optional::<&str>(&self.key("rope.scaling.type"))?;
        let scale = match kind {
            None | Some("none") => 1.0,
            Some("linear") => 1.0 / self.gguf.f32(&self.key("rope.scaling.factor"))?,
            Some(other) => {
                return Err(self.unsupported(&format!("\"{other}\" scaling of its rotary positions")));
            }
        };
        let base = if is_global { base } else { local };
        if !(base.is_finite() && base > 0.0 && scale.is_finite() && scale > 0.0) {
            return Err(self.senseless("rope.freq_base", format!("{base} with scale {scale}")));
        }
        Ok(Rope {
            pairs: family.pairs,
            dims,
            base,
            scale: if is_global { scale } else { 1.0 },
            uses_factors: is_global && self.gguf.tensor("rope_freqs.weight").is_some(),
        })
    }

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }

    fn optional_number(&self, key: &str) -> Result<Option<usize>, ArchitectureError> {
        Ok(self.gguf.optional::<u32>(&self.key(key))?.map(|n| n as usize))
    }

    fn number(&self, key: &str, range: std::ops::RangeInclusive<usize>) -> Result<usize, ArchitectureError> {
        let value = self.gguf.u32(&self.key(key))? as usize;
        if range.contains(&value) {
            Ok(value)
        } else {
            Err(self.senseless(key, value.to_string()))
        }
    }

    /// A number for each layer: one for all, or an array.
    fn per_layer(&self, key: &str, layers: usize) -> Result<Vec<usize>, ArchitectureError> {
        let full = self.key(key);
        let values = match self.gguf.optional::<u32>(&full) {
            Ok(Some(value)) => vec![value as usize; layers],
            Ok(None) => return Err(self.gguf.u32(&full).map(|_| ()).unwrap_err().into()),
            Err(_) => self
                .gguf
                .i32_array(&full)?
                .into_iter()
                .map(|n| usize::try_from(n).unwrap_or(0))
                .collect(),
        };
        let sensible = values.len() == layers && values.iter().all(|n| (1..=1 << 20).contains(n));
        if sensible {
            Ok(values)
        } else {
            Err(self.senseless(key, format!("{values:?} for {layers} layers")))
        }
    }

    fn unsupported(&self, feature: &str) -> ArchitectureError {
        ArchitectureError::Unsupported {
            path: self.gguf.path().to_owned(),
            feature: feature.to_owned(),
        }
    }

    fn senseless(&self, key: &str, value: String) -> ArchitectureError {
        ArchitectureError::Senseless {
            path: self.gguf.path().to_owned(),
            key: self.key(key),
            value,
        }
    }
}
