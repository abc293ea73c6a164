//! PDF: the text of each page. The parser may panic or run for very long on hostile files, so it works on a thread of
//! its own whose panics stay quiet and whose time is bounded; one bad page does not lose the others.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use pdf_extract::{Document as Pdf, Error as PdfError, PlainTextOutput, output_doc_page};

use crate::document::{Block, Place};
use crate::error::Fault;

/// A PDF that takes longer than this is given up.
const LIMIT: Duration = Duration::from_secs(120);
/// Nested objects are parsed by recursion; a deep stack keeps a hostile file from ending the process.
const STACK_BYTES: usize = 256 << 20;
/// No page of text is longer; what is beyond is noise.
const PAGE_LIMIT_BYTES: usize = 4 << 20;

pub(super) struct Read {
    pub(super) blocks: Vec<Block>,
    pub(super) notes: Vec<String>,
}

/// A page's text, or `None` where the parser gave up on it.
type Pages = Vec<Option<String>>;

pub(super) fn read(bytes: &[u8]) -> Result<Read, Fault> {
    let pages = pages_within(bytes, LIMIT)?;
    let mut blocks = Vec::new();
    for (index, text) in pages.iter().enumerate() {
        blocks.extend(page_blocks(index + 1, text.as_deref().unwrap_or_default()));
    }
    let numbers = |wanted: &dyn Fn(&Option<String>) -> bool| -> Vec<usize> {
        pages
            .iter()
            .enumerate()
            .filter(|(_, page)| wanted(page))
            .map(|(index, _)| index + 1)
            .collect()
    };
    let unreadable = numbers(&|page| page.is_none());
    let blank = numbers(&|page| page.as_ref().is_some_and(|text| text.trim().is_empty()));
    if blocks.is_empty() {
        return Err(match pages.len() {
            0 => Fault::BrokenPdf("it has no pages".into()),
            all if unreadable.len() == all => Fault::BrokenPdf("none of its pages can be read".into()),
            all => Fault::NoText { pages: all },
        });
    }
    let mut notes = Vec::new();
    if !unreadable.is_empty() {
        notes.push(format!(
            "{} could not be read and is left out",
            listed(&unreadable)
        ));
    }
    if !blank.is_empty() {
        notes.push(format!("no text on {}: scanned or empty", listed(&blank)));
    }
    Ok(Read { blocks, notes })
}

/// "page 3" or "pages 1, 2, 3 and 40 more".
fn listed(numbers: &[usize]) -> String {
    const SHOWN: usize = 5;
    let shown = numbers
        .iter()
        .take(SHOWN)
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    let more = numbers.len().saturating_sub(SHOWN);
    let plural = if numbers.len() == 1 { "page" } else { "pages" };
    if more > 0 {
        format!("{plural} {shown} and {more} more")
    } else {
        format!("{plural} {shown}")
    }
}

fn pages_within(bytes: &[u8], limit: Duration) -> Result<Pages, Fault> {
    let too_slow = || Fault::TooSlow {
        seconds: limit.as_secs(),
    };
    let bytes: Arc<[u8]> = bytes.into();
    let deadline = Instant::now() + limit;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("pdf".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // The caller may have left already; then nobody wants the answer.
            let _ = sender.send(pages_until(&bytes, deadline));
        })
        .map_err(|error| Fault::BrokenPdf(error.to_string()))?;
    receiver
        .recv_timeout(limit)
        .map_err(|_| too_slow())?
        .and_then(|pages| pages.ok_or_else(too_slow))
}

/// `None` when the deadline passed between two pages.
fn pages_until(bytes: &[u8], deadline: Instant) -> Result<Option<Pages>, Fault> {
    let Some(loaded) = quietly(|| load(bytes)) else {
        return Err(Fault::BrokenPdf("its structure cannot be followed".into()));
    };
    let pdf = loaded?;
    let count = quietly(|| pdf.get_pages().len()).unwrap_or(0);
    let mut pages = Vec::new();
    for number in 1..=count {
        if Instant::now() > deadline {
            return Ok(None);
        }
        pages.push(quietly(|| page_text(&pdf, number as u32)).flatten());
    }
    Ok(Some(pages))
}

fn load(bytes: &[u8]) -> Result<Pdf, Fault> {
    let mut pdf = Pdf::load_mem(bytes).map_err(fault)?;
    if pdf.is_encrypted() {
        // Many PDFs are encrypted with an empty password, only to forbid printing; those open.
        pdf.decrypt("").map_err(fault)?;
    }
    Ok(pdf)
}

fn fault(error: PdfError) -> Fault {
    match error {
        PdfError::Decryption(_) | PdfError::InvalidPassword => Fault::Encrypted,
        other => Fault::BrokenPdf(other.to_string()),
    }
}

fn page_text(pdf: &Pdf, number: u32) -> Option<String> {
    let mut text = String::new();
    output_doc_page(pdf, &mut PlainTextOutput::new(&mut text), number).ok()?;
    let mut end = text.len().min(PAGE_LIMIT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    Some(text)
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs the parser; `None` when it panicked. Nothing is printed for it, and panics elsewhere print as ever.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                earlier(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    outcome.ok()
}

/// A page's paragraphs: single spaces, words that were broken at a line's end made whole.
fn page_blocks(page: usize, text: &str) -> Vec<Block> {
    let place = Place::Pages {
        first: page,
        last: page,
    };
    let mut blocks: Vec<Block> = Vec::new();
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            if !paragraph.is_empty() {
                let text = std::mem::take(&mut paragraph);
                blocks.push(Block {
                    text,
                    place,
                    heading: None,
                    is_heading: false,
                });
            }
        } else if paragraph.is_empty() {
            paragraph = line;
        } else if ends_in_broken_word(&paragraph) && line.starts_with(char::is_lowercase) {
            paragraph.pop();
            paragraph.push_str(&line);
        } else {
            paragraph.push('\n');
            paragraph.push_str(&line);
        }
    }
    blocks
}

fn ends_in_broken_word(text: &str) -> bool {
    let mut back = text.chars().rev();
    matches!(back.next(), Some('-' | '\u{2010}' | '\u{ad}')) && back.next().is_some_and(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_broken_at_a_line_end_are_made_whole() {
        let blocks = page_blocks(3, "An exam-\nple  of text\n\nNorth-\nSouth\n");
        let texts: Vec<_> = blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(texts, ["An example of text", "North-\nSouth"]);
        assert_eq!(blocks[0].place.to_string(), "page 3");
    }

    #[test]
    fn a_panic_of_the_parser_is_an_error_and_stays_quiet() {
        assert_eq!(quietly(|| 7), Some(7));
        assert_eq!(quietly(|| -> u32 { panic!("this must not be printed") }), None);
        assert!(!QUIET.get());
    }

    #[test]
    fn a_pdf_that_takes_too_long_is_given_up() {
        let slow = pages_within(b"%PDF-1.4 nothing", Duration::ZERO);
        assert!(matches!(slow, Err(Fault::TooSlow { .. } | Fault::BrokenPdf(_))));
    }
}
