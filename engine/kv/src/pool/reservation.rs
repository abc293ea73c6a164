//! A promise of pages, kept by the pool until it is used or dropped.

use super::{PagePool, PoolError};

/// Free pages that only its holder can take, through [`Sequence::prepare`](super::Sequence::prepare). Dropping it gives
/// back what was not taken; pages that were taken belong to the sequence.
#[derive(Debug)]
pub struct Reservation {
    pub(super) pool: PagePool,
    pub(super) pages: usize,
}

impl Reservation {
    pub(super) fn new(pool: PagePool, pages: usize) -> Result<Reservation, PoolError> {
        pool.0.ledger.lock().promise(pages)?;
        Ok(Reservation { pool, pages })
    }

    /// Pages promised and not taken yet.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Promises `pages` more.
    ///
    /// # Errors
    /// [`PoolError::Exhausted`] when fewer are free and not promised yet; then the promise is as before.
    pub fn grow(&mut self, pages: usize) -> Result<(), PoolError> {
        self.pool.0.ledger.lock().promise(pages)?;
        self.pages += pages;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.pool.0.ledger.lock().withdraw(self.pages);
    }
}
