//! The thread that stores what requests leave behind.

use super::super::cut::Cut;
use super::{Shared, lock};
use crate::api::TokenId;
use reprise_kv::pool::Sequence;
use reprise_kv::store::{ChainHash, NewChunk, Shard, StoreError};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::PoisonError;

/// What a request leaves behind, to be stored.
#[derive(Debug)]
pub struct Leaving {
    /// Its tokens.
    pub tokens: Vec<TokenId>,
    /// The chunks they are cut into, in order.
    pub cuts: Vec<Cut>,
    /// Their keys and values.
    pub sequence: Sequence,
    /// How many of them were computed with nothing but exact tokens before them.
    pub exact_tokens: usize,
    /// Of the others the share that was computed again where they came from elsewhere.
    pub ratio: f32,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Leaving>,
    /// Whether one is being written.
    pub(super) is_writing: bool,
    pub(super) is_closing: bool,
}

impl Shared {
    /// The writer's life.
    pub(super) fn write_all(&self) {
        loop {
            let leaving = {
                let mut queue = lock(&self.queue);
                loop {
                    if let Some(leaving) = queue.waiting.pop_front() {
                        queue.is_writing = true;
                        break leaving;
                    }
                    if queue.is_closing {
                        return;
                    }
                    queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            };
            if let Err(error) = self.write(&leaving) {
                tracing::warn!(%error, "what a request computed cannot be stored; it will be computed again");
            }
            drop(leaving);
            lock(&self.queue).is_writing = false;
            self.changed.notify_all();
        }
    }

    /// Stores the chunks of a request that are not there yet.
    fn write(&self, leaving: &Leaving) -> Result<(), StoreError> {
        let stored = self
            .store
            .longest_prefix(self.namespace, ChainHash::START, &leaving.tokens)?;
        let (mut parent, mut end) = (ChainHash::START, 0);
        for chunk in &stored.chunks {
            if self.store.record(chunk.chunk)?.tokens.len() > chunk.tokens {
                break; // it ends inside this one
            }
            (parent, end) = (chunk.chain, end + chunk.tokens);
        }
        let names: Vec<(String, Range<usize>)> = self
            .model
            .shards()
            .into_iter()
            .map(|layers| (format!("layers.{}-{}", layers.start, layers.end - 1), layers))
            .collect();
        let (mut layer_bytes, mut parts) = (Vec::new(), Vec::new());
        for cut in &leaving.cuts {
            let range = cut.tokens.start.max(end)..cut.tokens.end.min(leaving.sequence.len());
            if range.is_empty() {
                continue;
            }
            let tokens = &leaving.tokens[range.clone()];
            let is_exact = range.end <= leaving.exact_tokens;
            let Some(owner) = &cut.owner else {
                // Not stored; what follows has it for context nonetheless.
                (parent, end) = (parent.then(tokens), range.end);
                continue;
            };
            parts.clear();
            for (_, layers) in &names {
                let mut bytes = Vec::new();
                for layer in layers.clone() {
                    let layout = &self.model.layouts[layer];
                    layout.pack(
                        self.isa,
                        &leaving.sequence,
                        layer,
                        range.clone(),
                        &mut layer_bytes,
                    );
                    bytes.extend_from_slice(&layer_bytes);
                }
                parts.push(bytes);
            }
            let chunk = NewChunk {
                namespace: self.namespace,
                parent,
                base: u32::try_from(range.start).unwrap_or(u32::MAX),
                tokens,
                owner,
                ratio: if is_exact { 1.0 } else { leaving.ratio },
            };
            let shards = names
                .iter()
                .zip(&parts)
                .map(|((name, _), bytes)| Shard::whole(name, bytes))
                .collect();
            self.store.put(&chunk, shards)?;
            (parent, end) = (parent.then(tokens), range.end);
        }
        Ok(())
    }
}
