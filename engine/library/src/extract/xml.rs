//! XML as Office files and e-books have it: elements by their local names and their text. Entities that a file defines itself are
//! left out, so that none can unfold into gigabytes, and nesting is bounded.

use quick_xml::Reader;
use quick_xml::events::attributes::Attributes;
use quick_xml::events::{BytesStart, Event};

use super::guard::Watch;
use crate::error::Fault;

/// Deeper nesting is refused; real documents have less than a tenth of it.
const DEPTH: usize = 1_000;
/// How many events are read between two looks at the watch.
const GLANCE: usize = 4_096;

/// What is met on the way through a document.
pub(super) enum Node<'a> {
    /// An element begins; an empty one also ends at once.
    Open(&'a str, Attrs<'a>),
    /// An element ends.
    Close(&'a str),
    /// Text, in as many pieces as the parser likes.
    Text(&'a str),
}

/// The attributes of an element.
pub(super) struct Attrs<'a>(Attributes<'a>);

impl Attrs<'_> {
    /// The value of an attribute by its local name.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.clone();
        attributes
            .with_checks(false)
            .flatten()
            .find(|attribute| attribute.key.local_name().into_inner() == name)
            .map(|attribute| {
                attribute
                    .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                    .map(|value| value.into_owned())
                    .unwrap_or_default()
            })
    }

    /// The value of an attribute by its name with its prefix as written.
    pub(super) fn get_prefixed(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.clone();
        attributes
            .with_checks(false)
            .flatten()
            .find(|attribute| attribute.key.into_inner() == name)
            .map(|attribute| {
                attribute
                    .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                    .map(|value| value.into_owned())
                    .unwrap_or_default()
            })
    }
}

/// Goes through a document; `kind` names the file in errors ("a Word document").
pub(super) fn walk(
    text: &str,
    kind: &'static str,
    watch: &Watch,
    visit: &mut dyn FnMut(Node<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let broken = |why: String| Fault::Broken {
        kind: kind.into(),
        why,
    };
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    let mut depth = 0_usize;
    for number in 1_usize.. {
        if number.is_multiple_of(GLANCE) {
            watch.check()?;
        }
        let event = reader.read_event().map_err(|error| {
            let at = reader.error_position();
            broken(format!("at byte {at}: {error}"))
        })?;
        match event {
            Event::Start(element) => {
                depth += 1;
                if depth > DEPTH {
                    return Err(broken(format!("its parts are nested more than {DEPTH} deep")));
                }
                open(&element, visit)?;
            }
            Event::Empty(element) => {
                open(&element, visit)?;
                visit(Node::Close(element.local_name().into_inner()))?;
            }
            Event::End(element) => {
                depth = depth.saturating_sub(1);
                visit(Node::Close(element.local_name().into_inner()))?;
            }
            Event::Text(piece) => visit(Node::Text(&piece.xml10_content()))?,
            Event::CData(piece) => visit(Node::Text(&piece.xml10_content()))?,
            Event::GeneralRef(reference) => {
                if let Ok(Some(character)) = reference.resolve_char_ref() {
                    visit(Node::Text(character.encode_utf8(&mut [0; 4])))?;
                } else if let Some(text) = quick_xml::escape::resolve_predefined_entity(&reference) {
                    visit(Node::Text(text))?;
                }
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    Ok(())
}

fn open(element: &BytesStart<'_>, visit: &mut dyn FnMut(Node<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
    let name = element.local_name();
    visit(Node::Open(name.into_inner(), Attrs(element.attributes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::ReadOptions;
    use crate::extract::guard::LIMIT;

    fn text_of(xml: &str) -> Result<String, Fault> {
        let mut text = String::new();
        let watch = Watch::new(&ReadOptions::default(), LIMIT);
        walk(xml, "a test", &watch, &mut |node| {
            if let Node::Text(piece) = node {
                text.push_str(piece);
            }
            Ok(())
        })?;
        Ok(text)
    }

    #[test]
    fn characters_and_the_five_entities_are_resolved_and_no_others() {
        let bomb =
            "<!DOCTYPE a [<!ENTITY x \"xxxxxxxxxx\"><!ENTITY y \"&x;&x;&x;\">]><a>&y;1 &lt; 2 &#65;&y;</a>";
        assert_eq!(text_of(bomb).unwrap(), "1 < 2 A");
    }

    #[test]
    fn nesting_without_end_is_refused() {
        let deep = format!("{}x{}", "<a>".repeat(10_000), "</a>".repeat(10_000));
        assert!(text_of(&deep).unwrap_err().to_string().contains("nested"));
    }
}
