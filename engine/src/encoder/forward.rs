//! The computation: layers over the tokens of a few texts at once, attention within each text alone.

use std::ops::Range;

use reprise_kernels::activations::{Activations, Forms};
use reprise_kernels::encoder::{AttentionScratch, attend_all, gelu, layer_norm};
use reprise_kernels::isa::Isa;
use reprise_kernels::matmul::{Scratch, Store, matmul};

use super::load::{HEAD, Linear, Norm};
use super::{BATCH_TOKENS, Encoder};

/// BERT's.
const EPSILON: f32 = 1e-12;

/// A thread's room for computing.
#[derive(Debug)]
pub struct Workspace {
    x: Vec<f32>,
    wide: Vec<f32>,
    attended: Vec<f32>,
    activations: Activations,
    matmul: Scratch,
    attention: AttentionScratch,
}

impl Workspace {
    /// Room for this encoder.
    pub fn new(encoder: &Encoder) -> Workspace {
        let most = encoder.weights.inner.max(3 * encoder.weights.width);
        let forms = Forms {
            quantised: true,
            float: false,
        };
        Workspace {
            x: Vec::new(),
            wide: Vec::new(),
            attended: Vec::new(),
            activations: Activations::new(BATCH_TOKENS, most, forms),
            matmul: Scratch::new(BATCH_TOKENS),
            attention: AttentionScratch::default(),
        }
    }
}

impl Encoder {
    /// The vectors of some texts' tokens, at most [`BATCH_TOKENS`] of them.
    pub(super) fn forward(&self, texts: &[Vec<u32>], work: &mut Workspace) -> Vec<Vec<f32>> {
        let isa = self.isa;
        let (width, inner) = (self.weights.width, self.weights.inner);
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(texts.len());
        for text in texts {
            let begin = ranges.last().map_or(0, |range| range.end);
            ranges.push(begin..begin + text.len());
        }
        let tokens = ranges.last().map_or(0, |range| range.end);
        let Workspace {
            x,
            wide,
            attended,
            activations,
            matmul: scratch,
            attention,
        } = work;
        x.resize(tokens * width, 0.0);
        attended.resize(tokens * width, 0.0);
        let rows = x.chunks_exact_mut(width);
        for (row, (position, &id)) in rows.zip(texts.iter().flat_map(|text| text.iter().enumerate())) {
            self.weights.embed(id, position, row);
        }
        norm(isa, &self.weights.norm, x);
        for layer in &self.weights.layers {
            wide.resize(tokens * 3 * width, 0.0);
            product(isa, &layer.qkv, x, width, wide, Store::Set, activations, scratch);
            for range in &ranges {
                let qkv = &wide[range.start * 3 * width..range.end * 3 * width];
                let out = &mut attended[range.start * width..range.end * width];
                attend_all(isa, qkv, width / HEAD, HEAD, out, attention);
            }
            product(
                isa,
                &layer.out,
                attended,
                width,
                x,
                Store::Add,
                activations,
                scratch,
            );
            norm(isa, &layer.out_norm, x);
            wide.resize(tokens * inner, 0.0);
            product(isa, &layer.up, x, width, wide, Store::Set, activations, scratch);
            gelu(isa, wide);
            product(isa, &layer.down, wide, inner, x, Store::Add, activations, scratch);
            norm(isa, &layer.down_norm, x);
        }
        ranges
            .into_iter()
            .map(|range| mean(&x[range.start * width..range.end * width], width))
            .collect()
    }
}

fn norm(isa: Isa, norm: &Norm, x: &mut [f32]) {
    for row in x.chunks_exact_mut(norm.weight.len()) {
        layer_norm(isa, row, &norm.weight, &norm.bias, EPSILON);
    }
}

#[allow(clippy::too_many_arguments)]
fn product(
    isa: Isa,
    linear: &Linear,
    from: &[f32],
    k: usize,
    to: &mut [f32],
    store: Store,
    activations: &mut Activations,
    scratch: &mut Scratch,
) {
    if from.is_empty() {
        return;
    }
    activations.take(isa, k, from);
    matmul(
        isa,
        &linear.weights,
        activations,
        Some(&linear.bias),
        to,
        store,
        scratch,
    );
}

/// The mean of a text's rows, brought to length 1.
fn mean(rows: &[f32], width: usize) -> Vec<f32> {
    let mut mean = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let length = mean.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        mean.iter_mut().for_each(|value| *value /= length);
    }
    mean
}
