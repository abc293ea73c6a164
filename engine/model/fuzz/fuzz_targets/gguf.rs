//! Any bytes as a model file: an error or a file that keeps its promises, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reprise_model::gguf::Gguf;
use reprise_model::template::{ChatTemplate, Message, Role, TemplateOptions};
use reprise_model::tokenizer::{Specials, Tokenizer};

fuzz_target!(|bytes: &[u8]| {
    let Ok(gguf) = Gguf::from_bytes(bytes.to_vec()) else { return };
    for tensor in gguf.tensors() {
        assert_eq!(Some(tensor.data.len()), tensor.ty.bytes_for(tensor.row_len() * tensor.rows()));
    }
    let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) else { return };
    let ids = tokenizer.encode_document("Some text, <s> 123\n", Specials::Parse);
    tokenizer.decode(&ids);
    let template = ChatTemplate::from_gguf(&gguf, &tokenizer);
    let _ = template.encode(&tokenizer, &[Message::new(Role::User, "Hi <s>")], &TemplateOptions::ask());
});
