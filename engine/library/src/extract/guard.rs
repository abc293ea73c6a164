//! Runs a reader on a thread of its own: parsers may panic on broken files, nest deeply, or take very long. A panic becomes an
//! error and stays quiet, time is bounded, and a cancel is honoured while the parser still runs.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

use crate::document::ReadOptions;
use crate::error::Fault;

/// Reading that takes longer is given up.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
/// Nested things are often read by recursion; a deep stack keeps a hostile file from ending the process.
const STACK_BYTES: usize = 256 << 20;
/// How often a cancel is looked for.
const GLANCE: Duration = Duration::from_millis(50);

/// Until when a reader may go on; readers ask between two of their steps.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    options: ReadOptions,
    deadline: Instant,
    limit: Duration,
}

impl Watch {
    /// From now on for so long.
    pub(super) fn new(options: &ReadOptions, limit: Duration) -> Watch {
        Watch {
            options: options.clone(),
            deadline: Instant::now() + limit,
            limit,
        }
    }

    /// An error once somebody asked to stop, or it takes too long.
    pub(super) fn check(&self) -> Result<(), Fault> {
        self.options.check()?;
        if Instant::now() >= self.deadline {
            return Err(self.too_slow());
        }
        Ok(())
    }

    /// The password that was given.
    pub(super) fn password(&self) -> Option<&str> {
        self.options.password.as_deref()
    }

    fn too_slow(&self) -> Fault {
        Fault::TooSlow {
            seconds: self.limit.as_secs(),
        }
    }
}

/// Runs a reader of this kind of file ("a Word document").
///
/// The thread is left behind when it takes too long: it ends when its reader looks at the watch, or is done.
pub(super) fn guarded<T: Send + 'static>(
    kind: &'static str,
    bytes: Arc<Vec<u8>>,
    watch: Watch,
    work: impl FnOnce(&Arc<Vec<u8>>, &Watch) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let broken = |why: &str| Fault::Broken {
        kind: kind.into(),
        why: why.into(),
    };
    let (sender, receiver) = mpsc::channel();
    let inside = watch.clone();
    thread::Builder::new()
        .name("read".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // The caller may have left already; then nobody wants the answer.
            let _ = sender.send(quietly(|| work(&bytes, &inside)));
        })
        .map_err(|error| broken(&error.to_string()))?;
    loop {
        match receiver.recv_timeout(GLANCE) {
            Ok(Some(outcome)) => return outcome,
            Ok(None) | Err(RecvTimeoutError::Disconnected) => {
                return Err(broken("its structure cannot be followed"));
            }
            Err(RecvTimeoutError::Timeout) => watch.check()?,
        }
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a parser; `None` when it panicked. Nothing is printed for it, and panics elsewhere print as ever.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                earlier(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    outcome.ok()
}

#[cfg(test)]
mod tests {
    use reprise_engine::CancelToken;

    use super::*;

    fn run(
        options: &ReadOptions,
        limit: Duration,
        work: impl FnOnce(&Watch) -> Result<u32, Fault> + Send + 'static,
    ) -> Result<u32, Fault> {
        let watch = Watch::new(options, limit);
        guarded("a test", Arc::new(Vec::new()), watch, move |_, watch| work(watch))
    }

    #[test]
    fn a_panic_of_a_parser_is_an_error_and_stays_quiet() {
        assert_eq!(quietly(|| 7), Some(7));
        assert_eq!(quietly(|| -> u32 { panic!("this must not be printed") }), None);
        assert!(!QUIET.get());
        let outcome = run(&ReadOptions::default(), LIMIT, |_| panic!("nor this"));
        assert!(matches!(outcome, Err(Fault::Broken { .. })));
    }

    #[test]
    fn a_reader_that_takes_too_long_is_left() {
        let outcome = run(&ReadOptions::default(), Duration::ZERO, |watch| {
            while watch.check().is_ok() {}
            thread::sleep(Duration::from_secs(1));
            Ok(1)
        });
        assert_eq!(outcome, Err(Fault::TooSlow { seconds: 0 }));
    }

    #[test]
    fn a_cancel_is_honoured_while_the_reader_runs() {
        let cancel = CancelToken::default();
        let options = ReadOptions::default().with_cancel(cancel.clone());
        let outcome = run(&options, LIMIT, move |_| {
            cancel.cancel();
            thread::sleep(Duration::from_millis(300));
            Ok(1)
        });
        assert_eq!(outcome, Err(Fault::Cancelled));
    }
}
