//! How far a model's predictions move when its keys and values are stored in fewer bits.

/// Sums over the tokens of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quality {
    /// Tokens predicted.
    pub tokens: usize,
    /// Sum of the Kullback-Leibler divergence from the reference, in nats.
    kl: f64,
    /// Sum of -ln p of the text's own tokens, in nats: of this run, and of the reference.
    loss: f64,
    reference_loss: f64,
    /// Sum of the squares of what each token's -ln p is above the reference's.
    rise_squares: f64,
}

impl Quality {
    /// Adds one prediction: the logits of this run and of the reference, and the token that follows.
    pub fn add(&mut self, logits: &[f32], reference: &[f32], next: Option<u32>) {
        let (own, other) = (log_sum(logits), log_sum(reference));
        self.kl += divergence(reference, other, logits, own);
        self.tokens += 1;
        if let Some(next) = next {
            let loss = own - f64::from(logits[next as usize]);
            let reference_loss = other - f64::from(reference[next as usize]);
            self.loss += loss;
            self.reference_loss += reference_loss;
            self.rise_squares += (loss - reference_loss) * (loss - reference_loss);
        }
    }

    /// Adds another text's sums.
    pub fn merge(&mut self, other: &Quality) {
        self.tokens += other.tokens;
        self.kl += other.kl;
        self.loss += other.loss;
        self.reference_loss += other.reference_loss;
        self.rise_squares += other.rise_squares;
    }

    /// Mean divergence from the reference, in nats a token.
    pub fn mean_kl(&self) -> f64 {
        self.kl / self.tokens.max(1) as f64
    }

    /// Perplexity of the text.
    pub fn perplexity(&self) -> f64 {
        (self.loss / self.tokens.max(1) as f64).exp()
    }

    /// How much the perplexity is above the reference's, as a share of it.
    pub fn perplexity_rise(&self) -> f64 {
        self.mean_rise().exp() - 1.0
    }

    /// Standard error of the rise, over the tokens: any rounding at all, be it of one layer's values, changes what
    /// follows enough to move the perplexity by this much in either direction.
    pub fn rise_error(&self) -> f64 {
        let count = self.tokens.max(1) as f64;
        let variance = self.rise_squares / count - self.mean_rise() * self.mean_rise();
        self.mean_rise().exp() * (variance.max(0.0) / count).sqrt()
    }

    /// In nats a token.
    fn mean_rise(&self) -> f64 {
        (self.loss - self.reference_loss) / self.tokens.max(1) as f64
    }
}

/// ln of the sum of exponentials, which turns logits into log-probabilities.
fn log_sum(logits: &[f32]) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from((logit - max).exp())).sum();
    f64::from(max) + sum.ln()
}

/// Sum of p (ln p - ln q) for p of the reference, in f64: the differences are small.
fn divergence(p: &[f32], p_sum: f64, q: &[f32], q_sum: f64) -> f64 {
    let terms = p.iter().zip(q).map(|(&p, &q)| {
        let log_p = f64::from(p) - p_sum;
        log_p.exp() * (log_p - (f64::from(q) - q_sum))
    });
    terms.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_predictions_are_no_distance_apart() {
        let mut quality = Quality::default();
        quality.add(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], Some(2));
        assert!(quality.mean_kl().abs() < 1e-12 && quality.perplexity_rise().abs() < 1e-12);
        let p = 3f64.exp() / (1f64.exp() + 2f64.exp() + 3f64.exp());
        assert!((quality.perplexity() - 1.0 / p).abs() < 1e-6);
    }

    #[test]
    fn the_rise_comes_with_its_standard_error() {
        let mut quality = Quality::default();
        // -ln p is above the reference's by ln 2 for half of the tokens, and by nothing for the other half.
        for next in [0, 1, 0, 1] {
            let reference = if next == 0 { [0.0, 0.0] } else { [0.0, 3f32.ln()] };
            quality.add(&[0.0, 3f32.ln()], &reference, Some(next));
        }
        let half = 2f64.ln() / 2.0;
        assert!((quality.perplexity_rise() - (half.exp() - 1.0)).abs() < 1e-6);
        // The standard deviation is half of ln 2, that of the mean of four tokens half of that again.
        let error = half.exp() * half / 2.0;
        assert!((quality.rise_error() - error).abs() < 1e-6);
    }

    #[test]
    fn the_divergence_is_that_of_the_definition() {
        let mut quality = Quality::default();
        // p = (1/2, 1/2), q = (1/4, 3/4).
        quality.add(&[0.0, 3f32.ln()], &[0.0, 0.0], None);
        let expected = 0.5 * (0.5f64 / 0.25).ln() + 0.5 * (0.5f64 / 0.75).ln();
        assert!((quality.mean_kl() - expected).abs() < 1e-6);
    }
}
