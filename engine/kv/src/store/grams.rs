//! Fingerprints of a text: hashes of a few of its token n-grams, chosen so that two texts with a common run of
//! [`MIN_RUN_TOKENS`] tokens always have one in common, wherever in them the run stands.
//!
//! Of any 25 consecutive 8-grams the one with the smallest hash is kept (winnowing). A run of 32 tokens has 25 8-grams,
//! so both texts keep the same one of them. About one gram in 13 is kept: some 20 of a full chunk, at most 249.

use super::suffix::MIN_RUN_TOKENS;
use xxhash_rust::xxh3::xxh3_64;

/// Tokens in a gram.
const GRAM_TOKENS: usize = 8;
/// Grams of which at least one is kept.
const WINDOW_GRAMS: usize = MIN_RUN_TOKENS - GRAM_TOKENS + 1;

/// The fingerprints of a text, sorted, each once. None of a text shorter than [`MIN_RUN_TOKENS`].
pub(super) fn fingerprints(tokens: &[u32]) -> Vec<i64> {
    if tokens.len() < MIN_RUN_TOKENS {
        return Vec::new();
    }
    let grams: Vec<i64> = tokens.windows(GRAM_TOKENS).map(hash).collect();
    let mut kept = Vec::with_capacity(grams.len() / 8);
    let (mut smallest, mut last) = (0, usize::MAX);
    for end in WINDOW_GRAMS..=grams.len() {
        let start = end - WINDOW_GRAMS;
        if end == WINDOW_GRAMS || smallest < start {
            // The smallest left the window, or this is the first: look at the whole of it. The rightmost of equals
            // stays longest.
            smallest = (start..end).rev().min_by_key(|&at| grams[at]).unwrap_or(start);
        } else if grams[end - 1] <= grams[smallest] {
            smallest = end - 1;
        }
        if smallest != last {
            kept.push(grams[smallest]);
            last = smallest;
        }
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Signed, as the index stores whole numbers.
fn hash(gram: &[u32]) -> i64 {
    let mut bytes = [0; 4 * GRAM_TOKENS];
    for (bytes, token) in bytes.chunks_exact_mut(4).zip(gram) {
        bytes.copy_from_slice(&token.to_be_bytes());
    }
    xxh3_64(&bytes) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_with_a_common_run_have_a_fingerprint_in_common(
            run in prop::collection::vec(0_u32..6, MIN_RUN_TOKENS),
            edges in prop::array::uniform4(prop::collection::vec(0_u32..6, 0..90)),
        ) {
            let [a, b, c, d] = edges;
            let first = fingerprints(&[a, run.clone(), b].concat());
            let second = fingerprints(&[c, run, d].concat());
            prop_assert!(first.iter().any(|gram| second.binary_search(gram).is_ok()));
        }
    }

    #[test]
    fn about_one_gram_in_thirteen_is_kept() {
        let text: Vec<u32> = (0..10_000_u32)
            .map(|index| index.wrapping_mul(2_654_435_761))
            .collect();
        let kept = fingerprints(&text).len();
        assert!((600..950).contains(&kept), "{kept}");
    }
}
