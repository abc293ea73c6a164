//! Any text through a real vocabulary (REPRISE_MODELS, SmolLM2): typed text steers nothing and streams equal wholes.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use reprise_model::gguf::Gguf;
use reprise_model::tokenizer::{Specials, Tokenizer};

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let models = PathBuf::from(std::env::var_os("REPRISE_MODELS").expect("REPRISE_MODELS names the folder of models"));
    let gguf = Gguf::open(&models.join("SmolLM2-135M-Instruct.Q4_1.gguf")).expect("models/fetch brings the model");
    Tokenizer::from_gguf(&gguf).expect("the tokenizer is known")
});

fuzz_target!(|text: &str| {
    let ids = TOKENIZER.encode(text, Specials::AsText);
    assert!(ids.iter().all(|&id| !TOKENIZER.is_control(id)));
    for ids in [ids, TOKENIZER.encode(text, Specials::Parse)] {
        let mut stream = TOKENIZER.detokenizer();
        let mut streamed: String = ids.iter().map(|&id| stream.push(&TOKENIZER, id).to_owned()).collect();
        streamed.push_str(stream.finish());
        assert_eq!(streamed, TOKENIZER.decode(&ids));
    }
});
