//! What the engine asks of a backend. The engine never asks which backend it is.
//!
//! A backend publishes static graphs: computations of a fixed capacity, prepared once, that [`Backend::run`] executes
//! on part or all of their capacity. It keeps weights and scratch; keys and values belong to the engine.

use crate::tune::statistics::LayerStatistics;
use reprise_kv::{KvLanes, KvProfile, ProfileMismatch};

/// What a graph is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphKind {
    /// Reads prompt tokens.
    Prefill,
    /// Computes the next token of each lane, or verifies a few guessed tokens of one.
    Decode,
}

/// A graph a backend has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graph {
    /// What it is for.
    pub kind: GraphKind,
    /// Most tokens (prefill) or rows (decode) in one call.
    pub capacity: usize,
}

/// A part of the model that can be loaded and released by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// The table that turns tokens into the first hidden state.
    Embedding,
    /// The matrix that turns the last hidden state into logits.
    Head,
}

impl Component {
    /// Every component.
    pub const ALL: [Component; 2] = [Component::Embedding, Component::Head];

    /// The name people see.
    pub const fn name(self) -> &'static str {
        match self {
            Component::Embedding => "embedding",
            Component::Head => "head",
        }
    }
}

/// Which tokens of a call get logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    /// None: the call only fills keys and values.
    None,
    /// The last token of each stretch.
    Last,
    /// All tokens.
    All,
}

/// Consecutive tokens of one sequence: they stand at positions `start..` and see all positions before them.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// Which of the call's sequences.
    pub sequence: usize,
    /// Position of the first token.
    pub start: usize,
    /// Token ids.
    pub tokens: &'a [u32],
}

/// One call of a graph over stretches of different sequences, whose keys and values are written.
#[derive(Debug, Clone, Copy)]
pub struct GraphCall<'a> {
    /// Which graph.
    pub kind: GraphKind,
    /// The stretches, each of another sequence; together at most the graph's capacity.
    pub stretches: &'a [Stretch<'a>],
    /// Which tokens get logits.
    pub outputs: Outputs,
}

impl GraphCall<'_> {
    /// Tokens in the call.
    pub fn tokens(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.tokens.len()).sum()
    }
}

/// Why a call or a component failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are what the message prints
pub enum BackendError {
    /// More tokens than the graph takes.
    #[error("a {kind:?} graph takes at most {capacity} tokens, and {given} were given")]
    Capacity {
        kind: GraphKind,
        capacity: usize,
        given: usize,
    },
    /// A token id outside the vocabulary.
    #[error("token {token} is not in the vocabulary of {vocabulary}; the prompt was made for another model")]
    UnknownToken { token: u32, vocabulary: usize },
    /// Positions that were not made writable.
    #[error("positions {start}..{end} of sequence {sequence} were not prepared; prepare its pages first")]
    NotPrepared {
        sequence: usize,
        start: usize,
        end: usize,
    },
    /// The call needs a component that is not attached.
    #[error("the {0:?} component is not loaded; attach it first")]
    Detached(Component),
    /// A component could not be loaded.
    #[error("the {component:?} component cannot be loaded: {reason}")]
    Attach { component: Component, reason: String },
}

/// A compute backend. Contract, held by the conformance suite for each backend:
///
/// - `run` writes keys and values of exactly the call's positions, which the caller has prepared and not committed, and
///   reads those before them.
/// - A token's logits depend on the tokens before it and on nothing else: not on how a prompt is split into calls, on
///   which other sequences share the call, on the number of threads, or on what ran before.
/// - After an error the backend can be used as if the call had not been made; the call's positions hold no valid keys.
pub trait Backend: Send {
    /// A short name, for example `cpu avx2`.
    fn name(&self) -> &str;

    /// The graphs prepared.
    fn graphs(&self) -> &[Graph];

    /// Executes one call.
    ///
    /// # Errors
    /// As [`BackendError`] lists them.
    fn run(&mut self, call: &GraphCall<'_>, kv: &mut KvLanes<'_>) -> Result<(), BackendError>;

    /// The logits of the last call: one row of the vocabulary per token that was to have them, in the call's order.
    fn logits(&self) -> &[f32];

    /// Loads a component; does nothing when it is there.
    ///
    /// # Errors
    /// When its weights cannot be read.
    fn attach(&mut self, component: Component) -> Result<(), BackendError>;

    /// Releases a component's memory; does nothing when it is not there.
    fn detach(&mut self, component: Component);

    /// Bytes a component holds, zero when detached. A component that is read from the mapped file holds none.
    fn component_bytes(&self, component: Component) -> usize;

    /// Whether a component can be used now.
    fn is_attached(&self, component: Component) -> bool;

    /// Stores keys and values as another profile says from the next call on; what was written before is not readable
    /// any more, except by going back.
    ///
    /// # Errors
    /// When the profile is for another model: then nothing changes.
    fn set_profile(&mut self, profile: &KvProfile) -> Result<(), ProfileMismatch>;

    /// Gathers statistics of keys and queries in every call from now on, on top of those given (an empty list begins
    /// anew), or stops doing so; returns what was gathered before.
    fn swap_statistics(&mut self, statistics: Option<Vec<LayerStatistics>>) -> Option<Vec<LayerStatistics>>;

    /// Bytes of scratch, a constant of the graphs' capacities: it does not grow with the context.
    fn workspace_bytes(&self) -> usize;

    /// Bytes of weights and scratch held in all.
    fn bytes(&self) -> usize;

    /// The graph of a kind with the largest capacity.
    fn capacity(&self, kind: GraphKind) -> usize {
        self.graphs()
            .iter()
            .filter(|graph| graph.kind == kind)
            .map(|graph| graph.capacity)
            .max()
            .unwrap_or(0)
    }
}
