//! Marks in an answer that name what it was given: `[report.pdf, page 3]`. Marks that name something else are dropped.

use std::ops::Range;

use crate::chats::Given;

/// A mark in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// Its bytes in the text that is shown, brackets included.
    pub range: Range<usize>,
    /// Which of the things that were given it names.
    pub given: usize,
}

/// An answer as it is shown, with its marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cited {
    /// The answer without marks that name nothing.
    pub text: String,
    /// The marks, in order.
    pub citations: Vec<Citation>,
    /// How many marks named nothing that was given.
    pub dropped: usize,
}

/// Finds the marks of an answer. Code is left alone, and so is everything in brackets that does not look like a mark: links,
/// indices, remarks.
pub fn cited(answer: &str, given: &[Given]) -> Cited {
    let mut cited = Cited {
        text: String::with_capacity(answer.len()),
        citations: Vec::new(),
        dropped: 0,
    };
    let mut is_code = false;
    for line in answer.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            cited.text.push_str(line);
        } else if is_code {
            cited.text.push_str(line);
        } else {
            add_line(&mut cited, line, given);
        }
    }
    cited
}

fn add_line(cited: &mut Cited, line: &str, given: &[Given]) {
    let mut rest = line;
    while let Some(open) = rest.find(['[', '`']) {
        let (before, from) = rest.split_at(open);
        cited.text.push_str(before);
        // Code within a line ends at the next backquote, and a mark at its bracket; without an end it is text.
        let closing = if from.starts_with('`') { '`' } else { ']' };
        let Some(length) = from[1..].find(closing).map(|at| at + 2) else {
            cited.text.push_str(from);
            return;
        };
        let (piece, after) = from.split_at(length);
        rest = after;
        let is_mark = closing == ']' && !after.starts_with(['(', '[', ':']);
        match is_mark.then(|| named(&piece[1..length - 1], given)) {
            Some(Named::Given(index)) => {
                let start = cited.text.len();
                cited.text.push_str(piece);
                cited.citations.push(Citation {
                    range: start..cited.text.len(),
                    given: index,
                });
            }
            Some(Named::Unknown) => {
                cited.dropped += 1;
                let end = cited.text.trim_end_matches(' ').len();
                cited.text.truncate(end);
            }
            Some(Named::Nothing) | None => cited.text.push_str(piece),
        }
    }
    cited.text.push_str(rest);
}

enum Named {
    Given(usize),
    /// It looks like a mark and names nothing that was given.
    Unknown,
    /// It is no mark.
    Nothing,
}

/// What a bracket's inside names. Small models change case and spaces, and leave out the place where a document has one
/// passage only.
fn named(inside: &str, given: &[Given]) -> Named {
    let wanted = folded(inside);
    let labels: Vec<String> = given.iter().map(|one| folded(&one.label)).collect();
    if let Some(index) = labels.iter().position(|label| *label == wanted) {
        return Named::Given(index);
    }
    let mut of_document = labels
        .iter()
        .enumerate()
        .filter(|(_, label)| label.split_once(", ").is_some_and(|(name, _)| name == wanted));
    if let (Some((index, _)), None) = (of_document.next(), of_document.next()) {
        return Named::Given(index);
    }
    match looks_like_a_mark(&wanted) {
        true => Named::Unknown,
        false => Named::Nothing,
    }
}

/// Whether a text is a name and a place, as labels are.
fn looks_like_a_mark(text: &str) -> bool {
    const PLACES: [&str; 8] = [
        "page",
        "line",
        "paragraph",
        "slide",
        "row",
        "chapter",
        "sheet",
        "message",
    ];
    text.rsplit_once(", ").is_some_and(|(_, place)| {
        PLACES.iter().any(|word| place.starts_with(word)) && place.ends_with(|c: char| c.is_ascii_digit())
    })
}

fn folded(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chats::Origin;
    use proptest::prelude::*;

    fn given(labels: &[&str]) -> Vec<Given> {
        labels
            .iter()
            .map(|label| Given {
                label: (*label).into(),
                text: String::new(),
                source: Origin::Skill { name: "x".into() },
            })
            .collect()
    }

    #[test]
    fn marks_name_what_was_given_and_others_are_dropped() {
        let given = given(&[
            "report.pdf, page 3",
            "report.pdf, pages 4-5",
            "house.md, lines 1-9",
        ]);
        let answer =
            "It rained [Report.pdf,  page 3]. It froze [report.pdf, page 7]. Prune in May [house.md].";
        let seen = cited(answer, &given);
        assert_eq!(
            seen.text,
            "It rained [Report.pdf,  page 3]. It froze. Prune in May [house.md]."
        );
        assert_eq!(seen.dropped, 1);
        let named: Vec<_> = seen
            .citations
            .iter()
            .map(|mark| (&seen.text[mark.range.clone()], mark.given))
            .collect();
        assert_eq!(named, [("[Report.pdf,  page 3]", 0), ("[house.md]", 2)]);
    }

    #[test]
    fn code_links_and_other_brackets_stay() {
        let given = given(&["a.md, lines 1-2"]);
        for text in [
            "x[1] and [a link](b) and [ ] todo",
            "`v[a.md, line 9]` stays",
            "```\nt[a.md, line 9]\n```\n",
            "an open [bracket",
            "[a, b]",
        ] {
            let seen = cited(text, &given);
            assert_eq!((seen.text.as_str(), seen.dropped), (text, 0));
            assert!(seen.citations.is_empty());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_marks_are_where_they_say(text in "[\\[\\]`a-c, 1\n(é]{0,60}") {
            let seen = cited(&text, &given(&["a, page 1", "b"]));
            for mark in &seen.citations {
                let shown = &seen.text[mark.range.clone()];
                prop_assert!(shown.starts_with('[') && shown.ends_with(']'));
            }
        }
    }
}
