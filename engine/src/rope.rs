//! Rotary positions as numbers: how fast each pair of a layer's head turns.

use reprise_kernels::kv::moving::Turn;
use reprise_kernels::math::RopePairs;
use reprise_model::arch::Rope;
use std::sync::Arc;

/// Radians a position by which each rotary pair turns: `scale * base^(-2 i / dims)`, divided by the model's factor for
/// the pair where it has such.
pub fn frequencies(rope: &Rope, factors: Option<&[f32]>) -> Vec<f64> {
    let factors = factors.filter(|_| rope.uses_factors);
    (0..rope.dims / 2)
        .map(|i| {
            let factor = factors.map_or(1.0, |factors| f64::from(factors[i]));
            let exponent = -2.0 * i as f64 / rope.dims as f64;
            f64::from(rope.base).powf(exponent) * f64::from(rope.scale) / factor
        })
        .collect()
}

/// How a layer's keys turn with their position.
#[derive(Debug, Clone)]
pub struct LayerRope {
    pairs: RopePairs,
    frequencies: Arc<[f64]>,
}

impl LayerRope {
    /// See [`frequencies`].
    pub fn new(rope: &Rope, factors: Option<&[f32]>) -> LayerRope {
        LayerRope {
            pairs: rope.pairs,
            frequencies: frequencies(rope, factors).into(),
        }
    }

    /// The rotation that brings a key `delta` positions further.
    pub fn turn(&self, delta: i64) -> Turn {
        Turn::new(&self.frequencies, self.pairs, delta)
    }
}
