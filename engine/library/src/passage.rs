//! Passages: stretches of a document of about [`PASSAGE_TOKENS`], cut between paragraphs, else between sentences, and
//! only inside a sentence when it is longer than that. A passage is the unit that is searched, chosen and cited.

use unicode_segmentation::UnicodeSegmentation;

use crate::TokenCounter;
use crate::document::{Block, Document, Format, Place};

/// How long a passage aims to be. With its label it stays within 256 tokens.
pub const PASSAGE_TOKENS: usize = 232;

/// A new page or section starts a new passage once the running one has this share of its length.
const EARLY_END: usize = 2;

/// A stretch of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The document's name.
    pub document: String,
    /// Where it stands there.
    pub place: Place,
    /// The heading it begins under.
    pub heading: Option<String>,
    /// Its text.
    pub text: String,
    /// Tokens of [`Passage::rendered`].
    pub tokens: usize,
}

impl Passage {
    /// The passage as it stands in a prompt: a label, then the text. It depends on nothing else, so the same passage is
    /// always the same tokens.
    pub fn rendered(&self) -> String {
        format!("[{}, {}]\n{}\n\n", self.document, self.place, self.text)
    }
}

/// Cuts a document into passages of about `target_tokens`, in reading order.
pub fn split(document: &Document, target_tokens: usize, count: TokenCounter<'_>) -> Vec<Passage> {
    let target = target_tokens.max(1);
    let joint = if document.format == Format::Pdf {
        "\n"
    } else {
        "\n\n"
    };
    let mut splitter = Splitter {
        document,
        target,
        joint,
        count,
        done: Vec::new(),
        heading: None,
        open: None,
        open_tokens: 0,
    };
    for block in &document.blocks {
        splitter.add(block);
    }
    splitter.finish()
}

struct Splitter<'a> {
    document: &'a Document,
    target: usize,
    joint: &'a str,
    count: TokenCounter<'a>,
    done: Vec<Passage>,
    heading: Option<Block>,
    open: Option<Block>,
    open_tokens: usize,
}

impl Splitter<'_> {
    /// Takes the next block. A heading waits for what it heads, so that it never ends a passage.
    fn add(&mut self, block: &Block) {
        let mut block = block.clone();
        let mut new_part = self.document.format == Format::Pdf
            && self.open.as_ref().is_some_and(|open| open.place != block.place);
        if let Some(heading) = self.heading.take() {
            block.text = [&heading.text, self.joint, &block.text].concat();
            block.place = heading.place.through(block.place);
            block.heading = heading.heading;
            new_part = true;
        }
        if block.is_heading {
            self.heading = Some(block);
            return;
        }
        let tokens = (self.count)(&block.text);
        let enough = self.open_tokens * EARLY_END >= self.target;
        if self.open_tokens + tokens > self.target || (new_part && enough) {
            self.close();
        }
        if tokens <= self.target {
            self.append(block, tokens, self.joint);
            return;
        }
        for piece in pieces(&block.text, self.target, self.count) {
            let tokens = (self.count)(&piece);
            if self.open_tokens + tokens > self.target {
                self.close();
            }
            self.append(
                Block {
                    text: piece,
                    ..block.clone()
                },
                tokens,
                " ",
            );
        }
    }

    fn finish(mut self) -> Vec<Passage> {
        if let Some(heading) = self.heading.take() {
            self.append(heading, 0, self.joint);
        }
        self.close();
        self.done
    }

    fn append(&mut self, block: Block, tokens: usize, joint: &str) {
        match &mut self.open {
            None => {
                self.open = Some(block);
                self.open_tokens = tokens;
            }
            Some(open) => {
                open.text.push_str(joint);
                open.text.push_str(&block.text);
                open.place = open.place.through(block.place);
                self.open_tokens += tokens + 1;
            }
        }
    }

    fn close(&mut self) {
        if let Some(Block {
            text, place, heading, ..
        }) = self.open.take()
        {
            let document = self.document.name.clone();
            let mut passage = Passage {
                document,
                place,
                heading,
                text,
                tokens: 0,
            };
            passage.tokens = (self.count)(&passage.rendered());
            self.done.push(passage);
        }
        self.open_tokens = 0;
    }
}

/// A text longer than the target in pieces that are not, cut at the best place there is.
fn pieces(text: &str, target: usize, count: TokenCounter<'_>) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut room = 0;
    let mut put = |part: &str, tokens: usize| match pieces.last_mut() {
        Some(last) if tokens <= room => {
            last.push_str(part);
            room -= tokens;
        }
        _ => {
            pieces.push(part.to_string());
            room = target.saturating_sub(tokens);
        }
    };
    for sentence in text.split_sentence_bounds() {
        let tokens = count(sentence);
        if tokens <= target {
            put(sentence, tokens);
            continue;
        }
        for word in sentence.split_word_bounds() {
            let tokens = count(word);
            if tokens <= target {
                put(word, tokens);
                continue;
            }
            // A "word" longer than a passage: encoded data. A character costs at most its bytes in tokens.
            for character in word.graphemes(true) {
                put(character, count(character));
            }
        }
    }
    pieces
        .into_iter()
        .map(|piece| piece.trim().to_string())
        .filter(|piece| !piece.is_empty())
        .collect()
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
            .map(|p| (p.place.to_string(), p.heading.clone().unwrap()))
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
}
