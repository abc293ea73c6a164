//! A page as it is drawn: the characters it shows, in the order and at the places they are shown, whether pictures cover it, and the
//! page as a picture. It helps where a page's text cannot be had in the usual way.

use std::sync::Arc;

use hayro::hayro_interpret::font::{Glyph, GlyphRun};
use hayro::hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro::hayro_interpret::util::TransformExt;
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, interpret_page,
};
use hayro::hayro_syntax::DecryptionError;
use hayro::hayro_syntax::{LoadPdfError, Pdf};
use hayro::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};
use image::RgbImage;

use super::PAGE_LIMIT_BYTES;
use crate::error::Fault;

/// How finely a page is drawn for recognition.
const DOTS_PER_INCH: f32 = 200.0;
/// A page's longer side is drawn with no more dots than this, however large it says it is.
const SIDE_DOTS: f32 = 2_600.0;
/// A page that draws more shapes and no characters has its letters as shapes.
const SHAPES: usize = 300;

/// Opens a PDF for drawing.
pub(super) fn open(bytes: &Arc<Vec<u8>>, password: Option<&str>) -> Result<Pdf, Fault> {
    let open = |password: &str| Pdf::new_with_password(Arc::clone(bytes), password);
    let opened = match (open(""), password) {
        (Err(LoadPdfError::Decryption(_)), Some(password)) => open(password),
        (opened, _) => opened,
    };
    opened.map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) if password.is_some() => {
            Fault::WrongPassword
        }
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => Fault::PasswordNeeded,
        LoadPdfError::Decryption(other) => {
            Fault::BrokenPdf(format!("its encryption is not understood: {other:?}"))
        }
        LoadPdfError::Invalid => Fault::BrokenPdf("its structure cannot be followed".into()),
    })
}

/// What a page shows.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Its characters, line by line.
    pub(super) text: String,
    /// How much of it pictures cover, 0 to 1, or letters drawn as shapes.
    pub(super) pictures: f64,
    /// The dots of its largest picture.
    pub(super) largest_dots: u64,
}

/// What a page (from 0) shows; nothing where there is no such page.
pub(super) fn shown(pdf: &Pdf, index: usize) -> Shown {
    let Some(page) = pdf.pages().get(index) else {
        return Shown::default();
    };
    let (width, height) = page.render_dimensions();
    let cache = InterpreterCache::new();
    let mut context = Context::new(
        page.initial_transform(true).to_kurbo(),
        Rect::new(0.0, 0.0, f64::from(width), f64::from(height)),
        &cache,
        pdf.xref(),
        InterpreterSettings::default(),
    );
    let mut reader = Reader {
        page_area: f64::from(width) * f64::from(height),
        ..Reader::default()
    };
    interpret_page(page, &mut context, &mut reader);
    if reader.shapes > SHAPES && reader.shown.text.trim().is_empty() {
        reader.shown.pictures = 1.0;
    }
    reader.shown
}

/// A page (from 0) as a picture; `None` where there is no such page.
pub(super) fn picture(pdf: &Pdf, index: usize) -> Option<RgbImage> {
    let page = pdf.pages().get(index)?;
    let (width, height) = page.render_dimensions();
    let longer = width.max(height).max(1.0);
    let scale = (DOTS_PER_INCH / 72.0).min(SIDE_DOTS / longer);
    let pixmap = render(
        page,
        &RenderCache::new(),
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &PixmapSettings {
            x_scale: scale,
            y_scale: scale,
            bg_color: WHITE,
        },
    );
    let (width, height) = (u32::from(pixmap.width()), u32::from(pixmap.height()));
    let bytes = pixmap
        .data_as_u8_slice()
        .chunks_exact(4)
        .flat_map(|dot| dot.iter().take(3).copied())
        .collect();
    RgbImage::from_raw(width, height, bytes)
}

/// Where the last character stood.
struct Last {
    end: Point,
    /// The direction of reading.
    along: Vec2,
    size: f64,
}

#[derive(Default)]
struct Reader {
    shown: Shown,
    page_area: f64,
    shapes: usize,
    last: Option<Last>,
}

/// Parts of a character's size: a gap of the first is a space, a step aside of the second a new line, of the third a paragraph.
const SPACE: f64 = 0.2;
const LINE: f64 = 0.5;
const PARAGRAPH: f64 = 1.8;

impl Reader {
    fn glyph(&mut self, glyph: &Glyph<'_>, transform: Affine, is_vertical: bool) {
        let advance = match glyph {
            Glyph::Outline(glyph) => glyph.advance_width(),
            Glyph::Type3(glyph) => glyph.advance_width(),
        };
        let text = match glyph.as_unicode() {
            Some(BfString::Char(character)) => character.to_string(),
            Some(BfString::String(text)) => text,
            None => "\u{fffd}".to_string(),
        };
        if self.shown.text.len() + text.len() + 2 > PAGE_LIMIT_BYTES {
            return;
        }
        let at = transform * Point::ZERO;
        let up = transform * Point::new(0.0, 1000.0) - at;
        let right = transform * Point::new(1000.0, 0.0) - at;
        let (along, size) = if is_vertical {
            (-up, right.hypot())
        } else {
            (right, up.hypot())
        };
        if !(size.is_finite() && size > 0.0 && along.hypot() > 0.0) {
            return;
        }
        let along = along / along.hypot();
        if let Some(last) = &self.last {
            let step = at - last.end;
            let forward = step.dot(last.along);
            let aside = step.cross(last.along).abs();
            let size = size.max(last.size);
            let joint = if aside > PARAGRAPH * size {
                "\n\n"
            } else if aside > LINE * size || forward < -3.0 * size {
                "\n"
            } else if forward > SPACE * size && !self.shown.text.ends_with(char::is_whitespace) {
                " "
            } else {
                ""
            };
            self.shown.text.push_str(joint);
        }
        self.shown.text.push_str(&text);
        let length = if is_vertical {
            1000.0
        } else {
            f64::from(advance.unwrap_or(500.0))
        };
        let scale = if is_vertical { up.hypot() } else { right.hypot() } / 1000.0;
        self.last = Some(Last {
            end: at + along * (length * scale),
            along,
            size,
        });
    }
}

impl<'a> Device<'a> for Reader {
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        self.shapes += 1;
    }
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        let is_vertical = matches!(run.writing_mode(), WritingMode::Vertical);
        for glyph in run.glyphs() {
            self.glyph(glyph, props.transform * glyph.transform(), is_vertical);
        }
    }
    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        // The transform places a picture of as many units as it has dots.
        let dots = u64::from(image.width()) * u64::from(image.height());
        self.shown.largest_dots = self.shown.largest_dots.max(dots);
        let share = props.transform.determinant().abs() * dots as f64 / self.page_area.max(1.0);
        self.shown.pictures = (self.shown.pictures + share).min(1.0);
    }
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_any_size_is_drawn_within_bounds() {
        for size in [
            "595 842",
            "1000000000 1000000000",
            "1000000000 1",
            "1 14400",
            "0 0",
        ] {
            let pdf = format!(
                "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n\
                 2 0 obj <</Type/Pages/Count 1/Kids[3 0 R]>> endobj\n\
                 3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 {size}]>> endobj\n\
                 trailer <</Root 1 0 R>>\n%%EOF"
            );
            let pdf = open(&Arc::new(pdf.into_bytes()), None).unwrap();
            if let Some(picture) = picture(&pdf, 0) {
                let side = picture.width().max(picture.height());
                assert!(side <= SIDE_DOTS as u32 + 1, "{size}: {side}");
            }
        }
    }
}
