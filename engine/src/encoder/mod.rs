//! Vectors of texts: a small BERT (all-MiniLM-L6-v2) whose vectors lie close together where texts mean the same.
//!
//! It shares nothing with the model that answers: it has its own weights (packed to eight bits at load), its own
//! tokenizer, and no cache. A text's vector does not depend on which texts are computed with it. Each thread brings a
//! [`Workspace`].

mod forward;
mod load;

use std::path::{Path, PathBuf};

use reprise_kernels::isa::Isa;
use tokenizers::Tokenizer;

pub use forward::Workspace;
use load::Weights;

/// Tokens of a text that count; it was trained on no longer ones.
pub const MOST_TOKENS: usize = 256;
/// Tokens that are computed together.
const BATCH_TOKENS: usize = 512;

/// Why texts cannot be given vectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncoderError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is not all-MiniLM-L6-v2 or is broken ({why}); delete its folder and fetch it again", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The text cannot be cut into tokens.
    #[error("a text cannot be cut into tokens: {0}; this is a fault in Reprise, not in the text")]
    Tokens(String),
}

/// A loaded model for vectors of texts.
pub struct Encoder {
    isa: Isa,
    tokenizer: Tokenizer,
    weights: Weights,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Encoder")
            .field("layers", &self.weights.layers.len())
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// Loads the model out of its folder: `model.safetensors` and `tokenizer.json`.
    ///
    /// # Errors
    /// When a file is missing, or is not of this model.
    pub fn load(folder: &Path) -> Result<Encoder, EncoderError> {
        let path = folder.join("tokenizer.json");
        let broken = |error: tokenizers::Error| EncoderError::Broken {
            path: path.clone(),
            why: error.to_string(),
        };
        let bytes = std::fs::read(&path).map_err(|source| EncoderError::Read {
            path: path.clone(),
            source,
        })?;
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(broken)?;
        // The file asks for 128 tokens always: shorter texts padded, longer ones cut.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(broken)?;
        let weights = load::weights(&folder.join("model.safetensors"))?;
        if tokenizer.get_vocab_size(true) > weights.vocabulary() {
            let why = "it has more tokens than the weights know".to_owned();
            return Err(EncoderError::Broken { path, why });
        }
        Ok(Encoder {
            isa: Isa::best(),
            tokenizer,
            weights,
        })
    }

    /// Values of a vector.
    pub fn dimensions(&self) -> usize {
        self.weights.width
    }

    /// The vectors of these texts, each of length 1. Of a long text the first [`MOST_TOKENS`] tokens count.
    ///
    /// # Errors
    /// When a text cannot be cut into tokens.
    pub fn embed<T: AsRef<str>>(
        &self,
        texts: &[T],
        workspace: &mut Workspace,
    ) -> Result<Vec<Vec<f32>>, EncoderError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut batch: Vec<Vec<u32>> = Vec::new();
        for text in texts {
            let ids = self.ids(text.as_ref())?;
            if batch.iter().map(Vec::len).sum::<usize>() + ids.len() > BATCH_TOKENS {
                vectors.extend(self.forward(&batch, workspace));
                batch.clear();
            }
            batch.push(ids);
        }
        vectors.extend(self.forward(&batch, workspace));
        Ok(vectors)
    }

    /// The vector of one text, with a workspace made for it.
    ///
    /// # Errors
    /// When the text cannot be cut into tokens.
    pub fn embed_one(&self, text: &str) -> Result<Vec<f32>, EncoderError> {
        let mut vectors = self.embed(&[text], &mut Workspace::new(self))?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// A text's tokens, with those that begin and end it.
    fn ids(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        let tokens = |error: tokenizers::Error| EncoderError::Tokens(error.to_string());
        let encoding = self.tokenizer.encode_fast(text, true).map_err(tokens)?;
        let mut ids = encoding.get_ids().to_vec();
        if let Some(id) = ids.iter().find(|&&id| id as usize >= self.weights.vocabulary()) {
            return Err(EncoderError::Tokens(format!(
                "its tokenizer gives token {id}, which the weights do not know"
            )));
        }
        if let (true, Some(&end)) = (ids.len() > MOST_TOKENS, ids.last()) {
            ids.truncate(MOST_TOKENS - 1);
            ids.push(end);
        }
        Ok(ids)
    }
}
