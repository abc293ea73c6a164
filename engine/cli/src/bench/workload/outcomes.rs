//! What a method came to.

use std::time::Duration;

use reprise_engine::Steps;
use reprise_engine::tune::quality::Quality;
use serde_json::{Value, json};

use super::ask::Asked;
use super::score::{likeliest, score};
use super::server::Reply;
use super::system::FileCache;
use crate::bench::median;

/// What one method came to on one workload. What a side does not tell is empty.
#[derive(Debug, Default)]
pub struct Outcomes {
    pub ttft_ms: Vec<f64>,
    pub prompt_tokens: Vec<f64>,
    pub reused_tokens: Vec<f64>,
    pub moved_tokens: Vec<f64>,
    pub recomputed_tokens: Vec<f64>,
    steps: Vec<Steps>,
    cpu_seconds: Vec<f64>,
    read_bytes: Vec<f64>,
    memory_hits: usize,
    flash_hits: usize,
    /// How long loading the model took, where that is part of what is measured.
    pub start_ms: Vec<f64>,
    file_cache: Option<FileCache>,
    f1: f64,
    exact: usize,
    judged: usize,
    /// Of the answer's tokens against those without reuse.
    quality: Quality,
    same: usize,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

impl Outcomes {
    /// An answer of ours.
    pub fn add(&mut self, asked: &Asked) {
        let answer = &asked.answer;
        self.ttft_ms.push(ms(answer.time_to_first_token));
        self.prompt_tokens.push(answer.prompt_tokens as f64);
        self.reused_tokens.push(answer.reused_tokens as f64);
        self.moved_tokens.push(answer.moved_tokens as f64);
        self.recomputed_tokens.push(answer.recomputed_tokens as f64);
        // Computing takes some time; without any, nothing was told.
        self.steps
            .extend((answer.steps != Steps::default()).then_some(answer.steps));
        self.cpu_seconds.extend(asked.cpu_seconds);
        self.read_bytes.extend(asked.read_bytes.map(|bytes| bytes as f64));
        self.memory_hits += asked.memory_hits;
        self.flash_hits += asked.flash_hits;
    }

    /// An answer of the other side.
    pub fn add_reply(&mut self, reply: &Reply, prompt_tokens: usize) {
        self.ttft_ms.push(ms(reply.time_to_first_token));
        self.prompt_tokens.push(prompt_tokens as f64);
        self.reused_tokens
            .extend(reply.reused_tokens.map(|tokens| tokens as f64));
        self.cpu_seconds.extend(reply.cpu_seconds);
    }

    /// How right an answer is, where something counts as right.
    pub fn judge(&mut self, answer: &str, right: &[String]) {
        if !right.is_empty() {
            let (f1, is_exact) = score(answer, right);
            self.f1 += f1;
            self.exact += usize::from(is_exact);
            self.judged += 1;
        }
    }

    /// Logits of a token of the answer against those without reuse.
    pub fn compare(&mut self, logits: &[f32], reference: &[f32]) {
        self.quality.add(logits, reference, None);
        self.same += usize::from(likeliest(logits) == likeliest(reference));
    }

    /// What came of emptying the file cache before a request.
    pub fn file_cache(&mut self, state: FileCache) {
        self.file_cache = Some(super::ask::of_all(self.file_cache, state));
    }

    /// How it was before the requests, where it was emptied.
    pub fn file_cache_state(&self) -> Option<FileCache> {
        self.file_cache
    }

    /// The median wait for the first token.
    pub fn ttft(&self) -> f64 {
        median(&self.ttft_ms)
    }

    /// The median of something of the steps.
    fn step(&self, of: impl Fn(&Steps) -> f64) -> f64 {
        median(&self.steps.iter().map(of).collect::<Vec<_>>())
    }

    pub fn match_ms(&self) -> f64 {
        self.step(|steps| ms(steps.matching.taken))
    }

    pub fn load_ms(&self) -> f64 {
        self.step(|steps| ms(steps.loading.taken))
    }

    pub fn turn_ms(&self) -> f64 {
        self.step(|steps| ms(steps.turning.taken))
    }

    pub fn compute_ms(&self) -> f64 {
        self.step(|steps| ms(steps.computing))
    }

    pub fn store_ms(&self) -> f64 {
        self.step(|steps| ms(steps.storing.taken))
    }

    pub fn hidden_share(&self) -> f64 {
        self.step(Steps::hidden_share)
    }

    /// Processor seconds of all answers together, where known.
    pub fn cpu_seconds(&self) -> Option<f64> {
        (!self.cpu_seconds.is_empty()).then(|| self.cpu_seconds.iter().sum())
    }

    pub fn f1(&self) -> Option<f64> {
        (self.judged > 0).then(|| 100.0 * self.f1 / self.judged as f64)
    }

    pub fn exact(&self) -> Option<f64> {
        (self.judged > 0).then(|| 100.0 * self.exact as f64 / self.judged as f64)
    }

    pub fn kl(&self) -> Option<f64> {
        (self.quality.tokens > 0).then(|| self.quality.mean_kl())
    }

    pub fn top1(&self) -> Option<f64> {
        (self.quality.tokens > 0).then(|| self.same as f64 / self.quality.tokens as f64)
    }

    /// Hits of memory and flash, where the side has these.
    pub fn hits(&self) -> Option<(usize, usize)> {
        (!self.moved_tokens.is_empty()).then_some((self.memory_hits, self.flash_hits))
    }

    /// For JSON; what is not known is null.
    pub fn to_json(&self) -> Value {
        let hits = self.hits();
        json!({
            "requests": self.ttft_ms.len(),
            "ttft_ms": self.ttft(),
            "prompt_tokens": median(&self.prompt_tokens),
            "reused_tokens": median(&self.reused_tokens),
            "moved_tokens": median(&self.moved_tokens),
            "recomputed_tokens": median(&self.recomputed_tokens),
            "match_ms": self.match_ms(),
            "load_ms": self.load_ms(),
            "turn_ms": self.turn_ms(),
            "compute_ms": self.compute_ms(),
            "store_ms": self.store_ms(),
            "hidden_share": self.hidden_share(),
            "start_ms": median(&self.start_ms),
            "file_cache": self.file_cache.map(FileCache::name),
            "memory_hits": hits.map(|hits| hits.0),
            "flash_hits": hits.map(|hits| hits.1),
            "read_bytes": median(&self.read_bytes),
            "cpu_seconds": self.cpu_seconds(),
            "f1": self.f1(),
            "exact": self.exact(),
            "kl": self.kl(),
            "top1": self.top1(),
        })
    }
}
