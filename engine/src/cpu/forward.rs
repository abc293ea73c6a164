//! The forward pass: one for all architectures, reading their description.

use super::pool::Pool;
use super::weights::LayerWeights;
use super::workspace::{AttentionPlace, Block, RopeTable, Workspace, attention_block};
use super::{CpuBackend, DECODE_ROWS, LayerResidual};
use crate::backend::{
    Backend, BackendError, Component, Deviation, GraphCall, GraphKind, Outputs, Selection, Stretch,
};
use crate::tune::statistics::LayerStatistics;
use reprise_kernels::activations::{Activations, TILE_ROWS};
use reprise_kernels::attention::{Head, OffsetTable, Residual, segments};
use reprise_kernels::isa::Isa;
use reprise_kernels::math::{add, gelu_gate, rms_norm, rms_norm_in_place, rope, silu_gate};
use reprise_kernels::matmul::{Output, Scratch, Store, matmul_panel};
use reprise_kernels::packed::PackedMatrix;
use reprise_kernels::quant::dequantize;
use reprise_kv::{KvLanes, LayerKv};
use reprise_model::arch::{Gate, Layer};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Attention items a thread should have at least, so that no thread waits long for the others.
const ITEMS_PER_THREAD: usize = 4;
/// Tokens in an attention item at least: each item brings its tiles of keys to the kernels' form anew.
const LEAST_BLOCK_TOKENS: usize = 16;

/// Bytes of weights that are asked for from memory while a segment of keys is attended to: about what fits beside the
/// keys and values themselves. Measured with SmolLM2 at 4,096 positions: a tenth faster; three times as much gained less.
const AHEAD_BYTES: usize = 32 << 10;

/// A thread's own scratch is locked by that thread alone; after a panic its content does not matter.
fn own<T>(scratch: &Mutex<T>) -> MutexGuard<'_, T> {
    scratch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rows of a matrix that several threads write, each its own.
struct SharedRows<'a> {
    start: *mut f32,
    len: usize,
    stride: usize,
    marker: PhantomData<&'a mut [f32]>,
}

// SAFETY: `row` demands that no two threads hold the same row.
unsafe impl Sync for SharedRows<'_> {}

impl<'a> SharedRows<'a> {
    fn new(matrix: &'a mut [f32], stride: usize) -> SharedRows<'a> {
        SharedRows {
            start: matrix.as_mut_ptr(),
            len: matrix.len(),
            stride,
            marker: PhantomData,
        }
    }

    /// Rows `first..first + count`.
    ///
    /// # Safety
    /// No other thread holds any of them.
    #[allow(clippy::mut_from_ref)]
    unsafe fn rows(&self, first: usize, count: usize) -> &mut [f32] {
        assert!((first + count) * self.stride <= self.len);
        // SAFETY: inside the matrix, and ours alone by contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first * self.stride), count * self.stride) }
    }

    /// `count` values of a row from `column` on.
    ///
    /// # Safety
    /// No other thread holds any of them.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part(&self, row: usize, column: usize, count: usize) -> &mut [f32] {
        assert!(column + count <= self.stride && (row + 1) * self.stride <= self.len);
        // SAFETY: inside the matrix, and ours alone by contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.stride + column), count) }
    }
}

/// The bytes of some matrices that fall to one of `count` equal shares, as far as they lie in the matrix in which the
/// share begins.
fn share<'a>(matrices: &[&'a PackedMatrix], index: usize, count: usize) -> &'a [u8] {
    let total: usize = matrices.iter().map(|matrix| matrix.packed().len()).sum();
    let (mut from, len) = (total * index / count, total / count);
    for matrix in matrices {
        let bytes = matrix.packed();
        if from < bytes.len() {
            return &bytes[from..(from + len.min(AHEAD_BYTES)).min(bytes.len())];
        }
        from -= bytes.len();
    }
    &[]
}

/// One matrix product among those that share their activations.
struct Product<'a> {
    weights: &'a PackedMatrix,
    bias: Option<&'a [f32]>,
    column: usize,
}

/// Runs products side by side: their panels are one list of items.
#[allow(clippy::too_many_arguments)]
fn multiply(
    pool: &mut Pool,
    isa: Isa,
    scratch: &[Mutex<Scratch>],
    x: &Activations,
    products: &[Product<'_>],
    out: &mut [f32],
    stride: usize,
    store: Store,
) {
    let panels: usize = products.iter().map(|product| product.weights.panels()).sum();
    // With few tokens a panel is little work: give out several at once, yet enough items to balance the threads.
    let share = if x.rows() >= TILE_ROWS {
        1
    } else {
        (panels / (pool.threads() * 8)).max(1)
    };
    let mut views: [Option<Output<'_>>; 3] = [None; 3];
    assert!(products.len() <= views.len());
    let out = Output::new(out, stride);
    for (view, product) in views.iter_mut().zip(products) {
        *view = Some(out.columns(product.column..product.column + product.weights.rows()));
    }
    pool.run(panels.div_ceil(share), &|thread, item| {
        let mut scratch = own(&scratch[thread]);
        for panel in item * share..((item + 1) * share).min(panels) {
            let mut panel = panel;
            for (product, view) in products.iter().zip(views.iter().flatten()) {
                if panel < product.weights.panels() {
                    // SAFETY: each panel is one item's.
                    unsafe {
                        matmul_panel(
                            isa,
                            product.weights,
                            panel,
                            x,
                            product.bias,
                            view,
                            store,
                            &mut scratch,
                        );
                    }
                    break;
                }
                panel -= product.weights.panels();
            }
        }
    });
}

pub(super) fn run(
    backend: &mut CpuBackend,
    call: &GraphCall<'_>,
    kv: &mut KvLanes<'_>,
) -> Result<(), BackendError> {
    check(backend, call, kv)?;
    backend.workspace.logits_mut(0);
    if call.tokens() == 0 {
        return Ok(());
    }
    lay_out(backend, call);
    let layers = 0..backend.arch.layers.len();
    run_layers(backend, layers, kv, call.tokens(), None)?;
    compute_logits(backend, call.tokens());
    Ok(())
}

/// See [`Backend::recompute`].
pub(super) fn recompute(
    backend: &mut CpuBackend,
    stretch: &Stretch<'_>,
    selection: &Selection<'_>,
    outputs: Outputs,
    kv: &mut KvLanes<'_>,
) -> Result<Vec<usize>, BackendError> {
    let stretches = std::slice::from_ref(stretch);
    let call = GraphCall {
        kind: GraphKind::Recompute,
        stretches,
        outputs,
    };
    check(backend, &call, kv)?;
    backend.workspace.logits_mut(0);
    let (count, layers) = (call.tokens(), backend.arch.layers.len());
    let mut is_forced = vec![false; count];
    for &token in selection.forced {
        if let Some(is_forced) = is_forced.get_mut(token) {
            *is_forced = true;
        }
    }
    let forced = is_forced.iter().filter(|&&forced| forced).count();
    let is_outside = selection.forced.iter().any(|&token| token >= count);
    if selection.check >= layers || forced > selection.rows || is_outside {
        return Err(BackendError::Selection {
            check: selection.check,
            layers,
            tokens: count,
            forced,
            rows: selection.rows,
        });
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    lay_out(backend, &call);
    run_layers(backend, 0..selection.check, kv, count, None)?;
    kv.arrive(selection.check)?;
    let chosen = {
        let (mut step, layers) = Step::of(backend, count);
        let (place, weights) = layers.at(selection.check);
        step.project(&place, weights, None);
        let mut deviations = vec![0.0; count];
        step.rotate(&place, weights, kv, Some((selection.of, &mut deviations)));
        let chosen = most_deviating(&deviations, &is_forced, selection.rows);
        step.keep(&place, &chosen);
        step.attend_and_add(&place, weights, kv);
        step.feed_forward(place.layer, weights, layers.gate);
        chosen
    };
    run_layers(backend, selection.check + 1..layers, kv, chosen.len(), None)?;
    compute_logits(backend, chosen.len());
    Ok(chosen)
}

/// The tokens that go on, ascending: those that must, then those that deviate most, of equals the first.
fn most_deviating(deviations: &[f32], is_forced: &[bool], rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..deviations.len()).collect();
    order.sort_by(|&a, &b| {
        is_forced[b]
            .cmp(&is_forced[a])
            .then(deviations[b].total_cmp(&deviations[a]))
            .then(a.cmp(&b))
    });
    order.truncate(rows);
    order.sort_unstable();
    order
}

/// See [`Backend::probe`].
pub(super) fn probe(
    backend: &mut CpuBackend,
    stretch: &Stretch<'_>,
    asking: usize,
    kv: &mut KvLanes<'_>,
) -> Result<Vec<f32>, BackendError> {
    let call = GraphCall {
        kind: GraphKind::Probe,
        stretches: std::slice::from_ref(stretch),
        outputs: Outputs::None,
    };
    check(backend, &call, kv)?;
    backend.workspace.logits_mut(0);
    let count = call.tokens();
    let Some(span) = stretch.span() else {
        return Ok(Vec::new());
    };
    lay_out(backend, &call);
    let layers = backend.arch.layers.len();
    let watched = layers / 3..(2 * layers / 3).max(1);
    run_layers(backend, 0..watched.start, kv, count, None)?;
    let mut received = vec![0.0; span.end];
    run_layers(backend, watched, kv, count, Some((asking, &mut received)))?;
    Ok(received)
}

/// Runs some layers over the first `count` tokens of the workspace. Where it watches so many of the last ones, it adds up
/// for each position the attention that it gets from them.
fn run_layers(
    backend: &mut CpuBackend,
    range: Range<usize>,
    kv: &mut KvLanes<'_>,
    count: usize,
    mut watching: Option<(usize, &mut [f32])>,
) -> Result<(), BackendError> {
    let (mut step, mut layers) = Step::of(backend, count);
    for index in range {
        kv.arrive(index)?;
        let kv = &*kv;
        let (place, weights) = layers.at(index);
        let statistics = layers.statistics.as_mut().map(|layers| &mut layers[index]);
        step.project(&place, weights, statistics);
        step.rotate(&place, weights, kv, None);
        if let Some((asking, received)) = &mut watching {
            step.watch(&place, kv, *asking, received);
        }
        if index + 1 == layers.layers.len() {
            // Behind the last keys and values nobody asks for the other tokens.
            step.keep_outputs(&place);
            if step.count == 0 {
                break;
            }
        }
        step.attend_and_add(&place, weights, kv);
        step.feed_forward(place.layer, weights, layers.gate);
    }
    Ok(())
}

fn compute_logits(backend: &mut CpuBackend, count: usize) {
    let (mut step, layers) = Step::of(backend, count);
    if let (Some(head), false) = (layers.head, step.ws.outputs.is_empty()) {
        step.logits(layers.output_norm, head, layers.logit_cap);
    }
}

fn check(backend: &CpuBackend, call: &GraphCall<'_>, kv: &KvLanes<'_>) -> Result<(), BackendError> {
    let (given, capacity) = (call.tokens(), backend.capacity(call.kind));
    if given > capacity {
        let kind = call.kind;
        return Err(BackendError::Capacity {
            kind,
            capacity,
            given,
        });
    }
    let vocabulary = backend.arch.vocabulary;
    let mut tokens = call.stretches.iter().flat_map(|stretch| stretch.tokens);
    if let Some(&token) = tokens.find(|&&token| token as usize >= vocabulary) {
        return Err(BackendError::UnknownToken { token, vocabulary });
    }
    if call.outputs != Outputs::None && backend.head.is_none() {
        return Err(BackendError::Detached(Component::Head));
    }
    for stretch in call.stretches.iter().filter(|stretch| !stretch.tokens.is_empty()) {
        let sequence = stretch.sequence;
        let Some(span) = stretch.span() else {
            return Err(BackendError::Positions { sequence });
        };
        let is_prepared = kv
            .sequences
            .get(sequence)
            .is_some_and(|s| s.len() <= span.start && span.end <= s.prepared());
        if !is_prepared {
            return Err(BackendError::NotPrepared {
                sequence,
                start: span.start,
                end: span.end,
            });
        }
    }
    Ok(())
}

/// Writes down where each token stands, and embeds it.
fn lay_out(backend: &mut CpuBackend, call: &GraphCall<'_>) {
    let ws = &mut backend.workspace;
    ws.positions.clear();
    ws.sequences.clear();
    ws.outputs.clear();
    for stretch in call.stretches {
        let first = ws.positions.len();
        ws.positions
            .extend((0..stretch.tokens.len()).map(|token| stretch.places.of(token)));
        let end = ws.positions.len();
        ws.sequences.resize(end, stretch.sequence);
        match call.outputs {
            Outputs::None => {}
            Outputs::Last => ws.outputs.extend((first..end).last()),
            Outputs::All => ws.outputs.extend(first..end),
        }
    }
    for table in &mut ws.ropes {
        table.fill(&ws.positions);
    }
    embed(backend, call.stretches.iter().flat_map(|stretch| stretch.tokens));
}

/// Token ids to rows of the residual stream, straight from the file.
fn embed<'a>(backend: &mut CpuBackend, tokens: impl Iterator<Item = &'a u32>) {
    let (width, scale) = (backend.arch.width, backend.arch.embedding_scale);
    let Some(embeddings) = backend.gguf.tensor("token_embd.weight") else {
        unreachable!("the architecture was read with this tensor");
    };
    let row_bytes = embeddings.data.len() / backend.arch.vocabulary;
    for (row, &token) in backend.workspace.stream.chunks_exact_mut(width).zip(tokens) {
        let bytes = &embeddings.data[token as usize * row_bytes..][..row_bytes];
        dequantize(embeddings.ty, bytes, row).expect("a row has whole blocks, as the file was checked");
        if scale != 1.0 {
            row.iter_mut().for_each(|value| *value *= scale);
        }
    }
}

/// A layer of the model.
struct Place<'a> {
    index: usize,
    layer: &'a Layer,
    residual: Option<&'a LayerResidual>,
}

impl<'a> Place<'a> {
    /// One key head, as attention has to know it.
    fn head(&self, table: &'a OffsetTable, kv: &KvLanes<'_>, kv_head: usize) -> Head<'a> {
        let (dim, layout) = (self.layer.head_dim, &kv.layouts[self.index]);
        let range = kv_head * dim..(kv_head + 1) * dim;
        let residual = self.residual.map(|residual| Residual {
            mean: &residual.mean[range.clone()],
            scale: &residual.scale[range],
            pairs: self.layer.rope.pairs,
            table,
        });
        Head {
            dim,
            keys: layout.keys,
            values: layout.values,
            window: self.layer.window,
            residual,
        }
    }
}

/// What a call reads of the model.
struct Layers<'a> {
    layers: &'a [Layer],
    weights: &'a [LayerWeights],
    residuals: &'a [Option<LayerResidual>],
    statistics: Option<&'a mut Vec<LayerStatistics>>,
    gate: Gate,
    head: Option<&'a PackedMatrix>,
    output_norm: &'a [f32],
    logit_cap: Option<f32>,
}

impl<'a> Layers<'a> {
    fn at(&self, index: usize) -> (Place<'a>, &'a LayerWeights) {
        let place = Place {
            index,
            layer: &self.layers[index],
            residual: self.residuals[index].as_ref(),
        };
        (place, &self.weights[index])
    }
}

/// A call in progress.
struct Step<'a> {
    isa: Isa,
    pool: &'a mut Pool,
    ws: &'a mut Workspace,
    count: usize,
    epsilon: f32,
}

impl<'a> Step<'a> {
    /// A call over the first `count` tokens of the workspace.
    fn of(backend: &'a mut CpuBackend, count: usize) -> (Step<'a>, Layers<'a>) {
        let step = Step {
            isa: backend.isa,
            pool: &mut backend.pool,
            ws: &mut backend.workspace,
            count,
            epsilon: backend.arch.norm_epsilon,
        };
        let layers = Layers {
            layers: &backend.arch.layers,
            weights: &backend.weights.layers,
            residuals: &backend.residuals,
            statistics: backend.statistics.as_mut(),
            gate: backend.arch.gate,
            head: backend.head.as_ref(),
            output_norm: &backend.weights.output_norm,
            logit_cap: backend.arch.logit_cap,
        };
        (step, layers)
    }
}

impl Step<'_> {
    /// Q, K and V of every token, as the matrices give them.
    fn project(
        &mut self,
        place: &Place<'_>,
        weights: &LayerWeights,
        statistics: Option<&mut LayerStatistics>,
    ) {
        let layer = place.layer;
        let (q, kv_width) = (layer.heads * layer.head_dim, layer.kv_heads * layer.head_dim);
        let width = weights.attention_norm.len();
        let stride = stride_of(layer);
        normalise(self, &weights.attention_norm, width);
        let products = [
            Product {
                weights: &weights.query,
                bias: weights.query_bias.as_deref(),
                column: 0,
            },
            Product {
                weights: &weights.key,
                bias: weights.key_bias.as_deref(),
                column: q,
            },
            Product {
                weights: &weights.value,
                bias: weights.value_bias.as_deref(),
                column: q + kv_width,
            },
        ];
        let ws = &mut *self.ws;
        let qkv = &mut ws.qkv[..self.count * stride];
        multiply(
            self.pool,
            self.isa,
            &ws.matmul,
            &ws.activations,
            &products,
            qkv,
            stride,
            Store::Set,
        );
        if let Some(statistics) = statistics {
            self.observe(layer, weights, stride, statistics);
        }
    }

    /// Attention over what is stored, added to the residual stream.
    fn attend_and_add(&mut self, place: &Place<'_>, weights: &LayerWeights, kv: &KvLanes<'_>) {
        let stride = stride_of(place.layer);
        if self.count <= DECODE_ROWS {
            self.attend_few(place, weights, kv, stride);
        } else {
            self.attend(place, kv, stride);
        }
        let ws = &mut *self.ws;
        let q = place.layer.heads * place.layer.head_dim;
        let attended = &ws.attended[..self.count * q];
        prepare(self.pool, self.isa, &mut ws.activations, attended, q, self.count);
        self.add_product(&weights.output, weights.post_attention_norm.as_deref());
    }

    /// Goes on with some of the tokens, whose Q, K and V are there: the others are forgotten.
    fn keep(&mut self, place: &Place<'_>, tokens: &[usize]) {
        let ws = &mut *self.ws;
        let (width, stride) = (ws.width, stride_of(place.layer));
        for (to, &from) in tokens.iter().enumerate() {
            ws.stream
                .copy_within(from * width..(from + 1) * width, to * width);
            ws.qkv
                .copy_within(from * stride..(from + 1) * stride, to * stride);
            ws.positions[to] = ws.positions[from];
            ws.sequences[to] = ws.sequences[from];
        }
        ws.positions.truncate(tokens.len());
        ws.sequences.truncate(tokens.len());
        let kept = |token: &usize| tokens.binary_search(token).ok();
        ws.outputs = ws.outputs.iter().filter_map(kept).collect();
        for table in &mut ws.ropes {
            table.fill(&ws.positions);
        }
        self.count = tokens.len();
    }

    /// Goes on with those tokens only that get logits.
    fn keep_outputs(&mut self, place: &Place<'_>) {
        if self.ws.outputs.len() == self.count {
            return;
        }
        let mut outputs = std::mem::take(&mut self.ws.outputs);
        self.keep(place, &outputs);
        outputs.clear();
        outputs.extend(0..self.count);
        self.ws.outputs = outputs;
    }

    /// Adds the attention that positions get from the call's tokens, whose Q is rotated and K stored. The sums are taken
    /// in an order of their own, whatever the number of threads.
    fn watch(&mut self, place: &Place<'_>, kv: &KvLanes<'_>, asking: usize, received: &mut [f32]) {
        let (isa, layer, stride) = (self.isa, place.layer, stride_of(place.layer));
        let group = layer.heads / layer.kv_heads;
        self.set_blocks(
            self.count.saturating_sub(asking)..self.count,
            LEAST_BLOCK_TOKENS.min(attention_block(layer)),
        );
        let ws = &mut *self.ws;
        let table = &ws.offsets[ws.rope_of_layer[place.index]];
        let queries = Queries {
            qkv: &ws.qkv,
            stride,
            positions: &ws.positions,
            group,
        };
        let (places, blocks) = (&ws.attention, &ws.blocks);
        let shares: Vec<Mutex<Vec<f32>>> = (0..blocks.len() * layer.kv_heads)
            .map(|_| Mutex::new(vec![0.0; received.len()]))
            .collect();
        self.pool.run(shares.len(), &|thread, item| {
            let (block, kv_head) = (&blocks[item / layer.kv_heads], item % layer.kv_heads);
            let head = place.head(table, kv, kv_head);
            let mut at = own(&places[thread]);
            let at = &mut *at;
            queries.load(isa, &head, block, kv_head, at);
            let keys = kv.layer(place.index, block.sequence).head(kv_head);
            at.scratch.run(isa, &head, &at.positions, &keys);
            let mut share = own(&shares[item]);
            at.scratch
                .add_received(isa, &head, &at.positions, &keys, &mut share);
        });
        for share in &shares {
            for (received, share) in received.iter_mut().zip(&*own(share)) {
                *received += share;
            }
        }
    }

    /// Adds the call's queries and keys, as they are before their rotation, to the statistics.
    fn observe(
        &self,
        layer: &Layer,
        weights: &LayerWeights,
        stride: usize,
        statistics: &mut LayerStatistics,
    ) {
        let (q, kv_width) = (layer.heads * layer.head_dim, layer.kv_heads * layer.head_dim);
        let mut vector = vec![0.0; layer.head_dim];
        let mut each = |from: &[f32], norm: &Option<Vec<f32>>, add: &mut dyn FnMut(usize, &[f32])| {
            for (head, x) in from.chunks_exact(layer.head_dim).enumerate() {
                vector.copy_from_slice(x);
                if let Some(norm) = norm {
                    rms_norm_in_place(self.isa, &mut vector, norm, self.epsilon);
                }
                add(head, &vector);
            }
        };
        for row in self.ws.qkv[..self.count * stride].chunks_exact(stride) {
            each(&row[..q], &weights.query_norm, &mut |head, x| {
                statistics.add_query(head, x)
            });
            each(&row[q..q + kv_width], &weights.key_norm, &mut |head, x| {
                statistics.add_key(head, x)
            });
            statistics.count += 1;
        }
    }

    /// Normalises and rotates Q and K, scales Q, and writes K and V to memory; writes down, for every token, how far
    /// what stood there deviates.
    fn rotate(
        &mut self,
        place: &Place<'_>,
        weights: &LayerWeights,
        kv: &KvLanes<'_>,
        deviations: Option<(Deviation, &mut [f32])>,
    ) {
        let (isa, epsilon, layer) = (self.isa, self.epsilon, place.layer);
        let stride = stride_of(layer);
        let (of, deviations) = match deviations {
            Some((of, deviations)) => (Some(of), SharedRows::new(deviations, 1)),
            None => (None, SharedRows::new(&mut [], 1)),
        };
        let ws = &mut *self.ws;
        let table: &RopeTable = &ws.ropes[ws.rope_of_layer[place.index]];
        let (positions, sequences) = (&ws.positions, &ws.sequences);
        let rows = SharedRows::new(&mut ws.qkv[..self.count * stride], stride);
        let dim = layer.head_dim;
        self.pool.run(self.count.div_ceil(TILE_ROWS), &|_, item| {
            let first = item * TILE_ROWS;
            let tokens = positions.iter().zip(sequences).enumerate();
            for (token, (&position, &sequence)) in tokens.skip(first).take(TILE_ROWS) {
                let kv = kv.layer(place.index, sequence);
                // SAFETY: each token is one item's.
                let row = unsafe { rows.rows(token, 1) };
                let (cos, sin) = table.row(token);
                let (queries, rest) = row.split_at_mut(layer.heads * dim);
                let (keys, values) = rest.split_at_mut(layer.kv_heads * dim);
                for head in queries.chunks_exact_mut(dim) {
                    if let Some(norm) = &weights.query_norm {
                        rms_norm_in_place(isa, head, norm, epsilon);
                    }
                    rope(isa, &mut head[..layer.rope.dims], cos, sin, layer.rope.pairs);
                    head.iter_mut().for_each(|value| *value *= layer.query_scale);
                }
                let heads = keys.chunks_exact_mut(dim).zip(values.chunks_exact(dim));
                for (head, (key, value)) in heads.enumerate() {
                    if let Some(norm) = &weights.key_norm {
                        rms_norm_in_place(isa, key, norm, epsilon);
                    }
                    if let Some(residual) = place.residual {
                        let own = head * dim..(head + 1) * dim;
                        let terms = residual.mean[own.clone()].iter().zip(&residual.inverse[own]);
                        for (key, (mean, inverse)) in key.iter_mut().zip(terms) {
                            *key = (*key - mean) * inverse;
                        }
                    }
                    rope(isa, &mut key[..layer.rope.dims], cos, sin, layer.rope.pairs);
                    if let Some(of) = of {
                        // SAFETY: each token is one item's.
                        let deviation = unsafe { deviations.rows(token, 1) };
                        deviation[0] += distance(isa, of, &kv, head, position, key, value);
                    }
                    // SAFETY: the positions were prepared (see `check`), and each is one item's.
                    unsafe { kv.write(isa, head, position, key, value) };
                }
            }
        });
    }

    /// Splits some of the call's tokens into blocks of one sequence each, of at most `most` tokens.
    fn set_blocks(&mut self, of: Range<usize>, most: usize) {
        let ws = &mut *self.ws;
        ws.blocks.clear();
        if of.is_empty() {
            return;
        }
        let mut first = of.start;
        for token in of.start + 1..=of.end {
            let sequence = ws.sequences[first];
            let ends = token == of.end || ws.sequences[token] != sequence || token - first == most;
            if ends {
                let tokens = first..token;
                ws.blocks.push(Block { sequence, tokens });
                first = token;
            }
        }
    }

    /// Attention of a whole call: an item is a block of tokens and one key head with its query heads.
    fn attend(&mut self, place: &Place<'_>, kv: &KvLanes<'_>, stride: usize) {
        let (isa, count, layer) = (self.isa, self.count, place.layer);
        let (dim, group) = (layer.head_dim, layer.heads / layer.kv_heads);
        // Short calls are cut finer, so that every thread gets its share.
        let fair = (count * layer.kv_heads).div_ceil(self.pool.threads() * ITEMS_PER_THREAD);
        let most = attention_block(layer);
        self.set_blocks(0..count, fair.clamp(LEAST_BLOCK_TOKENS.min(most), most));
        let ws = &mut *self.ws;
        let table = &ws.offsets[ws.rope_of_layer[place.index]];
        let out = SharedRows::new(&mut ws.attended[..count * layer.heads * dim], layer.heads * dim);
        let queries = Queries {
            qkv: &ws.qkv,
            stride,
            positions: &ws.positions,
            group,
        };
        let (places, all) = (&ws.attention, &ws.blocks);
        let blocks = all.len();
        self.pool.run(blocks * layer.kv_heads, &|thread, item| {
            // Late blocks see more keys: they go first, so that the threads end together.
            let (block, kv_head) = (&all[blocks - 1 - item / layer.kv_heads], item % layer.kv_heads);
            let head = place.head(table, kv, kv_head);
            let mut at = own(&places[thread]);
            let at = &mut *at;
            queries.load(isa, &head, block, kv_head, at);
            let keys = kv.layer(place.index, block.sequence).head(kv_head);
            at.scratch.run(isa, &head, &at.positions, &keys);
            for (row, (token, g)) in rows_of(block, group).enumerate() {
                // SAFETY: each token and head is one item's.
                let to = unsafe { out.part(token, (kv_head * group + g) * dim, dim) };
                at.scratch.finish(isa, &head, row, to);
            }
        });
    }

    /// Attention of a few tokens: an item is a block, a key head and one segment of keys. Segments run in rounds, as
    /// many as there are slots for their results, and are merged in order.
    fn attend_few(&mut self, place: &Place<'_>, weights: &LayerWeights, kv: &KvLanes<'_>, stride: usize) {
        let (isa, count, layer) = (self.isa, self.count, place.layer);
        let (dim, group, kv_heads) = (layer.head_dim, layer.heads / layer.kv_heads, layer.kv_heads);
        self.set_blocks(0..self.count, DECODE_ROWS);
        let ws = &mut *self.ws;
        let table = &ws.offsets[ws.rope_of_layer[place.index]];
        let out = SharedRows::new(&mut ws.attended[..count * layer.heads * dim], layer.heads * dim);
        let queries = Queries {
            qkv: &ws.qkv,
            stride,
            positions: &ws.positions,
            group,
        };
        let (places, blocks, slots, totals) = (&ws.attention, &ws.blocks, &ws.slots, &ws.totals);
        let pieces = blocks.len() * kv_heads;
        let after = [&weights.output, &weights.gate, &weights.up, &weights.down];
        let round = slots.len() / pieces;
        let seen = |block: &Block| {
            let tokens = &queries.positions[block.tokens.clone()];
            segments(tokens[0], tokens[tokens.len() - 1], layer.window)
        };
        let most = blocks.iter().map(|block| seen(block).len()).max().unwrap_or(0);
        for begin in (0..most).step_by(round) {
            let width = round.min(most - begin);
            // Queries are made ready once an item: an item takes as many segments as leave every thread its share.
            let runs = (self.pool.threads() * ITEMS_PER_THREAD)
                .div_ceil(pieces)
                .min(width);
            let run = width.div_ceil(runs);
            self.pool.run(pieces * runs, &|thread, item| {
                let (piece, first) = (item / runs, item % runs * run);
                let (block, kv_head) = (&blocks[piece / kv_heads], piece % kv_heads);
                let segments = seen(block);
                let parts = first..(first + run).min(width).min(segments.len().saturating_sub(begin));
                if parts.is_empty() {
                    return;
                }
                let head = place.head(table, kv, kv_head);
                let mut at = own(&places[thread]);
                let at = &mut *at;
                queries.load(isa, &head, block, kv_head, at);
                let keys = kv.layer(place.index, block.sequence).head(kv_head);
                for part in parts {
                    let segment = segments.start + begin + part;
                    let after = share(&after, piece * width + part, pieces * width);
                    at.scratch
                        .run_segment(isa, &head, &at.positions, &keys, segment, after);
                    let mut slot = own(&slots[piece * width + part]);
                    at.scratch.copy_segment(at.positions.len(), dim, &mut slot);
                }
            });
            let is_last = begin + width == most;
            self.pool.run(pieces, &|_, piece| {
                let (block, kv_head) = (&blocks[piece / kv_heads], piece % kv_heads);
                let rows = block.tokens.len() * group;
                let mut total = own(&totals[piece]);
                if begin == 0 {
                    total.reset(rows, dim);
                }
                for part in begin..(begin + width).min(seen(block).len()) {
                    total.merge(isa, &own(&slots[piece * width + part - begin]), rows, dim);
                }
                if !is_last {
                    return;
                }
                let head = place.head(table, kv, kv_head);
                for (row, (token, g)) in rows_of(block, group).enumerate() {
                    // SAFETY: each head of a token is one piece's.
                    let to = unsafe { out.part(token, (kv_head * group + g) * dim, dim) };
                    total.finish(isa, &head, row, to);
                }
            });
        }
    }

    fn feed_forward(&mut self, layer: &Layer, weights: &LayerWeights, gate: Gate) {
        let width = weights.feed_forward_norm.len();
        let inner = layer.feed_forward;
        normalise(self, &weights.feed_forward_norm, width);
        let products = [
            Product {
                weights: &weights.gate,
                bias: None,
                column: 0,
            },
            Product {
                weights: &weights.up,
                bias: None,
                column: inner,
            },
        ];
        let (isa, count) = (self.isa, self.count);
        let ws = &mut *self.ws;
        let gated = &mut ws.gated[..count * 2 * inner];
        multiply(
            self.pool,
            isa,
            &ws.matmul,
            &ws.activations,
            &products,
            gated,
            2 * inner,
            Store::Set,
        );
        let tiles = ws.activations.begin(count, inner);
        let rows = SharedRows::new(gated, 2 * inner);
        self.pool.run(tiles.tiles(), &|thread, tile| {
            let tokens = tiles.rows_of(tile);
            let mut packed = own(&ws.rows[thread]);
            for (token, to) in tokens.clone().zip(packed.chunks_exact_mut(inner)) {
                // SAFETY: each token is one item's.
                let row = unsafe { rows.rows(token, 1) };
                let (g, up) = row.split_at(inner);
                match gate {
                    Gate::Silu => silu_gate(isa, g, up, to),
                    Gate::Gelu => gelu_gate(isa, g, up, to),
                }
            }
            // SAFETY: each tile is one item's.
            unsafe { tiles.fill(isa, tile, &packed[..tokens.len() * inner]) };
        });
        self.add_product(&weights.down, weights.post_feed_forward_norm.as_deref());
    }

    /// Adds `activations * weights`, normalised where the layer says so, to the residual stream.
    fn add_product(&mut self, weights: &PackedMatrix, norm: Option<&[f32]>) {
        let (isa, count, width) = (self.isa, self.count, weights.rows());
        let ws = &mut *self.ws;
        let product = [Product {
            weights,
            bias: None,
            column: 0,
        }];
        let stream = &mut ws.stream[..count * width];
        let Some(norm) = norm else {
            multiply(
                self.pool,
                isa,
                &ws.matmul,
                &ws.activations,
                &product,
                stream,
                width,
                Store::Add,
            );
            return;
        };
        let result = &mut ws.result[..count * width];
        multiply(
            self.pool,
            isa,
            &ws.matmul,
            &ws.activations,
            &product,
            result,
            width,
            Store::Set,
        );
        for (row, to) in result.chunks_exact_mut(width).zip(stream.chunks_exact_mut(width)) {
            rms_norm_in_place(isa, row, norm, self.epsilon);
            add(isa, to, row);
        }
    }

    /// Logits of the tokens that get them.
    fn logits(&mut self, norm: &[f32], head: &PackedMatrix, cap: Option<f32>) {
        let (isa, width) = (self.isa, norm.len());
        let ws = &mut *self.ws;
        let rows = ws.outputs.len();
        for (&token, to) in ws.outputs.iter().zip(ws.result.chunks_exact_mut(width)) {
            rms_norm(isa, &ws.stream[token * width..][..width], norm, self.epsilon, to);
        }
        prepare(
            self.pool,
            isa,
            &mut ws.head_activations,
            &ws.result[..rows * width],
            width,
            rows,
        );
        let vocabulary = head.rows();
        ws.logits_mut(rows * vocabulary);
        let mut logits = std::mem::take(ws.logits_vec());
        let product = [Product {
            weights: head,
            bias: None,
            column: 0,
        }];
        let out = &mut logits[..rows * vocabulary];
        multiply(
            self.pool,
            isa,
            &ws.matmul,
            &ws.head_activations,
            &product,
            out,
            vocabulary,
            Store::Set,
        );
        if let Some(cap) = cap {
            out.iter_mut()
                .for_each(|value| *value = cap * (*value / cap).tanh());
        }
        *ws.logits_vec() = logits;
    }
}

/// How far a head's stored key and value are from fresh ones, squared, divided by the square root of the dimension.
fn distance(
    isa: Isa,
    of: Deviation,
    kv: &LayerKv<'_>,
    head: usize,
    position: usize,
    key: &[f32],
    value: &[f32],
) -> f32 {
    let dim = key.len();
    let mut stored = [0.0; 2 * 1_024];
    let (stored_key, rest) = stored.split_at_mut(dim);
    let stored_value = &mut rest[..dim];
    kv.read(isa, head, position, stored_key, stored_value);
    let square = |fresh: &[f32], stored: &[f32]| -> f32 {
        let differences = fresh.iter().zip(stored).map(|(a, b)| (a - b) * (a - b));
        differences.sum()
    };
    let sum = match of {
        Deviation::Keys => square(key, stored_key),
        Deviation::Values => square(value, stored_value),
        Deviation::Both => square(key, stored_key) + square(value, stored_value),
    };
    sum / (dim as f32).sqrt()
}

/// Q, K and V of a token side by side.
fn stride_of(layer: &Layer) -> usize {
    (layer.heads + 2 * layer.kv_heads) * layer.head_dim
}

/// Query rows of a block: its tokens, and for each the query heads of one key head.
fn rows_of(block: &Block, group: usize) -> impl Iterator<Item = (usize, usize)> {
    block
        .tokens
        .clone()
        .flat_map(move |token| (0..group).map(move |g| (token, g)))
}

/// A call's queries in one layer.
struct Queries<'a> {
    qkv: &'a [f32],
    stride: usize,
    positions: &'a [usize],
    /// Query heads of a key head.
    group: usize,
}

impl Queries<'_> {
    /// Loads a block's queries of one key head.
    fn load(&self, isa: Isa, head: &Head<'_>, block: &Block, kv_head: usize, to: &mut AttentionPlace) {
        to.positions.clear();
        for (token, g) in rows_of(block, self.group) {
            let from = token * self.stride + (kv_head * self.group + g) * head.dim;
            let query = &self.qkv[from..from + head.dim];
            to.scratch.set_query(isa, head, to.positions.len(), query);
            to.positions.push(self.positions[token]);
        }
    }
}

/// Makes activations of the residual stream, normalised.
fn normalise(step: &mut Step<'_>, norm: &[f32], width: usize) {
    let (isa, epsilon) = (step.isa, step.epsilon);
    let ws = &mut *step.ws;
    let stream = &ws.stream[..step.count * width];
    let tiles = ws.activations.begin(step.count, width);
    let scratch = &ws.rows;
    step.pool.run(tiles.tiles(), &|thread, tile| {
        let rows = tiles.rows_of(tile);
        let mut place = own(&scratch[thread]);
        let normalised = &mut place[..rows.len() * width];
        let from = stream[rows.start * width..rows.end * width].chunks_exact(width);
        for (from, to) in from.zip(normalised.chunks_exact_mut(width)) {
            rms_norm(isa, from, norm, epsilon, to);
        }
        // SAFETY: each tile is one item's.
        unsafe { tiles.fill(isa, tile, normalised) };
    });
}

/// Makes activations of rows as they are.
fn prepare(
    pool: &mut Pool,
    isa: Isa,
    activations: &mut Activations,
    from: &[f32],
    width: usize,
    count: usize,
) {
    let tiles = activations.begin(count, width);
    pool.run(tiles.tiles(), &|_, tile| {
        let rows = tiles.rows_of(tile);
        // SAFETY: each tile is one item's.
        unsafe { tiles.fill(isa, tile, &from[rows.start * width..rows.end * width]) };
    });
}
