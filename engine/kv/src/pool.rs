//! The page pool: the KV memory that all sequences of a model share, handed out in pages of [`PAGE_TOKENS`] positions.
//!
//! One [`PageId`] names the same positions in every layer, so whatever happens to a page happens to all layers at
//! once. What a layer's page holds is just bytes here. A page is free, or referenced by one or more sequences; only a
//! page with one reference is ever written, and [`Sequence::prepare`] copies one that has more. Free pages can be
//! promised to a [`Reservation`], which nobody else can take. Pages and promises come back when their owner is
//! dropped. The engine admits a request with a reservation and then drives its sequence: prepare, write, commit.
//!
//! ```
//! use reprise_kv::pool::PagePool;
//!
//! let pool = PagePool::new(&[256 * 64, 256 * 32], 8)?; // two layers of 64 and 32 bytes a position
//! let mut reservation = pool.reserve(2)?;
//! let mut sequence = pool.sequence();
//! sequence.prepare(300, Some(&mut reservation))?; // both pages of the promise
//! sequence.commit(300); // once its KV is written
//!
//! let fork = sequence.fork(300);
//! assert_eq!((pool.usage().used, pool.usage().shared), (2, 2));
//! sequence.prepare(301, None)?; // the last page is shared: this sequence goes on in a copy of it
//! assert_eq!((pool.usage().used, pool.usage().shared), (3, 1));
//! # drop(fork);
//! # Ok::<(), reprise_kv::pool::PoolError>(())
//! ```

mod backing;
mod ledger;
#[cfg(test)]
mod model_tests;
mod reservation;
mod sequence;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use reservation::Reservation;
pub use sequence::{PageRun, Sequence};

use crate::PAGE_TOKENS;
use backing::LayerMemory;
use ledger::Ledger;

/// A page of the pool: [`PAGE_TOKENS`] positions in every layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(u32);

impl PageId {
    /// The page's place in [`PagePool::map`], from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why the pool could not give what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// Too few pages are free, or those that are free are promised to others.
    #[error(
        "{wanted} pages of KV memory are needed, {available} of {total} can be had; shorten the prompt, wait for \
         another request to end or give the KV memory a larger budget"
    )]
    Exhausted {
        /// Pages asked for.
        wanted: usize,
        /// Pages that could have been had.
        available: usize,
        /// Pages of the pool.
        total: usize,
    },
    /// The system does not provide the address space or memory of a pool this large.
    #[error(
        "the system has no room for {:.0} MB of KV memory; choose a smaller window or budget",
        *pages as f64 * *page_bytes as f64 / 1e6
    )]
    NoMemory {
        /// Pages asked for.
        pages: usize,
        /// Bytes of one page over all layers.
        page_bytes: usize,
    },
}

/// What the pool holds at one moment. All but the last two fields count pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolUsage {
    /// Pages of the pool: used and free ones.
    pub total: usize,
    /// Pages that sequences hold; one that several hold counts once.
    pub used: usize,
    /// Used pages that more than one sequence holds.
    pub shared: usize,
    /// Free pages that reservations have a claim on and have not taken yet.
    pub promised: usize,
    /// Pages that no sequence holds, promised ones among them.
    pub free: usize,
    /// Most pages used at once since the pool was made.
    pub high_water: usize,
    /// Bytes of one page over all layers.
    pub page_bytes: usize,
    /// Bytes of one page in each layer.
    pub layer_page_bytes: Vec<usize>,
}

impl PoolUsage {
    /// Free pages that are promised to nobody: what a new reservation, or a sequence without one, can have.
    pub fn spare(&self) -> usize {
        self.free - self.promised
    }
}

/// The pool, a handle to share: clones name the same pages, which live until the last handle, reservation and sequence
/// are gone.
#[derive(Clone)]
pub struct PagePool(Arc<Inner>);

struct Inner {
    layers: Box<[LayerMemory]>,
    ledger: Ledger,
}

impl PagePool {
    /// A pool of `pages` pages, of which layer `i` stores `layer_page_bytes[i]` bytes each (0 for a layer without KV).
    /// Every page starts on a cache line and reads as zeros when first taken. Pages that were never taken cost address
    /// space, not memory.
    ///
    /// # Errors
    /// [`PoolError::NoMemory`] when the system does not provide the address space.
    pub fn new(layer_page_bytes: &[usize], pages: usize) -> Result<PagePool, PoolError> {
        let no_memory = || PoolError::NoMemory {
            pages,
            page_bytes: layer_page_bytes
                .iter()
                .fold(0, |sum, &bytes| sum.saturating_add(bytes)),
        };
        let count = u32::try_from(pages).map_err(|_| no_memory())?;
        let layers = layer_page_bytes
            .iter()
            .map(|&page_bytes| LayerMemory::new(page_bytes, pages))
            .collect::<Option<_>>()
            .ok_or_else(no_memory)?;
        let ledger = Ledger::new(count);
        Ok(PagePool(Arc::new(Inner { layers, ledger })))
    }

    /// Promises `pages` free pages to the caller. They stay free until a sequence takes them in
    /// [`Sequence::prepare`], but nobody else gets them.
    ///
    /// # Errors
    /// [`PoolError::Exhausted`] when fewer are free and not promised yet; then nothing is promised.
    pub fn reserve(&self, pages: usize) -> Result<Reservation, PoolError> {
        Reservation::new(self.clone(), pages)
    }

    /// An empty sequence.
    pub fn sequence(&self) -> Sequence {
        Sequence::new(self.clone())
    }

    /// What the pool holds now.
    pub fn usage(&self) -> PoolUsage {
        let layer_page_bytes: Vec<usize> = self.0.layers.iter().map(LayerMemory::page_bytes).collect();
        let entries = self.0.ledger.lock();
        PoolUsage {
            total: entries.total(),
            used: entries.used(),
            shared: entries.references().filter(|&count| count > 1).count(),
            promised: entries.promised(),
            free: entries.free(),
            high_water: entries.high_water(),
            page_bytes: layer_page_bytes.iter().sum(),
            layer_page_bytes,
        }
    }

    /// How many sequences hold each page, by [`PageId::index`]; 0 for a free one.
    pub fn map(&self) -> Vec<u32> {
        self.0.ledger.lock().references().collect()
    }

    /// Checks that the pool's books agree with each other: for tests and for a report of a fault.
    ///
    /// # Errors
    /// A sentence that names the disagreement.
    pub fn verify(&self) -> Result<(), String> {
        self.0.ledger.lock().verify()
    }

    /// Gives the memory of free pages back to the system and returns how many bytes that were. Pages that were not
    /// taken since the last time cost nothing. System pages that a free page has in common with a used one stay, so
    /// little or nothing comes back where a layer's page is not larger than a system page. Taking and releasing pages
    /// waits meanwhile; steps that need no page do not.
    ///
    /// Only Linux is asked to; elsewhere nothing happens and the answer is 0.
    pub fn trim(&self) -> usize {
        self.0.ledger.lock().trim(|pages, free| {
            self.0
                .layers
                .iter()
                .map(|layer| layer.discard(pages.clone(), free.clone()))
                .sum()
        })
    }

    /// Bytes of the pages that were taken at least once and not trimmed since, used ones included: the most memory
    /// that the pool can occupy now, give or take a system page at the ends of what was trimmed, and more only where
    /// the system maps huge pages unasked.
    pub fn resident_bytes(&self) -> usize {
        let page_bytes: usize = self.0.layers.iter().map(LayerMemory::page_bytes).sum();
        self.0.ledger.lock().touched() * page_bytes
    }

    /// Whether both handles name the same pool.
    fn is(&self, other: &PagePool) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for PagePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.ledger.lock();
        write!(
            f,
            "PagePool({} of {} pages used)",
            entries.used(),
            entries.total()
        )
    }
}
