//! The texts that models are calibrated and measured on: prose, code and chat, written for this project
//! (`engine/assets/texts`).

use crate::api::TokenId;
use reprise_model::tokenizer::{Specials, Tokenizer};

/// Tokens taken of each text.
pub const WINDOW_TOKENS: usize = 1_024;

/// One text.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// prose, code or chat
    pub kind: &'static str,
    body: &'static str,
}

/// What means and scales are taken from.
pub const CALIBRATION: [Text; 3] = [
    Text {
        kind: "prose",
        body: include_str!("../../assets/texts/calibration-prose.txt"),
    },
    Text {
        kind: "code",
        body: include_str!("../../assets/texts/calibration-code.txt"),
    },
    Text {
        kind: "chat",
        body: include_str!("../../assets/texts/calibration-chat.txt"),
    },
];

/// What formats are judged by: other texts, so that a profile is not praised for what it was made from.
pub const TEST: [Text; 3] = [
    Text {
        kind: "prose",
        body: include_str!("../../assets/texts/test-prose.txt"),
    },
    Text {
        kind: "code",
        body: include_str!("../../assets/texts/test-code.txt"),
    },
    Text {
        kind: "chat",
        body: include_str!("../../assets/texts/test-chat.txt"),
    },
];

impl Text {
    /// The first [`WINDOW_TOKENS`] tokens. The chat's marks become the model's special tokens where it has them.
    pub fn tokens(&self, tokenizer: &Tokenizer) -> Vec<TokenId> {
        let specials = if self.kind == "chat" {
            Specials::Parse
        } else {
            Specials::AsText
        };
        let mut tokens = tokenizer.encode_document(self.body, specials);
        tokens.truncate(WINDOW_TOKENS);
        tokens
    }
}
