//! The compute threads: one pool, handed one list of items at a time.
//!
//! A token step runs some 150 short parallel loops, so handing out work must cost well under a microsecond: workers
//! spin between loops and go to sleep only when nothing has come for a while. The caller works too, and waits only for
//! workers that have joined the loop; one that is late for want of a core holds nobody up.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How often a worker looks for work before it sleeps: a few hundred microseconds.
const SPINS: usize = 20_000;

type Task<'a> = &'a (dyn Fn(usize, usize) + Sync + 'a);

struct Shared {
    /// Odd while a loop is open; each loop has a number of its own.
    epoch: AtomicUsize,
    /// Workers inside the loop.
    joined: AtomicUsize,
    next: AtomicUsize,
    items: AtomicUsize,
    task: UnsafeCell<Option<Task<'static>>>,
    panicked: AtomicBool,
    stop: AtomicBool,
    sleepers: Mutex<usize>,
    asleep: AtomicUsize,
    wake: Condvar,
}

// SAFETY: `task` is written only while no worker has joined, and read only by workers that have (see `Pool::run`).
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

/// A pool of compute threads; the thread that calls [`Pool::run`] is one of them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// A pool of `threads` threads, the caller included.
    pub fn new(threads: usize) -> std::io::Result<Pool> {
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            joined: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            task: UnsafeCell::new(None),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            asleep: AtomicUsize::new(0),
            wake: Condvar::new(),
        });
        let mut pool = Pool {
            shared,
            workers: Vec::new(),
        };
        for id in 1..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let name = format!("reprise-compute-{id}");
            pool.workers.push(
                std::thread::Builder::new()
                    .name(name)
                    .spawn(move || shared.work(id))?,
            );
        }
        Ok(pool)
    }

    /// Threads, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task(thread, item)` once for each item, on all threads, and returns when all calls have. `thread` is
    /// below [`Pool::threads`], and no two calls run with the same one at once.
    ///
    /// # Panics
    /// When a call panicked.
    pub fn run(&mut self, items: usize, task: Task<'_>) {
        if items <= 1 || self.workers.is_empty() {
            (0..items).for_each(|item| task(0, item));
            return;
        }
        let shared = &*self.shared;
        // SAFETY: no loop is open and nobody has joined, so no worker reads `task`; the reference outlives the loop,
        // since below we wait for every worker that has joined before we return.
        unsafe { *shared.task.get() = Some(std::mem::transmute::<Task<'_>, Task<'static>>(task)) };
        shared.next.store(0, Ordering::Relaxed);
        shared.items.store(items, Ordering::Relaxed);
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        if shared.asleep.load(Ordering::SeqCst) > 0 {
            drop(shared.sleepers.lock().unwrap_or_else(PoisonError::into_inner));
            shared.wake.notify_all();
        }
        let caller = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shared.take_items(task, 0)));
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        let mut spins = 0;
        while shared.joined.load(Ordering::SeqCst) > 0 {
            pause(&mut spins);
        }
        if let Err(panic) = caller {
            std::panic::resume_unwind(panic);
        }
        assert!(
            !shared.panicked.swap(false, Ordering::Relaxed),
            "a compute thread panicked"
        );
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(
            self.shared
                .sleepers
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn take_items(&self, task: Task<'_>, thread: usize) {
        let items = self.items.load(Ordering::Relaxed);
        loop {
            let item = self.next.fetch_add(1, Ordering::Relaxed);
            if item >= items {
                return;
            }
            task(thread, item);
        }
    }

    fn work(&self, id: usize) {
        let mut seen = 0;
        let mut spins = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch == seen || epoch.is_multiple_of(2) {
                if spins < SPINS {
                    pause(&mut spins);
                } else {
                    self.sleep(epoch);
                    spins = 0;
                }
                continue;
            }
            self.joined.fetch_add(1, Ordering::SeqCst);
            // Whoever joined before the loop was closed is waited for; whoever came later goes away again.
            if self.epoch.load(Ordering::SeqCst) == epoch {
                // SAFETY: the loop is open and counts us, so `task` is set and stays valid until we leave.
                if let Some(task) = unsafe { *self.task.get() } {
                    let call = std::panic::AssertUnwindSafe(|| self.take_items(task, id));
                    if std::panic::catch_unwind(call).is_err() {
                        self.panicked.store(true, Ordering::Relaxed);
                    }
                }
                seen = epoch;
            }
            self.joined.fetch_sub(1, Ordering::SeqCst);
            spins = 0;
        }
    }

    fn sleep(&self, epoch: usize) {
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        *sleepers += 1;
        self.asleep.store(*sleepers, Ordering::SeqCst);
        while self.epoch.load(Ordering::SeqCst) == epoch && !self.stop.load(Ordering::SeqCst) {
            sleepers = self.wake.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        *sleepers -= 1;
        self.asleep.store(*sleepers, Ordering::SeqCst);
    }
}

/// Waits a little; gives the core away now and then, for machines with more to do than cores.
fn pause(spins: &mut usize) {
    *spins += 1;
    if spins.is_multiple_of(512) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_runs_once() {
        for threads in [1, 2, 3, 5] {
            let mut pool = Pool::new(threads).unwrap();
            for items in [0, 1, 2, 7, 100] {
                for _ in 0..200 {
                    let counts: Vec<AtomicUsize> = (0..items).map(|_| AtomicUsize::new(0)).collect();
                    pool.run(items, &|thread, item| {
                        assert!(thread < threads);
                        counts[item].fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
                }
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let mut pool = Pool::new(3).unwrap();
        for _ in 0..20 {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                pool.run(50, &|_, item| assert!(item != 13, "on purpose"));
            }));
            assert!(caught.is_err());
        }
        let sum = AtomicUsize::new(0);
        pool.run(10, &|_, item| {
            sum.fetch_add(item, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }
}
