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

/// An answer whose marks are Markdown links to `passage:N`, N being a place in what was given, and without marks that name
/// nothing; and which of the things that were given it names, each once.
pub fn linked(answer: &str, given: &[Given]) -> (String, Vec<usize>) {
    let cited = cited(answer, given);
    let mut text = String::with_capacity(cited.text.len());
    let mut named = Vec::new();
    let mut end = 0;
    for mark in &cited.citations {
        text.push_str(&cited.text[end..mark.range.start]);
        text.push('[');
        text.extend(given[mark.given].label.chars().flat_map(escaped));
        text.push_str(&format!("](passage:{})", mark.given));
        end = mark.range.end;
        if !named.contains(&mark.given) {
            named.push(mark.given);
        }
    }
    text.push_str(&cited.text[end..]);
    (text, named)
}

/// A character of a name as Markdown has it that is to show it as it is.
fn escaped(c: char) -> impl Iterator<Item = char> {
    let backslash = c.is_ascii_punctuation().then_some('\\');
    let shown = if c.is_control() { ' ' } else { c };
    backslash.into_iter().chain([shown])
}

/// The marks of an answer that is still being written: text comes in pieces and leaves as it is shown, without marks that name
/// nothing. What may be the beginning of a mark is held back until it is known.
#[derive(Debug, Default)]
pub struct CitedStream {
    answer: String,
    shown: usize,
}

impl CitedStream {
    /// Takes a piece of an answer to a question that was given these; gives what can be shown now.
    pub fn push(&mut self, piece: &str, given: &[Given]) -> String {
        self.answer.push_str(piece);
        let settled = settled(&self.answer);
        self.show(settled, given)
    }

    /// The answer is at its end; gives the rest of it.
    pub fn finish(&mut self, given: &[Given]) -> String {
        self.show(self.answer.len(), given)
    }

    fn show(&mut self, settled: usize, given: &[Given]) -> String {
        let text = cited(&self.answer[..settled], given).text;
        let new = text.get(self.shown..).unwrap_or_default().to_owned();
        self.shown += new.len();
        new
    }
}

/// How much of an answer what follows cannot change: up to a bracket or backquote of the last line that is open or has just
/// been closed, and the spaces before it, which leave with a mark.
fn settled(answer: &str) -> usize {
    let line = answer.rfind('\n').map_or(0, |at| at + 1);
    let mut at = line;
    while let Some(open) = answer[at..].find(['[', '`']).map(|open| at + open) {
        let closing = if answer[open..].starts_with('`') { '`' } else { ']' };
        match answer[open + 1..].find(closing).map(|close| open + 1 + close + 1) {
            Some(end) if end < answer.len() => at = end,
            _ => return answer[..open].trim_end_matches(' ').len(),
        }
    }
    // The next piece may begin with a mark.
    answer.trim_end_matches(' ').len().max(at)
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
    fn marks_become_links_whatever_is_in_a_name() {
        let given = given(&["my_file*[1].md, line 3", "report.pdf, page 3"]);
        let (text, named) = linked(
            "Cold [report.pdf, page 3], very [report.pdf, page 3]; not warm [report.pdf, page 9].",
            &given,
        );
        let link = "[report\\.pdf\\, page 3](passage:1)";
        assert_eq!(text, format!("Cold {link}, very {link}; not warm."));
        assert_eq!(named, [1]);
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
        fn pieces_come_to_the_same_as_the_whole(text in "[\\[\\]`a-c, 1page\n(é]{0,80}", cut in 1_usize..7) {
            let given = given(&["a, page 1", "b"]);
            let mut stream = CitedStream::default();
            let mut shown = String::new();
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(cut) {
                shown.push_str(&stream.push(&piece.iter().collect::<String>(), &given));
            }
            shown.push_str(&stream.finish(&given));
            prop_assert_eq!(shown, cited(&text, &given).text);
        }

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
