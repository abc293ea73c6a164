//! Reads golden logits (`format.md`) and compares an engine's logits with them. Plain std, so that any crate's tests can
//! take it in with `#[path = "../../tests/golden/golden.rs"] mod golden;`.
//!
//! A comparison never needs more than one row of logits at a time:
//!
//! ```ignore
//! let golden = Golden::load(&golden_dir().join("logits/smollm2-135m-q4_1.golden"))?;
//! let rows = engine.logits(&golden.token_ids);                  // one row of `golden.vocab` logits per position
//! let ours = golden.score(golden.positions.iter().map(|p| &rows[*p]));
//! assert!(ours.mean_kl < 0.02 && ours.top1_agreement >= 0.95);
//! assert!(ours.mean_kl <= 1.2 * golden.peer_score().mean_kl);
//! ```
#![allow(dead_code)]

use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"RPGOLD\0\x01";

/// The most likely tokens at one position, and how much is left for all others.
#[derive(Debug, Clone, PartialEq)]
pub struct TopK {
    /// Token ids. Reference and peer of a position have the same ones: the reference's most likely, best first, or the
    /// whole vocabulary in order.
    pub ids: Vec<u32>,
    /// Natural log of the probability of each of `ids`.
    pub log_probs: Vec<f32>,
    /// Natural log of the probability of all other tokens together; minus infinity when there are none.
    pub log_rest: f32,
}

/// One golden file: a prompt and what should be predicted after its tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Golden {
    /// Where it came from, as a JSON object.
    pub about: String,
    /// Size of the model's vocabulary.
    pub vocab: usize,
    /// The prompt.
    pub token_ids: Vec<u32>,
    /// Positions of the prompt that were kept: after token `positions[i]`, expect row `i`.
    pub positions: Vec<usize>,
    /// What the weights say: dequantised to F32, computed in F32.
    pub reference: Vec<TopK>,
    /// What llama.cpp says with the file as it is, at the same token ids.
    pub peer: Vec<TopK>,
    /// The peer's most likely token, per position.
    pub peer_top1: Vec<u32>,
    /// KL(reference || peer) over the whole vocabulary, per position, in nats.
    pub exact_peer_kl: Vec<f32>,
}

/// How far logits are from the reference, over all kept positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Mean KL(reference || logits), nats a token. Tokens outside `TopK::ids` count as one, so this is a lower bound.
    pub mean_kl: f64,
    /// The worst position's KL.
    pub max_kl: f64,
    /// Share of positions whose most likely token is the reference's.
    pub top1_agreement: f64,
}

/// The folder `tests/golden` of the repository this test runs in.
pub fn golden_dir() -> PathBuf {
    let start = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let start = start.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let found = start
        .ancestors()
        .map(|folder| folder.join("tests/golden"))
        .find(|folder| folder.is_dir());
    found.unwrap_or_else(|| PathBuf::from("tests/golden"))
}

impl TopK {
    /// The most likely token.
    pub fn top1(&self) -> u32 {
        let best = self
            .ids
            .iter()
            .zip(&self.log_probs)
            .reduce(|a, b| if *b.1 > *a.1 { b } else { a });
        best.map_or(u32::MAX, |(id, _)| *id)
    }

    /// KL(self || logits) in nats, with all tokens outside `ids` counted as one.
    pub fn kl(&self, logits: &[f32]) -> f64 {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mass = |logit: f32| f64::from(logit - max).exp();
        let total: f64 = logits.iter().map(|l| mass(*l)).sum();
        let listed: f64 = self.ids.iter().map(|id| mass(logits[*id as usize])).sum();
        let rest = (total - listed).max(f64::MIN_POSITIVE);
        let of_ids = self
            .ids
            .iter()
            .map(|id| f64::from(logits[*id as usize] - max) - total.ln());
        self.kl_to(of_ids, rest.ln() - total.ln())
    }

    /// KL(self || other), both at the same ids.
    fn kl_to_top_k(&self, other: &TopK) -> f64 {
        self.kl_to(
            other.log_probs.iter().map(|l| f64::from(*l)),
            f64::from(other.log_rest),
        )
    }

    fn kl_to(&self, log_probs: impl Iterator<Item = f64>, log_rest: f64) -> f64 {
        let term = |own: f32, other: f64| f64::from(own).exp() * (f64::from(own) - other);
        let listed: f64 = self
            .log_probs
            .iter()
            .zip(log_probs)
            .map(|(own, other)| term(*own, other))
            .sum();
        if self.log_rest == f32::NEG_INFINITY {
            listed
        } else {
            listed + term(self.log_rest, log_rest)
        }
    }
}

impl Golden {
    /// Reads a golden file.
    pub fn load(path: &Path) -> Result<Golden, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Golden::from_bytes(&bytes).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads a golden file's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Golden, String> {
        let mut input = Input(bytes);
        if input.take(MAGIC.len())? != MAGIC {
            return Err("not a golden file of version 1".into());
        }
        let about_bytes = input.size()?;
        let about = String::from_utf8(input.take(about_bytes)?.to_vec()).map_err(|e| e.to_string())?;
        let [vocab, tokens, kept, top] = [input.size()?, input.size()?, input.size()?, input.size()?];
        let token_ids = input.ids(tokens)?;
        let positions: Vec<usize> = input.ids(kept)?.into_iter().map(|p| p as usize).collect();
        if top > vocab || positions.iter().any(|p| *p >= tokens) {
            return Err("a count or a position is out of range".into());
        }
        let mut golden = Golden {
            about,
            vocab,
            token_ids,
            positions,
            reference: Vec::new(),
            peer: Vec::new(),
            peer_top1: Vec::new(),
            exact_peer_kl: Vec::new(),
        };
        for _ in 0..kept {
            golden.peer_top1.push(u32::from_le_bytes(input.word()?));
            let [exact_kl, reference_rest, peer_rest] = [input.float()?, input.float()?, input.float()?];
            golden.exact_peer_kl.push(exact_kl);
            let ids = if top == vocab {
                (0..vocab as u32).collect()
            } else {
                input.ids(top)?
            };
            if ids.iter().any(|id| *id as usize >= vocab) {
                return Err("a token id is outside the vocabulary".into());
            }
            let [reference, peer] = [input.floats(top)?, input.floats(top)?];
            golden.reference.push(TopK {
                ids: ids.clone(),
                log_probs: reference,
                log_rest: reference_rest,
            });
            golden.peer.push(TopK {
                ids,
                log_probs: peer,
                log_rest: peer_rest,
            });
        }
        if !input.0.is_empty() {
            return Err(format!("{} bytes too many", input.0.len()));
        }
        Ok(golden)
    }

    /// Compares rows of logits, one for each of `positions` in their order, with the reference.
    ///
    /// Panics when there are more or fewer rows or a row is not as long as the vocabulary: the test is wrong then.
    pub fn score<R: AsRef<[f32]>>(&self, rows: impl IntoIterator<Item = R>) -> Score {
        let mut rows = rows.into_iter();
        let score = self.score_each(|i| {
            let row = rows
                .next()
                .unwrap_or_else(|| panic!("no row for position {}", self.positions[i]));
            let row = row.as_ref();
            assert_eq!(
                row.len(),
                self.vocab,
                "row {i} is not one logit per token of the vocabulary"
            );
            (self.reference[i].kl(row), argmax(row))
        });
        assert!(rows.next().is_none(), "more rows than positions");
        score
    }

    /// The peer's score, counted exactly as [`Golden::score`] counts.
    pub fn peer_score(&self) -> Score {
        self.score_each(|i| (self.reference[i].kl_to_top_k(&self.peer[i]), self.peer_top1[i]))
    }

    /// The peer's mean KL over the whole vocabulary; compare with `peer_score().mean_kl` to see what the bound loses.
    pub fn exact_peer_mean_kl(&self) -> f64 {
        self.exact_peer_kl.iter().map(|kl| f64::from(*kl)).sum::<f64>() / self.exact_peer_kl.len() as f64
    }

    fn score_each(&self, mut kl_and_top1: impl FnMut(usize) -> (f64, u32)) -> Score {
        let (mut sum, mut max_kl, mut agreed) = (0.0, f64::NEG_INFINITY, 0);
        for (i, reference) in self.reference.iter().enumerate() {
            let (kl, top1) = kl_and_top1(i);
            sum += kl;
            // NaN must not pass for small: it stays.
            max_kl = if kl > max_kl || kl.is_nan() { kl } else { max_kl };
            agreed += usize::from(top1 == reference.top1());
        }
        let count = self.reference.len() as f64;
        Score {
            mean_kl: sum / count,
            max_kl,
            top1_agreement: agreed as f64 / count,
        }
    }
}

fn argmax(row: &[f32]) -> u32 {
    let best = row
        .iter()
        .enumerate()
        .reduce(|a, b| if *b.1 > *a.1 { b } else { a });
    best.map_or(u32::MAX, |(id, _)| id as u32)
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let (taken, left) = self.0.split_at_checked(bytes).ok_or("the file ends too early")?;
        self.0 = left;
        Ok(taken)
    }

    fn word(&mut self) -> Result<[u8; 4], String> {
        let bytes = self.take(4)?;
        bytes.try_into().map_err(|_| "the file ends too early".into())
    }

    fn size(&mut self) -> Result<usize, String> {
        Ok(u32::from_le_bytes(self.word()?) as usize)
    }

    fn float(&mut self) -> Result<f32, String> {
        Ok(f32::from_le_bytes(self.word()?))
    }

    fn words(&mut self, count: usize) -> Result<&'a [[u8; 4]], String> {
        Ok(self
            .take(count.checked_mul(4).ok_or("a count is too large")?)?
            .as_chunks()
            .0)
    }

    fn ids(&mut self, count: usize) -> Result<Vec<u32>, String> {
        Ok(self
            .words(count)?
            .iter()
            .map(|w| u32::from_le_bytes(*w))
            .collect())
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, String> {
        Ok(self
            .words(count)?
            .iter()
            .map(|w| f32::from_le_bytes(*w))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: [f64; 4] = [0.5, 0.25, 0.15, 0.1];
    const PEER: [f64; 4] = [0.2, 0.4, 0.3, 0.1];

    /// One kept position of a prompt of three tokens, vocabulary 4, the two most likely tokens or all.
    fn file(top: u32) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let about = b"{}";
        bytes.extend((about.len() as u32).to_le_bytes());
        bytes.extend(about);
        for word in [
            4, 3, 1, top, /* tokens */ 3, 1, 0, /* position */ 2, /* peer's best */ 1,
        ] {
            bytes.extend(u32::to_le_bytes(word));
        }
        let rest = |p: [f64; 4]| p[top as usize..].iter().sum::<f64>().ln();
        let mut floats = vec![exact_kl(PEER), rest(REFERENCE), rest(PEER)];
        floats.extend(REFERENCE[..top as usize].iter().map(|p| p.ln()));
        floats.extend(PEER[..top as usize].iter().map(|p| p.ln()));
        let mut float_bytes = floats.iter().flat_map(|x| (*x as f32).to_le_bytes());
        bytes.extend(float_bytes.by_ref().take(12));
        if top < 4 {
            bytes.extend((0..top).flat_map(u32::to_le_bytes));
        }
        bytes.extend(float_bytes);
        bytes
    }

    fn exact_kl(q: [f64; 4]) -> f64 {
        REFERENCE.iter().zip(q).map(|(p, q)| p * (p / q).ln()).sum()
    }

    /// Logits of these probabilities, shifted, as an engine's would be.
    fn logits(p: [f64; 4]) -> Vec<f32> {
        p.iter().map(|p| (p.ln() + 7.0) as f32).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn the_whole_vocabulary_gives_the_exact_kl() {
        let golden = Golden::from_bytes(&file(4)).unwrap();
        assert_eq!(
            (golden.token_ids.as_slice(), golden.positions.as_slice()),
            ([3, 1, 0].as_slice(), [2].as_slice())
        );
        assert_eq!(golden.reference[0].ids, [0, 1, 2, 3]);
        let score = golden.score([logits(PEER)]);
        assert!(
            close(score.mean_kl, exact_kl(PEER)) && close(score.max_kl, exact_kl(PEER)),
            "{score:?}"
        );
        assert!(close(golden.peer_score().mean_kl, exact_kl(PEER)));
        assert!(close(golden.exact_peer_mean_kl(), exact_kl(PEER)));
    }

    #[test]
    fn the_rest_counts_as_one_token() {
        let golden = Golden::from_bytes(&file(2)).unwrap();
        let expected: f64 = [(0.5, 0.2), (0.25, 0.4), (0.25, 0.4)]
            .iter()
            .map(|(p, q): &(f64, f64)| p * (p / q).ln())
            .sum();
        assert!(expected <= exact_kl(PEER));
        assert!(close(golden.score([logits(PEER)]).mean_kl, expected));
        assert!(close(golden.peer_score().mean_kl, expected));
    }

    #[test]
    fn the_reference_itself_has_no_distance_and_full_agreement() {
        for top in [2, 4] {
            let golden = Golden::from_bytes(&file(top)).unwrap();
            let score = golden.score([logits(REFERENCE)]);
            assert!(
                close(score.mean_kl, 0.0) && score.top1_agreement == 1.0,
                "{score:?}"
            );
            assert_eq!(golden.peer_score().top1_agreement, 0.0);
        }
    }

    #[test]
    fn logits_that_are_not_numbers_cannot_pass() {
        let golden = Golden::from_bytes(&file(2)).unwrap();
        assert!(golden.score([vec![f32::NAN; 4]]).mean_kl.is_nan());
        assert!(golden.score([vec![f32::INFINITY; 4]]).mean_kl.is_nan());
    }

    #[test]
    fn a_logit_of_minus_infinity_costs_infinitely_much() {
        let golden = Golden::from_bytes(&file(4)).unwrap();
        assert_eq!(
            golden.score([vec![1.0, 1.0, 1.0, f32::NEG_INFINITY]]).mean_kl,
            f64::INFINITY
        );
    }

    #[test]
    fn files_cut_short_or_with_extra_bytes_are_refused() {
        let whole = file(2);
        for length in 0..whole.len() {
            assert!(Golden::from_bytes(&whole[..length]).is_err(), "{length} bytes");
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert!(Golden::from_bytes(&longer).is_err());
        let mut foreign = whole;
        foreign[0] = b'X';
        assert!(Golden::from_bytes(&foreign).is_err());
    }

    #[test]
    fn every_stored_file_is_sound() {
        let mut files = 0;
        for entry in std::fs::read_dir(golden_dir().join("logits")).expect("tests/golden/logits") {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "golden") {
                continue;
            }
            let golden = Golden::load(&path).unwrap();
            files += 1;
            assert!(
                golden.token_ids.iter().all(|id| (*id as usize) < golden.vocab),
                "{}",
                path.display()
            );
            for set in [&golden.reference, &golden.peer] {
                for (i, top) in set.iter().enumerate() {
                    let mass: f64 = top
                        .log_probs
                        .iter()
                        .chain([&top.log_rest])
                        .map(|l| f64::from(*l).exp())
                        .sum();
                    assert!(
                        (mass - 1.0).abs() < 1e-4,
                        "{} row {i}: mass {mass}",
                        path.display()
                    );
                }
            }
            let peer = golden.peer_score();
            let exact = golden.exact_peer_mean_kl();
            println!(
                "{}: peer KL {:.6} of {exact:.6}, top-1 {:.3}",
                path.display(),
                peer.mean_kl,
                peer.top1_agreement
            );
            assert!(
                peer.mean_kl <= exact + 1e-6 && peer.mean_kl > -1e-6,
                "{}",
                path.display()
            );
        }
        assert!(files > 0);
    }
}
