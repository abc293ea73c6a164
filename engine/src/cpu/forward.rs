//! The forward pass: one for all architectures, reading their description.

use super::CpuBackend;
use super::pool::Pool;
use super::weights::LayerWeights;
use super::workspace::{RopeTable, Workspace, attention_block};
use crate::backend::{Backend, BackendError, Component, GraphCall, Outputs};
use reprise_kernels::activations::{Activations, TILE_ROWS};
use reprise_kernels::attention::segments;
use reprise_kernels::isa::Isa;
use reprise_kernels::math::{add, gelu_gate, rms_norm, rms_norm_in_place, rope, silu_gate};
use reprise_kernels::matmul::{Output, Scratch, Store, matmul_panel};
use reprise_kernels::packed::PackedMatrix;
use reprise_kernels::quant::dequantize;
use reprise_kv::{KvMemory, LayerKv};
use reprise_model::arch::{Gate, Layer};
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    kv: &mut KvMemory,
) -> Result<(), BackendError> {
    let count = call.tokens.len();
    let capacity = backend.capacity(call.kind);
    if count > capacity {
        return Err(BackendError::Capacity {
            kind: call.kind,
            capacity,
            given: count,
        });
    }
    let vocabulary = backend.arch.vocabulary;
    if let Some(&token) = call.tokens.iter().find(|&&token| token as usize >= vocabulary) {
        return Err(BackendError::UnknownToken { token, vocabulary });
    }
    if call.outputs != Outputs::None && backend.head.is_none() {
        return Err(BackendError::Detached(Component::Head));
    }
    kv.reserve(call.start + count)?;
    backend.workspace.logits_mut(0);
    if count == 0 {
        return Ok(());
    }
    embed(backend, call.tokens);
    let ws = &mut backend.workspace;
    ws.positions.clear();
    ws.positions.extend(call.start..call.start + count);
    ws.ropes
        .iter_mut()
        .for_each(|table| table.fill(call.start, count));
    let mut step = Step {
        isa: backend.isa,
        pool: &mut backend.pool,
        ws,
        count,
        epsilon: backend.arch.norm_epsilon,
    };
    for (i, (layer, weights)) in backend
        .arch
        .layers
        .iter()
        .zip(&backend.weights.layers)
        .enumerate()
    {
        step.attention(i, layer, weights, &kv.layer(i));
        step.feed_forward(layer, weights, backend.arch.gate);
    }
    let first = match call.outputs {
        Outputs::None => return Ok(()),
        Outputs::Last => count - 1,
        Outputs::All => 0,
    };
    if let Some(head) = &backend.head {
        step.logits(first, &backend.weights.output_norm, head, backend.arch.logit_cap);
    }
    Ok(())
}

/// Token ids to rows of the residual stream, straight from the file.
fn embed(backend: &mut CpuBackend, tokens: &[u32]) {
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

/// A call in progress.
struct Step<'a> {
    isa: Isa,
    pool: &'a mut Pool,
    ws: &'a mut Workspace,
    count: usize,
    epsilon: f32,
}

impl Step<'_> {
    fn attention(&mut self, index: usize, layer: &Layer, weights: &LayerWeights, kv: &LayerKv<'_>) {
        let (q, kv_width) = (layer.heads * layer.head_dim, layer.kv_heads * layer.head_dim);
        let width = weights.attention_norm.len();
        let stride = q + 2 * kv_width;
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
        self.rotate(index, layer, weights, kv, stride);
        if self.count == 1 {
            self.attend_one(layer, kv, stride);
        } else {
            self.attend(layer, kv, stride);
        }
        let ws = &mut *self.ws;
        let attended = &ws.attended[..self.count * q];
        prepare(self.pool, self.isa, &mut ws.activations, attended, q, self.count);
        self.add_product(&weights.output, weights.post_attention_norm.as_deref());
    }

    /// Normalises and rotates Q and K, scales Q, and writes K and V to memory.
    fn rotate(
        &mut self,
        index: usize,
        layer: &Layer,
        weights: &LayerWeights,
        kv: &LayerKv<'_>,
        stride: usize,
    ) {
        let (isa, epsilon) = (self.isa, self.epsilon);
        let ws = &mut *self.ws;
        let table: &RopeTable = &ws.ropes[ws.rope_of_layer[index]];
        let positions = &ws.positions;
        let rows = SharedRows::new(&mut ws.qkv[..self.count * stride], stride);
        self.pool.run(self.count.div_ceil(TILE_ROWS), &|_, item| {
            let first = item * TILE_ROWS;
            for (token, &position) in positions.iter().enumerate().skip(first).take(TILE_ROWS) {
                // SAFETY: each token is one item's.
                let row = unsafe { rows.rows(token, 1) };
                let (cos, sin) = table.row(token);
                let (queries, rest) = row.split_at_mut(layer.heads * layer.head_dim);
                let (keys, values) = rest.split_at_mut(layer.kv_heads * layer.head_dim);
                for head in queries.chunks_exact_mut(layer.head_dim) {
                    if let Some(norm) = &weights.query_norm {
                        rms_norm_in_place(isa, head, norm, epsilon);
                    }
                    rope(isa, &mut head[..layer.rope.dims], cos, sin, layer.rope.pairs);
                    head.iter_mut().for_each(|value| *value *= layer.query_scale);
                }
                let heads = keys
                    .chunks_exact_mut(layer.head_dim)
                    .zip(values.chunks_exact(layer.head_dim));
                for (head, (key, value)) in heads.enumerate() {
                    if let Some(norm) = &weights.key_norm {
                        rms_norm_in_place(isa, key, norm, epsilon);
                    }
                    rope(isa, &mut key[..layer.rope.dims], cos, sin, layer.rope.pairs);
                    // SAFETY: each token's position is one item's.
                    unsafe { kv.write(head, position, key, value) };
                }
            }
        });
    }

    /// Attention of a whole call: an item is a block of tokens and one key head with its query heads.
    fn attend(&mut self, layer: &Layer, kv: &LayerKv<'_>, stride: usize) {
        let (isa, count, dim) = (self.isa, self.count, layer.head_dim);
        let group = layer.heads / layer.kv_heads;
        let block = attention_block(layer);
        let blocks = count.div_ceil(block);
        let ws = &mut *self.ws;
        let (qkv, positions, places) = (&ws.qkv, &ws.positions, &ws.attention);
        let out = SharedRows::new(&mut ws.attended[..count * layer.heads * dim], layer.heads * dim);
        self.pool.run(blocks * layer.kv_heads, &|thread, item| {
            // Late blocks see more keys: they go first, so that the threads end together.
            let (block_index, kv_head) = (blocks - 1 - item / layer.kv_heads, item % layer.kv_heads);
            let tokens = block_index * block..((block_index + 1) * block).min(count);
            let mut place = own(&places[thread]);
            let place = &mut *place;
            place.positions.clear();
            place.scratch.set_dim(dim);
            for token in tokens.clone() {
                for g in 0..group {
                    let at = token * stride + (kv_head * group + g) * dim;
                    place.scratch.set_query(place.positions.len(), &qkv[at..at + dim]);
                    place.positions.push(positions[token]);
                }
            }
            place
                .scratch
                .run(isa, &place.positions, layer.window, &kv.head(kv_head));
            for (row, (token, g)) in tokens
                .flat_map(|token| (0..group).map(move |g| (token, g)))
                .enumerate()
            {
                // SAFETY: each token and head is one item's.
                let to = unsafe { out.part(token, (kv_head * group + g) * dim, dim) };
                place.scratch.finish(row, to);
            }
        });
    }

    /// Attention of a single token: an item is a key head and one segment of keys.
    fn attend_one(&mut self, layer: &Layer, kv: &LayerKv<'_>, stride: usize) {
        let (isa, dim) = (self.isa, layer.head_dim);
        let group = layer.heads / layer.kv_heads;
        let ws = &mut *self.ws;
        let (qkv, places, partials) = (&ws.qkv[..stride], &ws.attention, &ws.partials);
        let position = ws.positions[0];
        let parts = segments(position, position, layer.window);
        let count = parts.len();
        let slot = |kv_head: usize, part: usize| &partials[kv_head * ws.segments + part];
        self.pool.run(layer.kv_heads * count, &|thread, item| {
            let (kv_head, part) = (item / count, item % count);
            let mut place = own(&places[thread]);
            let place = &mut *place;
            place.positions.clear();
            place.positions.resize(group, position);
            place.scratch.set_dim(dim);
            for g in 0..group {
                let at = (kv_head * group + g) * dim;
                place.scratch.set_query(g, &qkv[at..at + dim]);
            }
            let head = kv.head(kv_head);
            place
                .scratch
                .run_segment(isa, &place.positions, layer.window, &head, parts.start + part);
            place.scratch.copy_segment(group, &mut own(slot(kv_head, part)));
        });
        for kv_head in 0..layer.kv_heads {
            let mut total = own(slot(kv_head, 0));
            for part in 1..count {
                total.merge(&own(slot(kv_head, part)), group, dim);
            }
            for g in 0..group {
                let at = (kv_head * group + g) * dim;
                total.finish(g, dim, &mut ws.attended[at..at + dim]);
            }
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

    /// Logits of tokens `first..`.
    fn logits(&mut self, first: usize, norm: &[f32], head: &PackedMatrix, cap: Option<f32>) {
        let (isa, width) = (self.isa, norm.len());
        let rows = self.count - first;
        let ws = &mut *self.ws;
        let normalised = &mut ws.result[..rows * width];
        let stream = &ws.stream[first * width..self.count * width];
        for (from, to) in stream.chunks_exact(width).zip(normalised.chunks_exact_mut(width)) {
            rms_norm(isa, from, norm, self.epsilon, to);
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
