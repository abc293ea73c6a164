//! Key and value memory of a running model: pages of 256 positions in half precision, one list of pages per layer.
//!
//! It is not a cache policy and knows nothing of tokens: the engine decides what the positions hold. Within a page,
//! each head's keys (and values) stand one position after the other, so that an attention tile is one slice.
//!
//! ```
//! use reprise_kv::{KvMemory, LayerShape};
//!
//! let mut kv = KvMemory::new(&[LayerShape { kv_heads: 2, head_dim: 64 }], 1_000);
//! kv.reserve(300)?;
//! let layer = kv.layer(0);
//! // SAFETY: no other thread writes this position and head.
//! unsafe { layer.write(0, 299, &[1.0; 64], &[2.0; 64]) };
//! assert_eq!(kv.bytes(), 2 * 2 * 2 * 256 * 64 * 2);
//! # Ok::<(), reprise_kv::KvError>(())
//! ```

use reprise_kernels::attention::{KeyValues, TILE_KEYS};
use reprise_kernels::buffer::Buffer;
use reprise_kernels::isa::Isa;
use reprise_kernels::math::to_half;

/// Positions in a page.
pub const PAGE_TOKENS: usize = 256;

/// What a layer stores for each position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerShape {
    /// Key and value heads.
    pub kv_heads: usize,
    /// Values in a head.
    pub head_dim: usize,
}

/// Why positions could not be reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// More positions than the memory was made for.
    #[error(
        "{wanted} positions do not fit a window of {capacity}; shorten the prompt or load the model with a larger window"
    )]
    Full {
        /// Positions asked for.
        wanted: usize,
        /// Positions there can be.
        capacity: usize,
    },
}

/// Keys and values of one sequence.
#[derive(Debug)]
pub struct KvMemory {
    layers: Vec<LayerPages>,
    capacity: usize,
}

#[derive(Debug)]
struct LayerPages {
    shape: LayerShape,
    /// Each page: keys `[head][position][dim]`, then values likewise.
    pages: Vec<Buffer<u16>>,
}

impl KvMemory {
    /// Memory for at most `capacity` positions. Pages are taken by [`KvMemory::reserve`] only.
    pub fn new(layers: &[LayerShape], capacity: usize) -> KvMemory {
        let layers = layers
            .iter()
            .map(|&shape| LayerPages {
                shape,
                pages: Vec::with_capacity(capacity.div_ceil(PAGE_TOKENS)),
            })
            .collect();
        KvMemory { layers, capacity }
    }

    /// An empty memory of the same shape and capacity.
    pub fn sibling(&self) -> KvMemory {
        let shapes: Vec<LayerShape> = self.layers.iter().map(|layer| layer.shape).collect();
        KvMemory::new(&shapes, self.capacity)
    }

    /// Positions there can be.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.layers
            .iter()
            .flat_map(|layer| &layer.pages)
            .map(|page| page.len() * 2)
            .sum()
    }

    /// Makes sure that positions `0..positions` have pages, so that no step has to allocate.
    ///
    /// # Errors
    /// When there are more than the capacity.
    pub fn reserve(&mut self, positions: usize) -> Result<(), KvError> {
        if positions > self.capacity {
            return Err(KvError::Full {
                wanted: positions,
                capacity: self.capacity,
            });
        }
        for layer in &mut self.layers {
            let values = 2 * layer.shape.kv_heads * PAGE_TOKENS * layer.shape.head_dim;
            while layer.pages.len() * PAGE_TOKENS < positions {
                layer.pages.push(Buffer::zeroed(values));
            }
        }
        Ok(())
    }

    /// Gives back the pages behind position `positions`.
    pub fn shrink(&mut self, positions: usize) {
        for layer in &mut self.layers {
            layer.pages.truncate(positions.div_ceil(PAGE_TOKENS));
        }
    }

    /// One layer's pages, to write and to attend to.
    ///
    /// # Panics
    /// When there is no such layer.
    pub fn layer(&mut self, layer: usize) -> LayerKv<'_> {
        let LayerPages { shape, pages } = &mut self.layers[layer];
        LayerKv {
            shape: *shape,
            pages: pages.as_mut_ptr(),
            count: pages.len(),
            marker: std::marker::PhantomData,
        }
    }
}

/// A layer's pages, shared by the threads of one step.
#[derive(Debug, Clone, Copy)]
pub struct LayerKv<'a> {
    shape: LayerShape,
    pages: *mut Buffer<u16>,
    count: usize,
    marker: std::marker::PhantomData<&'a mut KvMemory>,
}

// SAFETY: reads and writes go to disjoint positions or are separated by the engine's barriers (see `write`).
unsafe impl Send for LayerKv<'_> {}
// SAFETY: as above.
unsafe impl Sync for LayerKv<'_> {}

impl<'a> LayerKv<'a> {
    /// Stores one head's key and value at a position.
    ///
    /// # Safety
    /// No other thread reads or writes the same head and position meanwhile.
    ///
    /// # Panics
    /// When the position was not reserved, or the sizes do not fit: a mistake of the caller.
    pub unsafe fn write(&self, head: usize, position: usize, key: &[f32], value: &[f32]) {
        let LayerShape { kv_heads, head_dim } = self.shape;
        let (page, slot) = (position / PAGE_TOKENS, position % PAGE_TOKENS);
        assert!(page < self.count && head < kv_heads && key.len() == head_dim && value.len() == head_dim);
        let at = (head * PAGE_TOKENS + slot) * head_dim;
        let half = kv_heads * PAGE_TOKENS * head_dim;
        // SAFETY: the page exists; both slices lie inside it and belong to this head and position alone.
        let (k, v) = unsafe {
            let start = (*self.pages.add(page)).as_ptr().cast_mut();
            (
                std::slice::from_raw_parts_mut(start.add(at), head_dim),
                std::slice::from_raw_parts_mut(start.add(half + at), head_dim),
            )
        };
        let isa = Isa::best();
        to_half(isa, key, k);
        to_half(isa, value, v);
    }

    /// One head's keys and values, for attention.
    pub fn head(&self, head: usize) -> HeadKv<'a> {
        assert!(head < self.shape.kv_heads);
        HeadKv { layer: *self, head }
    }
}

/// One head of a layer.
#[derive(Debug, Clone, Copy)]
pub struct HeadKv<'a> {
    layer: LayerKv<'a>,
    head: usize,
}

impl KeyValues for HeadKv<'_> {
    fn tile(&self, tile: usize) -> (&[u16], &[u16]) {
        const { assert!(PAGE_TOKENS.is_multiple_of(TILE_KEYS)) };
        let LayerShape { kv_heads, head_dim } = self.layer.shape;
        let (page, slot) = (tile * TILE_KEYS / PAGE_TOKENS, tile * TILE_KEYS % PAGE_TOKENS);
        assert!(page < self.layer.count);
        let at = (self.head * PAGE_TOKENS + slot) * head_dim;
        let half = kv_heads * PAGE_TOKENS * head_dim;
        // SAFETY: the page exists and holds both slices; the engine writes positions before it attends to them.
        unsafe {
            let start = (*self.layer.pages.add(page)).as_ptr();
            let len = TILE_KEYS * head_dim;
            (
                std::slice::from_raw_parts(start.add(at), len),
                std::slice::from_raw_parts(start.add(half + at), len),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_kernels::half::f16_to_f32;

    #[test]
    fn what_is_written_is_read_back_from_its_tile() {
        let shape = LayerShape {
            kv_heads: 3,
            head_dim: 16,
        };
        let mut kv = KvMemory::new(&[shape, shape], 600);
        kv.reserve(600).unwrap();
        let layer = kv.layer(1);
        for position in [0, 63, 64, 255, 256, 599] {
            for head in 0..3 {
                let key = [(position + head) as f32; 16];
                // SAFETY: one thread.
                unsafe { layer.write(head, position, &key, &key.map(|v| -v)) };
            }
        }
        for position in [0, 63, 64, 255, 256, 599] {
            for head in 0..3 {
                let head_kv = layer.head(head);
                let (k, v) = head_kv.tile(position / TILE_KEYS);
                let at = position % TILE_KEYS * 16;
                assert!(
                    k[at..at + 16]
                        .iter()
                        .all(|&k| f16_to_f32(k) == (position + head) as f32)
                );
                assert!(
                    v[at..at + 16]
                        .iter()
                        .all(|&v| f16_to_f32(v) == -((position + head) as f32))
                );
            }
        }
    }

    #[test]
    fn pages_come_when_reserved_and_go_when_shrunk() {
        let mut kv = KvMemory::new(
            &[LayerShape {
                kv_heads: 1,
                head_dim: 16,
            }],
            1_000,
        );
        assert_eq!(kv.bytes(), 0);
        kv.reserve(257).unwrap();
        assert_eq!(kv.bytes(), 2 * 2 * 256 * 16 * 2);
        kv.shrink(256);
        assert_eq!(kv.bytes(), 2 * 256 * 16 * 2);
        assert_eq!(
            kv.reserve(1_001),
            Err(KvError::Full {
                wanted: 1_001,
                capacity: 1_000
            })
        );
    }
}
