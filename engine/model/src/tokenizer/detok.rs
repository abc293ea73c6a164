//! From tokens back to text, as a stream: tokens may end in the middle of a character, and a reader must never see half
//! of one.

use super::{TokenId, Tokenizer};

/// Turns tokens into text piece by piece. What it hands out is always whole characters; joined, it equals
/// [`Tokenizer::decode`] of all the tokens. Bytes that can never become a character turn into U+FFFD at once.
#[derive(Debug, Clone)]
pub struct Detokenizer {
    /// The start of a character whose end has not come yet: at most three bytes.
    pending: Vec<u8>,
    ready: String,
    strip_space: bool,
}

impl Detokenizer {
    pub(super) fn new(strip_space: bool) -> Detokenizer {
        Detokenizer {
            pending: Vec::new(),
            ready: String::new(),
            strip_space,
        }
    }

    /// Takes the next token and returns the text that became complete; it may be empty. Control tokens have no text.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: TokenId) -> &str {
        self.ready.clear();
        if tokenizer.is_silent(id) {
            // Only the very first token can carry the space that encoding put before the text.
            self.strip_space = false;
            return &self.ready;
        }
        let mut piece = tokenizer.piece(id);
        if std::mem::take(&mut self.strip_space) {
            piece = piece.strip_prefix(b" ").unwrap_or(piece);
        }
        self.pending.extend_from_slice(piece);
        self.drain();
        &self.ready
    }

    /// Ends the text: an unfinished character becomes U+FFFD. The detokeniser is then ready for another text, without
    /// the leading-space rule.
    pub fn finish(&mut self) -> &str {
        self.ready.clear();
        if !self.pending.is_empty() {
            self.ready.push(char::REPLACEMENT_CHARACTER);
            self.pending.clear();
        }
        &self.ready
    }

    /// Moves whole characters from `pending` to `ready`.
    fn drain(&mut self) {
        let mut done = 0;
        for chunk in self.pending.utf8_chunks() {
            self.ready.push_str(chunk.valid());
            done += chunk.valid().len();
            let broken = chunk.invalid();
            if broken.is_empty() {
                continue;
            }
            let is_last = done + broken.len() == self.pending.len();
            let may_be_completed =
                is_last && std::str::from_utf8(broken).is_err_and(|error| error.error_len().is_none());
            if may_be_completed {
                break;
            }
            self.ready.push(char::REPLACEMENT_CHARACTER);
            done += broken.len();
        }
        self.pending.drain(..done);
    }
}
