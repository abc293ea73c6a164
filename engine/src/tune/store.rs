//! Profiles as files: one JSON file a model, named by the model's fingerprint.

use super::{Latencies, Tuned};
use crate::machine;
use reprise_kv::{KvFormat, KvProfile, LayerProfile, ResidualKeys};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version written. A file of another version is not read: the model is tuned again.
const VERSION: u32 = 1;

/// A profile could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}", path = path.display())]
pub struct StoreError {
    path: PathBuf,
    reason: String,
}

/// A stored profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    version: u32,
    /// The model's fingerprint.
    pub fingerprint: String,
    /// The model's name, for a reader of the file.
    pub model: String,
    /// Where it was measured, and what came out: for a reader of the file.
    pub measured: Measured,
    layers: Vec<StoredLayer>,
    /// Times on the machine it was measured on; none in a profile that comes with the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<Latencies>,
}

/// What was measured of the profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The machine and the build.
    pub machine: String,
    /// Mean divergence from half precision, in nats a token.
    pub mean_kl: f64,
    /// Rise of the perplexity, as a share.
    pub perplexity_rise: f64,
    /// Bytes of keys and values of a token.
    pub token_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredLayer {
    keys: String,
    values: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    residual: Option<StoredResidual>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredResidual {
    mean: Vec<f32>,
    scale: Vec<f32>,
}

impl Stored {
    /// What tuning found, for this model.
    pub fn new(fingerprint: String, model: String, tuned: &Tuned) -> Stored {
        let chosen = tuned
            .verdicts
            .iter()
            .find(|verdict| verdict.profile == tuned.profile);
        let total = chosen.map(super::Verdict::total).unwrap_or_default();
        Stored {
            version: VERSION,
            fingerprint,
            model,
            measured: Measured {
                machine: machine::describe(),
                mean_kl: total.mean_kl(),
                perplexity_rise: total.perplexity_rise(),
                token_bytes: chosen.map_or(0, |verdict| verdict.token_bytes),
            },
            layers: tuned
                .profile
                .layers
                .iter()
                .map(|layer| StoredLayer {
                    keys: layer.keys.name().to_owned(),
                    values: layer.values.name().to_owned(),
                    residual: layer.residual.as_ref().map(|residual| StoredResidual {
                        mean: residual.mean.clone(),
                        scale: residual.scale.clone(),
                    }),
                })
                .collect(),
            latencies: Some(tuned.latencies.clone()),
        }
    }

    /// The profile; none when the file is of another version or names a format that is not known.
    pub fn profile(&self) -> Option<KvProfile> {
        let format = |name: &str| KvFormat::ALL.into_iter().find(|format| format.name() == name);
        if self.version != VERSION {
            return None;
        }
        let layers = self.layers.iter().map(|layer| {
            Some(LayerProfile {
                keys: format(&layer.keys)?,
                values: format(&layer.values)?,
                residual: layer.residual.as_ref().map(|residual| ResidualKeys {
                    mean: residual.mean.clone(),
                    scale: residual.scale.clone(),
                }),
            })
        });
        Some(KvProfile {
            layers: layers.collect::<Option<_>>()?,
        })
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Stored, serde_json::Error> {
        serde_json::from_str(text)
    }
}

fn file(folder: &Path, fingerprint: &str) -> PathBuf {
    folder.join(format!("{fingerprint}.json"))
}

/// The profile stored for a model; none when there is none that can be used. One that is broken is as good as none: the
/// model is tuned again.
pub fn load(folder: &Path, fingerprint: &str) -> Option<Stored> {
    let path = file(folder, fingerprint);
    let text = std::fs::read_to_string(&path).ok()?;
    match Stored::parse(&text) {
        Ok(stored) if stored.fingerprint == fingerprint => Some(stored),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a KV profile cannot be read and is not used");
            None
        }
    }
}

/// Forgets the profile stored for a model, so that it is measured again.
///
/// # Errors
/// When there is one that cannot be removed.
pub fn forget(folder: &Path, fingerprint: &str) -> Result<(), StoreError> {
    let path = file(folder, fingerprint);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError {
            reason: format!("the KV profile cannot be removed ({error}); check the folder's permissions"),
            path,
        }),
        _ => Ok(()),
    }
}

/// Stores a profile, whole or not at all; returns the file.
///
/// # Errors
/// When it cannot be written.
pub fn save(folder: &Path, stored: &Stored) -> Result<PathBuf, StoreError> {
    let path = file(folder, &stored.fingerprint);
    let failed = |error: &dyn std::fmt::Display| StoreError {
        path: path.clone(),
        reason: format!(
            "the KV profile cannot be written ({error}); make room, or check the folder's permissions"
        ),
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let text = serde_json::to_string(stored).map_err(|error| failed(&error))?;
    let temporary = folder.join(format!("{}.{}.tmp", stored.fingerprint, std::process::id()));
    let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, &path));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temporary);
        return Err(failed(&error));
    }
    Ok(path)
}
