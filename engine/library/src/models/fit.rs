//! What a model is, and whether it fits into a machine's memory together with the memory of its context.

use std::collections::BTreeMap;
use std::path::Path;

use reprise_engine::{KvFormat, KvProfile, LayerLayout, LayerShape};
use reprise_model::arch::Architecture;
use reprise_model::gguf::Gguf;
use serde::Serialize;

use super::ModelsError;

/// What a model takes beside its weights and the memory of its context: activations of a step, the tokenizer, the program.
const REST_BYTES: u64 = 200 << 20;
/// A model may take so much of what a program may have without the machine becoming slow.
const EASY_SHARE: f64 = 0.7;

/// What a model's file says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The type most weights have.
    pub quantisation: String,
    /// The window it was trained for.
    pub context_tokens: usize,
    /// Bytes of its file.
    pub file_bytes: u64,
    /// The heads of each layer.
    layers: Vec<LayerShape>,
}

/// Whether something fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub enum Fit {
    /// Well.
    Fits,
    /// With little to spare.
    Tight,
    /// No.
    TooLarge,
}

impl Fit {
    /// Of something that takes so many bytes, where so many can be had.
    pub fn of(needed_bytes: u64, limit_bytes: u64) -> Fit {
        if needed_bytes > limit_bytes {
            Fit::TooLarge
        } else if needed_bytes as f64 > limit_bytes as f64 * EASY_SHARE {
            Fit::Tight
        } else {
            Fit::Fits
        }
    }
}

/// About how much a model takes whose file is not here, by the file's size alone. Models of one to four billion weights in
/// four bits have keys and values of a token in 8 bits that are a fifty-thousandth of the file, within a factor of two.
pub fn about(file_bytes: u64, window: usize) -> u64 {
    const FILE_TO_TOKEN: u64 = 50_000;
    file_bytes + file_bytes / FILE_TO_TOKEN * window as u64 + REST_BYTES
}

impl Card {
    /// Reads the head of a model's file; its weights are not touched.
    ///
    /// # Errors
    /// When it is no model, or one of a kind that cannot be run.
    pub fn read(path: &Path) -> Result<Card, ModelsError> {
        let gguf = Gguf::open(path)?;
        let architecture = Architecture::from_gguf(&gguf).map_err(|error| ModelsError::Kind {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        let mut values: BTreeMap<_, u64> = BTreeMap::new();
        for tensor in gguf.tensors() {
            *values.entry(tensor.ty).or_default() += tensor.shape.iter().product::<u64>();
        }
        let most = values.into_iter().max_by_key(|(_, values)| *values);
        Ok(Card {
            quantisation: most.map_or_else(String::new, |(ty, _)| ty.name().to_owned()),
            context_tokens: architecture.context_tokens,
            file_bytes: gguf.file_bytes(),
            layers: architecture
                .layers
                .iter()
                .map(|layer| LayerShape {
                    kv_heads: layer.kv_heads,
                    head_dim: layer.head_dim,
                })
                .collect(),
        })
    }

    /// Bytes that it takes with a window of so many tokens, whose keys and values are kept in this format.
    pub fn needed_bytes(&self, window: usize, format: KvFormat) -> u64 {
        let uniform = KvProfile::uniform(&self.layers, format, format).layouts(&self.layers);
        let token_bytes = uniform.map_or(0, |layouts| LayerLayout::token_bytes_of(&layouts));
        self.file_bytes + window as u64 * token_bytes as u64 + REST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_takes_its_file_its_context_and_a_rest() {
        let golden =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tiny/tiny-llama3-q4_k.gguf");
        let card = Card::read(&golden).unwrap();
        let none = card.needed_bytes(0, KvFormat::F16);
        let some = card.needed_bytes(1_000, KvFormat::F16);
        let values: usize = card
            .layers
            .iter()
            .map(|layer| 2 * layer.kv_heads * layer.head_dim)
            .sum();
        assert_eq!(none, golden.metadata().unwrap().len() + REST_BYTES);
        assert_eq!(some - none, 1_000 * 2 * values as u64);
        assert!(card.needed_bytes(1_000, KvFormat::Tq4) < some);
        assert!(!card.quantisation.is_empty() && card.context_tokens > 0);
    }

    #[test]
    fn what_fits_is_told_from_what_is_tight_and_what_is_too_large() {
        assert_eq!(Fit::of(70, 100), Fit::Fits);
        assert_eq!(Fit::of(71, 100), Fit::Tight);
        assert_eq!(Fit::of(100, 100), Fit::Tight);
        assert_eq!(Fit::of(101, 100), Fit::TooLarge);
    }

    #[test]
    fn a_file_that_is_no_model_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"GGUF and then nothing").unwrap();
        assert!(Card::read(file.path()).is_err());
    }
}
