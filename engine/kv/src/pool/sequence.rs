//! One sequence's page table, and the steps by which it grows: prepare, write, commit or cancel.
//!
//! Positions `0..len` are committed: nobody writes them any more, so forks share their pages. Positions `len..prepared`
//! are this sequence's to write. At most the page in which the committed positions end can be both shared and due for
//! writing; it is the one that `prepare` copies.

use std::ops::Range;
use std::ptr::NonNull;

use super::{PAGE_TOKENS, PageId, PagePool, PoolError, Reservation};

/// The pages of one sequence of tokens, in order of position. Dropping it releases them.
#[derive(Debug)]
pub struct Sequence {
    pool: PagePool,
    /// Exactly the pages of positions `0..prepared`.
    table: Vec<PageId>,
    len: usize,
    prepared: usize,
}

/// The part of a page that a range of positions covers: see [`Sequence::runs`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRun<'a> {
    /// All bytes of the page in one layer.
    pub bytes: &'a [u8],
    /// The positions of the range in it, counted from the start of the page.
    pub positions: Range<usize>,
}

impl Sequence {
    pub(super) fn new(pool: PagePool) -> Sequence {
        Sequence {
            pool,
            table: Vec::new(),
            len: 0,
            prepared: 0,
        }
    }

    /// The pool whose pages these are.
    pub fn pool(&self) -> &PagePool {
        &self.pool
    }

    /// Committed positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is committed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The position up to which this sequence may write now, from [`Sequence::len`] on. It falls back to that when a
    /// fork came to share the page in between: prepare again before writing on.
    pub fn prepared(&self) -> usize {
        if self.shared_tail().is_some() {
            self.len
        } else {
            self.prepared
        }
    }

    /// The pages of the committed and prepared positions, in order.
    pub fn pages(&self) -> &[PageId] {
        &self.table
    }

    /// A sequence of the first `positions` committed positions, which shares their pages. Whichever of the two writes
    /// on in a shared page gets a copy of it from [`Sequence::prepare`].
    ///
    /// # Panics
    /// When fewer positions are committed.
    pub fn fork(&self, positions: usize) -> Sequence {
        assert!(
            positions <= self.len,
            "a fork of {positions} positions, {} are committed",
            self.len
        );
        let table = self.table[..positions.div_ceil(PAGE_TOKENS)].to_vec();
        self.pool.0.ledger.lock().share(&table);
        Sequence {
            pool: self.pool.clone(),
            table,
            len: positions,
            prepared: positions,
        }
    }

    /// Forgets the positions from `positions` on, prepared ones included, and releases the pages that only they
    /// needed. Does nothing when no more than `positions` are committed.
    pub fn truncate(&mut self, positions: usize) {
        if positions < self.len {
            self.len = positions;
            self.cancel();
        }
    }

    /// Makes positions `len()..end` writable. Takes the pages that are missing, those promised to `reservation` first,
    /// then spare ones, and replaces the page in which the committed positions end by a copy when other sequences hold
    /// it too (one page more). A page just taken holds what its last owner left. When nothing is missing there is no
    /// lock and no allocation: the engine calls this for each token step.
    ///
    /// # Errors
    /// [`PoolError::Exhausted`] when there are too few pages; the sequence and the reservation are as before.
    ///
    /// # Panics
    /// When the reservation is one of another pool.
    pub fn prepare(&mut self, end: usize, reservation: Option<&mut Reservation>) -> Result<(), PoolError> {
        if end <= self.len {
            return Ok(());
        }
        let missing = end.div_ceil(PAGE_TOKENS).saturating_sub(self.table.len());
        if missing > 0 || self.shared_tail().is_some() {
            let mut nothing = 0;
            let promise = match reservation {
                Some(reservation) => {
                    assert!(reservation.pool.is(&self.pool), "a reservation of another pool");
                    &mut reservation.pages
                }
                None => &mut nothing,
            };
            self.take(missing, promise)?;
        }
        self.prepared = self.prepared.max(end);
        Ok(())
    }

    /// Declares that positions up to `end` hold valid KV in every layer. Prepared ones behind it stay prepared.
    ///
    /// # Panics
    /// When `end` is less than what is committed already, or more than what was prepared: KV of an answer would be
    /// wrong.
    pub fn commit(&mut self, end: usize) {
        assert!(
            (self.len..=self.prepared).contains(&end),
            "commit to {end}, {} are committed and {} prepared",
            self.len,
            self.prepared
        );
        self.len = end;
    }

    /// Gives up the prepared positions and releases the pages that only they needed. Those are spare then: they do not
    /// return to the reservation they came from.
    pub fn cancel(&mut self) {
        self.prepared = self.len;
        let needed = self.len.div_ceil(PAGE_TOKENS);
        if needed < self.table.len() {
            self.pool.0.ledger.lock().release(self.table.drain(needed..));
        }
    }

    /// The bytes of the `page_index`-th page of this sequence in one layer: for the typed views built on it, whose
    /// duty is to write positions `len()..prepared()` only, with the sequence borrowed exclusively from the moment
    /// they asked for that range, and to read positions that nobody writes meanwhile.
    ///
    /// # Panics
    /// When there is no such page or layer.
    #[inline]
    pub(crate) fn page_ptr(&self, layer: usize, page_index: usize) -> NonNull<[u8]> {
        self.pool.0.layers[layer].page(self.table[page_index])
    }

    /// The pages of a layer that cover the committed positions of `range`, in order and without a copy: for writing
    /// chunks to disk.
    ///
    /// # Panics
    /// When the range is reversed or reaches beyond the committed positions, or there is no such layer.
    pub fn runs(&self, layer: usize, range: Range<usize>) -> impl Iterator<Item = PageRun<'_>> {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "positions {range:?}, {} are committed",
            self.len
        );
        let pages = if range.is_empty() {
            0..0
        } else {
            range.start / PAGE_TOKENS..range.end.div_ceil(PAGE_TOKENS)
        };
        pages.map(move |page| {
            let first = page * PAGE_TOKENS;
            // SAFETY: the page is initialised (zeros at least). While `self` is borrowed it is not written: by this
            // sequence, because writing borrows it exclusively; by another that shares the page, because that one
            // prepares a copy before it writes.
            let bytes = unsafe { self.page_ptr(layer, page).as_ref() };
            PageRun {
                bytes,
                positions: range.start.max(first) - first..range.end.min(first + PAGE_TOKENS) - first,
            }
        })
    }

    /// The page in which the committed positions end, when positions behind them fall into it and others hold it too.
    fn shared_tail(&self) -> Option<usize> {
        if self.len.is_multiple_of(PAGE_TOKENS) {
            return None;
        }
        let tail = self.len / PAGE_TOKENS;
        self.pool.0.ledger.is_shared(self.table[tail]).then_some(tail)
    }

    /// Takes `missing` pages, and replaces the shared tail by a copy.
    #[cold]
    fn take(&mut self, missing: usize, promise: &mut usize) -> Result<(), PoolError> {
        let inner = &*self.pool.0;
        // Before the lock. A nonsensical wish is turned down below, not here.
        self.table.reserve(missing.min(inner.ledger.pages()));
        let mut entries = inner.ledger.lock();
        // Asked again: the other holders may have gone meanwhile.
        let shared = self.shared_tail();
        let mut copy = None;
        entries.take(missing + usize::from(shared.is_some()), promise, |page| {
            if shared.is_some() && copy.is_none() {
                copy = Some(page);
            } else {
                self.table.push(page);
            }
        })?;
        drop(entries);
        if let (Some(tail), Some(copy)) = (shared, copy) {
            let original = self.table[tail];
            for layer in &inner.layers {
                // SAFETY: nobody writes the original, because this sequence and another one held it when the ledger
                // was locked and this one still does, so that no other finds itself alone with it. Nobody but this
                // sequence has the copy yet.
                unsafe { layer.copy(original, copy) };
            }
            self.table[tail] = copy;
            inner.ledger.lock().release([original]);
        }
        Ok(())
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        if !self.table.is_empty() {
            self.pool.0.ledger.lock().release(self.table.drain(..));
        }
    }
}
