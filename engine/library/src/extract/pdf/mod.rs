//! PDF: the text of each page, by pdf-extract; where that gives nothing or nonsense, by the characters as they are drawn; and where a
//! page is a picture, by recognition. One bad page does not lose the others.

mod bomb;
mod drawn;
mod letters;

use std::sync::Arc;
use std::time::Duration;

use hayro::hayro_syntax::Pdf as Drawing;
use image::RgbImage;
use pdf_extract::{Document as Pdf, Error as PdfError, PlainTextOutput, output_doc_page};

use super::draft::{Draft, one_line};
use super::guard::{LIMIT, Watch, guarded, quietly};
use crate::document::ReadOptions;
use crate::error::{Fault, GET_OCR};
use crate::ocr::Ocr;
use crate::place::Place;

const KIND: &str = "a PDF";
/// No page of text is longer; what is beyond is noise.
const PAGE_LIMIT_BYTES: usize = 4 << 20;
/// A page that takes longer to draw is left out.
const DRAWING_LIMIT: Duration = Duration::from_secs(60);
/// A page with fewer characters may have more than was found.
const FEW_CHARACTERS: usize = 600;
/// A page with fewer characters may be a picture with a stamp on it.
const STAMP_CHARACTERS: usize = 40;
/// What is drawn is taken when it has so many times as many characters.
const MANY_MORE: f64 = 1.3;
/// A page is a picture when pictures cover this share of it.
const PICTURE_SHARE: f64 = 0.3;
/// A page without any characters is one with less.
const BLANK_PICTURE_SHARE: f64 = 0.02;
/// A page with a larger picture is not drawn: it would take gigabytes.
const PICTURE_DOTS: u64 = 150_000_000;

/// How a page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has text.
    Text,
    /// It shows nothing.
    Blank,
    /// It is a picture.
    Picture,
    /// It shows letters, and nothing tells which they are.
    Shapes,
    /// It is a picture too large to be drawn.
    Huge,
    /// Neither way of reading could follow it.
    Unreadable,
}

#[derive(Debug)]
struct Page {
    text: String,
    state: State,
}

pub(super) fn read(bytes: &Arc<Vec<u8>>, options: &ReadOptions) -> Result<Draft, Fault> {
    let watch = Watch::new(options, LIMIT);
    let mut pages = guarded(KIND, Arc::clone(bytes), watch, pages)?;
    let mut draft = Draft::new();
    let mut recognised = Vec::new();
    for (index, page) in pages.iter_mut().enumerate() {
        options.check()?;
        if let (State::Picture | State::Shapes, Some(ocr)) = (page.state, &options.ocr) {
            match recognise(ocr, bytes, options, index) {
                Ok(paragraphs) if paragraphs.is_empty() && page.state == State::Shapes => {
                    page.state = State::Unreadable;
                }
                Ok(paragraphs) if paragraphs.is_empty() => page.state = State::Blank,
                Ok(paragraphs) => {
                    recognised.push(index + 1);
                    page.state = State::Text;
                    for paragraph in paragraphs {
                        draft.recognised(&paragraph, Place::page(index + 1))?;
                    }
                    continue;
                }
                Err(fault @ (Fault::Cancelled | Fault::OcrModels(_))) => return Err(fault),
                Err(_) => page.state = State::Unreadable,
            }
        }
        add_page(&mut draft, index + 1, &page.text)?;
    }
    if draft.is_empty() {
        return Err(without_text(&pages));
    }
    let numbers = |wanted: State| -> Vec<usize> {
        let is_wanted = |(_, page): &(usize, &Page)| page.state == wanted;
        pages
            .iter()
            .enumerate()
            .filter(is_wanted)
            .map(|(index, _)| index + 1)
            .collect()
    };
    for (before, pages, after) in [
        (
            "",
            numbers(State::Unreadable),
            " could not be read and is left out",
        ),
        ("no text on ", numbers(State::Blank), ""),
        ("", numbers(State::Huge), " is a picture too large to be read"),
        (
            "pictures whose text is not read on ",
            numbers(State::Picture),
            &format!("; get the models for that with: {GET_OCR}"),
        ),
        (
            "letters that do not tell which they are on ",
            numbers(State::Shapes),
            &format!("; get the models that recognise them with: {GET_OCR}"),
        ),
        (
            "text recognised in pictures (OCR) on ",
            recognised,
            "; letters may be wrong",
        ),
    ] {
        if !pages.is_empty() {
            draft.note(format!("{before}{}{after}", listed(&pages)));
        }
    }
    Ok(draft)
}

/// Why a PDF without any text has none.
fn without_text(pages: &[Page]) -> Fault {
    let count = |wanted: State| pages.iter().filter(|page| page.state == wanted).count();
    let all = pages.len();
    if all == 0 {
        Fault::BrokenPdf("it has no pages".into())
    } else if count(State::Picture) > 0 {
        Fault::NeedsOcr {
            what: format!(
                "a scan: {} of its {all} page(s) are pictures",
                count(State::Picture)
            ),
        }
    } else if count(State::Shapes) > 0 {
        Fault::NeedsOcr {
            what: format!(
                "a PDF whose letters do not tell which they are, on {} of its {all} page(s)",
                count(State::Shapes)
            ),
        }
    } else if count(State::Unreadable) == all {
        Fault::BrokenPdf("none of its pages can be read".into())
    } else if count(State::Huge) > 0 {
        Fault::BrokenPdf("its pages are pictures too large to be read".into())
    } else {
        Fault::NoText { pages: all }
    }
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

/// All pages, as far as they can be read without recognition.
fn pages(bytes: &Arc<Vec<u8>>, watch: &Watch) -> Result<Vec<Page>, Fault> {
    bomb::check(bytes, watch)?;
    let locked = if watch.password().is_some() {
        Fault::WrongPassword
    } else {
        Fault::PasswordNeeded
    };
    let mut drawing = Lazy::new(bytes, watch);
    let loaded = quietly(|| load(bytes, watch.password(), locked));
    let pdf = match loaded {
        Some(Ok(pdf)) => Some(pdf),
        Some(Err(fault @ (Fault::PasswordNeeded | Fault::WrongPassword))) => return Err(fault),
        Some(Err(fault)) => {
            if drawing.get().is_none() {
                return Err(fault);
            }
            None
        }
        None => None,
    };
    let count = match &pdf {
        Some(pdf) => quietly(|| pdf.get_pages().len()).unwrap_or(0),
        None => 0,
    };
    let count = match count {
        0 => drawing
            .get()
            .and_then(|drawing| quietly(|| drawing.pages().len()))
            .unwrap_or(0),
        count => count,
    };
    let mut pages = Vec::new();
    for index in 0..count {
        watch.check()?;
        let extracted = pdf
            .as_ref()
            .and_then(|pdf| quietly(|| page_text(pdf, index as u32 + 1)).flatten());
        pages.push(page(extracted, index, &mut drawing));
    }
    Ok(pages)
}

/// A page by what was extracted, where that is good, and else by what is drawn.
fn page(extracted: Option<String>, index: usize, drawing: &mut Lazy<'_>) -> Page {
    if let Some(text) = &extracted
        && characters(text) >= FEW_CHARACTERS
        && !is_nonsense(text)
    {
        return Page {
            text: extracted.unwrap_or_default(),
            state: State::Text,
        };
    }
    let shown = drawing
        .get()
        .and_then(|drawing| quietly(|| drawn::shown(drawing, index)));
    let Some(shown) = shown else {
        return Page {
            state: match &extracted {
                Some(text) if text.trim().is_empty() => State::Blank,
                Some(_) => State::Text,
                None => State::Unreadable,
            },
            text: extracted.unwrap_or_default(),
        };
    };
    let has_shapes = is_nonsense(&shown.text) || extracted.as_deref().is_some_and(is_nonsense);
    let [text, drawn] = [extracted.unwrap_or_default(), shown.text]
        .map(|text| if is_nonsense(&text) { String::new() } else { text });
    let text = if characters(&drawn) as f64 > MANY_MORE * characters(&text) as f64 {
        drawn
    } else {
        text
    };
    let found = characters(&text);
    let share = if found == 0 {
        BLANK_PICTURE_SHARE
    } else {
        PICTURE_SHARE
    };
    let state = if found < STAMP_CHARACTERS && shown.pictures >= share {
        if shown.largest_dots > PICTURE_DOTS {
            State::Huge
        } else {
            State::Picture
        }
    } else if found > 0 {
        State::Text
    } else if has_shapes {
        State::Shapes
    } else {
        State::Blank
    };
    Page { text, state }
}

/// Characters that can be seen.
fn characters(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// The PDF for drawing, opened when it is needed first.
struct Lazy<'a> {
    bytes: &'a Arc<Vec<u8>>,
    password: Option<&'a str>,
    opened: Option<Option<Drawing>>,
}

impl<'a> Lazy<'a> {
    fn new(bytes: &'a Arc<Vec<u8>>, watch: &'a Watch) -> Lazy<'a> {
        Lazy {
            bytes,
            password: watch.password(),
            opened: None,
        }
    }

    fn get(&mut self) -> Option<&Drawing> {
        let (bytes, password) = (self.bytes, self.password);
        self.opened
            .get_or_insert_with(|| quietly(|| drawn::open(bytes, password).ok()).flatten())
            .as_ref()
    }
}

/// The paragraphs recognised on a page (from 0).
fn recognise(
    ocr: &Ocr,
    bytes: &Arc<Vec<u8>>,
    options: &ReadOptions,
    index: usize,
) -> Result<Vec<String>, Fault> {
    let watch = Watch::new(options, DRAWING_LIMIT);
    let draw = move |bytes: &Arc<Vec<u8>>, watch: &Watch| -> Result<Option<RgbImage>, Fault> {
        let drawing = drawn::open(bytes, watch.password())?;
        Ok(drawn::picture(&drawing, index))
    };
    match guarded(KIND, Arc::clone(bytes), watch, draw)? {
        Some(picture) => ocr.paragraphs(&picture, &options.cancel),
        None => Ok(Vec::new()),
    }
}

fn load(bytes: &[u8], password: Option<&str>, locked: Fault) -> Result<Pdf, Fault> {
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

/// Whether too many characters mean nothing: a font that does not say which characters its shapes are.
fn is_nonsense(text: &str) -> bool {
    let (mut all, mut bad) = (0_usize, 0_usize);
    for character in text.chars().filter(|c| !c.is_whitespace()) {
        all += 1;
        let is_bad = character == '\u{fffd}'
            || character.is_control()
            || matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
        bad += usize::from(is_bad);
    }
    bad * 5 > all
}

/// Adds a page's paragraphs, with plain letters and single spaces between words.
fn add_page(draft: &mut Draft, page: usize, text: &str) -> Result<(), Fault> {
    let text = letters::plain(text);
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
    fn shapes_without_characters_are_nonsense() {
        assert!(is_nonsense("\u{f041}\u{f042} \u{fffd}"));
        assert!(!is_nonsense("Grüße, 世界 \u{f0b7}"));
        assert!(!is_nonsense(""));
    }
}
