//! Pre-tokenisers: they cut text into words, inside which byte pairs are merged. Each is a hand-written splitter over
//! character classes that decides where the next word ends; its time is linear in the text, however long a run of one
//! character is. The rules follow the patterns the models were trained with.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// The pre-tokenisers this crate knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreTokenizer {
    /// Words with their leading space, numbers whole.
    Gpt2,
    /// Every digit alone, then as `Gpt2`.
    SmolLm,
    /// Case-blind contractions, newlines kept with what comes before, every digit alone.
    Qwen2,
    /// As `Qwen2`, with combining marks counted as letters.
    Qwen35,
    /// As `Qwen2`, with digits in groups of up to three.
    LlamaBpe,
}

/// The names GGUF files use, and what each means.
const NAMES: [(&str, PreTokenizer); 8] = [
    ("smollm", PreTokenizer::SmolLm),
    ("qwen2", PreTokenizer::Qwen2),
    ("deepseek-r1-qwen", PreTokenizer::Qwen2),
    ("qwen35", PreTokenizer::Qwen35),
    ("llama-bpe", PreTokenizer::LlamaBpe),
    ("llama3", PreTokenizer::LlamaBpe),
    ("llama-v3", PreTokenizer::LlamaBpe),
    ("gpt-2", PreTokenizer::Gpt2),
];

impl PreTokenizer {
    /// The pre-tokeniser a file means by `name`.
    pub(super) fn by_name(name: &str) -> Option<PreTokenizer> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, pre)| pre)
    }

    /// All names, for messages.
    pub(super) fn known() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// Whether a word that is a token as it stands is taken whole, whatever the merges say.
    pub(super) fn takes_whole_words(self) -> bool {
        self == PreTokenizer::LlamaBpe
    }

    /// Whether text begins with the beginning-of-text token when the file does not say.
    pub(super) fn adds_bos_by_default(self) -> bool {
        self == PreTokenizer::LlamaBpe
    }

    /// Calls `word` with each word of `text`, in order; together they are the text.
    pub(super) fn split<'a>(self, text: &'a str, mut word: impl FnMut(&'a str)) {
        match self {
            PreTokenizer::Gpt2 => cut(text, gpt2_word, &mut word),
            PreTokenizer::SmolLm => {
                // The second rule does not see past a digit, so each stretch between digits is cut on its own.
                let mut rest = text;
                while let Some((at, digit)) = rest.char_indices().find(|&(_, c)| class(c) == Class::Number) {
                    let (before, from) = rest.split_at(at);
                    cut(before, gpt2_word, &mut word);
                    let (digit, after) = from.split_at(digit.len_utf8());
                    word(digit);
                    rest = after;
                }
                cut(rest, gpt2_word, &mut word);
            }
            PreTokenizer::Qwen2 => cut(text, |rest| llama_word(rest, 1, false), &mut word),
            PreTokenizer::Qwen35 => cut(text, |rest| llama_word(rest, 1, true), &mut word),
            PreTokenizer::LlamaBpe => cut(text, |rest| llama_word(rest, 3, false), &mut word),
        }
    }
}

/// What the rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Mark,
    Number,
    Space,
    Other,
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' => Class::Letter,
            '0'..='9' => Class::Number,
            '\t'..='\r' | ' ' => Class::Space,
            _ => Class::Other,
        };
    }
    if c.is_whitespace() {
        return Class::Space;
    }
    match c.general_category_group() {
        GeneralCategoryGroup::Letter => Class::Letter,
        GeneralCategoryGroup::Mark => Class::Mark,
        GeneralCategoryGroup::Number => Class::Number,
        _ => Class::Other,
    }
}

/// Cuts `text` where `word_len` (bytes of the next word, at least one character) says.
fn cut<'a>(text: &'a str, word_len: impl Fn(&str) -> usize, word: &mut impl FnMut(&'a str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let (head, tail) = rest.split_at_checked(word_len(rest)).unwrap_or((rest, ""));
        word(head);
        rest = tail;
    }
}

/// Bytes of the longest start of `text` whose characters all satisfy `belongs`.
fn run_len(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn from(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// Bytes of an English contraction (`'s`, `'re`, ...) at the start of `text`, or 0.
fn contraction_len(text: &str, any_case: bool) -> usize {
    let fold = |byte: &u8| {
        if any_case {
            byte.to_ascii_lowercase()
        } else {
            *byte
        }
    };
    let mut bytes = text.as_bytes().iter().take(3).map(fold);
    match (bytes.next(), bytes.next(), bytes.next()) {
        (Some(b'\''), Some(b's' | b't' | b'm' | b'd'), _) => 2,
        (Some(b'\''), Some(b'r' | b'v'), Some(b'e')) | (Some(b'\''), Some(b'l'), Some(b'l')) => 3,
        _ => 0,
    }
}

/// Bytes of a word of white space: all of it at the end of the text, else all but the last character, which goes to
/// the word that follows.
fn space_len(text: &str) -> usize {
    let run = run_len(text, |c| class(c) == Class::Space);
    let last = text
        .get(..run)
        .and_then(|space| space.char_indices().next_back())
        .map_or(0, |(at, _)| at);
    if run < text.len() && last > 0 {
        last
    } else {
        run.max(1)
    }
}

fn gpt2_word(text: &str) -> usize {
    let contraction = contraction_len(text, false);
    if contraction > 0 {
        return contraction;
    }
    let lead = usize::from(text.starts_with(' '));
    let body = from(text, lead);
    let Some(first) = body.chars().next() else {
        return text.len();
    };
    let body_len = match class(first) {
        Class::Letter => run_len(body, |c| class(c) == Class::Letter),
        Class::Number => run_len(body, |c| class(c) == Class::Number),
        Class::Mark | Class::Other => run_len(body, |c| matches!(class(c), Class::Mark | Class::Other)),
        Class::Space => return space_len(text),
    };
    lead + body_len
}

/// The family of Llama 3 and Qwen: digits in groups of up to `digits`; marks count as letters or as signs.
fn llama_word(text: &str, digits: usize, marks_are_letters: bool) -> usize {
    let contraction = contraction_len(text, true);
    if contraction > 0 {
        return contraction;
    }
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return text.len();
    };
    let second = chars.next();
    let is_letter = |c: char| {
        let class = class(c);
        class == Class::Letter || (marks_are_letters && class == Class::Mark)
    };
    let is_sign = |c: char| match class(c) {
        Class::Other => true,
        Class::Mark => !marks_are_letters,
        _ => false,
    };
    let is_newline = |c: char| c == '\r' || c == '\n';

    if class(first) == Class::Number {
        return text
            .chars()
            .take(digits)
            .take_while(|&c| class(c) == Class::Number)
            .map(char::len_utf8)
            .sum();
    }
    if !is_newline(first) && (is_letter(first) || second.is_some_and(is_letter)) {
        return first.len_utf8() + run_len(from(text, first.len_utf8()), is_letter);
    }
    let lead = usize::from(first == ' ');
    let signs = run_len(from(text, lead), is_sign);
    if signs > 0 {
        let end = lead + signs;
        return end + run_len(from(text, end), is_newline);
    }
    let space = run_len(text, |c| class(c) == Class::Space);
    match text.get(..space).and_then(|space| space.rfind(is_newline)) {
        Some(newline) => newline + 1,
        None => space_len(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pre: PreTokenizer, text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        pre.split(text, |word| words.push(word));
        words
    }

    #[test]
    fn words_take_their_leading_space() {
        for pre in [
            PreTokenizer::Gpt2,
            PreTokenizer::SmolLm,
            PreTokenizer::Qwen2,
            PreTokenizer::LlamaBpe,
        ] {
            assert_eq!(
                words(pre, "Hello big  world!"),
                ["Hello", " big", " ", " world", "!"]
            );
        }
    }

    #[test]
    fn digits_are_grouped_as_each_model_learned() {
        assert_eq!(words(PreTokenizer::Gpt2, "a 12345"), ["a", " 12345"]);
        assert_eq!(words(PreTokenizer::SmolLm, "a 123"), ["a", " ", "1", "2", "3"]);
        assert_eq!(words(PreTokenizer::Qwen2, "a 123"), ["a", " ", "1", "2", "3"]);
        assert_eq!(words(PreTokenizer::LlamaBpe, "a 12345"), ["a", " ", "123", "45"]);
    }

    #[test]
    fn contractions_and_newlines() {
        assert_eq!(
            words(PreTokenizer::SmolLm, "I'LL it's"),
            ["I", "'", "LL", " it", "'s"]
        );
        assert_eq!(words(PreTokenizer::Qwen2, "I'LL it's"), ["I", "'LL", " it", "'s"]);
        assert_eq!(
            words(PreTokenizer::Qwen2, "f();\r\n\n  x \n "),
            ["f", "();\r\n\n", " ", " x", " \n", " "]
        );
        assert_eq!(
            words(PreTokenizer::SmolLm, "x;\n\n  y"),
            ["x", ";", "\n\n ", " y"]
        );
    }

    #[test]
    fn marks_belong_to_words_only_for_the_newest_family() {
        assert_eq!(words(PreTokenizer::Qwen2, "हिन्दी"), ["ह", "िन", "्द", "ी"]);
        assert_eq!(words(PreTokenizer::Qwen35, "हिन्दी"), ["हिन्दी"]);
    }
}
