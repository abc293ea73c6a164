//! The memory behind one layer's pages: one lazily zeroed array, cut into pages of equal size. Whoever holds a page
//! decides what is read and written; this module only computes where.

use std::ops::Range;
use std::ptr::NonNull;

use reprise_kernels::buffer::Buffer;

use super::PageId;

const CACHE_LINE: usize = 64;

pub(super) struct LayerMemory {
    /// Of the array: taken once while it was borrowed exclusively, so that pages can be written through it.
    start: NonNull<u8>,
    page_bytes: usize,
    /// Bytes from one page to the next: whole cache lines.
    stride: usize,
    pages: usize,
    /// Owns the array; accessed through `start` only.
    _array: Buffer<u8>,
}

// SAFETY: the array belongs to this value and moves with it; access to its bytes is the caller's to arrange.
unsafe impl Send for LayerMemory {}
// SAFETY: sharing gives out pointers only; see `copy` and `Sequence` for who may use them.
unsafe impl Sync for LayerMemory {}

impl LayerMemory {
    /// `None` when the address space cannot be had.
    pub(super) fn new(page_bytes: usize, pages: usize) -> Option<LayerMemory> {
        let stride = page_bytes.checked_next_multiple_of(CACHE_LINE)?;
        let mut array = Buffer::try_lazily_zeroed(stride.checked_mul(pages)?)?;
        Some(LayerMemory {
            start: NonNull::from(&mut *array).cast(),
            page_bytes,
            stride,
            pages,
            _array: array,
        })
    }

    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    pub(super) fn page(&self, page: PageId) -> NonNull<[u8]> {
        assert!(page.index() < self.pages);
        // SAFETY: the page exists, so its offset lies in the array.
        let start = unsafe { self.start.add(page.index() * self.stride) };
        NonNull::slice_from_raw_parts(start, self.page_bytes)
    }

    /// Copies a page over another.
    ///
    /// # Safety
    /// Nobody writes `from` meanwhile, and nobody else accesses `to`.
    pub(super) unsafe fn copy(&self, from: PageId, to: PageId) {
        let (from, to) = (self.page(from).cast::<u8>(), self.page(to).cast::<u8>());
        // SAFETY: both pages have this many bytes; the caller promises the rest.
        unsafe { from.copy_to(to, self.page_bytes) };
    }

    /// Gives the system pages of `pages` back, those at the ends included as far as only pages of `free` (which
    /// surrounds `pages`, all of it free) share them. Returns the bytes; the pages then read as zeros.
    #[cfg(target_os = "linux")]
    pub(super) fn discard(&self, pages: Range<usize>, free: Range<usize>) -> usize {
        // SAFETY: reads a constant of the system.
        let Ok(unit @ 1..) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else {
            return 0;
        };
        let base = self.start.addr().get();
        let address = |page: usize| base + page * self.stride;
        let from = (address(pages.start) / unit * unit).max(address(free.start).next_multiple_of(unit));
        let to = address(pages.end)
            .next_multiple_of(unit)
            .min(address(free.end) / unit * unit);
        if from >= to {
            return 0;
        }
        // SAFETY: the range lies in the array and covers free pages only, which hold nothing and which nobody
        // accesses while the ledger is locked. The array is private anonymous memory, so it reads as zeros afterwards.
        let given = unsafe {
            libc::madvise(
                self.start.add(from - base).as_ptr().cast(),
                to - from,
                libc::MADV_DONTNEED,
            )
        };
        if given == 0 { to - from } else { 0 }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn discard(&self, _pages: Range<usize>, _free: Range<usize>) -> usize {
        0
    }
}
