//! Element-wise functions of a transformer: norms, activations, rotary positions, softmax. Plain loops, compiled a
//! second time with AVX2 and FMA on x86-64; sums run in sixteen fixed lanes, so their order is the same everywhere.

use crate::isa::Isa;

const LANES: usize = 16;

/// Defines a function that runs `body` compiled for the level at hand.
macro_rules! by_level {
    ($(#[$doc:meta])* $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? => $body:path) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub fn $name(isa: Isa, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c")]
                #[allow(clippy::too_many_arguments)]
                fn fast($($arg: $ty),*) $(-> $ret)? {
                    $body($($arg),*)
                }
                if matches!(isa, Isa::Avx2 | Isa::Avx512Vnni) {
                    // SAFETY: both levels imply these features, and `isa` came from detection.
                    return unsafe { fast($($arg),*) };
                }
            }
            let _ = isa;
            $body($($arg),*)
        }
    };
}
pub(crate) use by_level;

/// e^x to within 3 units in the last place for -87 < x < 88; smaller x give 0, larger ones e^88.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 7. Without branches or casts, so that
/// loops over it become vector code.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const LEAST: f32 = -87.0;
    const MOST: f32 = 88.0;
    // Added to a small number, it leaves the nearest integer in the low bits of the sum.
    const ROUNDER: f32 = 12_582_912.0;
    let bounded = if x < LEAST { LEAST } else { x };
    let bounded = if bounded > MOST { MOST } else { bounded };
    let shifted = bounded.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    // ln 2 in two parts, the first exact in few bits (Cody and Waite).
    let r = n.mul_add(-0.693_359_4, bounded);
    let r = n.mul_add(2.121_944_4e-4, r);
    let mut p: f32 = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p.mul_add(r, c);
    }
    // Times 2^n: n goes to the exponent.
    let value = f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23));
    if x < LEAST { 0.0 } else { value }
}

/// A sum in [`LANES`] lanes, added up pairwise at the end.
#[inline(always)]
pub(crate) fn lane_sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for chunk in whole {
        for i in 0..LANES {
            lanes[i] += term(chunk[i]);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane += term(value);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The greatest of some numbers, found in [`LANES`] lanes; what is no number is left out. Of none, negative infinity.
#[inline(always)]
pub(crate) fn lane_most(values: &[f32]) -> f32 {
    let greater = |most: f32, v: f32| if v > most { v } else { most };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for chunk in whole {
        for i in 0..LANES {
            lanes[i] = greater(lanes[i], chunk[i]);
        }
    }
    rest.iter()
        .chain(&lanes)
        .fold(f32::NEG_INFINITY, |most, &v| greater(most, v))
}

#[inline(always)]
fn rms_norm_body(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    let mean = lane_sum(x, |v| v * v) / x.len() as f32;
    let scale = 1.0 / (mean + epsilon).sqrt();
    for ((out, &v), &w) in out.iter_mut().zip(x).zip(weight) {
        *out = v * scale * w;
    }
}

by_level! {
    /// `out = x / sqrt(mean(x^2) + epsilon) * weight`.
    rms_norm(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) => rms_norm_body
}

#[inline(always)]
fn rms_norm_in_place_body(x: &mut [f32], weight: &[f32], epsilon: f32) {
    let mean = lane_sum(x, |v| v * v) / x.len() as f32;
    let scale = 1.0 / (mean + epsilon).sqrt();
    for (v, &w) in x.iter_mut().zip(weight) {
        *v = *v * scale * w;
    }
}

by_level! {
    /// As [`rms_norm`], in place.
    rms_norm_in_place(x: &mut [f32], weight: &[f32], epsilon: f32) => rms_norm_in_place_body
}

#[inline(always)]
fn silu_gate_body(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((out, &x), &u) in out.iter_mut().zip(gate).zip(up) {
        *out = x / (1.0 + exp(-x)) * u;
    }
}

by_level! {
    /// `out = gate * sigmoid(gate) * up`.
    silu_gate(gate: &[f32], up: &[f32], out: &mut [f32]) => silu_gate_body
}

#[inline(always)]
fn gelu_gate_body(gate: &[f32], up: &[f32], out: &mut [f32]) {
    const ROOT_2_OVER_PI: f32 = 0.797_884_6;
    for ((out, &x), &u) in out.iter_mut().zip(gate).zip(up) {
        // 0.5 x (1 + tanh y) = x / (1 + e^-2y)
        let y = ROOT_2_OVER_PI * x * (1.0 + 0.044715 * x * x);
        *out = x / (1.0 + exp(-2.0 * y)) * u;
    }
}

by_level! {
    /// `out = gelu(gate) * up`, with the tanh form of GELU.
    gelu_gate(gate: &[f32], up: &[f32], out: &mut [f32]) => gelu_gate_body
}

#[inline(always)]
fn add_body(x: &mut [f32], y: &[f32]) {
    for (x, &y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

by_level! {
    /// `x += y`.
    add(x: &mut [f32], y: &[f32]) => add_body
}

/// How a head's values pair up for rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// Values 2i and 2i + 1 (llama).
    Neighbours,
    /// Values i and i + d/2 (GPT-NeoX; qwen, gemma).
    Halves,
}

#[inline(always)]
pub(crate) fn rope_body(head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs) {
    let half = cos.len();
    match pairs {
        RopePairs::Neighbours => {
            for ((pair, &c), &s) in head.as_chunks_mut::<2>().0.iter_mut().zip(cos).zip(sin) {
                let [a, b] = *pair;
                *pair = [a * c - b * s, a * s + b * c];
            }
        }
        RopePairs::Halves => {
            let (low, high) = head.split_at_mut(half);
            for (((a, b), &c), &s) in low.iter_mut().zip(high).zip(cos).zip(sin) {
                (*a, *b) = (*a * c - *b * s, *a * s + *b * c);
            }
        }
    }
}

by_level! {
    /// Rotates one head's first `2 * cos.len()` values.
    rope(head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs) => rope_body
}

#[inline(always)]
fn to_half_body(values: &[f32], out: &mut [u16]) {
    for (out, &value) in out.iter_mut().zip(values) {
        *out = crate::half::f32_to_f16(value);
    }
}

by_level! {
    /// Converts to half precision.
    to_half(values: &[f32], out: &mut [u16]) => to_half_body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_everywhere() {
        for i in -8800..8800 {
            let x = i as f32 * 0.01;
            let exact = f64::from(x).exp();
            let got = f64::from(exp(x));
            if x >= -87.0 {
                assert!((got - exact).abs() <= exact * 4e-7, "{x}: {got} {exact}");
            } else {
                assert!(got < 1e-37);
            }
        }
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(200.0) > 1e38);
    }

    #[test]
    fn levels_agree() {
        let x: Vec<f32> = (0..77).map(|i| (i as f32 * 0.7).sin() * 3.0).collect();
        let w: Vec<f32> = (0..77).map(|i| (i as f32 * 0.3).cos()).collect();
        for isa in Isa::available() {
            let (mut a, mut b) = (vec![0.0; 77], vec![0.0; 77]);
            rms_norm(isa, &x, &w, 1e-5, &mut a);
            rms_norm(Isa::Portable, &x, &w, 1e-5, &mut b);
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6));
            let (mut a, mut b) = (vec![0.0; 77], vec![0.0; 77]);
            silu_gate(isa, &x, &w, &mut a);
            silu_gate(Isa::Portable, &x, &w, &mut b);
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6));
            let (mut a, mut b) = (vec![0.0; 77], vec![0.0; 77]);
            gelu_gate(isa, &x, &w, &mut a);
            gelu_gate(Isa::Portable, &x, &w, &mut b);
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6));
        }
    }

    #[test]
    fn a_rotation_keeps_length_and_turns_by_the_angle() {
        for pairs in [RopePairs::Neighbours, RopePairs::Halves] {
            let mut head = [1.0, 0.0, 0.0, 0.0];
            rope(Isa::best(), &mut head, &[0.0, 1.0], &[1.0, 0.0], pairs);
            let expected = if pairs == RopePairs::Neighbours {
                [0.0, 1.0, 0.0, 0.0]
            } else {
                [0.0, 0.0, 1.0, 0.0]
            };
            assert_eq!(head, expected);
        }
    }
}
