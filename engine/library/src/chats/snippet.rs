//! A little text around the first hit, cut between characters as a person sees them, with the hits marked.

use unicode_segmentation::UnicodeSegmentation;

use super::types::SnippetPart;

/// Marks that the index puts around hits. They are no characters: Unicode keeps them for uses like this one.
pub(super) const HIT_BEGINS: char = '\u{FDD0}';
/// See [`HIT_BEGINS`].
pub(super) const HIT_ENDS: char = '\u{FDD1}';

/// About how long a snippet is, in characters as a person counts them.
const LENGTH: usize = 120;
/// How much of it may come before the first hit.
const BEFORE: usize = 40;

/// The snippet of a text with marks around its hits.
pub(super) fn around_marks(marked: &str) -> Vec<SnippetPart> {
    let (before, mut rest, mut is_hit) = match marked.split_once(HIT_BEGINS) {
        Some((before, rest)) => (before, rest, true),
        None => ("", marked, false),
    };
    let mut parts = Vec::new();
    // A snippet is short; what is far behind its end need not be looked at.
    while !rest.is_empty() && parts.len() <= LENGTH {
        let mark = if is_hit { HIT_ENDS } else { HIT_BEGINS };
        let (text, after) = rest.split_once(mark).unwrap_or((rest, ""));
        parts.push((text, is_hit));
        rest = after;
        is_hit = !is_hit;
    }
    cut(before, &parts)
}

/// The snippet of a text around the first of these words, which are folded.
pub(super) fn around_words(text: &str, words: &[String]) -> Vec<SnippetPart> {
    let mut parts = Vec::new();
    let mut before = "";
    let mut rest = text;
    let mut is_first = true;
    while parts.len() <= LENGTH
        && let Some((start, end)) = find_any(rest, words)
    {
        if is_first {
            before = &rest[..start];
            is_first = false;
        } else {
            parts.push((&rest[..start], false));
        }
        parts.push((&rest[start..end], true));
        rest = &rest[end..];
    }
    parts.push((rest, false));
    cut(before, &parts)
}

/// A text without its case. The two small sigmas are one letter, whose form depends on its place in a word.
pub(super) fn fold(text: &str) -> String {
    let lower = text.to_lowercase();
    if lower.contains('ς') {
        lower.replace('ς', "σ")
    } else {
        lower
    }
}

/// One character folded as [`fold`] does it.
fn folded(character: char) -> impl Iterator<Item = char> {
    character
        .to_lowercase()
        .map(|lower| if lower == 'ς' { 'σ' } else { lower })
}

/// Where the first of the words is in a text, whatever its case there.
fn find_any(text: &str, words: &[String]) -> Option<(usize, usize)> {
    text.char_indices().find_map(|(start, _)| {
        let end = words
            .iter()
            .filter_map(|word| length_of(&text[start..], word))
            .max()?;
        Some((start, start + end))
    })
}

/// How many bytes of the text's beginning are this word, if it begins with it.
fn length_of(text: &str, word: &str) -> Option<usize> {
    let mut expected = word.chars().peekable();
    for (start, character) in text.char_indices() {
        if expected.peek().is_none() {
            return Some(start);
        }
        if !folded(character).all(|folded| expected.next() == Some(folded)) {
            return None;
        }
    }
    expected.peek().is_none().then_some(text.len())
}

/// The end of what is before, and of what follows as much as a snippet has room for.
fn cut(before: &str, parts: &[(&str, bool)]) -> Vec<SnippetPart> {
    let start = before
        .grapheme_indices(true)
        .rev()
        .nth(BEFORE - 1)
        .map_or(0, |(start, _)| start);
    let mut snippet = Snippet::default();
    if start > 0 {
        snippet.push("…", false);
    }
    snippet.push(&before[start..], false);
    let mut room = LENGTH.saturating_sub(before[start..].graphemes(true).count());
    for (index, (text, is_hit)) in parts.iter().enumerate() {
        let end = text
            .grapheme_indices(true)
            .nth(room)
            .map_or(text.len(), |(end, _)| end);
        snippet.push(&text[..end], *is_hit);
        room = room.saturating_sub(text[..end].graphemes(true).count());
        let is_more_to_come = end < text.len() || parts[index + 1..].iter().any(|(text, _)| !text.is_empty());
        if room == 0 && is_more_to_come {
            snippet.push("…", false);
            break;
        }
    }
    snippet.parts
}

/// Parts with white space as single spaces and neighbours of one kind joined.
#[derive(Default)]
struct Snippet {
    parts: Vec<SnippetPart>,
}

impl Snippet {
    fn push(&mut self, text: &str, hit: bool) {
        for character in text.chars() {
            let character = match character {
                c if c.is_whitespace() => ' ',
                // Marks that were in the text before the index put its own there.
                HIT_BEGINS | HIT_ENDS => continue,
                c => c,
            };
            let ends_in_space = self.parts.last().is_none_or(|part| part.text.ends_with(' '));
            if character == ' ' && ends_in_space {
                continue;
            }
            match self.parts.last_mut() {
                Some(part) if part.hit == hit => part.text.push(character),
                _ => self.parts.push(SnippetPart {
                    text: character.to_string(),
                    hit,
                }),
            }
        }
    }
}
