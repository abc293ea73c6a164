//! Everything a call needs besides weights and keys, allocated once: no call allocates, unless it asks for the logits
//! of many tokens.

use super::DECODE_ROWS;
use super::weights::Weights;
use crate::rope::frequencies;
use reprise_kernels::activations::{Activations, Forms};
use reprise_kernels::attention::{AttentionScratch, OffsetTable, Partial};
use reprise_kernels::buffer::Buffer;
use reprise_kernels::matmul::Scratch;
use reprise_kernels::packed::{Family, PackedMatrix};
use reprise_model::arch::{Architecture, Layer, Rope};
use std::ops::Range;
use std::sync::Mutex;

/// Query rows an attention item aims at: enough to make bringing a tile of keys to f32 cheap, few enough that the rows
/// and their results stay in the second-level cache.
const ATTENTION_ROWS: usize = 192;
/// Segments of keys, over all heads and lanes, whose results are kept apart at once when few tokens are computed: enough
/// for threads to share, and no more when the context grows.
const SEGMENT_SLOTS: usize = 64;

/// Cosines and sines of one kind of rotary positions, for the tokens of a call.
pub(super) struct RopeTable {
    pub rope: Rope,
    frequencies: Vec<f64>,
    /// `[token][dims / 2]`
    pub cos: Buffer<f32>,
    pub sin: Buffer<f32>,
}

impl RopeTable {
    fn new(rope: &Rope, factors: Option<&[f32]>, capacity: usize) -> RopeTable {
        let half = rope.dims / 2;
        let frequencies = frequencies(rope, factors);
        RopeTable {
            rope: rope.clone(),
            frequencies,
            cos: Buffer::zeroed(capacity * half),
            sin: Buffer::zeroed(capacity * half),
        }
    }

    /// Fills the table for tokens at these positions.
    pub fn fill(&mut self, positions: &[usize]) {
        let half = self.frequencies.len();
        let rows = self
            .cos
            .chunks_exact_mut(half)
            .zip(self.sin.chunks_exact_mut(half));
        for (&position, (cos, sin)) in positions.iter().zip(rows) {
            for ((cos, sin), frequency) in cos.iter_mut().zip(sin).zip(&self.frequencies) {
                let (s, c) = (position as f64 * frequency).sin_cos();
                (*cos, *sin) = (c as f32, s as f32);
            }
        }
    }

    /// One token's cosines and sines.
    pub fn row(&self, token: usize) -> (&[f32], &[f32]) {
        let half = self.frequencies.len();
        let range = token * half..(token + 1) * half;
        (&self.cos[range.clone()], &self.sin[range])
    }
}

/// Buffers of a call. Row-major, one row a token, unless said otherwise.
pub(super) struct Workspace {
    /// Values of a token in the residual stream.
    pub width: usize,
    /// The residual stream.
    pub stream: Buffer<f32>,
    /// Q, K and V side by side.
    pub qkv: Buffer<f32>,
    /// What attention gives.
    pub attended: Buffer<f32>,
    /// Gate and up side by side.
    pub gated: Buffer<f32>,
    /// A block's result where it is normalised before it is added.
    pub result: Buffer<f32>,
    pub activations: Activations,
    pub head_activations: Activations,
    /// Each token's position and sequence.
    pub positions: Vec<usize>,
    pub sequences: Vec<usize>,
    /// Tokens that get logits.
    pub outputs: Vec<usize>,
    /// Attention's items.
    pub blocks: Vec<Block>,
    pub ropes: Vec<RopeTable>,
    /// Angles for the mean of residual keys, for each of `ropes`.
    pub offsets: Vec<OffsetTable>,
    /// Which of `ropes` a layer uses.
    pub rope_of_layer: Vec<usize>,
    pub matmul: Vec<Mutex<Scratch>>,
    pub attention: Vec<Mutex<AttentionPlace>>,
    /// For few tokens: results over some segments each, and merged ones `[block][kv head]`.
    pub slots: Vec<Mutex<Partial>>,
    pub totals: Vec<Mutex<Partial>>,
    /// `tile rows * width` floats a thread, to normalise into.
    pub rows: Vec<Mutex<Buffer<f32>>>,
    logits: Vec<f32>,
    logits_len: usize,
    bytes: usize,
}

/// Consecutive tokens of one sequence whose attention is computed together.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub sequence: usize,
    /// Which tokens of the call.
    pub tokens: Range<usize>,
}

/// A thread's attention scratch.
pub(super) struct AttentionPlace {
    pub scratch: AttentionScratch,
    pub positions: Vec<usize>,
}

/// Most tokens in an attention item of this layer.
pub(super) fn attention_block(layer: &Layer) -> usize {
    (ATTENTION_ROWS / (layer.heads / layer.kv_heads)).max(1)
}

impl Workspace {
    pub fn new(
        arch: &Architecture,
        weights: &Weights,
        head: Option<&PackedMatrix>,
        capacity: usize,
        context_tokens: usize,
        threads: usize,
    ) -> Workspace {
        let most = |f: &dyn Fn(&Layer) -> usize| arch.layers.iter().map(f).max().unwrap_or(0);
        let qkv = most(&|l| (l.heads + 2 * l.kv_heads) * l.head_dim);
        let attended = most(&|l| l.heads * l.head_dim);
        let feed_forward = most(&|l| l.feed_forward);
        let widest = arch.width.max(attended).max(feed_forward);
        let forms = weights.layers.iter().flat_map(|layer| layer.matrices()).fold(
            Forms {
                quantised: false,
                float: false,
            },
            |forms, matrix| with_family(forms, matrix.family()),
        );
        let head_forms = head.map_or(forms, |head| {
            with_family(
                Forms {
                    quantised: false,
                    float: false,
                },
                head.family(),
            )
        });
        let mut ropes: Vec<RopeTable> = Vec::new();
        let mut rope_of_layer = Vec::new();
        for layer in &arch.layers {
            let known = ropes.iter().position(|table| table.rope == layer.rope);
            rope_of_layer.push(known.unwrap_or(ropes.len()));
            if known.is_none() {
                ropes.push(RopeTable::new(
                    &layer.rope,
                    weights.rope_factors.as_deref(),
                    capacity,
                ));
            }
        }
        let offsets: Vec<OffsetTable> = ropes
            .iter()
            .map(|table| OffsetTable::new(&table.frequencies, context_tokens))
            .collect();
        let dim = most(&|l| l.head_dim);
        let block_rows = most(&|l| attention_block(l).min(capacity) * (l.heads / l.kv_heads));
        let group = most(&|l| l.heads / l.kv_heads);
        let kv_heads = most(&|l| l.kv_heads);
        let block_rows = block_rows.max(DECODE_ROWS * group);
        let slot_rows = DECODE_ROWS * group;
        let pieces = DECODE_ROWS * kv_heads;
        let slots = SEGMENT_SLOTS.max(pieces);
        let place = || AttentionPlace {
            scratch: AttentionScratch::new(block_rows, dim),
            positions: Vec::with_capacity(block_rows),
        };
        let tile = reprise_kernels::activations::TILE_ROWS * widest;
        let floats = capacity * (2 * arch.width + qkv + attended + 2 * feed_forward) + arch.vocabulary;
        let attention: Vec<Mutex<AttentionPlace>> = (0..threads).map(|_| Mutex::new(place())).collect();
        let attention_bytes = threads * AttentionScratch::new(block_rows, dim).bytes()
            + (slots + pieces) * Partial::new(slot_rows, dim).bytes()
            + offsets.iter().map(OffsetTable::bytes).sum::<usize>();
        let per_thread = tile + capacity * 16 + 40 * 1024;
        Workspace {
            width: arch.width,
            stream: Buffer::zeroed(capacity * arch.width),
            qkv: Buffer::zeroed(capacity * qkv),
            attended: Buffer::zeroed(capacity * attended),
            gated: Buffer::zeroed(capacity * 2 * feed_forward),
            result: Buffer::zeroed(capacity * arch.width),
            activations: Activations::new(capacity, widest, forms),
            head_activations: Activations::new(capacity, arch.width, head_forms),
            positions: Vec::with_capacity(capacity),
            sequences: Vec::with_capacity(capacity),
            outputs: Vec::with_capacity(capacity),
            blocks: Vec::with_capacity(capacity),
            ropes,
            offsets,
            rope_of_layer,
            matmul: (0..threads).map(|_| Mutex::new(Scratch::new(capacity))).collect(),
            attention,
            slots: (0..slots)
                .map(|_| Mutex::new(Partial::new(slot_rows, dim)))
                .collect(),
            totals: (0..pieces)
                .map(|_| Mutex::new(Partial::new(slot_rows, dim)))
                .collect(),
            rows: (0..threads).map(|_| Mutex::new(Buffer::zeroed(tile))).collect(),
            logits: vec![0.0; arch.vocabulary],
            logits_len: 0,
            bytes: 4 * (floats + threads * per_thread) + attention_bytes + capacity * widest * 5 / 4,
        }
    }

    /// The logits of the last call.
    pub fn logits(&self) -> &[f32] {
        &self.logits[..self.logits_len]
    }

    /// Room for `len` logits.
    pub fn logits_mut(&mut self, len: usize) -> &mut [f32] {
        if len > self.logits.len() {
            self.logits.resize(len, 0.0);
        }
        self.logits_len = len;
        &mut self.logits[..len]
    }

    /// The memory behind the logits, for one who fills it while other fields are in use.
    pub fn logits_vec(&mut self) -> &mut Vec<f32> {
        &mut self.logits
    }

    /// Bytes held, as accounted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

fn with_family(forms: Forms, family: Family) -> Forms {
    Forms {
        quantised: forms.quantised || family.takes_quantised(),
        float: forms.float || !family.takes_quantised(),
    }
}
