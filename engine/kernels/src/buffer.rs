//! Zeroed memory for weights and activations: aligned to a cache line, or to a huge page when it is large enough for
//! the system to map it with one (decoding streams all weights for every token; fewer TLB misses show).

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A type for which all-zero bytes are a value and any bytes are valid.
///
/// # Safety
/// Implement it only for plain numbers.
pub unsafe trait Plain: Copy {}
// SAFETY: plain numbers, valid for every bit pattern.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for i8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for i16 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}

const CACHE_LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;

/// A fixed-length, zero-initialised, aligned array of numbers.
pub struct Buffer<T: Plain> {
    start: NonNull<T>,
    len: usize,
    /// What the allocator gave: the start, or up to a cache line before it.
    allocation: NonNull<u8>,
    layout: Layout,
    marker: PhantomData<T>,
}

// SAFETY: the buffer owns its memory and hands it out by the usual borrowing rules.
unsafe impl<T: Plain + Send> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Plain + Sync> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    /// Allocates `len` zeros. Aborts when memory is exhausted, as every Rust collection does.
    pub fn zeroed(len: usize) -> Buffer<T> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .expect("a buffer's size fits the address space");
        let align = if bytes >= 4 * HUGE_PAGE {
            HUGE_PAGE
        } else {
            CACHE_LINE
        };
        let layout =
            Layout::from_size_align(bytes.max(1), align).expect("a buffer's size fits the address space");
        // SAFETY: the layout's size is not zero.
        let raw = unsafe { alloc(layout) };
        let Some(allocation) = NonNull::new(raw) else {
            handle_alloc_error(layout)
        };
        #[cfg(target_os = "linux")]
        if align == HUGE_PAGE {
            // SAFETY: the range was just allocated and is owned here; the call is only advice.
            unsafe { libc::madvise(raw.cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        // The advice must come before the first touch, hence not `alloc_zeroed`.
        // SAFETY: the whole range was just allocated.
        unsafe { raw.write_bytes(0, bytes) };
        Buffer {
            start: allocation.cast(),
            len,
            allocation,
            layout,
            marker: PhantomData,
        }
    }

    /// Allocates `len` zeros of which the system provides each page of memory when it is first touched: a large buffer
    /// costs address space only until it is used. `None` when even that is not to be had.
    pub fn try_lazily_zeroed(len: usize) -> Option<Buffer<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        // The allocator is asked for the type's alignment, and the start moved to a cache line here: for a larger
        // alignment std zeroes by hand, which touches everything, where it otherwise calls the system's `calloc`.
        let layout = Layout::from_size_align(bytes.checked_add(CACHE_LINE)?, align_of::<T>()).ok()?;
        // SAFETY: the layout's size is not zero.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // SAFETY: the start moves by less than the cache line that was allocated in excess.
        let start = unsafe { allocation.add(allocation.align_offset(CACHE_LINE)) };
        Some(Buffer {
            start: start.cast(),
            len,
            allocation,
            layout,
            marker: PhantomData,
        })
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by a constructor with this layout, freed once.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) }
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised values live at `start`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} x {} bytes)", self.len, size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lazy_buffer_is_zero_aligned_and_writable_to_its_last_value() {
        for len in [0, 1, 63, 1_000, 3 << 20] {
            let mut buffer = Buffer::<f32>::try_lazily_zeroed(len).unwrap();
            assert_eq!(buffer.len(), len);
            assert_eq!(buffer.as_ptr().addr() % CACHE_LINE, 0);
            assert!(buffer.iter().all(|&value| value == 0.0));
            buffer.fill(1.0);
            assert!(buffer.iter().all(|&value| value == 1.0));
        }
    }

    #[test]
    fn a_lazy_buffer_that_cannot_be_had_is_none() {
        assert!(Buffer::<f32>::try_lazily_zeroed(usize::MAX).is_none());
        assert!(Buffer::<f32>::try_lazily_zeroed(usize::MAX / 4).is_none());
        assert!(Buffer::<u8>::try_lazily_zeroed(1 << 60).is_none());
    }
}
