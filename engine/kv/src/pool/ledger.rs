//! Who holds which page: reference counts, the free list and the promises. Counts change under the lock only; a
//! sequence may read one without it, because a page it alone holds cannot become shared but by a fork of that sequence.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{PageId, PoolError};

pub(super) struct Ledger {
    /// Sequences that hold each page; 0 is free.
    references: Box<[AtomicU32]>,
    state: Mutex<State>,
}

struct State {
    /// Last in, first out: a page whose memory is there already is taken before one that was never touched.
    free: Vec<PageId>,
    /// Free pages that reservations have a claim on.
    promised: usize,
    high_water: usize,
    /// Whether each page was taken since it was last trimmed.
    is_touched: Box<[bool]>,
    touched: usize,
}

impl Ledger {
    pub(super) fn new(pages: u32) -> Ledger {
        Ledger {
            references: (0..pages).map(|_| AtomicU32::new(0)).collect(),
            state: Mutex::new(State {
                free: (0..pages).rev().map(PageId).collect(),
                promised: 0,
                high_water: 0,
                is_touched: (0..pages).map(|_| false).collect(),
                touched: 0,
            }),
        }
    }

    pub(super) fn pages(&self) -> usize {
        self.references.len()
    }

    /// Whether another sequence than the caller, who holds it, holds the page too. No lock: a `false` stays true until
    /// the caller itself is forked.
    pub(super) fn is_shared(&self, page: PageId) -> bool {
        // Acquire, so that what the last other holder read has been read before the caller writes.
        self.references[page.index()].load(Ordering::Acquire) > 1
    }

    pub(super) fn lock(&self) -> Entries<'_> {
        Entries {
            references: &self.references,
            // No operation stops half way, so the books of a panicked thread are sound; and drops must not panic.
            state: self.state.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// The locked ledger.
pub(super) struct Entries<'a> {
    references: &'a [AtomicU32],
    state: MutexGuard<'a, State>,
}

impl Entries<'_> {
    pub(super) fn total(&self) -> usize {
        self.references.len()
    }

    pub(super) fn free(&self) -> usize {
        self.state.free.len()
    }

    pub(super) fn used(&self) -> usize {
        self.total() - self.free()
    }

    pub(super) fn promised(&self) -> usize {
        self.state.promised
    }

    pub(super) fn high_water(&self) -> usize {
        self.state.high_water
    }

    pub(super) fn touched(&self) -> usize {
        self.state.touched
    }

    /// The count of each page in order.
    pub(super) fn references(&self) -> impl Iterator<Item = u32> {
        self.references.iter().map(|count| count.load(Ordering::Relaxed))
    }

    /// Sets `pages` free pages aside.
    pub(super) fn promise(&mut self, pages: usize) -> Result<(), PoolError> {
        self.check(pages, 0)?;
        self.state.promised += pages;
        Ok(())
    }

    /// Takes the rest of a promise back.
    pub(super) fn withdraw(&mut self, promise: usize) {
        self.state.promised -= promise;
    }

    /// Hands `wanted` pages with one reference each to `give`: those of `promise` first (which shrinks by them), then
    /// spare ones. Nothing happens when there are too few.
    pub(super) fn take(
        &mut self,
        wanted: usize,
        promise: &mut usize,
        mut give: impl FnMut(PageId),
    ) -> Result<(), PoolError> {
        self.check(wanted, *promise)?;
        let kept = wanted.min(*promise);
        *promise -= kept;
        self.state.promised -= kept;
        let state = &mut *self.state;
        for page in state.free.drain(state.free.len() - wanted..).rev() {
            self.references[page.index()].store(1, Ordering::Relaxed);
            if !std::mem::replace(&mut state.is_touched[page.index()], true) {
                state.touched += 1;
            }
            give(page);
        }
        self.state.high_water = self.state.high_water.max(self.used());
        Ok(())
    }

    /// One more sequence holds these pages.
    pub(super) fn share(&mut self, pages: &[PageId]) {
        for page in pages {
            self.references[page.index()].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One sequence less holds these pages. The last one to go frees a page.
    pub(super) fn release(&mut self, pages: impl IntoIterator<Item = PageId>) {
        for page in pages {
            // Release: see `Ledger::is_shared`.
            if self.references[page.index()].fetch_sub(1, Ordering::Release) == 1 {
                self.state.free.push(page);
            }
        }
    }

    /// Offers each run of touched pages that are free to `discard`, with the run of free pages around it. What that
    /// returns bytes for is no longer touched.
    pub(super) fn trim(&mut self, mut discard: impl FnMut(Range<usize>, Range<usize>) -> usize) -> usize {
        let is_free: Vec<bool> = self.references().map(|count| count == 0).collect();
        let state = &mut *self.state;
        let mut bytes = 0;
        for free in runs(&is_free) {
            for run in runs(&state.is_touched[free.clone()]) {
                let pages = free.start + run.start..free.start + run.end;
                let given = discard(pages.clone(), free.clone());
                if given > 0 {
                    state.touched -= pages.len();
                    state.is_touched[pages].fill(false);
                    bytes += given;
                }
            }
        }
        bytes
    }

    pub(super) fn verify(&self) -> Result<(), String> {
        let mut is_listed = vec![false; self.total()];
        for page in &self.state.free {
            match is_listed.get_mut(page.index()) {
                None => {
                    return Err(format!(
                        "the free list names {page:?}, the pool has {}",
                        self.total()
                    ));
                }
                Some(true) => return Err(format!("{page:?} is twice in the free list")),
                Some(listed) => *listed = true,
            }
        }
        for (page, (count, listed)) in self.references().zip(is_listed).enumerate() {
            match (count, listed) {
                (0, false) => return Err(format!("page {page} is lost: neither free nor referenced")),
                (1.., true) => return Err(format!("page {page} is free and has {count} references")),
                (1.., false) if !self.state.is_touched[page] => {
                    return Err(format!("page {page} is referenced, but counts as untouched"));
                }
                _ => {}
            }
        }
        if self.state.promised > self.free() {
            return Err(format!(
                "{} pages are promised, {} free",
                self.state.promised,
                self.free()
            ));
        }
        if self.state.high_water < self.used() {
            return Err(format!(
                "{} pages are used, but never more than {} were",
                self.used(),
                self.state.high_water
            ));
        }
        let touched = self.state.is_touched.iter().filter(|&&touched| touched).count();
        if touched != self.state.touched {
            return Err(format!(
                "{touched} pages are touched, {} were counted",
                self.state.touched
            ));
        }
        Ok(())
    }

    /// Whether the holder of `promise` can have `wanted` pages.
    fn check(&self, wanted: usize, promise: usize) -> Result<(), PoolError> {
        let available = self.free() - self.state.promised + promise;
        if wanted > available {
            return Err(PoolError::Exhausted {
                wanted,
                available,
                total: self.total(),
            });
        }
        Ok(())
    }
}

/// The longest ranges of `true`.
fn runs(flags: &[bool]) -> Vec<Range<usize>> {
    let mut end = 0;
    flags
        .chunk_by(|a, b| a == b)
        .filter_map(|chunk| {
            end += chunk.len();
            chunk[0].then_some(end - chunk.len()..end)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_longest_ranges_that_are_set() {
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[false, false]), []);
        assert_eq!(runs(&[true, true, false, true]), [0..2, 3..4]);
        assert_eq!(runs(&[false, true, false]), [Range { start: 1, end: 2 }]);
    }

    fn broken(breakage: impl FnOnce(&[AtomicU32], &mut State)) -> String {
        let ledger = Ledger::new(3);
        let mut promise = 0;
        ledger.lock().take(1, &mut promise, |_| {}).unwrap();
        assert_eq!(ledger.lock().verify(), Ok(()));
        breakage(&ledger.references, &mut ledger.state.lock().unwrap());
        ledger.lock().verify().unwrap_err()
    }

    #[test]
    fn broken_books_are_found() {
        let lost = broken(|references, _| references[0].store(0, Ordering::Relaxed));
        assert!(lost.contains("page 0 is lost"), "{lost}");
        let both = broken(|references, _| references[2].store(2, Ordering::Relaxed));
        assert!(both.contains("page 2 is free and has 2"), "{both}");
        let twice = broken(|_, state| state.free.push(PageId(2)));
        assert!(twice.contains("twice"), "{twice}");
        let foreign = broken(|_, state| state.free.push(PageId(3)));
        assert!(foreign.contains("the pool has 3"), "{foreign}");
        let promised = broken(|_, state| state.promised = 3);
        assert!(promised.contains("3 pages are promised, 2 free"), "{promised}");
        let high_water = broken(|_, state| state.high_water = 0);
        assert!(high_water.contains("never more than 0"), "{high_water}");
        let touched = broken(|_, state| state.touched = 2);
        assert!(touched.contains("2 were counted"), "{touched}");
        let untouched = broken(|_, state| state.is_touched[0] = false);
        assert!(untouched.contains("untouched"), "{untouched}");
    }
}
