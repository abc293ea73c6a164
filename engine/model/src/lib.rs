//! Model files for Reprise: GGUF containers, the tokenizers and chat templates inside them, and the descriptions of the
//! architectures that the engine runs.
//!
//! Everything here reads and describes; nothing computes. Files are untrusted input: a broken one gives an error that
//! names the place and the remedy, and text that people type never becomes a control token. What this crate is not: it
//! holds no weights in memory, runs no model and downloads nothing.
//!
//! ```
//! use reprise_model::gguf::Gguf;
//! use reprise_model::template::{ChatTemplate, Message, Role, TemplateOptions};
//! use reprise_model::tokenizer::Tokenizer;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let models = std::env::var_os("REPRISE_MODELS").map(std::path::PathBuf::from)
//! #     .unwrap_or_else(|| std::path::PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/reprise/models"));
//! let file = Gguf::open(&models.join("SmolLM2-135M-Instruct.Q4_1.gguf"))?;
//! let tokenizer = Tokenizer::from_gguf(&file)?;
//! let template = ChatTemplate::from_gguf(&file, &tokenizer);
//!
//! let chat = [Message::new(Role::User, "What does <|im_end|> mean?")];
//! let prompt = template.encode(&tokenizer, &chat, &TemplateOptions::ask())?;
//! // The template ended two turns, the system's and the user's; what the user typed ended none.
//! let ends = prompt.iter().filter(|&&id| tokenizer.is_end_of_generation(id)).count();
//! assert_eq!(ends, 2);
//! assert_eq!(file.require_tensor("token_embd.weight")?.shape, [576, 49152]);
//! # Ok(())
//! # }
//! ```

pub mod arch;
pub mod gguf;
pub mod template;
pub mod tokenizer;
