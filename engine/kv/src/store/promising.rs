//! Which chunks are worth having in memory before anybody asks for them.

use super::chunk_store::ChunkStore;
use super::record::{ChainHash, ChunkId, Namespace};
use std::cmp::Reverse;

/// A chunk on disk that a prompt is likely to begin with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promising {
    /// The chunk.
    pub chunk: ChunkId,
    /// Bytes on disk.
    pub bytes: u64,
    /// R: how much it was used lately.
    pub weight: f64,
    /// Chunks before it.
    pub depth: usize,
    /// Whether it is here because it follows one that is used much.
    pub follows: bool,
}

impl ChunkStore {
    /// The exact chunks that whole texts begin with and that have R >= `threshold`, and behind each chain of them the
    /// chunk that was used most. What was used most comes first, a chunk never before the one it follows. Asks neither
    /// the disk nor the index.
    pub fn promising(&self, namespace: Namespace, threshold: f64) -> Vec<Promising> {
        let options = &self.0.options;
        let now_ms = options.clock.now_ms();
        let catalogue = self.0.catalogue();
        let Some(texts) = catalogue.texts(namespace) else {
            return Vec::new();
        };
        let mut found: Vec<Promising> = Vec::new();
        // A context, how much the chunk before it was used, and how many chunks are before it.
        let mut contexts = vec![(ChainHash::START, f64::INFINITY, 0)];
        while let Some((context, most, depth)) = contexts.pop() {
            let mut follower: Option<Promising> = None;
            let mut goes_on = false;
            for &chunk in texts.children(context) {
                let Some(entry) = catalogue.get(chunk) else {
                    continue;
                };
                if entry.pending.is_some() || entry.ratio < 1.0 {
                    continue;
                }
                let weight = entry.uses.weight_at(now_ms, options.half_life).min(most);
                let one = Promising {
                    chunk,
                    bytes: entry.bytes,
                    weight,
                    depth,
                    follows: weight < threshold,
                };
                if weight >= threshold {
                    goes_on = true;
                    found.push(one);
                    contexts.push((entry.chain, weight, depth + 1));
                } else if follower.is_none_or(|best| best.weight < weight) {
                    follower = Some(one);
                }
            }
            if depth > 0 && !goes_on {
                found.extend(follower);
            }
        }
        // The weight of a chunk is at most that of the one before it.
        found.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.depth.cmp(&b.depth)));
        found.sort_by_key(|one| Reverse(!one.follows));
        found
    }
}
