//! GGUF files, tokenizers, chat templates and architecture descriptions.

pub mod arch;
pub mod gguf;
pub mod tokenizer;
