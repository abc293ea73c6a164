//! From logits to the next token.

use crate::api::{EngineError, SamplingOptions, TokenId};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

impl Default for SamplingOptions {
    fn default() -> Self {
        SamplingOptions {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repetition_penalty: 1.0,
            repetition_window: 64,
            seed: None,
        }
    }
}

impl SamplingOptions {
    /// The most likely token, always.
    pub fn greedy() -> SamplingOptions {
        SamplingOptions {
            temperature: 0.0,
            ..SamplingOptions::default()
        }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// Names the option, its value and its range.
    pub fn validate(&self) -> Result<(), EngineError> {
        let check = |name: &'static str, value: f32, ok: bool, range: &'static str| {
            if ok {
                Ok(())
            } else {
                Err(EngineError::BadOption {
                    name,
                    value: value.to_string(),
                    range,
                })
            }
        };
        let t = self.temperature;
        check("temperature", t, (0.0..=100.0).contains(&t), "from 0 to 100")?;
        check(
            "top-p",
            self.top_p,
            self.top_p > 0.0 && self.top_p <= 1.0,
            "above 0 and at most 1",
        )?;
        check(
            "min-p",
            self.min_p,
            (0.0..=1.0).contains(&self.min_p),
            "from 0 to 1",
        )?;
        let penalty = self.repetition_penalty;
        check(
            "repetition-penalty",
            penalty,
            penalty > 0.0 && penalty <= 10.0,
            "above 0 and at most 10",
        )
    }
}

/// Draws tokens by one request's options. Filters apply in this order: repetition penalty, top-k, top-p, min-p, then
/// the temperature and the draw.
#[derive(Debug)]
pub struct Sampler {
    options: SamplingOptions,
    random: ChaCha8Rng,
    /// Logits, then probabilities, of the candidates; kept so that no step allocates.
    candidates: Vec<(TokenId, f32)>,
}

impl Sampler {
    /// A sampler for one answer.
    ///
    /// # Errors
    /// When an option is out of range.
    pub fn new(options: &SamplingOptions, vocabulary: usize) -> Result<Sampler, EngineError> {
        options.validate()?;
        let seed = options.seed.unwrap_or_else(|| {
            use std::hash::{BuildHasher, Hasher};
            // The standard library's hasher keys are drawn from the system's randomness.
            std::hash::RandomState::new().build_hasher().finish()
        });
        Ok(Sampler {
            options: options.clone(),
            random: ChaCha8Rng::seed_from_u64(seed),
            candidates: Vec::with_capacity(vocabulary),
        })
    }

    /// The next token, given the logits and the tokens so far.
    pub fn sample(&mut self, logits: &[f32], so_far: &[TokenId]) -> TokenId {
        let SamplingOptions {
            temperature,
            top_k,
            top_p,
            min_p,
            ..
        } = self.options;
        let penalised = self.options.repetition_penalty != 1.0;
        if temperature == 0.0 && !penalised {
            return most_likely(logits);
        }
        self.candidates.clear();
        // A logit that is no number would spoil every comparison: such tokens are never drawn.
        let finite = logits.iter().enumerate().filter(|(_, logit)| !logit.is_nan());
        self.candidates
            .extend(finite.map(|(id, &logit)| (id as TokenId, logit)));
        if penalised {
            self.penalise(so_far);
        }
        let descending = |a: &(TokenId, f32), b: &(TokenId, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if temperature == 0.0 {
            return self
                .candidates
                .iter()
                .min_by(|a, b| descending(a, b))
                .map_or(0, |best| best.0);
        }
        if top_k > 0 && top_k < self.candidates.len() {
            self.candidates.select_nth_unstable_by(top_k, descending);
            self.candidates.truncate(top_k);
        }
        self.candidates.sort_unstable_by(descending);
        let Some(&(_, top)) = self.candidates.first() else {
            return 0;
        };
        // Top-p and min-p look at the model's own probabilities; the temperature acts on what they leave.
        let total: f32 = self.candidates.iter().map(|(_, logit)| (logit - top).exp()).sum();
        let mut reached = 0.0;
        let mut keep = 0;
        for &(_, logit) in &self.candidates {
            let relative = (logit - top).exp();
            if keep > 0 && (reached >= top_p || relative < min_p) {
                break;
            }
            reached += relative / total;
            keep += 1;
        }
        self.candidates.truncate(keep);
        for (_, value) in &mut self.candidates {
            *value = ((*value - top) / temperature).exp();
        }
        let total: f64 = self.candidates.iter().map(|&(_, p)| f64::from(p)).sum();
        let mut draw = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
        for &(id, p) in &self.candidates {
            draw -= f64::from(p);
            if draw < 0.0 {
                return id;
            }
        }
        self.candidates.last().map_or(0, |last| last.0)
    }

    /// Divides positive and multiplies negative logits of recent tokens by the penalty (Keskar et al., 2019).
    fn penalise(&mut self, so_far: &[TokenId]) {
        let recent = &so_far[so_far.len().saturating_sub(self.options.repetition_window)..];
        let penalty = self.options.repetition_penalty;
        for (i, &id) in recent.iter().enumerate() {
            if recent[..i].contains(&id) {
                continue;
            }
            if let Ok(at) = self.candidates.binary_search_by_key(&id, |candidate| candidate.0) {
                let logit = &mut self.candidates[at].1;
                *logit = if *logit > 0.0 {
                    *logit / penalty
                } else {
                    *logit * penalty
                };
            }
        }
    }
}

/// The first token with the largest logit.
pub(crate) fn most_likely(logits: &[f32]) -> TokenId {
    let mut best = (0, f32::NEG_INFINITY);
    for (id, &logit) in logits.iter().enumerate() {
        if logit > best.1 {
            best = (id, logit);
        }
    }
    best.0 as TokenId
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(options: &SamplingOptions, logits: &[f32], n: usize) -> Vec<TokenId> {
        let mut sampler = Sampler::new(options, logits.len()).unwrap();
        (0..n).map(|_| sampler.sample(logits, &[])).collect()
    }

    fn plain() -> SamplingOptions {
        SamplingOptions {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: Some(5),
            ..Default::default()
        }
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        assert_eq!(
            draws(&SamplingOptions::greedy(), &[0.0, 3.0, 3.0, f32::NAN], 1),
            [1]
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_draws_and_another_seed_others() {
        let logits: Vec<f32> = (0..100).map(|i| (i as f32 * 0.37).sin()).collect();
        let a = draws(&plain(), &logits, 50);
        assert_eq!(a, draws(&plain(), &logits, 50));
        assert_ne!(
            a,
            draws(
                &SamplingOptions {
                    seed: Some(6),
                    ..plain()
                },
                &logits,
                50
            )
        );
    }

    #[test]
    fn frequencies_follow_the_probabilities() {
        let probabilities = [0.5f32, 0.3, 0.15, 0.05];
        let logits = probabilities.map(f32::ln);
        let drawn = draws(&plain(), &logits, 20_000);
        for (id, p) in probabilities.iter().enumerate() {
            let share = drawn.iter().filter(|&&d| d as usize == id).count() as f32 / 20_000.0;
            assert!((share - p).abs() < 0.015, "{id}: {share} instead of {p}");
        }
    }

    #[test]
    fn each_filter_keeps_what_it_should() {
        let logits = [0.5f32, 0.3, 0.15, 0.05].map(f32::ln);
        let seen = |options: SamplingOptions| draws(&options, &logits, 2_000).into_iter().max().unwrap();
        assert_eq!(seen(SamplingOptions { top_k: 2, ..plain() }), 1);
        assert_eq!(
            seen(SamplingOptions {
                top_p: 0.79,
                ..plain()
            }),
            1
        );
        assert_eq!(
            seen(SamplingOptions {
                top_p: 0.81,
                ..plain()
            }),
            2
        );
        assert_eq!(
            seen(SamplingOptions {
                min_p: 0.5,
                ..plain()
            }),
            1
        );
        assert_eq!(
            seen(SamplingOptions {
                temperature: 1e-3,
                ..plain()
            }),
            0
        );
    }

    #[test]
    fn the_penalty_acts_once_on_recent_tokens() {
        let options = SamplingOptions {
            repetition_penalty: 2.0,
            repetition_window: 3,
            ..SamplingOptions::greedy()
        };
        let mut sampler = Sampler::new(&options, 3).unwrap();
        assert_eq!(sampler.sample(&[3.0, 2.0, -1.0], &[]), 0);
        assert_eq!(sampler.sample(&[3.0, 2.0, -1.0], &[0, 0]), 1);
        assert_eq!(sampler.sample(&[3.0, 2.0, -1.0], &[0, 2, 2, 2]), 0);
        assert_eq!(sampler.sample(&[-3.0, -5.0, -4.0], &[0]), 2);
    }

    #[test]
    fn values_out_of_range_are_named() {
        for options in [
            SamplingOptions {
                temperature: -1.0,
                ..plain()
            },
            SamplingOptions {
                temperature: f32::NAN,
                ..plain()
            },
            SamplingOptions {
                top_p: 0.0,
                ..plain()
            },
            SamplingOptions {
                min_p: 1.5,
                ..plain()
            },
            SamplingOptions {
                repetition_penalty: 0.0,
                ..plain()
            },
        ] {
            assert!(options.validate().unwrap_err().to_string().contains("must be"));
        }
    }
}
