//! Tile kernels for AVX-512 VNNI: sixteen rows to a vector, one instruction for a step's multiply and add. There are
//! registers enough to keep a tile's sums in them from the first block to the last. The operations on floats are those
//! of the plain twin in its order; the tests hold both together to the last bit.

use super::Tile;
use crate::packed::{Family, PANEL_ROWS};
use std::arch::x86_64::*;

/// # Safety
/// The tile's lengths are checked, and the machine has AVX-512 F, BW, VL and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn run(tile: &mut Tile<'_>) {
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
        Family::Grouped => by_rows!(grouped, false),
        Family::GroupedMin => by_rows!(grouped, true),
        Family::Byte => by_rows!(bytes),
        Family::Float => by_rows!(floats),
    }
}

/// The tile's sums so far.
///
/// # Safety
/// AVX-512 F; the tile has `ROWS` rows of accumulators.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_sums<const ROWS: usize>(tile: &Tile<'_>) -> [__m512; ROWS] {
    let mut sums = [_mm512_setzero_ps(); ROWS];
    for (t, sum) in sums.iter_mut().enumerate() {
        // SAFETY: by contract.
        *sum = unsafe { _mm512_loadu_ps(tile.accumulators.as_ptr().add(t * PANEL_ROWS)) };
    }
    sums
}

/// # Safety
/// As [`load_sums`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_sums<const ROWS: usize>(tile: &mut Tile<'_>, sums: &[__m512; ROWS]) {
    for (t, &sum) in sums.iter().enumerate() {
        // SAFETY: by contract.
        unsafe { _mm512_storeu_ps(tile.accumulators.as_mut_ptr().add(t * PANEL_ROWS), sum) };
    }
}

/// Adds a step's products: four codes of each of sixteen rows, and four activations of each token.
///
/// # Safety
/// AVX-512 F and VNNI; four bytes can be read for each token.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn add_products<const ROWS: usize>(codes: __m512i, x: *const i32, sums: &mut [__m512i; ROWS]) {
    for (t, sum) in sums.iter_mut().enumerate() {
        // SAFETY: by contract.
        let activations = _mm512_set1_epi32(unsafe { x.add(t).read_unaligned() });
        *sum = _mm512_dpbusd_epi32(*sum, codes, activations);
    }
}

/// Adds a block's sums times the rows' and the tokens' scales.
///
/// # Safety
/// AVX-512 F; `Tile::check` holds for block `b`, and the tile has `ROWS` rows.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn add_scaled<const ROWS: usize>(
    tile: &Tile<'_>,
    b: usize,
    sums: &[__m512i; ROWS],
    acc: &mut [__m512; ROWS],
) {
    // SAFETY: by contract.
    unsafe {
        let scale = _mm512_loadu_ps(tile.weights.scale.as_ptr().add(b * PANEL_ROWS));
        let token_scale = tile.scale.as_ptr().add(b * ROWS);
        for (t, (acc, &sum)) in acc.iter_mut().zip(sums).enumerate() {
            let product = _mm512_mul_ps(scale, _mm512_set1_ps(*token_scale.add(t)));
            *acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), product, *acc);
        }
    }
}

/// Adds one number of each row times one of each token.
///
/// # Safety
/// AVX-512 F; sixteen numbers can be read at `rows`, `ROWS` at `tokens`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn add_floats<const ROWS: usize>(rows: *const f32, tokens: *const f32, acc: &mut [__m512; ROWS]) {
    // SAFETY: by contract.
    unsafe {
        let rows = _mm512_loadu_ps(rows);
        for (t, acc) in acc.iter_mut().enumerate() {
            *acc = _mm512_fmadd_ps(rows, _mm512_set1_ps(*tokens.add(t)), *acc);
        }
    }
}

/// Two numbers added up, in every lane.
///
/// # Safety
/// AVX-512 F; two numbers can be read.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn broadcast_pair(at: *const i16) -> __m512i {
    // SAFETY: by contract.
    let [first, second] = unsafe { at.cast::<[i16; 2]>().read_unaligned() };
    _mm512_set1_epi32(i32::from(first) + i32::from(second))
}

/// # Safety
/// As [`run`]; `ROWS` is the tile's rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn blocks<const ROWS: usize, const OFFSET: bool, const MIN: bool>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below: b < count, s < 8, t < ROWS.
    unsafe {
        let mut w = tile.panel_codes.as_ptr();
        let mut x = tile.codes.as_ptr().cast::<i32>();
        let mut acc = load_sums::<ROWS>(tile);
        for b in 0..tile.count {
            let mut sums = [_mm512_setzero_si512(); ROWS];
            if OFFSET {
                for (t, sum) in sums.iter_mut().enumerate() {
                    *sum = broadcast_pair(tile.start16.as_ptr().add(2 * (b * ROWS + t)));
                }
            }
            for s in 0..8 {
                add_products(
                    _mm512_loadu_si512(w.add(s * 64).cast()),
                    x.add(s * ROWS),
                    &mut sums,
                );
            }
            w = w.add(512);
            x = x.add(8 * ROWS);
            add_scaled(tile, b, &sums, &mut acc);
            if MIN {
                add_floats(
                    tile.weights.min.as_ptr().add(b * PANEL_ROWS),
                    tile.sum.as_ptr().add(b * ROWS),
                    &mut acc,
                );
            }
        }
        store_sums(tile, &acc);
    }
}

/// Six-bit codes: each half block's sum, less its offset, times an integer scale.
///
/// # Safety
/// As [`run`]; `ROWS` is the tile's rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn grouped<const ROWS: usize, const MIN: bool>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below.
    unsafe {
        let mut w = tile.panel_codes.as_ptr();
        let mut x = tile.codes.as_ptr().cast::<i32>();
        let mut acc = load_sums::<ROWS>(tile);
        for b in 0..tile.count {
            let mut sums = [_mm512_setzero_si512(); ROWS];
            for half in 2 * b..2 * b + 2 {
                let mut group = [_mm512_setzero_si512(); ROWS];
                for (t, sum) in group.iter_mut().enumerate() {
                    *sum = broadcast_pair(tile.start32.as_ptr().add(2 * (half * ROWS + t)));
                }
                for s in 0..4 {
                    add_products(
                        _mm512_loadu_si512(w.add(s * 64).cast()),
                        x.add(s * ROWS),
                        &mut group,
                    );
                }
                w = w.add(256);
                x = x.add(4 * ROWS);
                // Each scale stands there twice, in 16 bits: the upper one becomes the 32-bit number.
                let scales = tile.weights.group_scale.as_ptr().add(half * PANEL_ROWS * 2);
                let scales = _mm512_srai_epi32::<16>(_mm512_loadu_si512(scales.cast()));
                for (sum, group) in sums.iter_mut().zip(group) {
                    *sum = _mm512_add_epi32(*sum, _mm512_mullo_epi32(group, scales));
                }
            }
            add_scaled(tile, b, &sums, &mut acc);
            if MIN {
                for half in 2 * b..2 * b + 2 {
                    let min = tile.weights.min.as_ptr().add(half * PANEL_ROWS);
                    add_floats(min, tile.half_sum.as_ptr().add(half * ROWS), &mut acc);
                }
            }
        }
        store_sums(tile, &acc);
    }
}

/// Signed codes: 128 more than they are, which makes them unsigned; sums begin at as much less, eight times the
/// activations' sum times -16 that tiles have at hand.
///
/// # Safety
/// As [`run`]; `ROWS` is the tile's rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn bytes<const ROWS: usize>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below.
    unsafe {
        let mut w = tile.panel_codes.as_ptr();
        let mut x = tile.codes.as_ptr().cast::<i32>();
        let sign = _mm512_set1_epi8(i8::MIN);
        let mut acc = load_sums::<ROWS>(tile);
        for b in 0..tile.count {
            let mut sums = [_mm512_setzero_si512(); ROWS];
            for (t, sum) in sums.iter_mut().enumerate() {
                let start = broadcast_pair(tile.start16.as_ptr().add(2 * (b * ROWS + t)));
                *sum = _mm512_slli_epi32::<3>(start);
            }
            for s in 0..8 {
                let ws = _mm512_xor_si512(_mm512_loadu_si512(w.add(s * 64).cast()), sign);
                add_products(ws, x.add(s * ROWS), &mut sums);
            }
            w = w.add(tile.code_stride);
            x = x.add(8 * ROWS);
            add_scaled(tile, b, &sums, &mut acc);
        }
        store_sums(tile, &acc);
    }
}

/// # Safety
/// As [`run`]; `ROWS` is the tile's rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn floats<const ROWS: usize>(tile: &mut Tile<'_>) {
    // SAFETY: `Tile::check` holds for every offset below.
    unsafe {
        let (w, x) = (tile.weights.floats.as_ptr(), tile.floats.as_ptr());
        let mut acc = load_sums::<ROWS>(tile);
        for k in 0..tile.count {
            add_floats(w.add(k * PANEL_ROWS), x.add(k * ROWS), &mut acc);
        }
        store_sums(tile, &acc);
    }
}
