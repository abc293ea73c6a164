//! A damaged model file is an error with words, never a panic: not when it is opened, not when its weights are packed,
//! and not when it answers.

use reprise_engine::{CancelToken, Engine, GenerateOptions, LoadOptions, SamplingOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

fn tiny(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/golden/tiny")
        .join(name);
    std::fs::read(path).unwrap()
}

/// Opens a file and, when that works, answers with it.
fn try_out(path: &Path) -> Result<(), String> {
    let load = LoadOptions {
        threads: Some(2),
        context_tokens: None,
        ..LoadOptions::default()
    };
    let engine = Engine::load(path, &load).map_err(|e| e.to_string())?;
    let options = GenerateOptions {
        sampling: SamplingOptions::greedy(),
        max_tokens: 3,
        ..GenerateOptions::default()
    };
    let prompt: Vec<u32> = (0..20).collect();
    engine
        .generate(&prompt, &options, &CancelToken::default(), &mut |_| ())
        .map_err(|e| e.to_string())?;
    Ok(())
}

/// Writes `bytes`, tries them out, and returns how it went; panics with the seed when that panicked.
fn outcome(bytes: &[u8], seed: u64) -> Result<(), String> {
    // A file of its own for each call: a mapped file must not change under its reader.
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("reprise-hostile-{}-{call}.gguf", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let result = std::panic::catch_unwind(|| try_out(&path));
    std::fs::remove_file(&path).unwrap();
    result.unwrap_or_else(|_| panic!("seed {seed} panicked"))
}

struct Noise(u64);

impl Noise {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }
}

#[test]
fn mutated_headers_never_panic() {
    let mut refused = 0;
    for (file, seeds) in [
        ("tiny-llama3-q4_k.gguf", 0..150),
        ("tiny-gemma3-f32.gguf", 150..300),
    ] {
        let whole = tiny(file);
        for seed in seeds {
            let mut noise = Noise(seed);
            let mut bytes = whole.clone();
            // Most of what steers the engine stands in the first kilobytes; tensor descriptions come after the vocabulary.
            let header = if seed % 3 == 0 { bytes.len() } else { 1_500 };
            for _ in 0..1 + noise.below(4) {
                let at = noise.below(header);
                bytes[at] = match noise.below(4) {
                    0 => 0,
                    1 => 0xff,
                    _ => noise.below(256) as u8,
                };
            }
            if let Err(words) = outcome(&bytes, seed) {
                assert!(words.len() > 20, "seed {seed}: {words}");
                refused += 1;
            }
        }
    }
    assert!(
        refused > 30,
        "only {refused} of 300 were refused: the mutations do not reach anything"
    );
}

#[test]
fn numbers_that_make_no_sense_are_refused_by_name() {
    let whole = tiny("tiny-llama3-q4_k.gguf");
    let number_after = |key: &str| {
        let at = whole
            .windows(key.len())
            .position(|window| window == key.as_bytes())
            .unwrap();
        at + key.len() + 4
    };
    for (key, value) in [
        ("llama.block_count", 0u32),
        ("llama.block_count", u32::MAX),
        ("llama.embedding_length", 0),
        ("llama.embedding_length", 17),
        ("llama.attention.head_count", 0),
        ("llama.attention.head_count", 7),
        ("llama.attention.head_count_kv", 3),
        ("llama.feed_forward_length", u32::MAX),
        ("llama.context_length", 0),
        ("llama.rope.dimension_count", 63),
    ] {
        let mut bytes = whole.clone();
        let at = number_after(key);
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let words = outcome(&bytes, u64::from(value)).expect_err(key);
        assert!(words.contains(".gguf"), "{key} = {value}: {words}");
    }
}
