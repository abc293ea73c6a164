//! Vectors of texts, held against those that another program computed (`tests/golden/encoder/make_vectors.py`).

use std::path::PathBuf;
use std::time::Instant;

use reprise_engine::encoder::{Encoder, EncoderError, Workspace};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    texts: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    vector: Vec<f32>,
}

fn folder() -> Option<PathBuf> {
    let models = std::env::var_os("REPRISE_MODELS")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/reprise/models")))?;
    Some(models.join("all-MiniLM-L6-v2")).filter(|folder| folder.is_dir())
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn vectors_are_those_of_the_reference() {
    let Some(folder) = folder() else {
        eprintln!("not run: all-MiniLM-L6-v2 is not here (reprise models fetch all-minilm-l6-v2)");
        return;
    };
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/encoder/vectors.json"
    );
    let golden: Golden = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let encoder = Encoder::load(&folder).unwrap();
    let mut workspace = Workspace::new(&encoder);
    let texts: Vec<&str> = golden.texts.iter().map(|text| text.text.as_str()).collect();
    let vectors = encoder.embed(&texts, &mut workspace).unwrap();
    for (text, vector) in golden.texts.iter().zip(&vectors) {
        let cosine = cosine(&text.vector, vector);
        println!("{cosine:.6} {:.50}", text.text);
        // Weights and activations are in eight bits: no text comes to 0.9984, one of a word to 0.99899.
        assert!(cosine > 0.995, "{cosine} for {}", text.text);
    }
    // A text's vector does not depend on its company.
    for (text, vector) in texts.iter().zip(&vectors) {
        assert_eq!(
            &encoder.embed(&[text], &mut workspace).unwrap()[0],
            vector,
            "{text}"
        );
    }
}

#[test]
fn broken_files_are_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        Encoder::load(folder.path()),
        Err(EncoderError::Read { .. })
    ));
    std::fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    let error = Encoder::load(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("tokenizer.json") && error.contains("fetch it again"),
        "{error}"
    );
}

/// `cargo test --release -p reprise-engine --test encoder -- --ignored --nocapture`
#[test]
#[ignore = "measures time"]
fn how_long_a_passage_takes() {
    let Some(folder) = folder() else { return };
    let encoder = Encoder::load(&folder).unwrap();
    let mut workspace = Workspace::new(&encoder);
    // 198 words of one token each, and the two around them.
    let text = ["house", "water", "green", "seven", "music", "under"]
        .repeat(33)
        .join(" ");
    let texts = vec![text; 8];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        encoder.embed(&texts, &mut workspace).unwrap();
        best = best.min(begin.elapsed().as_secs_f64() / texts.len() as f64);
    }
    println!("{:.1} ms a passage of 200 tokens on one thread", best * 1e3);
}
