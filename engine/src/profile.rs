//! Which KV profile a model gets: the one that tuning stored on this machine, else the one that comes with the program,
//! else a cautious one.

use crate::api::EngineError;
use crate::cpu::CpuBackend;
use crate::tune::store::{self, Stored};
use reprise_kernels::quant::dequantize;
use reprise_kv::{KvFormat, KvProfile, ResidualKeys};
use reprise_model::arch::Architecture;
use reprise_model::gguf::Gguf;
use std::path::Path;

/// Profiles that come with the program, made with `reprise models tune`.
const SHIPPED: [&str; 1] = [include_str!(
    "../../models/profiles/smollm2-135m-instruct-q4_1.json"
)];

/// Where a profile came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Measured on this machine.
    Tuned,
    /// Measured by the program's makers.
    Shipped,
    /// Not measured: large formats that did no harm to any model tried.
    Cautious,
    /// Asked for.
    Asked,
}

/// The profile of a model. `folder` is where tuning stores profiles.
///
/// # Errors
/// When a stored profile does not fit the model.
pub fn of_model(
    gguf: &Gguf,
    arch: &Architecture,
    folder: Option<&Path>,
) -> Result<(KvProfile, Source), EngineError> {
    let fingerprint = gguf.fingerprint();
    let shapes = CpuBackend::kv_shape(arch);
    let fits = |stored: Stored| {
        stored
            .profile()
            .filter(|profile| profile.layouts(&shapes).is_ok())
    };
    if let Some(profile) = folder
        .and_then(|folder| store::load(folder, &fingerprint))
        .and_then(fits)
    {
        return Ok((profile, Source::Tuned));
    }
    let shipped = SHIPPED.iter().filter_map(|text| Stored::parse(text).ok());
    if let Some(profile) = shipped
        .filter(|stored| stored.fingerprint == fingerprint)
        .find_map(fits)
    {
        return Ok((profile, Source::Shipped));
    }
    Ok((cautious(gguf, arch), Source::Cautious))
}

/// What prefill calls of some sizes took when the model was tuned on this machine: tokens and seconds, none where it was
/// not.
pub fn prefill_latencies(gguf: &Gguf, folder: Option<&Path>) -> Vec<(usize, f64)> {
    let stored = folder.and_then(|folder| store::load(folder, &gguf.fingerprint()));
    stored
        .and_then(|stored| stored.latencies)
        .map_or_else(Vec::new, |latencies| latencies.prefill)
}

/// Eight bits for keys and values, with the keys' bias taken out where there is one: the bias is most of the mean, and
/// keys that are almost pure bias are what ruins small formats (DESIGN section 5).
fn cautious(gguf: &Gguf, arch: &Architecture) -> KvProfile {
    let mut profile = KvProfile::uniform(&CpuBackend::kv_shape(arch), KvFormat::Q8, KvFormat::Q8);
    for (i, (profile, layer)) in profile.layers.iter_mut().zip(&arch.layers).enumerate() {
        let Some(bias) = gguf.tensor(&format!("blk.{i}.attn_k.bias")) else {
            continue;
        };
        let mut mean = vec![0.0; layer.kv_heads * layer.head_dim];
        // A norm after the bias would make it no mean.
        if !layer.has_qk_norm && dequantize(bias.ty, bias.data, &mut mean).is_ok() {
            let scale = vec![1.0; mean.len()];
            profile.residual = Some(ResidualKeys { mean, scale });
        }
    }
    profile
}
