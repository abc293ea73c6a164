//! Tile kernels for 64-bit Arm with the dot-product extension: sixteen rows are four vectors, and one instruction
//! multiplies four rows' codes of a step by one token's four activations and adds the products up in i32.
//!
//! Codes are at most 63 and so read as signed bytes as they are. An offset is paid before the block begins, by a start
//! value that is the offset's negative times the sum of the activations. Six tokens take 24 accumulators, which with
//! four vectors of weights and two of activations fit the 32 registers.
//!
//! Compiled for Linux and held to the portable twin to the last bit under emulation (`tests/neon/run`); the speed on
//! a real machine has never been measured.

use super::Tile;
use crate::activations::TILE_ROWS;
use crate::packed::{CODE_BYTES, Family, PANEL_ROWS};
use std::arch::aarch64::*;
use std::arch::asm;

/// # Safety
/// The tile's lengths are checked, and the machine has the dot-product extension.
#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn run(tile: &mut Tile<'_>) {
    const { assert!(TILE_ROWS == 6 && PANEL_ROWS == 16) };
    macro_rules! by_rows {
        ($kernel:ident $(, $flag:literal)*) => {
            // SAFETY: passed on from this function's contract.
            unsafe {
                match tile.rows {
                    1 => $kernel::<1 $(, $flag)*>(tile),
                    2 => $kernel::<2 $(, $flag)*>(tile),
                    3 => $kernel::<3 $(, $flag)*>(tile),
                    4 => $kernel::<4 $(, $flag)*>(tile),
                    5 => $kernel::<5 $(, $flag)*>(tile),
                    _ => $kernel::<6 $(, $flag)*>(tile),
                }
            }
        };
    }
    match tile.family {
        Family::Nibble => by_rows!(blocks, false, true),
        Family::Five => by_rows!(blocks, true, false),
        Family::FiveMin => by_rows!(blocks, true, true),
        // Signed bytes differ from codes without an offset in nothing here.
        Family::Byte => by_rows!(blocks, false, false),
        Family::Grouped => by_rows!(grouped, false),
        Family::GroupedMin => by_rows!(grouped, true),
        Family::Float => by_rows!(floats),
    }
}

/// `sum` plus, lane by lane, the products of four weights by the four activations in lane `LANE` of `x`.
///
/// The standard library has this instruction, but not for stable compilers.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dot<const LANE: u32>(sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    let mut sum = sum;
    // SAFETY: the instruction reads and writes these registers alone, and callers have the extension.
    unsafe {
        asm!("sdot {sum:v}.4s, {w:v}.16b, {x:v}.4b[{lane}]",
            sum = inout(vreg) sum, w = in(vreg) w, x = in(vreg) x, lane = const LANE,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// One step's activations: tokens 0 to 3 in the first vector, 4 and 5 in the second.
///
/// # Safety
/// `4 * ROWS` bytes can be read.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn tokens<const ROWS: usize>(x: *const i8) -> [int8x16_t; 2] {
    // SAFETY: the loads of each arm together cover `4 * ROWS` bytes, no more.
    unsafe {
        let one = |t: usize| vdupq_n_s32(x.add(4 * t).cast::<i32>().read_unaligned());
        let two = |t: usize| {
            let both = vreinterpret_s32_s8(vld1_s8(x.add(4 * t)));
            vcombine_s32(both, both)
        };
        let four = || vreinterpretq_s32_s8(vld1q_s8(x));
        let [low, high] = match ROWS {
            1 => [one(0); 2],
            2 => [two(0); 2],
            3 => [vcombine_s32(vget_low_s32(two(0)), vget_low_s32(one(2))); 2],
            4 => [four(); 2],
            5 => [four(), one(4)],
            _ => [four(), two(4)],
        };
        [vreinterpretq_s8_s32(low), vreinterpretq_s8_s32(high)]
    }
}

/// One step: as many vectors of weights at `$w` as each row of `$sums` has, times the tokens' activations at `$x`,
/// added to `$sums`. A macro, because a call would take the sums through memory.
macro_rules! step {
    ($w:expr, $x:expr, $sums:ident) => {
        let [low, high] = tokens::<ROWS>($x);
        let mut weights = $sums[0].map(|_| vdupq_n_s8(0));
        for (v, weights) in weights.iter_mut().enumerate() {
            *weights = vld1q_s8($w.add(16 * v).cast());
        }
        step!(token 0, low, 0, weights, $sums);
        step!(token 1, low, 1, weights, $sums);
        step!(token 2, low, 2, weights, $sums);
        step!(token 3, low, 3, weights, $sums);
        step!(token 4, high, 0, weights, $sums);
        step!(token 5, high, 1, weights, $sums);
    };
    (token $t:literal, $x:ident, $lane:literal, $weights:ident, $sums:ident) => {
        if $t < ROWS {
            for (sum, &w) in $sums[$t].iter_mut().zip(&$weights) {
                *sum = dot::<$lane>(*sum, w, $x);
            }
        }
    };
}

/// The two halves of a start value, in every lane.
///
/// # Safety
/// Two values can be read.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn start(at: *const i16) -> int32x4_t {
    // SAFETY: passed on from this function's contract.
    vdupq_n_s32(unsafe { i32::from(*at) + i32::from(*at.add(1)) })
}

/// `acc + f32(sum) * (weight scale * token scale)` for four rows.
///
/// # Safety
/// Four values can be read at `acc` and `scale`.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn finish(acc: *const f32, sum: int32x4_t, scale: *const f32, token_scale: f32) -> float32x4_t {
    // SAFETY: passed on from this function's contract.
    unsafe {
        vfmaq_f32(
            vld1q_f32(acc),
            vcvtq_f32_s32(sum),
            vmulq_n_f32(vld1q_f32(scale), token_scale),
        )
    }
}

/// # Safety
/// As [`run`]; the tile has `ROWS` tokens.
#[target_feature(enable = "neon,dotprod")]
unsafe fn blocks<const ROWS: usize, const OFFSET: bool, const MIN: bool>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below: b < count, s < 8, t < ROWS, v < 4.
    unsafe {
        let mut w = tile.panel_codes.as_ptr();
        let mut x = tile.codes.as_ptr();
        let acc = tile.accumulators.as_mut_ptr();
        for b in 0..tile.count {
            let mut sums = [[vdupq_n_s32(0); 4]; ROWS];
            if OFFSET {
                for (t, sums) in sums.iter_mut().enumerate() {
                    *sums = [start(tile.start16.as_ptr().add(2 * (b * ROWS + t))); 4];
                }
            }
            for _ in 0..8 {
                step!(w, x, sums);
                w = w.add(64);
                x = x.add(4 * ROWS);
            }
            w = w.add(tile.code_stride - CODE_BYTES);
            let scale = tile.weights.scale.as_ptr().add(b * PANEL_ROWS);
            let min = tile.weights.min.as_ptr().add(b * PANEL_ROWS);
            for (t, sums) in sums.iter().enumerate() {
                let token_scale = *tile.scale.as_ptr().add(b * ROWS + t);
                let token_sum = *tile.sum.as_ptr().add(b * ROWS + t);
                for (v, &sum) in sums.iter().enumerate() {
                    let at = acc.add(t * PANEL_ROWS + 4 * v);
                    let mut a = finish(at, sum, scale.add(4 * v), token_scale);
                    if MIN {
                        a = vfmaq_n_f32(a, vld1q_f32(min.add(4 * v)), token_sum);
                    }
                    vst1q_f32(at, a);
                }
            }
        }
    }
}

/// # Safety
/// As [`run`]; the tile has `ROWS` tokens.
#[target_feature(enable = "neon,dotprod")]
unsafe fn grouped<const ROWS: usize, const MIN: bool>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below: b < count, side and half < 2, s < 4, t < ROWS, v < 2.
    unsafe {
        let acc = tile.accumulators.as_mut_ptr();
        for b in 0..tile.count {
            // Eight rows at a time: a half block's sums and the block's total both stay in registers.
            for side in 0..2 {
                let mut totals = [[vdupq_n_s32(0); 2]; ROWS];
                for half in 2 * b..2 * b + 2 {
                    let mut w = tile.panel_codes.as_ptr().add(half * 256 + side * 32);
                    let mut x = tile.codes.as_ptr().add(half * 16 * ROWS);
                    let mut sums = [[vdupq_n_s32(0); 2]; ROWS];
                    for (t, sums) in sums.iter_mut().enumerate() {
                        *sums = [start(tile.start32.as_ptr().add(2 * (half * ROWS + t))); 2];
                    }
                    for _ in 0..4 {
                        step!(w, x, sums);
                        w = w.add(64);
                        x = x.add(4 * ROWS);
                    }
                    let group = tile
                        .weights
                        .group_scale
                        .as_ptr()
                        .add((half * PANEL_ROWS + side * 8) * 2);
                    for v in 0..2 {
                        // A scale stands there twice; the upper one of a pair, moved down, is it with its sign.
                        let pairs = vreinterpretq_s32_s16(vld1q_s16(group.add(8 * v)));
                        let scales = vshrq_n_s32::<16>(pairs);
                        for (total, sum) in totals.iter_mut().zip(&sums) {
                            total[v] = vmlaq_s32(total[v], sum[v], scales);
                        }
                    }
                }
                let row = side * 8;
                let scale = tile.weights.scale.as_ptr().add(b * PANEL_ROWS + row);
                for (t, totals) in totals.iter().enumerate() {
                    let token_scale = *tile.scale.as_ptr().add(b * ROWS + t);
                    for (v, &total) in totals.iter().enumerate() {
                        let at = acc.add(t * PANEL_ROWS + row + 4 * v);
                        let mut a = finish(at, total, scale.add(4 * v), token_scale);
                        if MIN {
                            for half in 2 * b..2 * b + 2 {
                                let min = tile.weights.min.as_ptr().add(half * PANEL_ROWS + row + 4 * v);
                                a = vfmaq_n_f32(
                                    a,
                                    vld1q_f32(min),
                                    *tile.half_sum.as_ptr().add(half * ROWS + t),
                                );
                            }
                        }
                        vst1q_f32(at, a);
                    }
                }
            }
        }
    }
}

/// # Safety
/// As [`run`]; the tile has `ROWS` tokens.
#[target_feature(enable = "neon")]
unsafe fn floats<const ROWS: usize>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below: k < count, t < ROWS, v < 4.
    unsafe {
        let w = tile.weights.floats.as_ptr();
        let x = tile.floats.as_ptr();
        let acc = tile.accumulators.as_mut_ptr();
        let mut sums = [[vdupq_n_f32(0.0); 4]; ROWS];
        for (t, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = vld1q_f32(acc.add(t * PANEL_ROWS + 4 * v));
            }
        }
        for k in 0..tile.count {
            let mut weights = [vdupq_n_f32(0.0); 4];
            for (v, weights) in weights.iter_mut().enumerate() {
                *weights = vld1q_f32(w.add(k * PANEL_ROWS + 4 * v));
            }
            for (t, sums) in sums.iter_mut().enumerate() {
                let xt = *x.add(k * ROWS + t);
                for (sum, &w) in sums.iter_mut().zip(&weights) {
                    *sum = vfmaq_n_f32(*sum, w, xt);
                }
            }
        }
        for (t, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                vst1q_f32(acc.add(t * PANEL_ROWS + 4 * v), sum);
            }
        }
    }
}
