//! Picture files: their text is recognised, where the models for that are there.

use std::io::Cursor;
use std::sync::Arc;

use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};

use super::draft::Draft;
use super::guard::{LIMIT, Watch, guarded};
use crate::document::ReadOptions;
use crate::error::Fault;
use crate::ocr::SIDE_DOTS;
use crate::place::Place;

pub(crate) const KIND: &str = "a picture";
/// Pictures with a longer side are refused.
const LARGEST_SIDE_DOTS: u32 = 30_000;
/// A picture may take this much memory when it is unpacked.
const LIMIT_BYTES: u64 = 512 << 20;

/// Whether a file is a picture that can be read.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    matches!(
        image::guess_format(bytes),
        Ok(ImageFormat::Png
            | ImageFormat::Jpeg
            | ImageFormat::WebP
            | ImageFormat::Tiff
            | ImageFormat::Gif
            | ImageFormat::Bmp)
    )
}

pub(super) fn read(bytes: &Arc<Vec<u8>>, options: &ReadOptions) -> Result<Draft, Fault> {
    let Some(ocr) = &options.ocr else {
        return Err(Fault::NeedsOcr { what: KIND.into() });
    };
    let watch = Watch::new(options, LIMIT);
    let picture = guarded(KIND, Arc::clone(bytes), watch, |bytes, _| unpacked(bytes))?;
    let paragraphs = ocr.paragraphs(&picture, &options.cancel)?;
    if paragraphs.is_empty() {
        return Err(Fault::NothingRecognised);
    }
    let mut draft = Draft::new();
    let mut first = 1;
    for paragraph in paragraphs {
        let last = first + paragraph.matches('\n').count();
        draft.recognised(&paragraph, Place::Lines { first, last })?;
        // A blank line stands between two paragraphs.
        first = last + 2;
    }
    draft.note("the text was recognised in a picture (OCR); letters may be wrong");
    Ok(draft)
}

fn unpacked(bytes: &[u8]) -> Result<RgbImage, Fault> {
    let broken = |error: &dyn std::fmt::Display| Fault::Broken {
        kind: KIND.into(),
        why: error.to_string(),
    };
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| broken(&error))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(LARGEST_SIDE_DOTS);
    limits.max_image_height = Some(LARGEST_SIDE_DOTS);
    limits.max_alloc = Some(LIMIT_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| broken(&error))?;
    if decoder.total_bytes() > LIMIT_BYTES {
        return Err(Fault::UnpacksTooLarge {
            limit_mib: LIMIT_BYTES >> 20,
        });
    }
    // Cameras note how they were held.
    let orientation = decoder.orientation();
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| broken(&error))?;
    if let Ok(orientation) = orientation {
        picture.apply_orientation(orientation);
    }
    if picture.width().max(picture.height()) > SIDE_DOTS {
        picture = picture.resize(SIDE_DOTS, SIDE_DOTS, FilterType::Triangle);
    }
    Ok(on_white(picture))
}

/// A picture without transparency: what shines through is paper.
fn on_white(picture: DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.into_rgb8();
    }
    let picture = picture.into_rgba8();
    RgbImage::from_fn(picture.width(), picture.height(), |x, y| {
        let [red, green, blue, alpha] = picture.get_pixel(x, y).0;
        let mixed = |colour: u8| {
            let (colour, alpha) = (u16::from(colour), u16::from(alpha));
            ((colour * alpha + 255 * (255 - alpha)) / 255) as u8
        };
        image::Rgb([mixed(red), mixed(green), mixed(blue)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of a PNG that says it is so large.
    fn claiming(width: u32, height: u32) -> Vec<u8> {
        let mut chunk = b"IHDR".to_vec();
        chunk.extend(width.to_be_bytes());
        chunk.extend(height.to_be_bytes());
        // Eight bits of red, green and blue.
        chunk.extend([8, 2, 0, 0, 0]);
        let mut check = flate2::Crc::new();
        check.update(&chunk);
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
        bytes.extend(chunk);
        bytes.extend(check.sum().to_be_bytes());
        // Decoders look for the first dots before they tell a size.
        bytes.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e");
        bytes
    }

    #[test]
    fn pictures_that_claim_to_be_huge_are_refused_unseen() {
        for (width, height) in [(u32::MAX >> 1, 1), (40_000, 40_000), (29_000, 29_000)] {
            let bytes = claiming(width, height);
            assert!(looks_like(&bytes));
            let refused = unpacked(&bytes).unwrap_err().to_string();
            assert!(
                refused.contains("limit") || refused.contains("unpacks to more"),
                "{width} x {height}: {refused}"
            );
        }
        let small = unpacked(&claiming(20, 20)).unwrap_err();
        assert!(matches!(small, Fault::Broken { .. }), "{small}");
    }

    #[test]
    fn what_shines_through_is_paper() {
        let clear = image::RgbaImage::from_pixel(2, 1, image::Rgba([0, 0, 0, 0]));
        assert_eq!(on_white(clear.into()).get_pixel(0, 0).0, [255; 3]);
    }
}
