//! Tokenizers, built from a model file's metadata: byte-level BPE and SentencePiece. The ids are those of the model's own
//! tokenizer. Text that people typed is encoded with [`Specials::AsText`] and can never become a control token.

mod bpe;
mod detok;
mod pretok;
mod special;
mod spm;
mod vocab;

use crate::gguf::{Gguf, GgufError};
use bpe::Bpe;
pub use detok::Detokenizer;
use pretok::PreTokenizer;
pub use special::Specials;
use special::{Fragment, SpecialTokens};
use spm::Spm;
use vocab::{Kind, Spelling, Vocab};

/// Identifies one token of a model's vocabulary.
pub type TokenId = u32;

/// Why a model file's tokenizer cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// Metadata is missing or of the wrong kind.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// A kind of tokenizer this crate does not have.
    #[error(
        "the model's tokenizer is \"{0}\", and this program knows gpt2 (byte-level BPE) and llama (SentencePiece); choose another model"
    )]
    UnknownModel(String),
    /// A pre-tokeniser this crate does not have.
    #[error("the model's pre-tokenizer is \"{name}\", and this program knows {known}; choose another model", known = PreTokenizer::known())]
    UnknownPreTokenizer {
        /// What the file asks for.
        name: String,
    },
    /// The vocabulary contradicts itself.
    #[error("the model's vocabulary is damaged: {0}; download the file again")]
    Vocabulary(String),
}

/// A model's tokenizer. It can be shared between threads.
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Vocab,
    specials: SpecialTokens,
    encoder: Encoder,
    adds_bos: bool,
    adds_eos: bool,
    adds_space_prefix: bool,
}

#[derive(Debug)]
enum Encoder {
    Bpe(Bpe),
    Spm(Spm),
}

impl Tokenizer {
    /// Builds the tokenizer that the file describes.
    ///
    /// # Errors
    /// When metadata is missing or contradictory, or the file asks for a tokenizer this crate does not have.
    pub fn from_gguf(gguf: &Gguf) -> Result<Tokenizer, TokenizerError> {
        match gguf.str("tokenizer.ggml.model")? {
            "gpt2" => Self::byte_level(gguf, gguf.str("tokenizer.ggml.pre")?),
            "llama" => Self::sentence_piece(gguf),
            other => Err(TokenizerError::UnknownModel(other.to_owned())),
        }
    }

    /// The same, with another pre-tokeniser than the file names (for files whose name of it is wrong or missing).
    /// SentencePiece has none and ignores it.
    ///
    /// # Errors
    /// As for [`Tokenizer::from_gguf`].
    pub fn with_pre_tokenizer(gguf: &Gguf, pre: &str) -> Result<Tokenizer, TokenizerError> {
        match gguf.str("tokenizer.ggml.model")? {
            "gpt2" => Self::byte_level(gguf, pre),
            _ => Self::from_gguf(gguf),
        }
    }

    fn byte_level(gguf: &Gguf, pre: &str) -> Result<Tokenizer, TokenizerError> {
        let pre = PreTokenizer::by_name(pre)
            .ok_or_else(|| TokenizerError::UnknownPreTokenizer { name: pre.to_owned() })?;
        let mut vocab = Vocab::from_gguf(gguf)?;
        let specials = SpecialTokens::settle(gguf, &mut vocab, [None; 3])?;
        vocab.spell(Spelling::ByteLevel);
        let encoder = Encoder::Bpe(Bpe::from_gguf(gguf, &vocab, pre)?);
        Self::assemble(gguf, vocab, specials, encoder, pre.adds_bos_by_default(), false)
    }

    fn sentence_piece(gguf: &Gguf) -> Result<Tokenizer, TokenizerError> {
        let mut vocab = Vocab::from_gguf(gguf)?;
        // Where the file names none, these are the beginning, the end and the unknown token of Llama's vocabulary.
        let specials = SpecialTokens::settle(gguf, &mut vocab, [Some(1), Some(2), Some(0)])?;
        vocab.spell(Spelling::Escaped);
        let encoder = Encoder::Spm(Spm::from_gguf(gguf, &vocab, specials.unknown)?);
        Self::assemble(gguf, vocab, specials, encoder, true, true)
    }

    fn assemble(
        gguf: &Gguf,
        vocab: Vocab,
        specials: SpecialTokens,
        encoder: Encoder,
        adds_bos: bool,
        adds_space_prefix: bool,
    ) -> Result<Tokenizer, TokenizerError> {
        let flag = |key: &str, default: bool| gguf.optional(key).map(|value| value.unwrap_or(default));
        Ok(Tokenizer {
            adds_bos: flag("tokenizer.ggml.add_bos_token", adds_bos)?,
            adds_eos: flag("tokenizer.ggml.add_eos_token", false)?,
            adds_space_prefix: flag("tokenizer.ggml.add_space_prefix", adds_space_prefix)?
                && matches!(encoder, Encoder::Spm(_)),
            vocab,
            specials,
            encoder,
        })
    }

    /// The tokens of `text` alone: nothing is put before or after it. Bytes for which the vocabulary has no token are
    /// left out (SmolLM2 lacks six control characters, U+0004 for one).
    pub fn encode(&self, text: &str, specials: Specials) -> Vec<TokenId> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.encode_into(text, specials, &mut ids);
        ids
    }

    /// The tokens of a text that stands at the very beginning: with the beginning-of-text and end-of-text tokens where
    /// the model wants them.
    pub fn encode_document(&self, text: &str, specials: Specials) -> Vec<TokenId> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        ids.extend(self.specials.bos.filter(|_| self.adds_bos));
        self.encode_into(text, specials, &mut ids);
        ids.extend(self.specials.eos.filter(|_| self.adds_eos));
        ids
    }

    fn encode_into(&self, text: &str, specials: Specials, ids: &mut Vec<TokenId>) {
        self.encode_stretch(text, specials, true, &|_| None, ids);
    }

    /// Appends the tokens of a stretch of a prompt. `after_special` says whether it begins the prompt or follows a special
    /// token; `unmask` gives the plain text of what hides something from being recognised (`None`: nothing is hidden).
    pub(crate) fn encode_stretch(
        &self,
        text: &str,
        specials: Specials,
        mut after_special: bool,
        unmask: &dyn Fn(&str) -> Option<String>,
        ids: &mut Vec<TokenId>,
    ) {
        let mut scratch = bpe::Scratch::default();
        self.specials
            .split(&self.vocab, text, specials, |fragment| match fragment {
                Fragment::Token(id) => {
                    ids.push(id);
                    after_special = true;
                }
                Fragment::Text(text) => {
                    match (unmask(text), &self.encoder) {
                        (Some(plain), _) => {
                            self.encode_stretch(&plain, Specials::AsText, after_special, &|_| None, ids);
                        }
                        (None, Encoder::Bpe(bpe)) => bpe.encode(&self.vocab, text, &mut scratch, ids),
                        (None, Encoder::Spm(spm)) => {
                            spm.encode(&self.vocab, text, self.adds_space_prefix && after_special, ids);
                        }
                    }
                    after_special = false;
                }
            });
    }

    /// The text of `ids`, without control tokens; bytes that form no character become U+FFFD. The space that
    /// SentencePiece models put before a text is taken away again.
    pub fn decode(&self, ids: &[TokenId]) -> String {
        let mut detokenizer = self.detokenizer();
        let mut text = String::with_capacity(ids.len() * 4);
        for &id in ids {
            text.push_str(detokenizer.push(self, id));
        }
        text.push_str(detokenizer.finish());
        text
    }

    /// A streaming decoder for the beginning of a text.
    pub fn detokenizer(&self) -> Detokenizer {
        Detokenizer::new(self.adds_space_prefix)
    }

    /// Number of tokens; ids are below it.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// A token's text in the file's own spelling (`Ġthe`, `▁the`, `<|im_end|>`).
    pub fn token_text(&self, id: TokenId) -> Option<&str> {
        self.vocab.text(id)
    }

    /// The token with exactly this text in the file's own spelling.
    pub fn token_id(&self, text: &str) -> Option<TokenId> {
        self.vocab.id(text)
    }

    /// The bytes a token stands for, perhaps part of a character; of a control token, its text.
    pub fn piece(&self, id: TokenId) -> &[u8] {
        self.vocab.piece(id)
    }

    /// Whether the token steers the model rather than spelling text.
    pub fn is_control(&self, id: TokenId) -> bool {
        self.vocab.kind(id) == Kind::Control
    }

    /// Whether an answer is over once the model draws this token.
    pub fn is_end_of_generation(&self, id: TokenId) -> bool {
        self.specials.ends.binary_search(&id).is_ok()
    }

    /// All tokens that end an answer, in order.
    pub fn end_of_generation(&self) -> &[TokenId] {
        &self.specials.ends
    }

    /// The beginning-of-text token, whether or not prompts begin with it.
    pub fn bos(&self) -> Option<TokenId> {
        self.specials.bos
    }

    /// The end-of-text token.
    pub fn eos(&self) -> Option<TokenId> {
        self.specials.eos
    }

    /// Whether a prompt begins with [`Tokenizer::bos`].
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// Whether a document ends with [`Tokenizer::eos`].
    pub fn adds_eos(&self) -> bool {
        self.adds_eos
    }

    /// Whether a plain text that begins a document or follows a special token gets a space in front (SentencePiece).
    pub fn adds_space_prefix(&self) -> bool {
        self.adds_space_prefix
    }

    /// Whether the token has no text in an answer.
    fn is_silent(&self, id: TokenId) -> bool {
        matches!(self.vocab.kind(id), Kind::Control | Kind::Unknown)
    }

    /// The texts that mean a token which steers the model when a prompt is parsed.
    pub(crate) fn steering_texts(&self) -> impl Iterator<Item = &str> {
        self.specials
            .ids()
            .iter()
            .filter(|&&id| self.is_silent(id))
            .filter_map(|&id| self.vocab.text(id))
    }

    /// Byte offsets at which such a text begins, overlapping ones too, in no order.
    pub(crate) fn steering_places(&self, text: &str) -> Vec<usize> {
        self.specials
            .occurrences(text)
            .filter(|&(_, _, id)| self.is_silent(id))
            .map(|(start, _, _)| start)
            .collect()
    }
}
