//! The vocabulary: every token's text, kind and bytes, and the way back from a text to its id.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{TokenId, TokenizerError};
use crate::gguf::{Gguf, Strings};

/// What a token is for, as the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
    Undefined,
}

/// How a token's text stands for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Each character stands for one byte (byte-level BPE).
    ByteLevel,
    /// The text itself, with U+2581 for a space (SentencePiece).
    Escaped,
}

#[derive(Debug)]
pub(super) struct Vocab {
    texts: Strings,
    kinds: Vec<Kind>,
    pieces: Vec<u8>,
    piece_ends: Vec<usize>,
    ids: HashTable<TokenId>,
    hasher: DefaultHashBuilder,
}

impl Vocab {
    /// Reads the token list and the token types. Tokens have no bytes until [`Vocab::spell`].
    pub(super) fn from_gguf(gguf: &Gguf) -> Result<Vocab, TokenizerError> {
        let listed = gguf.str_array("tokenizer.ggml.tokens")?;
        if listed.is_empty() || u32::try_from(listed.len()).is_err() {
            return Err(TokenizerError::Vocabulary(format!(
                "it lists {} tokens",
                listed.len()
            )));
        }
        let kinds: Vec<Kind> = match gguf.optional::<Vec<i32>>("tokenizer.ggml.token_type")? {
            None => vec![Kind::Normal; listed.len()],
            Some(types) if types.len() < listed.len() => {
                let problem = format!(
                    "it lists {} tokens and the types of {}",
                    listed.len(),
                    types.len()
                );
                return Err(TokenizerError::Vocabulary(problem));
            }
            Some(types) => types
                .iter()
                .take(listed.len())
                .map(|&number| Kind::from_number(number))
                .collect(),
        };
        let texts: Strings = listed
            .iter()
            .enumerate()
            .map(|(id, text)| match text {
                "" => std::borrow::Cow::Owned(format!("[EMPTY_{id}]")),
                text => std::borrow::Cow::Borrowed(text),
            })
            .collect();

        let hasher = DefaultHashBuilder::default();
        let mut ids = HashTable::with_capacity(texts.len());
        for (id, text) in texts.iter().enumerate() {
            let hash = hasher.hash_one(text);
            let same = |&other: &TokenId| texts.get(other as usize) == Some(text);
            let rehash = |&other: &TokenId| hasher.hash_one(texts.get(other as usize).unwrap_or_default());
            // A text that is listed twice means its last id.
            *ids.entry(hash, same, rehash).or_insert(id as TokenId).into_mut() = id as TokenId;
        }
        Ok(Vocab {
            texts,
            kinds,
            pieces: Vec::new(),
            piece_ends: Vec::new(),
            ids,
            hasher,
        })
    }

    /// Works out the bytes of every token, once their kinds are settled.
    pub(super) fn spell(&mut self, spelling: Spelling) {
        for (text, kind) in self.texts.iter().zip(&self.kinds) {
            match kind {
                Kind::Control | Kind::Unknown | Kind::UserDefined => {
                    self.pieces.extend_from_slice(text.as_bytes())
                }
                Kind::Normal if spelling == Spelling::Escaped => {
                    self.pieces
                        .extend_from_slice(text.replace('\u{2581}', " ").as_bytes());
                }
                Kind::Normal => text.chars().for_each(|c| match byte_of(c) {
                    Some(byte) => self.pieces.push(byte),
                    None => self
                        .pieces
                        .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                }),
                Kind::Byte => self.pieces.extend(byte_from_name(text)),
                Kind::Unused | Kind::Undefined => {}
            }
            self.piece_ends.push(self.pieces.len());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn text(&self, id: TokenId) -> Option<&str> {
        self.texts.get(id as usize)
    }

    pub(super) fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter()
    }

    pub(super) fn kind(&self, id: TokenId) -> Kind {
        self.kinds.get(id as usize).copied().unwrap_or(Kind::Undefined)
    }

    pub(super) fn set_kind(&mut self, id: TokenId, kind: Kind) {
        if let Some(slot) = self.kinds.get_mut(id as usize) {
            *slot = kind;
        }
    }

    /// The bytes a token stands for; of a control token, its text.
    pub(super) fn piece(&self, id: TokenId) -> &[u8] {
        let index = id as usize;
        let start = index
            .checked_sub(1)
            .and_then(|before| self.piece_ends.get(before))
            .copied()
            .unwrap_or(0);
        self.piece_ends
            .get(index)
            .and_then(|&end| self.pieces.get(start..end))
            .unwrap_or_default()
    }

    /// The token with exactly this text in the file's own spelling.
    pub(super) fn id(&self, text: &str) -> Option<TokenId> {
        self.ids
            .find(self.hasher.hash_one(text), |&id| self.text(id) == Some(text))
            .copied()
    }

    /// The same, but never a token that steers the model: for text that people typed.
    pub(super) fn plain_id(&self, text: &str) -> Option<TokenId> {
        self.id(text)
            .filter(|&id| !matches!(self.kind(id), Kind::Control | Kind::Unknown))
    }
}

impl Kind {
    fn from_number(number: i32) -> Kind {
        match number {
            1 => Kind::Normal,
            2 => Kind::Unknown,
            3 => Kind::Control,
            4 => Kind::UserDefined,
            5 => Kind::Unused,
            6 => Kind::Byte,
            _ => Kind::Undefined,
        }
    }
}

/// The character that stands for `byte` in byte-level vocabularies: itself where it is a visible Latin-1 character, else
/// the next unused one from U+0100 on.
pub(super) fn char_of(byte: u8) -> char {
    let moved = match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => return char::from(byte),
        0x00..=0x20 => u32::from(byte),
        0x7f..=0xa0 => u32::from(byte) - 0x7f + 33,
        0xad => 67,
    };
    char::from_u32(0x100 + moved).unwrap_or('\u{fffd}')
}

/// The inverse of [`char_of`].
fn byte_of(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => u8::try_from(code).ok(),
        code @ 0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        code @ 0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// The byte of a name such as `<0x0A>`.
fn byte_from_name(name: &str) -> Option<u8> {
    u8::from_str_radix(name.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character_and_comes_back() {
        let chars: std::collections::BTreeSet<char> = (0..=255).map(char_of).collect();
        assert_eq!(chars.len(), 256);
        for byte in 0..=255 {
            assert_eq!(byte_of(char_of(byte)), Some(byte));
        }
        assert_eq!((char_of(b' '), char_of(b'\n')), ('Ġ', 'Ċ'));
        assert_eq!(byte_from_name("<0x0A>"), Some(10));
    }
}
