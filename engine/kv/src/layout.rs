//! What each layer keeps of a position, in which format, and where in a page it stands.
//!
//! A layer's page is `[key heads][tiles]` of keys, then the same of values; a tile is laid out as
//! [`reprise_kernels::kv`] says. Tiles are aligned to absolute positions: position p stands in tile `p % 256 / 64` of
//! page `p / 256`.

use crate::PAGE_TOKENS;
use crate::pool::{PagePool, PoolError};
use reprise_kernels::attention::TILE_KEYS;
use reprise_kernels::kv::KvFormat;

/// Tiles in a page.
pub(crate) const PAGE_TILES: usize = PAGE_TOKENS / TILE_KEYS;
const _: () = assert!(PAGE_TOKENS.is_multiple_of(TILE_KEYS));

/// What a layer stores for each position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerShape {
    /// Key and value heads.
    pub kv_heads: usize,
    /// Values in a head.
    pub head_dim: usize,
}

/// A layer's shape and formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerLayout {
    /// Heads and their size.
    pub shape: LayerShape,
    /// How keys are stored.
    pub keys: KvFormat,
    /// How values are stored.
    pub values: KvFormat,
}

impl LayerLayout {
    /// Half precision for both: what every head size can have.
    pub fn half(shape: LayerShape) -> LayerLayout {
        LayerLayout {
            shape,
            keys: KvFormat::F16,
            values: KvFormat::F16,
        }
    }

    /// Bytes of keys and values of one position.
    pub fn token_bytes(&self) -> usize {
        let LayerShape { kv_heads, head_dim } = self.shape;
        kv_heads * (self.keys.vector_bytes(head_dim) + self.values.vector_bytes(head_dim))
    }

    /// Bytes of one position over all layers.
    pub fn token_bytes_of(layouts: &[LayerLayout]) -> usize {
        layouts.iter().map(LayerLayout::token_bytes).sum()
    }

    /// A pool of `pages` pages for layers laid out like this.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub fn pool(layouts: &[LayerLayout], pages: usize) -> Result<PagePool, PoolError> {
        let page_bytes: Vec<usize> = layouts.iter().map(LayerLayout::page_bytes).collect();
        PagePool::new(&page_bytes, pages)
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        PAGE_TOKENS * self.token_bytes()
    }

    /// Where a head's tile of keys and its tile of values begin in a page.
    pub(crate) fn tile_at(&self, head: usize, tile: usize) -> (usize, usize) {
        let LayerShape { kv_heads, head_dim } = self.shape;
        let (k, v) = (self.keys.tile_bytes(head_dim), self.values.tile_bytes(head_dim));
        let index = head * PAGE_TILES + tile;
        (index * k, kv_heads * PAGE_TILES * k + index * v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_a_page_without_gap_or_overlap() {
        let layout = LayerLayout {
            shape: LayerShape {
                kv_heads: 3,
                head_dim: 64,
            },
            keys: KvFormat::Q8,
            values: KvFormat::Tq4,
        };
        let mut ranges = Vec::new();
        for head in 0..3 {
            for tile in 0..PAGE_TILES {
                let (k, v) = layout.tile_at(head, tile);
                ranges.push(k..k + layout.keys.tile_bytes(64));
                ranges.push(v..v + layout.values.tile_bytes(64));
            }
        }
        ranges.sort_by_key(|range| range.start);
        let mut end = 0;
        for range in ranges {
            assert_eq!(range.start, end);
            end = range.end;
        }
        assert_eq!(end, layout.page_bytes());
    }

    #[test]
    fn the_default_model_takes_6120_bytes_a_token_in_four_bits() {
        let layer = LayerLayout {
            shape: LayerShape {
                kv_heads: 3,
                head_dim: 64,
            },
            keys: KvFormat::Tq4,
            values: KvFormat::Tq4,
        };
        assert_eq!(30 * layer.token_bytes(), 6_120);
        assert_eq!(30 * LayerLayout::half(layer.shape).token_bytes(), 23_040);
    }
}
