//! Attention's inner loops for 64-bit Arm: the same sums in the same order as the plain loops, six query rows at a
//! time, so that results equal theirs to the last bit.
//!
//! Compiled for Linux and held to the plain loops under emulation (`tests/neon/run`); the speed on a real machine has
//! never been measured.

use super::{ROWS, TILE_KEYS};
use std::arch::aarch64::*;

/// Eight half-precision numbers as f32.
///
/// # Safety
/// Eight values can be read at `from`.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn widen(from: *const u16) -> [float32x4_t; 2] {
    // SAFETY: passed on from this function's contract.
    let eight = vreinterpretq_f16_u16(unsafe { vld1q_u16(from) });
    [vcvt_f32_f16(vget_low_f16(eight)), vcvt_high_f32_f16(eight)]
}

/// # Safety
/// `to` is at least as long as `from`.
#[target_feature(enable = "neon")]
pub(super) unsafe fn load_values(from: &[u16], to: &mut [f32]) {
    let whole = from.len() / 8 * 8;
    for i in (0..whole).step_by(8) {
        // SAFETY: i + 8 <= from.len() <= to.len().
        unsafe {
            let [low, high] = widen(from.as_ptr().add(i));
            vst1q_f32(to.as_mut_ptr().add(i), low);
            vst1q_f32(to.as_mut_ptr().add(i + 4), high);
        }
    }
    super::load_values_body(&from[whole..], &mut to[whole..]);
}

/// # Safety
/// `from` holds whole rows of `dim` (a multiple of 8), at most `TILE_KEYS`; `to` holds `dim * TILE_KEYS`.
#[target_feature(enable = "neon")]
pub(super) unsafe fn load_keys(from: &[u16], dim: usize, to: &mut [f32]) {
    let rows = from.len() / dim;
    for j in (0..rows).step_by(4) {
        for d in (0..dim).step_by(8) {
            // SAFETY: rows past the end read the last row again; j + 4 <= TILE_KEYS, d + 8 <= dim.
            unsafe {
                let row = |i: usize| widen(from.as_ptr().add((j + i).min(rows - 1) * dim + d));
                let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
                for side in 0..2 {
                    let turned = transpose([r0[side], r1[side], r2[side], r3[side]]);
                    for (i, column) in turned.into_iter().enumerate() {
                        vst1q_f32(to.as_mut_ptr().add((d + 4 * side + i) * TILE_KEYS + j), column);
                    }
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn transpose(r: [float32x4_t; 4]) -> [float32x4_t; 4] {
    let pairs = |a, b| {
        (
            vreinterpretq_f64_f32(vtrn1q_f32(a, b)),
            vreinterpretq_f64_f32(vtrn2q_f32(a, b)),
        )
    };
    let ((even01, odd01), (even23, odd23)) = (pairs(r[0], r[1]), pairs(r[2], r[3]));
    [
        vreinterpretq_f32_f64(vtrn1q_f64(even01, even23)),
        vreinterpretq_f32_f64(vtrn1q_f64(odd01, odd23)),
        vreinterpretq_f32_f64(vtrn2q_f64(even01, even23)),
        vreinterpretq_f32_f64(vtrn2q_f64(odd01, odd23)),
    ]
}

/// # Safety
/// Lengths as `super::scores` checks them.
#[target_feature(enable = "neon")]
pub(super) unsafe fn scores(queries: &[f32], keys: &[f32], dim: usize, out: &mut [f32]) {
    for j in (0..TILE_KEYS).step_by(16) {
        // SAFETY: d < dim, t < ROWS, v < 4, j + 16 <= TILE_KEYS.
        unsafe {
            let mut sums = [[vdupq_n_f32(0.0); 4]; ROWS];
            for d in 0..dim {
                let k = keys.as_ptr().add(d * TILE_KEYS + j);
                let keys = [
                    vld1q_f32(k),
                    vld1q_f32(k.add(4)),
                    vld1q_f32(k.add(8)),
                    vld1q_f32(k.add(12)),
                ];
                for (t, sums) in sums.iter_mut().enumerate() {
                    let query = *queries.as_ptr().add(d * ROWS + t);
                    for (sum, &key) in sums.iter_mut().zip(&keys) {
                        *sum = vfmaq_n_f32(*sum, key, query);
                    }
                }
            }
            for (t, sums) in sums.iter().enumerate() {
                for (v, &sum) in sums.iter().enumerate() {
                    vst1q_f32(out.as_mut_ptr().add(t * TILE_KEYS + j + 4 * v), sum);
                }
            }
        }
    }
}

/// # Safety
/// Lengths as `super::accumulate` checks them.
#[target_feature(enable = "neon")]
pub(super) unsafe fn accumulate(
    weights: &[f32],
    tile: &[f32],
    dim: usize,
    count: usize,
    rescale: &[f32; ROWS],
    values: &mut [f32],
) {
    // Eight dimensions at a time leave registers for four keys' weights of all six rows.
    for d in (0..dim).step_by(8) {
        // SAFETY: d + 8 <= dim, t < ROWS, j < count <= TILE_KEYS; four weights are loaded where j + 4 <= count.
        unsafe {
            let mut sums = [[vdupq_n_f32(0.0); 2]; ROWS];
            for (t, sum) in sums.iter_mut().enumerate() {
                let from = values.as_ptr().add(t * dim + d);
                *sum = [
                    vmulq_n_f32(vld1q_f32(from), rescale[t]),
                    vmulq_n_f32(vld1q_f32(from.add(4)), rescale[t]),
                ];
            }
            let whole = count / 4 * 4;
            for j in (0..whole).step_by(4) {
                let mut four = [vdupq_n_f32(0.0); ROWS];
                for (t, four) in four.iter_mut().enumerate() {
                    *four = vld1q_f32(weights.as_ptr().add(t * TILE_KEYS + j));
                }
                macro_rules! key {
                    ($lane:literal) => {
                        let v = tile.as_ptr().add((j + $lane) * dim + d);
                        let (v0, v1) = (vld1q_f32(v), vld1q_f32(v.add(4)));
                        for (sum, &w) in sums.iter_mut().zip(&four) {
                            *sum = [
                                vfmaq_laneq_f32::<$lane>(sum[0], v0, w),
                                vfmaq_laneq_f32::<$lane>(sum[1], v1, w),
                            ];
                        }
                    };
                }
                key!(0);
                key!(1);
                key!(2);
                key!(3);
            }
            for j in whole..count {
                let v = tile.as_ptr().add(j * dim + d);
                let (v0, v1) = (vld1q_f32(v), vld1q_f32(v.add(4)));
                for (t, sum) in sums.iter_mut().enumerate() {
                    let w = *weights.as_ptr().add(t * TILE_KEYS + j);
                    *sum = [vfmaq_n_f32(sum[0], v0, w), vfmaq_n_f32(sum[1], v1, w)];
                }
            }
            for (t, sum) in sums.iter().enumerate() {
                let to = values.as_mut_ptr().add(t * dim + d);
                vst1q_f32(to, sum[0]);
                vst1q_f32(to.add(4), sum[1]);
            }
        }
    }
}
