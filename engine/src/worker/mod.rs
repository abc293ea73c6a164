//! What the engine's thread owns: the backend, the KV pool, and the requests in their lanes.
//!
//! [`Worker::turn`] makes one graph call and everything around it: cancelled requests leave, waiting ones are admitted,
//! the scheduler says what runs, its results go to the requests, ended ones leave their pages behind for later prompts.
//! Nothing here waits or sleeps, so that a test can drive it step by step; [`crate::Engine`] gives it a thread.

mod kept;
mod lane;
mod picture;
mod reuse;
mod speculate;
mod tuning;
mod warming;

pub use warming::AheadText;

use crate::api::{
    Answer, EngineError, GenerateOptions, LoadOptions, ModelInfo, Request, Residency, Reuse, Speculation,
    Spent, Steps, StopReason, StoreChoice, TokenId, Workings,
};
use crate::backend::{Backend, BackendError, Component, GraphCall, GraphKind, Outputs, Stretch};
use crate::guard::{Guard, Pressure};
use crate::lanes::policy::{Demand, Policy, Refusal};
use crate::lanes::scheduler::{RequestId, Scheduler, Turn};
use crate::load::{Loaded, Work};
use crate::residency::Leases;
use crate::reuse::costs::CallCosts;
use crate::reuse::explain::{PlannedCall, Purpose};
use crate::reuse::keeper::{Keeper, KeptModel};
use crate::sampling::Sampler;
use kept::Kept;
use lane::{Lane, Pending};
use reprise_kv::pool::{PagePool, PoolError, Sequence};
use reprise_kv::store::{ChunkStore, StoreOptions};
use reprise_kv::{KvLanes, KvProfile, LayerLayout, PAGE_TOKENS};
use reprise_model::tokenizer::Tokenizer;
use speculate::{Drafter, MOST_GUESSED, Payoff, PromptLookup};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most requests active at once.
pub const LANES: usize = 4;
/// A prompt is read in calls of about this long, so that progress shows and a cancellation is heard; how it is split
/// changes no result.
const CALL_SECONDS: f64 = 0.5;
/// The first call's tokens, before the machine's speed is known.
const FIRST_CALL_TOKENS: usize = 128;
/// Calls are multiples of this.
const CALL_STEP_TOKENS: usize = 32;
/// The first call of a prompt that is read while others answer.
const FIRST_MIXED_TOKENS: usize = 32;
/// While others answer, a call on a prompt takes about this long at most: it is what they wait between two tokens.
const MIXED_SECONDS: f64 = 0.15;
/// Such calls are multiples of this.
const MIXED_STEP_TOKENS: usize = 8;
/// While this many tokens of a prompt are still to be read, the head's weights are not needed for long enough to be
/// worth releasing.
const LONG_PREFILL_TOKENS: usize = 1_024;

/// The engine without its thread. See the module.
pub struct Worker {
    info: ModelInfo,
    tokenizer: Arc<Tokenizer>,
    backend: Box<dyn Backend>,
    profile: KvProfile,
    layouts: Vec<LayerLayout>,
    pool: PagePool,
    /// One sequence a slot; empty where no lane is.
    sequences: Vec<Sequence>,
    lanes: Vec<Option<Lane>>,
    queue: Vec<Pending>,
    scheduler: Scheduler,
    kept: Kept,
    leases: Leases,
    residency: Residency,
    guard: Guard,
    drafter: Option<Box<dyn Drafter>>,
    speculation: &'static str,
    payoff: Payoff,
    /// Tokens of the next prefill call that runs alone.
    call_tokens: usize,
    /// Tokens of the next one that runs while others answer.
    mixed_tokens: usize,
    /// Tokens a second that the last prefill call made.
    prefill_rate: Option<f64>,
    next_id: u64,
    totals: Totals,
    work: Work,
    tuning: Option<tuning::Tuning>,
    reuse: Reuse,
    keeper: Option<Keeper>,
    /// How long storing had taken when the last answer ended.
    stored: Duration,
    /// What the backend's calls take.
    costs: CallCosts,
    workings: Workings,
    warming: warming::Warming,
    store_fault: Option<String>,
}

/// Counts since the model was loaded.
#[derive(Debug, Default)]
struct Totals {
    requests: u64,
    refused: u64,
    prompt_tokens: u64,
    reused_tokens: u64,
    answer_tokens: u64,
    guessed: u64,
    accepted: u64,
    pictures: u64,
}

impl Worker {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// When the file is broken, holds a model that is not supported, or an option cannot be met.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Worker, EngineError> {
        Worker::new(Loaded::load(path, options)?, options)
    }

    /// Puts a loaded model to work.
    ///
    /// # Errors
    /// When a draft model cannot be used.
    pub fn new(loaded: Loaded, options: &LoadOptions) -> Result<Worker, EngineError> {
        let tuning = tuning::Tuning::of(&loaded, options)?;
        let costs = CallCosts::new(
            &*loaded.backend,
            loaded.layouts.len(),
            loaded.prefill_latencies.clone(),
        );
        let kept = options.store.as_ref().map(|choice| keeper_of(&loaded, choice));
        // Without a store everything works as well, only not as quickly after a restart.
        let (keeper, store_fault) = match kept.transpose() {
            Ok(keeper) => (keeper, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let Loaded {
            info,
            tokenizer,
            backend,
            profile,
            layouts,
            pool,
            work,
            ..
        } = loaded;
        let lanes = LANES.min(backend.capacity(GraphKind::Decode)).max(1);
        let policy = Policy {
            lanes,
            page_tokens: PAGE_TOKENS,
            ..Policy::default()
        };
        let (drafter, speculation): (Option<Box<dyn Drafter>>, _) = match &options.speculation {
            Speculation::Off => (None, "off"),
            Speculation::PromptLookup => (Some(Box::new(PromptLookup)), "prompt lookup"),
            Speculation::DraftModel(path) => (
                Some(Box::new(speculate::DraftModel::load(path, &tokenizer, options)?)),
                "draft model",
            ),
        };
        Ok(Worker {
            scheduler: Scheduler::new(policy, pool.usage().total),
            sequences: (0..lanes).map(|_| pool.sequence()).collect(),
            lanes: (0..lanes).map(|_| None).collect(),
            queue: Vec::new(),
            kept: Kept::default(),
            leases: Leases::default(),
            residency: options.residency,
            guard: Guard::new(options.memory_limit_bytes),
            drafter,
            speculation,
            payoff: Payoff::new(),
            call_tokens: FIRST_CALL_TOKENS,
            mixed_tokens: FIRST_MIXED_TOKENS,
            prefill_rate: None,
            next_id: 0,
            totals: Totals::default(),
            tuning,
            work,
            info,
            tokenizer,
            backend,
            profile,
            layouts,
            pool,
            reuse: options.reuse,
            keeper,
            costs,
            stored: Duration::ZERO,
            workings: Workings::default(),
            warming: warming::Warming::default(),
            store_fault,
        })
    }

    /// Why nothing is kept beyond this run, where it was to be.
    pub fn store_fault(&self) -> Option<&str> {
        self.store_fault.as_deref()
    }

    /// Facts about the model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// The backend's name, for example `cpu avx2`.
    pub fn backend_name(&self) -> &str {
        self.backend.name()
    }

    /// How keys and values are stored.
    pub fn profile(&self) -> &KvProfile {
        &self.profile
    }

    /// How each layer's keys and values lie in a page.
    pub fn layouts(&self) -> &[LayerLayout] {
        &self.layouts
    }

    /// The pool of all keys and values.
    pub fn pool(&self) -> &PagePool {
        &self.pool
    }

    /// What one token costs, for measuring.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Bytes of weights and scratch, and of the pool's pages that are really there.
    pub fn bytes(&self) -> (usize, usize) {
        (self.backend.bytes(), self.pool.resident_bytes())
    }

    /// Bytes of scratch: the same whatever the context's length.
    pub fn workspace_bytes(&self) -> usize {
        self.backend.workspace_bytes()
    }

    /// The watch over memory.
    pub fn guard_mut(&mut self) -> &mut Guard {
        &mut self.guard
    }

    /// The backend and the lanes' sequences, for measuring. Ends nothing: call it when no request runs.
    pub fn parts_mut(&mut self) -> (&mut dyn Backend, KvLanes<'_>) {
        let kv = KvLanes::new(&self.layouts, &mut self.sequences);
        (&mut *self.backend, kv)
    }

    /// Guesses at every step, whether it pays or not, for tests of what guesses must not change.
    #[doc(hidden)]
    pub fn always_guess(&mut self) {
        self.payoff = Payoff::always();
    }

    /// Changes the output tokens that are guaranteed, for tests of what lies beyond. Call it before any request.
    #[doc(hidden)]
    pub fn guarantee(&mut self, guaranteed_output: usize) {
        let policy = Policy {
            guaranteed_output,
            ..*self.scheduler.policy()
        };
        self.scheduler = Scheduler::new(policy, self.pool.usage().total);
    }

    /// Ends every request, as cancelled.
    pub fn stop_all(&mut self) {
        for slot in 0..self.lanes.len() {
            self.finish(slot, StopReason::Cancelled);
        }
        for pending in &self.queue {
            pending.request.cancel.cancel();
        }
        self.leave_cancelled();
    }

    /// Lets go what ended requests left, and gives the memory back to the system.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.pool.trim();
    }

    /// Whether any request waits or runs.
    pub fn is_busy(&self) -> bool {
        self.scheduler.queued_count() + self.scheduler.lane_count() > 0
    }

    /// Takes a request in. Its `on_end` is called in any case: here when it is refused, else from a later turn.
    pub fn submit(&mut self, request: Request) -> RequestId {
        self.leave_warming();
        self.take_in(request)
    }

    fn take_in(&mut self, request: Request) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        match self.examine(&request) {
            Ok((sampler, demand)) => match self.scheduler.enqueue(id, demand) {
                Ok(()) => self.queue.push(Pending {
                    id,
                    request,
                    sampler,
                    begin: Instant::now(),
                }),
                Err(refusal) => self.refuse(request, self.does_not_fit(&refusal)),
            },
            Err(error) => self.refuse(request, error),
        }
        id
    }

    fn refuse(&mut self, request: Request, error: EngineError) {
        self.totals.refused += 1;
        (request.on_end)(Err(error));
    }

    /// Whether a request can be served at all.
    fn examine(&mut self, request: &Request) -> Result<(Sampler, Demand), EngineError> {
        let (prompt_tokens, window) = (request.prompt.len(), self.info.context_tokens - 1);
        if prompt_tokens == 0 {
            return Err(EngineError::EmptyPrompt);
        }
        if prompt_tokens > window {
            return Err(EngineError::PromptTooLong {
                prompt_tokens,
                window,
            });
        }
        reuse::check_segments(&request.options.segments, prompt_tokens)?;
        let sampler = Sampler::new(&request.options.sampling, self.tokenizer.vocab_size())?;
        let demand = Demand {
            prompt_tokens,
            shared_tokens: self.shared_with(&request.prompt),
            output_tokens: request.options.max_tokens.min(window + 1 - prompt_tokens),
        };
        self.guard.poll();
        let fresh = self.fresh_bytes(self.scheduler.policy().pages(&demand));
        if let Pressure::Short(_) = self.guard.pressure(fresh) {
            // What can be made again goes first.
            self.make_room();
            if let Pressure::Short(reason) = self
                .guard
                .pressure(self.fresh_bytes(self.scheduler.policy().pages(&demand)))
            {
                return Err(EngineError::MemoryShort { reason });
            }
        }
        Ok((sampler, demand))
    }

    /// Bytes that so many pages take beyond what the pool already has from the system.
    fn fresh_bytes(&self, pages: usize) -> u64 {
        let usage = self.pool.usage();
        let idle = self
            .pool
            .resident_bytes()
            .saturating_sub(usage.used * usage.page_bytes);
        (pages * usage.page_bytes).saturating_sub(idle) as u64
    }

    fn does_not_fit(&self, refusal: &Refusal) -> EngineError {
        let page_bytes = self.pool.usage().page_bytes as u64;
        EngineError::DoesNotFit {
            prompt_tokens: refusal.prompt_tokens,
            output_tokens: refusal.output_tokens,
            needed_bytes: refusal.needed_pages as u64 * page_bytes,
            total_bytes: refusal.total_pages as u64 * page_bytes,
            held_tokens: refusal.total_pages * PAGE_TOKENS,
        }
    }

    /// Tokens at the prompt's beginning whose KV is in memory.
    fn shared_with(&self, prompt: &[TokenId]) -> usize {
        let active = self
            .lanes
            .iter()
            .flatten()
            .map(|lane| kept::common(&lane.tokens, prompt));
        active.max().unwrap_or(0).max(self.kept.longest(prompt))
    }

    /// A fork of the KV that has the longest common beginning with the prompt, without the prompt's last token, and how
    /// many tokens of it are exact.
    ///
    /// Of a request that still runs whole pages only: sharing the page it writes in would make it copy that page, and
    /// its reservation has none for that.
    fn fork(&mut self, prompt: &[TokenId]) -> (Sequence, usize) {
        if self.reuse == Reuse::Nothing {
            return (self.pool.sequence(), 0);
        }
        let most = prompt.len() - 1;
        let whole = |len: usize| len.min(most) / PAGE_TOKENS * PAGE_TOKENS;
        let active = self.lanes.iter().enumerate().filter_map(|(slot, lane)| {
            let lane = lane.as_ref()?;
            Some((whole(kept::common(&lane.tokens, prompt)), slot))
        });
        match active.max() {
            Some((len, slot)) if len > self.kept.longest(prompt).min(most) => {
                let exact = self.lanes[slot].as_ref().map_or(0, |lane| lane.exact_tokens);
                (self.sequences[slot].fork(len), exact.min(len))
            }
            _ => self
                .kept
                .fork(prompt, most)
                .unwrap_or_else(|| (self.pool.sequence(), 0)),
        }
    }

    /// Does the next piece of work; returns whether there is more.
    pub fn turn(&mut self) -> bool {
        self.leave_cancelled();
        if self.guard.poll() {
            self.watch_memory();
        }
        while self.admit() {}
        match self.scheduler.next_turn() {
            Turn::Idle => return false,
            Turn::Blocked { first } => self.give_up(first),
            Turn::Prefill { id, most_tokens } => self.prefill(id, most_tokens),
            Turn::Decode { may_speculate, .. } => self.decode(may_speculate),
        }
        self.is_busy()
    }

    /// Lets go of memory while it is tight: first chunks that the disk has too, and when there are none, what would
    /// have to be computed again.
    fn watch_memory(&mut self) {
        let is_tight = self.guard.pressure(0) != Pressure::None;
        let freed = match &self.keeper {
            Some(keeper) if is_tight => keeper.shrink(0),
            Some(keeper) => {
                keeper.relax();
                0
            }
            None => 0,
        };
        if is_tight && freed == 0 {
            self.make_room();
        }
    }

    /// Lets go what can be had again: chunks that the disk has too, kept work, free pages, parts of the model that nobody
    /// holds.
    fn make_room(&mut self) {
        if let Some(keeper) = &self.keeper {
            keeper.shrink(0);
        }
        self.kept.clear();
        let pages = self.pool.trim();
        let components = self.leases.sweep(&mut *self.backend);
        tracing::debug!(
            pages,
            components,
            "memory is tight: let go what can be made again (bytes)"
        );
    }

    fn leave_cancelled(&mut self) {
        for slot in 0..self.lanes.len() {
            if self.lanes[slot]
                .as_ref()
                .is_some_and(|lane| lane.request.cancel.is_cancelled())
            {
                self.finish(slot, StopReason::Cancelled);
            }
        }
        while let Some(index) = self
            .queue
            .iter()
            .position(|pending| pending.request.cancel.is_cancelled())
        {
            let Pending {
                id, request, begin, ..
            } = self.queue.remove(index);
            self.scheduler.remove(id);
            self.warmed(id);
            self.totals.requests += 1;
            let waited = begin.elapsed();
            (request.on_end)(Ok(Answer {
                text: String::new(),
                stop: StopReason::Cancelled,
                prompt_tokens: request.prompt.len(),
                reused_tokens: 0,
                moved_tokens: 0,
                recomputed_tokens: 0,
                answer_tokens: 0,
                waiting_time: waited,
                time_to_first_token: waited,
                decode_time: Duration::ZERO,
                steps: Steps::default(),
                explanation: None,
            }));
        }
    }

    /// Makes one waiting request a lane, if one fits.
    fn admit(&mut self) -> bool {
        if self.scheduler.queued_count() == 0 || self.scheduler.lane_count() >= self.lanes.len() {
            return false;
        }
        let mut scheduler = std::mem::replace(&mut self.scheduler, Scheduler::new(Policy::default(), 0));
        let policy = *scheduler.policy();
        let mut granted = None;
        let admitted = scheduler.admit(|id, demand, _| {
            let index = self.queue.iter().position(|pending| pending.id == id)?;
            let prompt = std::mem::take(&mut self.queue[index].request.prompt);
            let (sequence, exact_tokens) = self.fork(&prompt);
            self.queue[index].request.prompt = prompt;
            let shared_tokens = sequence.len();
            let pages = policy.pages(&Demand {
                shared_tokens,
                ..*demand
            });
            let reservation = self.reserve(pages)?;
            granted = Some((index, sequence, exact_tokens, reservation));
            Some(shared_tokens)
        });
        self.scheduler = scheduler;
        let (Some(id), Some((index, sequence, exact_tokens, reservation))) = (admitted, granted) else {
            return false;
        };
        let pending = self.queue.remove(index);
        let Some(slot) = self.lanes.iter().position(Option::is_none) else {
            unreachable!("the scheduler admits no more requests than there are slots");
        };
        debug_assert_eq!(pending.id, id);
        let reused = sequence.len();
        let mut lane = Lane::new(
            pending,
            &self.tokenizer,
            reservation,
            reused,
            self.info.context_tokens,
        );
        lane.exact_tokens = exact_tokens;
        lane.reading_guard = self.keeper.as_ref().map(Keeper::reading);
        self.sequences[slot] = sequence;
        self.lanes[slot] = Some(lane);
        self.bring(slot);
        if let Some(lane) = &mut self.lanes[slot] {
            lane.report_prefill();
        }
        true
    }

    /// Pages from the pool; kept work makes room where that is enough.
    fn reserve(&mut self, pages: usize) -> Option<reprise_kv::pool::Reservation> {
        loop {
            if let Ok(reservation) = self.pool.reserve(pages) {
                return Some(reservation);
            }
            if self.pool.usage().spare() + self.kept.pages() < pages || !self.kept.evict() {
                // What waits to be stored holds pages as well.
                if !self.keeper.as_ref().is_some_and(Keeper::give_up_oldest) {
                    return None;
                }
            }
        }
    }

    /// Nothing runs and a request cannot be admitted.
    fn give_up(&mut self, id: RequestId) {
        self.make_room();
        if self.admit() {
            return;
        }
        // Pages are held by something that is neither a lane nor kept: a mistake, but nobody shall wait for ever.
        if let Some(index) = self.queue.iter().position(|pending| pending.id == id) {
            let pending = self.queue.remove(index);
            self.scheduler.remove(id);
            self.warmed(id);
            let usage = self.pool.usage();
            self.refuse(
                pending.request,
                EngineError::Pool(PoolError::Exhausted {
                    wanted: usage.total,
                    available: usage.spare(),
                    total: usage.total,
                }),
            );
        }
    }

    fn slot_of(&self, id: RequestId) -> Option<usize> {
        self.lanes
            .iter()
            .position(|lane| lane.as_ref().is_some_and(|lane| lane.id == id))
    }

    /// Reads some of a prompt.
    fn prefill(&mut self, id: RequestId, most_tokens: Option<usize>) {
        let Some(slot) = self.slot_of(id) else {
            self.scheduler.remove(id);
            return;
        };
        let Some(lane) = self.lanes[slot].as_mut() else {
            return;
        };
        let capacity = self.backend.capacity(GraphKind::Prefill);
        if lane.reading.is_some() {
            let most = match most_tokens {
                Some(most) => most.min(self.mixed_tokens),
                None => self.most_call_tokens(),
            };
            match self.read_on(slot, most.min(capacity)) {
                Ok(is_done) => self.prefilled(slot, is_done),
                Err(error) => self.fail_reading(slot, error),
            }
            return;
        }
        let done = lane.read_tokens();
        let left = lane.request.prompt.len() - done;
        let wanted = match most_tokens {
            Some(most) => most.min(self.mixed_tokens),
            None => self.call_rows(left),
        };
        let count = left.min(wanted).min(capacity);
        let is_last = count == left;
        let begin = Instant::now();
        let result = self.run_prefill(slot, done, count, is_last);
        if let Err(error) = result {
            self.fail_reading(slot, error);
            return;
        }
        let rate = count as f64 / begin.elapsed().as_secs_f64();
        self.prefill_rate = Some(rate);
        // Short calls say little about the machine's speed.
        if most_tokens.is_none() && count >= CALL_STEP_TOKENS {
            self.call_tokens = call_tokens(rate, CALL_SECONDS, CALL_STEP_TOKENS, capacity);
        } else if most_tokens.is_some() && count >= MIXED_STEP_TOKENS {
            let most = self.scheduler.policy().mixed_prefill_tokens;
            self.mixed_tokens = call_tokens(rate, MIXED_SECONDS, MIXED_STEP_TOKENS, most);
        }
        let Some(lane) = self.lanes[slot].as_mut() else {
            return;
        };
        if let Some(explanation) = &mut lane.explanation {
            let purpose = Purpose::Read;
            explanation.calls.push(PlannedCall { purpose, rows: count });
        }
        let before = lane.tokens.len();
        lane.tokens
            .extend_from_slice(&lane.request.prompt[before..done + count]);
        if lane.exact_tokens == done {
            lane.exact_tokens = lane.tokens.len();
        }
        self.prefilled(slot, is_last);
    }

    /// Tokens of the next prefill call that runs alone.
    fn most_call_tokens(&self) -> usize {
        let most = self.workings.call_tokens.unwrap_or(usize::MAX);
        self.call_tokens.min(most).max(1)
    }

    /// Tokens of the next prefill call that runs alone, when so many one after the other are left to read. The last call
    /// may be a little longer than others: a short one more would take its fixed time anew.
    fn call_rows(&self, left: usize) -> usize {
        let most = self.most_call_tokens();
        let most = match left <= most + most / 4 {
            true => left,
            false => most,
        };
        most.min(self.backend.capacity(GraphKind::Prefill))
    }

    /// Tells how far a prompt has come after a call, and draws the first token when all of it is there.
    fn prefilled(&mut self, slot: usize, is_last: bool) {
        let Some(lane) = self.lanes[slot].as_mut() else {
            return;
        };
        lane.report_prefill();
        self.scheduler.set_prefilled(lane.id, lane.tokens.len());
        if is_last {
            lane.reading_guard = None;
            let stop = lane.advance(self.backend.logits(), &self.tokenizer, self.info.context_tokens);
            if let Some(stop) = stop {
                self.finish(slot, stop);
            }
        }
    }

    fn run_prefill(
        &mut self,
        slot: usize,
        done: usize,
        count: usize,
        is_last: bool,
    ) -> Result<(), EngineError> {
        let Some(lane) = self.lanes[slot].as_mut() else {
            return Ok(());
        };
        let left = lane.request.prompt.len() - done;
        if is_last {
            self.leases
                .acquire(&mut *self.backend, Component::Head, lane.id)?;
        } else if left - count >= LONG_PREFILL_TOKENS
            && (self.residency == Residency::Lean || self.guard.pressure(0) != Pressure::None)
        {
            self.leases.sweep(&mut *self.backend);
        }
        self.sequences[slot].prepare(done + count, Some(&mut lane.reservation))?;
        let stretch = [Stretch::new(slot, done, &lane.request.prompt[done..done + count])];
        let call = GraphCall {
            kind: GraphKind::Prefill,
            stretches: &stretch,
            outputs: if is_last { Outputs::Last } else { Outputs::None },
        };
        let begin = Instant::now();
        let mut kv = KvLanes::new(&self.layouts, &mut self.sequences);
        kv.arrivals = reuse::arrivals(&mut lane.arriving);
        let result = self.backend.run(&call, &mut kv);
        lane.computed(begin, &mut self.sequences[slot]);
        result?;
        self.sequences[slot].commit(done + count);
        Ok(())
    }

    /// Takes in the newest token of every lane that answers, or verifies guesses for the only one.
    fn decode(&mut self, may_speculate: bool) {
        let mut slots = [0; LANES];
        let mut count = 0;
        for slot in 0..self.lanes.len() {
            if self.lanes[slot].as_ref().is_some_and(|lane| lane.next.is_some()) {
                slots[count] = slot;
                count += 1;
            }
        }
        if may_speculate && count == 1 && self.speculate(slots[0]) {
            return;
        }
        let mut ready = [0; LANES];
        let mut ready_count = 0;
        for &slot in &slots[..count] {
            if self.prepare_step(slot, 1) {
                ready[ready_count] = slot;
                ready_count += 1;
            }
        }
        // Making room for one lane may have ended another that was ready.
        let mut tokens = [[0; 1]; LANES];
        let mut rows = 0;
        for i in 0..ready_count {
            if let Some(token) = self.lanes[ready[i]].as_ref().and_then(|lane| lane.next) {
                ready[rows] = ready[i];
                tokens[rows] = [token];
                rows += 1;
            }
        }
        if rows == 0 {
            return;
        }
        let begin = Instant::now();
        let mut stretches = [Stretch::new(0, 0, &[]); LANES];
        for row in 0..rows {
            let start = self.sequences[ready[row]].len();
            stretches[row] = Stretch::new(ready[row], start, &tokens[row]);
        }
        let call = GraphCall {
            kind: GraphKind::Decode,
            stretches: &stretches[..rows],
            outputs: Outputs::Last,
        };
        let mut kv = KvLanes::new(&self.layouts, &mut self.sequences);
        if let Err(error) = self.backend.run(&call, &mut kv) {
            self.fail_all(&ready[..rows], &error);
            return;
        }
        if rows == 1 && may_speculate {
            self.payoff.took_one(begin.elapsed());
        }
        self.scheduler.decoded();
        let vocabulary = self.backend.logits().len() / rows;
        for (row, &slot) in ready[..rows].iter().enumerate() {
            let end = self.sequences[slot].len() + 1;
            self.sequences[slot].commit(end);
            let Some(lane) = self.lanes[slot].as_mut() else {
                continue;
            };
            lane.tokens.push(tokens[row][0]);
            let logits = &self.backend.logits()[row * vocabulary..(row + 1) * vocabulary];
            if let Some(stop) = lane.advance(logits, &self.tokenizer, self.info.context_tokens) {
                self.finish(slot, stop);
            }
        }
    }

    /// Makes the next positions of a lane writable, from its reservation, from spare pages, or from what others have
    /// too much of. False when the lane ended over it.
    fn prepare_step(&mut self, slot: usize, count: usize) -> bool {
        loop {
            let Some(lane) = self.lanes[slot].as_mut() else {
                return false;
            };
            let end = self.sequences[slot].len() + count;
            match self.sequences[slot].prepare(end, Some(&mut lane.reservation)) {
                Ok(()) => return true,
                Err(_) if self.kept.evict() => {}
                Err(_) if self.keeper.as_ref().is_some_and(Keeper::give_up_oldest) => {}
                Err(error) => match self.scheduler.capacity_victim().and_then(|id| self.slot_of(id)) {
                    Some(victim) => self.finish(victim, StopReason::Capacity),
                    None => self.fail(slot, EngineError::Pool(error)),
                },
            }
        }
    }

    /// Verifies guesses for the lane that is alone; false when there was nothing to guess, or it does not pay.
    fn speculate(&mut self, slot: usize) -> bool {
        let Some(drafter) = self.drafter.as_mut() else {
            return false;
        };
        if !self.payoff.is_worth_it() {
            return false;
        }
        let Some(lane) = self.lanes[slot].as_mut() else {
            return false;
        };
        let Some(next) = lane.next else { return false };
        let mut tokens = [next; MOST_GUESSED + 1];
        let mut guess = [0; MOST_GUESSED];
        lane.tokens.push(next);
        let found = drafter.guess(&lane.tokens, &mut guess);
        lane.tokens.pop();
        let start = self.sequences[slot].len();
        // Guesses never reach past the window, nor take pages that a step alone would not.
        let window = self.info.context_tokens.saturating_sub(start + 2);
        // A call gives one token more than it guesses.
        let most = lane
            .request
            .options
            .max_tokens
            .saturating_sub(lane.answer_tokens() + 1);
        let room = self.backend.capacity(GraphKind::Decode) - 1;
        let count = found.min(window).min(most).min(room);
        if count == 0 {
            return false;
        }
        tokens[1..=count].copy_from_slice(&guess[..count]);
        let (promised, pages) = (lane.reservation.pages(), self.sequences[slot].pages().len());
        if self.sequences[slot]
            .prepare(start + 1 + count, Some(&mut lane.reservation))
            .is_err()
        {
            return false;
        }
        let begin = Instant::now();
        let stretches = [Stretch::new(slot, start, &tokens[..=count])];
        let call = GraphCall {
            kind: GraphKind::Decode,
            stretches: &stretches,
            outputs: Outputs::All,
        };
        let mut kv = KvLanes::new(&self.layouts, &mut self.sequences);
        if let Err(error) = self.backend.run(&call, &mut kv) {
            self.fail_all(&[slot], &error);
            return true;
        }
        let vocabulary = self.backend.logits().len() / (count + 1);
        let Some(lane) = self.lanes[slot].as_mut() else {
            return true;
        };
        let mut taken = 0;
        let mut stop = None;
        for (row, logits) in self.backend.logits().chunks_exact(vocabulary).enumerate() {
            lane.tokens.push(tokens[row]);
            taken = row + 1;
            stop = lane.advance(logits, &self.tokenizer, self.info.context_tokens);
            if stop.is_some() || row == count || lane.next != Some(tokens[row + 1]) {
                break;
            }
        }
        let id = lane.id;
        self.sequences[slot].commit(start + taken);
        self.sequences[slot].cancel();
        // A page that only wrong guesses stood in is free again: promise it to the lane as before.
        let due = promised.saturating_sub(self.sequences[slot].pages().len() - pages);
        if let Some(missing) = due
            .checked_sub(lane.reservation.pages())
            .filter(|&missing| missing > 0)
            && let Err(error) = lane.reservation.grow(missing)
        {
            tracing::error!(%error, "a page that was just freed cannot be promised");
        }
        self.payoff.took_several(begin.elapsed(), taken);
        self.totals.guessed += count as u64;
        self.totals.accepted += taken as u64 - 1;
        self.scheduler.speculated(id, taken);
        if let Some(stop) = stop {
            self.finish(slot, stop);
        }
        true
    }

    /// Takes a lane out.
    fn leave(&mut self, slot: usize) -> Option<(Lane, Sequence)> {
        let lane = self.lanes[slot].take()?;
        self.warmed(lane.id);
        let sequence = std::mem::replace(&mut self.sequences[slot], self.pool.sequence());
        self.scheduler.remove(lane.id);
        self.leases.release_all(lane.id);
        Some((lane, sequence))
    }

    /// Keeps what a lane had computed, unless it was scratch, and gives back what it was promised.
    fn leave_behind(&mut self, lane: Lane, mut sequence: Sequence) -> Request {
        let Lane {
            request,
            tokens,
            exact_tokens,
            moved_tokens,
            recomputed_tokens,
            ..
        } = lane;
        let recomputed_share = match moved_tokens {
            0 => 1.0,
            moved => recomputed_tokens as f32 / moved as f32,
        };
        sequence.cancel();
        // An answer is as exact as its prompt.
        let exact_tokens = match exact_tokens >= request.prompt.len() {
            true => tokens.len(),
            false => exact_tokens,
        };
        if !request.options.scratch && self.reuse != Reuse::Nothing {
            self.keep_chunks(&request, &tokens, &sequence, exact_tokens, recomputed_share);
            let owner = request.options.owner.clone();
            let segments = request.options.segments.iter();
            let mut holders: Vec<_> = segments.filter_map(|segment| segment.owner.clone()).collect();
            holders.sort_unstable();
            holders.dedup();
            self.kept.keep(tokens, sequence, exact_tokens, owner, holders);
        }
        request
    }

    fn finish(&mut self, slot: usize, stop: StopReason) {
        let Some((mut lane, sequence)) = self.leave(slot) else {
            return;
        };
        // Since the last answer; the keeper stores nothing while a prompt is read, so nobody waited for it.
        if let Some(keeper) = &self.keeper {
            let now = keeper.storing();
            let taken = now.saturating_sub(std::mem::replace(&mut self.stored, now));
            lane.steps.storing = Spent { taken, hidden: taken };
        }
        let answer = lane.finish(stop);
        self.totals.requests += 1;
        self.totals.prompt_tokens += answer.prompt_tokens as u64;
        self.totals.reused_tokens += answer.reused_tokens as u64;
        self.totals.answer_tokens += answer.answer_tokens as u64;
        let request = self.leave_behind(lane, sequence);
        if self.residency == Residency::Lean {
            self.leases.sweep(&mut *self.backend);
        }
        (request.on_end)(Ok(answer));
    }

    /// Ends a lane with an error; what it had computed is kept.
    fn fail(&mut self, slot: usize, error: EngineError) {
        let Some((lane, sequence)) = self.leave(slot) else {
            return;
        };
        self.totals.requests += 1;
        let request = self.leave_behind(lane, sequence);
        (request.on_end)(Err(error));
    }

    fn fail_all(&mut self, slots: &[usize], error: &BackendError) {
        let reason = error.to_string();
        for &slot in slots {
            self.fail(
                slot,
                EngineError::Failed {
                    reason: reason.clone(),
                },
            );
        }
    }

    /// Runs one request to its end, with whatever else is there.
    ///
    /// # Errors
    /// As the request's own.
    pub fn generate(&mut self, prompt: &[TokenId], options: &GenerateOptions) -> Result<Answer, EngineError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.submit(Request {
            prompt: prompt.to_vec(),
            options: options.clone(),
            cancel: crate::CancelToken::default(),
            on_event: Box::new(|_| ()),
            on_end: Box::new(move |result| {
                let _ = sender.send(result);
            }),
        });
        loop {
            let goes_on = self.turn();
            match receiver.try_recv() {
                Ok(result) => return result,
                Err(_) if goes_on => {}
                Err(_) => return Err(EngineError::Stopped),
            }
        }
    }
}

/// Opens the store and puts a keeper before it.
fn keeper_of(loaded: &Loaded, choice: &StoreChoice) -> Result<Keeper, EngineError> {
    let options = StoreOptions {
        budget_bytes: choice
            .budget_bytes
            .unwrap_or_else(|| crate::budget::disk_bytes(&choice.folder)),
        ..StoreOptions::default()
    };
    let (store, recovery) = ChunkStore::open(&choice.folder, options)?;
    if let Some(told) = recovery.told() {
        tracing::warn!(?recovery, "{told}");
    }
    let model = KeptModel {
        fingerprint: loaded.gguf.fingerprint(),
        profile: loaded.profile.clone(),
        layouts: loaded.layouts.clone(),
        ropes: loaded.backend.ropes(),
    };
    let memory_bytes = choice
        .memory_bytes
        .unwrap_or_else(|| crate::budget::chunk_memory_bytes(loaded.info.kv_budget_bytes));
    Ok(Keeper::start(store, model, memory_bytes).map_err(crate::cpu::CpuError::Threads)?)
}

/// Tokens of a call that takes about `seconds`: a multiple of `step`, at most `most`.
fn call_tokens(rate: f64, seconds: f64, step: usize, most: usize) -> usize {
    let wanted = (rate * seconds) as usize / step * step;
    wanted.clamp(step, most.max(step)).min(most)
}
