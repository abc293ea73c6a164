//! A layer's keys and values of one sequence, to write and to attend to.

use crate::PAGE_TOKENS;
use crate::layout::{LayerLayout, PAGE_TILES};
use crate::pool::Sequence;
use reprise_kernels::attention::{KeyValues, TILE_KEYS};
use reprise_kernels::isa::Isa;
use reprise_kernels::kv::tq4::Side;
use reprise_kernels::kv::{read, write};

/// Keys and values that are on their way into a sequence while a call computes.
pub trait Arrivals: std::fmt::Debug + Sync {
    /// Waits until everything of a layer and of those before it is there, and stores it.
    ///
    /// # Errors
    /// When some of it cannot be had.
    fn arrive(
        &mut self,
        layer: usize,
        layouts: &[LayerLayout],
        sequences: &mut [Sequence],
    ) -> Result<(), Lost>;
}

/// Keys and values that were on their way and cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("stored keys and values cannot be had: {reason}")]
pub struct Lost {
    /// Why.
    pub reason: String,
}

/// The sequences of one graph call, and how their layers are laid out.
#[derive(Debug)]
pub struct KvLanes<'a> {
    /// One layout a layer: those the sequences' pool was made for.
    pub layouts: &'a [LayerLayout],
    /// The sequences, by lane.
    pub sequences: &'a mut [Sequence],
    /// What is still on its way into one of them.
    pub arrivals: Option<&'a mut dyn Arrivals>,
}

impl<'a> KvLanes<'a> {
    /// Sequences in which everything is.
    pub fn new(layouts: &'a [LayerLayout], sequences: &'a mut [Sequence]) -> KvLanes<'a> {
        KvLanes {
            layouts,
            sequences,
            arrivals: None,
        }
    }

    /// Waits for what is on its way into a layer and those before it. To be called before the layer's keys and values
    /// are read.
    ///
    /// # Errors
    /// As [`Arrivals::arrive`].
    pub fn arrive(&mut self, layer: usize) -> Result<(), Lost> {
        match &mut self.arrivals {
            Some(arrivals) => arrivals.arrive(layer, self.layouts, self.sequences),
            None => Ok(()),
        }
    }

    /// One layer of one sequence.
    ///
    /// # Panics
    /// When there is no such layer or sequence.
    pub fn layer(&self, layer: usize, sequence: usize) -> LayerKv<'_> {
        LayerKv {
            layout: self.layouts[layer],
            layer,
            sequence: &self.sequences[sequence],
            writable: (
                self.sequences[sequence].len(),
                self.sequences[sequence].prepared(),
            ),
        }
    }
}

/// A layer's pages of one sequence, shared by the threads of one step.
#[derive(Debug, Clone, Copy)]
pub struct LayerKv<'a> {
    layout: LayerLayout,
    layer: usize,
    sequence: &'a Sequence,
    /// The positions that may be written: no one else shares their pages.
    writable: (usize, usize),
}

impl<'a> LayerKv<'a> {
    /// The layer's layout.
    pub fn layout(&self) -> &LayerLayout {
        &self.layout
    }

    /// Stores one head's key and value at a position.
    ///
    /// # Safety
    /// The position was prepared for writing (see [`Sequence::prepare`]), and no other thread reads or writes the same
    /// head and position meanwhile.
    ///
    /// # Panics
    /// When the position was not prepared or is committed, or the sizes do not fit: a mistake of the caller.
    pub unsafe fn write(&self, isa: Isa, head: usize, position: usize, key: &[f32], value: &[f32]) {
        let shape = self.layout.shape;
        assert!((self.writable.0..self.writable.1).contains(&position) && head < shape.kv_heads);
        assert!(key.len() == shape.head_dim && value.len() == shape.head_dim);
        let (tile, slot) = (position % PAGE_TOKENS / TILE_KEYS, position % TILE_KEYS);
        let (k, v) = self.layout.tile_at(head, tile);
        let page = self
            .sequence
            .page_ptr(self.layer, position / PAGE_TOKENS)
            .as_ptr()
            .cast::<u8>();
        // SAFETY: the page is the sequence's own, and both tiles lie inside it; this position of them is the caller's.
        unsafe {
            write(isa, self.layout.keys, Side::Key, page.add(k), slot, key);
            write(isa, self.layout.values, Side::Value, page.add(v), slot, value);
        }
    }

    /// Reads one head's key and value at a position back as numbers, as they are stored: a residual key without its
    /// mean.
    ///
    /// # Panics
    /// When there is no such head, the position is neither committed nor prepared, or the sizes do not fit.
    pub fn read(&self, isa: Isa, head: usize, position: usize, key: &mut [f32], value: &mut [f32]) {
        assert!(position < self.writable.1.max(self.writable.0));
        let kv = self.head(head);
        let (k, v) = kv.tile(position / TILE_KEYS);
        let slot = position % TILE_KEYS;
        read(isa, self.layout.keys, Side::Key, k, slot, key);
        read(isa, self.layout.values, Side::Value, v, slot, value);
    }

    /// One head's keys and values, for attention.
    ///
    /// # Panics
    /// When there is no such head.
    pub fn head(&self, head: usize) -> HeadKv<'a> {
        assert!(head < self.layout.shape.kv_heads);
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
    fn tile(&self, tile: usize) -> (&[u8], &[u8]) {
        let layout = &self.layer.layout;
        let dim = layout.shape.head_dim;
        let (k, v) = layout.tile_at(self.head, tile % PAGE_TILES);
        let page = self.layer.sequence.page_ptr(self.layer.layer, tile / PAGE_TILES);
        let page = page.as_ptr().cast::<u8>().cast_const();
        // SAFETY: the page holds both tiles; the engine writes positions before it attends to them.
        unsafe {
            (
                std::slice::from_raw_parts(page.add(k), layout.keys.tile_bytes(dim)),
                std::slice::from_raw_parts(page.add(v), layout.values.tile_bytes(dim)),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::LayerShape;
    use crate::pool::PagePool;
    use reprise_kernels::kv::KvFormat;

    #[test]
    fn what_is_written_is_read_back_from_its_tile() {
        let shape = LayerShape {
            kv_heads: 3,
            head_dim: 64,
        };
        for (keys, values) in [
            (KvFormat::F16, KvFormat::F16),
            (KvFormat::Q8, KvFormat::Tq4),
            (KvFormat::Tq4, KvFormat::Q8),
        ] {
            let layouts = [LayerLayout { shape, keys, values }; 2];
            let pool = PagePool::new(&layouts.map(|layout| layout.page_bytes()), 3).unwrap();
            let mut sequences = [pool.sequence()];
            sequences[0].prepare(600, None).unwrap();
            let lanes = KvLanes::new(&layouts, &mut sequences);
            let layer = lanes.layer(1, 0);
            let key = |position: usize, head: usize| -> Vec<f32> {
                (0..64)
                    .map(|d| ((position * 3 + head * 7 + d) as f32 * 0.7).sin())
                    .collect()
            };
            let places = [0, 63, 64, 255, 256, 599];
            for (position, head) in places.into_iter().flat_map(|p| (0..3).map(move |h| (p, h))) {
                let k = key(position, head);
                let v: Vec<f32> = k.iter().map(|v| -v).collect();
                // SAFETY: one thread, and the positions were prepared.
                unsafe { layer.write(Isa::best(), head, position, &k, &v) };
            }
            for (position, head) in places.into_iter().flat_map(|p| (0..3).map(move |h| (p, h))) {
                let head_kv = layer.head(head);
                let (k, v) = head_kv.tile(position / TILE_KEYS);
                let (mut key_back, mut value_back) = ([0.0; 64], [0.0; 64]);
                read(
                    Isa::best(),
                    keys,
                    Side::Key,
                    k,
                    position % TILE_KEYS,
                    &mut key_back,
                );
                read(
                    Isa::best(),
                    values,
                    Side::Value,
                    v,
                    position % TILE_KEYS,
                    &mut value_back,
                );
                for ((k, v), exact) in key_back.iter().zip(&value_back).zip(key(position, head)) {
                    assert!(
                        (k - exact).abs() < 0.4 && (v + exact).abs() < 0.4,
                        "{keys:?} {position} {head}"
                    );
                }
            }
        }
    }
}
