//! How right an answer is, and how far its predictions are from another run's.

/// F1 over words of an answer and the best of those that count as right, and whether it is one of them: as in SQuAD, in
/// lower case, without punctuation and articles.
pub fn score(answer: &str, right: &[String]) -> (f64, bool) {
    let said = words(answer);
    let scores = right.iter().map(|right| {
        let right = words(right);
        (f1(&said, &right), said == right)
    });
    scores.fold((0.0, false), |(best, exact), (f1, is_exact)| {
        (f1.max(best), exact || is_exact)
    })
}

fn words(text: &str) -> Vec<String> {
    let plain: String = text
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || c.is_whitespace())
        .collect();
    plain
        .split_whitespace()
        .filter(|word| !matches!(*word, "a" | "an" | "the"))
        .map(str::to_owned)
        .collect()
}

fn f1(said: &[String], right: &[String]) -> f64 {
    let mut left = right.to_vec();
    let common = said
        .iter()
        .filter(|word| {
            left.iter()
                .position(|other| other == *word)
                .map(|at| left.swap_remove(at))
                .is_some()
        })
        .count() as f64;
    match common > 0.0 {
        true => 2.0 * common / (said.len() + right.len()) as f64,
        false => 0.0,
    }
}

/// Kullback-Leibler divergence of `other` from `reference`, in nats, and whether both find the same token most likely.
pub fn divergence(reference: &[f32], other: &[f32]) -> (f64, bool) {
    let log_sum = |logits: &[f32]| {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit - max).exp()).sum();
        f64::from(max) + sum.ln()
    };
    let (a, b) = (log_sum(reference), log_sum(other));
    let terms = reference.iter().zip(other).map(|(&p, &q)| {
        let log_p = f64::from(p) - a;
        log_p.exp() * (log_p - (f64::from(q) - b))
    });
    (terms.sum(), top(reference) == top(other))
}

fn top(logits: &[f32]) -> Option<usize> {
    logits
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1))
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_by_words() {
        let right = ["The Eiffel Tower".to_owned(), "Paris".to_owned()];
        assert_eq!(score("eiffel tower.", &right), (1.0, true));
        assert_eq!(score("It is in Paris", &right), (0.4, false));
        assert_eq!(score("London", &right), (0.0, false));
        assert_eq!(score("", &right), (0.0, false));
    }

    #[test]
    fn equal_predictions_do_not_diverge() {
        let (kl, same) = divergence(&[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0]);
        assert!(kl.abs() < 1e-9 && same);
        let (kl, same) = divergence(&[3f32.ln(), 0.0], &[0.0, 3f32.ln()]);
        let expected = 0.75 * (0.75f64 / 0.25).ln() + 0.25 * (0.25f64 / 0.75).ln();
        assert!((kl - expected).abs() < 1e-6 && !same);
    }
}
