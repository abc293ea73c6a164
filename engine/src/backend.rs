//! What the engine asks of a backend. The engine never asks which backend it is.
//!
//! A backend publishes static graphs: computations of a fixed capacity, prepared once, that [`Backend::run`] executes
//! on part or all of their capacity. It keeps weights and scratch; keys and values belong to the engine.

use crate::rope::LayerRope;
use crate::tune::statistics::LayerStatistics;
use reprise_kv::{KvLanes, KvProfile, ProfileMismatch};
use std::ops::Range;

/// What a graph is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphKind {
    /// Reads prompt tokens.
    Prefill,
    /// Computes the next token of each lane, or verifies a few guessed tokens of one.
    Decode,
    /// Computes tokens whose keys and values come from elsewhere up to a check layer, and those of them that deviate most
    /// to the end ([`Backend::recompute`]).
    Recompute,
    /// Finds out which earlier tokens a few tokens attend to ([`Backend::probe`]).
    Probe,
}

/// A graph a backend has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graph {
    /// What it is for.
    pub kind: GraphKind,
    /// Most tokens in one call; for decode, rows.
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

/// Where the tokens of a stretch stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places<'a> {
    /// One after the other, from this position on.
    From(usize),
    /// At these positions, which ascend. What stands between them was written before: by an earlier call, or brought
    /// from elsewhere.
    At(&'a [usize]),
}

impl Places<'_> {
    /// The position of a token of the stretch.
    ///
    /// # Panics
    /// When there is no such token.
    pub fn of(&self, token: usize) -> usize {
        match self {
            Places::From(start) => start + token,
            Places::At(positions) => positions[token],
        }
    }
}

/// Tokens of one sequence. Each sees all positions up to its own, those between the stretch's tokens included.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// Which of the call's sequences.
    pub sequence: usize,
    /// Where the tokens stand.
    pub places: Places<'a>,
    /// Token ids.
    pub tokens: &'a [u32],
}

impl<'a> Stretch<'a> {
    /// Consecutive tokens from position `start` on.
    pub fn new(sequence: usize, start: usize, tokens: &'a [u32]) -> Stretch<'a> {
        Stretch {
            sequence,
            places: Places::From(start),
            tokens,
        }
    }

    /// Tokens at positions of their own, one for each.
    pub fn at(sequence: usize, positions: &'a [usize], tokens: &'a [u32]) -> Stretch<'a> {
        Stretch {
            sequence,
            places: Places::At(positions),
            tokens,
        }
    }

    /// From the first token's position to behind the last one's; nothing without tokens, or when the positions are not
    /// one for each token, ascending.
    pub fn span(&self) -> Option<Range<usize>> {
        let last = self.tokens.len().checked_sub(1)?;
        if let Places::At(positions) = self.places
            && (positions.len() != self.tokens.len() || !positions.is_sorted_by(|a, b| a < b))
        {
            return None;
        }
        Some(self.places.of(0)..self.places.of(last) + 1)
    }
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

/// What of a token's stored keys and values is compared with fresh ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviation {
    /// Keys, both at the same position.
    Keys,
    /// Values.
    Values,
    /// The sum of both.
    Both,
}

/// Which tokens of a recompute call go on behind the check layer.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    /// The check layer, counted from 0: its keys and values are compared.
    pub check: usize,
    /// What of them.
    pub of: Deviation,
    /// How many tokens go on, those of `forced` included; of the others those that deviate most.
    pub rows: usize,
    /// Tokens of the call, by their index in it, that go on in any case: new ones, and the last of a prompt.
    pub forced: &'a [usize],
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
    /// Positions that do not ascend, or are not one for each token.
    #[error("the positions of sequence {sequence} are not one for each token, in ascending order")]
    Positions { sequence: usize },
    /// A selection that the call has no room for.
    #[error(
        "{forced} tokens are to go on behind layer {check}, of {tokens} with {layers} layers, and {rows} may"
    )]
    Selection {
        check: usize,
        layers: usize,
        tokens: usize,
        forced: usize,
        rows: usize,
    },
    /// Positions that were not made writable.
    #[error("positions {start}..{end} of sequence {sequence} were not prepared; prepare its pages first")]
    NotPrepared {
        sequence: usize,
        start: usize,
        end: usize,
    },
    /// Keys and values that were on their way did not come.
    #[error(transparent)]
    Lost(#[from] reprise_kv::Lost),
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
///   reads those before them. Before it reads a layer's, it waits for what is on its way there ([`KvLanes::arrive`]).
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

    /// Computes tokens that have keys and values from elsewhere, all of them up to the check layer, and those selected
    /// to the end. Fresh keys and values take the place of stored ones: of all tokens up to the check layer, of the
    /// selected ones behind it. Positions between the tokens keep what they have. Gives the tokens that went on, by
    /// their index in the stretch, ascending; logits are those of `outputs`, and of selected tokens only.
    ///
    /// How much a token deviates is the squared distance of what is stored from what is fresh, over all key heads,
    /// divided by the square root of the head's dimension, in single precision (DESIGN section 6).
    ///
    /// # Errors
    /// As for [`Backend::run`], and [`BackendError::Selection`].
    fn recompute(
        &mut self,
        stretch: &Stretch<'_>,
        selection: &Selection<'_>,
        outputs: Outputs,
        kv: &mut KvLanes<'_>,
    ) -> Result<Vec<usize>, BackendError>;

    /// How much attention each position gets from the last `asking` tokens of a stretch, up to the last one of them: the
    /// sum over all query heads and over the second third of the layers (DESIGN section 6). The stretch's own keys and
    /// values are written on the way, in the first two thirds of the layers only: they are not to be committed.
    ///
    /// # Errors
    /// As for [`Backend::run`].
    fn probe(
        &mut self,
        stretch: &Stretch<'_>,
        asking: usize,
        kv: &mut KvLanes<'_>,
    ) -> Result<Vec<f32>, BackendError>;

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

    /// How each layer's keys turn with their position: what moving them takes.
    fn ropes(&self) -> Vec<LayerRope>;

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
