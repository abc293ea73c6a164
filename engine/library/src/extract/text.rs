//! Plain text and Markdown: decoding, and cutting into blocks that know their lines.

use std::ops::Range;

use encoding_rs::{Encoding, WINDOWS_1252};

use super::draft::Draft;
use crate::error::Fault;
use crate::place::Place;

/// More control characters than one in this many bytes mean that a file is not text.
const CONTROL_CHARACTERS_ONE_IN: usize = 50;

pub(super) struct Decoded {
    pub(super) text: String,
    /// What a person should know about the decoding.
    pub(super) note: Option<String>,
}

/// The text of a file with line ends of one character (see [`decode_as_is`]).
pub(super) fn decode(bytes: &[u8]) -> Option<Decoded> {
    let mut decoded = decode_as_is(bytes)?;
    if decoded.text.contains('\r') {
        decoded.text = decoded.text.replace("\r\n", "\n").replace('\r', "\n");
    }
    Some(decoded)
}

/// The text of a file: by its byte order mark, else UTF-8, else Latin-1 (as its superset Windows-1252). `None` for
/// bytes that are not text.
fn decode_as_is(bytes: &[u8]) -> Option<Decoded> {
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(bytes) {
        let (text, had_errors) = encoding.decode_without_bom_handling(&bytes[mark_bytes..]);
        let note = had_errors.then(|| {
            format!(
                "some characters are not valid {} and were replaced",
                encoding.name()
            )
        });
        return Some(Decoded {
            text: text.into_owned(),
            note,
        });
    }
    let controls = bytes
        .iter()
        .filter(|&&byte| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
        .count();
    if bytes.contains(&0) || controls > bytes.len() / CONTROL_CHARACTERS_ONE_IN {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(Decoded {
            text: text.to_string(),
            note: None,
        }),
        Err(_) => {
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
            let note = "not valid UTF-8; read as Latin-1, so accented characters may be wrong".to_string();
            Some(Decoded {
                text: text.into_owned(),
                note: Some(note),
            })
        }
    }
}

/// How a text is cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Paragraphs between blank lines.
    Plain,
    /// The same, but fenced code stays in one piece, and headings name what follows them.
    Markdown,
}

/// A text as it is, with its blocks told.
pub(super) fn read(text: String, style: Style) -> Result<Draft, Fault> {
    let mut draft = Draft::of(text)?;
    mark_blocks(&mut draft, style);
    Ok(draft)
}

fn mark_blocks(draft: &mut Draft, style: Style) {
    let mut fence: Option<&str> = None;
    let mut open: Option<Lines> = None;
    let mut found: Vec<Found> = Vec::new();
    let mut start = 0;
    for (index, whole_line) in draft.text().split_inclusive('\n').enumerate() {
        let number = index + 1;
        let line = whole_line.trim_end();
        let range = start..start + line.len();
        start += whole_line.len();
        if style == Style::Markdown {
            let marker = ["```", "~~~"]
                .into_iter()
                .find(|marker| line.trim_start().starts_with(marker));
            match (fence, marker) {
                (None, Some(opening)) => fence = Some(opening),
                (Some(opening), Some(closing)) if opening == closing => fence = None,
                (None, None) => {
                    if let Some((level, title)) = heading(line) {
                        found.extend(open.take().map(Found::Block));
                        let lines = Lines {
                            range,
                            first: number,
                            last: number,
                        };
                        found.push(Found::Heading(level, title.to_string(), lines));
                        continue;
                    }
                }
                _ => {}
            }
        }
        if line.is_empty() {
            if fence.is_none() {
                found.extend(open.take().map(Found::Block));
            }
            continue;
        }
        let lines = open.get_or_insert(Lines {
            range: range.clone(),
            first: number,
            last: number,
        });
        lines.range.end = range.end;
        lines.last = number;
    }
    found.extend(open.map(Found::Block));
    for piece in found {
        match piece {
            Found::Block(lines) => draft.mark(lines.range.clone(), lines.place()),
            Found::Heading(level, title, lines) => {
                draft.mark_heading(level, &title, lines.range.clone(), lines.place());
            }
        }
    }
}

enum Found {
    Block(Lines),
    Heading(usize, String, Lines),
}

struct Lines {
    range: Range<usize>,
    first: usize,
    last: usize,
}

impl Lines {
    fn place(&self) -> Place {
        Place::Lines {
            first: self.first,
            last: self.last,
        }
    }
}

/// Level and title of a Markdown heading line (`#` to `######`).
pub(super) fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = title.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && !title.is_empty()).then_some((level, title))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Format;

    fn text_of(bytes: &[u8]) -> (String, bool) {
        let decoded = decode(bytes).unwrap();
        (decoded.text, decoded.note.is_some())
    }

    #[test]
    fn byte_order_marks_utf8_and_latin1_are_told_apart() {
        assert_eq!(text_of("gr\u{fc}n".as_bytes()), ("grün".into(), false));
        assert_eq!(text_of(b"\xef\xbb\xbfgr\xc3\xbcn"), ("grün".into(), false));
        assert_eq!(text_of(b"\xff\xfeg\0r\0\xfc\0n\0"), ("grün".into(), false));
        assert_eq!(text_of(b"\xfe\xff\0g\0r\0\xfc\0n"), ("grün".into(), false));
        assert_eq!(
            text_of(b"gr\xfcn"),
            ("grün".into(), true),
            "Latin-1 is said visibly"
        );
        assert!(decode(b"\x01\x02\x03\x04").is_none());
    }

    #[test]
    fn blocks_know_their_lines_and_headings() {
        let text = "intro\n\n# One\ntext a\ntext b\n\n```\n# code\n\nmore\n```\n## Two\n\nend\n";
        let document = read(text.into(), Style::Markdown)
            .unwrap()
            .finish("a.md", Format::Markdown)
            .unwrap();
        let seen: Vec<_> = document
            .blocks()
            .iter()
            .map(|b| (b.place.to_string(), b.headings.join("/"), b.is_heading))
            .collect();
        let expected = [
            ("line 1", "", false),
            ("line 3", "One", true),
            ("lines 4-5", "One", false),
            ("lines 7-11", "One", false),
            ("line 12", "One/Two", true),
            ("line 14", "One/Two", false),
        ];
        assert_eq!(
            seen,
            expected.map(|(place, path, is)| (place.into(), path.into(), is))
        );
        let code = document.text_of(&document.blocks()[3]);
        assert_eq!(code, "```\n# code\n\nmore\n```");
        assert_eq!(document.text(), text);
    }
}
