//! Zeroed memory for weights and activations: aligned to a cache line, or to a huge page when it is large enough for
//! the system to map it with one (decoding streams all weights for every token; fewer TLB misses show).

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
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
        let Some(start) = NonNull::new(raw.cast::<T>()) else {
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
            start,
            len,
            layout,
            marker: PhantomData,
        }
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) }
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
