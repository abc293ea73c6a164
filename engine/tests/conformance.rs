//! What every backend promises (see `reprise_engine::backend::Backend`), checked by one body for each of them, in every
//! KV format.

mod common;

use common::{Model, tiny, tokens};
use reprise_engine::backend::{BackendError, Component, GraphCall, GraphKind, Outputs, Stretch};
use reprise_kv::{KvFormat, KvProfile, LayerShape, ResidualKeys};

const WINDOW: usize = 700;

fn conforms(load: &dyn Fn() -> Model) {
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
    let whole = loaded.read(0, &prompt);
    for (position, token) in prompt.iter().enumerate().skip(590) {
        loaded
            .run(GraphKind::Decode, &[*token], position, Outputs::Last)
            .unwrap();
    }
    assert!(loaded.backend.logits() == whole, "decoded one by one");
    assert!(load().read(0, &prompt) == whole, "on a fresh backend");

    // Several tokens of one sequence in a decode call: each as if it came alone.
    let alone: Vec<Vec<f32>> = (596..600)
        .map(|position| {
            loaded
                .run(
                    GraphKind::Decode,
                    &prompt[position..=position],
                    position,
                    Outputs::Last,
                )
                .unwrap();
            loaded.backend.logits().to_vec()
        })
        .collect();
    loaded
        .run(GraphKind::Decode, &prompt[596..], 596, Outputs::All)
        .unwrap();
    assert!(loaded.backend.logits() == alone.concat(), "verified together");

    // Sequences share a call without seeing each other, at positions far apart.
    let lens = [600, 37, 512, 300];
    for (sequence, len) in lens.into_iter().enumerate().skip(1) {
        loaded.read(sequence, &prompt[..len - 1]);
    }
    loaded
        .run(GraphKind::Decode, &prompt[598..599], 598, Outputs::Last)
        .unwrap();
    let stretches: Vec<Stretch<'_>> = lens
        .iter()
        .enumerate()
        .map(|(sequence, &len)| Stretch {
            sequence,
            start: len - 1,
            tokens: &prompt[len - 1..len],
        })
        .collect();
    loaded
        .run_all(GraphKind::Decode, &stretches, Outputs::Last)
        .unwrap();
    let together = loaded.backend.logits().to_vec();
    for (row, len) in together.chunks_exact(vocabulary).zip(lens) {
        assert!(
            row == load().read(0, &prompt[..len]),
            "lane of {len} tokens in company"
        );
    }
    // Prompts may share a call, too.
    let stretches = [
        Stretch {
            sequence: 1,
            start: 0,
            tokens: &prompt[..150],
        },
        Stretch {
            sequence: 2,
            start: 0,
            tokens: &prompt[..77],
        },
    ];
    loaded
        .run_all(GraphKind::Prefill, &stretches, Outputs::Last)
        .unwrap();
    let both = loaded.backend.logits().to_vec();
    assert!(both[..vocabulary] == load().read(0, &prompt[..150]));
    assert!(both[vocabulary..] == load().read(0, &prompt[..77]));

    // A fork goes on where its origin stood, and neither disturbs the other.
    loaded.read(0, &prompt);
    let fork = loaded.sequences[0].fork(599);
    loaded.sequences[3] = fork;
    loaded
        .run(GraphKind::Decode, &prompt[..1], 600, Outputs::Last)
        .unwrap();
    let stretch = Stretch {
        sequence: 3,
        start: 599,
        tokens: &prompt[599..],
    };
    loaded
        .run_all(GraphKind::Decode, &[stretch], Outputs::Last)
        .unwrap();
    assert!(loaded.backend.logits() == whole, "in a fork");

    // A token sees what stands before it, and only that.
    let mut other = prompt.clone();
    other[100] = (other[100] + 1) % vocabulary as u32;
    assert!(loaded.read(0, &other) != whole, "an earlier token was ignored");
    loaded
        .run(GraphKind::Prefill, &prompt[..100], 0, Outputs::Last)
        .unwrap();
    let before = loaded.backend.logits().to_vec();
    assert!(
        before == load().read(0, &prompt[..100]),
        "later positions were seen"
    );

    // Bad calls are refused, and the next good one works.
    let unknown = loaded
        .run(GraphKind::Decode, &[vocabulary as u32], 0, Outputs::Last)
        .unwrap_err();
    assert!(matches!(unknown, BackendError::UnknownToken { .. }), "{unknown}");
    let stretches = [Stretch {
        sequence: 0,
        start: 5_000,
        tokens: &[0],
    }];
    let unprepared = loaded
        .call(&GraphCall {
            kind: GraphKind::Decode,
            stretches: &stretches,
            outputs: Outputs::Last,
        })
        .unwrap_err();
    assert!(
        matches!(unprepared, BackendError::NotPrepared { .. }),
        "{unprepared}"
    );
    loaded.run(GraphKind::Prefill, &[], 0, Outputs::Last).unwrap();
    assert!(loaded.backend.logits().is_empty());

    // Without the head there are keys but no logits; attached again, all is as before.
    assert!(loaded.backend.component_bytes(Component::Head) > 0);
    loaded.backend.detach(Component::Head);
    assert_eq!(loaded.backend.component_bytes(Component::Head), 0);
    assert!(!loaded.backend.is_attached(Component::Head));
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

const MODELS: [&str; 4] = [
    "tiny-llama3-q4_k.gguf",
    "tiny-qwen2-q5_0.gguf",
    "tiny-qwen3-mixed.gguf",
    "tiny-gemma3-f32.gguf",
];

#[test]
fn the_cpu_backend_conforms_on_every_architecture() {
    for model in MODELS {
        conforms(&|| Model::load(&tiny(model), 2, WINDOW, &common::half));
    }
}

#[test]
fn the_cpu_backend_conforms_in_eight_bits() {
    for model in MODELS {
        let profile = |shapes: &[LayerShape]| KvProfile::uniform(shapes, KvFormat::Q8, KvFormat::Q8);
        conforms(&|| Model::load(&tiny(model), 2, WINDOW, &profile));
    }
}

#[test]
fn the_cpu_backend_conforms_in_four_bits() {
    for model in MODELS {
        let profile = |shapes: &[LayerShape]| KvProfile::uniform(shapes, KvFormat::Tq4, KvFormat::Tq4);
        conforms(&|| Model::load(&tiny(model), 2, WINDOW, &profile));
    }
}

#[test]
fn the_cpu_backend_conforms_with_residual_keys() {
    for model in MODELS {
        let profile = |shapes: &[LayerShape]| {
            let mut profile = KvProfile::uniform(shapes, KvFormat::Tq4, KvFormat::Q8);
            for (layer, shape) in profile.layers.iter_mut().zip(shapes) {
                let len = shape.kv_heads * shape.head_dim;
                layer.residual = Some(ResidualKeys {
                    mean: (0..len).map(|i| (i as f32 * 0.7).sin() * 0.5).collect(),
                    scale: vec![1.5; len],
                });
            }
            profile
        };
        conforms(&|| Model::load(&tiny(model), 3, WINDOW, &profile));
    }
}
