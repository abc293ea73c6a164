//! The plain twin of every tile kernel.

use super::Tile;
use crate::packed::{Family, PANEL_ROWS};

pub(super) fn run(tile: &mut Tile<'_>) {
    match tile.family {
        Family::Nibble => blocks(tile, 0, true),
        Family::Five => blocks(tile, 16, false),
        Family::FiveMin => blocks(tile, 16, true),
        Family::Grouped => grouped(tile, false),
        Family::GroupedMin => grouped(tile, true),
        Family::Byte => bytes(tile),
        Family::Float => floats(tile),
    }
}

/// The sum over steps `steps` of block `b` of (code - offset) times activation, for token `t` and row `r`.
fn dot(
    tile: &Tile<'_>,
    b: usize,
    steps: std::ops::Range<usize>,
    t: usize,
    r: usize,
    offset: i32,
    signed: bool,
) -> i32 {
    let mut sum = 0;
    for s in steps {
        for j in 0..4 {
            let code = tile.panel_codes[b * tile.code_stride + (s * PANEL_ROWS + r) * 4 + j];
            let code = if signed {
                i32::from(code as i8)
            } else {
                i32::from(code) - offset
            };
            sum += code * i32::from(tile.codes[((b * 8 + s) * tile.rows + t) * 4 + j]);
        }
    }
    sum
}

fn blocks(tile: &mut Tile<'_>, offset: i32, has_min: bool) {
    for b in 0..tile.count {
        for t in 0..tile.rows {
            for r in 0..PANEL_ROWS {
                let sum = dot(tile, b, 0..8, t, r, offset, false);
                let scale = tile.weights.scale[b * PANEL_ROWS + r] * tile.scale[b * tile.rows + t];
                let acc = &mut tile.accumulators[t * PANEL_ROWS + r];
                *acc = (sum as f32).mul_add(scale, *acc);
                if has_min {
                    *acc = tile.weights.min[b * PANEL_ROWS + r].mul_add(tile.sum[b * tile.rows + t], *acc);
                }
            }
        }
    }
}

fn grouped(tile: &mut Tile<'_>, has_min: bool) {
    for b in 0..tile.count {
        for t in 0..tile.rows {
            for r in 0..PANEL_ROWS {
                let [low, high] = [0, 1].map(|half| {
                    let scale = i32::from(tile.weights.group_scale[((2 * b + half) * PANEL_ROWS + r) * 2]);
                    scale * dot(tile, b, half * 4..half * 4 + 4, t, r, 32, false)
                });
                let scale = tile.weights.scale[b * PANEL_ROWS + r] * tile.scale[b * tile.rows + t];
                let acc = &mut tile.accumulators[t * PANEL_ROWS + r];
                *acc = ((low + high) as f32).mul_add(scale, *acc);
                if has_min {
                    for half in 0..2 {
                        let min = tile.weights.min[(2 * b + half) * PANEL_ROWS + r];
                        *acc = min.mul_add(tile.half_sum[(2 * b + half) * tile.rows + t], *acc);
                    }
                }
            }
        }
    }
}

fn bytes(tile: &mut Tile<'_>) {
    for b in 0..tile.count {
        for t in 0..tile.rows {
            for r in 0..PANEL_ROWS {
                let sum = dot(tile, b, 0..8, t, r, 0, true);
                let scale = tile.weights.scale[b * PANEL_ROWS + r] * tile.scale[b * tile.rows + t];
                let acc = &mut tile.accumulators[t * PANEL_ROWS + r];
                *acc = (sum as f32).mul_add(scale, *acc);
            }
        }
    }
}

fn floats(tile: &mut Tile<'_>) {
    for k in 0..tile.count {
        for t in 0..tile.rows {
            for r in 0..PANEL_ROWS {
                let acc = &mut tile.accumulators[t * PANEL_ROWS + r];
                *acc = tile.floats[k * tile.rows + t].mul_add(tile.weights.floats[k * PANEL_ROWS + r], *acc);
            }
        }
    }
}
