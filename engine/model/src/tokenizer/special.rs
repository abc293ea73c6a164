//! Special tokens: which tokens steer the model rather than spell text, which of them end an answer, and how they are
//! found in text. Conversions of models mark them unevenly, so well-known texts count whatever the file says.

use aho_corasick::{AhoCorasick, MatchKind};

use super::vocab::{Kind, Vocab};
use super::{TokenId, TokenizerError};
use crate::gguf::Gguf;

/// Whether the names of control tokens in a text mean those tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// They do: for text that a chat template wrote.
    Parse,
    /// They are plain text, as everything a person types is. (Tokens that the model's makers defined for ordinary text,
    /// such as Gemma's runs of newlines, are still recognised.)
    AsText,
}

/// Longer texts are not looked for: no model has any, and a hostile file could make the search expensive.
const LONGEST_BYTES: usize = 256;

/// Texts that end an answer in one model family or another.
const END_TEXTS: [&str; 22] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Texts of the fill-in-the-middle family: metadata keys, texts, and whether the token also ends an answer.
const FILL_TEXTS: [(&[&str], &[&str], bool); 6] = [
    (
        &[
            "tokenizer.ggml.prefix_token_id",
            "tokenizer.ggml.fim_pre_token_id",
        ],
        &[
            "<|fim_prefix|>",
            "<fim-prefix>",
            "<fim_prefix>",
            "<｜fim▁begin｜>",
            "<PRE>",
            "▁<PRE>",
            "<|code_prefix|>",
            "<|prefix|>",
        ],
        false,
    ),
    (
        &[
            "tokenizer.ggml.suffix_token_id",
            "tokenizer.ggml.fim_suf_token_id",
        ],
        &[
            "<|fim_suffix|>",
            "<fim-suffix>",
            "<fim_suffix>",
            "<｜fim▁hole｜>",
            "<SUF>",
            "▁<SUF>",
            "<|code_suffix|>",
            "<|suffix|>",
        ],
        false,
    ),
    (
        &[
            "tokenizer.ggml.middle_token_id",
            "tokenizer.ggml.fim_mid_token_id",
        ],
        &[
            "<|fim_middle|>",
            "<fim-middle>",
            "<fim_middle>",
            "<｜fim▁end｜>",
            "<MID>",
            "▁<MID>",
            "<|code_middle|>",
            "<|middle|>",
        ],
        false,
    ),
    (
        &["tokenizer.ggml.fim_pad_token_id"],
        &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"],
        true,
    ),
    (
        &["tokenizer.ggml.fim_rep_token_id"],
        &[
            "<|fim_repo|>",
            "<|repo_name|>",
            "<fim-repo>",
            "<REPO>",
            "<reponame>",
        ],
        true,
    ),
    (&["tokenizer.ggml.fim_sep_token_id"], &["<|file_sep|>"], true),
];

/// Tokens that look like control tokens and must be readable in an answer.
const READABLE_TEXTS: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// The special tokens of one vocabulary.
#[derive(Debug)]
pub(super) struct SpecialTokens {
    pub(super) bos: Option<TokenId>,
    pub(super) eos: Option<TokenId>,
    pub(super) unknown: Option<TokenId>,
    /// Sorted.
    pub(super) ends: Vec<TokenId>,
    finder: Option<AhoCorasick>,
    /// The token of each pattern of `finder`.
    ids: Vec<TokenId>,
}

/// A stretch of text, or one special token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fragment<'a> {
    Text(&'a str),
    Token(TokenId),
}

impl SpecialTokens {
    /// Reads the roles of tokens from the metadata and corrects kinds that the file has wrong. `defaults` are the
    /// beginning, end and unknown tokens where the file names none.
    pub(super) fn settle(
        gguf: &Gguf,
        vocab: &mut Vocab,
        defaults: [Option<TokenId>; 3],
    ) -> Result<SpecialTokens, TokenizerError> {
        let size = vocab.len();
        let named = |key: &str| -> Result<Option<TokenId>, TokenizerError> {
            Ok(gguf.optional::<u32>(key)?.filter(|&id| (id as usize) < size))
        };
        let [bos, eos, unknown] = defaults.map(|id| id.filter(|&id| (id as usize) < size));
        let bos = named("tokenizer.ggml.bos_token_id")?.or(bos);
        let eos = named("tokenizer.ggml.eos_token_id")?.or(eos);
        let unknown = named("tokenizer.ggml.unknown_token_id")?.or(unknown);

        let mut ends: Vec<TokenId> = Vec::new();
        for (keys, texts, ends_answer) in FILL_TEXTS {
            let mut found = None;
            for key in keys {
                found = found.or(named(key)?);
            }
            if found.is_none() {
                found = texts.iter().find_map(|text| vocab.id(text));
                found.into_iter().for_each(|id| vocab.set_kind(id, Kind::Control));
            }
            ends.extend(found.filter(|_| ends_answer));
        }
        for text in END_TEXTS {
            ends.extend(vocab.id(text).inspect(|&id| vocab.set_kind(id, Kind::Control)));
        }
        for text in READABLE_TEXTS {
            vocab
                .id(text)
                .into_iter()
                .for_each(|id| vocab.set_kind(id, Kind::UserDefined));
        }
        ends.extend(eos);
        ends.extend(named("tokenizer.ggml.eot_token_id")?);
        ends.extend(named("tokenizer.ggml.eom_token_id")?);
        ends.sort_unstable();
        ends.dedup();
        settle_exceptions(vocab, &mut ends);

        let is_special = |id: &TokenId| {
            matches!(vocab.kind(*id), Kind::Control | Kind::UserDefined | Kind::Unknown)
                && vocab.text(*id).is_some_and(|text| text.len() <= LONGEST_BYTES)
        };
        let ids: Vec<TokenId> = (0..size as TokenId).filter(is_special).collect();
        let finder = match ids.is_empty() {
            true => None,
            false => Some(
                AhoCorasick::builder()
                    .match_kind(MatchKind::Standard)
                    .build(ids.iter().filter_map(|&id| vocab.text(id)))
                    .map_err(|error| TokenizerError::Vocabulary(format!("its special tokens: {error}")))?,
            ),
        };
        Ok(SpecialTokens {
            bos,
            eos,
            unknown,
            ends,
            finder,
            ids,
        })
    }

    /// Every token that is looked for in text, in order.
    pub(super) fn ids(&self) -> &[TokenId] {
        &self.ids
    }

    /// Cuts `text` at special tokens. Longer ones are found first; among equally long ones the first in the text wins.
    pub(super) fn split<'a>(
        &self,
        vocab: &Vocab,
        text: &'a str,
        specials: Specials,
        mut fragment: impl FnMut(Fragment<'a>),
    ) {
        let spans = self.find(vocab, text, specials);
        let mut at = 0;
        for (start, end, id) in spans {
            if let Some(before) = text.get(at..start).filter(|before| !before.is_empty()) {
                fragment(Fragment::Text(before));
            }
            fragment(Fragment::Token(id));
            at = end;
        }
        if let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            fragment(Fragment::Text(rest));
        }
    }

    /// Every occurrence of a special token's text, overlapping ones too: where it begins, where it ends, the token.
    pub(super) fn occurrences<'a>(
        &'a self,
        text: &'a str,
    ) -> impl Iterator<Item = (usize, usize, TokenId)> + 'a {
        self.finder
            .iter()
            .flat_map(move |finder| finder.find_overlapping_iter(text))
            .filter_map(|found| {
                Some((
                    found.start(),
                    found.end(),
                    *self.ids.get(found.pattern().as_usize())?,
                ))
            })
    }

    /// Byte ranges of special tokens in `text`, in order, not overlapping.
    fn find(&self, vocab: &Vocab, text: &str, specials: Specials) -> Vec<(usize, usize, TokenId)> {
        let mut found: Vec<(usize, usize, TokenId)> = self
            .occurrences(text)
            .filter(|&(_, _, id)| specials == Specials::Parse || vocab.kind(id) == Kind::UserDefined)
            .collect();
        if found.len() < 2 {
            return found;
        }
        found.sort_unstable_by_key(|&(start, end, id)| (std::cmp::Reverse(end - start), id, start));
        // Spans come longest first, so one that overlaps an accepted span has its first or its last byte inside it.
        let mut taken = vec![false; text.len()];
        found.retain(|&(start, end, _)| {
            let Some(span) = taken.get_mut(start..end) else {
                return false;
            };
            let is_free = span.first() == Some(&false) && span.last() == Some(&false);
            if is_free {
                span.fill(true);
            }
            is_free
        });
        found.sort_unstable();
        found
    }
}

/// Families in which a well-known end text means something else.
fn settle_exceptions(vocab: &mut Vocab, ends: &mut Vec<TokenId>) {
    let is_end = |vocab: &Vocab, ends: &[TokenId], text: &str| vocab.id(text).filter(|id| ends.contains(id));
    let has = |vocab: &Vocab, ends: &[TokenId], text: &str| is_end(vocab, ends, text).is_some();
    let has_call = has(vocab, ends, "<|call|>") || has(vocab, ends, "<|calls|>");
    let is_harmony = has_call && (has(vocab, ends, "<|return|>") || has(vocab, ends, "<|flush|>"));
    if let Some(id) = is_end(vocab, ends, "<|end|>").filter(|_| is_harmony) {
        ends.retain(|&end| end != id);
        vocab.set_kind(id, Kind::UserDefined);
    }
    let has_other_end = has(vocab, ends, "<|tool_response>") || has(vocab, ends, "<|plamo:eos|>");
    if let Some(id) = is_end(vocab, ends, "</s>").filter(|_| has_other_end) {
        ends.retain(|&end| end != id);
        vocab.set_kind(id, Kind::Normal);
    }
}
