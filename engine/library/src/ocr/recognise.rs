//! Reads a line of text: the line is cut out of the picture and made as high as the recogniser wants it; the recogniser gives each
//! column's most likely character, and repetitions of one are one.

use std::path::Path;

use image::RgbImage;
use rten::Model;
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

use super::detect::Area;

/// The recogniser's height.
const HEIGHT: usize = 48;
/// Lines are cut out no wider; longer ones are squeezed.
const WIDTHS: std::ops::RangeInclusive<f32> = 32.0..=3_200.0;
/// A character takes eight dots of width, so that a column more does not matter and shapes repeat.
const WIDTH_STEP: usize = 8;
/// The recogniser leaves out many spaces between small letters. A gap between two letters is one when it has at least so many dots,
/// and so many more than twice the line's usual gap: wide letters stand apart, too.
const SPACE_DOTS: usize = 6;
const SPACE_DOTS_BEYOND_USUAL: usize = 3;
/// A column is part of a gap when it differs from the paper by less than this part of what ink does.
const INK_SHARE: f32 = 0.35;
/// From here on scripts are written without spaces.
const WITHOUT_SPACES: char = '\u{2e80}';

pub(super) struct Recogniser {
    model: Model,
    /// What each of the model's classes means; the first is none.
    characters: Vec<String>,
}

/// A line that was read.
pub(super) struct Read {
    pub(super) text: String,
    /// The mean probability of its characters.
    pub(super) certainty: f32,
}

impl Recogniser {
    pub(super) fn load(model: &Path, characters: &Path) -> Result<Recogniser, String> {
        let told = |file: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let list = std::fs::read_to_string(characters).map_err(|error| told(characters, &error))?;
        Ok(Recogniser {
            model: Model::load_file(model).map_err(|error| told(model, &error))?,
            characters: list
                .split('\n')
                .map(|line| line.trim_end_matches('\r').to_string())
                .collect(),
        })
    }

    pub(super) fn read(&self, picture: &RgbImage, area: &Area) -> Result<Read, String> {
        let wanted =
            (HEIGHT as f32 * area.length / area.height.max(1.0)).clamp(*WIDTHS.start(), *WIDTHS.end());
        let width = (wanted.ceil() as usize).next_multiple_of(WIDTH_STEP);
        let across = [-area.along[1], area.along[0]];
        let input = NdTensor::from_fn([1, 3, HEIGHT, width], |[_, channel, y, x]| {
            let u = ((x as f32 + 0.5) / wanted - 0.5) * area.length;
            let v = ((y as f32 + 0.5) / HEIGHT as f32 - 0.5) * area.height;
            if u > area.length / 2.0 {
                return 0.0;
            }
            let at = [
                area.center[0] + u * area.along[0] + v * across[0],
                area.center[1] + u * area.along[1] + v * across[1],
            ];
            // The models were trained on blue, green, red.
            (sampled(picture, at, 2 - channel) / 255.0 - 0.5) / 0.5
        });
        let gaps = gaps(input.slice((0, 1)));
        let output = self
            .model
            .run_one(input.into(), None)
            .map_err(|error| format!("the recogniser failed: {error}"))?;
        let columns: NdTensor<f32, 3> = output
            .try_into()
            .map_err(|_| "the recogniser gave something else than columns".to_string())?;
        let [_, steps, classes] = columns.shape();
        if classes > self.characters.len() + 1 {
            return Err(format!(
                "the recogniser knows {classes} characters and its list has {}",
                self.characters.len()
            ));
        }
        // Characters, and the gap before each.
        let mut read: Vec<(&str, usize)> = Vec::new();
        let (mut sum, mut count, mut before) = (0.0_f32, 0_usize, 0_usize);
        let mut last_dot = 0;
        for step in 0..steps {
            let (class, probability) = (0..classes).map(|class| (class, columns[[0, step, class]])).fold(
                (0, f32::MIN),
                |best, next| if next.1 > best.1 { next } else { best },
            );
            if class != 0 && class != before {
                let character = self.characters.get(class).map_or(" ", String::as_str);
                let dot = (2 * step + 1) * width / (2 * steps.max(1));
                read.push((character, widest(&gaps, last_dot, dot)));
                last_dot = dot;
                sum += probability;
                count += 1;
            }
            before = class;
        }
        Ok(Read {
            text: with_spaces(&read),
            certainty: sum / count.max(1) as f32,
        })
    }
}

/// Which columns of a line have no ink.
fn gaps(line: NdTensorView<'_, f32, 2>) -> Vec<bool> {
    let [height, width] = line.shape();
    let mut values: Vec<f32> = line.iter().copied().collect();
    let middle = values.len() / 2;
    let paper = *values.select_nth_unstable_by(middle, f32::total_cmp).1;
    let ink = |x: usize| {
        (0..height)
            .map(|y| (line[[y, x]] - paper).abs())
            .fold(0.0_f32, f32::max)
    };
    let inks: Vec<f32> = (0..width).map(ink).collect();
    let most = inks.iter().copied().fold(0.0_f32, f32::max);
    inks.iter().map(|&ink| ink < INK_SHARE * most).collect()
}

/// The longest run of gaps between two columns.
fn widest(gaps: &[bool], from: usize, to: usize) -> usize {
    gaps.get(from..to)
        .unwrap_or_default()
        .split(|is_gap| !is_gap)
        .map(<[bool]>::len)
        .max()
        .unwrap_or_default()
}

/// The text of characters that were read with the gap before each, with the spaces that were left out between letters.
fn with_spaces(read: &[(&str, usize)]) -> String {
    let has_spaces = |character: &str| {
        let letter = character.chars().next();
        letter.is_some_and(|c| !c.is_whitespace() && !c.is_ascii_digit() && c < WITHOUT_SPACES)
    };
    let may_be_apart =
        |pair: &[(&str, usize)]| (has_spaces(pair[0].0) && has_spaces(pair[1].0)).then_some(pair[1].1);
    let mut usual: Vec<usize> = read.windows(2).filter_map(may_be_apart).collect();
    usual.sort_unstable();
    let usual = usual.get(usual.len() / 2).copied().unwrap_or_default();
    let least = SPACE_DOTS.max(2 * usual + SPACE_DOTS_BEYOND_USUAL);
    let mut text: String = read.first().map_or("", |first| first.0).to_owned();
    for pair in read.windows(2) {
        if may_be_apart(pair).is_some_and(|gap| gap >= least) {
            text.push(' ');
        }
        text.push_str(pair[1].0);
    }
    text
}

/// A picture's colour between its dots; white around it.
fn sampled(picture: &RgbImage, [x, y]: [f32; 2], channel: usize) -> f32 {
    let (x, y) = (x - 0.5, y - 0.5);
    let (left, top) = (x.floor(), y.floor());
    let (right_part, bottom_part) = (x - left, y - top);
    let dot = |x: f32, y: f32| {
        let (width, height) = picture.dimensions();
        if x < 0.0 || y < 0.0 || x >= width as f32 || y >= height as f32 {
            return 255.0;
        }
        f32::from(picture.get_pixel(x as u32, y as u32).0[channel])
    };
    let row = |y: f32| dot(left, y) * (1.0 - right_part) + dot(left + 1.0, y) * right_part;
    row(top) * (1.0 - bottom_part) + row(top + 1.0) * bottom_part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_stand_where_gaps_are_wider_than_usual() {
        let line = |text: &'static str, gaps: &[usize]| -> String {
            let characters = text.split("").filter(|c| !c.is_empty());
            with_spaces(&characters.zip(gaps.iter().copied()).collect::<Vec<_>>())
        };
        assert_eq!(line("tobe", &[0, 2, 9, 2]), "to be");
        assert_eq!(line("wide", &[0, 6, 6, 6]), "wide", "wide letters");
        assert_eq!(line("in1999", &[0, 2, 12, 12, 2, 2]), "in1999", "digits");
        assert_eq!(line("日本", &[0, 20]), "日本");
        assert_eq!(line("", &[]), "");
    }
}
