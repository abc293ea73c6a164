//! What keys and queries look like, for residual keys (DESIGN section 5).

use reprise_kernels::math::RopePairs;
use reprise_kv::ResidualKeys;
use reprise_model::arch::Layer;

/// Sums over the tokens of a calibration text, for one layer; vectors as they are before their rotation.
#[derive(Debug, Clone)]
pub struct LayerStatistics {
    head_dim: usize,
    group: usize,
    pairs: RopePairs,
    rope_dims: usize,
    /// Tokens seen.
    pub count: u64,
    /// `[key head][dim]`
    key_sums: Vec<f64>,
    key_squares: Vec<f64>,
    /// `[key head][dim]`, over the head's queries.
    query_squares: Vec<f64>,
}

/// Squared error of a stored vector relative to its square, in four bits (DESIGN section 5).
const RELATIVE_ERROR: f64 = 0.0089;

impl LayerStatistics {
    /// Nothing seen yet.
    pub fn new(layer: &Layer) -> LayerStatistics {
        let len = layer.kv_heads * layer.head_dim;
        LayerStatistics {
            head_dim: layer.head_dim,
            group: layer.heads / layer.kv_heads,
            pairs: layer.rope.pairs,
            rope_dims: layer.rope.dims,
            count: 0,
            key_sums: vec![0.0; len],
            key_squares: vec![0.0; len],
            query_squares: vec![0.0; len],
        }
    }

    /// Adds one key of a head.
    pub fn add_key(&mut self, head: usize, key: &[f32]) {
        let at = head * self.head_dim;
        let sums = self.key_sums[at..].iter_mut().zip(&mut self.key_squares[at..]);
        for ((sum, square), &value) in sums.zip(key) {
            *sum += f64::from(value);
            *square += f64::from(value) * f64::from(value);
        }
    }

    /// Adds one query of a query head.
    pub fn add_query(&mut self, head: usize, query: &[f32]) {
        let at = head / self.group * self.head_dim;
        for (square, &value) in self.query_squares[at..].iter_mut().zip(query) {
            *square += f64::from(value) * f64::from(value);
        }
    }

    /// The two values that turn together with value `d` of a head.
    fn pair(&self, d: usize) -> (usize, usize) {
        if d >= self.rope_dims {
            return (d, d);
        }
        match self.pairs {
            RopePairs::Neighbours => (d & !1, d | 1),
            RopePairs::Halves => {
                let half = self.rope_dims / 2;
                (d % half, d % half + half)
            }
        }
    }

    /// The mean of keys, and the scale of each pair that balances the error of scores: `(E k^2 / E q^2)^(1/4)` of what
    /// remains of the keys.
    pub fn residual(&self) -> ResidualKeys {
        let count = self.count.max(1) as f64;
        let mean: Vec<f64> = self.key_sums.iter().map(|sum| sum / count).collect();
        let variance = |i: usize| (self.key_squares[i] / count - mean[i] * mean[i]).max(0.0);
        let query = |i: usize| self.query_squares[i] / (count * self.group as f64);
        let scale = (0..mean.len()).map(|i| {
            let (head, d) = (i / self.head_dim * self.head_dim, i % self.head_dim);
            let (a, b) = self.pair(d);
            let (k, q) = (
                variance(head + a) + variance(head + b),
                query(head + a) + query(head + b),
            );
            let scale = (k / q).powf(0.25);
            // A pair that never differs from its mean, or is never asked for, needs no scale.
            if scale.is_normal() && scale < 1e6 {
                scale as f32
            } else {
                1.0
            }
        });
        let scale = scale.collect();
        ResidualKeys {
            mean: mean.iter().map(|&mean| mean as f32).collect(),
            scale,
        }
    }

    /// For each key head, how many nats a score is off, in the root mean square, when its keys are stored in four bits
    /// as they are: `sqrt(0.0089 |k|^2 E|q|^2) / d`. Above three the model is ruined (DESIGN section 5).
    pub fn alarms(&self) -> Vec<f64> {
        let count = self.count.max(1) as f64;
        let heads = self
            .key_squares
            .chunks_exact(self.head_dim)
            .zip(self.query_squares.chunks_exact(self.head_dim));
        heads
            .map(|(keys, queries)| {
                let k: f64 = keys.iter().sum::<f64>() / count;
                let q: f64 = queries.iter().sum::<f64>() / (count * self.group as f64);
                (RELATIVE_ERROR * k * q).sqrt() / self.head_dim as f64
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_model::arch::Rope;

    fn layer(pairs: RopePairs) -> Layer {
        Layer {
            heads: 4,
            kv_heads: 2,
            head_dim: 16,
            feed_forward: 16,
            window: None,
            rope: Rope {
                pairs,
                dims: 16,
                base: 1e4,
                scale: 1.0,
                uses_factors: false,
            },
            query_scale: 0.25,
            has_qk_norm: false,
            has_post_norms: false,
        }
    }

    #[test]
    fn the_mean_is_the_mean_and_scales_are_equal_within_a_pair() {
        for pairs in [RopePairs::Neighbours, RopePairs::Halves] {
            let mut statistics = LayerStatistics::new(&layer(pairs));
            for t in 0..100 {
                for head in 0..2 {
                    let key: Vec<f32> = (0..16)
                        .map(|d| 5.0 + d as f32 + ((t * (d + 3)) as f32).sin() * (1.0 + d as f32))
                        .collect();
                    statistics.add_key(head, &key);
                }
                for head in 0..4 {
                    statistics.add_query(head, &[2.0; 16]);
                }
                statistics.count += 1;
            }
            let residual = statistics.residual();
            for d in 0..16 {
                assert!(
                    (residual.mean[d] - 5.0 - d as f32).abs() < 0.35 * (1.0 + d as f32),
                    "{}",
                    residual.mean[d]
                );
                let (a, b) = statistics.pair(d);
                assert_eq!(residual.scale[a], residual.scale[b]);
                assert!(residual.scale[d] > 0.0);
            }
            // E k_res^2 of a pair is about half the sum of the two squared amplitudes, E q^2 is eight.
            let (a, b) = statistics.pair(3);
            let expected = (((1.0 + a as f64).powi(2) + (1.0 + b as f64).powi(2)) / 2.0 / 8.0).powf(0.25);
            assert!((f64::from(residual.scale[3]) / expected - 1.0).abs() < 0.1);
        }
    }

    #[test]
    fn keys_that_never_change_need_no_scale() {
        let mut statistics = LayerStatistics::new(&layer(RopePairs::Halves));
        for _ in 0..4 {
            statistics.add_key(0, &[3.0; 16]);
            statistics.add_query(0, &[1.0; 16]);
            statistics.count += 1;
        }
        let residual = statistics.residual();
        assert!(residual.scale.iter().all(|&scale| scale == 1.0));
        assert_eq!(residual.mean[0], 3.0);
    }
}
