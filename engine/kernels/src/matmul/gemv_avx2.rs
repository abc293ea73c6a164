//! One to four tokens times packed weights, for AVX2: codes go from memory to registers and are multiplied there, without
//! the scratch that pays only when several tiles of tokens use it. The arithmetic and its order are those of the tile
//! kernels, so a token's result is the same to the last bit.

// Indices name the token of a register; iterators over several arrays at once would hide that.
#![allow(clippy::needless_range_loop)]

use super::Tile;
use crate::packed::PANEL_ROWS;
use crate::quant::QuantType;
use std::arch::x86_64::*;

/// A value for each row of a panel.
type Rows = [__m256; 2];

/// How a type's superblock is laid out: see `packed`. All functions are given a superblock and a block in it.
///
/// # Safety
/// Of every function: AVX2, FMA and F16C, and a whole superblock at `sb`.
trait Blocks {
    /// Bytes of a superblock.
    const BYTES: usize;
    /// Blocks of 32 values in a superblock.
    const COUNT: usize;
    /// Bytes of a block's codes.
    const CODES: usize;
    /// Whether codes have a fifth bit, and an offset of 16.
    const FIVE: bool;
    /// Whether there is a minimum.
    const MIN: bool;
    /// Scales and minima of the rows.
    unsafe fn scale_min(sb: *const u8, b: usize) -> (Rows, Rows);
}

/// 16 half-precision numbers.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn halves(at: *const u8) -> Rows {
    // SAFETY: the caller gives 32 bytes.
    unsafe {
        [
            _mm256_cvtph_ps(_mm_loadu_si128(at.cast())),
            _mm256_cvtph_ps(_mm_loadu_si128(at.add(16).cast())),
        ]
    }
}

/// 16 unsigned bytes as numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn numbers(bytes: __m128i) -> Rows {
    let low = _mm256_cvtepu8_epi32(bytes);
    let high = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes));
    [_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn times(a: Rows, b: Rows) -> Rows {
    [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])]
}

/// `min + 16 * scale`: what the offset of five-bit codes adds.
#[inline]
#[target_feature(enable = "avx2")]
fn with_offset(min: Rows, scale: Rows) -> Rows {
    let offset = times([_mm256_set1_ps(16.0); 2], scale);
    [_mm256_add_ps(min[0], offset[0]), _mm256_add_ps(min[1], offset[1])]
}

struct Q4_0;
struct Q4_1;
struct Q5_0;
struct Q5_1;
struct K4;
struct K5;

macro_rules! simple {
    ($name:ident, $bytes:literal, $codes:literal, $five:literal, $min:literal, |$scale:ident, $at:ident| $minimum:expr) => {
        impl Blocks for $name {
            const BYTES: usize = $bytes;
            const COUNT: usize = 1;
            const CODES: usize = $codes;
            const FIVE: bool = $five;
            const MIN: bool = $min;
            #[inline]
            #[target_feature(enable = "avx2,fma,f16c")]
            unsafe fn scale_min(sb: *const u8, _: usize) -> (Rows, Rows) {
                // SAFETY: the scales, and minima where there are any, follow the codes.
                unsafe {
                    let $at = sb.add(Self::CODES);
                    let $scale = halves($at);
                    ($scale, $minimum)
                }
            }
        }
    };
}

simple!(Q4_0, 288, 256, false, true, |scale, at| times(
    [_mm256_set1_ps(-8.0); 2],
    scale
));
simple!(Q4_1, 320, 256, false, true, |scale, at| halves(at.add(32)));
simple!(Q5_0, 352, 320, true, false, |scale, at| scale);
simple!(Q5_1, 384, 320, true, true, |scale, at| with_offset(
    halves(at.add(32)),
    scale
));

/// The six-bit scales and minima of Q4_K and Q5_K, which follow the codes of all eight blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn k_scale_min(at: *const u8, b: usize) -> (Rows, Rows) {
    // SAFETY: 8 x 16 bytes of low bits, 4 x 16 of high ones, and two times 16 halves.
    unsafe {
        let low = _mm_loadu_si128(at.add(b * 16).cast());
        let high = _mm_loadu_si128(at.add(128 + b / 2 * 16).cast());
        let high = _mm_srl_epi16(high, _mm_cvtsi32_si128(b as i32 % 2 * 4));
        let nibble = _mm_set1_epi8(15);
        let scale_high = _mm_slli_epi16::<4>(_mm_and_si128(high, _mm_set1_epi8(3)));
        let min_high = _mm_slli_epi16::<2>(_mm_and_si128(high, _mm_set1_epi8(12)));
        let scale = _mm_or_si128(_mm_and_si128(low, nibble), scale_high);
        let min = _mm_or_si128(_mm_and_si128(_mm_srli_epi16::<4>(low), nibble), min_high);
        let (d, dmin) = (halves(at.add(192)), halves(at.add(224)));
        let sign = _mm256_set1_ps(-0.0);
        let minus = [_mm256_xor_ps(dmin[0], sign), _mm256_xor_ps(dmin[1], sign)];
        (times(d, numbers(scale)), times(minus, numbers(min)))
    }
}

impl Blocks for K4 {
    const BYTES: usize = 2304;
    const COUNT: usize = 8;
    const CODES: usize = 256;
    const FIVE: bool = false;
    const MIN: bool = true;
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scale_min(sb: *const u8, b: usize) -> (Rows, Rows) {
        // SAFETY: passed on.
        unsafe { k_scale_min(sb.add(8 * Self::CODES), b) }
    }
}

impl Blocks for K5 {
    const BYTES: usize = 2816;
    const COUNT: usize = 8;
    const CODES: usize = 320;
    const FIVE: bool = true;
    const MIN: bool = true;
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn scale_min(sb: *const u8, b: usize) -> (Rows, Rows) {
        // SAFETY: passed on.
        let (scale, min) = unsafe { k_scale_min(sb.add(8 * Self::CODES), b) };
        (scale, with_offset(min, scale))
    }
}

/// Tokens these kernels take at once: as many as a decode call has lanes.
pub(super) const MOST_ROWS: usize = 4;

/// Computes a panel for a tile of up to [`MOST_ROWS`] tokens, adding to the tile's accumulators, straight from its packed
/// superblocks. False when the type has no such kernel.
///
/// # Safety
/// The machine has AVX2, FMA and F16C; the tile's lengths are checked; `packed` holds the tile's blocks in whole
/// superblocks of type `ty`.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn run(ty: QuantType, packed: &[u8], tile: &mut Tile<'_>) -> bool {
    // SAFETY: passed on.
    unsafe {
        match tile.rows {
            1 => rows::<1>(ty, packed, tile),
            2 => rows::<2>(ty, packed, tile),
            3 => rows::<3>(ty, packed, tile),
            4 => rows::<MOST_ROWS>(ty, packed, tile),
            _ => false,
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn rows<const ROWS: usize>(ty: QuantType, packed: &[u8], tile: &mut Tile<'_>) -> bool {
    // SAFETY: passed on.
    unsafe {
        match ty {
            QuantType::Q4_0 => blocks::<Q4_0, ROWS>(packed, tile),
            QuantType::Q4_1 => blocks::<Q4_1, ROWS>(packed, tile),
            QuantType::Q5_0 => blocks::<Q5_0, ROWS>(packed, tile),
            QuantType::Q5_1 => blocks::<Q5_1, ROWS>(packed, tile),
            QuantType::Q4K => blocks::<K4, ROWS>(packed, tile),
            QuantType::Q5K => blocks::<K5, ROWS>(packed, tile),
            QuantType::Q3K | QuantType::Q6K => grouped::<ROWS>(packed, tile),
            QuantType::Q8_0 => bytes::<ROWS>(packed, tile),
            _ => return false,
        }
    }
    true
}

/// `acc + f32(sum) * (scale * token scale)`, as the tile kernels compute it.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn add(acc: Rows, sums: [__m256i; 2], scale: Rows, token_scale: __m256) -> Rows {
    let [s0, s1] = times(scale, [token_scale; 2]);
    [
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[0]), s0, acc[0]),
        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[1]), s1, acc[1]),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn accumulators<const ROWS: usize>(tile: &Tile<'_>) -> [Rows; ROWS] {
    let mut rows = [[_mm256_setzero_ps(); 2]; ROWS];
    for (t, row) in rows.iter_mut().enumerate() {
        // SAFETY: a checked tile has 16 of them for each token.
        unsafe {
            let at = tile.accumulators.as_ptr().add(t * PANEL_ROWS);
            *row = [_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))];
        }
    }
    rows
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store<const ROWS: usize>(tile: &mut Tile<'_>, rows: [Rows; ROWS]) {
    for (t, row) in rows.iter().enumerate() {
        // SAFETY: a checked tile has 16 of them for each token.
        unsafe {
            let at = tile.accumulators.as_mut_ptr().add(t * PANEL_ROWS);
            _mm256_storeu_ps(at, row[0]);
            _mm256_storeu_ps(at.add(8), row[1]);
        }
    }
}

/// Asks for the memory some way ahead: further than the hardware looks by itself at the start of a panel.
#[inline]
#[target_feature(enable = "avx2")]
fn fetch_ahead(at: *const u8, bytes: usize) {
    const AHEAD: usize = 2048;
    for line in (0..bytes).step_by(64) {
        _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(AHEAD + line).cast());
    }
}

/// Moves bits `part..` of every byte to bit `to` and masks them.
#[inline]
#[target_feature(enable = "avx2")]
fn moved(bits: __m256i, part: i32, to: i32, mask: __m256i) -> __m256i {
    let left = _mm256_sll_epi16(bits, _mm_cvtsi32_si128((to - part).max(0)));
    _mm256_and_si256(
        _mm256_srl_epi16(left, _mm_cvtsi32_si128((part - to).max(0))),
        mask,
    )
}

#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn blocks<B: Blocks, const ROWS: usize>(packed: &[u8], tile: &mut Tile<'_>) {
    // SAFETY: `packed` holds the superblocks of `tile.count` blocks, and `Tile::check` holds for the activations.
    unsafe {
        let mut acc = accumulators::<ROWS>(tile);
        let nibble = _mm256_set1_epi8(15);
        let bit = _mm256_set1_epi8(16);
        let ones = _mm256_set1_epi16(1);
        for (i, sb) in packed.chunks_exact(B::BYTES).enumerate() {
            for b in 0..B::COUNT {
                let at = i * B::COUNT + b;
                let w = sb.as_ptr().add(b * B::CODES);
                fetch_ahead(w, B::BYTES / B::COUNT);
                let x = tile.codes.as_ptr().cast::<i32>().add(at * 8 * ROWS);
                let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
                let mut bits = [_mm256_setzero_si256(); 2];
                if B::FIVE {
                    let start = tile.start16.as_ptr().cast::<i32>().add(at * ROWS);
                    for t in 0..ROWS {
                        sums[t] = [_mm256_set1_epi32(start.add(t).read_unaligned()); 2];
                    }
                    bits = [
                        _mm256_loadu_si256(w.add(256).cast()),
                        _mm256_loadu_si256(w.add(288).cast()),
                    ];
                }
                for s in 0..8 {
                    let both = _mm256_loadu_si256(w.add(s * 32).cast());
                    let mut low = _mm256_and_si256(both, nibble);
                    let mut high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), nibble);
                    if B::FIVE {
                        low = _mm256_or_si256(low, moved(bits[0], s as i32, 4, bit));
                        high = _mm256_or_si256(high, moved(bits[1], s as i32, 4, bit));
                    }
                    for t in 0..ROWS {
                        let xs = _mm256_set1_epi32(x.add(s * ROWS + t).read_unaligned());
                        sums[t] = [
                            _mm256_add_epi16(sums[t][0], _mm256_maddubs_epi16(low, xs)),
                            _mm256_add_epi16(sums[t][1], _mm256_maddubs_epi16(high, xs)),
                        ];
                    }
                }
                let (scale, min) = B::scale_min(sb.as_ptr(), b);
                for t in 0..ROWS {
                    let sums = [
                        _mm256_madd_epi16(sums[t][0], ones),
                        _mm256_madd_epi16(sums[t][1], ones),
                    ];
                    let token_scale = _mm256_set1_ps(*tile.scale.as_ptr().add(at * ROWS + t));
                    acc[t] = add(acc[t], sums, scale, token_scale);
                    if B::MIN {
                        let sum = _mm256_set1_ps(*tile.sum.as_ptr().add(at * ROWS + t));
                        acc[t] = [
                            _mm256_fmadd_ps(min[0], sum, acc[t][0]),
                            _mm256_fmadd_ps(min[1], sum, acc[t][1]),
                        ];
                    }
                }
            }
        }
        store(tile, acc);
    }
}

/// Q6_K and Q3_K.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn grouped<const ROWS: usize>(packed: &[u8], tile: &mut Tile<'_>) {
    const CODES: usize = 384;
    const BYTES: usize = 8 * CODES + 256 + 32;
    // SAFETY: as in `blocks`.
    unsafe {
        let mut acc = accumulators::<ROWS>(tile);
        let nibble = _mm256_set1_epi8(15);
        let two_bits = _mm256_set1_epi8(48);
        // Each of eight bytes twice.
        let twice = _mm_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
        for (i, sb) in packed.chunks_exact(BYTES).enumerate() {
            let scales = sb.as_ptr().add(8 * CODES);
            let d = halves(scales.add(256));
            for b in 0..8 {
                let at = i * 8 + b;
                let w = sb.as_ptr().add(b * CODES);
                fetch_ahead(w, BYTES / 8);
                let x = tile.codes.as_ptr().cast::<i32>().add(at * 8 * ROWS);
                let mut totals = [[_mm256_setzero_si256(); 2]; ROWS];
                for half in 0..2 {
                    let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
                    let start = tile.start32.as_ptr().cast::<i32>();
                    for t in 0..ROWS {
                        let start = start.add((2 * at + half) * ROWS + t).read_unaligned();
                        sums[t] = [_mm256_set1_epi32(start); 2];
                    }
                    let bits = [
                        _mm256_loadu_si256(w.add(256 + half * 32).cast()),
                        _mm256_loadu_si256(w.add(256 + 64 + half * 32).cast()),
                    ];
                    for s in 0..4 {
                        let step = half * 4 + s;
                        let both = _mm256_loadu_si256(w.add(step * 32).cast());
                        let part = s as i32 * 2;
                        let low = _mm256_or_si256(
                            _mm256_and_si256(both, nibble),
                            moved(bits[0], part, 4, two_bits),
                        );
                        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), nibble);
                        let high = _mm256_or_si256(high, moved(bits[1], part, 4, two_bits));
                        for t in 0..ROWS {
                            let xs = _mm256_set1_epi32(x.add(step * ROWS + t).read_unaligned());
                            sums[t] = [
                                _mm256_add_epi16(sums[t][0], _mm256_maddubs_epi16(low, xs)),
                                _mm256_add_epi16(sums[t][1], _mm256_maddubs_epi16(high, xs)),
                            ];
                        }
                    }
                    let group = _mm_loadu_si128(scales.add((b * 2 + half) * 16).cast());
                    let first = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(group, twice));
                    let second =
                        _mm256_cvtepi8_epi16(_mm_shuffle_epi8(_mm_unpackhi_epi64(group, group), twice));
                    for t in 0..ROWS {
                        totals[t] = [
                            _mm256_add_epi32(totals[t][0], _mm256_madd_epi16(sums[t][0], first)),
                            _mm256_add_epi32(totals[t][1], _mm256_madd_epi16(sums[t][1], second)),
                        ];
                    }
                }
                for t in 0..ROWS {
                    let token_scale = _mm256_set1_ps(*tile.scale.as_ptr().add(at * ROWS + t));
                    acc[t] = add(acc[t], totals[t], d, token_scale);
                }
            }
        }
        store(tile, acc);
    }
}

/// Q8_0.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn bytes<const ROWS: usize>(packed: &[u8], tile: &mut Tile<'_>) {
    const BYTES: usize = 512 + 2 * PANEL_ROWS;
    // SAFETY: as in `blocks`.
    unsafe {
        let mut acc = accumulators::<ROWS>(tile);
        let ones = _mm256_set1_epi16(1);
        for (at, block) in packed.chunks_exact(BYTES).enumerate() {
            let w = block.as_ptr();
            fetch_ahead(w, BYTES);
            let x = tile.codes.as_ptr().cast::<i32>().add(at * 8 * ROWS);
            let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
            for s in 0..8 {
                for half in 0..2 {
                    let codes = _mm256_loadu_si256(w.add(s * 64 + half * 32).cast());
                    let size = _mm256_abs_epi8(codes);
                    for t in 0..ROWS {
                        let xs = _mm256_set1_epi32(x.add(s * ROWS + t).read_unaligned());
                        let product = _mm256_maddubs_epi16(size, _mm256_sign_epi8(xs, codes));
                        sums[t][half] = _mm256_add_epi32(sums[t][half], _mm256_madd_epi16(product, ones));
                    }
                }
            }
            let scale = halves(w.add(512));
            for t in 0..ROWS {
                let token_scale = _mm256_set1_ps(*tile.scale.as_ptr().add(at * ROWS + t));
                acc[t] = add(acc[t], sums[t], scale, token_scale);
            }
        }
        store(tile, acc);
    }
}
