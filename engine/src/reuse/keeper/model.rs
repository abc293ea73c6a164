//! What the keeper has to know of a model: how its chunks are named and laid out.

use crate::rope::LayerRope;
use reprise_kv::store::Namespace;
use reprise_kv::{KvProfile, LayerLayout};
use sha2::{Digest, Sha256};
use std::ops::Range;

/// Tensors of a chunk: few enough for quick reads, enough for the first layers to be there before the last.
const SHARDS: usize = 8;

/// What a [`Keeper`] has to know of a model.
#[derive(Debug, Clone)]
pub struct KeptModel {
    /// Of the model's file.
    pub fingerprint: String,
    /// How keys and values are stored.
    pub profile: KvProfile,
    /// The same for each layer.
    pub layouts: Vec<LayerLayout>,
    /// How its keys turn.
    pub ropes: Vec<LayerRope>,
}

impl KeptModel {
    /// A digest of everything that changes keys and values besides the tokens.
    pub(super) fn namespace(&self) -> Namespace {
        let mut hash = Sha256::new();
        hash.update(b"reprise kv 1\0");
        hash.update(self.fingerprint.as_bytes());
        for (layer, layout) in self.profile.layers.iter().zip(&self.layouts) {
            hash.update(format!(
                "\0{}/{} {}x{}",
                layer.keys.name(),
                layer.values.name(),
                layout.shape.kv_heads,
                layout.shape.head_dim
            ));
            for value in layer
                .residual
                .iter()
                .flat_map(|residual| residual.mean.iter().chain(&residual.scale))
            {
                hash.update(value.to_le_bytes());
            }
        }
        Namespace(hash.finalize().into())
    }

    /// The layers of each shard.
    pub(super) fn shards(&self) -> Vec<Range<usize>> {
        let layers = self.layouts.len();
        let each = layers.div_ceil(SHARDS).max(1);
        (0..layers)
            .step_by(each)
            .map(|first| first..layers.min(first + each))
            .collect()
    }

    /// The name of each shard.
    pub(super) fn shard_names(&self) -> Vec<String> {
        let name = |layers: Range<usize>| format!("layers.{}-{}", layers.start, layers.end - 1);
        self.shards().into_iter().map(name).collect()
    }
}
