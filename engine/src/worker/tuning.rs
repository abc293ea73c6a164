//! Tuning a model while the engine has nothing else to do.

use super::{Kept, Policy, Scheduler, Worker};
use crate::api::{EngineError, KvChoice, LoadOptions};
use crate::budget::Budget;
use crate::guard::Pressure;
use crate::load::Loaded;
use crate::profile::Source;
use crate::reuse::costs::CallCosts;
use crate::snapshot::TuningView;
use crate::tune::store::{self, Stored};
use crate::tune::{Tuned, Tuner};
use reprise_kv::LayerLayout;
use std::path::PathBuf;

/// A tuning in the background.
pub(super) struct Tuning {
    tuner: Tuner,
    fingerprint: String,
    folder: PathBuf,
}

impl Tuning {
    /// A tuning for a model that has no measured profile, where that was asked for.
    pub fn of(loaded: &Loaded, options: &LoadOptions) -> Result<Option<Tuning>, EngineError> {
        let wanted = options.tunes_when_idle && options.kv == KvChoice::Profile;
        let Some(folder) = options
            .profiles
            .clone()
            .filter(|_| wanted && loaded.source == Source::Cautious)
        else {
            return Ok(None);
        };
        let shapes: Vec<_> = loaded.layouts.iter().map(|layout| layout.shape).collect();
        Ok(Some(Tuning {
            tuner: Tuner::new(&shapes, loaded.tokenizer.clone())?,
            fingerprint: loaded.gguf.fingerprint(),
            folder,
        }))
    }

    /// How far it has come, for the snapshot.
    pub fn view(&self) -> TuningView {
        TuningView {
            activity: self.tuner.activity().to_owned(),
            share: self.tuner.progress(),
        }
    }
}

impl Worker {
    /// Whether there is work for an idle engine.
    pub fn has_idle_work(&mut self) -> bool {
        self.tuning.is_some() && self.guard.pressure(0) == Pressure::None || self.may_read_ahead()
    }

    /// Does a piece of idle work: one graph call, or a text to be read ahead becomes a request. Call it when no request
    /// runs.
    pub fn idle_turn(&mut self) {
        let Some(mut tuning) = self.tuning.take() else {
            self.read_next_ahead();
            return;
        };
        let result = tuning.tuner.step(&mut *self.backend);
        // Requests find the profile they know.
        if let Err(error) = self.backend.set_profile(&self.profile) {
            tracing::error!(%error, "the profile in use cannot be set again");
        }
        match result {
            Ok(None) => self.tuning = Some(tuning),
            Ok(Some(tuned)) => {
                let stored = Stored::new(tuning.fingerprint, self.info.name.clone(), &tuned);
                match store::save(&tuning.folder, &stored) {
                    Ok(path) => {
                        tracing::info!(path = %path.display(), kv = tuned.profile.name(), "the model is tuned")
                    }
                    Err(error) => tracing::warn!(%error, "the model is tuned, for this time only"),
                }
                if let Err(error) = self.adopt(&tuned) {
                    tracing::warn!(%error, "the tuned profile is used from the next start on");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "tuning the model failed; it goes on with the cautious profile")
            }
        }
    }

    /// Goes on with another profile. What ended requests left is in the old one, and let go.
    ///
    /// # Errors
    /// When the profile does not fit or memory cannot be had: then all stays as it was.
    fn adopt(&mut self, tuned: &Tuned) -> Result<(), EngineError> {
        debug_assert!(!self.is_busy());
        let shapes: Vec<_> = self.layouts.iter().map(|layout| layout.shape).collect();
        let layouts = tuned.profile.layouts(&shapes)?;
        let pages = Budget::pages_of(&layouts, self.info.kv_budget_bytes);
        let pool = LayerLayout::pool(&layouts, pages)?;
        self.backend.set_profile(&tuned.profile)?;
        // What the keeper has waiting is stored as it was computed; from now on it looks for chunks of the new profile.
        if let Some(keeper) = &self.keeper {
            let next = keeper.with_profile(&tuned.profile, &layouts);
            self.keeper = next
                .map_err(|error| tracing::warn!(%error, "nothing is kept until the next start"))
                .ok();
        }
        self.costs = CallCosts::new(&*self.backend, layouts.len(), tuned.latencies.prefill.clone());
        self.kept = Kept::default();
        self.sequences = self.sequences.iter().map(|_| pool.sequence()).collect();
        let policy: Policy = *self.scheduler.policy();
        self.scheduler = Scheduler::new(policy, pages);
        self.pool = pool;
        self.info.kv_format = tuned.profile.name();
        self.info.kv_token_bytes = LayerLayout::token_bytes_of(&layouts);
        self.work.kv_bytes_per_token = self.info.kv_token_bytes as f64;
        self.layouts = layouts;
        self.profile = tuned.profile.clone();
        Ok(())
    }
}
