//! Text recognition (OCR): lines of text out of a picture, by the PP-OCRv5 mobile models (a detector of lines, a recogniser of
//! characters), which the catalogue names and `reprise models fetch ocr` brings. They are loaded when the first picture comes.
//!
//! A picture's memory is bounded by its size, which callers keep below [`SIDE_DOTS`] a side; a cancel is honoured between two lines.

mod detect;
mod order;
mod recognise;

use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

use image::RgbImage;
use reprise_engine::CancelToken;

use crate::error::Fault;
use crate::models::Shelf;
use crate::models::catalogue::{self, OcrPart};
use detect::Detector;
use recognise::Recogniser;

/// Larger pictures are made smaller before they are read: letters that are legible at all stay so.
pub(crate) const SIDE_DOTS: u32 = 4_000;
/// Lines that were read with less certainty are noise or ornaments.
const LEAST_CERTAINTY: f32 = 0.6;

/// The recognition models.
pub struct Ocr {
    detector: PathBuf,
    recogniser: PathBuf,
    characters: PathBuf,
    loaded: OnceLock<Result<Loaded, String>>,
}

struct Loaded {
    detector: Detector,
    recogniser: Recogniser,
}

impl Ocr {
    /// The models of these files; nothing is read yet.
    pub fn new(detector: PathBuf, recogniser: PathBuf, characters: PathBuf) -> Ocr {
        Ocr {
            detector,
            recogniser,
            characters,
            loaded: OnceLock::new(),
        }
    }

    /// The catalogue's models, when all their files are on the shelf.
    pub fn on(shelf: &Shelf) -> Option<Ocr> {
        let entries = catalogue::ocr_entries().ok()?;
        let file = |part: OcrPart| {
            let entry = entries.iter().find(|entry| entry.part == part)?;
            shelf.path_of(&entry.file)
        };
        Some(Ocr::new(
            file(OcrPart::Detector)?,
            file(OcrPart::Recogniser)?,
            file(OcrPart::Characters)?,
        ))
    }

    /// The paragraphs in a picture, in reading order; a paragraph's lines are separated by line ends.
    pub(crate) fn paragraphs(&self, picture: &RgbImage, cancel: &CancelToken) -> Result<Vec<String>, Fault> {
        let stop = || {
            if cancel.is_cancelled() {
                Err(Fault::Cancelled)
            } else {
                Ok(())
            }
        };
        stop()?;
        let Loaded { detector, recogniser } = self
            .loaded
            .get_or_init(|| self.load())
            .as_ref()
            .map_err(|why| Fault::OcrModels(why.clone()))?;
        let areas = detector.areas(picture).map_err(Fault::OcrModels)?;
        let mut lines = Vec::new();
        for area in areas {
            stop()?;
            let line = recogniser.read(picture, &area).map_err(Fault::OcrModels)?;
            let text = line.text.trim();
            if line.certainty >= LEAST_CERTAINTY && !text.is_empty() {
                lines.push(order::Line {
                    bounds: area.bounds(),
                    text: text.to_string(),
                });
            }
        }
        Ok(order::paragraphs(lines))
    }

    fn load(&self) -> Result<Loaded, String> {
        Ok(Loaded {
            detector: Detector::load(&self.detector)?,
            recogniser: Recogniser::load(&self.recogniser, &self.characters)?,
        })
    }
}

impl fmt::Debug for Ocr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ocr")
            .field("detector", &self.detector)
            .field("is_loaded", &self.loaded.get().is_some())
            .finish_non_exhaustive()
    }
}
