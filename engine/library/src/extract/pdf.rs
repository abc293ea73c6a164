//! PDF: the text of each page. The parser may panic or run for very long on hostile files, so it works on a thread of
//! its own whose panics stay quiet and whose time is bounded; one bad page does not lose the others.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use pdf_extract::{Document as Pdf, Error as PdfError, PlainTextOutput, output_doc_page};

use super::draft::{Draft, one_line};
use crate::document::ReadOptions;
use crate::error::Fault;
use crate::place::Place;

/// A PDF that takes longer than this is given up.
const LIMIT: Duration = Duration::from_secs(120);
/// Nested objects are parsed by recursion; a deep stack keeps a hostile file from ending the process.
const STACK_BYTES: usize = 256 << 20;
/// No page of text is longer; what is beyond is noise.
const PAGE_LIMIT_BYTES: usize = 4 << 20;

/// A page's text, or `None` where the parser gave up on it.
type Pages = Vec<Option<String>>;

pub(super) fn read(bytes: &[u8], options: &ReadOptions) -> Result<Draft, Fault> {
    let pages = pages_within(bytes, options, LIMIT)?;
    let mut draft = Draft::new();
    for (index, text) in pages.iter().enumerate() {
        add_page(&mut draft, index + 1, text.as_deref().unwrap_or_default())?;
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
    if draft.is_empty() {
        return Err(match pages.len() {
            0 => Fault::BrokenPdf("it has no pages".into()),
            all if unreadable.len() == all => Fault::BrokenPdf("none of its pages can be read".into()),
            all => Fault::NoText { pages: all },
        });
    }
    if !unreadable.is_empty() {
        draft.note(format!(
            "{} could not be read and is left out",
            listed(&unreadable)
        ));
    }
    if !blank.is_empty() {
        draft.note(format!("no text on {}: scanned or empty", listed(&blank)));
    }
    Ok(draft)
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

fn pages_within(bytes: &[u8], options: &ReadOptions, limit: Duration) -> Result<Pages, Fault> {
    let too_slow = || Fault::TooSlow {
        seconds: limit.as_secs(),
    };
    let bytes: Arc<[u8]> = bytes.into();
    let deadline = Instant::now() + limit;
    let (sender, receiver) = mpsc::channel();
    let options = options.clone();
    thread::Builder::new()
        .name("pdf".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // The caller may have left already; then nobody wants the answer.
            let _ = sender.send(pages_until(&bytes, &options, deadline));
        })
        .map_err(|error| Fault::BrokenPdf(error.to_string()))?;
    receiver
        .recv_timeout(limit)
        .map_err(|_| too_slow())?
        .and_then(|pages| pages.ok_or_else(too_slow))
}

/// `None` when the deadline passed between two pages.
fn pages_until(bytes: &[u8], options: &ReadOptions, deadline: Instant) -> Result<Option<Pages>, Fault> {
    let Some(loaded) = quietly(|| load(bytes, options.password.as_deref())) else {
        return Err(Fault::BrokenPdf("its structure cannot be followed".into()));
    };
    let pdf = loaded?;
    let count = quietly(|| pdf.get_pages().len()).unwrap_or(0);
    let mut pages = Vec::new();
    for number in 1..=count {
        options.check()?;
        if Instant::now() > deadline {
            return Ok(None);
        }
        pages.push(quietly(|| page_text(&pdf, number as u32)).flatten());
    }
    Ok(Some(pages))
}

fn load(bytes: &[u8], password: Option<&str>) -> Result<Pdf, Fault> {
    let locked = if password.is_some() {
        Fault::WrongPassword
    } else {
        Fault::PasswordNeeded
    };
    let fault = |error| match error {
        PdfError::Decryption(_) | PdfError::InvalidPassword => locked.clone(),
        other => Fault::BrokenPdf(other.to_string()),
    };
    let mut pdf = Pdf::load_mem(bytes).map_err(fault)?;
    if pdf.is_encrypted() {
        // Many PDFs are encrypted with an empty password, only to forbid printing; those open.
        let opened = pdf.decrypt("");
        match password {
            Some(password) if opened.is_err() => pdf.decrypt(password),
            _ => opened,
        }
        .map_err(fault)?;
    }
    Ok(pdf)
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

/// Adds a page's paragraphs, with single spaces between words.
fn add_page(draft: &mut Draft, page: usize, text: &str) -> Result<(), Fault> {
    let mut paragraph: Vec<String> = Vec::new();
    for line in text.lines().chain([""]) {
        let line = one_line(line);
        if line.is_empty() {
            draft.block(&paragraph.join("\n"), Place::page(page))?;
            paragraph.clear();
        } else {
            paragraph.push(line);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Format;

    #[test]
    fn lines_and_paragraphs_of_a_page_are_kept() {
        let mut draft = Draft::new();
        add_page(&mut draft, 3, "An exam-\nple  of text\n\nNorth-\nSouth\n").unwrap();
        let document = draft.finish("a.pdf", Format::Pdf).unwrap();
        assert_eq!(document.text(), "An exam-\nple of text\n\nNorth-\nSouth");
        assert_eq!(document.blocks()[1].place.to_string(), "page 3");
    }

    #[test]
    fn a_panic_of_the_parser_is_an_error_and_stays_quiet() {
        assert_eq!(quietly(|| 7), Some(7));
        assert_eq!(quietly(|| -> u32 { panic!("this must not be printed") }), None);
        assert!(!QUIET.get());
    }

    #[test]
    fn a_pdf_that_takes_too_long_is_given_up() {
        let slow = pages_within(b"%PDF-1.4 nothing", &ReadOptions::default(), Duration::ZERO);
        assert!(matches!(slow, Err(Fault::TooSlow { .. } | Fault::BrokenPdf(_))));
    }
}
