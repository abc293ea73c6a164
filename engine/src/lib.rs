//! The engine: backends, static graphs, sampling and the generation loop.
mod api;
pub mod backend;
pub mod cpu;
mod engine;
pub mod machine;
mod sampling;
mod stop;

pub use api::*;
pub use engine::{Engine, Work};
pub use sampling::Sampler;
