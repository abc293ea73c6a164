//! The engine: backends, static graphs, sampling and the generation loop.
pub mod api;
