//! Token ids equal those of llama.cpp (tests/golden/tokens, made by make.py there) for every vocabulary that is at hand.

mod common;

use std::path::Path;

use common::GgufWriter;
use reprise_model::gguf::Gguf;
use reprise_model::tokenizer::{Specials, TokenId, Tokenizer};

#[derive(serde::Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    text: String,
    repeat: Option<(String, usize)>,
}

impl Entry {
    fn whole(&self) -> String {
        let (unit, count) = self
            .repeat
            .as_ref()
            .map_or(("", 0), |(unit, count)| (unit, *count));
        self.text.clone() + &unit.repeat(count)
    }
}

#[derive(serde::Deserialize)]
struct Case {
    model: String,
    pre: Option<String>,
    space_prefix: Option<bool>,
    size: usize,
    ends: Vec<TokenId>,
    control: u64,
    pieces: u64,
    document: Vec<TokenId>,
    ids: Vec<Vec<Vec<TokenId>>>,
}

/// REPRISE_TOKEN_GOLDENS names another folder, for a corpus too large to keep.
fn golden<T: serde::de::DeserializeOwned>(file: &str) -> T {
    let folder = match std::env::var_os("REPRISE_TOKEN_GOLDENS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tokens"),
    };
    serde_json::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap()
}

fn fnv1a<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> u64 {
    let bytes = chunks.flat_map(|chunk| chunk.iter().copied().chain([chunk.len() as u8]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |value, byte| {
        (value ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Holds every case of one model against the golden ids.
fn hold(model: &Path) {
    let file = model.file_name().unwrap().to_str().unwrap();
    let gguf = Gguf::open(model).unwrap();
    let corpus: Vec<Entry> = golden("corpus.json");
    let cases: Vec<Case> = golden("tokens.json");
    let mut held = 0;
    for case in cases
        .iter()
        .filter(|case| case.model == file && case.space_prefix.is_none())
    {
        let tokenizer = match &case.pre {
            Some(pre) => Tokenizer::with_pre_tokenizer(&gguf, pre),
            None => Tokenizer::from_gguf(&gguf),
        }
        .unwrap();
        hold_case(&tokenizer, case, &corpus);
        held += 1;
    }
    assert!(held > 0, "no golden ids for {file}");
    println!(
        "{file}: {} texts x {held} pre-tokenisers x 2 modes are equal",
        corpus.len()
    );
}

fn hold_case(tokenizer: &Tokenizer, case: &Case, corpus: &[Entry]) {
    let label = format!("{} as {:?}", case.model, case.pre);
    assert_eq!(tokenizer.vocab_size(), case.size, "{label}");
    assert_eq!(tokenizer.end_of_generation(), case.ends, "{label}");
    let all = 0..case.size as TokenId;
    let control = all.clone().map(|id| {
        if tokenizer.is_control(id) {
            &[1u8][..]
        } else {
            &[0]
        }
    });
    assert_eq!(
        fnv1a(control),
        case.control,
        "{label}: which tokens are control tokens"
    );
    assert_eq!(
        fnv1a(all.map(|id| tokenizer.piece(id))),
        case.pieces,
        "{label}: the tokens' bytes"
    );
    assert_eq!(
        tokenizer.encode_document("Hello", Specials::AsText),
        case.document,
        "{label}"
    );
    assert_eq!(corpus.len(), case.ids.len(), "run make.py again");
    let mut wrong = Vec::new();
    for (entry, expected) in corpus.iter().zip(&case.ids) {
        let text = entry.whole();
        let plain = tokenizer.encode(&text, Specials::AsText);
        let parsed = tokenizer.encode(&text, Specials::Parse);
        for (mode, got, expected) in [
            ("plain", &plain, &expected[0]),
            ("parsed", &parsed, expected.last().unwrap()),
        ] {
            if got != expected {
                let at = got
                    .iter()
                    .zip(expected)
                    .take_while(|(got, expected)| got == expected)
                    .count();
                wrong.push(format!(
                    "{label}: \"{}\" ({mode}) differs at token {at}: {:?} instead of {:?}",
                    entry.name,
                    spell(tokenizer, got, at),
                    spell(tokenizer, expected, at)
                ));
            }
        }
        assert!(
            plain.iter().all(|&id| !tokenizer.is_control(id)),
            "{label}: {} typed a control token",
            entry.name
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn spell(tokenizer: &Tokenizer, ids: &[TokenId], at: usize) -> Vec<String> {
    ids.iter()
        .skip(at.saturating_sub(1))
        .take(6)
        .map(|&id| tokenizer.token_text(id).unwrap().to_owned())
        .collect()
}

#[test]
fn smollm2_vocabulary_with_every_pre_tokeniser() {
    hold(&common::smollm2());
}

#[test]
fn qwen_vocabulary_with_every_pre_tokeniser() {
    if let Some(model) = common::optional_model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf") {
        hold(&model);
    }
}

#[test]
fn gemma_vocabulary() {
    if let Some(model) = common::optional_model("gemma-3-270m-q4_k_m.gguf") {
        hold(&model);
    }
}

/// Gemma's vocabulary as if texts got a space in front, as in older SentencePiece models.
#[test]
fn gemma_vocabulary_with_a_space_in_front() {
    let Some(model) = common::optional_model("gemma-3-270m-q4_k_m.gguf") else {
        return;
    };
    let gguf = Gguf::open(&model).unwrap();
    let strings: Vec<&str> = gguf.str_array("tokenizer.ggml.tokens").unwrap().iter().collect();
    let copy = GgufWriter::default()
        .str("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &strings)
        .f32s(
            "tokenizer.ggml.scores",
            &gguf.f32_array("tokenizer.ggml.scores").unwrap(),
        )
        .i32s(
            "tokenizer.ggml.token_type",
            &gguf.i32_array("tokenizer.ggml.token_type").unwrap(),
        )
        .u32("tokenizer.ggml.bos_token_id", 2)
        .u32("tokenizer.ggml.eos_token_id", 1)
        .u32("tokenizer.ggml.unknown_token_id", 3)
        .bool("tokenizer.ggml.add_bos_token", true)
        .bool("tokenizer.ggml.add_space_prefix", true);
    let tokenizer = Tokenizer::from_gguf(&Gguf::from_bytes(copy.bytes()).unwrap()).unwrap();
    let cases: Vec<Case> = golden("tokens.json");
    let case = cases.iter().find(|case| case.space_prefix == Some(true)).unwrap();
    hold_case(&tokenizer, case, &golden::<Vec<Entry>>("corpus.json"));
    assert_eq!(
        tokenizer.decode(&tokenizer.encode("Hello there", Specials::AsText)),
        "Hello there"
    );
}
