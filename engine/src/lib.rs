//! The engine: backends, static graphs, sampling and the generation loop.
mod api;
pub mod backend;
pub mod cpu;
mod engine;
mod sampling;
mod stop;

pub use api::*;
pub use engine::Engine;
pub use sampling::Sampler;
