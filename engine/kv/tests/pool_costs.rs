//! What the pool costs: a process of its own, so that neither allocations nor resident memory of other tests count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use reprise_kv::pool::PagePool;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn token_steps_that_need_no_page_do_not_allocate() {
    let pool = PagePool::new(&[256 * 64; 4], 8).unwrap();
    let mut reservation = pool.reserve(4).unwrap();
    let mut sequence = pool.sequence();
    sequence.prepare(1_024, Some(&mut reservation)).unwrap();
    let before = ALLOCATIONS.get();
    for end in 1..=1_024 {
        sequence.prepare(end, Some(&mut reservation)).unwrap();
        sequence.commit(end);
        sequence.truncate(end);
    }
    assert_eq!(ALLOCATIONS.get(), before);
}

#[cfg(target_os = "linux")]
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    // The smallest system page there is; larger ones only make the test milder.
    pages * 4_096
}

#[test]
#[cfg(target_os = "linux")]
fn pages_cost_memory_from_their_first_use_until_they_are_trimmed() {
    const MIB: usize = 1 << 20;
    let before = resident_bytes();
    let grown = || resident_bytes().saturating_sub(before) / MIB;
    let pool = PagePool::new(&[MIB; 4], 512).unwrap(); // 2 GiB
    assert!(grown() < 8, "{} MiB for an unused pool", grown());

    // Copies on write are the only way to touch pages from outside the crate: 16 copies of 4 MiB.
    let mut sequence = pool.sequence();
    sequence.prepare(1, None).unwrap();
    sequence.commit(1);
    let copies: Vec<_> = (0..16)
        .map(|_| {
            let mut fork = sequence.fork(1);
            fork.prepare(2, None).unwrap();
            fork
        })
        .collect();
    assert_eq!(pool.resident_bytes(), 17 * 4 * MIB);
    assert!(grown() >= 60, "{} MiB for 16 copies of 4 MiB", grown());
    drop(copies);
    assert!(
        grown() >= 60,
        "free pages keep their memory for the next to take them"
    );

    let given = pool.trim();
    assert!(given > 63 * MIB, "{given} bytes given back");
    assert!(grown() < 8, "{} MiB after trimming", grown());
    assert_eq!(pool.resident_bytes(), 4 * MIB);
}
