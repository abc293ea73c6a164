//! How much KV memory the engine takes, from what the machine has.

use reprise_kv::{LayerLayout, PAGE_TOKENS};
use std::path::Path;

/// Share of the free memory that KV takes where nothing is said: the rest is for the system's file cache, which holds
/// documents and the model's file, and for other programs.
const FREE_SHARE: f64 = 0.25;
/// Whole windows that are worth having: four lanes, and as much again kept for later prompts.
const MOST_WINDOWS: usize = 8;

/// The pages of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Pages of 256 positions over all layers.
    pub pages: usize,
    /// Bytes of one page.
    pub page_bytes: usize,
}

impl Budget {
    /// Bytes of all pages.
    pub fn bytes(&self) -> u64 {
        (self.pages * self.page_bytes) as u64
    }

    /// Positions of all pages.
    pub fn tokens(&self) -> usize {
        self.pages * PAGE_TOKENS
    }

    /// Pages that so many bytes hold.
    pub fn pages_of(layouts: &[LayerLayout], bytes: u64) -> usize {
        (bytes / page_bytes(layouts) as u64) as usize
    }

    /// Pages for a window of `window` tokens: as many as `asked` bytes hold, or a share of the `free` bytes of the
    /// machine. Without a figure for the free memory two windows are taken. A page more than a window is always
    /// granted unless bytes were asked for: continuing a kept conversation copies its last page.
    pub fn new(layouts: &[LayerLayout], window: usize, asked: Option<u64>, free: Option<u64>) -> Budget {
        let page_bytes = page_bytes(layouts);
        let window_pages = window.div_ceil(PAGE_TOKENS) + 1;
        let pages = match (asked, free) {
            (Some(bytes), _) => Budget::pages_of(layouts, bytes),
            (None, Some(free)) => {
                let share = (free as f64 * FREE_SHARE) as u64 / page_bytes as u64;
                (share as usize).clamp(window_pages, MOST_WINDOWS * window_pages)
            }
            (None, None) => 2 * window_pages,
        };
        Budget { pages, page_bytes }
    }
}

/// Most bytes of disk for chunks where nobody chooses: some hundred documents of a small model.
const MOST_DISK_BYTES: u64 = 8 << 30;
/// Share of what is free on the disk that chunks take at most.
const DISK_SHARE: u64 = 10;
/// Chunks that stay in memory where nobody chooses, as a share of the KV memory.
const MEMORY_SHARE: u64 = 4;

/// Bytes of disk for chunks in a folder, which need not be there yet.
pub fn disk_bytes(folder: &Path) -> u64 {
    let disks = sysinfo::Disks::new_with_refreshed_list();
    let place = folder.ancestors().find_map(|place| place.canonicalize().ok());
    let place = place.as_deref().unwrap_or(folder);
    let disk = disks
        .iter()
        .flatten()
        .filter(|disk| place.starts_with(disk.mount_point()))
        .max_by_key(|disk| disk.mount_point().components().count());
    disk.map_or(MOST_DISK_BYTES, |disk| {
        (disk.available_space() / DISK_SHARE).min(MOST_DISK_BYTES)
    })
}

/// Bytes of chunks that stay in memory beside a pool of so many bytes.
pub fn chunk_memory_bytes(pool_bytes: u64) -> usize {
    usize::try_from(pool_bytes / MEMORY_SHARE).unwrap_or(usize::MAX)
}

/// Bytes of a page over all layers.
fn page_bytes(layouts: &[LayerLayout]) -> usize {
    layouts.iter().map(LayerLayout::page_bytes).sum::<usize>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprise_kv::LayerShape;

    #[test]
    fn a_share_of_what_is_free_but_one_window_at_least() {
        let layouts = [LayerLayout::half(LayerShape {
            kv_heads: 2,
            head_dim: 64,
        }); 10];
        let page = 256 * 10 * 2 * 2 * 64 * 2;
        let pages = |asked, free| Budget::new(&layouts, 2_048, asked, free).pages;
        assert_eq!(pages(Some(20 * page as u64), None), 20);
        assert_eq!(
            pages(Some(1), Some(1 << 40)),
            0,
            "what was asked for is taken at its word"
        );
        assert_eq!(
            pages(None, Some(400 * page as u64)),
            72,
            "eight windows are enough"
        );
        assert_eq!(pages(None, Some(80 * page as u64)), 20);
        assert_eq!(pages(None, Some(0)), 9);
        assert_eq!(pages(None, None), 18);
    }
}
