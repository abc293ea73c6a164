//! What every backend promises (see `reprise_engine::backend::Backend`), checked by one body for each of them, in every
//! KV format.

mod common;

use common::{Model, tiny, tokens};
use reprise_engine::backend::{
    BackendError, Component, Deviation, GraphCall, GraphKind, Outputs, Selection, Stretch,
};
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
        .map(|(sequence, &len)| Stretch::new(sequence, len - 1, &prompt[len - 1..len]))
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
        Stretch::new(1, 0, &prompt[..150]),
        Stretch::new(2, 0, &prompt[..77]),
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
    let stretch = Stretch::new(3, 599, &prompt[599..]);
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
    let stretches = [Stretch::new(0, 5_000, &[0])];
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

    recomputes(&mut load(), &prompt, &whole);
}

/// Tokens at positions of their own, recomputation of those that deviate, and who gets attention.
fn recomputes(loaded: &mut Model, prompt: &[u32], whole: &[f32]) {
    let vocabulary = loaded.vocabulary;
    let tokens_at = |positions: &[usize]| -> Vec<u32> { positions.iter().map(|&p| prompt[p]).collect() };
    let run_at = |loaded: &mut Model, positions: &[usize], tokens: &[u32], outputs| {
        loaded.call(&GraphCall {
            kind: GraphKind::Prefill,
            stretches: &[Stretch::at(0, positions, tokens)],
            outputs,
        })
    };
    // All is there, and everything from position 100 on may be written.
    loaded
        .run(GraphKind::Prefill, &prompt[..100], 0, Outputs::None)
        .unwrap();
    loaded.sequences[0].prepare(600, None).unwrap();
    let capacity = loaded.backend.capacity(GraphKind::Prefill);
    for start in (100..600).step_by(capacity) {
        let end = (start + capacity).min(600);
        let stretches = [Stretch::new(0, start, &prompt[start..end])];
        loaded
            .call(&GraphCall {
                kind: GraphKind::Prefill,
                stretches: &stretches,
                outputs: Outputs::None,
            })
            .unwrap();
    }

    // Each token sees what stands up to its own position: what is computed again is what was there.
    let some = [150, 300, 511, 512, 599];
    run_at(loaded, &some, &tokens_at(&some), Outputs::All).unwrap();
    assert!(
        loaded.backend.logits()[4 * vocabulary..] == *whole,
        "the last of some"
    );
    let first = loaded.backend.logits()[..vocabulary].to_vec();
    for wrong in [&[300, 150][..], &[150, 150], &[150]] {
        let error = run_at(loaded, wrong, &prompt[..2], Outputs::None).unwrap_err();
        assert!(matches!(error, BackendError::Positions { .. }), "{error}");
    }

    // A foreign token at position 300 makes a difference; it deviates most, and is put right.
    let foreign = [(prompt[300] + 1) % vocabulary as u32];
    run_at(loaded, &[300], &foreign, Outputs::None).unwrap();
    run_at(loaded, &[599], &prompt[599..], Outputs::Last).unwrap();
    assert!(loaded.backend.logits() != whole, "the foreign token was not seen");
    for of in [Deviation::Keys, Deviation::Values, Deviation::Both] {
        run_at(loaded, &[300], &foreign, Outputs::None).unwrap();
        let positions: Vec<usize> = (200..400).chain([599]).collect();
        let tokens = tokens_at(&positions);
        let selection = Selection {
            check: 1,
            of,
            rows: 2,
            forced: &[200],
        };
        let chosen = recompute(loaded, &positions, &tokens, &selection).unwrap();
        assert_eq!(chosen, [100, 200], "{of:?}");
        assert!(loaded.backend.logits() == whole, "{of:?}");
    }
    // With room for all of them it is reading.
    let positions: Vec<usize> = (300..600).collect();
    let everything = Selection {
        check: 0,
        of: Deviation::Values,
        rows: usize::MAX,
        forced: &[],
    };
    run_at(loaded, &[300], &foreign, Outputs::None).unwrap();
    let chosen = recompute(loaded, &positions, &tokens_at(&positions), &everything).unwrap();
    assert_eq!(chosen.len(), 300);
    assert!(loaded.backend.logits() == whole);
    for bad in [
        Selection {
            check: 99,
            ..everything
        },
        Selection {
            forced: &[300],
            ..everything
        },
        Selection {
            rows: 0,
            forced: &[0],
            ..everything
        },
    ] {
        let error = recompute(loaded, &positions, &tokens_at(&positions), &bad).unwrap_err();
        assert!(matches!(error, BackendError::Selection { .. }), "{error}");
    }

    // Every head of every token gives one in all, and to nobody behind it.
    let kv = &mut reprise_kv::KvLanes::new(&loaded.layouts, &mut loaded.sequences);
    let received = loaded
        .backend
        .probe(&Stretch::new(0, 580, &prompt[580..]), prompt.len() - 580, kv)
        .unwrap();
    assert_eq!(received.len(), 600);
    let sum: f32 = received.iter().sum();
    let given = sum / 20.0;
    assert!(given >= 1.0 && (given - given.round()).abs() < 1e-3, "{given}");
    assert!(received.iter().all(|share| share.is_finite() && *share >= 0.0));
    // What it wrote is written again before it is used.
    let rest: Vec<usize> = (580..600).collect();
    run_at(loaded, &rest, &prompt[580..], Outputs::Last).unwrap();
    assert!(loaded.backend.logits() == whole);
    run_at(loaded, &[150], &prompt[150..151], Outputs::All).unwrap();
    assert!(loaded.backend.logits() == first);
}

fn recompute(
    loaded: &mut Model,
    positions: &[usize],
    tokens: &[u32],
    selection: &Selection<'_>,
) -> Result<Vec<usize>, BackendError> {
    let mut kv = reprise_kv::KvLanes::new(&loaded.layouts, &mut loaded.sequences);
    let stretch = Stretch::at(0, positions, tokens);
    loaded
        .backend
        .recompute(&stretch, selection, Outputs::Last, &mut kv)
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
