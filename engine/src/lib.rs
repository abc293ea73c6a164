//! The engine: a model loaded on a backend, and the loop that answers with it, reusing what the last prompt left.
//!
//! It is not a server and holds no chats: it takes token ids and gives text. Everything above the [`backend::Backend`]
//! trait is the same whatever computes; below it stands the CPU backend on the project's own kernels.
//!
//! ```
//! use reprise_engine::{CancelToken, Engine, GenerateOptions, LoadOptions, SamplingOptions};
//! use reprise_model::tokenizer::Specials;
//!
//! // A model with random weights: quick to load, and what it says makes no sense.
//! let path = std::path::Path::new("../tests/golden/tiny/tiny-llama3-q4_k.gguf");
//! let engine = Engine::load(path, &LoadOptions::default())?;
//! let prompt = engine.tokenizer().encode_document("Good morning", Specials::AsText);
//! let options = GenerateOptions { sampling: SamplingOptions::greedy(), max_tokens: 8, ..Default::default() };
//! let answer = engine.generate(&prompt, &options, &CancelToken::default(), &mut |_| ())?;
//! assert_eq!((answer.prompt_tokens, answer.reused_tokens), (prompt.len(), 0));
//!
//! let again = engine.generate(&prompt, &options, &CancelToken::default(), &mut |_| ())?;
//! assert_eq!((again.reused_tokens, &again.text), (prompt.len() - 1, &answer.text));
//! # Ok::<(), reprise_engine::EngineError>(())
//! ```

mod api;
pub mod backend;
pub mod budget;
pub mod cpu;
pub mod encoder;
mod engine;
pub mod guard;
pub mod lanes;
pub mod load;
pub mod machine;
mod power;
pub mod profile;
pub mod residency;
pub mod reuse;
pub mod rope;
mod sampling;
pub mod snapshot;
mod stop;
pub mod tune;
mod units;
pub mod worker;

pub use api::*;
pub use engine::Engine;
pub use load::Work;
pub use reprise_kv::store::{self, Owner};
pub use reprise_kv::{KvFormat, KvProfile, LayerLayout, LayerShape};
pub use reuse::explain;
pub use sampling::Sampler;
