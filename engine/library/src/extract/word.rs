//! Word documents (docx): paragraphs, headings by their styles, tables row by row, footnotes at the end. What was deleted with tracked
//! changes is left out, and so are headers and footers, which would stand between sentences.

use std::collections::HashMap;

use super::archive::Archive;
use super::draft::Draft;
use super::guard::Watch;
use super::table::{CELL_JOINT, cell};
use super::xml::{Node, walk};
use crate::error::Fault;
use crate::place::Place;

pub(super) const KIND: &str = "a Word document";

pub(super) fn read(mut archive: Archive<'_>, watch: &Watch) -> Result<Draft, Fault> {
    let levels = match archive.text("word/styles.xml")? {
        Some(styles) => heading_levels(&styles, watch)?,
        None => HashMap::new(),
    };
    let mut reader = Reader {
        levels,
        ..Reader::default()
    };
    let body = archive.needed_text("word/document.xml")?;
    walk(&body, KIND, watch, &mut |node| reader.visit(node))?;
    reader.flush_table()?;
    if let Some(notes) = archive.text("word/footnotes.xml")? {
        reader.draft.under_nothing();
        walk(&notes, KIND, watch, &mut |node| reader.visit(node))?;
        reader.flush_table()?;
    }
    Ok(reader.draft)
}

/// Which paragraph styles are headings, and of which level.
fn heading_levels(styles: &str, watch: &Watch) -> Result<HashMap<String, usize>, Fault> {
    let mut levels = HashMap::new();
    let mut parents: HashMap<String, String> = HashMap::new();
    let mut style = String::new();
    walk(styles, KIND, watch, &mut |node| {
        if let Node::Open(name, attributes) = node {
            match name {
                "style" => style = attributes.get("styleId").unwrap_or_default(),
                "name" => {
                    let title = attributes.get("val").unwrap_or_default().to_lowercase();
                    let level = title.strip_prefix("heading ").and_then(|n| n.parse().ok());
                    let level = level.or_else(|| (title == "title").then_some(1));
                    if let Some(level) = level {
                        levels.insert(style.clone(), level);
                    }
                }
                "basedOn" => {
                    parents.insert(style.clone(), attributes.get("val").unwrap_or_default());
                }
                "outlineLvl" => {
                    if let Some(level) = outline_level(attributes.get("val")) {
                        levels.insert(style.clone(), level);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    // A style without a level of its own has that of what it is based on, a few steps up at most.
    let inherited: Vec<(String, usize)> = parents
        .keys()
        .filter_map(|style| {
            let mut at = style;
            for _ in 0..8 {
                if let Some(level) = levels.get(at) {
                    return Some((style.clone(), *level));
                }
                at = parents.get(at)?;
            }
            None
        })
        .collect();
    levels.extend(inherited);
    Ok(levels)
}

/// Word counts outline levels from 0; 9 is text.
fn outline_level(value: Option<String>) -> Option<usize> {
    let level: usize = value?.parse().ok()?;
    (level < 9).then_some(level + 1)
}

#[derive(Default)]
struct Reader {
    draft: Draft,
    levels: HashMap<String, usize>,
    /// Paragraphs that are open; a text box's paragraphs stand inside another one.
    open: Vec<Paragraph>,
    number: usize,
    in_text: bool,
    /// How deep we are inside of what is said twice for older programs, or is no text.
    skipped: usize,
    /// Tables that are open; only the outermost is written.
    tables: usize,
    rows: Vec<String>,
    row: Vec<String>,
    cell: String,
}

#[derive(Default)]
struct Paragraph {
    text: String,
    level: Option<usize>,
}

/// Elements whose text is no text of the document, or is there a second time.
const SKIPPED: &[&str] = &["Fallback", "instrText", "delText", "sdtPr"];

impl Reader {
    fn visit(&mut self, node: Node<'_>) -> Result<(), Fault> {
        match node {
            Node::Open(name, _) if SKIPPED.contains(&name) => self.skipped += 1,
            Node::Close(name) if SKIPPED.contains(&name) => self.skipped = self.skipped.saturating_sub(1),
            _ if self.skipped > 0 => {}
            Node::Open(name, attributes) => match name {
                "p" => self.open.push(Paragraph::default()),
                "pStyle" => {
                    let level = attributes
                        .get("val")
                        .and_then(|style| self.levels.get(&style).copied());
                    self.set_level(level);
                }
                "outlineLvl" => self.set_level(outline_level(attributes.get("val"))),
                "t" => self.in_text = true,
                "tab" => self.push("\t"),
                "br" | "cr" => self.push("\n"),
                "noBreakHyphen" => self.push("-"),
                "tbl" => self.tables += 1,
                _ => {}
            },
            Node::Text(text) if self.in_text => self.push(text),
            Node::Text(_) => {}
            Node::Close(name) => match name {
                "t" => self.in_text = false,
                "p" => self.end_paragraph()?,
                "tc" if self.tables == 1 => self.row.push(cell(&std::mem::take(&mut self.cell))),
                "tr" if self.tables == 1 => {
                    let row = std::mem::take(&mut self.row);
                    if row.iter().any(|cell| !cell.is_empty()) {
                        self.rows.push(row.join(CELL_JOINT));
                    }
                }
                "tbl" => {
                    self.tables = self.tables.saturating_sub(1);
                    if self.tables == 0 {
                        self.flush_table()?;
                    }
                }
                _ => {}
            },
        }
        Ok(())
    }

    fn push(&mut self, text: &str) {
        if let Some(paragraph) = self.open.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn set_level(&mut self, level: Option<usize>) {
        if let (Some(paragraph), Some(level)) = (self.open.last_mut(), level) {
            paragraph.level = Some(level);
        }
    }

    fn end_paragraph(&mut self) -> Result<(), Fault> {
        let Some(paragraph) = self.open.pop() else {
            return Ok(());
        };
        if paragraph.text.trim().is_empty() {
            return Ok(());
        }
        if self.tables > 0 {
            self.cell.push_str(&paragraph.text);
            self.cell.push('\n');
            return Ok(());
        }
        self.number += 1;
        let place = Place::paragraph(self.number);
        match paragraph.level {
            Some(level) => self.draft.heading(level, &paragraph.text, place),
            None => self.draft.block(&paragraph.text, place),
        }
    }

    fn flush_table(&mut self) -> Result<(), Fault> {
        self.tables = 0;
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        self.number += 1;
        self.draft.block(&rows.join("\n"), Place::paragraph(self.number))
    }
}
