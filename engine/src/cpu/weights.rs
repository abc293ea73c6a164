//! A model's weights, taken out of its file and repacked for the kernels. The file's pages are given back as soon as a
//! tensor has been read, so that loading does not hold the model twice.

use reprise_kernels::packed::{PANEL_ROWS, PackedMatrix, Packing, PanelPacking};
use reprise_kernels::quant::dequantize;
use reprise_model::arch::{Architecture, Layer};
use reprise_model::gguf::{Gguf, GgufError, Tensor};
use std::collections::HashSet;
use std::path::PathBuf;

/// Bytes of a tensor packed before its pages in the file are given back: the most that is in memory twice.
const PORTION_BYTES: usize = 16 << 20;

/// Why weights could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are what the message prints
pub enum WeightsError {
    /// A tensor is missing or cannot be read.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// A tensor has another shape than the architecture asks for.
    #[error(
        "{path}: tensor \"{tensor}\" is {found} and should be {expected}; download another conversion of this model",
        path = path.display()
    )]
    Shape {
        path: PathBuf,
        tensor: String,
        found: String,
        expected: String,
    },
    /// Tensors the architecture has no use for: computing without them would give wrong answers.
    #[error(
        "{path}: {count} tensors are not part of the architecture as it is known here (the first is \"{first}\"); \
         the model is a variant that is not supported yet",
        path = path.display()
    )]
    Unused {
        path: PathBuf,
        count: usize,
        first: String,
    },
}

/// One layer's weights.
pub(super) struct LayerWeights {
    pub attention_norm: Vec<f32>,
    pub query: PackedMatrix,
    pub key: PackedMatrix,
    pub value: PackedMatrix,
    pub query_bias: Option<Vec<f32>>,
    pub key_bias: Option<Vec<f32>>,
    pub value_bias: Option<Vec<f32>>,
    pub query_norm: Option<Vec<f32>>,
    pub key_norm: Option<Vec<f32>>,
    pub output: PackedMatrix,
    pub post_attention_norm: Option<Vec<f32>>,
    pub feed_forward_norm: Vec<f32>,
    pub gate: PackedMatrix,
    pub up: PackedMatrix,
    pub down: PackedMatrix,
    pub post_feed_forward_norm: Option<Vec<f32>>,
}

/// All weights but the embedding (read from the file row by row) and the head (a component).
pub(super) struct Weights {
    pub layers: Vec<LayerWeights>,
    pub output_norm: Vec<f32>,
    /// Llama 3.x: what each rotary frequency is divided by.
    pub rope_factors: Option<Vec<f32>>,
}

/// Takes tensors out of a file by name and shape, and remembers which.
pub(super) struct Loader<'a> {
    gguf: &'a Gguf,
    threads: usize,
    used: HashSet<String>,
}

impl<'a> Loader<'a> {
    pub fn new(gguf: &'a Gguf, threads: usize) -> Loader<'a> {
        Loader {
            gguf,
            threads,
            used: HashSet::new(),
        }
    }

    /// Loads everything but embedding and head.
    pub fn weights(mut self, arch: &Architecture) -> Result<Weights, WeightsError> {
        let layers: Result<Vec<_>, _> = arch
            .layers
            .iter()
            .enumerate()
            .map(|(i, layer)| self.layer(arch, layer, i))
            .collect();
        let layers = layers?;
        let output_norm = self.vector("output_norm.weight", arch.width)?;
        let factors = arch
            .layers
            .iter()
            .find(|layer| layer.rope.uses_factors)
            .map(|layer| layer.rope.dims / 2);
        let rope_factors = factors
            .map(|len| self.vector("rope_freqs.weight", len))
            .transpose()?;
        for name in ["token_embd.weight", "output.weight"] {
            self.used.insert(name.to_owned());
        }
        let mut unused = self
            .gguf
            .tensors()
            .filter(|tensor| !self.used.contains(tensor.name));
        if let Some(first) = unused.next() {
            let (path, first) = (self.gguf.path().to_owned(), first.name.to_owned());
            return Err(WeightsError::Unused {
                path,
                count: 1 + unused.count(),
                first,
            });
        }
        Ok(Weights {
            layers,
            output_norm,
            rope_factors,
        })
    }

    fn layer(&mut self, arch: &Architecture, layer: &Layer, i: usize) -> Result<LayerWeights, WeightsError> {
        let name = |what: &str| format!("blk.{i}.{what}");
        let (width, dim, ff) = (arch.width, layer.head_dim, layer.feed_forward);
        let (q, kv) = (layer.heads * dim, layer.kv_heads * dim);
        let norm = |wanted: bool, what: &str, len: usize, this: &mut Self| {
            wanted.then(|| this.vector(&name(what), len)).transpose()
        };
        Ok(LayerWeights {
            attention_norm: self.vector(&name("attn_norm.weight"), width)?,
            query: self.matrix(&name("attn_q.weight"), q, width)?,
            key: self.matrix(&name("attn_k.weight"), kv, width)?,
            value: self.matrix(&name("attn_v.weight"), kv, width)?,
            query_bias: self.optional_vector(&name("attn_q.bias"), q)?,
            key_bias: self.optional_vector(&name("attn_k.bias"), kv)?,
            value_bias: self.optional_vector(&name("attn_v.bias"), kv)?,
            query_norm: norm(layer.has_qk_norm, "attn_q_norm.weight", dim, self)?,
            key_norm: norm(layer.has_qk_norm, "attn_k_norm.weight", dim, self)?,
            output: self.matrix(&name("attn_output.weight"), width, q)?,
            post_attention_norm: norm(layer.has_post_norms, "post_attention_norm.weight", width, self)?,
            feed_forward_norm: self.vector(&name("ffn_norm.weight"), width)?,
            gate: self.matrix(&name("ffn_gate.weight"), ff, width)?,
            up: self.matrix(&name("ffn_up.weight"), ff, width)?,
            down: self.matrix(&name("ffn_down.weight"), width, ff)?,
            post_feed_forward_norm: norm(layer.has_post_norms, "post_ffw_norm.weight", width, self)?,
        })
    }

    /// The matrix that makes logits: the file's own, or the embedding where the two are tied.
    pub fn head(&mut self, arch: &Architecture) -> Result<PackedMatrix, WeightsError> {
        let own = self.gguf.tensor("output.weight").is_some();
        let name = if own { "output.weight" } else { "token_embd.weight" };
        self.matrix(name, arch.vocabulary, arch.width)
    }

    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Tensor<'a>, WeightsError> {
        let tensor = self.gguf.require_tensor(name)?;
        self.used.insert(name.to_owned());
        let trimmed = |dims: Vec<usize>| {
            let len = dims.iter().rposition(|&n| n != 1).map_or(1, |last| last + 1);
            dims[..len.min(dims.len())].to_vec()
        };
        let found: Vec<usize> = tensor.shape.iter().map(|&n| n as usize).collect();
        if trimmed(found) != trimmed(shape.to_vec()) {
            return Err(WeightsError::Shape {
                path: self.gguf.path().to_owned(),
                tensor: name.to_owned(),
                found: format!("{:?}", tensor.shape),
                expected: format!("{shape:?}"),
            });
        }
        Ok(tensor)
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, WeightsError> {
        let tensor = self.tensor(name, &[len])?;
        let mut values = vec![0.0; len];
        dequantize(tensor.ty, tensor.data, &mut values).map_err(|e| self.misshapen(name, &e.to_string()))?;
        Ok(values)
    }

    fn optional_vector(&mut self, name: &str, len: usize) -> Result<Option<Vec<f32>>, WeightsError> {
        self.gguf
            .tensor(name)
            .is_some()
            .then(|| self.vector(name, len))
            .transpose()
    }

    fn matrix(&mut self, name: &str, rows: usize, k: usize) -> Result<PackedMatrix, WeightsError> {
        let tensor = self.tensor(name, &[k, rows])?;
        self.gguf.will_need(name);
        let mut packing = Packing::new(tensor.ty, rows, k, tensor.data)
            .map_err(|e| self.misshapen(name, &e.to_string()))?;
        let row_bytes = tensor.data.len() / rows;
        let portion = (PORTION_BYTES / (row_bytes * PANEL_ROWS)).max(self.threads);
        let mut panels = packing.panels();
        let mut read = 0;
        loop {
            let part: Vec<_> = panels.by_ref().take(portion).collect();
            if part.is_empty() {
                break;
            }
            let from = read;
            read += part.len() * PANEL_ROWS * row_bytes;
            self.pack(part);
            self.gguf.release_part(name, from as u64..read as u64);
        }
        drop(panels);
        let matrix = packing.finish();
        Ok(matrix)
    }

    /// Packs panels on all threads.
    fn pack(&self, panels: Vec<PanelPacking<'_>>) {
        let share = panels.len().div_ceil(self.threads).max(1);
        std::thread::scope(|scope| {
            let mut panels = panels.into_iter();
            loop {
                let part: Vec<_> = panels.by_ref().take(share).collect();
                if part.is_empty() {
                    break;
                }
                scope.spawn(|| part.into_iter().for_each(|panel| panel.pack()));
            }
        });
    }

    fn misshapen(&self, tensor: &str, found: &str) -> WeightsError {
        WeightsError::Shape {
            path: self.gguf.path().to_owned(),
            tensor: tensor.to_owned(),
            found: found.to_owned(),
            expected: "whole blocks".to_owned(),
        }
    }
}

impl LayerWeights {
    /// Every matrix.
    pub fn matrices(&self) -> [&PackedMatrix; 7] {
        [
            &self.query,
            &self.key,
            &self.value,
            &self.output,
            &self.gate,
            &self.up,
            &self.down,
        ]
    }
}

impl Weights {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.layers
            .iter()
            .flat_map(LayerWeights::matrices)
            .map(PackedMatrix::bytes)
            .sum()
    }
}
