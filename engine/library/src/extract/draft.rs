//! A document while it is read: text is only ever appended, so that a block's range stays what it was. How much text
//! a file may give is bounded here for all kinds of file.

use std::ops::Range;

use crate::document::{Block, Document, Format};
use crate::error::Fault;
use crate::place::Place;

/// No document that a person asks about has more text; archives could unpack to anything.
const LIMIT_BYTES: usize = 64 << 20;
/// Nor more paragraphs.
const LIMIT_BLOCKS: usize = 500_000;
/// A longer heading is a paragraph that looks like one.
const HEADING_CHARACTERS: usize = 200;

/// A document in the making.
#[derive(Debug)]
pub(crate) struct Draft {
    text: String,
    blocks: Vec<Block>,
    /// The headings that are open, with their levels.
    headings: Vec<(usize, String)>,
    /// What stands between two blocks.
    joint: &'static str,
    /// What a person should know about the reading.
    pub(crate) notes: Vec<String>,
}

impl Draft {
    /// An empty one whose blocks will be separated by a blank line.
    pub(crate) fn new() -> Draft {
        Draft::with_joint("\n\n")
    }

    /// An empty one whose blocks will be separated by this.
    pub(crate) fn with_joint(joint: &'static str) -> Draft {
        Draft {
            text: String::new(),
            blocks: Vec::new(),
            headings: Vec::new(),
            joint,
            notes: Vec::new(),
        }
    }

    /// One whose text is all there; blocks are told by [`Draft::mark`].
    pub(crate) fn of(text: String) -> Result<Draft, Fault> {
        let mut draft = Draft::new();
        draft.room_for(text.len())?;
        draft.text = text;
        Ok(draft)
    }

    /// The text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Appends a block; blank ones leave no trace.
    pub(crate) fn block(&mut self, text: &str, place: Place) -> Result<(), Fault> {
        if let Some(range) = self.append(text)? {
            self.mark(range, place);
        }
        Ok(())
    }

    /// Appends a block that was recognised in a picture.
    pub(crate) fn recognised(&mut self, text: &str, place: Place) -> Result<(), Fault> {
        if let Some(range) = self.append(text)? {
            self.mark(range, place);
            if let Some(block) = self.blocks.last_mut() {
                block.is_ocr = true;
            }
        }
        Ok(())
    }

    /// Appends what another reader read, which stands all at one place here.
    pub(crate) fn absorb(&mut self, other: Draft, place: &Place) -> Result<(), Fault> {
        for mut block in other.blocks {
            let text = other.text.get(block.range).unwrap_or_default();
            if let Some(range) = self.append(text)? {
                block.range = range;
                block.place = place.clone();
                self.blocks.push(block);
            }
        }
        for note in other.notes {
            self.note(note);
        }
        Ok(())
    }

    /// Appends a heading of this level (1 is the outermost), which what follows stands under.
    pub(crate) fn heading(&mut self, level: usize, text: &str, place: Place) -> Result<(), Fault> {
        if let Some(range) = self.append(text)? {
            let title = one_line(text);
            self.mark_heading(level, &title, range, place);
        }
        Ok(())
    }

    /// Says that a range of the text is a block.
    pub(crate) fn mark(&mut self, range: Range<usize>, place: Place) {
        self.blocks.push(Block {
            range,
            place,
            headings: self.headings.iter().map(|(_, title)| title.clone()).collect(),
            is_heading: false,
            is_ocr: false,
        });
    }

    /// Says that a range of the text is a heading.
    pub(crate) fn mark_heading(&mut self, level: usize, title: &str, range: Range<usize>, place: Place) {
        self.under(level, title);
        self.mark(range, place);
        if let Some(block) = self.blocks.last_mut() {
            block.is_heading = true;
        }
    }

    /// What follows stands under this title, which is not in the text itself.
    pub(crate) fn under(&mut self, level: usize, title: &str) {
        self.headings.retain(|(open, _)| *open < level);
        self.headings.push((level, shortened(title, HEADING_CHARACTERS)));
    }

    /// What follows stands under no heading.
    pub(crate) fn under_nothing(&mut self) {
        self.headings.clear();
    }

    /// The same with its blocks numbered as paragraphs.
    pub(crate) fn with_paragraph_numbers(mut self) -> Draft {
        for (index, block) in self.blocks.iter_mut().enumerate() {
            block.place = Place::paragraph(index + 1);
        }
        self
    }

    /// Whether there is no text yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The texts of the blocks.
    pub(crate) fn paragraphs(&self) -> impl Iterator<Item = &str> {
        self.blocks
            .iter()
            .map(|block| self.text.get(block.range.clone()).unwrap_or_default())
    }

    /// Makes a note, once.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The document; one without text is said to be empty.
    pub(crate) fn finish(self, name: &str, format: Format) -> Result<Document, Fault> {
        if self.blocks.is_empty() {
            return Err(Fault::Empty);
        }
        if self.blocks.len() > LIMIT_BLOCKS {
            return Err(too_much());
        }
        Ok(Document {
            name: name.to_string(),
            path: name.into(),
            format,
            notes: self.notes,
            text: self.text,
            blocks: self.blocks,
        })
    }

    fn append(&mut self, text: &str) -> Result<Option<Range<usize>>, Fault> {
        if self.blocks.len() >= LIMIT_BLOCKS {
            return Err(too_much());
        }
        let text = text.trim_end().trim_start_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return Ok(None);
        }
        self.room_for(text.len() + self.joint.len())?;
        if !self.text.is_empty() {
            self.text.push_str(self.joint);
        }
        let start = self.text.len();
        self.text.push_str(text);
        Ok(Some(start..self.text.len()))
    }

    fn room_for(&self, bytes: usize) -> Result<(), Fault> {
        if self.text.len() + bytes > LIMIT_BYTES {
            return Err(too_much());
        }
        Ok(())
    }
}

impl Default for Draft {
    fn default() -> Draft {
        Draft::new()
    }
}

fn too_much() -> Fault {
    Fault::TooMuchText {
        limit_mib: LIMIT_BYTES >> 20,
        limit_paragraphs: LIMIT_BLOCKS,
    }
}

/// A text in one line, single spaces between its words.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first characters of a text, with an ellipsis where it was longer.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_know_the_headings_that_are_open() {
        let mut draft = Draft::new();
        draft.heading(1, "One", Place::paragraph(1)).unwrap();
        draft.heading(3, "Deep", Place::paragraph(2)).unwrap();
        draft.block("text", Place::paragraph(3)).unwrap();
        draft.heading(2, "Two", Place::paragraph(4)).unwrap();
        draft.block("more", Place::paragraph(5)).unwrap();
        let document = draft.finish("a", Format::Word).unwrap();
        let paths: Vec<_> = document
            .blocks()
            .iter()
            .map(|block| block.headings.join("/"))
            .collect();
        assert_eq!(paths, ["One", "One/Deep", "One/Deep", "One/Two", "One/Two"]);
        assert_eq!(document.text(), "One\n\nDeep\n\ntext\n\nTwo\n\nmore");
        assert_eq!(document.text_of(&document.blocks()[2]), "text");
    }

    #[test]
    fn text_without_end_is_refused() {
        let mut draft = Draft::new();
        let mebibyte = "x".repeat(1 << 20);
        let full = (0..100).find_map(|_| draft.block(&mebibyte, Place::page(1)).err());
        assert_eq!(full, Some(too_much()));
        let mut draft = Draft::new();
        let full = (0..=LIMIT_BLOCKS).find_map(|_| draft.block("x", Place::page(1)).err());
        assert_eq!(full, Some(too_much()));
    }
}
