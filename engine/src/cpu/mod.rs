//! The CPU backend: the model's forward pass on the project's own kernels.

mod forward;
mod pool;
mod weights;
mod workspace;

use crate::backend::{
    Backend, BackendError, Component, Graph, GraphCall, GraphKind, Outputs, Selection, Stretch,
};
use crate::rope::LayerRope;
use crate::tune::statistics::LayerStatistics;
use pool::Pool;
use reprise_kernels::isa::Isa;
use reprise_kernels::packed::PackedMatrix;
use reprise_kv::{KvLanes, KvProfile, LayerShape, ProfileMismatch, ResidualKeys};
use reprise_model::arch::Architecture;
use reprise_model::gguf::Gguf;
use std::sync::Arc;
pub use weights::WeightsError;
use weights::{Loader, Weights};
use workspace::Workspace;

/// Tokens in the prefill graph: past this a longer call gains nothing (`reprise bench` over prompt lengths).
const PREFILL_TOKENS: usize = 512;
/// Rows in the decode graph.
const DECODE_ROWS: usize = 4;

/// Why a model cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// Its weights are not what the architecture asks for.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The KV profile is for another model.
    #[error(transparent)]
    Profile(#[from] ProfileMismatch),
    /// The system gives no threads.
    #[error("cannot start compute threads: {0}; close other programs and try again")]
    Threads(#[from] std::io::Error),
}

/// A model on the CPU.
pub struct CpuBackend {
    name: String,
    isa: Isa,
    gguf: Arc<Gguf>,
    arch: Architecture,
    pool: Pool,
    weights: Weights,
    residuals: Vec<Option<LayerResidual>>,
    statistics: Option<Vec<LayerStatistics>>,
    head: Option<PackedMatrix>,
    workspace: Workspace,
    graphs: [Graph; 4],
}

/// A layer's residual keys, ready to use.
struct LayerResidual {
    /// `[head][dim]`: what is taken from keys, what they are divided by, and its inverse.
    mean: Vec<f32>,
    scale: Vec<f32>,
    inverse: Vec<f32>,
}

impl LayerResidual {
    fn of(profile: &KvProfile) -> Vec<Option<LayerResidual>> {
        let ready = |residual: &ResidualKeys| LayerResidual {
            mean: residual.mean.clone(),
            scale: residual.scale.clone(),
            inverse: residual.scale.iter().map(|scale| 1.0 / scale).collect(),
        };
        let layers = profile.layers.iter();
        layers.map(|layer| layer.residual.as_ref().map(ready)).collect()
    }
}

impl CpuBackend {
    /// Loads a model, ready to run with `threads` threads on windows of up to `context_tokens`, with keys and values
    /// stored as `profile` says.
    ///
    /// # Errors
    /// When a tensor is missing, misshapen, or not known, or the profile is for another model.
    pub fn load(
        gguf: Arc<Gguf>,
        arch: Architecture,
        threads: usize,
        context_tokens: usize,
        profile: &KvProfile,
    ) -> Result<CpuBackend, CpuError> {
        profile.layouts(&CpuBackend::kv_shape(&arch))?;
        let residuals = LayerResidual::of(profile);
        let pool = Pool::new(threads)?;
        let weights = Loader::new(&gguf, threads).weights(&arch)?;
        let head = Some(Loader::new(&gguf, threads).head(&arch)?);
        gguf.release_all();
        let prefill = PREFILL_TOKENS.min(context_tokens.max(DECODE_ROWS));
        let workspace = Workspace::new(
            &arch,
            &weights,
            head.as_ref(),
            prefill,
            context_tokens,
            pool.threads(),
        );
        let isa = Isa::best();
        Ok(CpuBackend {
            name: format!("cpu {}", isa.name()),
            isa,
            gguf,
            arch,
            pool,
            weights,
            residuals,
            statistics: None,
            head,
            workspace,
            graphs: [
                (GraphKind::Prefill, prefill),
                (GraphKind::Decode, DECODE_ROWS),
                (GraphKind::Recompute, prefill),
                (GraphKind::Probe, prefill),
            ]
            .map(|(kind, capacity)| Graph { kind, capacity }),
        })
    }

    /// What each layer keeps for a position.
    pub fn kv_shape(arch: &Architecture) -> Vec<LayerShape> {
        arch.layers
            .iter()
            .map(|layer| LayerShape {
                kv_heads: layer.kv_heads,
                head_dim: layer.head_dim,
            })
            .collect()
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        &self.name
    }

    fn graphs(&self) -> &[Graph] {
        &self.graphs
    }

    fn run(&mut self, call: &GraphCall<'_>, kv: &mut KvLanes<'_>) -> Result<(), BackendError> {
        forward::run(self, call, kv)
    }

    fn recompute(
        &mut self,
        stretch: &Stretch<'_>,
        selection: &Selection<'_>,
        outputs: Outputs,
        kv: &mut KvLanes<'_>,
    ) -> Result<Vec<usize>, BackendError> {
        forward::recompute(self, stretch, selection, outputs, kv)
    }

    fn probe(
        &mut self,
        stretch: &Stretch<'_>,
        asking: usize,
        kv: &mut KvLanes<'_>,
    ) -> Result<Vec<f32>, BackendError> {
        forward::probe(self, stretch, asking, kv)
    }

    fn logits(&self) -> &[f32] {
        self.workspace.logits()
    }

    fn attach(&mut self, component: Component) -> Result<(), BackendError> {
        if component == Component::Head && self.head.is_none() {
            let head = Loader::new(&self.gguf, self.pool.threads()).head(&self.arch);
            self.head = Some(head.map_err(|e| BackendError::Attach {
                component,
                reason: e.to_string(),
            })?);
        }
        Ok(())
    }

    fn detach(&mut self, component: Component) {
        match component {
            // Its rows are read from the mapped file, whose pages the system takes back by itself.
            Component::Embedding => {}
            Component::Head => self.head = None,
        }
    }

    fn is_attached(&self, component: Component) -> bool {
        match component {
            Component::Embedding => true,
            Component::Head => self.head.is_some(),
        }
    }

    fn component_bytes(&self, component: Component) -> usize {
        match component {
            Component::Embedding => 0,
            Component::Head => self.head.as_ref().map_or(0, PackedMatrix::bytes),
        }
    }

    fn set_profile(&mut self, profile: &KvProfile) -> Result<(), ProfileMismatch> {
        profile.layouts(&CpuBackend::kv_shape(&self.arch))?;
        self.residuals = LayerResidual::of(profile);
        Ok(())
    }

    fn ropes(&self) -> Vec<LayerRope> {
        let factors = self.weights.rope_factors.as_deref();
        let layers = self.arch.layers.iter();
        layers.map(|layer| LayerRope::new(&layer.rope, factors)).collect()
    }

    fn swap_statistics(&mut self, statistics: Option<Vec<LayerStatistics>>) -> Option<Vec<LayerStatistics>> {
        let fresh = || self.arch.layers.iter().map(LayerStatistics::new).collect();
        let statistics = statistics.map(|given| if given.is_empty() { fresh() } else { given });
        std::mem::replace(&mut self.statistics, statistics)
    }

    fn workspace_bytes(&self) -> usize {
        self.workspace.bytes()
    }

    fn bytes(&self) -> usize {
        self.weights.bytes() + self.component_bytes(Component::Head) + self.workspace.bytes()
    }
}
