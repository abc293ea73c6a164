//! HTML: rendered to text without scripts, styles and link targets; headings become Markdown headings.

use html2text::render::TextDecorator;

use super::draft::Draft;
use super::text;
use crate::error::Fault;

/// Wide enough that no paragraph is wrapped.
const WIDTH: usize = 1_000_000;

/// A page takes many times its size in memory while it is rendered; larger ones are refused.
const LIMIT_BYTES: usize = 32 << 20;

/// Whether a text starts like an HTML page.
pub(super) fn looks_like(text: &str) -> bool {
    let start: String = text
        .trim_start()
        .chars()
        .take(14)
        .collect::<String>()
        .to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

pub(super) fn read(text: &str) -> Result<Draft, Fault> {
    if text.len() > LIMIT_BYTES {
        return Err(Fault::TooLarge {
            limit_mib: (LIMIT_BYTES >> 20) as u64,
        });
    }
    let rendered = html2text::config::with_decorator(Headings)
        .link_footnotes(false)
        .raw_mode(true)
        .allow_width_overflow()
        .string_from_read(text.as_bytes(), WIDTH)
        .map_err(|error| Fault::BrokenHtml(error.to_string()))?;
    text::read(rendered, text::Style::Markdown).map(Draft::with_paragraph_numbers)
}

/// Marks headings, lists and quotes the Markdown way and nothing else.
#[derive(Clone, Debug)]
struct Headings;

impl TextDecorator for Headings {
    type Annotation = ();

    fn decorate_link_start(&mut self, _url: &str) -> (String, ()) {
        (String::new(), ())
    }
    fn decorate_link_end(&mut self) -> String {
        String::new()
    }
    fn decorate_em_start(&self) -> (String, ()) {
        (String::new(), ())
    }
    fn decorate_em_end(&self) -> String {
        String::new()
    }
    fn decorate_strong_start(&self) -> (String, ()) {
        (String::new(), ())
    }
    fn decorate_strong_end(&self) -> String {
        String::new()
    }
    fn decorate_strikeout_start(&self) -> (String, ()) {
        (String::new(), ())
    }
    fn decorate_strikeout_end(&self) -> String {
        String::new()
    }
    fn decorate_code_start(&self) -> (String, ()) {
        (String::new(), ())
    }
    fn decorate_code_end(&self) -> String {
        String::new()
    }
    fn decorate_preformat_first(&self) {}
    fn decorate_preformat_cont(&self) {}
    fn decorate_image(&mut self, _source: &str, title: &str) -> (String, ()) {
        (title.to_string(), ())
    }
    fn header_prefix(&self, level: usize) -> String {
        format!("{} ", "#".repeat(level))
    }
    fn quote_prefix(&self) -> String {
        "> ".into()
    }
    fn unordered_item_prefix(&self) -> String {
        "* ".into()
    }
    fn ordered_item_prefix(&self, number: i64) -> String {
        format!("{number}. ")
    }
    fn make_subblock_decorator(&self) -> Self {
        Headings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Format;

    #[test]
    fn scripts_styles_and_link_targets_are_left_out() {
        let page = "<html><head><title>t</title><style>p{color:red}</style></head><body><h2>Opening hours</h2>\
            <script>alert(1)</script><p>Open <a href='https://example.org'>daily</a> from <b>nine</b>.</p>\
            <table><tr><td>Mon</td><td>9-17</td></tr></table></body></html>";
        let document = read(page).unwrap().finish("a.html", Format::Html).unwrap();
        let text = document.text();
        assert!(text.contains("Open daily from nine."), "{text}");
        assert!(text.contains("Mon") && text.contains("9-17"), "{text}");
        for unwanted in ["alert", "color", "example.org"] {
            assert!(!text.contains(unwanted), "{text}");
        }
        let blocks = document.blocks();
        assert_eq!(blocks.last().unwrap().headings, ["Opening hours"]);
        assert_eq!(blocks[1].place.to_string(), "paragraph 2");
    }
}
