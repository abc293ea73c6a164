//! Plain text and Markdown: decoding, and cutting into blocks that know their lines.

use encoding_rs::{Encoding, WINDOWS_1252};

use crate::document::{Block, Place};

/// More control characters than one in this many bytes mean that a file is not text.
const CONTROL_CHARACTERS_ONE_IN: usize = 50;

pub(super) struct Decoded {
    pub(super) text: String,
    /// What a person should know about the decoding.
    pub(super) note: Option<String>,
}

/// The text of a file: by its byte order mark, else UTF-8, else Latin-1 (as its superset Windows-1252). `None` for
/// bytes that are not text.
pub(super) fn decode(bytes: &[u8]) -> Option<Decoded> {
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

/// Paragraphs between blank lines.
pub(super) fn plain_blocks(text: &str) -> Vec<Block> {
    blocks(text, false)
}

/// Paragraphs between blank lines; fenced code stays in one piece, and headings name what follows them.
pub(super) fn markdown_blocks(text: &str) -> Vec<Block> {
    blocks(text, true)
}

fn blocks(text: &str, markdown: bool) -> Vec<Block> {
    let mut builder = Builder::default();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim_end();
        if markdown {
            let marker = ["```", "~~~"]
                .into_iter()
                .find(|marker| line.trim_start().starts_with(marker));
            match (fence, marker) {
                (None, Some(opening)) => fence = Some(opening),
                (Some(opening), Some(closing)) if opening == closing => fence = None,
                (None, None) => {
                    if let Some(title) = heading(line) {
                        builder.finish();
                        builder.heading = Some(title.to_string());
                        builder.push(line, number);
                        builder.finish_as_heading();
                        continue;
                    }
                }
                _ => {}
            }
        }
        if line.is_empty() && fence.is_none() {
            builder.finish();
        } else {
            builder.push(line, number);
        }
    }
    builder.finish();
    builder.done
}

/// The title of a Markdown heading line (`#` to `######`).
fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = title.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && !title.is_empty()).then_some(title)
}

#[derive(Default)]
struct Builder {
    done: Vec<Block>,
    heading: Option<String>,
    lines: Vec<String>,
    first: usize,
    last: usize,
}

impl Builder {
    fn push(&mut self, line: &str, number: usize) {
        if self.lines.is_empty() {
            self.first = number;
        }
        self.last = number;
        self.lines.push(line.to_string());
    }

    fn finish(&mut self) {
        let text = std::mem::take(&mut self.lines).join("\n");
        if !text.trim().is_empty() {
            let place = Place::Lines {
                first: self.first,
                last: self.last,
            };
            self.done.push(Block {
                text,
                place,
                heading: self.heading.clone(),
                is_heading: false,
            });
        }
    }

    fn finish_as_heading(&mut self) {
        self.finish();
        if let Some(block) = self.done.last_mut() {
            block.is_heading = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let blocks =
            markdown_blocks("intro\n\n# One\ntext a\ntext b\n\n```\n# code\n\nmore\n```\n## Two\n\nend\n");
        let seen: Vec<_> = blocks
            .iter()
            .map(|b| (b.place.to_string(), b.heading.as_deref(), b.is_heading))
            .collect();
        assert_eq!(
            seen,
            [
                ("line 1".to_string(), None, false),
                ("line 3".to_string(), Some("One"), true),
                ("lines 4-5".to_string(), Some("One"), false),
                ("lines 7-11".to_string(), Some("One"), false),
                ("line 12".to_string(), Some("Two"), true),
                ("line 14".to_string(), Some("Two"), false),
            ]
        );
        assert_eq!(blocks[3].text, "```\n# code\n\nmore\n```");
    }
}
