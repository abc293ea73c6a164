//! A model's KV profile: which format each layer's keys and values have, and the calibrated mean and scales of
//! residual keys.

use crate::layout::{LayerLayout, LayerShape};
use reprise_kernels::kv::KvFormat;

/// How a model's keys and values are stored. Made by measurement; see the engine's tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct KvProfile {
    /// One entry a layer.
    pub layers: Vec<LayerProfile>,
}

/// One layer's part of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerProfile {
    /// How keys are stored.
    pub keys: KvFormat,
    /// How values are stored.
    pub values: KvFormat,
    /// Where keys are stored without their mean; not in half precision, which has no need of it.
    pub residual: Option<ResidualKeys>,
}

/// What is taken from a layer's keys before they are rotated and stored: `(key - mean) / scale`.
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualKeys {
    /// The mean of keys, `[head][dim]`.
    pub mean: Vec<f32>,
    /// What they are divided by, `[head][dim]`; equal for the two values of a rotary pair, and positive.
    pub scale: Vec<f32>,
}

/// Why a profile does not fit a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the KV profile does not fit this model: {reason}; tune the model again (reprise models tune)")]
pub struct ProfileMismatch {
    reason: String,
}

impl KvProfile {
    /// The same formats for every layer, without residual keys. Where a head's size cannot have a format, the next
    /// larger one is taken.
    pub fn uniform(shapes: &[LayerShape], keys: KvFormat, values: KvFormat) -> KvProfile {
        let fit = |format: KvFormat, dim| match format {
            KvFormat::Tq4 if !format.supports(dim) => KvFormat::Q8,
            format => format,
        };
        let layers = shapes
            .iter()
            .map(|shape| LayerProfile {
                keys: fit(keys, shape.head_dim),
                values: fit(values, shape.head_dim),
                residual: None,
            })
            .collect();
        KvProfile { layers }
    }

    /// The layouts of a model's layers under this profile.
    ///
    /// # Errors
    /// When the profile is for another shape.
    pub fn layouts(&self, shapes: &[LayerShape]) -> Result<Vec<LayerLayout>, ProfileMismatch> {
        let mismatch = |reason: String| Err(ProfileMismatch { reason });
        if self.layers.len() != shapes.len() {
            return mismatch(format!(
                "it has {} layers, the model has {}",
                self.layers.len(),
                shapes.len()
            ));
        }
        for (i, (layer, shape)) in self.layers.iter().zip(shapes).enumerate() {
            if !layer.keys.supports(shape.head_dim) || !layer.values.supports(shape.head_dim) {
                return mismatch(format!("layer {i} has heads of {} values", shape.head_dim));
            }
            if let Some(residual) = &layer.residual {
                let len = shape.kv_heads * shape.head_dim;
                if residual.mean.len() != len || residual.scale.len() != len {
                    return mismatch(format!("layer {i} has {len} key values"));
                }
                let sound = residual.mean.iter().all(|mean| mean.is_finite())
                    && residual
                        .scale
                        .iter()
                        .all(|scale| scale.is_finite() && *scale > 0.0);
                if !sound || layer.keys == KvFormat::F16 {
                    return mismatch(format!("layer {i}'s residual keys make no sense"));
                }
            }
        }
        Ok(self
            .layers
            .iter()
            .zip(shapes)
            .map(|(layer, &shape)| LayerLayout {
                shape,
                keys: layer.keys,
                values: layer.values,
            })
            .collect())
    }

    /// A short name, for tables: `f16`, `tq4`, or keys and values where they differ, with `*` for residual keys.
    pub fn name(&self) -> String {
        let Some(first) = self.layers.first() else {
            return "none".to_owned();
        };
        let alike = |layer: &LayerProfile| {
            (layer.keys, layer.values, layer.residual.is_some())
                == (first.keys, first.values, first.residual.is_some())
        };
        if !self.layers.iter().all(alike) {
            return "mixed".to_owned();
        }
        let star = if first.residual.is_some() { "*" } else { "" };
        if first.keys == first.values && star.is_empty() {
            first.keys.name().to_owned()
        } else {
            format!("{}{star}/{}", first.keys.name(), first.values.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [LayerShape; 2] = [LayerShape {
        kv_heads: 2,
        head_dim: 64,
    }; 2];

    #[test]
    fn a_profile_of_another_model_is_refused() {
        let profile = KvProfile::uniform(&SHAPES, KvFormat::Tq4, KvFormat::Tq4);
        assert!(profile.layouts(&SHAPES).is_ok());
        assert!(profile.layouts(&SHAPES[..1]).is_err());
        assert!(
            profile
                .layouts(
                    &[LayerShape {
                        kv_heads: 2,
                        head_dim: 80
                    }; 2]
                )
                .is_err()
        );
        let mut residual = profile.clone();
        residual.layers[1].residual = Some(ResidualKeys {
            mean: vec![0.0; 128],
            scale: vec![1.0; 128],
        });
        assert!(residual.layouts(&SHAPES).is_ok());
        residual.layers[1].residual = Some(ResidualKeys {
            mean: vec![0.0; 128],
            scale: vec![0.0; 128],
        });
        assert!(residual.layouts(&SHAPES).is_err());
        residual.layers[1].residual = Some(ResidualKeys {
            mean: vec![0.0; 64],
            scale: vec![1.0; 64],
        });
        assert!(residual.layouts(&SHAPES).is_err());
    }

    #[test]
    fn heads_that_four_bits_do_not_know_get_eight() {
        let shapes = [LayerShape {
            kv_heads: 1,
            head_dim: 80,
        }];
        let profile = KvProfile::uniform(&shapes, KvFormat::Tq4, KvFormat::Tq4);
        assert_eq!(profile.name(), "q8");
    }
}
