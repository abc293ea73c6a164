//! Tile kernels for AVX-512 VNNI: sixteen rows to a vector, one instruction for a step's multiply and add. Held to
//! the portable twin by the tests on a machine that has it (run on a Xeon with AMX); its speed
//! has not been measured.

use super::{Tile, avx2};
use crate::packed::{Family, PANEL_ROWS};
use std::arch::x86_64::*;

/// # Safety
/// The tile's lengths are checked, and the machine has AVX-512 F, BW, VL and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
pub(super) unsafe fn run(tile: &mut Tile<'_>) {
    macro_rules! by_rows {
        ($offset:literal, $min:literal) => {
            // SAFETY: passed on from this function's contract.
            unsafe {
                match tile.rows {
                    1 => blocks::<1, $offset, $min>(tile),
                    2 => blocks::<2, $offset, $min>(tile),
                    3 => blocks::<3, $offset, $min>(tile),
                    4 => blocks::<4, $offset, $min>(tile),
                    5 => blocks::<5, $offset, $min>(tile),
                    _ => blocks::<6, $offset, $min>(tile),
                }
            }
        };
    }
    match tile.family {
        Family::Nibble => by_rows!(false, true),
        Family::Five => by_rows!(true, false),
        Family::FiveMin => by_rows!(true, true),
        // SAFETY: AVX-512 implies what these kernels need.
        _ => unsafe { avx2::run(tile) },
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn blocks<const ROWS: usize, const OFFSET: bool, const MIN: bool>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below: b < count, s < 8, t < ROWS.
    unsafe {
        let mut w = tile.panel_codes.as_ptr();
        let mut x = tile.codes.as_ptr().cast::<i32>();
        let acc = tile.accumulators.as_mut_ptr();
        for b in 0..tile.count {
            let mut sums = [_mm512_setzero_si512(); ROWS];
            if OFFSET {
                for (t, sum) in sums.iter_mut().enumerate() {
                    let start = tile.start16.as_ptr().add(2 * (b * ROWS + t));
                    *sum = _mm512_set1_epi32(i32::from(*start) + i32::from(*start.add(1)));
                }
            }
            for s in 0..8 {
                let ws = _mm512_loadu_si512(w.add(s * 64).cast());
                for (t, sum) in sums.iter_mut().enumerate() {
                    let xt = _mm512_set1_epi32(x.add(s * ROWS + t).read_unaligned());
                    *sum = _mm512_dpbusd_epi32(*sum, ws, xt);
                }
            }
            w = w.add(512);
            x = x.add(8 * ROWS);
            let scale = _mm512_loadu_ps(tile.weights.scale.as_ptr().add(b * PANEL_ROWS));
            for (t, sum) in sums.iter().enumerate() {
                let at = acc.add(t * PANEL_ROWS);
                let token_scale = _mm512_set1_ps(tile.scale[b * ROWS + t]);
                let product = _mm512_mul_ps(scale, token_scale);
                let mut a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(*sum), product, _mm512_loadu_ps(at));
                if MIN {
                    let min = _mm512_loadu_ps(tile.weights.min.as_ptr().add(b * PANEL_ROWS));
                    a = _mm512_fmadd_ps(min, _mm512_set1_ps(tile.sum[b * ROWS + t]), a);
                }
                _mm512_storeu_ps(at, a);
            }
        }
    }
}
