//! Packed weights times activations: every path against the dequantised product, and the paths against each other.

use reprise_kernels::activations::{Activations, Forms, TILE_ROWS};
use reprise_kernels::isa::Isa;
use reprise_kernels::matmul::{Output, Scratch, Store, matmul_panel};
use reprise_kernels::packed::{PackedMatrix, Packing};
use reprise_kernels::quant::{QuantType, dequantize};

/// A small generator, so that tests need no seed from outside.
struct Noise(u64);

impl Noise {
    fn bits(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let x = self.0 ^ (self.0 >> 33);
        x.wrapping_mul(0xff51afd7ed558ccd) ^ (x >> 29)
    }
    fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Random blocks with scales of a sensible size.
fn random_weights(ty: QuantType, rows: usize, k: usize, noise: &mut Noise) -> Vec<u8> {
    let bytes = ty.bytes_for(k).unwrap() * rows;
    let mut data: Vec<u8> = (0..bytes).map(|_| noise.bits() as u8).collect();
    let halves: &[usize] = match ty {
        QuantType::Q4_0 | QuantType::Q5_0 | QuantType::Q8_0 | QuantType::Iq4Nl => &[0],
        QuantType::Q4_1 | QuantType::Q5_1 | QuantType::Q4K | QuantType::Q5K => &[0, 2],
        QuantType::Q2K => &[80, 82],
        QuantType::Q3K => &[108],
        QuantType::Q6K => &[208],
        QuantType::F16 => &[0],
        _ => &[],
    };
    for block in data.chunks_exact_mut(ty.block_bytes()) {
        for &at in halves {
            let value = reprise_kernels::half::f32_to_f16(noise.float() * 0.01);
            block[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        match ty {
            QuantType::Mxfp4 => block[0] = 120 + block[0] % 8,
            QuantType::BF16 => {
                let bits = (noise.float().to_bits() >> 16) as u16;
                block.copy_from_slice(&bits.to_le_bytes());
            }
            QuantType::F32 => block.copy_from_slice(&noise.float().to_le_bytes()),
            _ => {}
        }
    }
    data
}

fn pack(ty: QuantType, rows: usize, k: usize, data: &[u8]) -> PackedMatrix {
    let mut packing = Packing::new(ty, rows, k, data).unwrap();
    packing.panels().for_each(|panel| panel.pack());
    packing.finish()
}

fn multiply(isa: Isa, weights: &PackedMatrix, x: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let (k, n) = (weights.k(), weights.rows());
    let tokens = x.len() / k;
    let mut activations = Activations::new(
        tokens,
        k,
        Forms {
            quantised: true,
            float: true,
        },
    );
    let tiles = activations.begin(tokens, k);
    for tile in 0..tiles.tiles() {
        let rows = tiles.rows_of(tile);
        // SAFETY: this is the only thread.
        unsafe { tiles.fill(isa, tile, &x[rows.start * k..rows.end * k]) };
    }
    let mut out = vec![0.0; tokens * n];
    let view = Output::new(&mut out, n);
    let mut scratch = Scratch::new(tokens);
    for panel in 0..weights.panels() {
        // SAFETY: this is the only thread.
        unsafe {
            matmul_panel(
                isa,
                weights,
                panel,
                &activations,
                bias,
                &view,
                Store::Set,
                &mut scratch,
            )
        };
    }
    out
}

#[test]
fn every_type_agrees_with_its_dequantised_product() {
    let mut noise = Noise(7);
    for ty in QuantType::ALL {
        let (rows, tokens) = (21, 7);
        let k = if ty.block_len() == 256 { 1280 } else { 1120 };
        let data = random_weights(ty, rows, k, &mut noise);
        let weights = pack(ty, rows, k, &data);
        let mut plain = vec![0.0; rows * k];
        dequantize(ty, &data, &mut plain).unwrap();
        let x: Vec<f32> = (0..tokens * k).map(|_| noise.float()).collect();
        let out = multiply(Isa::Portable, &weights, &x, None);
        let (mut error, mut energy) = (0.0f64, 0.0f64);
        for t in 0..tokens {
            for n in 0..rows {
                let exact: f64 = (0..k)
                    .map(|i| f64::from(x[t * k + i]) * f64::from(plain[n * k + i]))
                    .sum();
                error += (exact - f64::from(out[t * rows + n])).powi(2);
                energy += exact.powi(2);
            }
        }
        let relative = (error / energy).sqrt();
        // int8 activations cost 0.36-0.39 % on values like a model's; uniform noise costs about the same.
        let bound = if ty.block_len() == 1 { 1e-6 } else { 6e-3 };
        assert!(relative < bound, "{}: relative error {relative}", ty.name());
    }
}

#[test]
fn every_level_agrees_with_the_portable_twin_to_the_last_bit() {
    let mut noise = Noise(11);
    for ty in QuantType::ALL {
        let (rows, k) = (40, 1280);
        let data = random_weights(ty, rows, k, &mut noise);
        let weights = pack(ty, rows, k, &data);
        let bias: Vec<f32> = (0..rows).map(|_| noise.float()).collect();
        for tokens in (1..=TILE_ROWS + 1).chain([15]) {
            let x: Vec<f32> = (0..tokens * k).map(|_| noise.float() * 8.0).collect();
            let plain = multiply(Isa::Portable, &weights, &x, Some(&bias));
            for isa in Isa::available() {
                let fast = multiply(isa, &weights, &x, Some(&bias));
                assert!(
                    plain == fast,
                    "{} {tokens} tokens: {} differs",
                    ty.name(),
                    isa.name()
                );
            }
        }
    }
}

#[test]
fn extreme_codes_and_activations_do_not_overflow() {
    for ty in QuantType::ALL.into_iter().filter(|ty| ty.block_len() > 1) {
        for fill in [0x00u8, 0xff, 0x0f, 0xf0, 0x80, 0x7f] {
            let k = 256;
            let mut data = vec![fill; ty.bytes_for(k).unwrap() * 16];
            for block in data.chunks_exact_mut(ty.block_bytes()) {
                let one = 0x3c00u16.to_le_bytes();
                match ty {
                    QuantType::Mxfp4 => block[0] = 127,
                    QuantType::Q2K => {
                        (
                            block[80..82].copy_from_slice(&one),
                            block[82..84].copy_from_slice(&one),
                        )
                            .0
                    }
                    QuantType::Q3K => block[108..110].copy_from_slice(&one),
                    QuantType::Q6K => block[208..210].copy_from_slice(&one),
                    QuantType::Q4_1 | QuantType::Q5_1 | QuantType::Q4K | QuantType::Q5K => {
                        block[0..2].copy_from_slice(&one);
                        block[2..4].copy_from_slice(&one);
                    }
                    _ => block[0..2].copy_from_slice(&one),
                }
            }
            let weights = pack(ty, 16, k, &data);
            for x in [
                vec![1.0f32; k],
                vec![-1.0; k],
                (0..k).map(|i| [1.0, -1.0][i % 2]).collect(),
            ] {
                let plain = multiply(Isa::Portable, &weights, &x, None);
                for isa in Isa::available() {
                    assert!(
                        plain == multiply(isa, &weights, &x, None),
                        "{} {fill:x} {}",
                        ty.name(),
                        isa.name()
                    );
                }
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_company() {
    let mut noise = Noise(13);
    for ty in QuantType::ALL {
        let (rows, k, tokens) = (32, 2304, 14);
        let data = random_weights(ty, rows, k, &mut noise);
        let weights = pack(ty, rows, k, &data);
        let x: Vec<f32> = (0..tokens * k).map(|_| noise.float()).collect();
        let isa = Isa::best();
        let together = multiply(isa, &weights, &x, None);
        for t in 0..tokens {
            let alone = multiply(isa, &weights, &x[t * k..(t + 1) * k], None);
            assert!(
                together[t * rows..(t + 1) * rows] == alone[..],
                "{} token {t}",
                ty.name()
            );
        }
    }
}
