//! The engine's logits against llama.cpp's: see tests/golden/README.md for what the files hold and how they were made.

mod common;
#[path = "../../tests/golden/golden.rs"]
mod golden;

use common::{Model, models};
use golden::{Golden, Score, golden_dir};
use reprise_engine::backend::{GraphKind, Outputs};
use std::path::{Path, PathBuf};

/// Logits at the golden positions, with the prompt read in calls of `call_tokens`.
fn logits(model: &Path, golden: &Golden, call_tokens: usize, threads: usize) -> Vec<Vec<f32>> {
    let mut loaded = Model::load(model, threads, 256, &common::half);
    let vocabulary = loaded.vocabulary;
    let mut rows = Vec::new();
    let mut start = 0;
    for tokens in golden.token_ids.chunks(call_tokens) {
        let kind = if tokens.len() == 1 {
            GraphKind::Decode
        } else {
            GraphKind::Prefill
        };
        loaded.run(kind, tokens, start, Outputs::All).unwrap();
        for (i, row) in loaded.backend.logits().chunks_exact(vocabulary).enumerate() {
            if golden.positions.contains(&(start + i)) {
                rows.push(row.to_vec());
            }
        }
        start += tokens.len();
    }
    rows
}

/// Runs one model, when its file is there.
fn score(model: &Path, golden: &str) -> Option<(Score, Score)> {
    if !model.is_file() {
        println!("SKIPPED {golden}: {} is not there", model.display());
        return None;
    }
    let golden = Golden::load(&golden_dir().join("logits").join(golden)).unwrap();
    let score = golden.score(logits(model, &golden, 64, 2));
    let peer = golden.peer_score();
    println!(
        "{}: KL {:.7} (llama.cpp {:.7}, ratio {:.2}), worst {:.5}, top-1 {:.3} (llama.cpp {:.3})",
        model.display(),
        score.mean_kl,
        peer.mean_kl,
        score.mean_kl / peer.mean_kl,
        score.max_kl,
        score.top1_agreement,
        peer.top1_agreement
    );
    Some((score, peer))
}

fn assert_quantised(model: &Path, golden: &str) {
    if let Some((score, peer)) = score(model, golden) {
        assert!(score.mean_kl < 0.02, "mean KL {}", score.mean_kl);
        assert!(
            score.mean_kl <= 1.2 * peer.mean_kl,
            "mean KL {} against {}",
            score.mean_kl,
            peer.mean_kl
        );
        assert!(
            score.top1_agreement >= 0.95,
            "top-1 agreement {}",
            score.top1_agreement
        );
    }
}

fn tiny(name: &str) -> PathBuf {
    golden_dir().join("tiny").join(name)
}

#[test]
fn f32_files_of_every_architecture_agree_to_a_ten_thousandth_of_a_nat() {
    for name in [
        "tiny-qwen3-f32",
        "tiny-llama3-f32",
        "tiny-qwen2-f32",
        "tiny-gemma3-f32",
    ] {
        let (score, _) = score(&tiny(&format!("{name}.gguf")), &format!("{name}.golden")).unwrap();
        assert!(score.mean_kl < 1e-4, "{name}: mean KL {}", score.mean_kl);
        assert!(
            score.top1_agreement >= 0.98,
            "{name}: top-1 agreement {}",
            score.top1_agreement
        );
    }
}

#[test]
fn quantised_files_of_every_architecture_are_as_close_as_llama_cpp_is() {
    for name in [
        "tiny-qwen3-mixed",
        "tiny-llama3-q4_k",
        "tiny-qwen2-q5_0",
        "tiny-gemma3-mixed",
    ] {
        assert_quantised(&tiny(&format!("{name}.gguf")), &format!("{name}.golden"));
    }
}

#[test]
fn the_default_model_is_as_close_as_llama_cpp_is() {
    let model = models().join("SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(
        model.is_file(),
        "{} is missing; models/fetch brings it",
        model.display()
    );
    assert_quantised(&model, "smollm2-135m-q4_1.golden");
}

#[test]
fn the_default_model_requantised_is_as_close_as_llama_cpp_is() {
    assert_quantised(
        &models().join("SmolLM2-135M-Instruct.Q4_0.gguf"),
        "smollm2-135m-q4_0.golden",
    );
}

#[test]
fn qwen_coder_is_as_close_as_llama_cpp_is() {
    let model = models().join("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    assert_quantised(&model, "qwen2.5-coder-0.5b-q4_k_m.golden");
}

#[test]
fn gemma_is_as_close_as_llama_cpp_is() {
    assert_quantised(
        &models().join("gemma-3-270m-q4_k_m.gguf"),
        "gemma-3-270m-q4_k_m.golden",
    );
}

#[test]
fn logits_depend_neither_on_how_a_prompt_is_split_into_calls_nor_on_threads() {
    for name in ["tiny-gemma3-mixed", "tiny-llama3-q4_k", "tiny-qwen3-f32"] {
        let golden = Golden::load(&golden_dir().join(format!("logits/{name}.golden"))).unwrap();
        let model = tiny(&format!("{name}.gguf"));
        let whole = logits(&model, &golden, 200, 2);
        for (call_tokens, threads) in [(1, 2), (7, 3), (64, 1)] {
            let split = logits(&model, &golden, call_tokens, threads);
            assert!(
                split == whole,
                "{name} in calls of {call_tokens} on {threads} threads"
            );
        }
    }
}
