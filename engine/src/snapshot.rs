//! One picture of the engine at a moment: what the app's panel, `reprise top` and the server show. Nobody else counts.

use serde::{Deserialize, Serialize};

/// Everything the engine shows of itself. Bytes, tokens, pages and seconds, as the names say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct Snapshot {
    /// Counts up with each new picture.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub sequence: u64,
    /// The model loaded.
    pub model: ModelView,
    /// The KV pool.
    pub pool: PoolView,
    /// Requests, waiting and active.
    pub lanes: Vec<LaneView>,
    /// Parts of the model.
    pub components: Vec<ComponentView>,
    /// Memory of the process and the machine.
    pub memory: MemoryView,
    /// Where chunks are kept.
    pub tiers: TiersView,
    /// What is being brought into memory before it is asked for.
    pub prefetch: Vec<PrefetchView>,
    /// Images and what they wait for. Empty: images are not read yet.
    pub images: Vec<ImageView>,
    /// Guessing tokens ahead.
    pub speculation: SpeculationView,
    /// Tuning of the model in the background, while it goes on.
    pub tuning: Option<TuningView>,
    /// Totals since the model was loaded.
    pub totals: TotalsView,
}

/// Tuning of the model in the background.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct TuningView {
    /// What it is doing.
    pub activity: String,
    /// Share done.
    pub share: f64,
}

/// The model loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct ModelView {
    /// Its name.
    pub name: String,
    /// The window of one request.
    pub context_tokens: usize,
    /// How keys and values are stored.
    pub kv_format: String,
    /// Bytes of keys and values a token takes.
    pub kv_token_bytes: usize,
    /// What computes.
    pub backend: String,
}

/// The KV pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct PoolView {
    /// Pages in all.
    pub pages: usize,
    /// Pages that active requests hold.
    pub in_use_pages: usize,
    /// Pages that only ended requests hold: kept for later prompts, given up when needed.
    pub cached_pages: usize,
    /// Pages that nobody holds.
    pub free_pages: usize,
    /// Free pages promised to active requests.
    pub promised_pages: usize,
    /// Most pages held at once.
    pub high_water_pages: usize,
    /// Tokens of a page.
    pub page_tokens: usize,
    /// Bytes of a page over all layers.
    pub page_bytes: usize,
    /// Bytes of the pool's memory that the system has really given.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub resident_bytes: u64,
    /// Who holds each page, in the pool's order: an index into `owners`, or none.
    pub map: Vec<Option<u16>>,
    /// The owners the map names.
    pub owners: Vec<OwnerView>,
}

/// Someone who holds pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct OwnerView {
    /// Who asked: a chat, a client.
    pub name: String,
    /// Whether it is an active request, or what an ended one left.
    pub is_active: bool,
    /// Pages it holds; shared ones count for each.
    pub pages: usize,
    /// Tokens it holds.
    pub tokens: usize,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct LaneView {
    /// Its number.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub id: u64,
    /// Who asked.
    pub owner: String,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those whose KV was already there.
    pub reused_tokens: usize,
    /// What it does.
    pub phase: PhaseView,
}

/// What a request does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PhaseView {
    /// It waits for a lane or for pages.
    Queued {
        /// Requests before it.
        ahead: usize,
        /// Later requests that went before it.
        overtaken: usize,
        /// Seconds since it came.
        waited_seconds: f64,
    },
    /// Its prompt is being read.
    Prefill {
        /// Tokens in place.
        done_tokens: usize,
        /// Seconds until it is read, as the last calls went; none before the first.
        seconds_left: Option<f64>,
    },
    /// It answers.
    Decode {
        /// Tokens of the answer.
        answer_tokens: usize,
        /// Tokens a second.
        tokens_per_second: f64,
    },
}

/// A part of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct ComponentView {
    /// Backbone, embedding, head, predictor.
    pub name: String,
    /// Where it is.
    pub state: ComponentState,
    /// Bytes it holds in this process.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// Requests that need it.
    #[cfg_attr(feature = "bindings", ts(type = "number[]"))]
    pub owners: Vec<u64>,
}

/// Where a part of the model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ComponentState {
    /// In memory, ready.
    Resident,
    /// Read from the mapped file when needed; the system may drop its pages.
    Mapped,
    /// Not in memory; loaded before its next use.
    Released,
    /// This model has none.
    Absent,
}

/// Memory of the process and the machine. The engine's own counts stand beside what the system says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct MemoryView {
    /// Resident bytes of the process; none where the system does not say.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub process_bytes: Option<u64>,
    /// What the process may take before new work is refused.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub limit_bytes: u64,
    /// Memory programs can still have.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub available_bytes: u64,
    /// The machine's memory.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub total_bytes: u64,
    /// Percent of the last ten seconds in which programs waited for memory; none off Linux.
    pub stalled_percent: Option<f64>,
    /// Weights, as the engine counts.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub weight_bytes: u64,
    /// Scratch of the graphs, as the engine counts: the same whatever the context's length.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub workspace_bytes: u64,
    /// Pages of the pool that are really there, as the engine counts.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub kv_bytes: u64,
    /// Why new work would be refused now, if it would.
    pub refusal: Option<String>,
}

/// Where chunks are kept beyond the pool; both are zero without a store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct TiersView {
    /// Chunks kept in memory.
    pub memory: TierView,
    /// Chunks on disk.
    pub flash: TierView,
}

/// One tier.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct TierView {
    /// Bytes held.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// Chunks held.
    pub chunks: usize,
    /// Chunks not yet written to disk.
    pub dirty_chunks: usize,
    /// Lookups that found what they looked for, and all of them.
    pub hits: usize,
    /// All lookups.
    pub lookups: usize,
}

/// Something being brought into memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct PrefetchView {
    /// Whose it is.
    pub owner: String,
    /// Why.
    pub reason: String,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct ImageView {
    /// Its name.
    pub name: String,
    /// What it waits for, or where it is.
    pub state: String,
}

/// Guessing tokens ahead.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct SpeculationView {
    /// How: off, prompt lookup, draft model.
    pub method: String,
    /// Tokens guessed.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub guessed: u64,
    /// Tokens guessed right.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub accepted: u64,
}

/// Totals since the model was loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct TotalsView {
    /// Requests that ended.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub requests: u64,
    /// Requests that were refused.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub refused: u64,
    /// Prompt tokens of ended requests.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub prompt_tokens: u64,
    /// Those of them that were reused.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub reused_tokens: u64,
    /// Tokens answered.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub answer_tokens: u64,
}
