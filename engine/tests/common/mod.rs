//! A model on the CPU backend with KV of its own, for tests that call graphs themselves.
#![allow(dead_code)] // each test binary uses a part

use reprise_engine::backend::{Backend, BackendError, GraphCall, GraphKind, Outputs, Stretch};
use reprise_engine::cpu::CpuBackend;
use reprise_kv::pool::PagePool;
use reprise_kv::pool::Sequence;
use reprise_kv::{KvFormat, KvLanes, KvProfile, LayerLayout, LayerShape};
use reprise_model::arch::Architecture;
use reprise_model::gguf::Gguf;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A model with random weights.
pub fn tiny(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/golden/tiny")
        .join(name)
}

/// Where real models are.
pub fn models() -> PathBuf {
    std::env::var_os("REPRISE_MODELS").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/reprise/models"),
        PathBuf::from,
    )
}

/// Half precision, as the golden logits were made with.
pub fn half(shapes: &[LayerShape]) -> KvProfile {
    KvProfile::uniform(shapes, KvFormat::F16, KvFormat::F16)
}

/// See the module.
pub struct Model {
    pub backend: Box<dyn Backend>,
    pub layouts: Vec<LayerLayout>,
    pub pool: PagePool,
    pub sequences: Vec<Sequence>,
    pub vocabulary: usize,
}

impl Model {
    pub fn load(
        path: &Path,
        threads: usize,
        window: usize,
        profile: &dyn Fn(&[LayerShape]) -> KvProfile,
    ) -> Model {
        let gguf = Arc::new(Gguf::open(path).unwrap());
        let arch = Architecture::from_gguf(&gguf).unwrap();
        let shapes = CpuBackend::kv_shape(&arch);
        let profile = profile(&shapes);
        let layouts = profile.layouts(&shapes).unwrap();
        let pool = LayerLayout::pool(&layouts, 4 * window.div_ceil(256) + 4).unwrap();
        let vocabulary = arch.vocabulary;
        let sequences = (0..4).map(|_| pool.sequence()).collect();
        let backend = Box::new(CpuBackend::load(gguf, arch, threads, window, &profile).unwrap());
        Model {
            backend,
            layouts,
            pool,
            sequences,
            vocabulary,
        }
    }

    /// Runs a call as it is, over positions that were prepared.
    pub fn call(&mut self, call: &GraphCall<'_>) -> Result<(), BackendError> {
        let mut kv = KvLanes::new(&self.layouts, &mut self.sequences);
        self.backend.run(call, &mut kv)
    }

    /// Runs stretches, forgetting what stood behind their beginnings.
    pub fn run_all(
        &mut self,
        kind: GraphKind,
        stretches: &[Stretch<'_>],
        outputs: Outputs,
    ) -> Result<(), BackendError> {
        for stretch in stretches {
            let sequence = &mut self.sequences[stretch.sequence];
            let start = stretch.places.of(0);
            sequence.truncate(start);
            sequence.cancel();
            sequence.prepare(start + stretch.tokens.len(), None).unwrap();
        }
        let result = self.call(&GraphCall {
            kind,
            stretches,
            outputs,
        });
        for stretch in stretches {
            let sequence = &mut self.sequences[stretch.sequence];
            match result {
                Ok(()) => sequence.commit(stretch.places.of(0) + stretch.tokens.len()),
                Err(_) => sequence.cancel(),
            }
        }
        result
    }

    /// Runs tokens of the first sequence.
    pub fn run(
        &mut self,
        kind: GraphKind,
        tokens: &[u32],
        start: usize,
        outputs: Outputs,
    ) -> Result<(), BackendError> {
        self.run_all(kind, &[Stretch::new(0, start, tokens)], outputs)
    }

    /// Reads tokens in full calls and returns the last one's logits.
    pub fn read(&mut self, sequence: usize, tokens: &[u32]) -> Vec<f32> {
        let capacity = self.backend.capacity(GraphKind::Prefill);
        for (i, part) in tokens.chunks(capacity).enumerate() {
            let stretch = Stretch::new(sequence, i * capacity, part);
            self.run_all(GraphKind::Prefill, &[stretch], Outputs::Last)
                .unwrap();
        }
        self.backend.logits().to_vec()
    }
}

/// Arbitrary tokens.
pub fn tokens(count: usize, vocabulary: usize) -> Vec<u32> {
    (0..count).map(|i| (i * 7919 % vocabulary) as u32).collect()
}
