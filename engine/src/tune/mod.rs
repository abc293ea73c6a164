//! Tuning: what a model's keys look like, which KV format serves it, and how long graphs of each size take here.
//!
//! The smallest format is chosen whose predictions stay close to those of half precision (DESIGN section 5). Work is
//! done in steps of one graph call, so that it can run in the background of an engine that answers meanwhile.

pub mod quality;
pub mod statistics;
pub mod store;
pub mod texts;
mod trial;

use crate::api::{EngineError, TokenId};
use crate::backend::{Backend, GraphCall, GraphKind, Outputs, Stretch};
use reprise_kv::pool::Sequence;
use reprise_kv::{KvFormat, KvLanes, KvProfile, LayerLayout, LayerShape, PAGE_TOKENS};
use reprise_model::tokenizer::Tokenizer;
use statistics::LayerStatistics;
use std::sync::Arc;
use std::time::Instant;
use texts::{CALIBRATION, WINDOW_TOKENS};
pub use trial::{Trial, Verdict};

/// Bounds of DESIGN section 5: mean divergence in nats a token, and rise of the perplexity.
pub const MOST_KL: f64 = 0.02;
/// See [`MOST_KL`].
pub const MOST_RISE: f64 = 0.01;
/// At equal size the mean is taken out of keys only where that at least halves the divergence: it costs time.
const WORTHWHILE: f64 = 0.5;
/// Tenths of the layers, the first ones, that have values of eight bits in the candidates between four and eight.
const EARLY_TENTHS: [usize; 2] = [4, 6];
/// Tokens of a calibration call.
const CALL_TOKENS: usize = 64;
/// A graph size is good enough when its time per token is within this of the best (DESIGN section 6).
const NEAR_BEST: f64 = 1.10;
/// Sizes are multiples of this.
const SIZE_STEP: usize = 32;
/// Times each size is measured; the median counts.
const REPEATS: usize = 3;

/// Seconds that graphs of each size take on this machine.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Latencies {
    /// Of prefill calls, by tokens, into an empty window.
    pub prefill: Vec<(usize, f64)>,
    /// Of decode calls, by rows.
    pub decode: Vec<(usize, f64)>,
    /// The smallest prefill size within a tenth of the best time per token.
    pub prefill_tokens: usize,
}

/// What tuning found.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The profile chosen.
    pub profile: KvProfile,
    /// Every candidate, smallest first.
    pub verdicts: Vec<Verdict>,
    /// Heads whose keys plain four bits would ruin, and the worst of them in nats.
    pub alarmed_heads: usize,
    /// See there.
    pub worst_alarm: f64,
    /// Times on this machine.
    pub latencies: Latencies,
}

/// Where tuning stands.
enum Stage {
    Calibrate {
        text: usize,
        start: usize,
    },
    Compare(Box<Trial>),
    Time {
        size: usize,
        kind: GraphKind,
        times: Vec<f64>,
    },
    Done,
}

/// Tunes a model step by step.
pub struct Tuner {
    shapes: Vec<LayerShape>,
    tokenizer: Arc<Tokenizer>,
    stage: Stage,
    texts: Vec<Vec<TokenId>>,
    layouts: Vec<LayerLayout>,
    half: KvProfile,
    sequences: [Sequence; 1],
    statistics: Option<Vec<LayerStatistics>>,
    tuned: Option<Tuned>,
    sizes: Vec<(GraphKind, usize)>,
}

impl Tuner {
    /// For a model with layers of these shapes.
    ///
    /// # Errors
    /// When memory cannot be had.
    pub fn new(shapes: &[LayerShape], tokenizer: Arc<Tokenizer>) -> Result<Tuner, EngineError> {
        let half = KvProfile::uniform(shapes, KvFormat::F16, KvFormat::F16);
        let layouts = half.layouts(shapes)?;
        Ok(Tuner {
            shapes: shapes.to_vec(),
            texts: CALIBRATION.iter().map(|text| text.tokens(&tokenizer)).collect(),
            sequences: [scratch(&layouts)?],
            tokenizer,
            stage: Stage::Calibrate { text: 0, start: 0 },
            layouts,
            half,
            statistics: None,
            tuned: None,
            sizes: Vec::new(),
        })
    }

    /// Share of the work that is done, roughly.
    pub fn progress(&self) -> f64 {
        match &self.stage {
            Stage::Calibrate { text, start } => {
                let share = (*text as f64 + *start as f64 / WINDOW_TOKENS as f64) / self.texts.len() as f64;
                0.15 * share
            }
            Stage::Compare(trial) => 0.15 + 0.8 * trial.progress(),
            Stage::Time { .. } => 0.97,
            Stage::Done => 1.0,
        }
    }

    /// What the calibration texts showed, once they have been read.
    pub fn statistics(&self) -> Option<&[LayerStatistics]> {
        match self.stage {
            Stage::Calibrate { .. } => None,
            _ => self.statistics.as_deref(),
        }
    }

    /// What it is doing, for a person.
    pub fn activity(&self) -> &'static str {
        match &self.stage {
            Stage::Calibrate { .. } => "reading the calibration texts",
            Stage::Compare(_) => "comparing formats",
            Stage::Time { .. } => "timing graphs",
            Stage::Done => "done",
        }
    }

    /// Makes one graph call; the result when that was the last. Leaves the backend with another profile than before.
    ///
    /// # Errors
    /// When the call fails.
    pub fn step(&mut self, backend: &mut dyn Backend) -> Result<Option<Tuned>, EngineError> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Calibrate { text, start } => self.calibrate(backend, text, start)?,
            Stage::Compare(trial) => self.compare(backend, trial)?,
            Stage::Time { size, kind, times } => self.time(backend, size, kind, times)?,
            Stage::Done => {}
        }
        Ok(match self.stage {
            Stage::Done => self.tuned.take(),
            _ => None,
        })
    }

    fn calibrate(&mut self, backend: &mut dyn Backend, text: usize, start: usize) -> Result<(), EngineError> {
        let Some(tokens) = self.texts.get(text) else {
            return self.begin_trial();
        };
        let end = (start + CALL_TOKENS).min(tokens.len());
        backend.set_profile(&self.half)?;
        // Only this call's tokens are gathered: others may use the backend between steps.
        let before = backend.swap_statistics(self.statistics.take().or_else(|| Some(Vec::new())));
        let result = run(
            backend,
            &self.layouts,
            &mut self.sequences,
            GraphKind::Prefill,
            &tokens[start..end],
            start,
        );
        self.statistics = backend.swap_statistics(before);
        result?;
        self.stage = if end == tokens.len() {
            Stage::Calibrate {
                text: text + 1,
                start: 0,
            }
        } else {
            Stage::Calibrate { text, start: end }
        };
        Ok(())
    }

    fn begin_trial(&mut self) -> Result<(), EngineError> {
        let statistics = self.statistics.as_deref().unwrap_or_default();
        let trial = Trial::new(
            &self.shapes,
            &self.tokenizer,
            &candidates(&self.shapes, statistics),
        )?;
        self.stage = Stage::Compare(Box::new(trial));
        Ok(())
    }

    fn compare(&mut self, backend: &mut dyn Backend, mut trial: Box<Trial>) -> Result<(), EngineError> {
        if !trial.step(backend, true)? {
            self.stage = Stage::Compare(trial);
            return Ok(());
        }
        let verdicts: Vec<Verdict> = trial.verdicts().cloned().collect();
        let alarms = self.statistics.iter().flatten().flat_map(LayerStatistics::alarms);
        let alarms: Vec<f64> = alarms.collect();
        let profile = choose(&verdicts).unwrap_or_else(|| self.half.clone());
        self.layouts = profile.layouts(&self.shapes)?;
        self.sequences = [scratch(&self.layouts)?];
        self.tuned = Some(Tuned {
            profile,
            verdicts,
            alarmed_heads: alarms.iter().filter(|&&alarm| alarm > 3.0).count(),
            worst_alarm: alarms.iter().copied().fold(0.0, f64::max),
            latencies: Latencies::default(),
        });
        let rows = backend.capacity(GraphKind::Decode);
        let capacity = backend.capacity(GraphKind::Prefill).min(WINDOW_TOKENS);
        let prefill = (SIZE_STEP..=capacity).step_by(SIZE_STEP);
        self.sizes = prefill.map(|size| (GraphKind::Prefill, size)).collect();
        self.sizes
            .extend((1..=rows).map(|rows| (GraphKind::Decode, rows)));
        // Taken from the end.
        self.sizes.reverse();
        self.next_size();
        Ok(())
    }

    fn next_size(&mut self) {
        self.stage = match self.sizes.pop() {
            Some((kind, size)) => Stage::Time {
                size,
                kind,
                times: Vec::new(),
            },
            None => Stage::Done,
        };
    }

    fn time(
        &mut self,
        backend: &mut dyn Backend,
        size: usize,
        kind: GraphKind,
        mut times: Vec<f64>,
    ) -> Result<(), EngineError> {
        let Some(tuned) = &mut self.tuned else {
            return Ok(());
        };
        backend.set_profile(&tuned.profile)?;
        let tokens: Vec<TokenId> = self.texts.iter().flatten().copied().cycle().take(size).collect();
        // A decode call's rows stand for lanes; guesses of one lane take as long.
        let begin = Instant::now();
        run(backend, &self.layouts, &mut self.sequences, kind, &tokens, 0)?;
        times.push(begin.elapsed().as_secs_f64());
        // The first one warms up.
        if times.len() <= REPEATS {
            self.stage = Stage::Time { size, kind, times };
            return Ok(());
        }
        let mut measured = times.split_off(1);
        measured.sort_by(f64::total_cmp);
        let median = measured[measured.len() / 2];
        let latencies = &mut tuned.latencies;
        match kind {
            GraphKind::Prefill => latencies.prefill.push((size, median)),
            GraphKind::Decode => latencies.decode.push((size, median)),
            GraphKind::Recompute | GraphKind::Probe => {}
        }
        latencies.prefill_tokens = turning_point(&latencies.prefill);
        self.next_size();
        Ok(())
    }
}

fn scratch(layouts: &[LayerLayout]) -> Result<Sequence, EngineError> {
    Ok(LayerLayout::pool(layouts, WINDOW_TOKENS.div_ceil(PAGE_TOKENS))?.sequence())
}

fn run(
    backend: &mut dyn Backend,
    layouts: &[LayerLayout],
    sequences: &mut [Sequence; 1],
    kind: GraphKind,
    tokens: &[TokenId],
    start: usize,
) -> Result<(), EngineError> {
    let end = start + tokens.len();
    sequences[0].truncate(start);
    sequences[0].cancel();
    sequences[0].prepare(end, None)?;
    let stretches = [Stretch::new(0, start, tokens)];
    let outputs = if kind == GraphKind::Decode {
        Outputs::All
    } else {
        Outputs::None
    };
    backend.run(
        &GraphCall {
            kind,
            stretches: &stretches,
            outputs,
        },
        &mut KvLanes::new(layouts, sequences),
    )?;
    sequences[0].commit(end);
    Ok(())
}

/// The smallest size whose time per token is within a tenth of the best.
fn turning_point(times: &[(usize, f64)]) -> usize {
    let per_token = |&(size, seconds): &(usize, f64)| seconds / size as f64;
    let best = times.iter().map(per_token).fold(f64::INFINITY, f64::min);
    let near = times.iter().filter(|time| per_token(time) <= best * NEAR_BEST);
    near.map(|&(size, _)| size).min().unwrap_or(0)
}

/// The formats worth trying, smallest first.
fn candidates(shapes: &[LayerShape], statistics: &[LayerStatistics]) -> Vec<(String, KvProfile)> {
    use KvFormat::{Q8, Tq4};
    let mut all: Vec<(String, KvProfile)> = Vec::new();
    for (keys, values, is_residual, early_tenths) in [
        (Tq4, Tq4, true, 0),
        (Q8, Tq4, false, 0),
        (Q8, Tq4, true, 0),
        (Q8, Tq4, false, EARLY_TENTHS[0]),
        (Q8, Tq4, false, EARLY_TENTHS[1]),
        (Q8, Q8, false, 0),
        (Q8, Q8, true, 0),
    ] {
        let mut profile = if is_residual {
            residual(shapes, statistics, keys, values)
        } else {
            KvProfile::uniform(shapes, keys, values)
        };
        // What is off in an early layer goes through all that follow.
        let early = shapes.len() * early_tenths / 10;
        for layer in profile.layers.iter_mut().take(early) {
            layer.values = Q8;
        }
        // Head sizes without a four-bit format make some of these the same.
        if all.iter().all(|(_, other)| *other != profile) {
            let name = match early {
                0 => profile.name(),
                _ => format!("q8 x{early}, q8/tq4"),
            };
            all.push((name, profile));
        }
    }
    all
}

/// A profile with residual keys from statistics.
pub fn residual(
    shapes: &[LayerShape],
    statistics: &[LayerStatistics],
    keys: KvFormat,
    values: KvFormat,
) -> KvProfile {
    let mut profile = KvProfile::uniform(shapes, keys, values);
    for (layer, statistics) in profile.layers.iter_mut().zip(statistics) {
        layer.residual = (layer.keys != KvFormat::F16).then(|| statistics.residual());
    }
    profile
}

/// The smallest candidate within the bounds; none when only half precision is.
fn choose(verdicts: &[Verdict]) -> Option<KvProfile> {
    let passes = |verdict: &&Verdict| verdict.is_within_bounds();
    let smallest = verdicts
        .iter()
        .filter(passes)
        .map(|verdict| verdict.token_bytes)
        .min()?;
    let mut equals = verdicts
        .iter()
        .filter(passes)
        .filter(|verdict| verdict.token_bytes == smallest);
    // The first is the plain one where both passed.
    let first = equals.next()?;
    let better = equals.find(|verdict| verdict.total().mean_kl() < WORTHWHILE * first.total().mean_kl());
    Some(better.unwrap_or(first).profile.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turning_point_is_the_smallest_size_near_the_best() {
        let times = [(32, 0.064), (64, 0.100), (96, 0.100), (128, 0.128), (512, 0.512)];
        assert_eq!(turning_point(&times), 96);
        assert_eq!(turning_point(&[]), 0);
    }
}
