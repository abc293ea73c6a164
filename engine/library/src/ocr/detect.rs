//! Finds lines of text: the detector gives each dot's probability to be text; dots that belong together become rectangles, which
//! may be turned a little.

use std::path::Path;

use image::RgbImage;
use image::imageops::{FilterType, resize};
use rten::Model;
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

/// The detector sees a picture at most this large; its time and memory grow with the area.
const SIDE_DOTS: u32 = 1_280;
/// The network halves its input five times.
const STEP: u32 = 32;
/// A dot is text from this probability on.
const DOT_PROBABILITY: f32 = 0.3;
/// A line is one when its dots have this probability on average.
const LINE_PROBABILITY: f32 = 0.6;
/// The detector marks the core of a line; it is widened by this part of its area over its circumference.
const WIDEN: f32 = 1.6;
/// Smaller cores are specks.
const LEAST_SIDE_DOTS: f32 = 3.0;
/// No page has more lines.
const LINES: usize = 2_000;
/// What the detector was trained with: mean and spread of blue, green and red.
const MEANS: [f32; 3] = [0.485, 0.456, 0.406];
const SPREADS: [f32; 3] = [0.229, 0.224, 0.225];

pub(super) struct Detector(Model);

/// A rectangle that may be turned, in dots of the picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Area {
    pub(super) center: [f32; 2],
    /// Unit vector along the line of text.
    pub(super) along: [f32; 2],
    pub(super) length: f32,
    pub(super) height: f32,
}

/// Left, top, right, bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) right: f32,
    pub(super) bottom: f32,
}

impl Area {
    /// The upright rectangle around it.
    pub(super) fn bounds(&self) -> Bounds {
        let [x, y] = self.along;
        let half_width = (x.abs() * self.length + y.abs() * self.height) / 2.0;
        let half_height = (y.abs() * self.length + x.abs() * self.height) / 2.0;
        Bounds {
            left: self.center[0] - half_width,
            top: self.center[1] - half_height,
            right: self.center[0] + half_width,
            bottom: self.center[1] + half_height,
        }
    }
}

impl Detector {
    pub(super) fn load(file: &Path) -> Result<Detector, String> {
        Model::load_file(file)
            .map(Detector)
            .map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The lines of text in a picture, in no particular order.
    pub(super) fn areas(&self, picture: &RgbImage) -> Result<Vec<Area>, String> {
        let (width, height) = picture.dimensions();
        if width == 0 || height == 0 {
            return Ok(Vec::new());
        }
        let scale = (SIDE_DOTS as f32 / width.max(height) as f32).min(1.0);
        let side = |dots: u32| ((dots as f32 * scale / STEP as f32).round() as u32).max(1) * STEP;
        let (seen_width, seen_height) = (side(width), side(height));
        let seen = resize(picture, seen_width, seen_height, FilterType::Triangle);
        let shape = [1, 3, seen_height as usize, seen_width as usize];
        let input = NdTensor::from_fn(shape, |[_, channel, y, x]| {
            // The models were trained on blue, green, red.
            let value = seen.get_pixel(x as u32, y as u32).0[2 - channel];
            (f32::from(value) / 255.0 - MEANS[channel]) / SPREADS[channel]
        });
        let output = self
            .0
            .run_one(input.into(), None)
            .map_err(|error| format!("the detector failed: {error}"))?;
        let map: NdTensor<f32, 4> = output
            .try_into()
            .map_err(|_| "the detector gave something else than a map".to_string())?;
        let scale = [
            width as f32 / seen_width as f32,
            height as f32 / seen_height as f32,
        ];
        Ok(areas_in(map.slice((0, 0)), scale))
    }
}

/// The areas in a map of probabilities, in dots of a picture that is so many times larger.
fn areas_in(map: NdTensorView<'_, f32, 2>, scale: [f32; 2]) -> Vec<Area> {
    let [height, width] = map.shape();
    let is_text = |x: usize, y: usize| map[[y, x]] > DOT_PROBABILITY;
    let mut seen = vec![false; width * height];
    let mut areas = Vec::new();
    let mut queue: Vec<(usize, usize)> = Vec::new();
    for start in 0..width * height {
        let (x, y) = (start % width, start / width);
        if seen[start] || !is_text(x, y) || areas.len() >= LINES {
            continue;
        }
        seen[start] = true;
        queue.push((x, y));
        // The outline of a patch is in the ends of its rows.
        let mut ends: Vec<[f32; 2]> = Vec::new();
        let (mut sum, mut dots) = (0.0_f32, 0_usize);
        while let Some((x, y)) = queue.pop() {
            sum += map[[y, x]];
            dots += 1;
            let mut is_end = false;
            for (dx, dy) in [
                (-1_isize, 0_isize),
                (1, 0),
                (0, -1),
                (0, 1),
                (-1, -1),
                (1, 1),
                (-1, 1),
                (1, -1),
            ] {
                let (Some(near_x), Some(near_y)) = (x.checked_add_signed(dx), y.checked_add_signed(dy))
                else {
                    is_end = true;
                    continue;
                };
                if near_x >= width || near_y >= height || !is_text(near_x, near_y) {
                    is_end = true;
                    continue;
                }
                let near = near_y * width + near_x;
                if !seen[near] {
                    seen[near] = true;
                    queue.push((near_x, near_y));
                }
            }
            if is_end {
                ends.push([x as f32 + 0.5, y as f32 + 0.5]);
            }
        }
        if sum / (dots as f32) < LINE_PROBABILITY {
            continue;
        }
        if let Some(core) = smallest_rectangle(ends)
            && core.height >= LEAST_SIDE_DOTS
        {
            areas.push(scaled(widened(core), scale));
        }
    }
    areas
}

fn widened(mut area: Area) -> Area {
    let by = area.length * area.height * WIDEN / (area.length + area.height);
    area.length += by;
    area.height += by;
    area
}

fn scaled(area: Area, [x, y]: [f32; 2]) -> Area {
    let along = [area.along[0] * x, area.along[1] * y];
    let across = [-area.along[1] * x, area.along[0] * y];
    let (longer, higher) = (along[0].hypot(along[1]), across[0].hypot(across[1]));
    Area {
        center: [area.center[0] * x, area.center[1] * y],
        along: [along[0] / longer, along[1] / longer],
        length: area.length * longer,
        height: area.height * higher,
    }
}

/// The rectangle with the smallest area around points; one of its sides lies on the points' hull.
fn smallest_rectangle(points: Vec<[f32; 2]>) -> Option<Area> {
    let hull = hull(points);
    let mut best: Option<(f32, Area)> = None;
    for index in 0..hull.len() {
        let (from, to) = (hull[index], hull[(index + 1) % hull.len()]);
        let side = [to[0] - from[0], to[1] - from[1]];
        let length = side[0].hypot(side[1]);
        if length == 0.0 {
            continue;
        }
        let along = [side[0] / length, side[1] / length];
        let extent = |direction: [f32; 2]| {
            hull.iter()
                .map(|point| point[0] * direction[0] + point[1] * direction[1])
                .fold((f32::MAX, f32::MIN), |(least, most), at| {
                    (least.min(at), most.max(at))
                })
        };
        let across = [-along[1], along[0]];
        let ((u0, u1), (v0, v1)) = (extent(along), extent(across));
        let (u, v) = (f32::midpoint(u0, u1), f32::midpoint(v0, v1));
        // A dot has a size of its own.
        let (length, height) = (u1 - u0 + 1.0, v1 - v0 + 1.0);
        let area = length * height;
        if best.as_ref().is_none_or(|(least, _)| area < *least) {
            let center = [u * along[0] + v * across[0], u * along[1] + v * across[1]];
            best = Some((
                area,
                upright(Area {
                    center,
                    along,
                    length,
                    height,
                }),
            ));
        }
    }
    best.map(|(_, area)| area)
}

/// The same rectangle with its direction of reading to the right, or downwards where it is a good deal higher than wide.
fn upright(mut area: Area) -> Area {
    let turn = |area: &mut Area| {
        area.along = [-area.along[1], area.along[0]];
        std::mem::swap(&mut area.length, &mut area.height);
    };
    if area.along[0].abs() < area.along[1].abs() {
        turn(&mut area);
    }
    if area.along[0] < 0.0 {
        area.along = [-area.along[0], -area.along[1]];
    }
    if area.height > 1.8 * area.length {
        turn(&mut area);
    }
    area
}

/// The convex hull of points.
fn hull(mut points: Vec<[f32; 2]>) -> Vec<[f32; 2]> {
    points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    points.dedup();
    if points.len() < 2 {
        // A single dot is a rectangle too.
        return points
            .first()
            .map_or_else(Vec::new, |&[x, y]| vec![[x, y], [x + 0.5, y]]);
    }
    let turns_left = |a: [f32; 2], b: [f32; 2], c: [f32; 2]| {
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) > 0.0
    };
    let half = |points: &mut dyn Iterator<Item = [f32; 2]>| {
        let mut chain: Vec<[f32; 2]> = Vec::new();
        for point in points {
            while chain.len() >= 2 && !turns_left(chain[chain.len() - 2], chain[chain.len() - 1], point) {
                chain.pop();
            }
            chain.push(point);
        }
        chain.pop();
        chain
    };
    let mut hull = half(&mut points.iter().copied());
    hull.extend(half(&mut points.iter().rev().copied()));
    hull
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_widened_and_scaled_and_a_speck_is_not() {
        let map = NdTensor::from_fn([40, 100], |[y, x]| {
            let line = (10..20).contains(&y) && (20..80).contains(&x);
            let speck = y == 30 && x == 5;
            if line || speck { 0.9 } else { 0.0 }
        });
        let areas = areas_in(map.view(), [2.0, 2.0]);
        assert_eq!(areas.len(), 1);
        let bounds = areas[0].bounds();
        assert!(bounds.left < 40.0 && bounds.right > 160.0, "{bounds:?}");
        assert!(bounds.top < 20.0 && bounds.top > 0.0, "{bounds:?}");
        assert!(bounds.bottom > 40.0 && bounds.bottom < 60.0, "{bounds:?}");
    }

    #[test]
    fn a_turned_line_keeps_its_direction() {
        let map = NdTensor::from_fn([100, 100], |[y, x]| {
            let aside = (y as f32 - 20.0) - 0.3 * x as f32;
            if aside.abs() < 5.0 { 0.9 } else { 0.0 }
        });
        let area = &areas_in(map.view(), [1.0, 1.0])[0];
        let slope = area.along[1] / area.along[0];
        assert!((slope - 0.3).abs() < 0.05, "{area:?}");
    }
}
