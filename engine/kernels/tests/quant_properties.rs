//! What must hold for any input: round trips, error bounds, lengths, and the half-precision conversions under them.

use reprise_kernels::half::{bf16_to_f32, f16_to_f32, f32_to_f16};
use reprise_kernels::quant::{QuantError, QuantType, dequantize, quantize};

const WRITABLE: [QuantType; 8] = [
    QuantType::F32,
    QuantType::F16,
    QuantType::BF16,
    QuantType::Q4_0,
    QuantType::Q4_1,
    QuantType::Q5_0,
    QuantType::Q5_1,
    QuantType::Q8_0,
];

/// A small generator of pseudo-random numbers (splitmix64), so that failures repeat.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in -1..1.
    fn signed(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

fn round_trip(ty: QuantType, values: &[f32]) -> Vec<f32> {
    let mut bytes = vec![0; ty.bytes_for(values.len()).unwrap()];
    quantize(ty, values, &mut bytes).unwrap();
    let mut back = vec![0f32; values.len()];
    dequantize(ty, &bytes, &mut back).unwrap();
    back
}

/// The farthest a value of this block may move: half a step, the far end of the symmetric types that has no code, and
/// the rounding of scale and minimum to f16 (a subnormal scale is off by up to 2^-25, times a code of at most 128).
fn error_bound(ty: QuantType, block: &[f32]) -> f32 {
    let largest = block.iter().fold(0f32, |m, x| m.max(x.abs()));
    let min = block.iter().copied().fold(f32::INFINITY, f32::min);
    let max = block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let steps = match ty {
        QuantType::F32 => return 0.0,
        QuantType::F16 => return largest / 2048.0 + 2f32.powi(-25),
        QuantType::BF16 => return largest / 256.0,
        QuantType::Q4_0 => largest / 8.0,
        QuantType::Q5_0 => largest / 16.0,
        QuantType::Q4_1 => (max - min) / 15.0 * 0.5,
        QuantType::Q5_1 => (max - min) / 31.0 * 0.5,
        QuantType::Q8_0 => largest / 127.0 * 0.5,
        _ => unreachable!("{} is not written", ty.name()),
    };
    steps * 1.001 + 2.0 * largest.max(max - min) / 2048.0 + 128.0 * 2f32.powi(-25)
}

#[test]
fn a_quantised_value_moves_by_at_most_half_a_step() {
    let mut random = Random(1);
    for ty in WRITABLE {
        for _ in 0..500 {
            let scale = 10f32.powf(3.0 * random.signed());
            let shift = scale * random.signed();
            let block: Vec<f32> = (0..32).map(|_| scale * random.signed() + shift).collect();
            let bound = error_bound(ty, &block);
            for (x, y) in block.iter().zip(round_trip(ty, &block)) {
                assert!(
                    (x - y).abs() <= bound,
                    "{}: {x} became {y}, bound {bound}",
                    ty.name()
                );
            }
        }
    }
}

#[test]
fn quantising_dequantised_values_again_changes_nothing_much() {
    let mut random = Random(2);
    for ty in WRITABLE {
        for _ in 0..200 {
            let block: Vec<f32> = (0..32).map(|_| random.signed()).collect();
            let once = round_trip(ty, &block);
            let twice = round_trip(ty, &once);
            for (a, b) in once.iter().zip(&twice) {
                assert!((a - b).abs() <= 0.003, "{}: {a} became {b}", ty.name());
            }
        }
    }
}

#[test]
fn a_block_of_zeros_stays_zero() {
    for ty in WRITABLE {
        assert!(
            round_trip(ty, &[0.0; 64]).iter().all(|x| *x == 0.0),
            "{}",
            ty.name()
        );
    }
}

#[test]
fn a_constant_block_keeps_its_value_to_half_precision() {
    for ty in WRITABLE {
        for value in [1.0f32, -0.37, 250.0] {
            for x in round_trip(ty, &[value; 32]) {
                assert!(
                    (x - value).abs() <= value.abs() / 100.0,
                    "{}: {value} became {x}",
                    ty.name()
                );
            }
        }
    }
}

#[test]
fn values_that_are_not_finite_never_panic() {
    for ty in WRITABLE {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            let mut block = [0.5f32; 32];
            block[7] = bad;
            round_trip(ty, &block);
            round_trip(ty, &[bad; 32]);
        }
    }
}

#[test]
fn any_bytes_are_valid_blocks() {
    let mut random = Random(3);
    for ty in QuantType::ALL {
        for _ in 0..200 {
            let bytes: Vec<u8> = (0..ty.block_bytes() * 2).map(|_| random.next() as u8).collect();
            let mut values = vec![0f32; ty.block_len() * 2];
            dequantize(ty, &bytes, &mut values).unwrap();
        }
    }
}

#[test]
fn wrong_lengths_are_errors_and_leave_the_buffers_alone() {
    for ty in QuantType::ALL {
        let (values, bytes) = (ty.block_len() * 2, ty.block_bytes() * 2);
        for wrong in [0, 1, bytes - 1, bytes + 1, bytes / 2] {
            let expected = QuantError::WrongLength {
                ty,
                values,
                expected_bytes: bytes,
                actual_bytes: wrong,
            };
            let mut out = vec![7f32; values];
            assert_eq!(dequantize(ty, &vec![0; wrong], &mut out), Err(expected));
            assert!(out.iter().all(|x| *x == 7.0));
            let mut blocks = vec![7u8; wrong];
            assert_eq!(quantize(ty, &out, &mut blocks), Err(expected));
            assert!(blocks.iter().all(|b| *b == 7));
            assert!(expected.to_string().contains(ty.name()));
        }
        if ty.block_len() > 1 {
            let partial = QuantError::PartialBlock {
                ty,
                values: values - 1,
            };
            assert_eq!(
                dequantize(ty, &vec![0; bytes], &mut vec![0.0; values - 1]),
                Err(partial)
            );
            assert_eq!(
                quantize(ty, &vec![0.0; values - 1], &mut vec![0; bytes]),
                Err(partial)
            );
            assert!(partial.to_string().contains("whole"));
        }
        assert_eq!(
            dequantize(ty, &[], &mut []),
            Ok(()),
            "{}: nothing is whole blocks",
            ty.name()
        );
    }
}

#[test]
fn types_without_an_encoder_say_so() {
    for ty in QuantType::ALL.into_iter().filter(|ty| !WRITABLE.contains(ty)) {
        let mut bytes = vec![0; ty.block_bytes()];
        let result = quantize(ty, &vec![0.0; ty.block_len()], &mut bytes);
        assert_eq!(result, Err(QuantError::NoQuantizer { ty }));
    }
}

#[test]
fn ids_and_sizes_are_consistent() {
    for ty in QuantType::ALL {
        assert_eq!(QuantType::from_ggml_id(ty.ggml_id()), Some(ty));
        assert_eq!(ty.bytes_for(ty.block_len() * 3), Some(ty.block_bytes() * 3));
    }
    assert_eq!(QuantType::from_ggml_id(4), None);
    assert_eq!(QuantType::F32.bytes_for(usize::MAX), None);
}

/// Binary16 from its definition, in f64, where every value is exact.
fn f16_by_definition(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    }
}

#[test]
fn all_f16_values_convert_exactly_and_come_back() {
    for bits in 0..=u16::MAX {
        let (value, expected) = (f16_to_f32(bits), f16_by_definition(bits));
        if expected.is_nan() {
            assert!(value.is_nan(), "{bits:#06x}");
            let back = f32_to_f16(value);
            assert!(
                f16_to_f32(back).is_nan() && back & 0x8000 == bits & 0x8000,
                "{bits:#06x}"
            );
        } else {
            assert_eq!(f64::from(value), expected, "{bits:#06x}");
            assert_eq!(value.is_sign_negative(), bits & 0x8000 != 0, "{bits:#06x}");
            assert_eq!(f32_to_f16(value), bits);
        }
    }
}

#[test]
fn f16_rounds_to_nearest_and_ties_to_even_between_all_neighbours() {
    for low in 0..0x7bffu16 {
        let high = low + 1;
        // Both ends and the middle are exact in f32: at most 12 significant bits.
        let middle = (f16_to_f32(low) + f16_to_f32(high)) / 2.0;
        let even = if low % 2 == 0 { low } else { high };
        for (value, expected) in [
            (middle.next_down(), low),
            (middle, even),
            (middle.next_up(), high),
        ] {
            assert_eq!(f32_to_f16(value), expected, "{value:e}");
            assert_eq!(f32_to_f16(-value), expected | 0x8000, "{value:e}");
        }
    }
}

#[test]
fn f16_overflows_to_infinity_from_the_middle_above_the_largest_value() {
    assert_eq!(f32_to_f16(65504.0), 0x7bff);
    assert_eq!(f32_to_f16(65520f32.next_down()), 0x7bff);
    for value in [65520.0, 65536.0, 1e9, f32::MAX, f32::INFINITY] {
        assert_eq!(f32_to_f16(value), 0x7c00, "{value}");
        assert_eq!(f32_to_f16(-value), 0xfc00, "{value}");
    }
}

#[test]
fn f16_underflows_to_signed_zero() {
    let half_of_smallest = 2f32.powi(-25);
    assert_eq!(f32_to_f16(half_of_smallest), 0);
    assert_eq!(f32_to_f16(half_of_smallest.next_up()), 1);
    assert_eq!(f32_to_f16(-1e-30), 0x8000);
    assert_eq!(f32_to_f16(f32::from_bits(1)), 0);
}

#[test]
fn all_bf16_values_come_back() {
    for bits in 0..=u16::MAX {
        let value = bf16_to_f32(bits);
        let mut bytes = [0u8; 2];
        quantize(QuantType::BF16, &[value], &mut bytes).unwrap();
        let back = u16::from_le_bytes(bytes);
        assert!(
            back == bits || (value.is_nan() && bf16_to_f32(back).is_nan()),
            "{bits:#06x}"
        );
    }
}
