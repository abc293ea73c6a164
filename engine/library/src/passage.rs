//! Passages: stretches of a document of at most [`PASSAGE_CHARACTERS`] and about [`PASSAGE_TOKENS`], cut at headings and between
//! paragraphs, else between sentences, and only inside a sentence when it is longer than that. A passage is the unit that is
//! searched, chosen and cited; its text is a range of its document's text, to the byte.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

use crate::TokenCounter;
use crate::document::{Block, Document, Format};
use crate::place::Place;

/// How long a passage aims to be. With its label it stays within 256 tokens.
pub const PASSAGE_TOKENS: usize = 232;
/// No passage is longer than this, whatever its tokens.
pub const PASSAGE_CHARACTERS: usize = 1024;

/// A new page or section starts a new passage once the running one has this share of its length.
const EARLY_END: usize = 2;
/// Longer names of documents are shortened in labels.
const LABEL_NAME_CHARACTERS: usize = 40;

/// A stretch of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The document's name.
    pub document: String,
    /// Its file, as in [`Document::path`].
    #[serde(skip)]
    pub path: PathBuf,
    /// Where it stands there.
    pub place: Place,
    /// The headings it begins under, the outermost first; of rows the last one is the table's first row.
    pub headings: Vec<String>,
    /// Its bytes in [`Document::text`].
    pub range: Range<usize>,
    /// Its text: what the document has in that range.
    pub text: String,
    /// Whether it was recognised in a picture, and may have wrong letters.
    pub is_ocr: bool,
    /// Tokens of [`Passage::rendered`].
    pub tokens: usize,
}

impl Passage {
    /// The passage as it stands in a prompt: a label, then the text. It depends on nothing else, so the same passage is
    /// always the same tokens.
    pub fn rendered(&self) -> String {
        let label = format!("[{}]\n", self.label());
        match self.columns() {
            Some(columns) => [&label, columns, "\n", &self.text, "\n\n"].concat(),
            None => [&label, self.text.as_str(), "\n\n"].concat(),
        }
    }

    /// What the passage is called in a prompt, and what an answer names it by: `report.pdf, page 3`.
    pub fn label(&self) -> String {
        format!("{}, {}", label_name(&self.document), self.place)
    }

    /// What the columns of these rows are called, where the passage does not begin with that itself.
    fn columns(&self) -> Option<&str> {
        let columns = self.headings.last()?;
        let is_told = matches!(self.place, Place::Rows { .. }) && !self.text.starts_with(columns.as_str());
        is_told.then_some(columns)
    }
}

/// A document's name as labels have it: one line, and long ones without their middle.
fn label_name(name: &str) -> String {
    let characters: Vec<char> = name
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if characters.len() <= LABEL_NAME_CHARACTERS {
        return characters.into_iter().collect();
    }
    let half = LABEL_NAME_CHARACTERS / 2;
    let (start, end) = (&characters[..half], &characters[characters.len() - half..]);
    start.iter().chain(['…'].iter()).chain(end).collect()
}

/// Cuts a document into passages of about `target_tokens` and at most [`PASSAGE_CHARACTERS`], in reading order.
pub fn split(document: &Document, target_tokens: usize, count: TokenCounter<'_>) -> Vec<Passage> {
    let mut splitter = Splitter {
        document,
        target: target_tokens.max(1),
        count,
        done: Vec::new(),
        heading: None,
        open: None,
    };
    for block in document.blocks() {
        splitter.add(block);
    }
    splitter.finish()
}

/// A stretch in the making.
#[derive(Debug, Clone)]
struct Stretch {
    range: Range<usize>,
    place: Place,
    headings: Vec<String>,
    is_ocr: bool,
    tokens: usize,
}

struct Splitter<'a> {
    document: &'a Document,
    target: usize,
    count: TokenCounter<'a>,
    done: Vec<Passage>,
    /// A heading that waits for what it heads, so that it never ends a passage.
    heading: Option<Stretch>,
    open: Option<Stretch>,
}

impl Splitter<'_> {
    fn add(&mut self, block: &Block) {
        let mut next = Stretch {
            range: block.range.clone(),
            place: block.place.clone(),
            headings: block.headings.clone(),
            is_ocr: block.is_ocr,
            tokens: 0,
        };
        let mut new_part = self.begins_part(block);
        if let Some(heading) = self.heading.take() {
            let place = heading.place.through(&next.place);
            match place.filter(|_| heading.is_ocr == next.is_ocr) {
                Some(place) => {
                    next.range.start = heading.range.start;
                    next.place = place;
                    next.headings = heading.headings;
                    new_part = true;
                }
                None => self.append(heading),
            }
        }
        // A heading longer than half a passage is text like any other.
        if block.is_heading && self.characters_up_to(&next.range, PASSAGE_CHARACTERS / 2) {
            next.tokens = (self.count)(self.text(&next.range));
            if next.tokens * 2 <= self.target {
                self.heading = Some(next);
                return;
            }
        }
        let room = self.room(&next);
        // Of a block of megabytes only its pieces are counted.
        let is_short = self.characters_up_to(&next.range, PASSAGE_CHARACTERS);
        if is_short {
            next.tokens = (self.count)(self.text(&next.range));
        }
        let enough = self.open.as_ref().is_some_and(|open| {
            open.tokens * EARLY_END >= room
                || !self.characters_up_to(&open.range, PASSAGE_CHARACTERS / EARLY_END)
        });
        if new_part && enough {
            self.close();
        }
        if is_short && next.tokens <= room {
            self.append(next);
            return;
        }
        let (mut lines_before, mut counted_to) = (0, next.range.start);
        for range in self.pieces(next.range.clone(), room) {
            let tokens = (self.count)(self.text(&range));
            lines_before += self.lines(counted_to..range.start);
            counted_to = range.start;
            let lines = lines_before..=lines_before + self.lines(range.clone());
            let place = next.place.lines_of(lines);
            self.append(Stretch {
                range,
                place,
                tokens,
                ..next.clone()
            });
        }
    }

    fn finish(mut self) -> Vec<Passage> {
        if let Some(heading) = self.heading.take() {
            self.append(heading);
        }
        self.close();
        self.done
    }

    /// Whether a block begins something of its own: a page, a slide, a chapter, a function.
    fn begins_part(&self, block: &Block) -> bool {
        let Some(open) = &self.open else { return false };
        match &block.place {
            Place::Pages { .. } | Place::Slides { .. } | Place::Chapters { .. } => open.place != block.place,
            Place::Lines { .. } => {
                let continues = |c: char| c.is_whitespace() || matches!(c, '}' | ')' | ']');
                self.document.format == Format::Code && !self.document.text_of(block).starts_with(continues)
            }
            Place::Paragraphs { .. } | Place::Rows { .. } => false,
        }
    }

    /// Tokens that a passage's text may have: of rows, the names of their columns are told again.
    fn room(&self, stretch: &Stretch) -> usize {
        match (&stretch.place, stretch.headings.last()) {
            (Place::Rows { .. }, Some(columns)) => {
                let columns_tokens = (self.count)(columns).min(self.target / 2);
                (self.target - columns_tokens).max(1)
            }
            _ => self.target,
        }
    }

    /// Adds to the open stretch where both together are one passage; else that is closed first.
    fn append(&mut self, next: Stretch) {
        let room = self.room(&next);
        if let Some(mut open) = self.open.take() {
            let both = open.range.start..next.range.end;
            let fits = open.tokens + next.tokens <= room
                && self.characters_up_to(&both, PASSAGE_CHARACTERS)
                && open.is_ocr == next.is_ocr;
            if let Some(place) = open.place.through(&next.place).filter(|_| fits) {
                open.range = both;
                open.place = place;
                open.tokens += next.tokens + 1;
                self.open = Some(open);
                return;
            }
            self.open = Some(open);
        }
        self.close();
        self.open = Some(next);
    }

    fn close(&mut self) {
        let Some(stretch) = self.open.take() else { return };
        let mut passage = Passage {
            document: self.document.name.clone(),
            path: self.document.path.clone(),
            text: self.text(&stretch.range).to_string(),
            place: stretch.place,
            headings: stretch.headings,
            range: stretch.range,
            is_ocr: stretch.is_ocr,
            tokens: 0,
        };
        passage.tokens = (self.count)(&passage.rendered());
        self.done.push(passage);
    }

    fn text(&self, range: &Range<usize>) -> &str {
        self.document.text().get(range.clone()).unwrap_or_default()
    }

    /// Whether a range has at most so many characters. A block may have megabytes, so counting stops where it is known.
    fn characters_up_to(&self, range: &Range<usize>, most: usize) -> bool {
        self.text(range).chars().nth(most).is_none()
    }

    /// Line ends in a range.
    fn lines(&self, range: Range<usize>) -> usize {
        self.text(&range).matches('\n').count()
    }

    /// A range longer than a passage in pieces that are not, cut at the best place there is.
    fn pieces(&self, range: Range<usize>, room: usize) -> Vec<Range<usize>> {
        let mut pieces = Pieces {
            done: Vec::new(),
            at: range.start,
            tokens_left: 0,
            characters_left: 0,
            room,
        };
        let text = self.text(&range);
        for sentence in text.split_sentence_bounds() {
            if self.put(&mut pieces, sentence) {
                continue;
            }
            for word in sentence.split_word_bounds() {
                if self.put(&mut pieces, word) {
                    continue;
                }
                // A "word" longer than a passage: encoded data. A character costs at most its bytes in tokens.
                for character in word.graphemes(true) {
                    if !self.put(&mut pieces, character) {
                        // Piled-up accents without end.
                        for character in character.chars() {
                            let mut bytes = [0; 4];
                            let character = &*character.encode_utf8(&mut bytes);
                            pieces.push(character, (self.count)(character), 1);
                        }
                    }
                }
            }
        }
        pieces
            .done
            .into_iter()
            .map(|piece| self.trimmed(piece))
            .filter(|piece| !piece.is_empty())
            .collect()
    }

    /// Appends a part where it is not longer than a passage, and says whether it was.
    fn put(&self, pieces: &mut Pieces, part: &str) -> bool {
        if part.chars().nth(PASSAGE_CHARACTERS).is_some() {
            return false;
        }
        let tokens = (self.count)(part);
        let fits = tokens <= pieces.room;
        if fits {
            pieces.push(part, tokens, part.chars().count());
        }
        fits
    }

    /// A range without white space around it.
    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let text = self.text(&range);
        let start = range.start + (text.len() - text.trim_start().len());
        start..start + text.trim().len()
    }
}

/// Pieces that are filled from left to right.
struct Pieces {
    done: Vec<Range<usize>>,
    at: usize,
    tokens_left: usize,
    characters_left: usize,
    room: usize,
}

impl Pieces {
    fn push(&mut self, part: &str, tokens: usize, characters: usize) {
        let end = self.at + part.len();
        match self.done.last_mut() {
            Some(last) if tokens <= self.tokens_left && characters <= self.characters_left => {
                last.end = end;
                self.tokens_left -= tokens;
                self.characters_left -= characters;
            }
            _ => {
                self.done.push(self.at..end);
                self.tokens_left = self.room.saturating_sub(tokens);
                self.characters_left = PASSAGE_CHARACTERS - characters;
            }
        }
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn markdown(text: &str) -> Document {
        Document::from_bytes("a.md", text.as_bytes()).unwrap()
    }

    #[test]
    fn passages_end_between_paragraphs_and_keep_headings_with_their_text() {
        let text = "# One\n\na a a a\n\nb b b b\n\n# Two\n\nc c c c c c\n";
        let passages = split(&markdown(text), 12, &words);
        let seen: Vec<_> = passages
            .iter()
            .map(|p| (p.place.to_string(), p.headings.join("/")))
            .collect();
        assert_eq!(
            seen,
            [
                ("lines 1-5".to_string(), "One".to_string()),
                ("lines 7-9".to_string(), "Two".to_string())
            ]
        );
        assert_eq!(
            passages[0].rendered(),
            "[a.md, lines 1-5]\n# One\n\na a a a\n\nb b b b\n\n"
        );
        assert_eq!(passages[0].tokens, words(&passages[0].rendered()));
    }

    #[test]
    fn a_long_paragraph_is_cut_between_sentences() {
        let text = "One two three four. Five six seven eight. Nine ten eleven twelve.";
        let passages = split(&markdown(text), 8, &words);
        let texts: Vec<_> = passages.iter().map(|passage| passage.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "One two three four. Five six seven eight.",
                "Nine ten eleven twelve."
            ]
        );
    }

    #[test]
    fn text_without_spaces_or_ends_is_still_cut() {
        let characters = |text: &str| text.chars().count();
        let passages = split(&markdown(&"x".repeat(1000)), 100, &characters);
        assert_eq!(passages.len(), 10);
        let japanese = split(&markdown(&"これは長い文章です。".repeat(30)), 50, &characters);
        assert!(
            japanese
                .iter()
                .all(|passage| passage.text.chars().count() <= 51 && passage.text.ends_with('。'))
        );
    }

    #[test]
    fn nothing_is_lost() {
        let text: String = (0..500)
            .map(|n| format!("w{n}{}", if n % 7 == 0 { ".\n\n" } else { " " }))
            .collect();
        let passages = split(&markdown(&text), 20, &words);
        let kept: Vec<_> = passages
            .iter()
            .flat_map(|p| p.text.split_whitespace().map(str::to_string))
            .collect();
        assert_eq!(
            kept,
            text.split_whitespace().map(str::to_string).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_passage_is_a_range_of_its_documents_text() {
        let text = "# One\n\nintro\n\n\n\n## Two\n\n- a\n- b\n\nlast\n";
        let document = markdown(text);
        for passage in split(&document, 4, &words) {
            assert_eq!(&document.text()[passage.range.clone()], passage.text);
            assert_eq!(passage.text, passage.text.trim());
        }
    }

    #[test]
    fn no_passage_is_longer_than_the_limit_whatever_its_tokens() {
        let text = format!("{}\n\n# {}\n\nend\n", "word ".repeat(3000), "h".repeat(5000));
        let none = |_: &str| 0;
        let passages = split(&markdown(&text), 232, &none);
        assert!(
            passages
                .iter()
                .all(|passage| passage.text.chars().count() <= PASSAGE_CHARACTERS)
        );
        let kept: usize = passages.iter().map(|passage| passage.text.len()).sum();
        assert!(kept > text.len() - 30, "{kept} of {}", text.len());
    }

    #[test]
    fn pieces_of_a_long_block_know_their_own_lines() {
        let text = (1..=100)
            .map(|n| format!("line number {n} of them"))
            .collect::<Vec<_>>()
            .join("\n");
        for passage in split(&markdown(&text), 232, &words) {
            let Place::Lines { first, last } = passage.place else {
                panic!("{:?}", passage.place)
            };
            assert!(passage.text.starts_with(&format!("line number {first} of")));
            assert!(passage.text.ends_with(&format!("line number {last} of them")));
        }
    }

    #[test]
    fn labels_are_short_and_in_one_line() {
        let name = format!("{}\n.txt", "very long name ".repeat(10));
        let document = Document::from_bytes(&name, b"text").unwrap();
        let passages = split(&document, 10, &words);
        let label = passages[0].rendered().lines().next().unwrap().to_string();
        assert_eq!(label, "[very long name very …very long name  .txt, line 1]");
    }
}
