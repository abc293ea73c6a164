//! Turning for AVX2: the operations of the plain loops in their order, on whole vectors in registers where they fit.

use crate::half::{f16_to_f32, f32_to_f16};
use crate::kv::tq4::{Codebook, Side};
use crate::math::{RopePairs, rope_body};
use std::arch::x86_64::*;

/// As [`rope_body`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn rope(head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs) {
    if pairs == RopePairs::Halves || head.len() < 2 * cos.len() {
        return rope_body(head, cos, sin, pairs);
    }
    let (fours, rest) = cos.as_chunks::<4>();
    let (head, head_rest) = head.split_at_mut(8 * fours.len());
    let (sin_fours, sin_rest) = sin.as_chunks::<4>();
    let twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    for ((eight, cos), sin) in head.as_chunks_mut::<8>().0.iter_mut().zip(fours).zip(sin_fours) {
        // SAFETY: eight numbers of the head, four of each table.
        unsafe {
            let spread = |four: &[f32; 4]| {
                _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(four.as_ptr())), twice)
            };
            let x = _mm256_loadu_ps(eight.as_ptr());
            let swapped = _mm256_permute_ps::<0b10_11_00_01>(x);
            let (straight, across) = (_mm256_mul_ps(x, spread(cos)), _mm256_mul_ps(swapped, spread(sin)));
            _mm256_storeu_ps(eight.as_mut_ptr(), _mm256_addsub_ps(straight, across));
        }
    }
    rope_body(head_rest, rest, sin_rest, pairs);
}

/// # Safety
/// AVX2, FMA and F16C.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn turn_f16(run: &mut [u8], dim: usize, cos: &[f32], sin: &[f32], pairs: RopePairs) {
    let mut x = [0.0; 1_024];
    let x = &mut x[..dim];
    for vector in run.chunks_exact_mut(2 * dim) {
        let (halves, numbers) = (vector.as_chunks_mut::<16>().0, x.as_chunks_mut::<8>().0);
        for (half, x) in halves.iter().zip(numbers) {
            // SAFETY: eight halves, eight numbers.
            unsafe {
                _mm256_storeu_ps(
                    x.as_mut_ptr(),
                    _mm256_cvtph_ps(_mm_loadu_si128(half.as_ptr().cast())),
                )
            };
        }
        rope(x, cos, sin, pairs);
        for (half, x) in halves.iter_mut().zip(x.as_chunks::<8>().0) {
            // SAFETY: eight numbers, eight halves.
            unsafe {
                let eight = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(x.as_ptr()));
                _mm_storeu_si128(half.as_mut_ptr().cast(), eight);
            }
        }
    }
}

/// The unnormalised Walsh-Hadamard transform of `8 * N` numbers.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn hadamard<const N: usize>(x: &mut [__m256; N]) {
    let mut half = N / 2;
    while half > 0 {
        for block in x.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (_mm256_add_ps(*a, *b), _mm256_sub_ps(*a, *b));
            }
        }
        half /= 2;
    }
    // Within eight: every number is added to its partner's place, negated where it is the second of the two.
    let minus = |mask: i32| {
        let lane = |i: i32| if mask >> i & 1 == 1 { -0.0 } else { 0.0 };
        _mm256_setr_ps(
            lane(0),
            lane(1),
            lane(2),
            lane(3),
            lane(4),
            lane(5),
            lane(6),
            lane(7),
        )
    };
    let (fours, twos, ones) = (minus(0b1111_0000), minus(0b1100_1100), minus(0b1010_1010));
    for x in x {
        let a = *x;
        let a = _mm256_add_ps(_mm256_permute2f128_ps::<1>(a, a), _mm256_xor_ps(a, fours));
        let a = _mm256_add_ps(_mm256_permute_ps::<0b01_00_11_10>(a), _mm256_xor_ps(a, twos));
        *x = _mm256_add_ps(_mm256_permute_ps::<0b10_11_00_01>(a), _mm256_xor_ps(a, ones));
    }
}

/// The length of `8 * N` numbers, summed in the sixteen lanes of [`crate::math::lane_sum`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn length<const N: usize>(x: &[__m256; N]) -> f32 {
    let mut lanes = [_mm256_setzero_ps(); 2];
    for pair in x.as_chunks::<2>().0 {
        lanes[0] = _mm256_add_ps(lanes[0], _mm256_mul_ps(pair[0], pair[0]));
        lanes[1] = _mm256_add_ps(lanes[1], _mm256_mul_ps(pair[1], pair[1]));
    }
    let eight = _mm256_add_ps(lanes[0], lanes[1]);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two))).sqrt()
}

/// # Safety
/// AVX2, FMA and F16C; `run` holds vectors of `book.dim` = `8 * N` values.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn turn_tq4<const N: usize>(
    run: &mut [u8],
    book: &Codebook,
    cos: &[f32],
    sin: &[f32],
    pairs: RopePairs,
) {
    let signs = book.signs(Side::Key).as_chunks::<8>().0;
    let midpoints = book.midpoints();
    let low = _mm_set1_epi8(15);
    // SAFETY: sixteen centroids.
    let centroids = unsafe { _mm_loadu_si128(book.codes.as_ptr().cast()) };
    let mut numbers = [[0.0f32; 8]; N];
    let mut z = [[0u8; 16]; 16];
    let z = &mut z[..N / 2];
    for vector in run.chunks_exact_mut(4 * N + 2) {
        let (codes, unit) = vector.split_at_mut(4 * N);
        let codes = codes.as_chunks_mut::<8>().0;

        let norm = _mm256_set1_ps(f16_to_f32(u16::from_ne_bytes([unit[0], unit[1]])) * book.unit);
        let mut x = [_mm256_setzero_ps(); N];
        for (x, codes) in x.as_chunks_mut::<2>().0.iter_mut().zip(codes.iter()) {
            // SAFETY: eight bytes.
            let both = unsafe { _mm_loadl_epi64(codes.as_ptr().cast()) };
            let even = _mm_and_si128(both, low);
            let odd = _mm_and_si128(_mm_srli_epi16::<4>(both), low);
            let stand_for = _mm_shuffle_epi8(centroids, _mm_unpacklo_epi8(even, odd));
            let widen = |eight| _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)), norm);
            *x = [widen(stand_for), widen(_mm_unpackhi_epi64(stand_for, stand_for))];
        }
        hadamard(&mut x);
        for ((number, x), sign) in numbers.iter_mut().zip(x).zip(signs) {
            // SAFETY: eight numbers each.
            unsafe {
                _mm256_storeu_ps(
                    number.as_mut_ptr(),
                    _mm256_mul_ps(x, _mm256_loadu_ps(sign.as_ptr())),
                )
            };
        }
        rope(numbers.as_flattened_mut(), cos, sin, pairs);
        for ((number, x), sign) in numbers.iter().zip(&mut x).zip(signs) {
            // SAFETY: eight numbers each.
            unsafe { *x = _mm256_mul_ps(_mm256_loadu_ps(number.as_ptr()), _mm256_loadu_ps(sign.as_ptr())) };
        }
        hadamard(&mut x);

        let length = length(&x);
        let bounds: [f32; 15] = std::array::from_fn(|i| midpoints[i] * length);
        if !length.is_finite() {
            // Bounds are in no order then, and the search below would find what counting does not.
            for (number, x) in numbers.iter_mut().zip(x) {
                // SAFETY: eight numbers.
                unsafe { _mm256_storeu_ps(number.as_mut_ptr(), x) };
            }
            for (i, &y) in numbers.as_flattened().iter().enumerate() {
                z[i / 16][i % 16] = bounds.iter().filter(|&&bound| y > bound).count() as u8;
            }
        } else {
            search(&x, &bounds, z);
        }

        let mut squares = _mm256_setzero_si256();
        for (z, codes) in z.iter().zip(codes) {
            // SAFETY: sixteen bytes in, eight out.
            unsafe {
                let z = _mm_loadu_si128(z.as_ptr().cast());
                let wide = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(centroids, z));
                squares = _mm256_add_epi32(squares, _mm256_madd_epi16(wide, wide));
                let joined = _mm_maddubs_epi16(z, _mm_set1_epi16(0x1001));
                _mm_storel_epi64(codes.as_mut_ptr().cast(), _mm_packus_epi16(joined, joined));
            }
        }
        let four = _mm_add_epi32(
            _mm256_castsi256_si128(squares),
            _mm256_extracti128_si256::<1>(squares),
        );
        let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
        let squares = _mm_cvtsi128_si32(two) + _mm_extract_epi32::<1>(two);
        let norm = length / ((squares as f32).sqrt() * book.unit);
        unit.copy_from_slice(&f32_to_f16(if norm > 65_504.0 { 65_504.0 } else { norm }).to_ne_bytes());
    }
}

/// How many of the bounds, which ascend, are below each number: a search in four steps, halving what is left.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn search<const N: usize>(x: &[__m256; N], bounds: &[f32; 15], z: &mut [[u8; 16]]) {
    let b = bounds;
    let middle = _mm256_set1_ps(b[7]);
    let quarters = _mm256_setr_ps(b[3], b[11], b[3], b[11], b[3], b[11], b[3], b[11]);
    let eighths = _mm256_setr_ps(b[1], b[5], b[9], b[13], b[1], b[5], b[9], b[13]);
    let last = _mm256_setr_ps(b[0], b[2], b[4], b[6], b[8], b[10], b[12], b[14]);
    let find = |y: __m256| {
        // A comparison that holds is -1: each step doubles the count and takes it away.
        let above = |bound| _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GT_OQ>(y, bound));
        let count = _mm256_sub_epi32(_mm256_setzero_si256(), above(middle));
        let step = |count, table| {
            let bound = _mm256_permutevar8x32_ps(table, count);
            _mm256_sub_epi32(_mm256_add_epi32(count, count), above(bound))
        };
        step(step(step(count, quarters), eighths), last)
    };
    for (x, z) in x.as_chunks::<2>().0.iter().zip(z) {
        let words = _mm256_packs_epi32(find(x[0]), find(x[1]));
        // Packing works within halves: words of 0-3, 8-11, 4-7, 12-15.
        let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(words);
        let bytes = _mm_packus_epi16(
            _mm256_castsi256_si128(words),
            _mm256_extracti128_si256::<1>(words),
        );
        // SAFETY: sixteen bytes.
        unsafe { _mm_storeu_si128(z.as_mut_ptr().cast(), bytes) };
    }
}
