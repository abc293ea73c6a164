//! What every backend promises (see `reprise_engine::backend::Backend`), checked by one body for each of them.

use reprise_engine::backend::{Backend, BackendError, Component, GraphCall, GraphKind, Outputs};
use reprise_engine::cpu::CpuBackend;
use reprise_kv::{KvError, KvMemory};
use reprise_model::arch::Architecture;
use reprise_model::gguf::Gguf;
use std::path::PathBuf;
use std::sync::Arc;

const WINDOW: usize = 700;

/// A backend with a model on it, and an empty memory.
struct Loaded {
    backend: Box<dyn Backend>,
    kv: KvMemory,
    vocabulary: usize,
}

fn cpu(model: &str) -> Loaded {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/golden/tiny")
        .join(model);
    let gguf = Arc::new(Gguf::open(&path).unwrap());
    let arch = Architecture::from_gguf(&gguf).unwrap();
    let kv = KvMemory::new(&CpuBackend::kv_shape(&arch), WINDOW);
    let vocabulary = arch.vocabulary;
    Loaded {
        backend: Box::new(CpuBackend::load(gguf, arch, 2, WINDOW).unwrap()),
        kv,
        vocabulary,
    }
}

impl Loaded {
    fn run(
        &mut self,
        kind: GraphKind,
        tokens: &[u32],
        start: usize,
        outputs: Outputs,
    ) -> Result<(), BackendError> {
        self.backend.run(
            &GraphCall {
                kind,
                tokens,
                start,
                outputs,
            },
            &mut self.kv,
        )
    }

    /// Reads tokens in full calls and returns the last one's logits.
    fn read(&mut self, tokens: &[u32]) -> Vec<f32> {
        let capacity = self.backend.capacity(GraphKind::Prefill);
        for (i, part) in tokens.chunks(capacity).enumerate() {
            self.run(GraphKind::Prefill, part, i * capacity, Outputs::Last)
                .unwrap();
        }
        self.backend.logits().to_vec()
    }
}

fn tokens(count: usize, vocabulary: usize) -> Vec<u32> {
    (0..count).map(|i| (i * 7919 % vocabulary) as u32).collect()
}

fn conforms(load: &dyn Fn() -> Loaded) {
    let mut loaded = load();
    let vocabulary = loaded.vocabulary;
    let prompt = tokens(600, vocabulary);

    // Graphs of both kinds are there, and a call beyond a graph's capacity is refused.
    for kind in [GraphKind::Prefill, GraphKind::Decode] {
        let capacity = loaded.backend.capacity(kind);
        assert!(capacity > 0);
        let error = loaded
            .run(kind, &tokens(capacity + 1, vocabulary), 0, Outputs::None)
            .unwrap_err();
        assert!(matches!(error, BackendError::Capacity { .. }), "{error}");
    }

    // Logits are there for the tokens that were to have them.
    for (outputs, rows) in [(Outputs::None, 0), (Outputs::Last, 1), (Outputs::All, 5)] {
        loaded.run(GraphKind::Prefill, &prompt[..5], 0, outputs).unwrap();
        assert_eq!(loaded.backend.logits().len(), rows * vocabulary);
        assert!(loaded.backend.logits().iter().all(|logit| logit.is_finite()));
    }

    // The way a prompt is split into calls changes nothing, nor does what ran before.
    let whole = loaded.read(&prompt);
    for (position, token) in prompt.iter().enumerate().skip(590) {
        loaded
            .run(GraphKind::Decode, &[*token], position, Outputs::Last)
            .unwrap();
    }
    assert!(loaded.backend.logits() == whole, "decoded one by one");
    assert!(load().read(&prompt) == whole, "on a fresh backend");

    // A token sees what stands before it, and only that.
    let mut other = prompt.clone();
    other[100] = (other[100] + 1) % vocabulary as u32;
    assert!(loaded.read(&other) != whole, "an earlier token was ignored");
    loaded
        .run(GraphKind::Prefill, &prompt[..100], 0, Outputs::Last)
        .unwrap();
    let before = loaded.backend.logits().to_vec();
    assert!(before == load().read(&prompt[..100]), "later positions were seen");

    // Bad calls are refused, and the next good one works.
    let unknown = loaded
        .run(GraphKind::Decode, &[vocabulary as u32], 0, Outputs::Last)
        .unwrap_err();
    assert!(matches!(unknown, BackendError::UnknownToken { .. }), "{unknown}");
    let full = loaded
        .run(GraphKind::Decode, &[0], WINDOW, Outputs::Last)
        .unwrap_err();
    assert!(matches!(full, BackendError::Kv(KvError::Full { .. })), "{full}");
    loaded.run(GraphKind::Prefill, &[], 0, Outputs::Last).unwrap();
    assert!(loaded.backend.logits().is_empty());

    // Without the head there are keys but no logits; attached again, all is as before.
    assert!(loaded.backend.component_bytes(Component::Head) > 0);
    loaded.backend.detach(Component::Head);
    assert_eq!(loaded.backend.component_bytes(Component::Head), 0);
    let detached = loaded
        .run(GraphKind::Prefill, &prompt[..5], 0, Outputs::Last)
        .unwrap_err();
    assert!(
        matches!(detached, BackendError::Detached(Component::Head)),
        "{detached}"
    );
    loaded
        .run(GraphKind::Prefill, &prompt[..99], 0, Outputs::None)
        .unwrap();
    loaded.backend.attach(Component::Head).unwrap();
    loaded
        .run(GraphKind::Decode, &prompt[99..100], 99, Outputs::Last)
        .unwrap();
    assert!(loaded.backend.logits() == before, "after the head came back");
}

#[test]
fn the_cpu_backend_conforms_on_every_architecture() {
    for model in [
        "tiny-llama3-q4_k.gguf",
        "tiny-qwen2-q5_0.gguf",
        "tiny-qwen3-mixed.gguf",
        "tiny-gemma3-f32.gguf",
    ] {
        conforms(&|| cpu(model));
    }
}
