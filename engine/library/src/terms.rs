//! Search terms: words, lower-case, without accents and English endings. Scripts that write no spaces between words
//! (Chinese, Japanese, Thai and others) give overlapping pairs of characters, so that a question in them matches too.

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, Stemmer, StopWordFilter, TextAnalyzer, Token,
    TokenStream, Tokenizer,
};

/// Longer words are encoded data.
const LONGEST_WORD_BYTES: usize = 100;

/// The analyzer for passages and questions alike.
pub(crate) fn analyzer() -> TextAnalyzer {
    let words = TextAnalyzer::builder(Words)
        .filter(RemoveLongFilter::limit(LONGEST_WORD_BYTES))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter);
    match StopWordFilter::new(Language::English) {
        Some(stop_words) => words
            .filter(stop_words)
            .filter(Stemmer::new(Language::English))
            .build(),
        None => words.filter(Stemmer::new(Language::English)).build(),
    }
}

#[derive(Clone)]
struct Words;

impl Tokenizer for Words {
    type TokenStream<'a> = Found;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Found {
        Found {
            tokens: tokens(text),
            next: 0,
        }
    }
}

struct Found {
    tokens: Vec<Token>,
    next: usize,
}

impl TokenStream for Found {
    fn advance(&mut self) -> bool {
        self.next += 1;
        self.next <= self.tokens.len()
    }
    fn token(&self) -> &Token {
        &self.tokens[self.next - 1]
    }
    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokens[self.next - 1]
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut put = |from: usize, to: usize| {
        let position = tokens.len();
        let text = text[from..to].to_string();
        tokens.push(Token {
            offset_from: from,
            offset_to: to,
            position,
            text,
            position_length: 1,
        });
    };
    let mut characters = text.char_indices().peekable();
    while let Some((from, character)) = characters.next() {
        if !character.is_alphanumeric() {
            continue;
        }
        let mut to = from + character.len_utf8();
        if is_unspaced(character) {
            match characters.peek() {
                Some(&(_, after)) if is_unspaced(after) => put(from, to + after.len_utf8()),
                // A character alone, or the last of a run whose pairs are all there.
                _ if !text[..from].chars().next_back().is_some_and(is_unspaced) => put(from, to),
                _ => {}
            }
            continue;
        }
        while let Some((at, after)) = characters.next_if(|&(_, after)| continues_word(after)) {
            to = at + after.len_utf8();
        }
        put(from, to);
    }
    tokens
}

fn continues_word(character: char) -> bool {
    (character.is_alphanumeric() || is_mark(character)) && !is_unspaced(character)
}

/// Combining marks, without which words in Indic scripts and Arabic fall apart.
fn is_mark(character: char) -> bool {
    matches!(u32::from(character), 0x0300..=0x036f | 0x0591..=0x05c7 | 0x0610..=0x061a | 0x064b..=0x065f | 0x0900..=0x0dff)
}

/// Whether a script writes its words without spaces.
fn is_unspaced(character: char) -> bool {
    matches!(u32::from(character),
        0x0e00..=0x0eff            // Thai, Lao
        | 0x1000..=0x109f          // Myanmar
        | 0x1780..=0x17ff          // Khmer
        | 0x3005..=0x3007          // ideographic marks
        | 0x3040..=0x30ff          // kana
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x323af // ideographs
        | 0xff66..=0xff9f          // half-width kana
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut analyzer = analyzer();
        let mut stream = analyzer.token_stream(text);
        let mut terms = Vec::new();
        stream.process(&mut |token| terms.push(token.text.clone()));
        terms
    }

    #[test]
    fn words_lose_case_accents_and_endings() {
        assert_eq!(
            terms("The Pruning of apple-trees, Café 42"),
            ["prune", "appl", "tree", "cafe", "42"]
        );
    }

    #[test]
    fn unspaced_scripts_give_pairs() {
        assert_eq!(terms("東京都は X"), ["東京", "京都", "都は", "x"]);
        assert_eq!(terms("水。"), ["水"]);
    }

    #[test]
    fn indic_words_stay_whole() {
        assert_eq!(terms("हिन्दी में").len(), 2);
    }
}
