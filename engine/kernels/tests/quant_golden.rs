//! Holds the reference dequantisers and quantisers to vectors made by an independent implementation
//! (`tests/golden/quant/make.py`).

use std::path::PathBuf;

use reprise_kernels::quant::{QuantType, dequantize, quantize};

fn read_golden(ty: QuantType, what: &str) -> Option<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/quant");
    std::fs::read(folder.join(format!("{}.{what}.bin", ty.name()))).ok()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

/// Blocks in a golden file: each takes its bytes and its values as f32.
fn block_count(ty: QuantType, file: &[u8]) -> usize {
    let both = ty.block_bytes() + 4 * ty.block_len();
    assert!(
        !file.is_empty() && file.len().is_multiple_of(both),
        "{}: {} bytes",
        ty.name(),
        file.len()
    );
    file.len() / both
}

#[test]
fn every_type_dequantises_to_the_same_bits_as_the_independent_implementation() {
    for ty in QuantType::ALL {
        let file = read_golden(ty, "dequantize").unwrap_or_else(|| panic!("no vectors for {}", ty.name()));
        let (blocks, values) = file.split_at(block_count(ty, &file) * ty.block_bytes());
        let expected = floats(values);
        let mut actual = vec![0f32; expected.len()];
        dequantize(ty, blocks, &mut actual).unwrap();
        let mut finite = 0;
        for (i, (a, e)) in actual.iter().zip(&expected).enumerate() {
            let same = a.to_bits() == e.to_bits() || (a.is_nan() && e.is_nan());
            assert!(same, "{} value {i}: {a:e}, expected {e:e}", ty.name());
            finite += usize::from(e.is_finite());
        }
        assert!(
            2 * finite > expected.len(),
            "{}: the vectors should mostly be finite",
            ty.name()
        );
    }
}

#[test]
fn quantisers_write_the_same_blocks_as_the_independent_implementation() {
    let mut types = 0;
    for ty in QuantType::ALL {
        let Some(file) = read_golden(ty, "quantize") else {
            continue;
        };
        let (values, expected) = file.split_at(block_count(ty, &file) * 4 * ty.block_len());
        let mut actual = vec![0u8; expected.len()];
        quantize(ty, &floats(values), &mut actual).unwrap();
        for (i, (a, e)) in actual
            .chunks(ty.block_bytes())
            .zip(expected.chunks(ty.block_bytes()))
            .enumerate()
        {
            assert_eq!(a, e, "{} block {i}", ty.name());
        }
        types += 1;
    }
    assert_eq!(types, 7);
}
