//! Titles out of text.

use unicode_segmentation::UnicodeSegmentation;

/// About how long a made title is, in characters as a person counts them.
const LENGTH: usize = 48;

/// The text's first line that says something, cut between words; none if there is no such line.
pub(super) fn from_text(text: &str) -> Option<String> {
    let line = text.lines().map(one_line).find(|line| !line.is_empty())?;
    let Some((cut, _)) = line.grapheme_indices(true).nth(LENGTH) else {
        return Some(line);
    };
    let short = &line[..cut];
    // A cut that falls on a space leaves whole words. A word that fills most of the title is cut: scripts without
    // spaces have long ones.
    let end = match short.rfind(' ') {
        _ if line[cut..].starts_with(' ') => cut,
        Some(space) if space >= cut / 2 => space,
        _ => cut,
    };
    Some(format!("{}…", short[..end].trim_end()))
}

/// The text with every run of white space as one space, and none at its ends.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_cut_between_words() {
        assert_eq!(
            from_text("  \n\n Prune   the apple\ttree?\nIn detail"),
            Some("Prune the apple tree?".to_string())
        );
        let long = "When should I prune the old apple tree behind the house of my aunt?";
        assert_eq!(
            from_text(long).unwrap(),
            "When should I prune the old apple tree behind…"
        );
        assert_eq!(from_text(" \n\t"), None);
    }

    #[test]
    fn scripts_without_spaces_and_joined_emoji_are_cut_between_characters() {
        let title = from_text(&"苹果树".repeat(30)).unwrap();
        assert_eq!(title.graphemes(true).count(), LENGTH + 1);
        let family = "👩‍👩‍👧".repeat(60);
        assert_eq!(from_text(&family).unwrap(), format!("{}…", "👩‍👩‍👧".repeat(LENGTH)));
    }
}
