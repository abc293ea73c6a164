//! Presentations (pptx): one slide after the other in the order they are shown, its title as a heading, tables row by row, and what
//! the speaker noted.

use std::collections::HashMap;

use super::archive::{Archive, resolved};
use super::draft::Draft;
use super::guard::Watch;
use super::table::{CELL_JOINT, cell};
use super::xml::{Node, walk};
use crate::error::Fault;
use crate::place::Place;

pub(super) const KIND: &str = "a PowerPoint presentation";
const PRESENTATION: &str = "ppt/presentation.xml";

pub(super) fn read(mut archive: Archive<'_>, watch: &Watch) -> Result<Draft, Fault> {
    let mut ids = Vec::new();
    let presentation = archive.needed_text(PRESENTATION)?;
    walk(&presentation, KIND, watch, &mut |node| {
        if let Node::Open("sldId", attributes) = node {
            ids.extend(attributes.get_prefixed("r:id"));
        }
        Ok(())
    })?;
    let targets = relations(&mut archive, PRESENTATION, watch)?;
    let mut draft = Draft::new();
    for (index, id) in ids.iter().enumerate() {
        let place = Place::Slides {
            first: index + 1,
            last: index + 1,
        };
        let Some((_, path)) = targets.get(id) else {
            continue;
        };
        let Some(xml) = archive.text(path)? else { continue };
        draft.under_nothing();
        let slide = shapes(&xml, watch)?;
        // The title may stand anywhere in the file, and is read first.
        for shape in slide.iter().filter(|shape| shape.is_title) {
            draft.heading(1, &shape.text(), place.clone())?;
        }
        for shape in slide.iter().filter(|shape| !shape.is_title) {
            draft.block(&shape.text(), place.clone())?;
        }
        let notes = relations(&mut archive, path, watch)?
            .into_values()
            .find(|(kind, _)| kind.ends_with("/notesSlide"));
        if let Some((_, path)) = notes
            && let Some(xml) = archive.text(&path)?
        {
            for shape in shapes(&xml, watch)?.iter().filter(|shape| shape.is_body) {
                let text = shape.text();
                if !text.trim().is_empty() {
                    draft.block(&format!("Notes: {text}"), place.clone())?;
                }
            }
        }
    }
    Ok(draft)
}

/// What an entry's relations point to: kind and entry by id.
fn relations(
    archive: &mut Archive<'_>,
    entry: &str,
    watch: &Watch,
) -> Result<HashMap<String, (String, String)>, Fault> {
    let (folder, file) = entry.rsplit_once('/').unwrap_or(("", entry));
    let mut found = HashMap::new();
    if let Some(xml) = archive.text(&format!("{folder}/_rels/{file}.rels"))? {
        walk(&xml, KIND, watch, &mut |node| {
            if let Node::Open("Relationship", attributes) = node
                && let (Some(id), Some(target)) = (attributes.get("Id"), attributes.get("Target"))
            {
                let kind = attributes.get("Type").unwrap_or_default();
                found.insert(id, (kind, resolved(entry, &target)));
            }
            Ok(())
        })?;
    }
    Ok(found)
}

#[derive(Default)]
struct Shape {
    is_title: bool,
    is_body: bool,
    paragraphs: Vec<String>,
}

impl Shape {
    fn text(&self) -> String {
        self.paragraphs.join("\n")
    }
}

/// The texts of a slide, shape by shape.
fn shapes(xml: &str, watch: &Watch) -> Result<Vec<Shape>, Fault> {
    let mut shapes = vec![Shape::default()];
    let mut paragraph = String::new();
    let mut row: Vec<String> = Vec::new();
    let mut text = String::new();
    let (mut in_text, mut in_cell, mut skipped) = (false, false, 0_usize);
    walk(xml, KIND, watch, &mut |node| {
        match node {
            Node::Open("Fallback", _) => skipped += 1,
            Node::Close("Fallback") => skipped = skipped.saturating_sub(1),
            _ if skipped > 0 => {}
            Node::Open(name, attributes) => match name {
                "sp" | "graphicFrame" => shapes.push(Shape::default()),
                "ph" => {
                    let kind = attributes.get("type").unwrap_or_default();
                    if let Some(shape) = shapes.last_mut() {
                        shape.is_title = matches!(kind.as_str(), "title" | "ctrTitle");
                        shape.is_body = kind == "body";
                    }
                }
                "t" => in_text = true,
                "br" => paragraph.push('\n'),
                "tab" => paragraph.push('\t'),
                "tc" => in_cell = true,
                _ => {}
            },
            Node::Text(piece) if in_text => paragraph.push_str(piece),
            Node::Text(_) => {}
            Node::Close(name) => match name {
                "t" => in_text = false,
                "p" => {
                    let done = std::mem::take(&mut paragraph);
                    if in_cell {
                        text.push_str(&done);
                        text.push('\n');
                    } else if let Some(shape) = shapes.last_mut().filter(|_| !done.trim().is_empty()) {
                        shape.paragraphs.push(done);
                    }
                }
                "tc" => {
                    in_cell = false;
                    row.push(cell(&std::mem::take(&mut text)));
                }
                "tr" => {
                    let done = std::mem::take(&mut row);
                    if let Some(shape) = shapes.last_mut()
                        && done.iter().any(|cell| !cell.is_empty())
                    {
                        shape.paragraphs.push(done.join(CELL_JOINT));
                    }
                }
                _ => {}
            },
        }
        Ok(())
    })?;
    Ok(shapes)
}
