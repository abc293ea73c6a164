//! Letters as a PDF has them, made the letters that a person types: ligatures and the shapes that Arabic letters take within words
//! become plain letters, and lines that are stored as they look from left to right become lines as they are read.

use unicode_bidi::{BidiInfo, Level};
use unicode_normalization::UnicodeNormalization;

/// The text of a page in letters that can be searched for.
pub(super) fn plain(text: &str) -> String {
    if text.is_ascii() {
        return text.to_string();
    }
    let turned = if is_turned(text) {
        text.lines().map(read_from_right).collect::<Vec<_>>().join("\n")
    } else {
        text.to_string()
    };
    let mut plain = String::with_capacity(turned.len());
    for character in turned.chars() {
        if is_shape(character) {
            plain.extend(std::iter::once(character).nfkc());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Latin ligatures and the shapes of Arabic letters.
fn is_shape(character: char) -> bool {
    matches!(character, '\u{fb00}'..='\u{fb06}' | '\u{fb50}'..='\u{fdfb}' | '\u{fe70}'..='\u{fefc}')
}

/// Whether a text reads backwards: letters that only end words begin them, and articles that begin words end them.
fn is_turned(text: &str) -> bool {
    let ends_words = |c: Option<char>| {
        matches!(
            c,
            Some(
                '\u{fe93}'
                    | '\u{fe94}'
                    | '\u{629}'
                    | '\u{649}'
                    | '\u{fef0}'
                    | '\u{5da}'
                    | '\u{5dd}'
                    | '\u{5df}'
                    | '\u{5e3}'
                    | '\u{5e5}'
            )
        )
    };
    let article = |first: Option<char>, second: Option<char>| {
        matches!(first, Some('\u{627}' | '\u{fe8d}'))
            && matches!(second, Some('\u{644}' | '\u{fedf}' | '\u{fee0}'))
    };
    let (mut forwards, mut backwards) = (0_usize, 0_usize);
    for word in text.split_whitespace() {
        let (mut start, mut end) = (word.chars(), word.chars().rev());
        let (first, second) = (start.next(), start.next());
        let (last, before) = (end.next(), end.next());
        forwards += usize::from(ends_words(last)) + usize::from(article(first, second));
        backwards += usize::from(ends_words(first)) + usize::from(article(last, before));
    }
    backwards > forwards
}

/// A line in the order it is read, from the order it looks in.
fn read_from_right(line: &str) -> String {
    let bidi = BidiInfo::new(line, Some(Level::rtl()));
    bidi.paragraphs
        .iter()
        .map(|paragraph| bidi.reorder_line(paragraph, paragraph.range.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ligatures_become_letters_and_other_signs_stay() {
        assert_eq!(plain("The mis\u{fb01}ts, x² ½"), "The misfits, x² ½");
    }

    #[test]
    fn arabic_stored_from_left_to_right_is_read_from_the_right() {
        // "the Arabic", in the shapes of its letters, as it looks; then with a number.
        let looks = "\u{fe94}\u{fef4}\u{fe91}\u{fead}\u{fecc}\u{fedf}\u{627}";
        assert_eq!(plain(looks), "\u{627}\u{644}\u{639}\u{631}\u{628}\u{64a}\u{629}");
        assert_eq!(
            plain(&format!("12 {looks}")),
            "\u{627}\u{644}\u{639}\u{631}\u{628}\u{64a}\u{629} 12"
        );
        let reads = "\u{627}\u{644}\u{639}\u{631}\u{628}\u{64a}\u{629}";
        assert_eq!(plain(reads), reads);
    }
}
