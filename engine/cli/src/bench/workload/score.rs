//! How right an answer is.

use reprise_engine::TokenId;

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

/// The token that logits find most likely.
pub fn likeliest(logits: &[f32]) -> TokenId {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.map_or(0, |(token, _)| token as TokenId)
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
}
