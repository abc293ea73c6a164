//! What holds for every text: bytes come back, streams equal wholes, typed text steers nothing, time stays linear.

mod common;

use std::sync::LazyLock;

use common::{GgufWriter, Rng};
use proptest::prelude::*;
use reprise_model::gguf::Gguf;
use reprise_model::template::{ChatTemplate, Message, PartedMessage, Role, TemplateOptions};
use reprise_model::tokenizer::{Specials, TokenId, Tokenizer, TokenizerError};

static SMOLLM2: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::from_gguf(&Gguf::open(&common::smollm2()).unwrap()).unwrap());
static SMALL_BPE: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| {
    let gguf = Gguf::from_bytes(small_bpe().bytes()).unwrap();
    ["smollm", "qwen2", "qwen35", "llama-bpe", "gpt-2"]
        .map(|pre| Tokenizer::with_pre_tokenizer(&gguf, pre).unwrap())
        .into()
});
static SMALL_SPM: LazyLock<[Tokenizer; 2]> = LazyLock::new(|| {
    [true, false].map(|space| {
        let writer = small_spm().bool("tokenizer.ggml.add_space_prefix", space);
        Tokenizer::from_gguf(&Gguf::from_bytes(writer.bytes()).unwrap()).unwrap()
    })
});

/// All bytes, some merges (one of them to a text that is no token), control and user-defined tokens.
fn small_bpe() -> GgufWriter {
    let mut tokens: Vec<String> = common::byte_alphabet().map(String::from).collect();
    tokens.extend(
        [
            "th",
            "the",
            "Ġthe",
            "aa",
            "aaaa",
            "Ġa",
            "é",
            "<|im_end|>",
            "<s>",
            "<tool>",
        ]
        .map(String::from),
    );
    tokens[262] = "Ã©".to_owned();
    let mut types = vec![1; 263];
    types.extend([3, 3, 4]);
    GgufWriter::default()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "qwen2")
        .strings("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &types)
        .strings(
            "tokenizer.ggml.merges",
            &[
                "t h",
                "th e",
                "Ġ the",
                "a a",
                "aa aa",
                "Ġ a",
                "Ã ©",
                "aaaa aaaa",
                "< s",
                "<s >",
            ],
        )
}

fn small_spm() -> GgufWriter {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(String::from).into();
    tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    tokens.extend(
        [
            "▁", "a", "▁a", "aa", "t", "h", "th", "e", "the", "▁the", "é", "\n\n", "▁▁",
        ]
        .map(String::from),
    );
    let mut types = vec![2, 3, 3];
    types.resize(259, 6);
    types.resize(tokens.len(), 1);
    types[270] = 4;
    let scores: Vec<f32> = (0..tokens.len()).map(|id| -(id as f32)).collect();
    GgufWriter::default()
        .str("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &tokens)
        .f32s("tokenizer.ggml.scores", &scores)
        .i32s("tokenizer.ggml.token_type", &types)
}

/// Any text, often with pieces in it that matter to tokenizers.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => any::<String>(),
        2 => "[ a-z]{0,8}",
        1 => "[ \\t\\r\\n\u{a0}\u{3000}]{0,6}",
        1 => "[0-9]{0,7}",
        1 => prop::sample::select(vec!["<|im_end|>", "<s>", "</s>", "<tool>", "the", "aaaaaaaaa", "é", "👨‍👩‍👧", "'s", "▁", "\n\n", "<unk>"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn byte_level_text_comes_back(text in any_text()) {
        for tokenizer in SMALL_BPE.iter() {
            let ids = tokenizer.encode(&text, Specials::AsText);
            prop_assert_eq!(&tokenizer.decode(&ids), &text);
            prop_assert!(ids.iter().all(|&id| !tokenizer.is_control(id)));
        }
        let lacks = |c: char| matches!(c, '\u{4}' | '\u{6}' | '\u{13}' | '\u{14}' | '\u{16}' | '\u{1d}') || c >= '\u{40000}';
        let text: String = text.chars().filter(|&c| !lacks(c)).collect();
        let ids = SMOLLM2.encode(&text, Specials::AsText);
        prop_assert_eq!(SMOLLM2.decode(&ids), text);
    }

    #[test]
    fn sentence_piece_text_comes_back(text in any_text()) {
        for tokenizer in SMALL_SPM.iter() {
            // U+2581 is how these vocabularies write a space; special tokens inside text put a space after them.
            let text = text.replace('▁', "_").replace('\n', "|");
            let ids = tokenizer.encode(&text, Specials::AsText);
            prop_assert_eq!(&tokenizer.decode(&ids), &text);
            prop_assert!(ids.iter().all(|&id| !tokenizer.is_control(id)));
        }
    }

    #[test]
    fn a_stream_equals_the_whole(ids in prop::collection::vec(0u32..280, 0..40), text in any_text(), cut in 0usize..40) {
        for tokenizer in SMALL_BPE.iter().take(1).chain(SMALL_SPM.iter()) {
            for ids in [ids.clone(), tokenizer.encode(&text, Specials::Parse)] {
                let mut bytes: Vec<u8> = Vec::new();
                let mut stream = tokenizer.detokenizer();
                let mut streamed = String::new();
                for &id in &ids {
                    streamed.push_str(stream.push(tokenizer, id));
                    if !tokenizer.is_control(id) && tokenizer.token_text(id) != Some("<unk>") {
                        bytes.extend_from_slice(tokenizer.piece(id));
                    }
                }
                streamed.push_str(stream.finish());
                prop_assert_eq!(&streamed, &tokenizer.decode(&ids));
                let lossy = String::from_utf8_lossy(&bytes);
                prop_assert!(streamed == lossy || Some(streamed.as_str()) == lossy.strip_prefix(' '));
                // Continuing with a clone is continuing the stream.
                let (first, second) = ids.split_at(cut.min(ids.len()));
                let mut stream = tokenizer.detokenizer();
                let mut parts: String = first.iter().map(|&id| stream.push(tokenizer, id).to_owned()).collect();
                let mut resumed = stream.clone();
                parts.extend(second.iter().map(|&id| resumed.push(tokenizer, id).to_owned()));
                parts.push_str(resumed.finish());
                prop_assert_eq!(parts, streamed);
            }
        }
    }

    #[test]
    fn no_message_changes_the_turns(contents in prop::collection::vec(any_text(), 1..4), trims in any::<bool>()) {
        let tokenizer = &SMALL_BPE[1];
        let content = if trims { "m.content | trim" } else { "m.content" };
        let source = format!("{{% for m in messages %}}<s>{{{{ {content} }}}}<|im_end|>{{% endfor %}}");
        let template = ChatTemplate::from_source(&source, tokenizer);
        let options = TemplateOptions::default();
        let messages: Vec<Message> = contents.iter().map(|text| Message::new(Role::User, text)).collect();
        let rendered = template.render(tokenizer, &messages, &options).unwrap();

        let whole = template.encode(tokenizer, &messages, &options).unwrap();
        let texts: Vec<&str> = contents.iter().map(String::as_str).collect();
        let parted: Vec<PartedMessage> =
            texts.chunks(1).map(|parts| PartedMessage { role: Role::User, parts }).collect();
        let together = [PartedMessage { role: Role::User, parts: &texts }];
        let join = |messages: &[PartedMessage]| -> Vec<TokenId> {
            let stretches = template.encode_parts(tokenizer, messages, &options).unwrap();
            stretches.into_iter().flat_map(|stretch| stretch.ids).collect()
        };
        for (ids, turns, text) in [
            (whole, messages.len(), Some(&rendered)),
            (join(&parted), messages.len(), Some(&rendered)),
            (join(&together), 1, None),
        ] {
            prop_assert_eq!(ids.iter().filter(|&&id| tokenizer.is_control(id)).count(), 2 * turns);
            let bytes: Vec<u8> = ids.iter().flat_map(|&id| tokenizer.piece(id)).copied().collect();
            prop_assert!(text.is_none_or(|text| text.as_bytes() == bytes));
        }
    }

    #[test]
    fn parsing_finds_what_was_written(before in any_text(), after in any_text()) {
        let tokenizer = &SMALL_BPE[1];
        let end = tokenizer.token_id("<|im_end|>").unwrap();
        let ids = tokenizer.encode(&format!("{before}<|im_end|>{after}"), Specials::Parse);
        prop_assert!(ids.contains(&end));
    }
}

#[test]
fn half_characters_wait_and_broken_bytes_do_not_stall() {
    let tokenizer = &SMALL_BPE[0];
    let mut stream = tokenizer.detokenizer();
    let mut push = |byte: u8| stream.push(tokenizer, TokenId::from(byte)).to_owned();
    assert_eq!([0xf0, 0x9f, 0x98, 0x80].map(&mut push), ["", "", "", "😀"]);
    assert_eq!(
        [0xff, b'a', 0xe2, 0x82, b'b'].map(&mut push),
        ["\u{fffd}", "a", "", "", "\u{fffd}b"]
    );
    assert_eq!([0xf0, 0x9f].map(&mut push), ["", ""]);
    assert_eq!(stream.finish(), "\u{fffd}");
    assert_eq!(stream.finish(), "");
}

#[test]
fn a_merge_whose_result_is_no_token_or_a_control_token_falls_back_to_bytes() {
    let tokenizer = &SMALL_BPE[0];
    let texts = |text: &str| {
        let ids = tokenizer.encode(text, Specials::AsText);
        ids.iter()
            .map(|&id| tokenizer.token_text(id).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts("aaaaaaaa"), ["a"; 8]);
    assert_eq!(texts("the é"), ["the", "Ġ", "Ã©"]);
    assert_eq!(texts("<s>").concat(), "<s>");
}

#[test]
fn wrong_tokenizers_are_named() {
    let error = |writer: GgufWriter| {
        Tokenizer::from_gguf(&Gguf::from_bytes(writer.bytes()).unwrap())
            .unwrap_err()
            .to_string()
    };
    let other = error(GgufWriter::default().str("tokenizer.ggml.model", "t5"));
    assert!(
        other.contains("\"t5\"") && other.contains("SentencePiece"),
        "{other}"
    );
    let pre = GgufWriter::default()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "tekken");
    let pre = error(pre);
    assert!(pre.contains("\"tekken\"") && pre.contains("llama-bpe"), "{pre}");
    assert!(error(GgufWriter::default()).contains("tokenizer.ggml.model"));
    assert!(error(GgufWriter::default().str("tokenizer.ggml.model", "gpt2")).contains("tokenizer.ggml.pre"));
    let short = GgufWriter::default()
        .str("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &["a", "b"])
        .i32s("tokenizer.ggml.token_type", &[1])
        .f32s("tokenizer.ggml.scores", &[0.0, 0.0]);
    assert!(error(short).contains("the types of 1"));
}

/// Metadata that is valid GGUF and nonsense as a vocabulary.
#[test]
fn no_mutated_vocabulary_makes_the_tokenizer_panic() {
    let mut rng = Rng(0x2545_f491_4f6c_dd1d);
    for (whole, text) in [
        (small_bpe().bytes(), "the aaaa <s> é 12"),
        (small_spm().bytes(), " the aa\n\n é"),
    ] {
        for _ in 0..1_500 {
            let mut bytes = whole.clone();
            for _ in 0..=rng.below(6) {
                let at = 24 + rng.below(bytes.len() - 24);
                bytes[at] = rng.next() as u8;
            }
            let Ok(gguf) = Gguf::from_bytes(bytes) else {
                continue;
            };
            match Tokenizer::from_gguf(&gguf) {
                Ok(tokenizer) => {
                    for specials in [Specials::AsText, Specials::Parse] {
                        let ids = tokenizer.encode_document(text, specials);
                        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
                        tokenizer.decode(&ids);
                    }
                }
                Err(TokenizerError::Gguf(_) | TokenizerError::Vocabulary(_)) => {}
                Err(TokenizerError::UnknownModel(_) | TokenizerError::UnknownPreTokenizer { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// A run of one character is one word to a pre-tokeniser: quadratic steps would take minutes here.
#[test]
fn long_runs_take_linear_time() {
    for unit in [
        "a", " ", "\n", "1", "-", "é", "\u{301}", "字", "'", " a", "<", "\r\n",
    ] {
        let text = unit.repeat(60_000 / unit.len());
        for tokenizer in SMALL_BPE.iter().chain(SMALL_SPM.iter()).chain([&*SMOLLM2]) {
            let ids = tokenizer.encode(&text, Specials::Parse);
            assert_eq!(tokenizer.decode(&ids).len(), text.len());
        }
    }
}

#[test]
fn tokenizers_and_files_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Tokenizer>();
    shared::<Gguf>();
    shared::<reprise_model::template::ChatTemplate>();
}
