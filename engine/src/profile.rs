//! Which KV profile a model gets. Stub for now: see below.

use crate::api::EngineError;
use crate::cpu::CpuBackend;
use reprise_kv::{KvFormat, KvProfile};
use reprise_model::arch::Architecture;
use reprise_model::gguf::Gguf;

/// The profile of a model.
///
/// # Errors
/// When a stored profile does not fit the model.
pub fn of_model(_gguf: &Gguf, arch: &Architecture) -> Result<KvProfile, EngineError> {
    Ok(KvProfile::uniform(
        &CpuBackend::kv_shape(arch),
        KvFormat::Q8,
        KvFormat::Tq4,
    ))
}
