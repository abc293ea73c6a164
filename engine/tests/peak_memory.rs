//! A model is in memory once: the most the process ever holds is the file's size, the keys and values, and 150 MB.

mod common;

use common::models;
use reprise_engine::{CancelToken, Engine, GenerateOptions, LoadOptions, SamplingOptions, machine};

// One test alone in its binary: the peak is the process's.
#[test]
fn the_default_model_stays_within_its_file_its_keys_and_150_mb() {
    let Some(_) = machine::peak_resident_bytes() else {
        println!("SKIPPED: this system does not say how much memory a process has had");
        return;
    };
    let path = models().join("SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(
        path.is_file(),
        "{} is missing; models/fetch brings it",
        path.display()
    );
    let engine = Engine::load(&path, &LoadOptions::default()).unwrap();
    let prompt: Vec<u32> = (100..700).collect();
    let options = GenerateOptions {
        sampling: SamplingOptions::greedy(),
        max_tokens: 4,
        ..GenerateOptions::default()
    };
    engine
        .generate(&prompt, &options, &CancelToken::default(), &mut |_| ())
        .unwrap();
    let kv = engine.snapshot().memory.kv_bytes;
    let bound = engine.info().file_bytes + kv + 150_000_000;
    let peak = machine::peak_resident_bytes().unwrap();
    println!("peak {} MB of at most {} MB", peak / 1_000_000, bound / 1_000_000);
    assert!(peak <= bound, "peak {peak} bytes, bound {bound}");
}
