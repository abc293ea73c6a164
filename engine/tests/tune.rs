//! Tuning from beginning to end on a small model with random weights, and what becomes of its profile.

mod common;

use common::{models, tiny};
use reprise_engine::load::Loaded;
use reprise_engine::profile::Source;
use reprise_engine::tune::store::{self, Stored};
use reprise_engine::tune::{MOST_KL, MOST_RISE, Tuner};
use reprise_engine::worker::Worker;
use reprise_engine::{GenerateOptions, KvChoice, LoadOptions, SamplingOptions};

fn options() -> LoadOptions {
    LoadOptions {
        threads: Some(2),
        ..LoadOptions::default()
    }
}

#[test]
fn the_smallest_format_within_the_bounds_is_chosen_and_found_again() {
    let path = tiny("tiny-qwen2-q5_0.gguf");
    let folder = std::env::temp_dir().join(format!("reprise-tune-{}", std::process::id()));
    let mut loaded = Loaded::load(&path, &options()).unwrap();
    assert_eq!(loaded.source, Source::Cautious);
    let shapes: Vec<_> = loaded.layouts.iter().map(|layout| layout.shape).collect();
    let mut tuner = Tuner::new(&shapes, loaded.tokenizer.clone()).unwrap();
    let mut shares = vec![tuner.progress()];
    let tuned = loop {
        if let Some(tuned) = tuner.step(&mut *loaded.backend).unwrap() {
            break tuned;
        }
        shares.push(tuner.progress());
    };
    assert!(shares.is_sorted() && shares[0] < 0.01, "progress never goes back");

    // The choice is within the bounds, and nothing smaller is.
    let chosen = tuned
        .verdicts
        .iter()
        .find(|verdict| verdict.profile == tuned.profile);
    let chosen_bytes = match chosen {
        Some(verdict) => {
            assert!(verdict.is_within_bounds());
            assert!(verdict.total().mean_kl() < MOST_KL && verdict.total().perplexity_rise() < MOST_RISE);
            verdict.token_bytes
        }
        None => usize::MAX,
    };
    for verdict in tuned
        .verdicts
        .iter()
        .filter(|verdict| verdict.token_bytes < chosen_bytes)
    {
        assert!(
            !verdict.is_within_bounds(),
            "{} is smaller and passes",
            verdict.name
        );
    }
    assert!(tuned.latencies.prefill_tokens > 0 && tuned.latencies.decode.len() == 4);

    // Stored and read back, it is the same to the last bit, and a load finds it.
    let stored = Stored::new(loaded.gguf.fingerprint(), "a model".into(), &tuned);
    let file = store::save(&folder, &stored).unwrap();
    let found = store::load(&folder, &loaded.gguf.fingerprint()).unwrap();
    assert_eq!(found.profile(), Some(tuned.profile.clone()));
    let with_folder = LoadOptions {
        profiles: Some(folder.clone()),
        ..options()
    };
    let again = Loaded::load(&path, &with_folder).unwrap();
    assert_eq!(
        (again.source, again.profile),
        (Source::Tuned, tuned.profile.clone())
    );
    // A broken file is no profile, and no error.
    std::fs::write(&file, "{ rubbish").unwrap();
    assert_eq!(
        Loaded::load(&path, &with_folder).unwrap().source,
        Source::Cautious
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_idle_engine_tunes_a_new_model_and_answers_meanwhile() {
    let path = tiny("tiny-llama3-q4_k.gguf");
    let folder = std::env::temp_dir().join(format!("reprise-idle-tune-{}", std::process::id()));
    let mut worker = Worker::load(
        &path,
        &LoadOptions {
            tunes_when_idle: true,
            profiles: Some(folder.clone()),
            ..options()
        },
    )
    .unwrap();
    let ask = GenerateOptions {
        sampling: SamplingOptions::greedy(),
        max_tokens: 12,
        ..GenerateOptions::default()
    };
    let prompt: Vec<u32> = (5..80).collect();
    let before = worker.generate(&prompt, &ask).unwrap();
    let mut steps = 0;
    while worker.has_idle_work() {
        worker.idle_turn();
        steps += 1;
        if steps == 40 {
            // In the middle: the same answer, from the same profile and the same kept KV.
            assert!(worker.snapshot().tuning.is_some_and(|tuning| tuning.share > 0.0));
            let answer = worker.generate(&prompt, &ask).unwrap();
            assert_eq!(
                (answer.text, answer.reused_tokens),
                (before.text.clone(), prompt.len() - 1)
            );
        }
        assert!(steps < 100_000);
    }
    assert!(steps > 40 && worker.snapshot().tuning.is_none());
    // The new profile is in use and stored: a fresh worker finds it and answers the same.
    let after = worker.generate(&prompt, &ask).unwrap();
    let mut fresh = Worker::load(
        &path,
        &LoadOptions {
            profiles: Some(folder.clone()),
            ..options()
        },
    )
    .unwrap();
    assert_eq!(worker.profile(), fresh.profile());
    assert_eq!(after.text, fresh.generate(&prompt, &ask).unwrap().text);
    assert!(worker.pool().verify().is_ok());
    // Asked for by name, a format is not second-guessed.
    let kv = KvChoice::Uniform {
        keys: reprise_engine::KvFormat::Q8,
        values: reprise_engine::KvFormat::Q8,
    };
    let fixed = LoadOptions {
        tunes_when_idle: true,
        profiles: Some(folder.clone()),
        kv,
        ..options()
    };
    assert!(!Worker::load(&path, &fixed).unwrap().has_idle_work());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_default_model_comes_with_a_profile_that_fits_it() {
    let loaded = Loaded::load(&models().join("SmolLM2-135M-Instruct.Q4_1.gguf"), &options()).unwrap();
    assert_eq!(loaded.source, Source::Shipped);
    let half: usize = loaded
        .layouts
        .iter()
        .map(|layout| 2 * 2 * layout.shape.kv_heads * layout.shape.head_dim)
        .sum();
    assert!(
        loaded.info.kv_token_bytes * 2 < half,
        "less than half of f16's {half} bytes"
    );
}
