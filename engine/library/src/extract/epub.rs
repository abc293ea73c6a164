//! E-books (EPUB): the chapters in reading order, each a web page.

use std::collections::HashMap;

use super::archive::{Archive, resolved};
use super::draft::Draft;
use super::guard::Watch;
use super::html;
use super::xml::{Node, walk};
use crate::error::Fault;
use crate::place::Place;

pub(super) const KIND: &str = "an e-book";

pub(super) fn read(mut archive: Archive<'_>, watch: &Watch) -> Result<Draft, Fault> {
    let container = archive.needed_text("META-INF/container.xml")?;
    let mut package_path = None;
    walk(&container, KIND, watch, &mut |node| {
        if let Node::Open("rootfile", attributes) = node
            && package_path.is_none()
        {
            package_path = attributes.get("full-path");
        }
        Ok(())
    })?;
    let package_path = package_path.ok_or_else(|| archive.broken("it does not name its contents"))?;
    let package = archive.needed_text(&package_path)?;
    let (mut items, mut spine) = (HashMap::new(), Vec::new());
    walk(&package, KIND, watch, &mut |node| {
        match node {
            Node::Open("item", attributes) => {
                if let (Some(id), Some(href)) = (attributes.get("id"), attributes.get("href")) {
                    items.insert(id, resolved(&package_path, &unescaped(&href)));
                }
            }
            Node::Open("itemref", attributes) => spine.extend(attributes.get("idref")),
            _ => {}
        }
        Ok(())
    })?;
    let locked = locked_entries(&mut archive, watch)?;
    let mut draft = Draft::new();
    let mut missing = 0_usize;
    for (index, id) in spine.iter().enumerate() {
        watch.check()?;
        let Some(path) = items.get(id) else {
            missing += 1;
            continue;
        };
        if locked.contains(path) {
            return Err(Fault::Protected);
        }
        let Some(page) = archive.text(path)? else {
            missing += 1;
            continue;
        };
        let number = index + 1;
        draft.absorb(
            html::read(&page)?,
            &Place::Chapters {
                first: number,
                last: number,
            },
        )?;
    }
    if missing > 0 {
        draft.note(format!("{missing} chapter(s) are not in the file"));
    }
    Ok(draft)
}

/// Entries that are encrypted. Fonts often are, and do not matter.
fn locked_entries(archive: &mut Archive<'_>, watch: &Watch) -> Result<Vec<String>, Fault> {
    let mut locked = Vec::new();
    if let Some(xml) = archive.text("META-INF/encryption.xml")? {
        walk(&xml, KIND, watch, &mut |node| {
            if let Node::Open("CipherReference", attributes) = node {
                locked.extend(attributes.get("URI").map(|uri| resolved("", &unescaped(&uri))));
            }
            Ok(())
        })?;
    }
    Ok(locked)
}

/// A path with `%20` and the like as the characters they mean.
fn unescaped(path: &str) -> String {
    percent_encoding::percent_decode_str(path)
        .decode_utf8_lossy()
        .into_owned()
}
