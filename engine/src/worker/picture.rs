//! The snapshot: the one place that counts what others show.

use super::Worker;
use crate::backend::Component;
use crate::guard::Pressure;
use crate::lanes::scheduler::Phase;
use crate::reuse::keeper::Keeper;
use crate::snapshot::{
    ComponentState, ComponentView, LaneView, MemoryView, ModelView, OwnerView, PhaseView, PoolView, Snapshot,
    SpeculationView, TotalsView,
};
use reprise_kv::PAGE_TOKENS;
use reprise_kv::pool::Sequence;

impl Worker {
    /// A picture of this moment.
    pub fn snapshot(&mut self) -> Snapshot {
        self.totals.pictures += 1;
        Snapshot {
            sequence: self.totals.pictures,
            model: ModelView {
                name: self.info.name.clone(),
                context_tokens: self.info.context_tokens,
                kv_format: self.info.kv_format.clone(),
                kv_token_bytes: self.info.kv_token_bytes,
                backend: self.backend.name().to_owned(),
            },
            pool: self.pool_view(),
            lanes: self.lane_views(),
            components: self.component_views(),
            memory: self.memory_view(),
            tiers: self.keeper.as_ref().map(Keeper::tiers).unwrap_or_default(),
            prefetch: self.keeper.as_ref().map(Keeper::prefetching).unwrap_or_default(),
            speculation: SpeculationView {
                method: self.speculation.to_owned(),
                guessed: self.totals.guessed,
                accepted: self.totals.accepted,
            },
            tuning: self.tuning.as_ref().map(super::tuning::Tuning::view),
            totals: TotalsView {
                requests: self.totals.requests,
                refused: self.totals.refused,
                prompt_tokens: self.totals.prompt_tokens,
                reused_tokens: self.totals.reused_tokens,
                answer_tokens: self.totals.answer_tokens,
            },
            ..Snapshot::default()
        }
    }

    /// Reads the machine's memory again when the figures are old; returns whether it did.
    pub fn memory_changed(&mut self) -> bool {
        self.guard.poll()
    }

    fn pool_view(&self) -> PoolView {
        let usage = self.pool.usage();
        let mut map = vec![None; usage.total];
        let mut owners = Vec::new();
        let active = self
            .lanes
            .iter()
            .zip(&self.sequences)
            .filter_map(|(lane, sequence)| {
                Some((lane.as_ref()?.request.options.owner.as_str(), sequence, true))
            });
        // Of those that share a page an active request is shown, else the one used last.
        let kept = self.kept.entries().iter().rev();
        let kept = kept.map(|entry| (entry.owner.as_str(), &entry.sequence, false));
        let mut in_use_pages = 0;
        for (name, sequence, is_active) in active.chain(kept) {
            // What one client left behind many times over is one owner's.
            let same = |owner: &OwnerView| !is_active && !owner.is_active && owner.name == name;
            let known = owners.iter().position(same);
            let owner = known.unwrap_or(owners.len()) as u16;
            let mut fresh = 0;
            for page in Sequence::pages(sequence) {
                if let Some(place @ None) = map.get_mut(page.index()) {
                    *place = Some(owner);
                    in_use_pages += usize::from(is_active);
                    fresh += 1;
                }
            }
            if let Some(known) = known {
                owners[known].pages += fresh;
                owners[known].tokens += sequence.len();
                continue;
            }
            owners.push(OwnerView {
                name: name.to_owned(),
                is_active,
                pages: sequence.pages().len(),
                tokens: sequence.len(),
            });
        }
        PoolView {
            pages: usage.total,
            in_use_pages,
            cached_pages: usage.used.saturating_sub(in_use_pages),
            free_pages: usage.free,
            promised_pages: usage.promised,
            high_water_pages: usage.high_water,
            page_tokens: PAGE_TOKENS,
            page_bytes: usage.page_bytes,
            resident_bytes: self.pool.resident_bytes() as u64,
            map,
            owners,
        }
    }

    fn lane_views(&self) -> Vec<LaneView> {
        let rate = self.prefill_rate.filter(|rate| *rate > 0.0);
        let active = self.lanes.iter().flatten().map(|lane| {
            let prompt_tokens = lane.request.prompt.len();
            let phase = match self.scheduler.phase(lane.id) {
                Some(Phase::Decode { .. }) => PhaseView::Decode {
                    answer_tokens: lane.answer_tokens(),
                    tokens_per_second: lane.tokens_per_second(),
                },
                _ => PhaseView::Prefill {
                    done_tokens: lane.tokens.len(),
                    seconds_left: rate.map(|rate| (prompt_tokens - lane.tokens.len()) as f64 / rate),
                },
            };
            LaneView {
                id: lane.id.0,
                owner: lane.request.options.owner.clone(),
                prompt_tokens,
                reused_tokens: lane.reused_tokens,
                phase,
            }
        });
        let waiting = self.queue.iter().map(|pending| {
            let (ahead, overtaken) = match self.scheduler.phase(pending.id) {
                Some(Phase::Queued { ahead, overtaken }) => (ahead, overtaken),
                _ => (0, 0),
            };
            LaneView {
                id: pending.id.0,
                owner: pending.request.options.owner.clone(),
                prompt_tokens: pending.request.prompt.len(),
                reused_tokens: 0,
                phase: PhaseView::Queued {
                    ahead,
                    overtaken,
                    waited_seconds: pending.begin.elapsed().as_secs_f64(),
                },
            }
        });
        let mut views: Vec<LaneView> = active.chain(waiting).collect();
        views.sort_by_key(|view| view.id);
        views
    }

    fn component_views(&self) -> Vec<ComponentView> {
        let parts: usize = Component::ALL
            .iter()
            .map(|&part| self.backend.component_bytes(part))
            .sum();
        let backbone = self.backend.bytes() - parts - self.backend.workspace_bytes();
        let everyone = self.lanes.iter().flatten().map(|lane| lane.id.0).collect();
        let mut views = vec![ComponentView {
            name: "backbone".to_owned(),
            state: ComponentState::Resident,
            bytes: backbone as u64,
            owners: everyone,
        }];
        for component in Component::ALL {
            let bytes = self.backend.component_bytes(component) as u64;
            let state = match (self.backend.is_attached(component), bytes) {
                (false, _) => ComponentState::Released,
                (true, 0) => ComponentState::Mapped,
                (true, _) => ComponentState::Resident,
            };
            let owners = self.leases.owners(component).map(|id| id.0).collect();
            views.push(ComponentView {
                name: component.name().to_owned(),
                state,
                bytes,
                owners,
            });
        }
        let predictor_bytes = self.drafter.as_ref().map_or(0, |drafter| drafter.bytes()) as u64;
        let absent = |name: &str| ComponentView {
            name: name.to_owned(),
            state: ComponentState::Absent,
            bytes: 0,
            owners: Vec::new(),
        };
        views.push(ComponentView {
            state: if predictor_bytes > 0 {
                ComponentState::Resident
            } else {
                ComponentState::Absent
            },
            bytes: predictor_bytes,
            ..absent("predictor")
        });
        views.push(absent("vision tower"));
        views
    }

    fn memory_view(&self) -> MemoryView {
        let footprint = self.guard.footprint();
        let refusal = match self.guard.pressure(0) {
            Pressure::Short(reason) => Some(reason),
            _ => None,
        };
        MemoryView {
            process_bytes: footprint.resident_bytes,
            limit_bytes: footprint.limit_bytes,
            available_bytes: footprint.available_bytes,
            total_bytes: footprint.total_bytes,
            stalled_percent: footprint.stalled_percent,
            weight_bytes: (self.backend.bytes() - self.backend.workspace_bytes()) as u64,
            workspace_bytes: self.backend.workspace_bytes() as u64,
            kv_bytes: self.pool.resident_bytes() as u64,
            refusal,
        }
    }
}
